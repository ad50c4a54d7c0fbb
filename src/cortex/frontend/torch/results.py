"""What a call returns and stores, as states of its node: of the same form for all calls of a role."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cortex.errors import ModelError
from cortex.frontend.builder import Value
from cortex.frontend.torch.collected import collected_values
from cortex.frontend.torch.constant_results import learn_constant
from cortex.frontend.torch.forms import Column, Form, places, without_lists
from cortex.frontend.torch.rows import by_rows, learn_axis, learn_lengths, refuse_nodes_as_keys, rows_as_values
from cortex.ra.ir import TensorType

if TYPE_CHECKING:
    from cortex.frontend.torch.roles import Role
    from cortex.frontend.torch.tracing import TorchBuilder


def returned_and_stored(b: TorchBuilder, result: Any) -> dict[str, Value]:
    """The values of the states of a call that returned `result`."""
    role, prefix = b.role, b.model.prefix(b.role)
    values: dict[str, Value] = {}
    result, lists = without_lists(result, role.growing)
    b.grown |= lists
    result = by_rows(b, result)
    form, returned = b.values(result, role.numbers.get("", ()))
    if role.routine is not None and role.learn_empty_lists(form):
        b.model.learn_lists(b, role)
    if role.returns_constants and not form.count:
        learn_constant(b, form, _what(b))
        return {}
    if role.routine is None:
        refuse_nodes_as_keys(b, form)
    if role.result is not None and form != role.result:
        _reconcile(b, role, form, role.result)
    role.result = form
    at = dict(zip(role.result_names(prefix), places(form), strict=True))
    for name, value in zip(at, returned, strict=True):
        values |= rows_as_values(b, name, value) if isinstance(value, Column) else {name: value}
    rows = {row for each in b.rows for row in values if row.startswith(f"{each}[")}
    for name, stored in b.results().items():
        form, parts = b.values(stored, role.numbers.get(name, ()))
        if role.stored.setdefault(name, form) != form:
            if role.learn_numbers(name, role.stored[name], form):
                b.model.restart()
            if role.routine is not None:
                b.model.data.must_be_known(b.model, role)
            one, other = _in_order(form, role.stored[name])
            raise ModelError(
                f"{_what(b)} stores {one} in node.{name} for some nodes and {other} for others. All calls have to "
                "store the same form."
            )
        values |= zip(role.stored_names(prefix, name), parts, strict=True)
    values |= collected_values(b)
    for name, value in values.items():
        if name in rows:
            continue
        known = role.types.setdefault(name, TensorType(value.shape))
        if known.shape != value.shape:
            if role.routine is not None:
                b.model.data.must_be_known(b.model, role)
            if name in at and learn_axis(b, role, at[name], known.shape, value.shape):
                b.model.restart()
            few, many = sorted((value.shape, known.shape))
            raise ModelError(
                f"{_what(b)} returns tensors of shape {few} for some nodes and of {many} for others. Results of all "
                "calls have to have the same shapes: use view, squeeze or unsqueeze.",
                value.let.span,
            )
    return values


def lets_of(values: dict[str, Value]) -> tuple[str, ...]:
    """The lets that are the values of states."""
    return tuple(value.name for value in values.values())


def _reconcile(b: TorchBuilder, role: Role, form: Form, known: Form) -> None:
    """Two calls return different forms: numbers become tensors, constants become known to callers."""
    if role.learn_numbers("", known, form):
        b.model.restart()
    if learn_lengths(b, role, known, form):
        b.model.restart()
    if role.routine is not None and role.learn_lists(known, form):
        b.model.learn_lists(b, role)
    if role.routine is not None and not (form.count and known.count):
        b.model.let_return_constants(b, role)
    if role.routine is not None:
        b.model.data.must_be_known(b.model, role)
    one, other = _in_order(form, known)
    remedy = (
        "where there is nothing, return zeros; return no lists that grow, but store their items on the nodes "
        "(node.h = h), or return their sum."
    )
    if form.count == known.count and "bool" in {*form.types()} ^ {*known.types()}:
        remedy = "truth values (x > 0) or numbers, (x > 0).float()."
    raise ModelError(
        f"{_what(b)} returns {one} for some nodes and {other} for others. All calls have to return the same form: "
        f"{remedy}"
    )


def _in_order(*forms: Form) -> list[str]:
    """What is said of forms does not depend on which of them was seen first."""
    return [form.text() for form in sorted(forms, key=lambda form: (-form.count, form.text()))]


def _what(b: TorchBuilder) -> str:
    return f"'{b.model.name}'" if b.role.routine is None else f"'{b.role.routine.label}'"
