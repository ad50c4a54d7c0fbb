"""A compiled model on a device: linearized on the host, run there, results copied back.

It is called as `_native.Program` is. A request is copied to the device at once; weights are there already.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cortex import _native
from cortex.codegen.gpu.program import BARRIER_WORDS, GpuProgram
from cortex.codegen.gpu.walk_host import launches
from cortex.errors import StructureError
from cortex.ilir.ir import Buffer, Scope
from cortex.runtime.device import Device, Memory
from cortex.runtime.device_layout import WORD, Layout, arguments_of, fill, padded_shape, request_layout, work_layout
from cortex.runtime.storage import Array

MOST_IDLE = 4  # workspaces kept for later calls


@dataclass
class _Piece:
    """Memory of a device that is used by one request after the other, and grows where one needs more.

    The parts of it are kept too: requests of equal sizes are laid out alike.
    """

    device: Device
    size: int = 0
    memory: Memory = None
    parts: dict[str, Memory] = field(default_factory=dict)
    layout: Layout | None = None

    def place(self, layout: Layout) -> None:
        if layout == self.layout:
            return
        self.layout, self.parts = None, {}
        if layout.size > self.size:
            wanted = max(layout.size, self.size + self.size // 2)
            self.size, self.memory = 0, None  # given back before more is asked for
            self.memory = self.device.allocate(wanted)
            self.size = wanted
        self.parts = {n: self.device.part(self.memory, s.offset, s.size) for n, s in layout.spans.items()}
        self.layout = layout


class _Workspace:
    """The memory of one request at a time, on the host and on the device."""

    def __init__(self, device: Device) -> None:
        self.request, self.work = _Piece(device), _Piece(device)
        self.staged: Array = np.zeros(0, np.uint8)
        self.barrier = device.allocate(WORD * BARRIER_WORDS)
        device.write(self.barrier, np.zeros(BARRIER_WORDS, np.int32))

    def staging(self, size: int) -> Array:
        if size > len(self.staged):
            self.staged = np.zeros(size, np.uint8)
        return self.staged[:size]


class DeviceProgram:
    """A program on a device, its weights and its linearizer. Calls may come from several threads at once."""

    def __init__(
        self,
        device: Device,
        program: GpuProgram,
        linearizer: _native.Linearizer,
        sources: Mapping[str, tuple[Any, ...]],
    ) -> None:
        """`sources` says where each buffer comes from, as `runtime/arguments.py` does."""
        self.device = device
        self.program = program
        self.linearizer = linearizer
        self.kernels = device.build(program)
        self.states = [b for b in program.buffers if b.scope is Scope.STATE]
        self.shapes = {b.name: sources[b.name][2] for b in self.states}
        self._fields = [(b, sources[b.name][1]) for b in program.buffers if b.scope is Scope.FIELD]
        self._weights = {
            name: self._upload(source[1])
            for name, source in sources.items()
            if source[0] == "weight" and name in arguments_of(program)
        }
        self._idle: deque[_Workspace] = deque()

    def run(self, structures: Any, single: bool, threads: int = 1, out: Any = None) -> DeviceRun:
        """The states of a request; `threads` is not for devices. `out` has an array to write per state, or None."""
        form = self.linearizer.linearize(structures)
        sizes: dict[str, int] = form["sizes"]
        if single and sizes["num_roots"] != 1:
            raise StructureError(f"one structure was asked for, and there are {sizes['num_roots']}")
        run = DeviceRun(self, form, self._take())
        if sizes["num_nodes"]:
            run.execute()
        run.write_roots(single, out)
        return run

    def prepare(self, structures: Any) -> None:
        """All that is done before a request is copied to the device."""
        self.linearizer.linearize(structures)

    def arguments(self, workspace: _Workspace) -> dict[str, Memory]:
        """The memory of every array, by name, once a request is placed."""
        return {**self._weights, **workspace.request.parts, **workspace.work.parts}

    def place(self, workspace: _Workspace, form: Mapping[str, Any]) -> int:
        """Lay a request out in a workspace and copy it to the device; the bytes that were copied."""
        sizes, alignment = form["sizes"], self.device.alignment
        layout = request_layout(self.program, sizes, alignment)
        workspace.request.place(layout)
        workspace.work.place(work_layout(self.program, sizes, alignment))
        staged = workspace.staging(layout.size)
        fill(layout, form["arrays"], [(b, form["fields"][name]) for b, name in self._fields], sizes, staged)
        self.device.write(workspace.request.memory, staged)
        return layout.size

    def _upload(self, values: Array) -> Memory:
        memory = self.device.allocate(max(values.nbytes, WORD))
        if values.nbytes:
            self.device.write(memory, values)
        return memory

    def _take(self) -> _Workspace:
        try:
            return self._idle.pop()
        except IndexError:
            return _Workspace(self.device)

    def give_back(self, workspace: _Workspace) -> None:
        """Keep a workspace for later calls. Without a lock: the collector may call this at any time."""
        if len(self._idle) < MOST_IDLE:
            self._idle.append(workspace)


class DeviceRun:
    """A request on a device, and what the program made of it. It holds the memory of the call until it is dropped."""

    def __init__(self, program: DeviceProgram, form: Mapping[str, Any], workspace: _Workspace) -> None:
        self._program = program
        self._form = form
        self._workspace = workspace
        self._roots: list[Array] = []
        self.launches = 0
        self.copied = 0  # bytes of the request

    def __del__(self) -> None:
        self._program.give_back(self._workspace)

    @property
    def num_nodes(self) -> int:
        """Nodes that were computed."""
        count: int = self._form["sizes"]["num_nodes"]
        return count

    def execute(self) -> None:
        """Copy the request to the device and launch its kernels, which run in order."""
        sizes = self._form["sizes"]
        self.copied = self._program.place(self._workspace, self._form)
        memory = self._program.arguments(self._workspace)
        index = self._form["arrays"]
        for call in launches(self._program.program, sizes, index):
            given: list[Memory | int] = []
            for a in call.kernel.arguments:
                match a.kind:
                    case "buffer" | "index":
                        given.append(memory[a.name])
                    case "size":
                        given.append(sizes[a.name])
                    case "loop":
                        given.append(call.loops[a.name])
                    case "barrier":
                        given.append(self._workspace.barrier)
            self._program.kernels.launch(call.kernel, given)
            self.launches += 1

    def write_roots(self, single: bool, out: Sequence[Array | None] | None) -> None:
        """Fetch the states at the roots, into the arrays of `out` where it has some."""
        root = self._form["arrays"]["root"]
        for number in range(len(self._program.states)):
            rows = self._rows(number, root)
            value = rows[0] if single else rows
            given = None if out is None else out[number]
            if given is not None:
                given[...] = value
            self._roots.append(value if given is None else given)

    def root(self, state: int) -> Array:
        """A state at the roots."""
        return self._roots[state]

    def nodes(self, state: int) -> Array:
        """A state at every node in the user's order."""
        return self._rows(state, self._form["arrays"]["order"])

    def linear_form(self) -> Mapping[str, Any]:
        """The request as it was linearized."""
        return self._form

    def _rows(self, state: int, which: Array) -> Array:
        """Rows of a state without padding. Those between the first and the last are copied from the device, at once."""
        b = self._program.states[state]
        shape = self._program.shapes[b.name]
        if not len(which):
            return np.zeros((0, *shape), np.float32)
        first, last = int(which.min()), int(which.max())
        rows = self._read(b, first, last + 1 - first)
        chosen: Array = rows[which - first][(slice(None), *map(slice, shape))]
        return chosen

    def _read(self, b: Buffer, first: int, count: int) -> Array:
        layout = self._workspace.work.layout
        assert layout is not None
        extents = padded_shape(b, self._form["sizes"])[1:]
        if len(b.shape) == 1:
            extents = ()
        rows = np.empty((count, *extents), np.float32)
        stride = rows[0].nbytes
        self._program.device.read(self._workspace.work.memory, layout.spans[b.name].offset + first * stride, rows)
        return rows
