"""The object code as a thing: self-contained, loadable any number of times, from any thread."""

from __future__ import annotations

import struct
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from cortex.codegen.llvm.build import build
from cortex.codegen.llvm.module import module_text
from cortex.codegen.llvm.run import run
from cortex.codegen.load import load
from cortex.codegen.target import Target
from cortex.ilir.ir import Buffer, For, Func, IndexFunction, LoopKind, Scope, Store
from cortex.ir.scalar import Binary, Expr, Int, Load, Unary, Var
from cortex.passes.expand_math import expand_math


def apply(fn: Callable[[Expr], Expr], lanes: int) -> Func:
    i = Binary("add", Binary("mul", Var("b"), Int(lanes)), Var("lane"))
    inner = For("lane", Int(0), Int(lanes), (Store("y", (i,), fn(Load("x", (i,)))),), LoopKind.VECTORIZED)
    shape = (Binary("mul", Var("blocks"), Int(lanes)),)
    buffers = (Buffer("x", "f32", shape, Scope.FIELD), Buffer("y", "f32", shape, Scope.STATE))
    return Func("apply", ("blocks",), (), buffers, (For("b", Int(0), Var("blocks"), (inner,)),))


def undefined_symbols(elf: bytes) -> list[str]:
    """Names of the symbols that an ELF-64 object expects from elsewhere."""
    (table,) = struct.unpack_from("<Q", elf, 0x28)
    size, count = struct.unpack_from("<HH", elf, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", elf, table + i * size) for i in range(count)]
    names = []
    for _, kind, _, _, offset, length, link, _, _, entry in sections:
        if kind == 2:  # SHT_SYMTAB
            strings = sections[link][4]
            for at in range(offset + entry, offset + length, entry):
                name, _, _, section = struct.unpack_from("<IBBH", elf, at)
                if section == 0:
                    names.append(elf[strings + name : elf.index(b"\0", strings + name)].decode())
    return names


@pytest.mark.parametrize("fn", ["exp", "log", "sqrt", "tanh", "sigmoid", "round", "abs", "neg"])
def test_no_undefined_symbols(fn: str, target: Target) -> None:
    for lanes in (1, 3, target.lanes):
        code = build(expand_math(apply(lambda x: Unary(fn, x), lanes)), target).code
        if code[:4] == b"\x7fELF":
            assert undefined_symbols(code) == []
        load(code, "apply")


def test_code_is_in_memory_once(target: Target) -> None:
    copies = [build(apply(lambda x: x, target.lanes), target) for _ in range(2)]
    other = build(apply(lambda x: Binary("add", x, x), target.lanes), target)
    first, again, second = (load(each.code, each.entry) for each in (*copies, other))
    assert first is again
    assert first.address != second.address


def test_compiles_and_runs_in_many_threads(target: Target) -> None:
    x = np.arange(2 * target.lanes, dtype=np.float32)

    def double(times: int) -> np.ndarray:
        def repeated(e: Expr) -> Expr:
            for _ in range(times):
                e = Binary("add", e, e)
            return e

        return run(apply(repeated, target.lanes), target, {"blocks": 2}, {}, {"x": x})["y"]

    with ThreadPoolExecutor(8) as pool:
        for times, y in enumerate(pool.map(double, range(8))):
            np.testing.assert_array_equal(y, x * 2**times)


def test_text_says_what_llvm_must_know(target: Target) -> None:
    f = apply(lambda x: Unary("sqrt", x), target.lanes)
    f = Func(f.name, f.sizes, (IndexFunction("child", Int(4)),), f.buffers, f.body)
    text = module_text(f, target)
    assert "ptr noalias nonnull readonly align 4 %index.child" in text
    assert "ptr noalias nonnull readonly align 4 %buffer.x" in text
    assert "ptr noalias nonnull align 4 %buffer.y" in text
    assert "llvm.loop.unroll.disable" in text
    assert f'"prefer-vector-width"="{32 * target.lanes}"' in text
    assert not any(flag in text for flag in (" fast ", " nnan ", " contract ", " reassoc ", " afn "))


def test_same_program_same_text(target: Target) -> None:
    f = expand_math(apply(lambda x: Unary("tanh", x), target.lanes))
    assert module_text(f, target) == module_text(f, target)
    assert build(f, target).code == build(f, target).code


def test_named_targets() -> None:
    assert (Target.x86("avx512").lanes, Target.x86("avx2").lanes, Target.x86("sse2").lanes) == (16, 8, 4)
    assert Target.x86("avx2").has_fma and not Target.x86("sse2").has_fma
    assert Target.x86("avx2").has("sse4.1") and not Target.x86("sse2").has("sse4.1")
    assert Target.host() is Target.host()
