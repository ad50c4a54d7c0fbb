"""Ways from an object to what the user's code reaches from it: `node.left.word`, `node.children[0]`, `node.leaves()`.

Only recursive calls make relations of a model. Whatever else the code reads, however far away, is an attribute of the
node itself that has such a way for a meaning.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, assert_never

from cortex.errors import StructureError
from cortex.frontend.computed import Computed, Constant, evaluate, shown
from cortex.frontend.computed import identifier as identifier_of
from cortex.frontend.facts import ORDER, Answer, comparable, plain
from cortex.frontend.spans import fail
from cortex.frontend.torch.categories import category, class_name, floats, form, identity, keys, pattern


@dataclass(frozen=True)
class Attr:
    """`x.name`."""

    name: str


@dataclass(frozen=True)
class At:
    """`x[key]`."""

    key: int | str


@dataclass(frozen=True)
class Given:
    """A number or a text that a call is given, whatever x is: the first of some steps."""

    name: str


@dataclass(frozen=True)
class Sliced:
    """`x[start:stop:step]`."""

    start: int | None
    stop: int | None
    step: int | None

    @property
    def slice(self) -> slice:
        """As Python has it."""
        return slice(self.start, self.stop, self.step)


@dataclass(frozen=True)
class Sorted:
    """`sorted(x, key=...)`: the steps of `keys` lead from an item to its key, or to the parts of a tuple of them."""

    keys: tuple[Steps, ...]
    is_tuple: bool
    reverse: bool

    def of(self, x: Any) -> list[Any]:
        """The items in order; where they have none, an error that is not taken for steps that lead nowhere."""
        try:
            return sorted(x, key=self._key, reverse=self.reverse)
        except NOWHERE as error:
            said = ", ".join(text(steps, "item") for steps in self.keys)
            raise StructureError(f"a list of nodes cannot be sorted by {said}: {error}") from error

    def _key(self, item: Any) -> Any:
        found = tuple(follow(item, steps) for steps in self.keys)
        return found if self.is_tuple else found[0]


@dataclass(frozen=True)
class Question:
    """What control flow asks about an item of a list: about the object that the steps lead to from it."""

    steps: Steps
    asks: Literal["none", "value", "length", "equals", "lt", "le", "gt", "ge"]
    value: Any = None

    def answer(self, item: Any) -> Answer:
        """The answer for an item, as a fact holds it."""
        try:
            found = follow(item, self.steps)
        except NOWHERE:
            found = None
        match self.asks:
            case "none":
                return found is None
            case "length":
                return 0 if found is None else len(found)
            case "value":
                return plain(found, text(self.steps, ""), item)
            case "equals":
                return bool(comparable(found, text(self.steps, ""), item) == self.value)
            case order:
                return bool(ORDER[order](comparable(found, text(self.steps, ""), item), self.value))


@dataclass(frozen=True)
class Kept:
    """The items of x about which the questions have one of these combinations of answers; or none, if `is_rest`."""

    questions: tuple[Question, ...]
    families: tuple[tuple[Answer, ...], ...]
    is_rest: bool = False

    def of(self, x: Any) -> list[Any]:
        """The items, in order; an error about one of them is not taken for steps that lead nowhere."""
        try:
            wanted = set(map(exact, self.families))
            return [item for item in x if (exact(self.answers(item)) in wanted) != self.is_rest]
        except NOWHERE as error:
            raise StructureError(f"items of a list cannot be told apart: {error}") from error

    def answers(self, item: Any) -> tuple[Answer, ...]:
        """What is true of an item."""
        return tuple(question.answer(item) for question in self.questions)


def exact(answers: tuple[Answer, ...]) -> tuple[Any, ...]:
    """Equal for answers that are the same to all code: 1 is not True."""
    return tuple((type(answer), answer) for answer in answers)


@dataclass(frozen=True)
class Called:
    """`x(*args)`."""

    args: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Of:
    """A function of x that has a name: `len(x)`, `type(x)`."""

    name: Literal["type", "bool", "len", "list", "keys", "identity", "items", "category", "floats", "form"]


@dataclass(frozen=True)
class Contains:
    """`key in x`."""

    key: Any


@dataclass(frozen=True)
class Has:
    """Whether x has an attribute."""

    name: str


@dataclass(frozen=True)
class Meant:
    """What the user says that an attribute of x is; those of one name are the same."""

    name: str
    function: Callable[[Any], Any] = field(compare=False, repr=False)


@dataclass(frozen=True)
class LookedUp:
    """`table[x]`, or `default` where there is no such key and a default is given; tables of one name are the same.

    The table is the user's own dictionary: what is put into it later is found. A class of dictionaries may have its own
    way to look up; what is meant here is what it holds.
    """

    name: str
    default: int | float | None = None
    table: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)

    def of(self, x: Any) -> Any:
        """What the table says of `x`."""
        found = dict.get(self.table, x, self.default)
        if found is None:
            raise KeyError(x)
        return found


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "type": class_name,
    "bool": bool,
    "len": len,
    "list": list,
    "keys": keys,
    "identity": identity,
    "items": pattern,
    "category": category,
    "floats": floats,
    "form": form,
}

CLASS = Of("type")
TRUTH = Of("bool")
LENGTH = Of("len")
ITEMS = Of("list")
KEYS = Of("keys")
IDENTITY = Of("identity")
PATTERN = Of("items")
CATEGORY = Of("category")
FLOATS = Of("floats")
FORM = Of("form")

Step: TypeAlias = (
    Attr | At | Given | Sliced | Sorted | Kept | Called | Of | Contains | Has | Meant | LookedUp | Computed
)
Steps: TypeAlias = tuple[Step, ...]

NOTHING: Mapping[str, Any] = MappingProxyType({})
NOWHERE = (AttributeError, IndexError, KeyError, TypeError)
"""What following steps raises where they lead nowhere."""


def follow(x: Any, steps: Steps, given: Mapping[str, Any] = NOTHING) -> Any:
    """What the steps lead to from `x`, which a call is made on that is `given` numbers."""
    for step in steps:
        match step:
            case Given(name):
                x = given[name]
            case Attr(name):
                x = getattr(x, name)
            case At(key):
                x = x[key]
            case Sliced():
                x = x[step.slice]
            case Sorted() | Kept():
                x = step.of(x)
            case Called(args):
                x = x(*args)
            case Of(name):
                x = FUNCTIONS[name](x)
            case Contains(key):
                x = key in x
            case Has(name):
                x = hasattr(x, name)
            case Meant(_, function):
                x = function(x)
            case LookedUp():
                x = step.of(x)
            case Computed():
                x = _evaluate(step, x, given)
            case _:
                assert_never(step)
    return x


def _evaluate(computed: Computed, x: Any, given: Mapping[str, Any]) -> Any:
    return evaluate(computed, lambda steps: follow(x, steps, given))


def replaced(steps: Steps, change: Callable[[Steps], Steps]) -> Steps:
    """Steps with other ones in place of those that begin at the object: `change` of them, and of operands."""
    steps = tuple(_with_ways(step, change) for step in steps)
    first = steps[0] if steps else None
    if not isinstance(first, Computed):
        return change(steps)
    operands = tuple(x if isinstance(x, Constant) else replaced(x, change) for x in first.operands)
    return (replace(first, operands=operands), *steps[1:])


def _with_ways(step: Step, change: Callable[[Steps], Steps]) -> Step:
    """The step, where ways from items of a list are changed too."""
    match step:
        case Sorted(keys):
            return replace(step, keys=tuple(replaced(key, change) for key in keys))
        case Kept(questions):
            asked = tuple(replace(question, steps=replaced(question.steps, change)) for question in questions)
            return replace(step, questions=asked)
        case _:
            return step


def first_attributes(ways: Iterable[Steps]) -> set[str]:
    """The attributes of the object itself that steps, and operands of what they compute, begin with."""
    found: set[str] = set()

    def note(steps: Steps) -> Steps:
        if steps and isinstance(steps[0], Attr):
            found.add(steps[0].name)
        return steps

    for steps in ways:
        replaced(steps, note)
    return found


def text(steps: Steps, start: str = "node") -> str:
    """As the user would write it."""
    told = start
    for step in steps:
        match step:
            case Attr(name):
                told += f".{name}"
            case At(key):
                told += f"[{key!r}]"
            case Given(name):
                told = name
            case Sliced(first, last, stride):
                told += f"[{':'.join('' if n is None else str(n) for n in (first, last, stride))}]"
            case Sorted(ways, _, is_reversed):
                by = ", ".join(text(way, "") for way in ways)
                told = f"sorted({told}, key={by}{', reverse' if is_reversed else ''})"
            case Kept(questions, families, is_rest):
                asked = ", ".join(_asked(question) for question in questions)
                told = f"{'rest' if is_rest else 'kept'}({told}, {asked}: {' or '.join(map(_answered, families))})"
            case Called(args):
                told += f"({', '.join(map(repr, args))})"
            case Of(name) | Meant(name):
                told = f"{name}({told})"
            case Contains(key):
                told = f"{key!r} in({told})"
            case Has(name):
                told = f"has_{name}({told})"
            case LookedUp(name, None):
                told = f"{name}[{told}]"
            case LookedUp(name, default):
                told = f"{name}.get({told}, {default!r})"
            case Computed(fn, operands):
                told = shown(fn, [repr(x.value) if isinstance(x, Constant) else text(x, told) for x in operands])
            case _:
                assert_never(step)
    return told


def _asked(question: Question) -> str:
    told = text(question.steps, "")
    return f"{told} {question.asks}" if question.value is None else f"{told} {question.asks} {question.value!r}"


def _answered(answers: tuple[Answer, ...]) -> str:
    return ", ".join(map(str, answers))


def identifier(steps: Steps) -> str:
    """A name for it in the model: the attribute's own where it is one, else `left_word`, `children_0`, `leaves`."""
    is_computed = any(isinstance(step, Computed) for step in steps)
    return f"computed_{identifier_of(text(steps, ''))}" if is_computed else _identifier(text(steps, "")) or "self"


