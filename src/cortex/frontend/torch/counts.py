"""`len(node.children)` in a module: the number, which knows from which list it is (arity/told.py)."""

from __future__ import annotations

from typing import Any

from cortex.frontend.arity.told import Count
from cortex.frontend.builder import builder, is_tracing
from cortex.frontend.computed import Computed
from cortex.frontend.spans import user_span
from cortex.frontend.torch.node_lists import NodeList, NodeTuple
from cortex.frontend.torch.steps import LENGTH, Steps
from cortex.ra.ir import Length


class StepWriter:
    """Steps from the node to what is computed from a length."""

    def computed(self, fn: str, operands: tuple[Any, ...]) -> Steps:
        """`fn` of what other steps lead to, and of constants."""
        return (Computed(fn, operands, user_span()),)

    def name(self, operand: Steps) -> str:
        """The attribute that has these steps for a meaning."""
        tracer: Any = builder()
        name: str = tracer.accessors.name(operand)
        tracer.knowledge.read.setdefault(name)
        return name

    def field(self, operand: Steps) -> Any:
        """The field that has these steps for a meaning."""
        from cortex.frontend.torch.standins import present, tracing

        return present(tracing(), operand)

    def number(self, operand: Steps) -> Any:
        """The same, as a number."""
        tracer: Any = builder()
        return tracer.language.as_number(self.field(operand))


def counted(x: NodeList | NodeTuple) -> int:
    """The length of a list of nodes."""
    if not is_tracing():
        return len(x)
    tracer: Any = builder()
    steps = x._cortex_steps
    name, path = tracer.where(steps)
    if path or tracer.facts.known.get(Length(name)) != len(x):
        return len(x)
    return Count.of(len(x), name, StepWriter(), (*steps, LENGTH))
