"""`type(node)` in a model: Python gives the class of the stand-in without asking it, so it is found in the code."""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterator
from itertools import pairwise
from types import CodeType
from typing import Any

from cortex.frontend.beyond import beyond_at
from cortex.frontend.node_identity import refuse_identity
from cortex.frontend.spans import span_at

REMEDY = (
    "a model is traced with stand-ins for the nodes. Make the class a field, "
    'fields={"kind": lambda node: type(node).__name__}, and compare it: node.kind == "Join".'
)
LOADS = ("LOAD_FAST", "LOAD_DEREF")


def refuse_unseen_questions(function: Callable[..., Any], node: str) -> None:
    """Refuse what Python answers without asking stand-ins: the class of one, and whether two are one."""
    refuse_type_of_node(function.__code__, node)
    refuse_identity(function)


def refuse_type_of_node(code: CodeType, node: str) -> None:
    """Refuse `type(node)` and `type(node.left)` for `node`, the model's first parameter, and for what is iterated."""
    for inner in _codes(code):
        found = list(dis.get_instructions(inner))
        nodes = {node, *(b.argval for a, b in pairwise(found) if a.opname == "FOR_ITER" and b.opname == "STORE_FAST")}
        for at, instruction in enumerate(found):
            if instruction.opname != "LOAD_GLOBAL" or instruction.argval != "type":
                continue
            rest = iter(found[at + 1 :])
            first = next(rest)
            call = next(i for i in rest if i.opname not in ("LOAD_ATTR", "PRECALL"))
            if first.opname in LOADS and first.argval in nodes and call.opname == "CALL":
                raise beyond_at(f"the class of a node is asked for, and {REMEDY}", span_at(inner, call.offset))


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The function's code and that of the comprehensions and functions inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)