def _identifier(told: str) -> str:
    return re.sub(r"\W+", "_", told).strip("_")


@dataclass(frozen=True)
class Way:
    """A function of an object that follows steps; where it is `careful`, with None where they lead nowhere.

    The linearizer follows them itself, without calling this (native/steps.hpp).
    """

    steps: Steps
    careful: bool = False
    of_calls: bool = False
    """Is the object a call? Steps begin at the node that it is made on."""

    def __call__(self, x: Any) -> Any:
        """What the steps lead to."""
        try:
            return follow(x.node, self.steps, x.numbers) if self.of_calls else follow(x, self.steps)
        except NOWHERE:
            if self.careful:
                return None
            raise


def presence(steps: Steps) -> Steps:
    """Whether there is such an attribute at all."""
    *before, last = steps
    assert isinstance(last, Attr | At)
    return (*before, Has(last.name) if isinstance(last, Attr) else Contains(last.key))


MOST_DEEP = 100
"""Operators of Python one on the result of the other, in a number that is computed from fields."""


def refuse_deep(ways: Iterable[Steps]) -> None:
    """Refuse a number that many operators compute one after the other, as the sum of a long list does."""
    for way in ways:
        count = 0
        while way and isinstance(way[-1], Computed):
            below = [x for x in way[-1].operands if not isinstance(x, Constant)]
            way, count = max(below, key=_is_computed, default=()), count + 1
        if count > MOST_DEEP:
            raise fail(
                f"a number is computed from fields by more than {MOST_DEEP} operators, one on the result of the other. "
                "Compute it when the structure is made, or make a tensor or an array of the list and take its sum."
            )


def _is_computed(way: Steps) -> bool:
    return bool(way) and isinstance(way[-1], Computed)
