"""A compiled model in memory: its code, its weights and its linearizer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from cortex import _native
from cortex.codegen.gpu.device_code import DeviceCode
from cortex.errors import ModelError
from cortex.frontend.fields import Accessors
from cortex.ilir.ir import NARROW, Buffer, Scope
from cortex.lower.linear_form import NUM_PARTS, LinearForm, kinds_in_windows
from cortex.ra import interp
from cortex.runtime.arguments import arguments, field_align
from cortex.runtime.device_program import DeviceProgram
from cortex.runtime.forest import Forest
from cortex.runtime.given_arrays import Given, given_arrays
from cortex.runtime.linearize import Checked, linearizer
from cortex.runtime.output import Output, output_type, rows_of_results
from cortex.runtime.ready import Ready
from cortex.runtime.storage import Array, padded, padded_shape, without_padding
from cortex.runtime.table_form import table_form
from cortex.runtime.tables import Rows

if TYPE_CHECKING:
    from cortex.codegen.object_code import ObjectCode
    from cortex.runtime.executable import Compiled

Version = tuple[int, int]


class UsualCall(NamedTuple):
    """All that most calls need: what answers a batch, single or not, on so many threads, and their usual number."""

    answer: Callable[[Any, bool, int], Output]
    threads: int


def long_way(args: tuple[Any, ...]) -> Any:
    """Leave a call of a module to the long way: no call has been made yet."""
    return NotImplemented


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
        placed: dict[str, Array | None] | None = None,
        ready: Ready | None = None,
    ) -> None:
        """`placed` has weights as code takes them, from what was loaded before; for None, this one adds them.

        `ready` has all arrays as code takes them, where a file holds them.
        """
        self.compiled = compiled
        self.version = version
        self.checked = checked
        m, f = compiled.model, compiled.signature
        self.names = tuple(s.name for s in m.outputs)
        self.rows = rows_of_results(m)
        self.output = output_type(self.names, self.rows)
        self._weights = weights
        self._derived: dict[str, Array] | None = None
        self._placed = {} if placed is None else placed
        self._ready = ready or Ready({}, ())
        self.in_place: dict[str, Array] = {}
        """Weights, as they are in the memory that code reads them from."""
        self._tables: list[Rows] = []
        padding = {b.name: b.align for b in f.buffers}
        inner = self._ready.tables or (None,) * len(m.tables)
        for table, program, own in zip(m.tables, compiled.tables, inner, strict=True):
            of_table = weights if own is not None else self._params
            filling = Loaded(program, of_table, Accessors(), placed=self._placed, ready=own)
            self.in_place |= filling.in_place
            filling.forget()  # nobody asks for them
            self._tables.append(Rows(table_form(table, program.model, padding), filling.write))
        parts, windows = NUM_PARTS.name in f.sizes, kinds_in_windows(f.index_functions)
        self.linearizer = linearizer(m, accessors, align=field_align(f), parts=parts, windows=windows, checked=checked)
        self.shared_out = f.shared_out
        self._program: _native.Program | DeviceProgram | None = None
        self._why_not = ""  # this machine cannot run it
        self.usual: UsualCall | None = None  # once a call was made
        self.direct: Callable[[tuple[Any, ...]], Any] = long_way  # for a module, see direct_call.py
        self.updates = 0  # of the weights, before it was loaded
        self.successor: Loaded | None = None  # the same program with newer weights, for bound requests
        code = compiled.code
        if isinstance(code, DeviceCode):
            self._load_kernels(code)
        elif code.target.runs_here():
            self._program = self._load_object(code)
        else:
            self._why_not = (
                f"{m.name} was compiled for {code.target}, which this machine cannot run. "
                "cortex.export(fast, DIRECTORY) writes it as a C package; leave out `target` to call it here."
            )

    def _load_object(self, code: ObjectCode) -> _native.Program:
        from cortex.codegen.load import load

        loaded = load(code.code, code.entry)
        layout = {
            "entry": loaded.address,
            "keepalive": loaded,
            "sizes": list(self.compiled.signature.sizes),
            "arrays": self._arrays(),
            "tables": [rows.for_native() for rows in self._tables],
        }
        return _native.Program(self.linearizer, layout)

    @property
    def _params(self) -> dict[str, Array]:
        """The parameters, derived ones and the rows of tables included; derived when somebody first asks for them."""
        if self._derived is None:
            self._derived = interp.derived(self.compiled.model, self._weights)
        for rows in self._tables:
            self._derived |= rows.params
        return self._derived

    def forget(self) -> None:
        """Let go of the parameters, which nobody will ask for any more."""
        self._weights, self._derived = {}, {}

    def _arrays(self) -> list[tuple[Any, ...]]:
        """Where the memory of each argument comes from."""
        f = self.compiled.signature
        known = dict(self._ready.arrays)
        known |= {name: array for rows in self._tables for name, array in rows.padded.items()}
        for b in f.buffers:
            if b.scope is Scope.PARAM and b.name in f.read and b.name in self._placed:
                known[b.name] = self._place(b)
        return arguments(self.compiled.model, f, lambda: self._params, known)

    def _place(self, b: Buffer) -> Array:
        """A weight as code takes it."""
        weight = self._weights[b.name]
        whole = self._ready.arrays.get(b.name, self._placed[b.name])
        if whole is None or whole.shape != padded_shape(weight.shape, b.align):
            whole = padded(weight, b.align)
        self._placed[b.name] = whole
        self.in_place[b.name] = without_padding(whole, weight.shape)
        return whole

    def hold(self, weights: Mapping[str, Array]) -> None:
        """Let go of the weights that it was made from for equal ones."""
        self._weights = {**self._weights, **weights}
        if self._derived is not None:
            self._derived |= weights

    def _load_kernels(self, code: DeviceCode) -> None:
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
        for rows in self._tables:  # a device has them all
            rows.complete()
        names = (*f.index_functions, *(b.name for b in f.buffers))
        sources = dict(zip(names, self._arrays(), strict=True))
        self._program = DeviceProgram(device, code.program, self.linearizer, sources)

    @property
    def params(self) -> Mapping[str, Array]:
        """The parameters, derived ones and whole tables included."""
        for rows in self._tables:
            rows.complete()
        return self._params

    def bytes_of(self, name: str) -> int:
        """What a parameter takes."""
        return self._params[name].nbytes

    def write(self, structures: Forest, out: list[Array]) -> None:
        """The states at the roots, into arrays."""
        self.program.run(structures, False, 1, out)

    @property
    def is_exact_here(self) -> bool:
        """Can this machine run the program, and are weights in f32, as they were given?"""
        return self._program is not None and not any(b.dtype in NARROW for b in self.compiled.signature.buffers)

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
