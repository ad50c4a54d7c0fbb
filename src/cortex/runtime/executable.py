"""A compiled model: linearize, run, return, in one native call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from cortex import _native
from cortex.cost.predict import Predictor
from cortex.cost.typical import typical
from cortex.errors import StructureError
from cortex.ilir.ir import Buffer, Func, Scope
from cortex.ilir.pack import pack
from cortex.ir.node import walk
from cortex.ir.scalar import Int, Load, Var
from cortex.ir.step import Step
from cortex.lower.linear_form import LinearForm
from cortex.ra import interp
from cortex.ra import ir as ra
from cortex.runtime.forest import Forest
from cortex.runtime.linearize import linearizer
from cortex.runtime.output import Output
from cortex.runtime.report import Report, best_us, explanation, make_report
from cortex.runtime.storage import Array, padded

if TYPE_CHECKING:
    from cortex.codegen.llvm.build import ObjectCode
    from cortex.frontend.trace import Trace

T = TypeVar("T")


@dataclass(frozen=True)
class Compiled:
    """What the compiler made of a model: the program before and after scheduling, and its object code."""

    model: ra.Model
    schedule: tuple[Step[Func], ...]
    func: Func
    code: ObjectCode


class Executable:
    """A compiled model. Call it with a structure, a list of structures, or a `Forest` of arrays.

    Kinds of nodes that were not known at compile time are traced and compiled when a request first has them;
    `compilations` counts how often that happened. Calls may run in several threads at once.
    """

    def __init__(self, trace: Trace, build: Callable[[ra.Model], Compiled]) -> None:
        self._trace = trace
        self._build = build
        self._lock = Lock()
        self._loaded: _Loaded | None = None
        self.compilations = 0
        if trace.known_kinds:
            self._compile()

    def __call__(self, structures: Any) -> Output:
        """States of the model at the root of each structure."""
        batch = structures if _is_batch(structures) else [structures]
        single = batch is not structures
        return self._with_kinds(batch, lambda loaded: Output(loaded.names, loaded.program.run(batch, single)))

    @property
    def compiled(self) -> Compiled:
        """The program in use."""
        return self._require().compiled

    @property
    def traced(self) -> ra.Model:
        """The model as it was traced, before any transformation."""
        return self._trace.model()

    @property
    def weights(self) -> Mapping[str, Array]:
        """The parameters in use, derived ones included."""
        return self._require().params

    @property
    def schedule(self) -> tuple[Step[Func], ...]:
        """The steps in use."""
        return self.compiled.schedule

    def report(self, structures: Any) -> Report:
        """What a request is made of and where its time goes; `print(fast.report(trees))`.

        The request is run many times, by this program and by a build of it that reads the clock around each phase.
        """
        from cortex.runtime.measure_machine import here
        from cortex.runtime.timeline import timeline

        form = self.linearize(structures)
        loaded = self._require()
        compiled, machine = loaded.compiled, here()
        batch = structures if _is_batch(structures) else [structures]
        return make_report(
            compiled.model.name,
            tuple(k.name for k in compiled.model.kinds),
            compiled.schedule,
            form,
            Predictor(compiled.func, machine)(form),
            timeline(compiled.func, compiled.code.target, form, loaded.params),
            machine,
            best_us(lambda: self(structures)),
            best_us(lambda: loaded.linearizer.linearize(batch)),
        )

    def explain(self, structures: Any = None) -> str:
        """The predicted time of each phase and why, for a request or, without one, for typical ones."""
        from cortex.runtime.measure_machine import here

        forms = None if structures is None else [self.linearize(structures)]
        compiled = self.compiled
        kinds = tuple(k.name for k in compiled.model.kinds)
        return explanation(compiled.model.name, kinds, compiled.func, forms or typical(compiled.model), here())

    def linearize(self, structures: Any) -> LinearForm:
        """The linear form of a request."""
        batch = structures if _is_batch(structures) else [structures]
        return self._with_kinds(batch, lambda loaded: loaded.linear_form(batch))

    def interpret(self, structures: Any) -> dict[str, Array]:
        """States at every node in the user's order, computed by the reference interpreter in float64."""
        form = self.linearize(structures)
        loaded = self._require()
        states = interp.run(loaded.compiled.model, loaded.params, form)
        order = form.arrays["order"]
        return {name: values[order] for name, values in states.items()}

    def _require(self) -> _Loaded:
        if self._loaded is None:
            self._compile()
        assert self._loaded is not None
        return self._loaded

    def _with_kinds(self, batch: Any, call: Callable[[_Loaded], T]) -> T:
        """`call`, after compiling whatever kinds of node the request has and the program has not."""
        loaded = self._loaded or self._learn(_roots(batch), None, "the request")
        while True:
            try:
                return call(loaded)
            except _native.UnknownKind as unknown:
                node, where = unknown.node, unknown.where
            loaded = self._learn([node], loaded, f"the node at {where}")

    def _learn(self, nodes: list[Any], seen: _Loaded | None, where: str) -> _Loaded:
        """Trace the kinds of `nodes` and compile again, unless another thread just did."""
        with self._lock:
            if self._loaded is seen or self._loaded is None:
                if not self._trace.see(nodes) and self._loaded is not None:
                    raise StructureError(
                        f"{where} answers the model's questions differently each time it is asked. Fields that the "
                        "model's control flow reads must be equal to themselves (NaN is not) and must not change."
                    )
                self._compile()
            assert self._loaded is not None
            return self._loaded

    def _compile(self) -> None:
        m = self._trace.model()
        weights = self._trace.weights.arrays(p.name for p in m.params)
        self._loaded = _Loaded(self._build(m), weights, self._trace.accessors)
        self.compilations += 1


