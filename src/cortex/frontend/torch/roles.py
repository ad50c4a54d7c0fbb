"""What a node of a request can be to a module: the head of it, or a call of one of its recursive routines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from cortex.errors import ModelError
from cortex.frontend.spans import fail
from cortex.frontend.torch.collections_passed import Content
from cortex.frontend.torch.forms import Form, Path, empty_lists, grown, varying
from cortex.frontend.torch.passed_numbers import Data
from cortex.frontend.torch.routine_states import RoutineStates
from cortex.frontend.torch.routines import Routine
from cortex.frontend.weight_space import WeightSpace
from cortex.ra.ir import Fact, TensorType

Part: TypeAlias = tuple[str, int]
"""A tensor that a call leaves: the attribute that it stores, "" for its result, and the number in its form."""


@dataclass(frozen=True)
class Passed:
    """An argument that callers compute: the node of the call reads it from the node of its caller."""

    form: Form


@dataclass(frozen=True)
class Inherited:
    """An argument that is a tensor of the request, which calls pass on, with what was done to it row by row."""

    key: tuple[Any, ...]


@dataclass(eq=False)
class Role:
    """A routine with the constants that it is called with. Its states are what it returns and what it stores."""

    tag: str
    routine: Routine | None  # None: the head
    node_parameter: str = ""
    given: dict[str, Any] = field(default_factory=dict)
    """The other arguments: constants, `Content`, `Passed`, `Inherited`, `Data`, or the type of an empty collection."""
    changes: set[str] = field(default_factory=set)
    """Arguments of the latter kind in which it puts something."""
    result: Form | None = None
    stored: dict[str, Form] = field(default_factory=dict)
    numbers: dict[str, set[Path]] = field(default_factory=dict)
    """Where numbers of the result ("") or of a stored attribute differ from call to call, so that they are tensors."""
    returns_constants: bool = False
    """Do calls return a constant for some nodes and something else for others?"""
    constants: dict[tuple[Fact, ...], Form] = field(default_factory=dict)
    """Then by what is asked of these nodes."""
    shares: str = ""
    """What the result also is (`node.h`, a parameter), so that callers must not change it in place; "" if fresh."""
    sharings: set[frozenset[tuple[Part, Part]] | None] = field(default_factory=set)
    """Which parts of what it leaves are the same tensors, by kinds of nodes; see in_place.py."""
    keeps: set[str] = field(default_factory=set)
    """Arguments that it returns or stores as they are, so that callers must not change them afterwards."""
    types: dict[str, TensorType] = field(default_factory=dict)
    """The states it is known to have."""
    collected: dict[str, Form] = field(default_factory=dict)
    """The form of what its calls add to collections, by the names of these."""
    growing: set[Path] = field(default_factory=set)
    """Where in the result there are lists to which calls add something."""
    rows: dict[Path, int | None] = field(default_factory=dict)
    """Of forward: where the result has rows, as many as a request gives; the axis of a tensor, or None for a list."""
    elements: dict[Path, Form] = field(default_factory=dict)
    """The form of one of these."""
    row_shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """The shapes of their tensors, by the names of results."""
    grows: set[str] = field(default_factory=set)
    """Collections outside of calls, attributes of modules, to which its calls add something."""

    @property
    def is_top_down(self) -> bool:
        """Do its callers compute arguments for it?"""
        return any(isinstance(value, Passed) for value in self.given.values())

    @property
    def sharing(self) -> dict[Part, Part] | None:
        """The parts that are the same tensor as another part, and that; None where calls differ in that."""
        found = next(iter(self.sharings)) if len(self.sharings) == 1 else None
        return None if found is None else dict(found)

    def stored_with(self, part: Part) -> tuple[str, ...]:
        """The attributes that hold the same tensor as a part."""
        same = self.sharing or {}
        first = same.get(part, part)
        return tuple(sorted({name for name, _ in (part, first, *(x for x in same if same[x] == first)) if name}))

    def learn_numbers(self, name: str, known: Form, found: Form) -> bool:
        """Do two forms of the result or of an attribute differ in numbers only? Then those are tensors from now on."""
        places = varying(known, found)
        if places is None or places <= self.numbers.get(name, set()):
            return False
        self.numbers.setdefault(name, set()).update(places)
        self.forget()
        return True

    def learn_lists(self, known: Form, found: Form) -> bool:
        """Do two forms of the result differ in the lengths of lists only? Then calls add to those from now on."""
        return self._learn_lists(grown(known, found))

    def learn_empty_lists(self, form: Form) -> bool:
        """Is a list of nothing in the first result? A longer one may come, of a node that depends on this one."""
        return self.result is None and self._learn_lists(empty_lists(form))

    def _learn_lists(self, places: set[Path] | None) -> bool:
        if places is None or places <= self.growing:
            return False
        self.growing |= places
        self.forget()
        return True

    def forget(self) -> None:
        """Learn results anew."""
        self.result = None
        for learned in (self.stored, self.types, self.elements, self.row_shapes):
            learned.clear()

    def result_names(self, prefix: str) -> list[str]:
        """The states that hold the result."""
        assert self.result is not None
        return [prefix + name for name in self.result.names()]

    def stored_names(self, prefix: str, attribute: str) -> list[str]:
        """The states that hold what is stored in an attribute of the node."""
        names = self.stored[attribute].names()
        return [f"{prefix}node_{attribute}" + ("" if name == "out" else f"_{name}") for name in names]

    def collected_names(self, collection: str) -> list[str]:
        """The states that hold what is added to a collection; of the same names in all roles that do."""
        names = self.collected[collection].names()
        return [f"into_{collection}" + ("" if name == "out" else f"_{name}") for name in names]

    def states(self, prefix: str, instead: Mapping[str, str]) -> RoutineStates:
        """The states that hold what it returns and stores, where some are kept as another one `instead`."""
        assert self.result is not None

        def kept(names: list[str]) -> tuple[str, ...]:
            return tuple(instead.get(name, name) for name in names)

        stored = tuple((name, form, kept(self.stored_names(prefix, name))) for name, form in self.stored.items())
        return RoutineStates(self.tag, self.result, kept(self.result_names(prefix)), stored, not self.returns_constants)


def remembered(parameter: str) -> str:
    """The attribute that a call on a node counts as having set when it puts an entry for the node into a dict."""
    return f"in_{parameter}"


def passed_names(tag: str, parameter: str, form: Form, via: str) -> list[str]:
    """The states of a caller that hold an argument of the calls that it makes (by the way `via`, if that matters)."""
    parts = [tag, parameter, *([via] if via else [])]
    return ["_".join(["to", *parts, *([] if name == "out" else [name])]) for name in form.names()]


def same_given(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """Are two calls given the same, as far as roles know of it?"""
    return {name: key_of(value) for name, value in a.items()} == {name: key_of(value) for name, value in b.items()}


def too_many_roles(routine: Routine, given: Mapping[str, Any], roles: Sequence[Role]) -> ModelError:
    """Each call of a routine gets another constant."""
    most = len(roles) - 1
    other = next((name for name, value in given.items() if len(key_of(value)) == 1), None)
    if other is None:
        own = [role.given for role in roles if role.routine is routine]
        values = {name: {key_of(each[name]): each[name] for each in own if name in each} for name in given}
        name = max(values, key=lambda each: len(values[each]), default="")
        some = (x.text if isinstance(x, Content) else repr(x) for x in list(values.get(name, {}).values())[:3])
        shown = ", ".join(text[:20] for text in some)
        which = f" as its argument '{name}' ({shown}, ...)" if len(values.get(name, ())) > 1 else ""
        return fail(
            f"{routine.label} is called with more than {most} different constants{which}, which makes as many "
            "different calls. What differs from node to node has to be a field of the node, or a tensor that is passed "
            "on: torch.tensor(0.0) at first."
        )
    return fail(
        f"{routine.label} is called with more than {most} different objects as its argument '{other}', the last of "
        f"which is a {type(given[other]).__name__}; as many different calls would be compiled. Make the object once, "
        "in __init__, or pass what it holds as arguments of their own: numbers, texts or tensors."
    )


def key_of(value: Any) -> tuple[Any, ...]:
    """Equal for arguments that make no difference to a role."""
    if isinstance(value, str | int | float | bool | None.__class__ | Passed | Inherited | Content | Data):
        return (type(value), value)
    return ("weights", value._cortex_prefix()) if isinstance(value, WeightSpace) else (id(value),)
