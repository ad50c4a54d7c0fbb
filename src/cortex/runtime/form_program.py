"""A compiled program that is run on a linear form which is there already: the two passes of training.

Ordinary calls linearize and run at once. A backward pass runs on a form made from that of the forward pass, and both
are called with parameters that change from call to call.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from cortex import _native
from cortex.codegen.load import load
from cortex.ilir.ir import Scope
from cortex.ilir.pack import pack
from cortex.lower.linear_form import LinearForm, kinds_in_windows
from cortex.runtime.arguments import arguments
from cortex.runtime.storage import ALIGNMENT, Array, padded_shape, padded_zeros

if TYPE_CHECKING:
    from cortex.runtime.executable import Compiled


class FormProgram:
    """The code of a model and its weights; calls run one after the other."""

    def __init__(self, compiled: Compiled) -> None:
        self.compiled = compiled
        f = compiled.signature
        self.model = compiled.model
        self.shared_out = f.shared_out
        self.windows = kinds_in_windows(f.index_functions) if "num_windows" in f.sizes else None
        self._code = load(compiled.object_code.code, compiled.object_code.entry)
        self._align = {b.name: b.align for b in f.buffers}
        self._packed: dict[str, _Packed] = {}
        shapes = {p.name: p.type.shape for p in self.model.params}
        nothing = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
        for p in f.packings:
            self._packed[p.buffer] = _Packed(shapes, p)
        self._arguments = arguments(self.model, f, lambda: nothing)
        self._weights: dict[str, Array] = {}
        for b, argument in zip(f.buffers, self._arguments[len(f.index_functions) :], strict=True):
            if b.scope in (Scope.PARAM, Scope.PACKED):
                self._weights[b.name] = argument[1]
        self._read = frozenset(f.read)

    def take(self, params: Mapping[str, Array]) -> None:
        """Use these values of the parameters from now on."""
        for name, whole in self._weights.items():
            packed = self._packed.get(name)
            if packed is not None:
                packed.refresh(params, whole)
            elif name in self._read:
                whole[tuple(slice(n) for n in params[name].shape)] = params[name]

    def field(self, name: str, count: int) -> tuple[Array, Array]:
        """Memory for a float field of so many nodes: as code takes it, and without padding."""
        shape = next(f.type.shape for f in self.model.fields if f.name == name)
        whole = padded_zeros((count, *shape), self._align[f"field_{name}"] if shape else 1)
        return whole, whole[(slice(None), *(slice(n) for n in shape))]

    def run(self, form: LinearForm, fields: Mapping[str, Array], threads: int) -> dict[str, Array]:
        """The states of all nodes in the order of ids, without padding; `fields` are padded."""
        team = threads if self.shared_out else 1
        states: dict[str, Array] = {}
        held: list[Any] = []
        table = np.zeros(len(self._arguments), np.uint64)
        for place, argument in enumerate(self._arguments):
            match argument:
                case ("index", name):
                    array = form.arrays[name]
                case ("weight", array):
                    pass
                case ("field", name):
                    array = fields[name]
                case ("state", name, shape, elements):
                    rows = form.sizes["num_nodes"]
                    array = _memory(rows * elements)
                    whole = array.reshape(rows, *padded_shape(shape, self._align[f"state_{name}"]))
                    states[name] = whole[(slice(None), *(slice(n) for n in shape))]
                case ("scratch", rows, words, *copies):
                    times = form.sizes[copies[0]] if copies else 1
                    array = _memory(times * words * (1 if rows is None else form.sizes[rows]))
                case ("private", elements, *size):  # the code knows where a thread's own begins
                    array = _memory(team * elements * (form.sizes[size[0]] if size else 1))
                case _:
                    raise AssertionError(argument)
            held.append(array)
            table[place] = array.ctypes.data
        sizes = np.array([*(form.sizes[name] for name in self.compiled.signature.sizes), 0], np.int64)
        _native.run_entry(self._code.address, [table.ctypes.data] * team, sizes.ctypes.data)
        return states


class _Packed:
    """Where each element of a packed weight comes from, so that it is packed again by one lookup."""

    def __init__(self, shapes: Mapping[str, tuple[int, ...]], p: Any) -> None:
        self.params = tuple(dict.fromkeys(gate.param for gate in p.gates))
        numbered: dict[str, Array] = {}
        at = 1
        for name in self.params:
            count = prod(shapes[name])
            numbered[name] = np.arange(at, at + count, dtype=np.int64).reshape(shapes[name])
            at += count
        self._source = np.zeros(at, np.float32)  # 0 first, for padding
        self._places = pack(p, numbered).astype(np.int64).reshape(-1)

    def refresh(self, params: Mapping[str, Array], whole: Array) -> None:
        """Write the packed weight anew."""
        at = 1
        for name in self.params:
            flat = np.ravel(params[name])
            self._source[at : at + flat.size] = flat
            at += flat.size
        np.take(self._source, self._places, out=whole.reshape(-1)[: self._places.size], mode="clip")


def _memory(elements: int) -> Array:
    """Room for so many floats, at a cache line and with a line to read past the end; what is there is anything."""
    raw = np.empty(4 * elements + 3 * ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + 4 * elements].view(np.float32)
