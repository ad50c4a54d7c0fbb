"""Finding the states of a model in which every kind calls the model, so that no kind can be traced first.

A form and a shape are supposed, the kinds are traced with them, and each result has to be what was supposed. Sizes
come from the weights and fields. Exactly one form has to work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

from cortex.errors import ModelError
from cortex.frontend.knowledge import Knowledge
from cortex.frontend.signals import Impossible, NeedsExample, Signal
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

Problem = tuple[ModelError, str]
"""What went wrong under a supposition, and the supposition."""


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
    """Nothing fits. The problem is told that came last in the model, and what was supposed, if that matters."""
    unknown = f"the states of model '{k.name}' cannot be found: every kind of node calls the model"
    remedy = "Give nodes without children a branch of their own: if node.is_leaf: return ..."
    if not problems:
        return ModelError(f"{unknown}. {remedy}", k.definition)
    last = max(_line(error) for error, _ in problems)
    problems = [(error, supposed) for error, supposed in problems if _line(error) == last]
    error, supposed = problems[0]
    if len(problems) > 1 and len({(error.message, error.span) for error, _ in problems}) == 1:
        return error
    message = f"{unknown}, and no shape fits. {remedy} If a call returned {supposed}: {error.message}"
    return ModelError(message, error.span)


def _line(error: ModelError) -> int:
    return error.span.line if error.span else 0


def _settled(k: Knowledge, guess: Guess, traces: Sequence[Trace], problems: list[Problem]) -> dict[StateForm, None]:
    """The form that a supposition leads to, if any. A wrong one can fail in any way, also in the user's code."""
    try:
        form = _settle(k, guess, traces)
        return {} if form is None else {_least(k, form, traces): None}
    except ModelError as error:
        assert k.guess is not None
        if k.guess.form != "named" or k.guess.types:  # else no state was read by name, so that they have none
            problems.append((error, k.guess.text()))
    except Exception:  # whatever the model raises where the guess is wrong: it is one guess less
        pass
    finally:
        k.guess = None
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


def _settle(k: Knowledge, guess: Guess, traces: Sequence[Trace]) -> StateForm | None:
    """The form that a supposition leads to, or None where it never becomes its own result."""
    for _ in range(ROUNDS):
        k.guess = guess
        forms = _forms(traces)
        if any(f.form != guess.form or (f.form == "tuple" and len(f.names) != guess.count) for f in forms):
            return None
        results = [dict(zip(form.names, form.types, strict=True)) for form in forms]
        if any(not guess.types.keys() <= types.keys() for types in results):
            return None
        changed = [types for types in results if any(types[name] != kind for name, kind in guess.types.items())]
        if not changed:
            return forms[0]
        guess = Guess(guess.form, guess.shape, guess.count, changed[0])
    return None


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
    """Vectors and square matrices of the sizes that occur in weights, closed-over arrays and fields."""
    known = [k.weights.shape(name) for name in k.weights.names] + [t.shape for t in k.fields.values()]
    known += [array.shape for array in k.model.closed_over()]
    sizes = dict.fromkeys(n for shape in known for n in shape)
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
