"""A function of ILIR as a module of LLVM's textual IR.

    void NAME(ptr arrays, ptr sizes, i64 thread, i64 threads, ptr team)

`arrays` points to the addresses of the index functions' arrays (int32) and then of all buffers that are not in
registers, both in the order of the function; `sizes` to its sizes (int64) and one word more, which is 0 until somebody
wants the function to return before it has finished (`stop`). Every thread of a team calls the
function, with its number; `team` points to the address of a barrier, `void (ptr team, i64 thread)`, and is not used
when `threads` is 1. The entry only unpacks these and calls the body, whose pointer arguments are declared disjoint.
No address is ever part of the code.

Where results are streamed, there are two bodies. The one that streams runs if their arrays begin at a whole vector, as
stores past the caches must; a fence after it orders them before whatever tells others that the results are there.
"""

from __future__ import annotations

import re
from dataclasses import replace

from cortex.codegen.llvm import integers
from cortex.codegen.llvm.expressions import evaluate
from cortex.codegen.llvm.parallel import TEAM, THREAD, THREADS, prepare_shares, runs_on_team
from cortex.codegen.llvm.statements import execute
from cortex.codegen.llvm.stop import SELDOM, STOP, end, looks
from cortex.codegen.llvm.types import Value, integer
from cortex.codegen.llvm.writer import Array, Writer
from cortex.codegen.target import Target
from cortex.errors import InternalError
from cortex.ilir.ir import Accumulate, Buffer, Func, Mark, Scope, Storage, Store, value_type
from cortex.ilir.private import copied_rows, private_stride
from cortex.ilir.statements import statements
from cortex.ilir.streaming import stores_whole_vectors

_STORAGE: dict[Storage, str] = {
    "f32": "float", "i64": "i64", "bool": "i8", "bf16": "bfloat", "f16": "half", "i8": "i8",
    "i16": "i16", "i32": "i32",
}  # fmt: skip


def module_text(f: Func, target: Target) -> str:
    """The LLVM module that computes `f`."""
    streamed = frozenset(b.name for b in f.buffers if b.streamed and stores_whole_vectors(f, b.name))
    bodies = [_body(f, target, frozenset(), 0)]
    if streamed:
        bodies.append(_body(f, target, streamed, bodies[0].loops))
    return _assemble(f, bodies, streamed)


def _written(f: Func) -> set[str]:
    return {s.buffer for s in statements(f.body) if isinstance(s, Store | Accumulate | Mark)}


def _body(f: Func, target: Target, streamed: frozenset[str], loops: int) -> Writer:
    """The function that computes; metadata of `loops` loops exist already."""
    written = _written(f)
    sizes = {name: Value(_name("size", name), "i64") for name in f.sizes}
    w = Writer(target, {}, dict(sizes), loops=loops, looks=looks(f.body, target.lanes))
    for i in f.index_functions:
        w.arrays[i.name] = Array(_name("index", i.name), "i32", "i64", (integer(1),), True)
    for b in f.buffers:
        pointer = _name("register" if b.scope is Scope.REGISTER else "buffer", b.name)
        strides, length = _layout(w, b)
        w.arrays[b.name] = Array(
            pointer,
            _STORAGE[b.dtype],
            value_type(b.dtype),
            strides,
            constant=b.name not in written,
            streamed=b.name in streamed,
        )
        if b.dtype == "bf16" and b.scope is Scope.PACKED:  # an array of words; the last index says which half
            strides = _layout(w, replace(b, shape=b.shape[:-1]))[0]
            w.arrays[b.name] = Array(pointer, "i32", "f32", strides, constant=True, in_halves=True)
        if b.scope is Scope.REGISTER:
            if length.constant is None:
                raise InternalError(f"register buffer '{b.name}' needs a constant shape")
            w.effect(f"{pointer} = alloca [{length.constant} x {_STORAGE[b.dtype]}], align 64")
    prepare_shares(w, f)
    execute(w, f.body)
    w.effect("ret void")
    end(w)
    return w


def _layout(w: Writer, b: Buffer) -> tuple[tuple[Value, ...], Value]:
    """The strides of a buffer and its length, in elements."""
    extents = [evaluate(w, e) for e in b.shape]
    if len(extents) > 1 and b.align > 1:
        align = integer(b.align)
        rounded = integers.add(w, extents[-1], integer(b.align - 1))
        extents[-1] = integers.multiply(w, integers.divide(w, "floordiv", rounded, align), align)
    strides, length = [], integer(1)
    for extent in reversed(extents):
        strides.append(length)
        length = integers.multiply(w, extent, length)
    return tuple(reversed(strides)), length


