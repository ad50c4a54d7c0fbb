"""The numbers that a model's code knows: from these alone can it tell one large number of children from another.

    if len(node.children) > 5000: ...            5000 is mentioned
    for child in node.children[: self.most]: ...   so is what self.most holds
    if len(node.children) % 100 == 0: ...        there is no number from which on all are alike

Each number of children up to `EXACT` is traced by itself, whatever the code says. Larger ones would take long, so they
are traced where a mentioned number has just been passed, and are taken to be alike from there to the next.

Numbers are read from constants of the code and of its source, and operators from its source. Code without source is
taken to tell all numbers apart.
"""

from __future__ import annotations

import ast
import math
import os
import re
import sys
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from cortex.frontend.node_identity import is_bound
from cortex.frontend.spans import is_library, span_of, span_of_function
from cortex.frontend.written import codes, with_inner, written
from cortex.ir.source import Span

EXACT = 512
"""Tracing takes up to two milliseconds for each child, so that checking so many takes about a second."""
NEAR = 8
"""Numbers of children that are at most so much larger than a mentioned number are traced themselves."""
LARGEST = 1 << 15
"""No node is traced with more children."""
MANY = 16
"""Where more children are taken one by one, parts of them are taken for lists by themselves, if the code has some."""
LARGEST_OWN = 256
"""No kind of its own is compiled for more: that takes a time that grows with the square of the number."""

COUNTS = frozenset(
    ("len", "enumerate", "range", "size", "shape", "numel", "count", "index", "islice", "__len__", "Counter")
)
"""Names by which code comes to know how many there are."""
MASKS = (ast.BitAnd, ast.BitOr, ast.BitXor)
PERIODIC = (ast.Mod, ast.FloorDiv, ast.RShift, ast.LShift, *MASKS)
PERIODIC_NAMES = ("divmod", "bin", "hex", "oct", "bit_length", "bit_count", "gcd", "isqrt", "str", "repr", "format")
"""Operators and functions of whole numbers that are not the same from some number on."""

LARGE = 64
"""Collections with more items are data, such as a vocabulary, and are not looked into."""
MOST_OBJECTS = 20_000
OF_CLASSES = ("__module__", "__qualname__", "__doc__", "__firstlineno__")
SMALL = 16
"""Of numbers up to this, multiples come soon enough."""
UNLISTED = range(256 if sys.version_info >= (3, 14) else 0)
"""Numbers that this version of Python does not list among the constants of code."""
INSTALLED = tuple(f"{os.sep}{folder}{os.sep}" for folder in ("site-packages", "dist-packages"))


@dataclass(frozen=True)
class Mentions:
    """Numbers above `EXACT`, in order, and the first use of an operator that tells all numbers apart."""

    numbers: tuple[int, ...] = ()
    periodic: Span | None = None
    divides: bool = False
    """Is that a remainder or the like in the source, rather than an operator that masks of tensors have too?"""

    @property
    def most(self) -> int:
        """From here on, all numbers of children are alike, or there are none."""
        return LARGEST + 1 if self.periodic else max((EXACT, *(n + NEAR for n in self.numbers)))

    def alike(self, count: int) -> int:
        """The number of children to trace for, instead of for `count`."""
        if count <= EXACT or self.periodic or any(n <= count < n + NEAR for n in self.numbers):
            return count
        return max((EXACT, *(n + NEAR for n in self.numbers if n + NEAR <= count)))


def mentions(
    found: Collection[CodeType],
    spaces: Iterable[Mapping[str, Any]],
    others: Iterable[Any] = (),
    told_at: Container[tuple[str, int]] = (),
) -> Mentions:
    """What is mentioned in code, in what it reads by name from `spaces`, and in `others`.

    Operators in the lines `told_at` tell no numbers apart that questions about the node do not (see `told`).
    """
    names = {name for code in found for name in (*code.co_names, *code.co_freevars)}
    held = (space[name] for space in spaces for name in names & space.keys())
    constants = (value for code in found for value in constants_of(code) if not isinstance(value, str))
    numbers = _numbers([*constants, *held, *others], _items)
    counts = not COUNTS.isdisjoint(names) or any(map(_counts_itself, found))
    uses = ((x, span) for code in found for x, span in _periodic(code) if (code.co_filename, span.line) not in told_at)
    operator, periodic = next(uses, (None, None)) if counts else (None, None)
    divides = periodic is not None and not isinstance(operator, (*MASKS, ast.FormattedValue, ast.Module))
    return Mentions(tuple(sorted(n for n in numbers if n > EXACT - NEAR)), periodic, divides)


def numbers_in(roots: Iterable[Any]) -> set[int]:
    """The numbers in these functions and objects, and in what they hold and refer to."""
    return _numbers(roots, _held)


