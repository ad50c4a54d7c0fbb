"""Finding the states of a model in which every kind calls the model, so that no kind can be traced first.

A form and a shape are supposed, the kind is traced with them, and the result has to be what was supposed. Sizes
come from the weights and fields. Exactly one form has to work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cortex.errors import ModelError
from cortex.frontend.knowledge import Knowledge
from cortex.frontend.state_form import Form, Guess, StateForm

ROUNDS = 4
"""How often the result of a supposition is taken as the next one."""

FORMS: tuple[tuple[Form, int], ...] = (("named", 0), ("bare", 1), ("tuple", 2), ("tuple", 3), ("tuple", 4))


def guess_states(k: Knowledge, trace: Callable[[], StateForm]) -> StateForm:
    """The states of the model, found with `trace`, which traces one kind and returns the form of its result."""
    found: dict[StateForm, None] = {}
    problem: ModelError | None = None
    for guess in _guesses(k):
        try:
            form = _settle(k, guess, trace)
        except ModelError as error:
            problem = error if _is_better(error, problem) else problem
        except Exception:
            continue
        else:
            if form is not None:
                found.setdefault(form)
        finally:
            k.guess = None
    if len(found) == 1:
        return next(iter(found))
    if found:
        shapes = " or ".join(form.text() for form in list(found)[:3])
        raise ModelError(
            f"the states of model '{k.name}' could be {shapes}: every kind of node calls the model, and nothing fixes "
            "the shapes. Give nodes without children a branch of their own: if node.is_leaf: return cortex.zeros(...)."
        )
    if problem is not None:
        raise problem
    raise ModelError(
        f"the states of model '{k.name}' cannot be found: every kind of node calls the model. Give nodes without "
        "children a branch of their own: if node.is_leaf: return ..."
    )


def _settle(k: Knowledge, guess: Guess, trace: Callable[[], StateForm]) -> StateForm | None:
    """The form that a supposition leads to, or None where it never becomes its own result."""
    for _ in range(ROUNDS):
        k.guess = guess
        form = trace()
        if form.form != guess.form or (form.form == "tuple" and len(form.names) != guess.count):
            return None
        types = dict(zip(form.names, form.types, strict=True))
        if all(types.get(name) == kind for name, kind in guess.types.items()):
            return form
        if not guess.types.keys() <= types.keys():
            return None
        guess = Guess(guess.form, guess.shape, guess.count, types)
    return None


def _guesses(k: Knowledge) -> Iterator[Guess]:
    shapes = [k.weights.shape(name) for name in k.weights.names] + [t.shape for t in k.fields.values()]
    sizes = dict.fromkeys(n for shape in shapes for n in shape)
    square = [(n, n) for n in sizes if (n, n) in shapes]
    for form, count in FORMS:
        for shape in (*((n,) for n in sizes), *square, ()):
            yield Guess(form, shape, count)


def _is_better(new: ModelError, old: ModelError | None) -> bool:
    """Prefer the problem found farthest down in the model: the other suppositions failed earlier."""
    if old is None or old.span is None:
        return True
    return new.span is not None and new.span.line > old.span.line
