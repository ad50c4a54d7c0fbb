"""The decision tree that finds the kind of a node, as a table of tests in C; see cortex_description.h."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil, floor, inf, nextafter
from typing import Any

from cortex.frontend.facts import ORDER
from cortex.package.columns import Column
from cortex.package.literals import array, path_text
from cortex.ra.ir import Order, answer_key

UNKNOWN = -1


class Decisions:
    """The tests of a decision tree, as `runtime/linearize.py` makes it, in C; `tree` is the branch to begin with."""

    def __init__(self, tree: Any, slots: list[str], lists: list[str], columns: tuple[Column, ...]) -> None:
        self._slots, self._lists, self._columns = slots, lists, columns
        self.tests: list[str] = []
        self.tree = self._branch(tree)

    def _branch(self, tree: Any) -> int:
        if tree is None:
            return UNKNOWN
        if tree[0] == "kind":
            return -2 - int(tree[1])
        _, test, branches = tree
        number = len(self.tests)
        self.tests.append("")
        to = {answer: self._branch(subtree) for answer, subtree in branches.items()}
        self.tests[number] = self._test(test, to)
        return number

    def _test(self, test: tuple[Any, ...], to: Mapping[Any, int]) -> str:
        op, *about, path = test
        yes, no = to.get(True, UNKNOWN), to.get(False, UNKNOWN)
        if op in ("is_leaf", "is_above_leaves"):
            height = 0 if op == "is_leaf" else 1
            return self._text("NODE", 0, path, [_answer(height, yes)], UNKNOWN, no)
        name = about[0]
        if name in self._slots:
            is_none = op == "is_none" or (op == "equals" and about[1] is None)
            none, otherwise = (yes, no) if is_none else (no, no) if op in ("equals", "counts") else (UNKNOWN, UNKNOWN)
            return self._text("SLOT", self._slots.index(name), path, [], none, otherwise)
        if name in self._lists:
            return self._of_list(op, about, path, to)
        number = next(i for i, c in enumerate(self._columns) if c.name == name)
        column = self._columns[number]
        subject = "NUMBERS" if column.is_float else "INTEGERS"
        match op:
            case "counts":
                counted = [] if column.is_float else [_answer(1, yes)]
                subject = subject if column.is_float else "COUNT"
                return self._text(subject, number, path, counted, no, no, self._lists.index(about[1]))
            case "is_none":
                return self._text(subject, number, path, [], yes, no)
            case "has_length":
                return self._text(subject, number, path, [_answer(about[1], yes)], no if about[1] else yes, no)
            case "length":
                found = [_answer(count, branch) for count, branch in to.items()]
                return self._text(subject, number, path, found, to.get(0, UNKNOWN), UNKNOWN)
            case "compares":
                return self._compares(number, about[1], about[2], path, yes, no)
            case "equals":
                found = _answers(column, lambda v: v == about[1], about[1], yes)
                return self._text(subject, number, path, found, yes if about[1] is None else no, no)
            case _:
                known = [(_key(key), branch) for key, branch in to.items()]
                # Where integers cannot be told from booleans, or floats from integers, the column's own type is meant.
                known.sort(key=lambda k: k[0][0] is not (float if column.is_float else int))
                found = []
                for key, branch in known:
                    found += _answers(column, lambda v, k=key: answer_key(v) == k, key[1], branch)  # type: ignore[misc]
                none = next((branch for key, branch in known if key[1] is None), UNKNOWN)
                subject = "SAME_NUMBERS" if column.is_float else subject
                return self._text(subject, number, path, found, none, UNKNOWN)

    def _compares(self, number: int, fn: Order, bound: float, path: Any, yes: int, no: int) -> str:
        is_float = self._columns[number].is_float
        last = _last_double(fn, bound) if is_float else _last_integer(fn, bound)
        if last is None:
            return self._text("NUMBERS" if is_float else "INTEGERS", number, path, [], UNKNOWN, no)
        answers = [f"{{0, {_double(last)}, {yes}}}" if is_float else _answer(int(last), yes)]
        subject = ("LOW" if fn in ("lt", "le") else "HIGH") + ("_NUMBERS" if is_float else "_INTEGERS")
        return self._text(subject, number, path, answers, UNKNOWN, no)

    def _of_list(self, op: str, about: list[Any], path: Any, to: Mapping[Any, int]) -> str:
        """Arrays have a list, empty perhaps, at every node: none is None, and none equals anything."""
        yes, no = to.get(True, UNKNOWN), to.get(False, UNKNOWN)
        number = self._lists.index(about[0])
        match op:
            case "has_length":
                return self._text("LIST", number, path, [_answer(about[1], yes)], UNKNOWN, no)
            case "length":
                return self._text("LIST", number, path, [_answer(n, b) for n, b in to.items()], UNKNOWN, UNKNOWN)
            case "is_none" | "equals" | "counts":
                return self._text("LIST", number, path, [], UNKNOWN, no)
            case _:
                return self._text("LIST", number, path, [], UNKNOWN, UNKNOWN)

    def _text(
        self, subject: str, number: int, path: Any, found: list[str], none: int, otherwise: int, relation: int = 0
    ) -> str:
        answers = array("cortex_answer", found)
        where = path_text(path, self._slots, self._lists)
        return f"{{CORTEX_OF_{subject}, {number}, {relation}, {where}, {len(found)}, {answers}, {none}, {otherwise}}}"


def _answers(column: Column, fits: Callable[[Any], bool], value: Any, branch: int) -> list[str]:
    """The answers of a column that mean `value`: the codes of values that fit, or the number itself."""
    if column.what == "codes":
        return [_answer(code, branch) for code, known in enumerate(column.values) if fits(known)]
    if not isinstance(value, int | float):
        return []
    if column.is_float:
        return [f"{{0, {_double(value)}, {branch}}}"] if value == value else []
    return [_answer(int(value), branch)] if value == value and abs(value) < 2**63 and int(value) == value else []


def _last_double(fn: Order, bound: float) -> float | None:
    """The last double, up or down, that compares so with `bound`; None if none does."""
    toward = -inf if fn in ("lt", "le") else inf
    try:
        last = float(bound)
    except OverflowError:
        last = inf if bound > 0 else -inf
    while not ORDER[fn](last, bound):
        if last == toward:
            return None
        last = nextafter(last, toward)
    return last


def _last_integer(fn: Order, bound: float) -> int | None:
    """The same of integers of 64 bits."""
    least, most, is_low = -(2**63), 2**63 - 1, fn in ("lt", "le")
    if abs(bound) == inf:
        return None if is_low != (bound > 0) else most if is_low else least
    last = {"lt": ceil(bound) - 1, "le": floor(bound), "gt": floor(bound) + 1, "ge": ceil(bound)}[fn]
    if is_low:
        return min(last, most) if last >= least else None
    return max(last, least) if last <= most else None


def _double(value: float) -> str:
    """The double as C writes it, exactly; beyond all of them, infinity."""
    try:
        text = float(value).hex()
    except OverflowError:
        text = "inf" if value > 0 else "-inf"
    return {"inf": "HUGE_VAL", "-inf": "-HUGE_VAL"}.get(text, text)


def _answer(integer: int, branch: int) -> str:
    low = "(-INT64_C(9223372036854775807) - 1)" if integer == -(2**63) else f"INT64_C({integer})"
    return f"{{{low}, 0, {branch}}}"


def _key(answer: Any) -> tuple[Any, ...]:
    """The key of an answer, which the tree has itself where Python would take the answer for another."""
    return answer if isinstance(answer, tuple) else answer_key(answer)
