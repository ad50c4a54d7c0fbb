"""A model function that was compiled node by node, until a structure shows that its calls have to be seen."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from cortex.errors import ModelError
from cortex.frontend.beyond import Beyond
from cortex.frontend.weights import Source, Weights
from cortex.runtime.bound import Bound
from cortex.runtime.compiled_function import CompiledFunction
from cortex.runtime.device_report import DeviceReport
from cortex.runtime.executable import Executable
from cortex.runtime.loaded import Loaded
from cortex.runtime.output import Output
from cortex.runtime.part import Sink
from cortex.runtime.report import Report
from cortex.runtime.vjp import Pullback


class FunctionExecutable(Executable):
    """An executable that hands calls to a `CompiledFunction` from the first one on that needs it."""

    by_calls: CompiledFunction | None = None
    make_by_calls: Callable[[Weights], CompiledFunction]

    def __call__(self, structures: Any, *, out: Any = None, threads: int | None = None) -> Output:
        """States of the model at the root of each structure: see `Executable`."""
        if self.by_calls is not None and type(structures) is self._node_class and out is None and threads is None:
            found: Output = self.by_calls(structures)
            return found
        return super().__call__(structures, out=out, threads=threads)

    def _learning(self, batch: Any, single: bool, team: int, out: Any) -> Output:
        if self.by_calls is None:
            try:
                return super()._learning(batch, single, team, out)
            except Beyond:
                self._switch()
        assert self.by_calls is not None
        self._refuse_out(out)
        found: Output = self.by_calls(batch[0] if single else list(batch), threads=team)
        return found

    def _switch(self) -> None:
        self.by_calls = self.make_by_calls(self.given_weights)
        self._loaded = None

    def _refuse_out(self, out: Any) -> None:
        if out is not None:
            raise ModelError(
                f"out= is given to '{self._trace.name}', which is compiled by its calls; copy what it returns instead."
            )

    def _require(self) -> Loaded:
        return super()._require() if self.by_calls is None else self.by_calls.program._require()

    def bind(self, structures: Any, *, out: Any = None, threads: int | None = None) -> Bound:
        """`structures` made ready to be run many times: see `Executable.bind`."""
        if self.by_calls is not None:
            raise ModelError(f"'{self._trace.name}' is compiled by its calls, which cannot be bound; call it.")
        return super().bind(structures, out=out, threads=threads)

    def vjp(
        self, structures: Any, *, of: Sequence[str] | None = None, threads: int | None = None
    ) -> tuple[Output, Pullback]:
        """What a call returns, and a function from adjoints to gradients: see `Executable.vjp`."""
        try:
            if self.by_calls is None:
                return super().vjp(structures, of=of, threads=threads)
        except Beyond:
            pass
        raise ModelError(
            f"'{self._trace.name}' is compiled by its calls, which have no gradients yet; what it is passed, or calls "
            "besides itself, would have to be written as states of its children."
        )

    def report(self, structures: Any) -> Report | DeviceReport:
        """What a request is made of and where its time goes: see `Executable.report`."""
        return super().report(structures) if self.by_calls is None else self.by_calls.report(structures)

    def explain(self, structures: Any = None) -> str:
        """The predicted time of each phase and why: see `Executable.explain`."""
        if self.by_calls is None:
            return super().explain(structures)
        return self.by_calls.program.explain() if structures is None else self.by_calls.explain(structures)

    def update(self, weights: Source, *, optional: Collection[str] = ()) -> None:
        """Use other weights of the same names and shapes from now on: see `Executable.update`."""
        if self.by_calls is not None:
            self.by_calls.update(weights)
        else:
            super().update(weights, optional=optional)

    def save(
        self, file: Sink, *, cpus: Sequence[str] | str | None = None, threads: Sequence[int] | int | None = None
    ) -> None:
        """Write the compiled model and its weights to a file, for `cortex.load`: see `Executable.save`."""
        if self.by_calls is not None:
            self.by_calls.save(file, cpus=cpus, threads=threads)
        else:
            super().save(file, cpus=cpus, threads=threads)