def near(numbers: set[int], lo: int, hi: int) -> list[int]:
    """The numbers from `lo` to `hi` that code with these might tell from others.

    They are the numbers themselves and those next to them, their halves, and the multiples of large ones.
    """
    close = {y for x in numbers for y in range(x - 2, x + 3)} | {x // 2 for x in numbers}
    multiples = {y for x in numbers for y in (range(x, hi + 1, x) if x > SMALL else (2 * x,))}
    return sorted(y for y in close | multiples if lo <= y <= hi)


@lru_cache(maxsize=1024)
def constants_of(code: CodeType) -> tuple[Any, ...]:
    """The constants of code, as computed ahead and as written; without source also those that might be among them."""
    outer = written(code)
    if outer is None:
        return (*code.co_consts, *UNLISTED)
    return (*code.co_consts, *(x.value for x in with_inner(outer) if isinstance(x, ast.Constant)))


def _numbers(roots: Iterable[Any], held: Callable[[Any], Iterable[Any]]) -> set[int]:
    """The numbers that values are, and those in what is `held` by them, and so on."""
    found: set[int] = set()
    seen: set[int] = set()
    stack = list(roots)
    while stack and len(seen) < MOST_OBJECTS:
        x = stack.pop()
        if isinstance(x, int) and not isinstance(x, bool):
            found.add(abs(int(x)))
        elif isinstance(x, float):
            found |= {math.floor(abs(x)), math.ceil(abs(x))} if abs(x) < 1 << 30 else set()
        elif id(x) not in seen:
            seen.add(id(x))
            stack += held(x)
    return found


def _items(x: Any) -> Iterator[Any]:
    """The length and the items of a collection, and the sizes of an array."""
    if isinstance(x, list | tuple | set | frozenset | dict):
        yield len(x)
        if len(x) <= LARGE:
            yield from list(x)
            yield from list(x.values()) if isinstance(x, dict) else ()
    elif isinstance(shape := getattr(x, "shape", None), tuple):
        yield from (n for n in shape if isinstance(n, int))


def _held(x: Any) -> Iterator[Any]:
    """What a function, an object or a collection refers to."""
    if type(x).__module__.partition(".")[0] == "cortex":  # a compiled model that a global name holds
        return
    if isinstance(x, str):
        yield from (int(digits) for digits in re.findall(r"\d{1,9}", x[:200]))
    elif isinstance(x, FunctionType):
        if _is_installed(x.__code__.co_filename):
            return
        yield from (x.__code__, x.__defaults__, x.__kwdefaults__)
        yield from (cell.cell_contents for cell in x.__closure__ or () if is_bound(cell))
        for code in codes(x.__code__):
            for name in code.co_names:
                value = x.__globals__.get(name)
                yield value
                if isinstance(value, ModuleType) and not _is_installed(getattr(value, "__file__", None)):
                    yield from (vars(value)[n] for n in code.co_names if n in vars(value))
    elif isinstance(x, CodeType):
        yield from (*constants_of(x), *x.co_names)
    elif isinstance(x, MethodType):
        yield from (x.__func__, x.__self__)
    elif isinstance(x, list | tuple | set | frozenset | dict):
        yield from _items(x)
    elif type(x).__module__.split(".")[0] in ("torch", "numpy") and isinstance(getattr(x, "shape", None), tuple):
        yield from _items(x)
        if "float" not in str(x.dtype) and 0 < math.prod(map(int, x.shape)) <= LARGE:
            yield from x.reshape(-1).tolist()
    elif isinstance(x, type):
        if _is_users(x):
            yield from (value for name, value in vars(x).items() if name not in OF_CLASSES)
    elif not isinstance(x, ModuleType) and hasattr(x, "__dict__"):
        yield type(x)
        yield from list(vars(x).values())
    elif hasattr(x, "__func__") or hasattr(x, "fget"):
        yield getattr(x, "__func__", None) or getattr(x, "fget", None)


def _is_users(cls: type) -> bool:
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    return cls.__module__ != "builtins" and not _is_installed(file)


def _is_installed(file: str | None) -> bool:
    """Is this file no code of the user's?"""
    return is_library(file or "") or any(part in (file or "") for part in INSTALLED)


@lru_cache(maxsize=1024)
def _counts_itself(code: CodeType) -> bool:
    """Is a whole number added to something, as `i += 1` does?"""
    outer = written(code)
    if outer is None:
        return True
    for x in with_inner(outer):
        match x:
            case ast.BinOp(op=ast.Add(), right=ast.Constant(value=int())):
                return True
            case ast.AugAssign(op=ast.Add(), value=ast.Constant(value=int())):
                return True
    return False


@lru_cache(maxsize=1024)
def _periodic(code: CodeType) -> tuple[tuple[ast.AST, Span], ...]:
    """The operators and functions of `PERIODIC` that code uses; without source, it is taken to begin with one."""
    outer = written(code)
    if outer is None:
        return ((ast.Module(body=[], type_ignores=[]), span_of_function(code)),)
    found: list[tuple[ast.AST, Span]] = []
    for x in sorted(with_inner(outer), key=_end):
        use, is_used = x, isinstance(x, ast.FormattedValue)
        match x:
            case ast.BinOp(left=ast.Constant(), right=ast.Constant()):
                continue
            case ast.BinOp(left=left, op=op) | ast.AugAssign(target=left, op=op):
                use, is_used = op, isinstance(op, PERIODIC) and not _is_of_size(left, code)
            case ast.Name(id=name) | ast.Attribute(attr=name):
                is_used = name in PERIODIC_NAMES and name not in code.co_varnames
        if is_used:
            found.append((use, span_of(code, x)))
    return tuple(found)


def _end(x: ast.AST) -> tuple[int, int]:
    """Where syntax ends: operands before operators."""
    return getattr(x, "end_lineno", 0), getattr(x, "end_col_offset", 0)


def _is_of_size(x: ast.expr, code: CodeType) -> bool:
    """Is it a size that is not the number of rows, `x.size(1) // 3`, or an attribute of the module?"""
    match x:
        case ast.Call(func=ast.Attribute(attr="size"), args=[axis]):
            return _is_no_row(axis)
        case ast.Subscript(value=ast.Attribute(attr="shape"), slice=axis):
            return _is_no_row(axis)
        case ast.Attribute(value=ast.Name(id="self")):
            return code.co_varnames[:1] == ("self",)
    return False


def _is_no_row(axis: ast.expr) -> bool:
    """Is it a constant axis other than the first?"""
    match axis:
        case ast.Constant(value=int(n)) | ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(n))):
            return n != 0
    return False
