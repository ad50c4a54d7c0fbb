"""Tracing by kind: from a model function to RA.

The function is called with a stand-in node once per kind. `explore` finds the kinds that can be known without a
structure; `see` traces the kinds of real nodes that are new. Both may be called at any time, in any order. A kind
of any number of children is used for those numbers only that it has been checked for: `see` checks the numbers that
nodes have too, and `check` does so where nothing else is new.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

from cortex.errors import CortexError, ModelError, StructureError
from cortex.frontend.arity.ahead import check_ahead
from cortex.frontend.arity.at_once import insert, trace_form, trace_node
from cortex.frontend.arity.check import check, has_many_children, is_checked, with_fewer_children
from cortex.frontend.arity.counts import learn_counts
from cortex.frontend.arity.lengths import CheckedLengths
from cortex.frontend.arity.rows import refuse_unlike_rows
from cortex.frontend.arity.say_why import say_why
from cortex.frontend.arity.supposing import Supposed
from cortex.frontend.arity.widen import widen
from cortex.frontend.assemble import assemble
from cortex.frontend.collector import young_objects_only
from cortex.frontend.decision import DecisionTree, Traced
from cortex.frontend.depends import depends_on
from cortex.frontend.explore import Exploration, Guard
from cortex.frontend.facts import Answer, Facts, Seen
from cortex.frontend.fields import Declared, Failure
from cortex.frontend.guess_states import guess_states
from cortex.frontend.knowledge import Knowledge
from cortex.frontend.many_kinds import MANY, endless, warn_of_many_kinds
from cortex.frontend.model import RecursiveModel, TracedModel
from cortex.frontend.node_identity import refuse_unseen_questions
from cortex.frontend.places import place_of
from cortex.frontend.postorder import postorder
from cortex.frontend.raised import missing, needs_structure, raised
from cortex.frontend.signals import Impossible, MissingAttribute, NeedsExample, NeedsStates, OutOfTime, Restart
from cortex.frontend.state_form import StateForm
from cortex.frontend.unread_fields import refuse_unread_fields
from cortex.frontend.unseen import ABSENT, LOOKED_AT, attribute_of, refuse_unseen_children
from cortex.frontend.weight_space import WeightSpace
from cortex.frontend.weights import Weights
from cortex.ra.ir import Fact, IsLeaf, Model, Test
from cortex.ra.merge_states import equal_states, merge_states

MOST_REMEMBERED = 64
DRAFTED, MOST_DRAFTS = 2, 100
"""From how many structures it is found out what there is to be known, and how often these are walked at most."""


@dataclass(frozen=True, eq=False)
class Failed:
    """A node for which the model raised an error, once it had answered so much."""

    node: Any
    guard: Guard
    error: Exception


class Trace:
    """The kinds of one model, found so far."""

    def __init__(
        self,
        model: TracedModel,
        weights: Weights | Mapping[str, Any] | str | os.PathLike[str] | None = None,
        fields: Mapping[str, str | Callable[[Any], Any] | Declared] | None = None,
        children: str | tuple[str, ...] | Callable[[Any], Iterable[Any]] | None = None,
    ) -> None:
        if not isinstance(model, TracedModel):
            raise ModelError(f"a {type(model).__name__} is not a model; decorate the function with @cortex.model.")
        if isinstance(model, RecursiveModel):
            refuse_unseen_questions(model.function, model.node_parameter)
        self.weights = Weights.of(weights)
        self.accessors = model.accessors(fields, children)
        self._model = model
        arguments = model.arguments(WeightSpace(self.weights))
        self._knowledge = Knowledge(model, arguments, self.weights, self.accessors)
        self._knowledge.kind_of = lambda node: self._tree.find(Seen(node, self._knowledge).answer)
        self._tree = DecisionTree()
        self._exploration: Exploration | None = None
        self._remembered: list[Any] = []  # requests that showed new kinds, where there is no other way to find them
        self._forgotten = 0
        self._has_forgotten = False  # have requests seen before to be seen again?
        self._waiting: dict[tuple[str, bool, Guard], Any] = {}
        """Nodes that the last walk could not trace yet, each for all that ask and answer as it does."""
        self._checks = 0
        self._too_many = MANY

    @contextmanager
    def in_time(self, work: str = "tracing") -> Iterator[None]:
        """Refuse models of which tracing finds no end, or compiling: of few kinds, it takes as long as it takes."""
        if work != "tracing" and self.known_kinds < MANY:
            yield
            return
        k = self._knowledge
        try:
            with k.clock.running(), young_objects_only():
                yield
        except OutOfTime:
            guards = [*(kind.guard for kind in self._tree.order), *(guard for *_, guard in self._waiting)]
            said = endless(f"{work} '{self._model.name}'", k.clock.seconds, guards, self.accessors.said)
            raise ModelError(said, k.definition) from None

    def explore(self) -> None:
        """Trace every kind that can be known without a structure."""
        with self.in_time():
            self._explore()

    def _explore(self) -> None:
        while self._exploration is None:
            exploration = Exploration(self._knowledge, self._tree)
            try:
                if self._model.explores:
                    exploration.run()
                self._exploration = exploration
            except Restart:
                self._forget()

    @property
    def name(self) -> str:
        """The name of the model."""
        return self._model.name

    @property
    def traced_model(self) -> TracedModel:
        """The model itself."""
        return self._model

    @property
    def knowledge(self) -> Knowledge:
        """What was learned of the model."""
        return self._knowledge

    @property
    def explores(self) -> bool:
        """Can kinds be found without structures?"""
        return self._model.explores

    @property
    def known_kinds(self) -> int:
        """How many kinds have been traced."""
        return len(self._tree.order)

    @property
    def version(self) -> tuple[int, int]:
        """Changes when kinds are added, removed or forgotten."""
        return self._forgotten, self._tree.changes

    @property
    def checks(self) -> int:
        """How many numbers of children kinds of any arity have been found right for."""
        return self._checks

    def checked_lengths(self) -> list[tuple[tuple[Fact, ...], CheckedLengths | None]]:
        """For each kind of the model its guard, and the numbers of children that it is for if it is of any arity."""
        own = [(guard, kind.checked) for kind, guard in self._guards()]
        return own + [(kind.guard, None) for kind in self.model().kinds[len(own) :]]

    @property
    def is_partial(self) -> bool:
        """Does the model treat inner nodes in a way that only a structure can tell, and is no relation known yet?

        Then nothing leads to children, and every node would be taken for a leaf.
        """
        k, exploration = self._knowledge, self._exploration
        if exploration is None or k.slots or k.lists:
            return False
        asked = {fact.answer for kind in self._tree.order for fact in kind.guard if fact.test == IsLeaf()}
        return exploration.has_unknown_inner_kinds or (asked == {True} and not exploration.is_complete)

    def check_fields(self) -> None:
        """Refuse names in `fields` that the model never reads."""
        assert self._exploration is not None
        refuse_unread_fields(self._knowledge, is_complete=self._exploration.is_complete)

    def see(self, roots: Iterable[Any], names: Sequence[str] | None = None) -> bool:
        """Trace the kinds of all nodes of the structures with these roots; True if any of them was new.

        `names` is what errors call the roots.
        """
        roots = list(roots)
        called = ["root"] if len(roots) == 1 else [f"structures[{i}]" for i in range(len(roots))]
        try:
            with self.in_time():
                return self._see(roots)
        except Exception as error:
            if isinstance(error, StructureError) and error is not getattr(self.accessors.failure, "error", None):
                self._refuse_unseen(roots)
            raise self._with_place(error, roots, called if names is None else names) from None

    def check(self, nodes: Sequence[Any]) -> list[Any]:
        """Check kinds of any arity for the numbers of children of these nodes alone; gives those left for `see`.

        These are the nodes that their kinds are not right for, and those that the model cannot be traced for.
        """
        with self.in_time():
            left = self._left(nodes)
            self._model.confirm(self._knowledge)
            return left

    def _left(self, nodes: Sequence[Any]) -> list[Any]:
        left = []
        for node in nodes:
            try:
                seen = Seen(node, self._knowledge)
                kind = self._tree.find(seen.answer, present := dict[Test, Answer]())
                seen = Supposed(seen, {}, present) if present else seen
                if kind is None or not (is_checked(kind, seen) or self._checked(kind, Facts(seen)) is None):
                    left.append(node)
            except Restart:
                self._forget()
                self._has_forgotten = True
                return list(nodes)
            except (Exception, Impossible, MissingAttribute, NeedsExample, NeedsStates):
                left.append(node)
        return left

    def check_ahead(self) -> None:
        """Check kinds of any arity for numbers of children that no node has shown yet, as nobody can later on."""
        if self._model.look_ahead():
            self._trace_again()
        while True:
            try:
                with self.in_time():
                    check_ahead(self._knowledge, self._tree, self._model.code())
                return
            except Restart:
                self._trace_again()

    def _trace_again(self) -> None:
        self._forget()
        self._has_forgotten = True
        self.see([])

    def _checked(self, kind: Traced, facts: Facts) -> Traced | None:
        """None if the kind is right for the node's number of children, else the kind that it should have."""
        own = check(self._knowledge, kind, facts)
        self._checks += own is None
        return own

    def _draft(self, roots: list[Any]) -> None:
        """Find out what there is to be known from some structures, without kinds of any arity: they take long."""
        self._knowledge.is_draft = True
        try:
            for _ in range(MOST_DRAFTS):
                self.explore()
                try:
                    if self._see_once(self._model.roots(roots)):
                        break
                except Restart:
                    self._forget()
        finally:
            self._knowledge.is_draft = False
            self._forget()

    def _see(self, roots: list[Any]) -> bool:
        is_first = not self._model.explores and not self._tree.order and not self._has_forgotten
        if is_first and self._model.prepare(self._knowledge, roots):
            self._draft(roots[:DRAFTED])
        self.explore()
        before, reach = self.version, (self._reach(), self._tree.narrowed)
        done = has_looked = False
        while not done:
            self.explore()
            try:
                requests = [*self._remembered, *roots] if self._has_forgotten else roots
                done = self._see_once(self._model.roots(requests))
                if done and not has_looked and self.is_partial:
                    done, has_looked = False, True  # all nodes were taken for leaves
                now = self._reach(), self._tree.narrowed
                if done and self._remembered and not self._has_forgotten and reach != now:
                    done, self._has_forgotten = False, True  # those seen before may have more nodes or no kinds now
                if done:
                    self._model.confirm(self._knowledge)
                if done and self._model.explores and self.version != before:
                    assert self._exploration is not None
                    self._exploration.run()
                    done = self._tree.narrowed == now[1]  # else there may be nodes without a kind
            except Restart:
                self._forget()
                self._has_forgotten, done = True, False
        is_new = self._has_forgotten or self.version != before
        self._has_forgotten = False
        if self.known_kinds >= self._too_many:
            self._too_many = 2 * self.known_kinds
            guards = [kind.guard for kind in self._tree.order]
            warn_of_many_kinds(self._model.name, self.known_kinds, guards, self.accessors.said)
        if is_new and not self._model.explores:
            self._remembered += roots[: MOST_REMEMBERED - len(self._remembered)]
        return is_new

    def _refuse_unseen(self, roots: list[Any]) -> None:
        """Refuse structures whose children have other names than the model's; a better error than what came of it."""
        k = self._knowledge
        nodes = list(islice(postorder(self._model.roots(roots), k.children), LOOKED_AT))
        relations = k.accessors.relations([*sorted(k.slots), *sorted(k.lists)])
        known = [a for _, a, _ in relations if any(attribute_of(node, a) is not ABSENT for node in nodes)]
        unknown = [relation for relation in relations if relation[1] not in known]
        refuse_unseen_children(nodes, unknown, known, [*k.fields, *k.tags])

    def _with_place(self, error: Exception, roots: list[Any], names: Sequence[str]) -> Exception:
        """The error, which says at which node if reading an attribute of the user's objects raised it."""
        failure, self.accessors.failure = self.accessors.failure, None
        if failure is None or failure.error is not error:
            return error
        place = place_of(failure.node, self._model.roots(roots), names, self._knowledge)
        if isinstance(error, StructureError):
            error = StructureError(f"at {place}, {error}")
            error.says_where = True
        else:
            error.add_note(f"while reading `{failure.name}` of {place} (a {type(failure.node).__name__})")
        return error

    @property
    def starts_from_nodes(self) -> bool:
        """Are the structures of a request themselves what `roots` gives?"""
        return self._model.starts_from_nodes

    def roots(self, requests: Iterable[Any]) -> list[Any]:
        """The nodes that requests start from, for the linearizer."""
        return self._model.roots(requests, traced=False)

    def model(self) -> Model:
        """The model with the kinds traced so far."""
        self.explore()
        assert self._exploration is not None
        if not self._tree.order:
            raise needs_structure(self._knowledge, self._exploration.open_questions, self._exploration.dropped)
        shown = self._model.shown_states()
        refuse_unlike_rows(self._knowledge, self._tree)
        assembled = assemble(self._knowledge, self._guards())
        if shown is None:
            return assembled
        instead = equal_states(assembled, shown)
        self._model.merged(instead)
        return merge_states(assembled, instead)

    def per_arity(self) -> list[str]:
        """A line for each reason why kinds traced so far are for one number of children each."""
        kinds = self.model().kinds
        return say_why(
            self._knowledge, self._tree, {id(t): kind.name for (t, _), kind in zip(self._guards(), kinds, strict=False)}
        )

    def _guards(self) -> list[tuple[Traced, Guard]]:
        """The kinds of the model, in its order."""
        assert self._exploration is not None
        return self._tree.guards(self._knowledge, self._exploration.is_refuted)

    def _forget(self) -> None:
        self._tree = DecisionTree()
        self._exploration = None
        self._forgotten += 1
        self._model.forgotten(self._knowledge)

    def _see_once(self, roots: list[Any]) -> bool:
        """One walk over the structures, children first; False if it has to be repeated with what it learned."""
        k, exploration = self._knowledge, self._exploration
        assert exploration is not None
        relations = self._reach()
        changes = self._tree.changes
        if self.is_partial:
            for root in roots:
                self._look_below(root)
            if relations != self._reach():
                return False
        waiting = self._waiting = {}
        failed: list[Failed] = []
        for number, node in enumerate(postorder(roots, k.children)):
            k.clock.reached(number)
            seen = Seen(node, k)
            known = self._tree.find(seen.answer)
            if (known is not None and is_checked(known, seen)) or (k.is_draft and has_many_children(seen)):
                continue
            facts = Facts(seen)
            try:
                known = known or (None if k.is_draft else self._widened(seen))
                if known is not None and is_checked(known, seen):
                    continue
                kind = trace_node(k, facts) if known is None else self._checked(known, facts)
                if kind is None:
                    continue
                learn_counts(k, kind.guard)
                if k.is_draft:
                    self._tree.insert(kind)
                elif known or not widen(k, self._tree, kind, seen) or self._tree.find(seen.answer) is None:
                    self._model.families.check_order(k, kind, seen)
                    insert(k, self._tree, kind)
                exploration.reached[kind.guard] = "seen"
            except NeedsStates:
                waiting.setdefault(("", bool(k.children(node)), facts.guard()), node)
            except NeedsExample as question:
                waiting.setdefault((str(question), bool(k.children(node)), facts.guard()), node)
            except MissingAttribute as error:
                if relations == self._reach():
                    raise missing(self._knowledge, error) from None
            except Exception as error:
                if relations == self._reach():
                    of_model = not isinstance(error, CortexError) and error is not seen.accessor_error
                    told = raised(k, error, node) if of_model else error
                    if self._model.explores:
                        raise told from (error if of_model else None)
                    failed.append(Failed(node, facts.guard(), told))
            if relations != self._reach():
                return False  # who is a leaf, and which nodes there are, was not known before
        if waiting and changes == self._tree.changes and not failed:
            if k.is_draft:
                return True  # nodes were passed over, or it is told when they are traced for good
            self._resolve(waiting)
        if failed and changes == self._tree.changes:
            self._leave_out(roots, failed)
        return not waiting and not failed

    def _widened(self, seen: Seen) -> Traced | None:
        """Find the kind of a node with very many children from fewer of them: tracing takes time for each."""
        if (fewer := with_fewer_children(seen)) is None:
            return None
        with suppress(Exception, Impossible, MissingAttribute, NeedsExample, NeedsStates):
            kind = trace_node(self._knowledge, Facts(fewer))
            if not widen(self._knowledge, self._tree, kind, seen) and kind.checked is not None:
                insert(self._knowledge, self._tree, kind)
        return self._tree.find(seen.answer)

    def _reach(self) -> tuple[int, ...]:
        """Changes when more nodes may be reached than before."""
        k = self._knowledge
        return len(k.slots), len(k.lists), self._model.uses()

    def _leave_out(self, roots: list[Any], failed: list[Failed]) -> None:
        """Nodes that relations lead to and that no result depends on may be such that the model cannot be run for.

        Their kinds compute nothing. Where a result does depend on such a node, what went wrong there is raised.
        """
        k = self._knowledge
        problems = {id(each.node): each.error for each in failed}
        for node in postorder(roots, lambda node: depends_on(k, self._tree, node)):
            if id(node) in problems:
                error = problems[id(node)]
                if isinstance(error, StructureError) and error is not getattr(self.accessors.failure, "error", None):
                    self.accessors.failure = Failure(error, node, "")
                raise error from None
        for each in failed:
            seen = Seen(each.node, k)
            known = self._tree.find(seen.answer)
            if known is None or not is_checked(known, seen):
                self._tree.insert(Traced(each.guard, (), {}))

    def _look_below(self, root: Any) -> None:
        """Take a root for an inner node to learn what leads to its children; that it may fail says nothing."""
        with suppress(Exception, MissingAttribute, NeedsExample, NeedsStates):
            trace_form(self._knowledge, Facts(Seen(root, self._knowledge, assume_inner=True)))

    def _resolve(self, waiting: dict[tuple[str, bool, Guard], Any]) -> None:
        """No kind can be traced first: suppose the states. One node that asks nothing stands for all like it."""
        k = self._knowledge
        problem = self._model.no_base_case()
        if problem is not None:
            raise problem
        nodes = [node for (question, *_), node in waiting.items() if not question]
        asked = next((question for question, *_ in waiting if question), "")
        try:
            if nodes:
                k.states = guess_states(k, [partial(self._supposed, node) for node in nodes])
                return
        except NeedsExample as signal:
            asked = asked or str(signal)
        except MissingAttribute as error:
            raise missing(self._knowledge, error) from None
        raise ModelError(
            f"model '{self._model.name}' cannot be traced for these structures: it needs to know {asked}. "
            "Declare the field, as in fields={'x': cortex.field((300,))}, or pass a structure that shows it.",
            self._knowledge.definition,
        )

    def _supposed(self, node: Any) -> StateForm:
        """What the kind of a node returns while states are supposed."""
        return trace_form(self._knowledge, Facts(Seen(node, self._knowledge)))
