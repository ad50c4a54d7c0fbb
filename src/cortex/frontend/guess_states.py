"""Finding the states of a model in which every kind calls the model, so that no kind can be traced first.

A form and a shape are supposed, the kinds are traced with them, and each result has to be what was supposed. Sizes
come from the weights and fields. Exactly one form has to work.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product

from cortex.errors import ModelError
from cortex.frontend.knowledge import Knowledge
from cortex.frontend.raised import said_of
from cortex.frontend.signals import Impossible, NeedsExample, Signal
from cortex.frontend.spans import span_of_error
from cortex.frontend.state_form import Form, Guess, StateForm
from cortex.ra.ir import TensorType

ROUNDS = 4
"""How often the result of a supposition is taken as the next one."""

MAX_MIXED = 400
"""How many combinations of shapes are tried for states of different shapes."""

FORMS: tuple[tuple[Form, int], ...] = (
    *(("named", 0), ("bare", 1)),
    *(("tuple", 1), ("tuple", 2), ("tuple", 3), ("tuple", 4)),
)


Trace = Callable[[], StateForm]


@dataclass(frozen=True, eq=False)
class Problem:
    """What went wrong under a supposition, and how far the model came: what goes furthest is nearest to be right."""

    error: ModelError
    supposed: Guess
    turn: int
    """How often the result of a supposition had been taken as the next one."""

    @property
    def reached(self) -> tuple[int, int, int]:
        """The turn, how much was computed in it, and the line."""
        return self.turn, self.supposed.steps, self.error.span.line if self.error.span else 0

    @property
    def ranks(self) -> tuple[int, ...]:
        """How many axes the states were supposed to have."""
        return tuple(len(t.shape) for t in self.supposed.types.values())


def guess_states(k: Knowledge, traces: Sequence[Trace]) -> StateForm:
    """The states of the model, found with `traces`, each of which traces a kind and returns the form of its result.

    Vectors of one size are supposed first, then less usual shapes, then states of different shapes: where vectors
    fit, so would matrices whose columns are computed independently.
    """
    problems: list[Problem] = []
    names: dict[str, None] = {}
    vectors, squares = _shapes(k)
    for shapes in (vectors, [()], squares):
        found: dict[StateForm, None] = {}
        for guess in [Guess(form, shape, count) for form, count in FORMS for shape in shapes]:
            found |= _settled(k, guess, traces, problems)
            names |= dict.fromkeys(guess.types if guess.form == "named" else ())
        if found:
            return _only(k, list(found))
    rank = None
    found = {}
    for guess in _mixed([*vectors, (), *squares], tuple(names)):
        if found and _rank(guess) != rank:
            break
        rank = _rank(guess)
        found |= _settled(k, guess, traces, problems)
    if found:
        return _only(k, list(found))
    raise _none(k, problems)


def _none(k: Knowledge, problems: list[Problem]) -> ModelError:
    """Nothing fits. Told is what stopped the suppositions that came furthest, as it would be with known states.

    What they are is said if it matters, and in the first place if several sizes came equally far.
    """
    unknown = f"the states of model '{k.name}' cannot be found: every kind of node calls the model"
    remedy = "Give nodes without children a branch of their own: if node.is_leaf: return ..."
    if not problems:
        return ModelError(f"{unknown}. {remedy}", k.definition)
    furthest = max(problem.reached for problem in problems)
    problems = [problem for problem in problems if problem.reached == furthest]
    first = problems[0]
    if len(problems) > 1 and _is_one(problems):
        return first.error
    supposed, message = first.supposed.text(), first.error.message
    if _is_one([problem for problem in problems if problem.ranks == first.ranks]):
        told = (
            f"{message} This is so if a call of {k.name} returns {supposed}, which leads furthest. If it has to return "
            f"something else: {remedy[0].lower()}{remedy[1:]}"
        )
    else:
        told = f"{unknown}, and no shape fits. {remedy} If a call returned {supposed}: {message}"
    return ModelError(told, first.error.span)


def _is_one(problems: list[Problem]) -> bool:
    """Is the same wrong at the same place in all of them?"""
    return len({(problem.error.message, problem.error.span) for problem in problems}) == 1


def _settled(k: Knowledge, guess: Guess, traces: Sequence[Trace], problems: list[Problem]) -> dict[StateForm, None]:
    """The form that a supposition leads to, if any. A wrong one can fail in any way, also in the user's code."""
    turns: list[Guess] = []
    try:
        form = _settle(k, guess, traces, turns)
        return {} if form is None else {_least(k, form, traces): None}
    except ModelError as error:
        problem = error
    except Exception as error:  # whatever the model raises where the guess is wrong: it is one guess less
        said, remedy = said_of(error)
        message = f"model '{k.name}' raised {type(error).__name__}: {said}.{remedy}"
        problem = ModelError(message, span_of_error(error) or k.definition)
    finally:
        k.guess = None
    if guess.form != "named" or turns[-1].types:  # else no state was read by name, so that they have none
        problems.append(Problem(problem, turns[-1], len(turns)))
    return {}


