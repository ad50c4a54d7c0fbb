"""Compiled models that the interpreter of RA runs: all of Cortex but the making of code, in a fraction of the time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import cortex.compiler
from cortex.codegen.object_code import ObjectCode
from cortex.lower.linear_form import LinearForm
from cortex.lower.lower import lower
from cortex.plan import Plan
from cortex.ra import interp
from cortex.ra import ir as ra
from cortex.ra.simplify import simplify
from cortex.runtime.executable import Compiled
from cortex.runtime.loaded import Loaded
from cortex.runtime.output import PlainRun
from cortex.runtime.signature import Signature
from cortex.schedule.schedule import Schedule


class Interpreted:
    """Stands for object code: the linear form of a request is the real one, states are those of the interpreter."""

    def __init__(self, loaded: Loaded) -> None:
        self._loaded = loaded

    def run(self, structures: Any, single: bool, threads: int = 1, out: Any = None) -> PlainRun:
        """The states of a request."""
        form = LinearForm(**self._loaded.linearizer.linearize(structures, threads))
        m = self._loaded.compiled.model
        states = interp.run(m, self._loaded.params, form)
        roots = form.arrays["root"]
        at_roots = [states[s.name][roots[0] if single else roots].astype("f4") for s in m.outputs]
        at_nodes = [states[s.name][form.arrays["order"]].astype("f4") for s in m.outputs]
        return PlainRun(tuple(at_roots), tuple(at_nodes))


def _build(m: ra.Model, plan: Plan) -> Compiled:
    m = simplify(m)
    f = lower(m, plan.lanes)
    code = ObjectCode(b"", m.name, plan.target, lambda: "")
    return Compiled(m, Schedule(), (), Signature.of(f), code, (), lambda: f)


@contextmanager
def interpreting() -> Iterator[None]:
    """Models that are compiled in this block are interpreted."""
    with (
        patch.object(cortex.compiler, "build", _build),
        patch.object(Loaded, "_load_object", lambda x, _: Interpreted(x)),
    ):
        yield
