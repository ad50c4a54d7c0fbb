"""A module or a function that uses torch, as a model that can be traced.

Tracing begins with the simplest mode (see serving.py) and goes on to the next where it does not suffice.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any, NoReturn

from cortex.errors import ModelError
from cortex.frontend.arity.mentions import Mentions, mentions
from cortex.frontend.builder import Builder, Value, building
from cortex.frontend.facts import Facts, Seen
from cortex.frontend.handled import no_handled_errors
from cortex.frontend.knowledge import Knowledge
from cortex.frontend.model import RecursiveModel, Results, TracedModel
from cortex.frontend.signals import NeedsStates, Restart
from cortex.frontend.spans import fail, refusals
from cortex.frontend.state_form import StateForm
from cortex.frontend.torch.accessors import TorchAccessors
from cortex.frontend.torch.array_forms import ArrayForms
from cortex.frontend.torch.calls import HEAD, PASSING, CallNode, Calls, Storing, argument, no_end
from cortex.frontend.torch.categories import category, is_node
from cortex.frontend.torch.child_lists import ChildLists
from cortex.frontend.torch.collected import Collecting, collect_outside
from cortex.frontend.torch.collections_passed import FRESH, Content, copied
from cortex.frontend.torch.confirm import TracedOnce
from cortex.frontend.torch.data_arguments import DataArguments
from cortex.frontend.torch.dictionaries import dictionaries
from cortex.frontend.torch.entry import Entry, Signature
from cortex.frontend.torch.families import Families
from cortex.frontend.torch.forms import Form, Path
from cortex.frontend.torch.function_entry import with_weights
from cortex.frontend.torch.in_place import InPlace
from cortex.frontend.torch.interface import Constants
from cortex.frontend.torch.keyed import Walks
from cortex.frontend.torch.late_questions import LateQuestions
from cortex.frontend.torch.links import Links, no_base_case
from cortex.frontend.torch.look_into import look_into, refuse_change, refuse_other_result_next_time
from cortex.frontend.torch.looks import Outcome, Rehearsal, deciding, outcome
from cortex.frontend.torch.lookups import Tables
from cortex.frontend.torch.open_counts import OpenCounts
from cortex.frontend.torch.outside import Changes, Outside
from cortex.frontend.torch.passed_numbers import Data
from cortex.frontend.torch.results import lets_of, returned_and_stored
from cortex.frontend.torch.roles import Inherited, Passed, Role, key_of, passed_names, same_given, too_many_roles
from cortex.frontend.torch.routine_states import RoutineStates
from cortex.frontend.torch.routines import Routine
from cortex.frontend.torch.serving import Mode, Request, Serving
from cortex.frontend.torch.shared_tensors import learn_sharing
from cortex.frontend.torch.standins import TorchNode, present, tracing
from cortex.frontend.torch.steps import Attr, Given, Steps, identifier
from cortex.frontend.torch.texts import Texts
from cortex.frontend.torch.tracing import Cut, TorchBuilder
from cortex.frontend.torch.unknown import blurred
from cortex.frontend.weight_space import WeightSpace
from cortex.frontend.written import codes
from cortex.ra.ir import IsNone, Slot, State, TensorType
from cortex.ra.ir import Value as ValueOf

MOST_ROLES = 64


class TorchModel(TracedModel):
    """The routines, roles and modes of one module, learned while it is traced."""

    explores = starts_from_nodes = False
    families: Families

    def __init__(self, entry: Entry, signature: Signature) -> None:
        super().__init__(entry.name, entry.routine.function)
        self.entry, self.signature = entry, signature
        does_more = entry.does_more or signature.tensors or signature.numbers or len(signature.nodes) > 1
        self.mode: Mode = "headed" if does_more else "plain"
        self._next_mode: Mode | None = None  # where everything is to be forgotten
        self.routines, self.roles = dict[Hashable, Routine](), list[Role]()
        self.written, self.ever_read, self.opaque_methods = set[str](), set[Steps](), set[Any]()
        self.links, self.child_lists, self.counts, self.families = Links(), ChildLists(), OpenCounts(), Families()
        self.changes, self.in_place, self.texts, self.walks = Changes(), InPlace(), Texts(), Walks()
        self.array_forms = ArrayForms()
        self.data, self._late, self._tables, self._once = DataArguments(), LateQuestions(), Tables(), TracedOnce()
        self._mixed: set[Steps] = set()  # what holds values of different categories in different nodes
        self._categories, self._roles = dict[Steps, str](), dict[tuple[Any, ...], Role]()
        self._by_way: set[str] = set()  # roles whose callers pass different values by different ways
        self._passed_types: dict[str, TensorType] = {}
        self._weights: dict[str, WeightSpace] = {}  # of a function, by parameter
        self.kept = list[Any]()  # what nodes are compared with by identity
        self.collecting = set[tuple[Hashable, str]]()  # routines and arguments of them, lists that they add to
        self.growing: dict[Hashable, set[Path]] = {}  # where routines return lists to which the calls below add
        self._instead: Mapping[str, str] = {}  # states that are kept as another one, which is equal
        self._returns: tuple[Form, tuple[str, ...]] = Form("plain"), ()  # see `result`

    def code(self) -> list[Any]:
        """The module's own code and attributes, and the constants that it is called with."""
        constants = [x for name, x in self.signature.example.items() if name not in self.signature.nodes]
        routines = (*self.entry.routines.values(), *self.entry.functions.values())
        return [*(r.function for r in routines), *self.entry.modules.values(), *constants]

    def request(self, arguments: dict[str, Any]) -> Request:
        """A call of the module, to be given to the compiled program."""
        return self.signature.request(arguments)

    def result(self) -> tuple[Form, tuple[str, ...]]:
        """The form of what the module returns, and the states that its tensors are, at the root."""
        form, names = self._returns
        result = self.roles[0].result
        if result is not form:
            assert result is not None
            form, names = self._returns = result, tuple(self.roles[0].result_names(self.prefix(self.roles[0])))
        return form, names

    def serving(self, constants: Constants) -> Serving:
        """What calls need, as far as it is known now."""
        node, relations = self.signature.nodes[0], dict(self.links.relations)
        tensors, states = self.signature.tensors, self.routine_states()
        return Serving(constants, self.mode, node, tensors, relations, *self.result(), states)

    def routine_states(self) -> tuple[RoutineStates, ...]:
        """Which states hold what recursive routines return and store."""
        roles = self.roles if self.mode == "plain" else self.roles[1:]
        return tuple(role.states(self.prefix(role), self._instead) for role in roles if role.result is not None)

    # What tracing needs of a model.

    def accessors(self, fields: Any, children: Any) -> TorchAccessors:
        """What names mean on the user's objects."""
        return TorchAccessors(fields, children, self.links.itemize)

    def arguments(self, weights: WeightSpace) -> dict[str, Any]:
        """None: other arguments come with requests, and a function keeps its weights."""
        self._weights = dict.fromkeys(self.entry.weight_parameters, weights)
        return {}

    def mentions(self) -> Mentions:
        """The numbers that the user's code knows, also by attributes of modules and by arguments."""
        given = [*self.signature.example.values(), *(x for role in self.roles for x in role.given.values())]
        return mentions({c for x in self.entry.seen_code for c in codes(x)}, self.entry.held(), given, self.told_at)

    def roots(self, requests: Iterable[Any], *, traced: bool = True) -> list[Any]:
        """The nodes that requests start from, for the linearizer if not for tracing; what is a node stays as it is."""
        found = [r.root(self.mode, self.links.relations) if isinstance(r, Request) else r for r in requests]
        return [r.graph(self._only_numbers_end).head if traced and isinstance(r, Calls) else r for r in found]

    def forgotten(self, k: Knowledge) -> None:
        """Everything is traced again: relations too may be others than before."""
        super().forgotten(k)
        if self._next_mode is not None:
            self._start_over(k, self._next_mode)
        k.slots.clear()
        k.lists.clear()
        self.links.forgotten()
        self.counts.forgotten()
        self._late.forget()
        self._once.forget()

    def uses(self) -> int:
        """In how many roles results depend on what relations lead to, counted for each relation."""
        return self.links.uses

    def decided_by(self) -> Container[str]:
        """Those that lead to calls of whose results the form has decided something."""
        return self.links.decided_by

    def restart(self) -> None:
        """Trace everything again with what was learned."""
        raise Restart

    def run(self, k: Knowledge, facts: Facts) -> tuple[StateForm, Results, Builder]:
        """Run the routine that a node stands for a call of."""
        values, b = self._traced(k, facts)
        if type(oracle := facts.oracle) is Seen:
            self.counts.check(b, lets_of(values), lambda facts: self._lets_traced(k, facts), is_draft=k.is_draft)
            if k.is_draft:
                self._once.draft((b.tag, facts.guard()), b.lets)
            else:
                looks = deciding(b, lets_of(values), lambda rehearsal: self._rehearsed(k, Facts(oracle), rehearsal))
                self.links.look_at(b, looks)
                self._once.add((b.tag, facts.guard()), oracle, b.lets)
        types = tuple(TensorType(value.shape) for value in values.values())
        return StateForm("named", tuple(values), types), values, b

    def prepare(self, k: Knowledge, requests: Sequence[Any]) -> bool:
        """Learn from one run of the module itself which routines are recursive, and what that makes of the nodes."""
        given = next((r.arguments for r in requests if isinstance(r, Request)), None)
        if given is not None:
            self.routines, self.mode = self.entry.start(self.mode, given)
            k.accessors.of_calls = self.mode == "calls"
        return self.mode == "calls"

    def confirm(self, k: Knowledge) -> None:
        """Refuse a module that computes something else for the same nodes."""
        self._once.confirm(self.name, lambda oracle: self._traced(k, Facts(oracle))[1].lets)

    def look_ahead(self) -> bool:
        """Lists may be longer than any that was seen."""
        return self.counts.raise_bounds()

    def _lets_traced(self, k: Knowledge, facts: Facts) -> tuple[tuple[str, ...], TorchBuilder]:
        values, b = self._traced(k, facts)
        return lets_of(values), b

    def _traced(self, k: Knowledge, facts: Facts) -> tuple[Results, TorchBuilder]:
        with self._tracing(k, facts) as b:
            with refusals(), no_handled_errors(self.entry.seen_code):
                result = self._run(b)
            b.refuse_lost_changes()
            if b.role.routine is not None:
                collect_outside(b)
            b.around.look(at_end_of_call=b.role.routine is not None)
            return self._results(b, result), b

    def _rehearsed(self, k: Knowledge, facts: Facts, rehearsal: Rehearsal) -> Outcome:
        with self._tracing(k, facts, rehearsal) as b:
            return outcome(b, self._run(b))

    @contextmanager
    def _tracing(self, k: Knowledge, facts: Facts, rehearsal: Rehearsal | None = None) -> Iterator[TorchBuilder]:
        b = TorchBuilder(k, facts, model=self, around=Outside(self.entry.spaces, self.changes), rehearsal=rehearsal)
        stood_for = self._tables.stood_for(dictionaries(self.entry))
        with (
            building(b),
            self.entry.undisturbed(),
            self.entry.traced(),
            stood_for,
            b.around.watched(),
            self.entry.language.tracing(self.entry),
            self.texts.tried(),
        ):
            yield b

    def call_model(self, model: RecursiveModel, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """A model function is called: as its routine, unless a module does so."""
        routine = self.entry.routine_of(model)
        if routine is None:
            return super().call_model(model, args, kwargs)
        return tracing().call(routine, (), with_weights(model, args, kwargs, self._weights))

    def shown_states(self) -> tuple[str, ...]:
        """Those that results of routines are made from."""
        known = (role for role in self.roles if role.result is not None)
        return tuple(name for role in known for name in role.result_names(self.prefix(role)))

    def merged(self, instead: Mapping[str, str]) -> None:
        """States are not kept for which there is an equal one `instead`."""
        self._instead = instead

    def states(self) -> StateForm:
        """The states of all roles that have been traced, and the arguments that calls pass."""
        found = {name: kind for role in self.roles for name, kind in role.types.items()} | self._passed_types
        return StateForm("named", tuple(found), tuple(found.values()))

    def no_base_case(self) -> ModelError:
        """Every kind needs another one's result first."""
        return no_base_case(self.name)

    def _run(self, b: TorchBuilder) -> Any:
        b.role, b.tag = self._role(b)
        node = self._node(b)
        sample = node.node if isinstance(node, CallNode) else node
        if b.role.routine is None:
            b.places[()] = TorchNode((), sample)
            arguments = self._head_arguments(b)
            return self.entry.call(arguments) if self.entry.does_more else b.call(self.entry.routine, (), arguments)
        given = {name: self._given(b, name, value) for name, value in b.role.given.items()}
        root = self._own_node(b, sample)
        passed = {name: b.values(value) for name, value in given.items() if isinstance(b.role.given[name], Passed)}
        result = b.run_role(b.role.routine, {**given, b.role.node_parameter: root})
        for name, value in given.items():
            if name in passed:
                refuse_change(b, name, value, passed[name])
            look_into(b, name, value, result)
        refuse_other_result_next_time(b, result, {**given, b.role.node_parameter: root})
        if b.rehearsal is None:
            learn_sharing(b, result, {name: given[name] for name in passed})
        return result

    def _node(self, b: TorchBuilder) -> Any:
        """The real node that is traced for."""
        assert isinstance(b.facts.oracle, Seen)
        return b.facts.oracle.node

    def _own_node(self, b: TorchBuilder, sample: Any) -> Any:
        if not is_node(sample):
            if self.mode != "calls":
                self._change_mode("headed" if self.mode == "plain" else "calls")
            return present(b, ())
        if self.is_mixed((), category(sample)):  # calls are made on words or numbers too
            return present(b, ())
        b.places[()] = TorchNode((), sample)
        return b.places[()]

    def _role(self, b: TorchBuilder) -> tuple[Role, str]:
        match self.mode:
            case "plain":
                if not self.roles:
                    node, given = self.signature.given()
                    self.roles.append(Role(self.name, self.entry.routine, node, {**given, **self._weights}))
                return self.roles[0], self.roles[0].tag
            case "headed":
                is_node = b.facts.ask(IsNone(b.accessors.name((Attr(HEAD),))))
                if is_node and len(self.roles) < 2:
                    raise NeedsStates
                role = self.roles[1] if is_node else self._head()
                return role, role.tag
            case "calls":
                b.knowledge.tags.setdefault("call_role")
                tag = str(b.facts.ask(ValueOf("call_role")))
                bare = tag.removesuffix(PASSING)
                role = self._head() if bare == "head" else next(r for r in self.roles if r.tag == bare)
                return role, tag

    def _head(self) -> Role:
        if not self.roles:
            self.roles.append(Role("head", None))
        return self.roles[0]

    def _head_arguments(self, b: TorchBuilder) -> dict[str, Any]:
        """What stands for the arguments of forward."""
        found: dict[str, Any] = {}
        for name, value in {**self.signature.example, **self._weights}.items():
            if name in self.signature.nodes or name in self.signature.numbers:
                found[name] = present(b, (Attr(argument(name)),))
            elif name in self.signature.tensors:
                found[name] = b.language.request_tensor(name, value, name in self.signature.whole)
            else:
                found[name] = self._tables.argument(name, deepcopy(value)) if type(value) in FRESH else value
        return found

    def _given(self, b: TorchBuilder, name: str, value: Any) -> Any:
        """An argument of the role that is traced."""
        match value:
            case Passed(form):
                b.knowledge.note_slot("call_from")
                via = ""
                if b.role.tag in self._by_way:
                    b.knowledge.tags.setdefault("call_via")
                    via = str(b.facts.ask(ValueOf("call_via")))
                names = passed_names(b.role.tag, name, form, via)
                if any(n not in self._passed_types for n in names):
                    raise NeedsStates
                states = (b.emit(State(n, (Slot("call_from"),)), self._passed_types[n].shape) for n in names)
                return form.rebuild([b.language.of_type(x, kind) for x, kind in zip(states, form.types(), strict=True)])
            case Inherited(key):
                return b.language.passed_on(name, key, self._node(b).given.__getitem__)
            case Collecting():
                return blurred(list, f"'{name}'")
            case Content(_, content):
                return self._tables.argument(name, copied(content))
            case Data():
                return present(b, (Given(name),))
            case type() if value in FRESH:
                return blurred(value, f"'{name}'") if name in b.role.changes else value()
        return value

    # Calls.

    def role_of_call(self, b: TorchBuilder, routine: Routine, node_parameter: str, given: dict[str, Any]) -> Role:
        """The role that a call has; the mode changes where it has no room for it."""
        simple = not any(isinstance(value, Passed | Inherited | Data) for value in given.values())
        match self.mode:
            case "plain":
                same = routine.key == self.entry.routine.key and simple and same_given(given, self.roles[0].given)
                return self.roles[0] if same else self._change_mode("headed")
            case "headed":
                if len(self.routines) > 1 or not simple:
                    self._change_mode("calls")
                if len(self.roles) < 2:
                    self.roles.append(Role(routine.tag, routine, node_parameter, given))
                role = self.roles[1]
                return role if same_given(given, role.given) else self._change_mode("calls")
            case "calls":
                key = (routine.key, node_parameter, *((name, *key_of(value)) for name, value in given.items()))
                self.data.learn(self, b, routine, given)
                if key not in self._roles:
                    stem, number = routine.tag, sum(r.routine is routine for r in self.roles)
                    role = Role(f"{stem}_{number + 1}" if number else stem, routine, node_parameter, given)
                    role.growing |= self.growing.get(routine.key, set())
                    self._roles[key] = role
                    self.roles.append(role)
                    if len(self.roles) > MOST_ROLES:
                        raise too_many_roles(routine, given, self.roles)
                return self._roles[key]

    def who_stores(self, b: TorchBuilder, steps: Steps, roles: list[Role]) -> Role | None:
        """The one of several roles that stored an attribute of the node that the steps lead to."""
        if self.mode != "calls" or len(roles) < 2:
            return roles[-1] if roles else None
        tags = tuple(role.tag for role in roles)
        name = "_".join([identifier(steps), "stored", *tags])
        self.links.ask_who_stored(tags)
        b.accessors.relate(name, Storing(tags, steps))
        b.knowledge.tags.setdefault(name)
        tag = b.facts.ask(ValueOf(name))
        return next((role for role in roles if role.tag == tag), None)

    def is_stored_by_others(self, role: Role, name: str) -> bool:
        """Is an attribute stored by another role too?"""
        return any(name in other.stored for other in self.roles if other is not role)

    def need_calls(self, *, again: bool = False) -> None:
        """Let the nodes be calls from now on; `again`: forget what is known of them."""
        if self.mode != "calls" or again:
            self._change_mode("calls")

    def _only_numbers_end(self, tag: str) -> NoReturn:
        """Calls of a role may go on until a number ends them: it is a constant of roles from now on."""
        self.data.must_be_known(self, next(role for role in self.roles if role.tag == tag.removesuffix(PASSING)))
        no_end(tag)

    def _change_mode(self, mode: Mode) -> NoReturn:
        self._next_mode = mode
        raise Restart

    def _start_over(self, k: Knowledge, mode: Mode) -> None:
        """Forget what was learned of the nodes of another mode."""
        self.mode, self._next_mode = mode, None
        assert isinstance(k.accessors, TorchAccessors)
        k.accessors.forget()
        k.accessors.of_calls = mode == "calls"
        self.in_place.forget()
        for learned in (k.tags, k.read, k.fields, self.roles, self._roles, self.links, self.child_lists, self.counts):
            learned.clear()
        for names in (self._by_way, self._passed_types, self._mixed, self._categories, self.families):
            names.clear()

    def let_return_constants(self, b: TorchBuilder, role: Role) -> None:
        """Calls of a role return constants for some nodes, which callers have to know; a root has none."""
        if self.mode == "plain":
            self._change_mode("headed")
        role.returns_constants = True
        for each in self.roles:  # what callers return may be what was known of it
            each.forget()
        raise Restart

    def learn_lists(self, b: TorchBuilder, role: Role) -> None:
        """Calls of a role return lists to which the calls below add; they are traced again."""
        assert role.routine is not None
        self.growing.setdefault(role.routine.key, set()).update(role.growing)
        self.need_calls()
        raise Restart

    def prefix(self, role: Role) -> str:
        """What the names of a role's states begin with."""
        return "" if self.mode == "plain" else f"{role.tag}_"

    def is_mixed(self, steps: Steps, category: str) -> bool:
        """Are there values of different categories in the same place? Such nodes are of different kinds."""
        if self._categories.setdefault(steps, category) != category and steps not in self._mixed:
            self._mixed.add(steps)
            raise Restart
        return steps in self._mixed

    def note_call(self, b: TorchBuilder, cut: Cut) -> None:
        """Remember the types of what a call is given, and that it is made."""
        for name, values in cut.passed.items():
            form = cut.role.given[name].form
            via = identifier(cut.steps) if cut.role.tag in self._by_way else ""
            for state, value in zip(passed_names(cut.role.tag, name, form, via), values, strict=True):
                known = self._passed_types.setdefault(state, TensorType(value.shape))
                if known.shape != value.shape:
                    raise fail(
                        f"argument '{name}' of {cut.role.tag} has shape {value.shape} here and {known.shape} in "
                        "another call; all calls have to get tensors of the same shape."
                    )
        if self.mode == "calls":
            self.links.made(b, cut)

    def _results(self, b: TorchBuilder, result: Any) -> Results:
        values: dict[str, Value] = {} if b.tag.endswith(PASSING) else returned_and_stored(b, result)
        if b.tag.endswith(PASSING) or not self.links.is_split(b.role.tag):
            values |= self._passes(b)
        self._late.drop(b)
        names = tuple(value.name for value in values.values())
        self.links.settle(b, names)
        self.child_lists.learn(b, names)
        self.array_forms.check(b, names)
        return values

    def _passes(self, b: TorchBuilder) -> dict[str, Value]:
        """The states that hold what calls are given."""
        found: dict[str, Value] = {}
        for cut in b.cuts:
            via = identifier(cut.steps) if cut.role.tag in self._by_way else ""
            for name, values in cut.passed.items():
                names = passed_names(cut.role.tag, name, cut.role.given[name].form, via)
                for state, value in zip(names, values, strict=True):
                    if found.setdefault(state, value).name != value.name:
                        if via:
                            raise fail(
                                f"{cut.role.tag} is called twice on the same node with different values of '{name}'; "
                                "once is accepted."
                            )
                        self._by_way.add(cut.role.tag)
                        self._passed_types.clear()
                        raise Restart
        return found
