"""The launches of a request, in order: what a device layer follows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import assert_never

from cortex.codegen.gpu.program import GpuProgram, Host, HostFor, HostIf, Kernel, Launch
from cortex.errors import InternalError
from cortex.ir.scalar import Binary, Expr, Index, Int, Unary, Var


@dataclass(frozen=True)
class Call:
    """One launch: the kernel, and the values of the host loops around it by name."""

    kernel: Kernel
    loops: Mapping[str, int]


def launches(program: GpuProgram, sizes: Mapping[str, int], index: Mapping[str, Sequence[int]]) -> Iterator[Call]:
    """Every launch of a request, whose sizes and arrays of index functions are given by name."""
    kernels = {k.name: k for k in program.kernels}

    def block(body: tuple[Host, ...], loops: dict[str, int]) -> Iterator[Call]:
        for s in body:
            match s:
                case Launch(kernel):
                    yield Call(kernels[kernel], dict(loops))
                case HostFor(var, lo, hi, inner):
                    for value in range(value_of(lo, sizes, index, loops), value_of(hi, sizes, index, loops)):
                        yield from block(inner, {**loops, var: value})
                case HostIf(cond, then, orelse):
                    yield from block(then if value_of(cond, sizes, index, loops) else orelse, loops)
                case _:
                    assert_never(s)

    return block(program.host, {})


def value_of(
    e: Expr,
    sizes: Mapping[str, int],
    index: Mapping[str, Sequence[int]] = MappingProxyType({}),
    loops: Mapping[str, int] = MappingProxyType({}),
) -> int:
    """The value of an expression of integers; conditions are 0 or 1."""

    def value(e: Expr) -> int:
        match e:
            case Int(number):
                return number
            case Var(name):
                return loops[name] if name in loops else sizes[name]
            case Index(fn, (argument,)):
                return int(index[fn][value(argument)])
            case Unary("not", x):
                return not value(x)
            case Unary("neg", x):
                return -value(x)
            case Binary(fn, x, y) if fn in _OPERATORS:
                return int(_OPERATORS[fn](value(x), value(y)))
            case _:
                raise InternalError(f"the host cannot compute {e!r}")

    return value(e)


_OPERATORS: dict[str, Callable[[int, int], int]] = {
    "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y,
    "floordiv": lambda x, y: x // y, "mod": lambda x, y: x % y, "min": min, "max": max,
    "lt": lambda x, y: x < y, "le": lambda x, y: x <= y, "gt": lambda x, y: x > y, "ge": lambda x, y: x >= y,
    "eq": lambda x, y: x == y, "ne": lambda x, y: x != y, "and": lambda x, y: x and y, "or": lambda x, y: x or y,
}  # fmt: skip
