"""What a call stores before it makes calls that read it: `node.h = ...`, and then `self(child)` reads `node.parent.h`.

A call is traced when the forms of the results of those that it makes are known. Such calls wait for each other: each
needs the form of the other one's result, or of what it stores. Then the form of what has been stored by the time of a
call is taken for the form of all that is stored there; where it is another one in the end, the module is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cortex.frontend.signals import Restart
from cortex.ra.ir import TensorType

if TYPE_CHECKING:
    from cortex.frontend.torch.roles import Role
    from cortex.frontend.torch.tracing import TorchBuilder


class StoredBefore:
    """Whether calls are known to wait for each other so, and how many attributes were known when that was asked."""

    def __init__(self) -> None:
        self.is_known = False
        self._count = 0

    def learn(self, roles: list[Role]) -> None:
        """Every call waits for another one: trace again, unless nothing more has become known since the last time."""
        count = sum(len(role.stored) for role in roles)
        if not self.is_known or count > self._count:
            self.is_known, self._count = True, count
            raise Restart

    def note(self, b: TorchBuilder) -> None:
        """A call comes to wait for the result of another one."""
        if not self.is_known:
            return
        for name, stored in b.results().items():
            form, parts = b.values(stored, b.role.numbers.get(name, ()))
            if name not in b.role.stored and form.count:
                b.role.stored[name] = form
                names = b.role.stored_names(b.model.prefix(b.role), name)
                b.role.types |= {n: TensorType(value.shape) for n, value in zip(names, parts, strict=True)}