def _assemble(f: Func, bodies: list[Writer], streamed: frozenset[str]) -> str:
    target, written = bodies[0].target, _written(f)
    buffers = [b for b in f.buffers if b.scope is not Scope.REGISTER]
    parameters = [f"ptr noalias nonnull readonly align 4 {_name('index', i.name)}" for i in f.index_functions]
    team = runs_on_team(f)
    for b in buffers:
        # Other threads write what is shared, so a barrier must be taken to change it: such pointers are not `noalias`.
        # They still cannot alias the weights, which are.
        shared = team and b.name in written and b.scope not in (Scope.PRIVATE, Scope.COPIED)
        # Inputs and results may be arrays of the caller's, which are aligned to their elements only.
        alignment = 4 if b.scope in (Scope.FIELD, Scope.STATE) else 64
        kind = f"{'' if shared else 'noalias '}nonnull {'' if b.name in written else 'readonly '}align {alignment}"
        parameters.append(f"ptr {kind} {_name('buffer', b.name)}")
    parameters += [f"i64 {_name('size', name)}" for name in f.sizes]
    parameters.append(f"ptr nonnull align 8 {STOP}")

    unpack, arguments = [], []
    for i in range(len(f.sizes)):
        unpack += [f"  %q{i} = getelementptr i64, ptr %sizes, i64 {i}", f"  %s{i} = load i64, ptr %q{i}, align 8"]
    copies = [None] * len(f.index_functions) + [_copy(f, b) if team else None for b in buffers]
    for i, copy in enumerate(copies):
        unpack += [f"  %p{i} = getelementptr ptr, ptr %arrays, i64 {i}", f"  %a{i} = load ptr, ptr %p{i}, align 8"]
        if copy is not None:
            size, elements = copy
            unpack += [f"  %n{i} = mul i64 {size}, {elements}", f"  %o{i} = mul i64 {THREAD}, %n{i}"]
            unpack += [f"  %m{i} = getelementptr float, ptr %a{i}, i64 %o{i}"]
        arguments.append(f"ptr %m{i}" if copy is not None else f"ptr %a{i}")
    unpack.append(f"  {STOP} = getelementptr i64, ptr %sizes, i64 {len(f.sizes)}")
    arguments += [*(f"i64 %s{i}" for i in range(len(f.sizes))), f"ptr {STOP}"]

    if team:
        parameters += [f"i64 {THREAD}", f"i64 {THREADS}", f"ptr {TEAM}"]
        arguments += [f"i64 {THREAD}", f"i64 {THREADS}", f"ptr {TEAM}"]

    attributes = [f'"target-cpu"="{target.cpu}"', f'"target-features"="{target.features}"']
    # Some CPUs prefer 256-bit vectors; without this LLVM would split ours.
    width = 32 * target.lanes
    attributes += [f'"prefer-vector-width"="{width}"', f'"min-legal-vector-width"="{width}"']
    names = [_name("", f.name + each)[1:] for each in (".body", ".streamed")]
    calls = [f"  call fastcc void @{name}({', '.join(arguments)})" for name in names]
    first = len(f.index_functions)
    places = [f"%a{first + i}" for i, b in enumerate(buffers) if b.name in streamed]
    texts = [
        line
        for name, w in zip(names, bodies, strict=False)
        for line in (f"define internal fastcc void @{name}({', '.join(parameters)}) #1 {{", "entry:", *w.lines, "}", "")
    ]
    lines = [
        f'target triple = "{target.triple}"',
        "",
        f"define void @{_name('', f.name)[1:]}(ptr readonly %arrays, ptr readonly %sizes, "
        f"i64 {THREAD}, i64 {THREADS}, ptr {TEAM}) #0 {{",
        *unpack,
        *(_choice(places, 4 * target.lanes, *calls) if streamed else calls[:1]),
        "  ret void",
        "}",
        "",
        *texts,
        *{name: text for w in bodies for name, text in w.declarations.items()}.values(),
        "",
        f"attributes #0 = {{ nounwind {' '.join(attributes)} }}",
        f"attributes #1 = {{ nounwind noinline {' '.join(attributes)} }}",
        *_loop_metadata(bodies[-1].loops),
    ]
    return "\n".join(lines) + "\n"


def _copy(f: Func, b: Buffer) -> tuple[str, int] | None:
    """Elements from one thread's copy of a buffer to the next, as two factors; None where there is one for all."""
    match b.scope:
        case Scope.PRIVATE:
            return "1", private_stride(b)
        case Scope.COPIED:
            size, elements = copied_rows(b)
            return "1" if size is None else f"%s{f.sizes.index(size)}", elements
        case _:
            return None


def _choice(places: list[str], vector: int, plain: str, streamed: str) -> list[str]:
    """Call the body that streams if all `places` are multiples of `vector` bytes; else the plain one."""
    lines, bits = [], "0"
    for i, place in enumerate(places):
        lines += [f"  %w{i} = ptrtoint ptr {place} to i64", f"  %v{i} = or i64 %w{i}, {bits}"]
        bits = f"%v{i}"
    lines += [f"  %odd = and i64 {bits}, {vector - 1}", "  %whole = icmp eq i64 %odd, 0"]
    lines += ["  br i1 %whole, label %streamed, label %plain", "plain:", plain, "  ret void", "streamed:", streamed]
    return [*lines, "  fence seq_cst"]


def _loop_metadata(loops: int) -> list[str]:
    """One distinct identity for each loop, all forbidding what the schedule has already decided."""
    shared = [
        '!0 = !{!"llvm.loop.unroll.disable"}',
        '!1 = !{!"llvm.loop.vectorize.enable", i1 false}',
        '!2 = !{!"llvm.loop.distribute.enable", i1 false}',
        f'!{SELDOM} = !{{!"branch_weights", i32 1, i32 1000000}}',
    ]
    return [*shared, *(f"!{i} = distinct !{{!{i}, !0, !1, !2}}" for i in range(4, 4 + loops))]


def _name(prefix: str, name: str) -> str:
    """A local LLVM name, quoted where LLVM wants that."""
    full = f"{prefix}.{name}" if prefix else name
    if re.fullmatch(r"[-a-zA-Z$._][-a-zA-Z$._0-9]*", full):
        return f"%{full}"
    escaped = (chr(c) if 32 <= c < 127 and chr(c) not in '"\\' else f"\\{c:02X}" for c in full.encode())
    return f'%"{"".join(escaped)}"'
