"""Results of forward that have a row for each node: stacks and lists whose lengths differ from request to request.

    return self.head(torch.stack([node.h for node in tree.nodes()]))

Two examples give tensors whose sizes differ along one axis, or lists of different lengths. From then on, such a result
is traced row by row, and what every row is computed by is found in traces for other numbers (see arity/rows.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cortex.errors import ModelError
from cortex.frontend.builder import Value
from cortex.frontend.facts import Seen
from cortex.frontend.signals import NeedsStates
from cortex.frontend.torch.forms import Column, Form, Path, WithRows, grown, replaced

if TYPE_CHECKING:
    from cortex.frontend.torch.roles import Role
    from cortex.frontend.torch.tracing import TorchBuilder


def by_rows(b: TorchBuilder, result: Any) -> Any:
    """A result with `WithRows` in place of the parts that are known to have rows."""
    return replaced(result, b.role.rows.keys(), lambda path, part: _with_rows(b, path, part))


def _with_rows(b: TorchBuilder, path: Path, part: Any) -> Any:
    axis = b.role.rows[path]
    if axis is None:
        if type(part) is not list:
            return part
        rows = list(part)
    else:
        if not b.language.is_tensor(part) or not hasattr(part, "select") or part.dim() <= axis:
            return part
        rows = [part.select(axis, i) for i in range(part.shape[axis])]
    found = [b.values(row) for row in rows]
    for form, _ in found:
        if b.role.elements.setdefault(path, form) != form:
            one, other = sorted((form.text(), b.role.elements[path].text()))
            raise ModelError(
                f"'{b.model.name}' returns a list that has {one} for some nodes and {other} for others; entries of one "
                "form are accepted. Return a list for each form."
            )
    if path not in b.role.elements:
        raise NeedsStates  # the form of an entry is not known until there is one
    element = b.role.elements[path]
    columns = [Column([values[i] for _, values in found]) for i in range(element.count)]
    return WithRows(axis, element, columns)


def learn_lengths(b: TorchBuilder, role: Role, known: Form, found: Form) -> bool:
    """Do two results of forward differ in the lengths of lists only? Then these have rows from now on."""
    places = grown(known, found) if _may_learn(b) else None
    if not places or places <= role.rows.keys():
        return False
    role.rows |= dict.fromkeys(places)
    role.forget()
    return True


def learn_axis(b: TorchBuilder, role: Role, path: Path, known: tuple[int, ...], found: tuple[int, ...]) -> bool:
    """Do two tensors differ in size along one axis only? Then it has rows along that from now on."""
    differ = [i for i, (a, b) in enumerate(zip(known, found, strict=False)) if a != b]
    if not _may_learn(b) or len(known) != len(found) or len(differ) != 1 or path in role.rows:
        return False
    role.rows[path] = differ[0]
    role.forget()
    return True


def _may_learn(b: TorchBuilder) -> bool:
    """Is it forward that returns, and for a structure that there is?"""
    return b.role.routine is None and type(b.facts.oracle) is Seen


def rows_as_values(b: TorchBuilder, name: str, column: Column) -> dict[str, Value]:
    """Note the rows of a result; every one is a value of its own."""
    b.rows[name] = tuple(row.name for row in column.rows)
    shapes = b.role.row_shapes
    for row in column.rows:
        if shapes.setdefault(name, row.shape) != row.shape:
            few, many = sorted((row.shape, shapes[name]))
            raise ModelError(
                f"'{b.model.name}' returns rows of shape {few} for some nodes and of {many} for others. Rows of all "
                "nodes have to have the same shape: return what has a fixed size for each node.",
                row.let.span,
            )
    return {f"{name}[{i}]": row for i, row in enumerate(column.rows)}
