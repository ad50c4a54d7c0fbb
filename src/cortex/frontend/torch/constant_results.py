"""Routines that return constants for some nodes: `if node.skip: return None`.

Callers go on in Python with such a result, so they have to know of it while they are traced. What the routine had asked
of its node when it returned the constant tells which nodes these are, and whoever calls it asks the same of the node
that it calls it on. Such a call is no node of the model.

before:  encode(child) -> a tensor or None
after:   None where child.skip is True, else a tensor
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cortex.errors import ModelError
from cortex.frontend.computed import Constant
from cortex.frontend.facts import ORDER
from cortex.frontend.signals import Restart
from cortex.frontend.torch.calls import HEAD, RESERVED
from cortex.frontend.torch.forms import Form
from cortex.frontend.torch.passed_numbers import Number, for_caller
from cortex.frontend.torch.steps import Attr, Steps
from cortex.ra.ir import Compares, Equals, Fact, IsNone, Length, Value

if TYPE_CHECKING:
    from cortex.frontend.torch.roles import Role
    from cortex.frontend.torch.tracing import TorchBuilder


def learn_constant(b: TorchBuilder, form: Form, what: str) -> None:
    """A call of the builder's role returns a constant; trace again if callers did not know of such nodes."""
    facts = tuple(fact for fact in b.facts.guard() if not _is_about_call(b, fact))
    if b.cuts or b.results() or b.has_met_constants or not all(_is_of_node(b, fact) for fact in facts):
        raise ModelError(
            f"{what} returns {form.text()} for some nodes and something else for others, and which nodes these are "
            "depends on other nodes, or it has stored something before. Decide it first, by fields of the node that "
            "it is called on (if node.skip: return None); or return zeros where there is nothing."
        )
    if facts not in b.role.constants:
        b.role.constants[facts] = form
        raise Restart


def constant_result(b: TorchBuilder, role: Role, steps: Steps, numbers: Mapping[str, Number]) -> Form | None:
    """The constant that a call on what the steps lead to returns, if it does; what decides it becomes a fact.

    `numbers` are those that the call is given.
    """
    for facts, form in role.constants.items():
        if all(_holds(b, steps, numbers, fact) for fact in facts):
            b.has_met_constants = True
            return form
    return None


def _is_about_call(b: TorchBuilder, fact: Fact) -> bool:
    """Is it about the call rather than about the node that it is made on?"""
    name = getattr(fact.test, "name", "")
    return name in RESERVED or b.accessors.name((Attr(HEAD),)) == name


def _is_of_node(b: TorchBuilder, fact: Fact) -> bool:
    """Is it about something that the node itself holds?"""
    test = fact.test
    known = IsNone | Value | Equals | Compares | Length
    return isinstance(test, known) and not test.path and b.accessors.is_way(test.name)


def _holds(b: TorchBuilder, steps: Steps, numbers: Mapping[str, Number], fact: Fact) -> bool:
    """Is the fact true of the call on the node that the steps lead to?"""
    test = fact.test
    assert isinstance(test, IsNone | Value | Equals | Compares | Length)
    asked = for_caller(b.accessors.steps(test.name), steps, numbers)
    if isinstance(asked, Constant):
        return bool(_answer(test, asked.value) == fact.answer)
    name, path = b.where(asked)
    if b.accessors.may_be_absent(test.name):
        b.accessors.may_lack(name)
    b.knowledge.read.setdefault(name)
    if not isinstance(test, IsNone):
        b.knowledge.tags.setdefault(name)
    answer = b.facts.ask(replace(test, name=name, path=path))
    return Fact(test, answer) == fact


def _answer(test: IsNone | Value | Equals | Compares | Length, value: Any) -> Any:
    """What is to be said to a question about a number that the caller knows."""
    match test:
        case Equals(_, other):
            return value == other
        case Compares(_, fn, bound):
            return ORDER[fn](value, bound)
    return value
