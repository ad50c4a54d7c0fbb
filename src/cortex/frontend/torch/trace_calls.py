"""What tracing by calls says of a model function, for a run of it that is not compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cortex.frontend.knowledge import Knowledge
from cortex.frontend.torch.entry import Signature
from cortex.frontend.torch.function_entry import FunctionEntry
from cortex.frontend.torch.model import TorchModel
from cortex.frontend.trace import Trace
from cortex.frontend.weights import Weights

if TYPE_CHECKING:
    from cortex.frontend.model import RecursiveModel
    from cortex.frontend.uncompiled import Meaning


def knowledge_of_calls(
    model: RecursiveModel, weights: Weights, arguments: dict[str, Any], meaning: Meaning
) -> Knowledge:
    """What a trace of one call learns."""
    entry = FunctionEntry.of(model)
    interface = entry.interface([])
    given = interface.bind((), arguments)
    signature = Signature.of(entry, given, interface.constants(given, "constants"))
    trace = Trace(TorchModel(entry, signature), weights, meaning.fields, meaning.children)
    trace.see([signature.request(given)])
    return trace.knowledge
