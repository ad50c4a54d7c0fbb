"""Finding kinds without a structure: answer each yes-or-no question of the control flow both ways."""

from __future__ import annotations

from functools import partial
from typing import Literal

from cortex.errors import ModelError
from cortex.frontend.arity.at_once import insert, trace_form, trace_node
from cortex.frontend.arity.widen import widen
from cortex.frontend.decision import DecisionTree
from cortex.frontend.facts import Exploring, Facts
from cortex.frontend.guess_states import guess_states
from cortex.frontend.kind_names import kind_name
from cortex.frontend.knowledge import Knowledge
from cortex.frontend.signals import Impossible, NeedsExample, NeedsStates
from cortex.frontend.state_form import StateForm
from cortex.ra.ir import Equals, Fact, IsLeaf, IsNone, Item, Length

Guard = tuple[Fact, ...]
Outcome = Literal["traced", "seen", "waiting", "open", "failed"]

MAX_KINDS = 32
MAX_ATTEMPTS = 512


class Exploration:
    """One exploration: what was tried, what waits for the states to be known, what only a real node can tell."""

    def __init__(self, knowledge: Knowledge, tree: DecisionTree) -> None:
        self.knowledge = knowledge
        self.tree = tree
        self.reached: dict[Guard, Outcome] = {}
        """Guards of all attempts, as far as they got, and of the kinds of real nodes; and what came of them."""
        self.open_questions: dict[str, None] = {}
        self.dropped: Exception | None = None
        self._attempts = 0

    def run(self) -> None:
        """Add every kind that can be known without a structure to the tree.

        May be called again when real nodes have told more: it goes on where questions were open.
        """
        todo = self._with("open") or [()]
        self.open_questions.clear()
        while todo:
            for prefix in todo:
                self._attempt(prefix)
            todo = self._alternatives()
            if not todo and self._with("waiting"):
                if self.knowledge.states is None:
                    self._find_states()
                if self.knowledge.states is not None:
                    todo = self._with("waiting")

    @property
    def has_unknown_inner_kinds(self) -> bool:
        """Is there a kind of nodes that are no leaves which could not be traced without a structure?"""
        unknown = (*self._with("open"), *self._with("waiting"))
        return any(isinstance(fact.test, IsLeaf) and not fact.answer for guard in unknown for fact in guard)

    @property
    def is_complete(self) -> bool:
        """Has every kind been traced that any node can have?"""
        return not self._with("open") and not self._with("waiting")

    def is_refuted(self, guard: Guard) -> bool:
        """Did every attempt to trace nodes that answer like this fail?"""
        self.knowledge.clock.tick()
        outcomes = [o for reached, o in self.reached.items() if _begins(reached, guard)]
        return bool(outcomes) and all(o == "failed" for o in outcomes)

    def _with(self, outcome: Outcome) -> list[Guard]:
        return [guard for guard, o in self.reached.items() if o == outcome]

    def _attempt(self, prefix: Guard) -> None:
        """Trace the kind that answers as `prefix` says; assumptions that fail are no mistakes of the model."""
        self._attempts += 1
        if self._attempts > MAX_ATTEMPTS or len(self.tree.order) >= MAX_KINDS:
            self.reached[prefix] = "open"
            return
        self.reached.pop(prefix, None)
        facts = self._facts(prefix)
        outcome: Outcome = "failed"
        try:
            kind = trace_node(self.knowledge, facts)
            if self.tree.find(facts.known.get) is None and not (
                widen(self.knowledge, self.tree, kind, facts.oracle) and self.tree.find(facts.known.get)
            ):
                insert(self.knowledge, self.tree, kind)
            outcome = "traced"
        except NeedsStates:
            outcome = "waiting"
        except NeedsExample as question:
            self.open_questions.setdefault(str(question))
            outcome = "open"
        except Impossible:
            pass
        except ModelError as error:
            if not _supposes_none(facts.guard()):
                raise
            self.dropped = self.dropped or error
        except Exception as error:
            self.dropped = self.dropped or error
        self.reached[facts.guard()] = outcome

    def _facts(self, prefix: Guard) -> Facts:
        known = {
            fact.test: fact.answer for fact in prefix if not (isinstance(fact.test, Length) and fact.answer is None)
        }
        return Facts(Exploring(known, self.knowledge))

    def _find_states(self) -> None:
        """No kind can be traced first: look for a base case, else suppose the states, unless an example will tell."""
        if self.open_questions:
            return
        self._look_for_base_case()
        if self.knowledge.states is None:
            waiting = self._with("waiting")
            sure = [guard for guard in waiting if not _supposes_none(guard)] or waiting
            try:
                self.knowledge.states = guess_states(self.knowledge, [partial(self._form, guard) for guard in sure])
            except NeedsExample as question:
                self.open_questions.setdefault(str(question))
            except Impossible:
                return

    def _form(self, guard: Guard) -> StateForm:
        """What the kind returns that answers as `guard` says."""
        return trace_form(self.knowledge, self._facts(guard))

    def _look_for_base_case(self) -> None:
        """Take the states from a trace that does not call the model, supposing as few attributes None as possible.

        A list of children of any number is supposed to be empty.

        That these attributes are children is often not known yet: the traces stopped at a call before they got there.
        """
        k = self.knowledge
        todo = self._with("waiting")
        tried: set[Guard] = set()
        while todo and k.states is None and len(tried) < MAX_ATTEMPTS:
            guard = todo.pop(0)
            for i, fact in enumerate(guard):
                known = isinstance(fact.test, IsNone) and (fact.test.name in k.fields or fact.test.name in k.tags)
                is_open = isinstance(fact.test, Length) and fact.answer is None
                other = (*guard[:i], Fact(fact.test, 0 if is_open else True))
                may_be_absent = isinstance(fact.test, IsNone) and fact.answer is not True and not known
                if not (may_be_absent or is_open) or other in tried:
                    continue
                tried.add(other)
                facts = self._facts(other)
                try:
                    k.states, k.first_kind = trace_form(k, facts), kind_name(facts.guard())
                    return
                except NeedsStates:
                    todo.append(facts.guard())
                except (Exception, NeedsExample, Impossible):
                    continue  # the model does not handle this attribute being None

    def _alternatives(self) -> list[Guard]:
        """Guards that differ from a reached one in the last answer, and that nobody has tried."""
        known = {guard[:i] for guard in self.reached for i in range(len(guard) + 1)}
        found: dict[Guard, None] = {}
        for guard, outcome in self.reached.items():
            for i, fact in enumerate(guard):
                other = (*guard[:i], Fact(fact.test, not fact.answer))
                if self._is_open(fact, outcome) and other not in known:
                    found.setdefault(other)
        return list(found)

    def _is_open(self, fact: Fact, outcome: Outcome) -> bool:
        """May the question have the other answer?

        That an attribute may be None is supposed where the model may be able to handle it: of children, fields and
        lists, and of attributes that a whole trace has read but not used, for what else than a comparison with None
        could they be for? Not of tags: a comparison with None works always, so every model would seem to handle it.
        """
        k = self.knowledge
        match fact.test:
            case IsLeaf() | Equals():
                return outcome != "seen"
            case IsNone(name):
                unused = outcome in ("traced", "seen") and name not in k.tags
                return fact.answer is False and (unused or any(name in used for used in (k.slots, k.lists, k.fields)))
            case _:
                return False


def _supposes_none(guard: Guard) -> bool:
    """Is some attribute supposed to be None? Then a failure tells that the model cannot have such nodes, no more."""
    return any(isinstance(fact.test, IsNone) and fact.answer for fact in guard)


def _begins(reached: Guard, guard: Guard) -> bool:
    """Does `reached` begin with `guard`, in which lengths may be open? Then nothing is asked about those children."""
    lists = {fact.test.name for fact in guard if isinstance(fact.test, Length) and fact.answer is None}
    kept = [fact for fact in reached if not any(isinstance(h, Item) and h.name in lists for h in fact.test.path[:1])]
    return len(kept) >= len(guard) and all(
        own == fact or (own.test == fact.test and isinstance(fact.test, Length) and fact.answer is None)
        for own, fact in zip(kept, guard, strict=False)
    )