class _Loaded:
    """Object code, weights and linearizer, ready to be called."""

    def __init__(self, compiled: Compiled, weights: Mapping[str, Array], accessors: Any) -> None:
        from cortex.codegen.llvm.load import load

        self.compiled = compiled
        m, f = compiled.model, compiled.func
        self.names = tuple(s.name for s in m.states)
        self.params = interp.derived(m, weights)
        align = max((b.align for b in f.buffers if b.scope is Scope.FIELD), default=1)
        self.linearizer = linearizer(m, accessors, align=align)
        code = load(compiled.code)
        read = {n.buffer for s in f.body for n in walk(s) if isinstance(n, Load)}
        packed = {p.buffer: pack(p, self.params) for p in f.packings}
        arrays: list[tuple[Any, ...]] = [("index", i.name) for i in f.index_functions]
        arrays += [_entry(m, b, self.params, packed, read) for b in f.buffers if b.scope is not Scope.REGISTER]
        self.program = _native.Program(
            self.linearizer,
            {"entry": code.address, "keepalive": code, "sizes": list(f.sizes), "arrays": arrays},
        )

    def linear_form(self, batch: Any) -> LinearForm:
        """The linear form of a request as arrays."""
        return LinearForm(**self.linearizer.linearize(batch))


def _entry(m: ra.Model, b: Buffer, params: Mapping[str, Array], packed: Mapping[str, Array], read: set[str]) -> tuple[Any, ...]:
    """How the native call finds the memory of a buffer."""
    match b.scope:
        case Scope.PARAM:
            return "weight", padded(params[b.name] if b.name in read else np.zeros(1), b.align)
        case Scope.PACKED:
            return "weight", padded(packed[b.name], 1)
        case Scope.FIELD:
            return "field", b.name.removeprefix("field_")
        case Scope.STATE:
            state = next(s for s in m.states if f"state_{s.name}" == b.name)
            return "state", state.name, state.type.shape, _row(b)
        case _:
            rows = b.shape[0] if b.shape else Int(1)
            return ("scratch", rows.name, _row(b)) if isinstance(rows, Var) else ("scratch", None, _elements(b))


def _row(b: Buffer) -> int:
    """Elements of one row of a buffer, padding included."""
    return _elements(Buffer(b.name, b.dtype, b.shape[1:], b.scope, b.align))


def _elements(b: Buffer) -> int:
    extents = [e.value for e in b.shape if isinstance(e, Int)]
    if extents:
        extents[-1] = -(-extents[-1] // b.align) * b.align
    return int(np.prod(extents, dtype=np.int64))


def _roots(batch: Any) -> list[Any]:
    """The root nodes of a request, as objects."""
    return list(batch.root_nodes()) if isinstance(batch, Forest) else list(batch)


def _is_batch(structures: Any) -> bool:
    """Lists and tuples themselves are batches; subclasses of them (as some tree classes are) are structures."""
    return type(structures) in (list, tuple) or isinstance(structures, Forest)