def _only(k: Knowledge, forms: list[StateForm]) -> StateForm:
    if len(forms) == 1:
        return forms[0]
    shapes = " or ".join(form.text() for form in forms[:3])
    raise ModelError(
        f"the states of model '{k.name}' could be {shapes}: every kind of node calls the model, and nothing fixes the "
        "shapes. Give nodes without children a branch of their own: if node.is_leaf: return cortex.zeros(...).",
        k.definition,
    )


def _settle(k: Knowledge, guess: Guess, traces: Sequence[Trace], turns: list[Guess]) -> StateForm | None:
    """The form that a supposition leads to, or None where another number of states is one to try anyway.

    `turns` gets the suppositions on the way.
    """
    for _ in range(ROUNDS):
        k.guess = guess
        turns.append(guess)
        forms = _forms(traces)
        other = [form for form in forms if form.form != guess.form]
        if other:
            raise _differs(k, _text(other[0].form, other[0].names), _text(guess.form, guess.types))
        if guess.form == "tuple" and any(len(form.names) != guess.count for form in forms):
            return None
        results = [dict(zip(form.names, form.types, strict=True)) for form in forms]
        for types in results:
            missing = [name for name in guess.types if name not in types]
            if missing:
                names = ", ".join(f"'{name}'" for name in types)
                raise ModelError(f"the model has no state '{missing[0]}'; its states are {names}.", k.definition)
        changed = [types for types in results if any(types[name] != kind for name, kind in guess.types.items())]
        if not changed:
            return forms[0]
        guess = Guess(guess.form, guess.shape, guess.count, changed[0])
    raise _differs(k, forms[results.index(changed[0])].text(), turns[-1].text())


def _differs(k: Knowledge, returned: str, used: str) -> ModelError:
    told = f"model '{k.name}' returns {returned}, but its calls are used as {used}."
    return ModelError(f"{told} A call gives what the model returns.", k.definition)


def _text(form: Form, names: Iterable[str]) -> str:
    """As `StateForm.text`, without shapes."""
    named = f"state({', '.join(f'{name}=...' for name in names)})"
    return {"bare": "one tensor", "tuple": "a tuple of tensors", "named": named}[form]


def _least(k: Knowledge, form: StateForm, traces: Sequence[Trace]) -> StateForm:
    """`form` with scalars for the states that can be scalars beside others that cannot.

    A reduction over no children is the number 0, so that `size=1 + cortex.sum(f(k).size for k in node.children)` is a
    number at the leaves, and so at all nodes, though a vector of any size would fit. Where all states could be scalars,
    none of them says what it is meant to be.
    """
    least = form
    for name, kind in zip(form.names, form.types, strict=True):
        types = dict(zip(least.names, least.types, strict=True)) | {name: TensorType((), kind.dtype)}
        smaller = StateForm(form.form, form.names, tuple(types.values()))
        k.guess = Guess(form.form, (), len(form.names), types)
        if smaller != least and _is_result(smaller, traces):
            least = smaller
    return least if any(t.shape for t in least.types) else form


def _is_result(supposed: StateForm, traces: Sequence[Trace]) -> bool:
    """Whether all kinds return what is supposed. One that needs an example might be the one that does not."""
    for trace in traces:
        try:
            if trace() != supposed:
                return False
        except Impossible:
            pass
        except (Exception, NeedsExample):  # as in _settled
            return False
    return True


def _forms(traces: Sequence[Trace]) -> list[StateForm]:
    """What the kinds return under the present supposition; those that only a real node can tell of are left out."""
    forms: list[StateForm] = []
    last: Signal | None = None
    for trace in traces:
        try:
            forms.append(trace())
        except (Impossible, NeedsExample) as signal:
            last = signal
    if not forms and last is not None:
        raise last
    return forms


def _shapes(k: Knowledge) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    """Vectors and square matrices of the sizes in weights, closed-over arrays and fields; the most frequent first."""
    known = [k.weights.shape(name) for name in k.weights.names] + [t.shape for t in k.fields.values()]
    known += [array.shape for array in k.model.closed_over()]
    sizes = [n for n, _ in Counter(n for shape in known for n in shape).most_common()]
    return [(n,) for n in sizes], [(n, n) for n in sizes if (n, n) in known]


def _mixed(shapes: list[tuple[int, ...]], names: tuple[str, ...]) -> list[Guess]:
    """States of different shapes, those of few axes first; fewer states where there would be too many cases."""
    found: list[Guess] = []
    for form, count in FORMS[3:] if len(names) < 2 else (("named", len(names)),):
        own = names if form == "named" else tuple(map(str, range(count)))
        if len(shapes) ** len(own) <= MAX_MIXED:
            for chosen in product(shapes, repeat=len(own)):
                types = dict(zip(own, map(TensorType, chosen), strict=True))
                found.append(Guess(form, (), count, types))
    return sorted(found, key=_rank)


def _rank(guess: Guess) -> int:
    return sum(len(t.shape) for t in guess.types.values())
