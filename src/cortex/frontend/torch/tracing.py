"""Tracing one kind of node of a module: which calls run, which are cut and become states of other nodes."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from types import CodeType
from typing import TYPE_CHECKING, Any

from cortex.errors import ModelError
from cortex.frontend.builder import Builder, Value
from cortex.frontend.facts import ABSENT
from cortex.frontend.pointwise import fill
from cortex.frontend.signals import NeedsStates
from cortex.frontend.spans import fail, user_span
from cortex.frontend.torch.accessors import TorchAccessors
from cortex.frontend.torch.calls import said
from cortex.frontend.torch.collected import COLLECTING, add_outside, add_to_argument, added
from cortex.frontend.torch.collections_passed import FRESH
from cortex.frontend.torch.constant_results import constant_result
from cortex.frontend.torch.forms import Column, Form, Path, flatten, parts_of
from cortex.frontend.torch.given_arguments import given_argument
from cortex.frontend.torch.identity import NodeId
from cortex.frontend.torch.keyed import is_key, is_node_of_call
from cortex.frontend.torch.language import Language, is_of_request
from cortex.frontend.torch.looks import Call, Look, Rehearsal
from cortex.frontend.torch.node_lists import NodeList, NodeTuple
from cortex.frontend.torch.outside import Outside
from cortex.frontend.torch.passed_numbers import Data, Group, Numbers
from cortex.frontend.torch.recursion import refuse_generator
from cortex.frontend.torch.roles import Part, Role, remembered
from cortex.frontend.torch.routines import Routine
from cortex.frontend.torch.shared_tensors import Lent, freeze, lend
from cortex.frontend.torch.standins import TorchNode, is_stand_in
from cortex.frontend.torch.steps import Attr, Steps
from cortex.frontend.torch.unknown import Unknown, blur
from cortex.ir.source import Span
from cortex.ra.ir import Hop, State

if TYPE_CHECKING:
    from cortex.frontend.torch.model import TorchModel
    from cortex.frontend.torch.standins import NodeField


@dataclass
class Frame:
    """A routine that is running on a node."""

    routine: Routine
    steps: Steps
    ways: dict[str, Steps] = field(default_factory=dict)
    """To the arguments that nodes can be, by parameter."""


@dataclass(frozen=True)
class Cut:
    """A call that became a state of another node, with the values that it was given."""

    role: Role
    steps: Steps
    passed: dict[str, list[Value]]
    inherits: tuple[tuple[str, str], ...]
    """The call's parameters that are tensors of the request, and the caller's."""
    asked: int
    """How many questions had been asked before."""
    numbers: Numbers = ()
    """The numbers and texts that the call is given as data."""


@dataclass(eq=False)
class TorchBuilder(Builder):
    """The graph of one kind of node of a module."""

    model: TorchModel = field(kw_only=True)
    around: Outside = field(kw_only=True)
    rehearsal: Rehearsal | None = field(kw_only=True, default=None)
    role: Role = field(init=False)
    tag: str = ""
    """The role's; with `>` where only the arguments of other calls are computed."""
    frames: list[Frame] = field(default_factory=list)
    places: dict[Steps, Any] = field(default_factory=dict)
    """What stands for the objects that the code has reached."""
    made: list[tuple[Role, Steps]] = field(default_factory=list)
    """All calls of routines that are not run here."""
    cuts: list[Cut] = field(default_factory=list)
    """Those of them that are nodes of the model."""
    has_met_constants: bool = False
    """Does a call that was made return a constant, for the node that it was made on?"""
    looks: dict[Call, Look] = field(default_factory=dict)
    """The calls of which the code got something."""
    forms_taken: dict[tuple[str, tuple[Hop, ...]], int] = field(default_factory=dict)
    """Arrays of children whose forms were not asked for, and how many calls had been made then."""
    typed_by_values: list[NodeField] = field(default_factory=list)
    """Numbers of Python and lists of them that became tensors: their classes decide the element types."""
    early: set[str] = field(default_factory=set)
    """Attributes of the node that the code has read before it set them."""
    groups: list[Group] = field(default_factory=list)
    """Calls on items of lists that are given numbers."""
    grown: dict[str, list[Any]] = field(default_factory=dict)
    """Collections, and what the call has added to them."""
    lent: list[Lent] = field(default_factory=list)
    """What others can see too."""
    _read: dict[tuple[Role, Steps, str], Any] = field(default_factory=dict)
    """What was stored by others, as the code got it."""
    _parts: dict[tuple[str, Steps, Part], Any] = field(default_factory=dict)
    """Tensors that calls have left and that callers may change, as the code got them."""
    _written: dict[tuple[Steps, str], Any] = field(default_factory=dict)
    _set_at: dict[tuple[Steps, str], Span | None] = field(default_factory=dict)
    _methods: list[tuple[Any, Steps, int]] = field(default_factory=list)

    @property
    def accessors(self) -> TorchAccessors:
        """What names mean."""
        accessors = self.knowledge.accessors
        assert isinstance(accessors, TorchAccessors)
        return accessors

    @property
    def recursive_code(self) -> set[CodeType]:
        """The code of routines, whose calls are seen."""
        return self.model.entry.seen_code

    def where(self, steps: Steps) -> tuple[str, tuple[Hop, ...]]:
        """The name of what the steps lead to, and the way to the node that has it: a child, or the node itself."""
        return self.model.child_lists.where(self, steps)

    # Calls.

    def call(self, routine: Routine, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A routine is called: run it, or take its result for a state of the node it is called on."""
        try:
            arguments = routine.bind(args, kwargs)
        except TypeError:
            return routine.original(*args, **kwargs)  # which says what is wrong
        nodes = [name for name, value in arguments.items() if is_stand_in(value)]
        ways = {name: x._cortex_steps for name, x in arguments.items() if name in nodes or is_key(x)}
        node = self.model.walks.node_of(routine.key, nodes, ways)
        if routine.key in self.model.routines and node is not None:
            return self._cut(routine, node, self.model.data.without_constants(self, routine, arguments))
        again = [i for i, frame in enumerate(self.frames) if frame.routine.key == routine.key]
        if again:
            node = self.model.walks.learn(routine.key, nodes, self.frames[again[-1]].ways, ways) or node
        if node is None and not ways:
            return routine.original(*args, **kwargs)
        steps: Steps = ways[node] if node is not None else self.frames[-1].steps if self.frames else ()
        refuse_generator(routine)
        self.recursive_code.add(routine.function.__code__)
        if again and self.frames[again[-1]].steps != steps:
            self._recursive(routine, steps, again[-1])
        self.frames.append(Frame(routine, steps, ways))
        try:
            return routine.run(arguments)
        finally:
            self.frames.pop()

    def run_role(self, routine: Routine, arguments: dict[str, Any]) -> Any:
        """Run the routine that this kind of node stands for a call of."""
        self.frames.append(Frame(routine, ()))
        return routine.run(arguments)

    def _recursive(self, routine: Routine, steps: Steps, since: int) -> None:
        """A routine is called on another node while it runs: from now on, such calls are cut.

        Of the routines in between, those that are called on another node than their caller's are recursive too.
        """
        chain = [*self.frames[since:], Frame(routine, steps)]
        for before, after in pairwise(chain):
            if before.steps != after.steps:
                self.model.routines[after.routine.key] = after.routine
        self.model.restart()

    def _cut(self, routine: Routine, node_parameter: str, arguments: dict[str, Any]) -> Any:
        self.around.look()
        node = arguments.pop(node_parameter)
        steps = node._cortex_steps
        if is_key(node):
            self.model.walks.call_on(self, steps)
        numbers = self.model.data.taken_out(self, routine, arguments)
        added_to = [name for name in arguments if (routine.key, name) in self.model.collecting]
        passed = {
            name: self.values(value)
            for name, value in arguments.items()
            if name not in added_to and not self.is_memo(value) and self._is_computed(value)
        }
        forms = {name: form for name, (form, _) in passed.items()}
        given = {
            name: COLLECTING if name in added_to else given_argument(self, name, value, forms)
            for name, value in arguments.items()
        }
        given |= {name: Data() for name, _ in numbers}
        if self.rehearsal is None:
            role = self.model.role_of_call(self, routine, node_parameter, given)
        else:
            role = self.rehearsal.role_of_call(self, routine, steps, given)
        self.made.append((role, steps))
        if role is self.role and not steps:
            self.model.data.must_be_known(self.model, self.role)  # a number may end it
            raise fail(
                f"{routine.label} calls itself on the node itself, which would never end (P.2). Call it on a child: "
                "node.left, or each k in node.children."
            )
        constant = constant_result(self, role, steps, dict(numbers))
        if constant is not None:
            return constant.rebuild([])
        inherits = [pair for name, x in arguments.items() if is_of_request(x) for pair in x._cortex_inherits(name)]
        values = {name: values for name, (_, values) in passed.items()}
        cut = Cut(role, steps, values, tuple(inherits), len(self.facts.known), numbers)
        self.cuts.append(cut)
        if self.rehearsal is None:
            self.model.note_call(self, cut)
        if role.result is None:
            self.model.links.hop(self, role, steps)
            raise NeedsStates
        self.around.forget()
        if numbers:  # another call of the role on this node may have been seen before
            self._read = {key: value for key, value in self._read.items() if key[:2] != (role, steps)}
        if self.model.in_place.names:
            self._leave_anew(steps)
        for name in role.changes:
            self._remember(role, name, arguments[name], steps)
        for name in added_to:
            add_to_argument(self, name, arguments[name], role, steps)
        add_outside(self, role, steps)
        for name in role.keeps & arguments.keys():
            freeze(f"argument '{name}' of {routine.label}, which keeps it,", arguments[name])
        result = self._left(role, steps, role.result, role.result_names(self.model.prefix(role)))
        if role.shares:
            names = tuple(name for i in range(role.result.count) for name in role.stored_with(("", i)))
            followed = self.model.in_place.is_followed(names)
            self._lent(f"what {routine.label} returns, which is also {role.shares},", result, tensors=not followed)
        return result

    def _leave_anew(self, steps: Steps) -> None:
        """Calls on an object, and those that these make, leave other tensors than earlier calls."""
        for key in [key for key in self._read if key[1][: len(steps)] == steps]:
            del self._read[key]
        for part in [part for part in self._parts if part[1][: len(steps)] == steps]:
            del self._parts[part]
        for at in [at for at in self._written if at[0] and at[0][: len(steps)] == steps]:
            del self._written[at]

    def _remember(self, role: Role, name: str, collection: Any, steps: Steps) -> None:
        """A call has put something into a collection that it was given: an entry for its node, and who knows what."""
        blur(collection, f"'{name}'")
        attribute = remembered(name)
        if attribute in role.stored and isinstance(collection, dict):
            names = role.stored_names(self.model.prefix(role), attribute)
            value = self._lent(f"what '{name}' remembers", self._left(role, steps, role.stored[attribute], names))
            collection.update(dict.fromkeys(self.keys(steps), value))

    def keys(self, steps: Steps) -> tuple[Any, ...]:
        """What a node is known by in dictionaries: itself, or its `id`."""
        node = self.places[steps]
        return (node, NodeId(node))

    def is_memo(self, x: Any) -> bool:
        """Is this a collection that calls remember something about nodes in: an empty one, or with nodes for keys?"""
        if not isinstance(x, FRESH) or isinstance(x, NodeList):
            return False
        return all(type(key) in (TorchNode, NodeId, Unknown) or is_node_of_call(key) for key in x)

    def _left(
        self, role: Role, steps: Steps, form: Form, names: list[str], *, stored: str = "", looks_up: bool = False
    ) -> Any:
        """What the call of `role` on what the steps lead to has returned or stored, from the states of its node."""
        look = self.looks.setdefault((role.tag, steps), Look(role, steps, looks_up))
        tensors = []
        for i, (name, kind) in enumerate(zip(names, form.types(), strict=True)):
            hop = self.model.links.hop(self, role, steps, looks_up=looks_up)
            state = self.emit(State(name, (hop,)), role.types[name].shape)
            look.lets.add(state.name)
            tensors.append(self._part(role, steps, (stored, i), self.language.of_type(state, kind)))
        if self.rehearsal is not None and look.call in self.rehearsal.hidden:
            return self.rehearsal.shown
        return form.rebuild(tensors, lambda name: added(self, f"what {role.tag} returns", role, steps, name))

    def _part(self, role: Role, steps: Steps, part: Part, tensor: Any) -> Any:
        """A tensor that a call has left: the same object as the others that are the same tensor."""
        if not hasattr(tensor, "_cortex_on_change"):  # Cortex's own: a call returns others than it stores
            return tensor
        in_place = self.model.in_place
        if in_place.is_followed(role.stored_with(part)):
            tensor = self._parts.setdefault((role.tag, steps, (role.sharing or {}).get(part, part)), tensor)
        tensor._cortex_on_change = partial(in_place.change, self, role, steps, part)
        return tensor

    # Tensors.

    @property
    def language(self) -> Language:
        """What tensors are in this code."""
        return self.model.entry.language

    def values(self, result: Any, numbers: Collection[Path] = ()) -> tuple[Form, list[Value]]:
        """The form of a result, and its tensors; numbers at these places are tensors too."""
        form, found = flatten(self.language.known(result), self.kind_of, numbers)
        return form, [self._value(x) for x in found]

    def _value(self, x: Any) -> Any:
        if isinstance(x, Column):
            return x
        return fill(float(x)) if isinstance(x, int | float) else self.language.value(x)

    def kind_of(self, x: Any) -> str | None:
        """The element type of a tensor."""
        return self.language.element_type(x) if self.language.is_tensor(x) else None

    def _is_computed(self, value: Any) -> bool:
        """Is this argument of a call, or any part of it, a tensor?"""
        if isinstance(value, TorchNode | NodeTuple) or is_of_request(value):
            return False
        parts = parts_of(value)
        return self.language.is_tensor(value) if parts is None else any(map(self._is_computed, parts))

    # Attributes that the code sets on nodes.

    def store(self, steps: Steps, name: str, value: Any) -> None:
        """`node.name = value`."""
        if name not in self.model.written:
            self.model.written.add(name)
            if any(read and read[-1] == Attr(name) for read in self.model.ever_read):
                self.model.restart()
        self._written[steps, name] = value
        self._set_at[steps, name] = user_span()

    def stored(self, steps: Steps, name: str) -> Any:
        """What was stored there: by this call, or by another one as a state; ABSENT where nobody does."""
        if (steps, name) in self._written:
            return self._written[steps, name]
        if name not in self.model.written:
            self.model.ever_read.add((*steps, Attr(name)))
            return ABSENT
        role, looks_up = self._who_stores(steps, name)
        in_place, what = self.model.in_place, f"{said(steps)}.{name}"
        if role is not None or not steps:
            in_place.refuse_other_readers(self, role, steps, name, what)
        if role is None:
            if not steps and not self.model.is_stored_by_others(self.role, name):
                self.early.add(name)
                return ABSENT  # what the structure has there, if anything
            raise NeedsStates
        if (role, steps, name) not in self._read:
            names = role.stored_names(self.model.prefix(role), name)
            value = self._left(role, steps, role.stored[name], names, stored=name, looks_up=looks_up)
            self._read[role, steps, name] = self._lent(what, value, tensors=name not in in_place.names)
        return self._read[role, steps, name]

    def refuse_lost_changes(self) -> None:
        """Refuse a call that has changed a collection which others can see too."""
        for lent in self.lent:
            lent.refuse_change()

    def _lent(self, what: str, value: Any, *, tensors: bool = True) -> Any:
        self.lent.append(lend(what, value, user_span(), tensors=tensors))
        return value

    def _who_stores(self, steps: Steps, name: str) -> tuple[Role | None, bool]:
        """The call that set the attribute of a node: the last one on it here, else any."""
        for cut in reversed(self.cuts):
            if cut.steps == steps and name in cut.role.stored:
                return cut.role, cut.role.is_top_down
        if any(cut.steps == steps and cut.role.result is None for cut in self.cuts):
            raise NeedsStates
        roles = [r for r in self.model.roles if name in r.stored and not (r is self.role and not steps)]
        role = self.model.who_stores(self, steps, roles)
        return role, role is not None and self.model.mode == "calls"

    def results(self) -> dict[str, Any]:
        """What was stored on the node itself."""
        for steps, name in self._written:
            span = self._set_at[steps, name]
            if steps and not self.model.in_place.is_set_by_caller(self, steps, name, span):
                raise ModelError(
                    f"{said(steps)}.{name} is set by the call for another node. Set attributes of the node that a "
                    "recursive method is called on, or pass the value as an argument of the call on that node.",
                    span,
                )
        return {name: value for (steps, name), value in self._written.items() if not steps}

    @contextmanager
    def inside_method(self, key: Any, code: CodeType, steps: Steps) -> Iterator[None]:
        """A method of a node runs on what stands for it.

        One that calls itself on other nodes, without the module's doing, is asked of real nodes from now on.
        """
        depth = len(self.frames)
        if any(running == key and at != steps and depth == before for running, at, before in self._methods):
            self.model.opaque_methods.add(key)
            self.model.restart()
        self._methods.append((key, steps, depth))
        self.model.entry.seen_code.add(code)
        try:
            yield
        finally:
            self._methods.pop()
