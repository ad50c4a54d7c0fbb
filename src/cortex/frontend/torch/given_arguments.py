"""What a role knows of the arguments of its calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cortex.frontend.spans import fail
from cortex.frontend.torch.collections_passed import CONSTANTS, FRESH, Content, content_of_object
from cortex.frontend.torch.forms import Form
from cortex.frontend.torch.language import is_of_request
from cortex.frontend.torch.node_lists import NodeList, NodeTuple
from cortex.frontend.torch.roles import Inherited, Passed, Role
from cortex.frontend.torch.routines import Routine
from cortex.frontend.torch.standins import TorchNode

if TYPE_CHECKING:
    from cortex.frontend.torch.tracing import TorchBuilder


def with_tensors(b: TorchBuilder, routine: Routine, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call; one that other calls of the routine compute is a tensor, also if the request has it.

    before:  decode(tree, z), where z is given to forward, and decode(child, h)      two roles
    after:   both are passed a tensor                                                 one role
    """
    return {
        name: value._cortex_passed() if (routine.key, name) in b.model.computed and is_of_request(value) else value
        for name, value in arguments.items()
    }


def learn_computed(b: TorchBuilder, routine: Routine, given: dict[str, Any]) -> None:
    """Have an argument passed as a tensor from now on, if calls compute it, or compute more of it from call to call."""
    for name, value in given.items():
        others = [r.given.get(name) for r in b.model.roles if r.routine is not None and r.routine.key == routine.key]
        if _is_mixed([value, *others]) or (_is_applied(value) and _grows(value, others, b.role)):
            b.model.computed.add((routine.key, name))
            b.model.need_calls(again=True)


def _is_mixed(given: list[Any]) -> bool:
    return any(isinstance(x, Passed) for x in given) and any(isinstance(x, Inherited) for x in given)


def _grows(value: Inherited, others: list[Any], caller: Role) -> bool:
    """Is it computed from what was computed before, and another thing than in other calls of the routine?

    What the caller was given and passes on as it is does not grow.
    """
    if value in caller.given.values():
        return False
    return any(map(_is_applied, caller.given.values())) and any(_is_applied(x) and x != value for x in others)


def _is_applied(value: Any) -> bool:
    """Is it something that is computed row by row from a tensor of the request?"""
    return isinstance(value, Inherited) and hasattr(value.key[0], "function")


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
