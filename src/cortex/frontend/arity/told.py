"""Comparisons of a number of children: questions about the node, which a kind of any arity may ask.

    if len(node.children) % 3 == 0: ...       two kinds, each for any number of children for which the answer is so
    if len(node.children) > 40: ...           so are these

`Count` is the number as the user's code gets it. It knows from which list it is, and what has been computed from it. A
comparison of what an operator of `PERIODIC` gave, or with a number that is the same for every node, is computed by the
linearizer for each node (see `computed`), and is told the trace as a fact; every other use is one of the number itself,
which the trace is for. So is a comparison with a very small number, which few nodes can answer with yes or no.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from cortex.frontend.builder import builder
from cortex.frontend.computed import constant
from cortex.frontend.knowledge import Knowledge
from cortex.frontend.spans import user_frame
from cortex.frontend.written import has_fixed_operand
from cortex.ra.ir import Fact, Test, Value

PERIODIC = {
    "mod": operator.mod, "floordiv": operator.floordiv, "and": operator.and_, "or": operator.or_, "xor": operator.xor,
    "rshift": operator.rshift, "lshift": operator.lshift,
}  # fmt: skip
OTHERS = {"add": operator.add, "sub": operator.sub, "mul": operator.mul}
SMALL, LARGE = 2, 250
"""Comparisons with numbers between these are told: one of the answers may need many children to be seen."""
COMPARISONS = {name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")}


class Writer(Protocol):
    """How a front end writes what is computed from a length."""

    def computed(self, fn: str, operands: tuple[Any, ...]) -> Any:
        """The operand that is `fn` of others."""

    def name(self, operand: Any) -> str:
        """The attribute of the node that holds it."""

    def field(self, operand: Any) -> Any:
        """The field that holds it."""

    def number(self, operand: Any) -> Any:
        """The field as a number."""


@dataclass(frozen=True)
class Told:
    """A question whose answer is known for every number of children in a list."""

    list: str
    answer: Callable[[int], bool]


class Count(int):
    """A number of children, or what code has computed from it."""

    list: str
    writer: Writer
    operand: Any
    function: Callable[[int], int]
    is_periodic: bool

    @classmethod
    def of(cls, number: int, list: str, writer: Writer, operand: Any) -> Count:
        """The number of children in a list of the node, which `operand` leads to."""
        return cls._made(number, list, writer, operand, lambda n: n, False)

    @classmethod
    def _made(
        cls,
        number: int,
        list: str,
        writer: Writer,
        operand: Any,
        function: Callable[[int], int],
        is_periodic: bool,
    ) -> Count:
        made = cls(number)
        made.list, made.writer, made.operand = list, writer, operand
        made.function, made.is_periodic = function, is_periodic
        return made

    def as_field(self) -> Any:
        """The field that holds it."""
        return self.writer.field(self.operand)

    def as_number(self) -> Any:
        """The same, as a number."""
        return self.writer.number(self.operand)

    def _apply(self, fn: str, of: Callable[[int, int], int], other: Any) -> Any:
        if not isinstance(other, int) or isinstance(other, bool):
            return NotImplemented
        result, found = of(int(self), int(other)), self._other(other)
        if found is None:
            return result
        operand, theirs = found
        is_periodic = self.is_periodic or fn in PERIODIC or (isinstance(other, Count) and other.is_periodic)
        if is_periodic:
            _note_line()
        own = self.function
        made = self.writer.computed(fn, (self.operand, operand))
        return self._made(result, self.list, self.writer, made, lambda n: of(own(n), theirs(n)), is_periodic)

    def _other(self, other: int) -> tuple[Any, Callable[[int], int]] | None:
        """The other operand as the writer takes it, and as a function of the number; None where there is none."""
        if isinstance(other, Count):
            return (other.operand, other.function) if other.list == self.list else None
        known = constant(int(other)) if type(other) is int else None
        return None if known is None else (known, lambda n: other)

    def _compare(self, fn: str, other: Any) -> Any:
        result = getattr(int, f"__{fn}__")(self, other)
        is_told = self.is_periodic or (isinstance(other, Count) and other.is_periodic) or _is_limit(other)
        if result is NotImplemented or not is_told or not isinstance(other, int):
            return result
        found = self._other(other)
        if found is None:
            return result
        operand, theirs = found
        own, compare = self.function, COMPARISONS[fn]
        k, facts = builder().knowledge, builder().facts
        test = Value(self.writer.name(self.writer.computed(fn, (self.operand, operand))))
        k.told[test] = Told(self.list, lambda n: compare(own(n), theirs(n)))
        k.tags.setdefault(test.name)
        facts.known.setdefault(test, result)
        return result

    def __bool__(self) -> bool:
        return bool(self._compare("ne", 0))

    def __hash__(self) -> int:
        return int.__hash__(self)

    def bit_length(self) -> Any:
        """As Python's, of a number that is told."""
        _note_line()
        own, made = self.function, self.writer.computed("bit_length", (self.operand,))
        return self._made(int.bit_length(self), self.list, self.writer, made, lambda n: own(n).bit_length(), True)

    def __pow__(self, other: Any, modulus: Any = None) -> Any:
        result, power = int.__pow__(self, int(other), modulus) if isinstance(other, int) else NotImplemented, None
        if modulus is None and type(other) in (int, float):
            result, power = int(self) ** other, constant(other)
        if power is None:
            return result
        _note_line()
        own, made = self.function, self.writer.computed("pow", (self.operand, power))
        if type(result) is not int:
            return self.writer.number(made)
        return self._made(result, self.list, self.writer, made, lambda n: own(n) ** other, True)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other


def _is_limit(other: Any) -> bool:
    """Is it a number that is the same for every node?"""
    if type(other) is not int or not SMALL < other <= LARGE:
        return False
    frame = user_frame()
    return frame is not None and has_fixed_operand(frame)


def _note_line() -> None:
    """What the running line computes from a number of children is told."""
    frame = user_frame()
    if frame is not None:
        builder().knowledge.model.told_at.add((frame.f_code.co_filename, frame.f_lineno))


def _operator(fn: str, of: Callable[[int, int], int]) -> Callable[[Count, Any], Any]:
    return lambda self, other: self._apply(fn, of, other)


def _comparison(fn: str) -> Callable[[Count, Any], Any]:
    return lambda self, other: self._compare(fn, other)


for _name, _of in (PERIODIC | OTHERS).items():
    setattr(Count, f"__{_name}__", _operator(_name, _of))
for _name in COMPARISONS:
    setattr(Count, f"__{_name}__", _comparison(_name))


def is_told(k: Knowledge, guard: tuple[Fact, ...]) -> bool:
    """Does a guard have questions whose answers follow from numbers of children?"""
    return any(fact.test in k.told for fact in guard)


def answers_alike(k: Knowledge, guard: tuple[Fact, ...], lengths: Mapping[str, int]) -> bool:
    """Do such questions of a guard have the same answers for these numbers of children?"""
    known = {**{k.same_length[name]: n for name, n in lengths.items() if name in k.same_length}, **lengths}
    return all(
        fact.test not in k.told
        or (n := known.get(k.told[fact.test].list)) is None
        or k.told[fact.test].answer(n) == fact.answer
        for fact in guard
    )


def told_at(k: Knowledge, list: str, n: int) -> tuple[tuple[Test, bool], ...]:
    """All such questions about a list, and their answers for a number."""
    names = {list, k.same_length.get(list)}
    return tuple((test, told.answer(n)) for test, told in k.told.items() if told.list in names)
