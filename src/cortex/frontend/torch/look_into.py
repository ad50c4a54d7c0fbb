"""What a call leaves behind for the next one on the same node: in collections that are passed along, on the node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cortex.errors import ModelError
from cortex.frontend.builder import Value
from cortex.frontend.signals import Restart
from cortex.frontend.spans import span_of_function
from cortex.frontend.torch.collected import Collecting, collect_from_argument, is_longer, learn_argument
from cortex.frontend.torch.collections_passed import FRESH, Content
from cortex.frontend.torch.forms import Form
from cortex.frontend.torch.roles import remembered
from cortex.frontend.torch.unknown import Memo, Unknown, Visited

if TYPE_CHECKING:
    from cortex.frontend.torch.tracing import TorchBuilder


def look_into(b: TorchBuilder, name: str, value: Any, result: Any) -> None:
    """See what a call has put into a collection that it was given; refuse what its callers would have to know of."""
    token = b.role.given[name]
    assert b.role.routine is not None
    span = span_of_function(b.role.routine.function.__code__)
    if isinstance(token, Content) and not token.is_that_of(value):
        raise ModelError(
            f"recursive calls change their argument '{name}', a {type(token.value).__name__}, which the caller would "
            "see. Return what they compute instead, and let the caller use that.",
            span,
        )
    if isinstance(token, Collecting):
        collect_from_argument(b, name, value)
    if token is list and value:
        learn_argument(b, name)
    if isinstance(value, dict | set) and token in FRESH:
        if all(type(key) is Unknown for key in value):
            return
        if (
            isinstance(value, dict)
            and (key := next((k for k in b.keys(()) if dict.__contains__(value, k)), None)) is not None
        ):
            b.store((), remembered(name), value[key])
        if name not in b.role.changes:
            b.role.changes.add(name)
            raise Restart
        own = b.keys(())
        kept = next((value[k] for k in own if dict.__contains__(value, k)), None) if isinstance(value, dict) else None
        if _asks_for_own(b, value) and (kept is None or named(b.values(kept)) != named(b.values(result))):
            raise ModelError(
                f"a call looks into '{name}' whether its node was there before, and would then return something "
                "else than the first time. A shared node has one result here: remember that in a dictionary "
                "(memo[id(node)] = h), and return it.",
                span,
            )


def refuse_other_result_next_time(b: TorchBuilder, result: Any, arguments: dict[str, Any]) -> None:
    """Refuse a call that reads what an earlier call on its node has set there, and does something else then.

    Remembering is accepted: `if hasattr(node, "h"): return node.h`. A count of visits is not.
    """
    early = [f"node.{name}" for name in b.results() if name in b.early]
    early += [f"'{name}'" for name in b.role.changes if _asks_for_own(b, arguments[name])]
    if not early:
        return
    routine = b.role.routine
    assert routine is not None
    found = _left(b, result)
    facts, cuts = dict(b.facts.known), list(b.cuts)
    again = _left(b, routine.run(arguments))
    b.facts.known, b.cuts = facts, cuts
    if again != found:
        raise ModelError(
            f"{routine.label} reads {early[0]} before it sets it, and computes something else for a node that it "
            "has been called on before. A node has one result here, whether it is shared or asked for again. Set "
            f"{early[0]} before it is read, or return what was remembered: if hasattr(node, 'h'): return node.h.",
            span_of_function(routine.function.__code__),
        )


def _asks_for_own(b: TorchBuilder, value: Any) -> bool:
    """Was it looked up in a collection whether the node of this call was there before?"""
    own = b.keys(())
    return isinstance(value, Memo | Visited) and any(key is k or key == k for key in value.asked for k in own)


def _left(b: TorchBuilder, result: Any) -> list[tuple[Form, list[str]]]:
    """What a call returns and what it has set on its node."""
    return [named(b.values(value)) for value in (result, *b.results().values())]


def refuse_change(b: TorchBuilder, name: str, value: Any, before: tuple[Form, list[Value]]) -> None:
    """Refuse a call that has changed a computed value that it was given; lists may grow (see collected.py)."""
    if is_longer(value, before[0]):
        learn_argument(b, name)
    if named(b.values(value)) != named(before):
        assert b.role.routine is not None
        raise ModelError(
            f"recursive calls change their argument '{name}', which the caller would see. Return the new value "
            "instead, and let the caller use that.",
            span_of_function(b.role.routine.function.__code__),
        )


def named(values: tuple[Form, list[Value]]) -> tuple[Form, list[str]]:
    """The values by the names of their lets."""
    return values[0], [value.name for value in values[1]]
