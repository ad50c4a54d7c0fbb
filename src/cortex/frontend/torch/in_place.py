"""Changes of what another call has stored, where the order of calls is determined.

    left, right = self.up(node.left), self.up(node.right)
    node.left.h += right                    # `left` is changed too, if `up` returns what it stores

A caller may change what a call that it has made itself has returned and stored: nobody else reads that. So all reads of
such an attribute have to be those of the caller, and a node has to have one caller, which the linearizer checks. Within
the caller's trace all names of a tensor are one object. Which names those are (`Role.sharing`) has to be the same for
all calls of a role. Anything else is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from cortex.errors import ModelError
from cortex.frontend.signals import Restart
from cortex.frontend.spans import user_span
from cortex.frontend.torch.roles import Part, Role
from cortex.frontend.torch.shared_tensors import lost
from cortex.frontend.torch.steps import Steps
from cortex.ir.source import Span

if TYPE_CHECKING:
    from cortex.frontend.torch.tracing import TorchBuilder

Names: TypeAlias = tuple[str, ...]


class InPlace:
    """The attributes that callers change in place, and where each is changed first."""

    def __init__(self) -> None:
        self.names: dict[str, Span | None] = {}

    def forget(self) -> None:
        """The nodes become others."""
        self.names.clear()

    def change(self, b: TorchBuilder, role: Role, steps: Steps, part: Part) -> None:
        """A part of what a call has returned or stored is changed: follow that from now on, if it can be."""
        names = role.stored_with(part)
        if names and set(names) <= self.names.keys():
            b.knowledge.trees_only = True
        elif names and _is_callers(b, role, steps):
            self._follow(b, names, user_span())

    def is_set_by_caller(self, b: TorchBuilder, steps: Steps, name: str, span: Span | None) -> bool:
        """Is it the caller that has set an attribute of another node anew? Follow that from now on."""
        calls = (cut.role for cut in b.cuts if cut.steps == steps and name in cut.role.stored)
        if not any(_is_callers(b, role, steps) for role in calls):
            return False
        if name not in self.names:
            self._follow(b, (name,), span)
        b.knowledge.trees_only = True
        return True

    def _follow(self, b: TorchBuilder, names: Names, span: Span | None) -> None:
        self.names |= dict.fromkeys(names, span)
        for role in b.model.roles:
            role.sharings.clear()
        raise Restart

    def is_followed(self, names: Names) -> bool:
        """Are changes of all these attributes followed?"""
        return bool(names) and set(names) <= self.names.keys()

    def refuse_other_readers(self, b: TorchBuilder, role: Role | None, steps: Steps, name: str, what: str) -> None:
        """Refuse the changes of an attribute that somebody else than the caller reads."""
        if name in self.names and (role is None or not _is_callers(b, role, steps)):
            raise ModelError(lost(what), self.names[name])


def _is_callers(b: TorchBuilder, role: Role, steps: Steps) -> bool:
    """Has this call made the call, and is it the same tensors that all such calls return and store?"""
    is_made = any(cut.role is role and cut.steps == steps for cut in b.cuts)
    return is_made and b.model.mode != "calls" and role.sharing is not None
