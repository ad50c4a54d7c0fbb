"""A compiled model in memory: its code, its weights and its linearizer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cortex import _native
from cortex.codegen.gpu.device_code import DeviceCode
from cortex.errors import ModelError
from cortex.frontend.fields import Accessors
from cortex.lower.linear_form import NUM_PARTS, LinearForm
from cortex.ra import interp
from cortex.ra import ir as ra
from cortex.runtime.arguments import arguments, field_align
from cortex.runtime.device_program import DeviceProgram
from cortex.runtime.forest import Forest
from cortex.runtime.given_arrays import Given, given_arrays
from cortex.runtime.linearize import Checked, linearizer
from cortex.runtime.storage import Array, padded_zeros

if TYPE_CHECKING:
    from cortex.codegen.object_code import ObjectCode
    from cortex.runtime.executable import Compiled

Version = tuple[int, int]
TABLE_ROWS = 1024  # that are computed at a time


class Loaded:
    """Object code, weights and linearizer, ready to be called.

    `version` is what had been traced when it was compiled, `checked` the numbers of children that its kinds are for.
    """

    def __init__(
        self,
        compiled: Compiled,
        weights: Mapping[str, Array],
        accessors: Any,
        version: Version = (0, 0),
        checked: Sequence[Checked] = (),
    ) -> None:
        self.compiled = compiled
        self.version = version
        self.checked = checked
        m, f = compiled.model, compiled.signature
        self.names = tuple(s.name for s in m.outputs)
        self.params = interp.derived(m, weights)
        padding = {b.name: b.align for b in f.buffers}
        tables: dict[str, Array] = {}  # as the code takes them
        for table, program in zip(m.tables, compiled.tables, strict=True):
            filled = _fill(table, Loaded(program, self.params, Accessors()), padding)
            self.params |= {name: view for name, (view, _) in filled.items()}
            tables |= {name: whole for name, (_, whole) in filled.items()}
        parts = NUM_PARTS.name in f.sizes
        self.linearizer = linearizer(m, accessors, align=field_align(f), parts=parts, checked=checked)
        self.shared_out = f.shared_out
        self._program: _native.Program | DeviceProgram | None = None
        self._why_not = ""  # this machine cannot run it
        code = compiled.code
        if isinstance(code, DeviceCode):
            self._load_kernels(code, tables)
        elif code.target.runs_here():
            self._program = self._load_object(code, tables)
        else:
            self._why_not = (
                f"{m.name} was compiled for {code.target}, which this machine cannot run. "
                "cortex.export(fast, DIRECTORY) writes it as a C package; leave out `target` to call it here."
            )

    def _load_object(self, code: ObjectCode, tables: Mapping[str, Array]) -> _native.Program:
        from cortex.codegen.llvm.load import load

        f, loaded = self.compiled.signature, load(code)
        arrays = arguments(self.compiled.model, f, self.params, tables)
        return _native.Program(
            self.linearizer,
            {"entry": loaded.address, "keepalive": loaded, "sizes": list(f.sizes), "arrays": arrays},
        )

    def _load_kernels(self, code: DeviceCode, tables: Mapping[str, Array]) -> None:
        from cortex.runtime.devices import device_of

        f = self.compiled.signature
        try:
            device = device_of(code.target)
        except ModelError as error:
            self._why_not = (
                f"{self.compiled.model.name} was compiled for {code.target}, which this machine cannot run. {error} "
                "`fast.source` has the kernels."
            )
            return
        arrays = arguments(self.compiled.model, f, self.params, tables)
        names = (*f.index_functions, *(b.name for b in f.buffers))
        sources = dict(zip(names, arrays, strict=True))
        self._program = DeviceProgram(device, code.program, self.linearizer, sources)

    @property
    def program(self) -> _native.Program | DeviceProgram:
        """The program in memory, where this machine can run it."""
        if self._program is None:
            raise ModelError(self._why_not)
        return self._program

    @property
    def native_program(self) -> _native.Program:
        """The same, of a processor."""
        program = self.program
        if isinstance(program, DeviceProgram):
            raise ModelError(
                f"{self.compiled.model.name} was compiled for {self.compiled.code.target}, where this is not to be "
                "had; leave out `target` for a program of this machine's processor."
            )
        return program

    def most(self, threads: int) -> int:
        """`threads`, of which a program without parallel loops has work for one only."""
        return threads if self.shared_out else 1

    def given(self, out: Any, batch: Any, single: bool) -> Given | None:
        """The arrays for the states at the roots, checked; None where the caller gives none."""
        if out is None:
            return None
        roots = len(batch.roots if isinstance(batch, Forest) else batch)
        return given_arrays(out, self.compiled.model.outputs, None if single else roots)

    def linear_form(self, batch: Any, threads: int) -> LinearForm:
        """The linear form of a request as arrays, as it is for a call on `threads` threads."""
        return LinearForm(**self.linearizer.linearize(batch, threads))


def _fill(table: ra.Table, loaded: Loaded, padding: Mapping[str, int]) -> dict[str, tuple[Array, Array]]:
    """The parameters of a table, the states of a node for every value of the field, without padding and with it.

    Some rows at a time, so that what is computed is still in the cache when it is written to its place.
    """
    m = loaded.compiled.model
    limit = next(f.limit for f in m.fields if f.name == table.field)
    assert limit is not None
    shapes = [(limit, *s.type.shape) for s in m.outputs]
    whole = [padded_zeros(shape, padding.get(n, 1)) for n, shape in zip(table.params, shapes, strict=True)]
    views = [w[tuple(map(slice, shape))] for w, shape in zip(whole, shapes, strict=True)]
    for first in range(0, limit, TABLE_ROWS):
        values = np.arange(first, min(first + TABLE_ROWS, limit))
        leaves = Forest.from_children(np.zeros(len(values) + 1, np.int64), [], {table.field: values})
        loaded.program.run(leaves, False, 1, [v[first : first + TABLE_ROWS] for v in views])
    return dict(zip(table.params, zip(views, whole, strict=True), strict=True))
