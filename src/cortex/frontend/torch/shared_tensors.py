"""Tensors and collections that several nodes can see, and changes in place that would be lost.

Each call is computed by itself, from states that never change. So what one call hands to another may be changed in
place only if nobody else can see it: a fresh result of a call may be, and what the call has stored if only its caller
reads it (in_place.py); a parameter, a field, an argument or what a memo holds may not.

    t = node.parent.h; t += x       refused: whoever reads node.parent.h later would see the change
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cortex.errors import ModelError
from cortex.frontend.standin import Attribute
from cortex.frontend.torch.categories import is_data
from cortex.frontend.torch.forms import flatten
from cortex.frontend.torch.if_loaded import is_torch_tensor
from cortex.frontend.torch.roles import Part, remembered
from cortex.ir.source import Span

if TYPE_CHECKING:
    from cortex.frontend.torch.tracing import TorchBuilder


def lost(what: str) -> str:
    """What to say to who changes it in place."""
    return (
        f"{what} is changed in place, and others can see it: each call is computed by itself, so the change would be "
        "lost. Change a copy: x = x.clone(), or write x = x + y in place of x += y."
    )


@dataclass(frozen=True, eq=False)
class Lent:
    """A collection that other calls can see, as it was when this call got it, and where that was."""

    what: str
    value: Any
    content: list[Any]
    span: Span | None

    def refuse_change(self) -> None:
        """Refuse the call if the collection is another one now."""
        if not _same(_contents(self.value), self.content):
            raise ModelError(
                f"{self.what} is a collection, and it is changed here after it is read. Each call is computed by "
                "itself, so others would not see the change. Make a new one: list(x), dict(x).",
                self.span,
            )


def lend(what: str, value: Any, span: Span | None, *, tensors: bool = True) -> Lent:
    """Keep a value that others can see from being changed: tensors at once, collections at the end of the call."""
    for part in _contents(value):
        if tensors and is_changeable(part):
            part._cortex_frozen = lost(what)
    return Lent(what, value, list(_contents(value)), span)


def freeze(what: str, value: Any) -> None:
    """Keep the tensors of a value from being changed from now on."""
    for part in _contents(value):
        if is_changeable(part):
            base_of(part)._cortex_frozen = lost(what)


def learn_sharing(b: TorchBuilder, result: Any, given: dict[str, Any]) -> None:
    """Learn what callers share with a call that has returned `result`.

    Everything is traced again if that is new and callers have seen results of such calls before.
    """
    role = b.role
    seen: dict[int, str] = {}
    memos = {remembered(name): f"what '{name}' remembers" for name in role.changes}
    for name, value in b.results().items():
        seen |= {id(part): memos.get(name, f"node.{name}") for part in _shareable(value)}
    for entries in (*b.grown.values(), *b.around.grown().values()):
        seen |= {id(part): "an entry of a list that calls add to" for part in _shareable(entries)}
    arguments = {id(part): name for name, value in given.items() for part in _shareable(value)}
    kept = {arguments[at] for at in {*seen, *map(id, _shareable(result))} if at in arguments}
    shared = ""
    for part in _parts(result):
        shared = shared or _shared_with(part, seen, arguments)
        seen.setdefault(id(base_of(part) if is_changeable(part) else part), "another part of it")
    same = _sharing(b, result, set(arguments))
    is_other = bool(b.model.in_place.names) and same not in role.sharings
    role.sharings.add(same)
    if kept - role.keeps or (shared and not role.shares) or (is_other and len(role.sharings) > 1):
        role.keeps |= kept
        role.shares = role.shares or shared
        if role.result is not None:
            b.model.restart()


def _sharing(b: TorchBuilder, result: Any, arguments: set[int]) -> frozenset[tuple[Part, Part]] | None:
    """The parts of what a call has returned and stored that are the same tensor as another one, which is the second.

    None where parts are something else too: views of each other, fields, parameters, arguments, states of others,
    entries of lists that calls add to.
    """
    if b.role.growing:
        return None
    role, first, found = b.role, dict[int, tuple[Part, Any]](), set[tuple[Part, Part]]()
    memos = {remembered(name) for name in role.changes}
    for name, value in {**b.results(), "": result}.items():
        for i, x in enumerate(flatten(b.language.known(value), b.kind_of, role.numbers.get(name, ()))[1]):
            if isinstance(x, Attribute) or (is_torch_tensor(x) and not is_changeable(x)):
                return None
            if not is_changeable(x):
                continue
            base = base_of(x)
            part, other = (name, i), first.setdefault(id(base), ((name, i), x))
            if base._cortex_frozen or id(base) in arguments or name in memos:
                return None
            if other[1] is not x:
                return None
            if other[0] != part:
                found.add((part, other[0]))
    return frozenset(found)


def _shared_with(part: Any, seen: dict[int, str], arguments: dict[int, str]) -> str:
    """What a part of a result also is; "" if it is nothing else."""
    if isinstance(part, Attribute) and is_data(part._cortex_sample()):
        return f"node.{part._cortex_name}"
    if is_torch_tensor(part) and not is_changeable(part):
        return "a parameter or a constant"
    if is_changeable(part):
        part = base_of(part)
        if part._cortex_frozen:
            return "what another call, a node or the module holds"
    if id(part) in seen:
        return seen[id(part)]
    return f"argument '{arguments[id(part)]}'" if id(part) in arguments else ""


def _shareable(value: Any) -> Iterator[Any]:
    """The tensors and collections of a value, as objects that can be changed."""
    return (base_of(part) if is_changeable(part) else part for part in _parts(value))


def is_changeable(x: Any) -> bool:
    """Is it a symbolic tensor whose elements code can change in place?"""
    return hasattr(type(x), "_cortex_assign")


def base_of(x: Any) -> Any:
    """The tensor that it is a view of, or it."""
    while (base := getattr(x._cortex_held, "base", None)) is not None:
        x = base
    return x


def _parts(value: Any) -> Iterator[Any]:
    """Whatever in a value can be changed in place."""
    is_tensor = is_torch_tensor(value) or is_changeable(value)
    if isinstance(value, Attribute | list | dict) or is_tensor or _is_record(value):
        yield value
    for part in _inside(value):
        yield from _parts(part)


def _contents(value: Any) -> Iterator[Any]:
    """Everything in a value, depth first."""
    yield value
    for part in _inside(value):
        yield from _contents(part)


def _inside(value: Any) -> list[Any]:
    if isinstance(value, list | tuple):
        return list(value)
    if isinstance(value, dict):
        return [*value, *value.values()]
    return [getattr(value, f.name, None) for f in dataclasses.fields(value)] if _is_record(value) else []


def _is_record(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def _same(now: Iterator[Any], before: list[Any]) -> bool:
    found = list(now)
    return len(found) == len(before) and all(x is y for x, y in zip(found, before, strict=True))
