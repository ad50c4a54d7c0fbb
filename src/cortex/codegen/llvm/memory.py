"""Addresses, loads and stores.

Under a vectorized loop the stride of an access in the lane decides its form: 0 is one scalar load, 1 a vector
load or store, anything else a gather or scatter.
"""

from __future__ import annotations

from typing import Literal

from cortex.codegen.llvm import integers, rounded, widen
from cortex.codegen.llvm.types import Value, constant_vector, integer, suffix, type_text
from cortex.codegen.llvm.writer import Array, Writer
from cortex.errors import InternalError

_SIZE = {"float": 4, "i64": 8, "i32": 4, "half": 2, "bfloat": 2, "i16": 2, "i8": 1}
_STORAGE_NAME = {"float": "f32", "i64": "i64", "i32": "i32", "half": "f16", "bfloat": "bf16", "i16": "i16", "i8": "i8"}


def position(w: Writer, array: Array, index: list[Value]) -> Value:
    """The number of elements between the start of `array` and the element at `index`."""
    total, step, offset = integer(0), 0, 0
    for i, stride in zip(index, array.strides, strict=True):
        if i.text or stride.text:
            total = integers.add(w, total, integers.multiply(w, i, stride))
        else:  # most of unrolled and vectorized code
            step += i.step * stride.offset
            offset += i.offset * stride.offset
    return integers.add(w, total, Value("", "i64", 1, step, offset)) if step or offset else total


def load(w: Writer, array: Array, at: Value) -> Value:
    """The element of `array` at position `at`, in every lane."""
    return _loaded(w, array, *_read(w, array, at))


def load_half(w: Writer, array: Array, at: Value, half: Value) -> Value:
    """The bf16 that is the upper (`half` 1) or the lower (0) half of the word of `array` at position `at`."""
    text, n = _read(w, array, at)
    return Value(widen.half(w, n, text, half), "f32", n)


def load_integers(w: Writer, array: Array, at: Value) -> str:
    """The elements of an array of integers, as integers of 32 bits, in every lane."""
    text, n = _read(w, array, at)
    wide = widen.to_i32(w, array.storage, n, text)
    return wide if n == w.lanes else w.all_lanes("i32", wide, w.lanes)


def load_neighbours(w: Writer, array: Array, at: Value) -> str:
    """Twice as many elements as there are lanes, one after the other from position `at` on, as they are stored."""
    right = f"load {type_text(_STORAGE_NAME[array.storage], 2 * w.lanes)}, ptr {_pointer(w, array, at)}"
    right = f"{right}, align {_SIZE[array.storage]}"
    return w.pure(right) if array.constant else w.instruction(right)


def load_words(w: Writer, array: Array, at: Value) -> str:
    """In every lane, the 32 bits from position `at` on, as integers."""
    n = 1 if at.uniform else w.lanes
    right = f"load {type_text('i32', n)}, ptr {_pointer(w, array, at)}, align {_SIZE[array.storage]}"
    words = w.pure(right) if array.constant else w.instruction(right)
    return words if n > 1 else w.all_lanes("i32", words, w.lanes)


def _read(w: Writer, array: Array, at: Value) -> tuple[str, int]:
    """What lies at a position of an array, and for how many lanes."""
    n = 1 if at.uniform else w.lanes
    storage = _STORAGE_NAME[array.storage]
    ty = type_text(storage, n)
    if n == 1 or at.step == 1:
        right = f"load {ty}, ptr {_pointer(w, array, at)}, align {_SIZE[array.storage]}"
    else:
        mask = f"<{n} x i1> splat (i1 true)"
        pointers = f"<{n} x ptr> {_pointers(w, array, at, n)}"
        name = f"llvm.masked.gather.{suffix(storage, n)}.v{n}p0"
        right = w.call(name, ty, pointers, mask, f"{ty} poison")
    return (w.pure(right) if array.constant else w.instruction(right)), n


def store(w: Writer, array: Array, at: Value, value: Value) -> None:
    """Write `value` to the element of `array` at position `at`, in every lane."""
    n = w.lanes
    if n > 1 and at.uniform:
        raise InternalError(f"all lanes of a vectorized loop write one element of {array.pointer}")
    ty, text = type_text(_STORAGE_NAME[array.storage], n), w.vector(value, n)
    match array.storage:
        case "i8":
            text = w.pure(f"zext {type_text('bool', n)} {text} to {ty}")
        case "bfloat":
            text = rounded.to_bf16(w, n, text)
        case "i16" | "i32":
            text = rounded.to_integer(w, array.storage, n, text)
    store_as_is(w, array, at, text)


def store_as_is(w: Writer, array: Array, at: Value, text: str) -> None:
    """Write numbers of the type of an array, one for each lane."""
    n = w.lanes
    ty = type_text(_STORAGE_NAME[array.storage], n)
    if n == 1 or at.step == 1:
        size = _SIZE[array.storage]
        how = f"align {size * n}, !nontemporal !{{i32 1}}" if array.streamed and n > 1 else f"align {size}"
        w.effect(f"store {ty} {text}, ptr {_pointer(w, array, at)}, {how}")
        return
    name = f"llvm.masked.scatter.{suffix(_STORAGE_NAME[array.storage], n)}.v{n}p0"
    pointers = f"<{n} x ptr> {_pointers(w, array, at, n)}"
    w.effect(w.call(name, "void", f"{ty} {text}", pointers, f"<{n} x i1> splat (i1 true)"))


def prefetch(w: Writer, array: Array, at: Value, to: Literal["read", "write"]) -> None:
    """Fetch the cache line of the element of `array` at position `at` into all caches."""
    pointer = f"ptr {_pointer(w, array, at)}"
    w.effect(w.call("llvm.prefetch.p0", "void", pointer, f"i32 {int(to == 'write')}", "i32 3", "i32 1"))


def _loaded(w: Writer, array: Array, text: str, n: int) -> Value:
    """A loaded element as a value: narrow numbers in memory are widened."""
    ty = type_text(_STORAGE_NAME[array.storage], n)
    if array.dtype == "f32":
        text = widen.to_f32(w, array.storage, n, text)
    elif array.storage == "i32":
        text = w.pure(f"sext {ty} {text} to {type_text('i64', n)}")
    elif array.storage == "i8":
        text = w.pure(f"trunc {ty} {text} to {type_text('bool', n)}")
    return Value(text, array.dtype, n)


def _pointer(w: Writer, array: Array, at: Value) -> str:
    """The address of lane 0. The symbolic part comes first, so that accesses that differ by a constant share it."""
    pointer = array.pointer
    if at.text:
        pointer = w.pure(f"getelementptr {array.storage}, ptr {pointer}, i64 {at.text}")
    if at.offset:
        pointer = w.pure(f"getelementptr {array.storage}, ptr {pointer}, i64 {at.offset}")
    return pointer


def _pointers(w: Writer, array: Array, at: Value, n: int) -> str:
    """The addresses of all lanes."""
    if at.lanes > 1:
        return w.pure(f"getelementptr {array.storage}, ptr {array.pointer}, <{n} x i64> {at.text}")
    lanes = constant_vector("i64", [at.step * lane for lane in range(n)])
    return w.pure(f"getelementptr {array.storage}, ptr {_pointer(w, array, at)}, <{n} x i64> {lanes}")
