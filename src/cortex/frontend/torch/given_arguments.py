"""What a role knows of the arguments of its calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cortex.frontend.spans import fail
from cortex.frontend.torch.collections_passed import CONSTANTS, FRESH, Content, content_of_object
from cortex.frontend.torch.forms import Form
from cortex.frontend.torch.language import is_of_request
from cortex.frontend.torch.node_lists import NodeList, NodeTuple
from cortex.frontend.torch.roles import Inherited, Passed
from cortex.frontend.torch.standins import TorchNode

if TYPE_CHECKING:
    from cortex.frontend.torch.tracing import TorchBuilder


def given_argument(b: TorchBuilder, name: str, value: Any, forms: dict[str, Form]) -> Any:
    """What a role knows of an argument whose form is in `forms` if it is computed."""
    if name in forms:
        return Passed(forms[name])
    if is_of_request(value):
        return Inherited(value._cortex_key)
    if isinstance(value, TorchNode | NodeList | NodeTuple):
        raise fail(f"argument '{name}' of a recursive call is a node too; one node per call is accepted.")
    if type(value) is tuple:
        return Content.of(value) or value
    if type(value) in CONSTANTS:
        return value
    if not isinstance(value, FRESH):
        return value if b.model.entry.holds(value) else content_of_object(name, value) or value
    kind = next(kind for kind in FRESH if isinstance(value, kind))
    if b.is_memo(value):
        return kind
    content = Content.of(value)
    if content is None:
        raise fail(
            f"argument '{name}' of a recursive call is a {kind.__name__} that holds other things than constants or "
            "tensors. Pass them as arguments of their own, or store them on the node."
        )
    return content
