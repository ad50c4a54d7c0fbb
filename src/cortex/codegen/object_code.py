"""Object code, and the text it was made from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from cortex.codegen.target import Target


@dataclass(frozen=True)
class ObjectCode:
    """A relocatable object file without undefined symbols, which any process on such a machine may load.

    `entry` is the name of its function, `make_text` gives the LLVM module it was made from.
    """

    code: bytes
    entry: str
    target: Target
    make_text: Callable[[], str] = field(compare=False, repr=False)

    @property
    def text(self) -> str:
        """The LLVM module; made anew where the code is older than this process."""
        return self.make_text()

    def assembly(self) -> str:
        """The machine code as text; compiled anew, as it is asked for only by reports and tests."""
        from cortex.codegen.llvm.build import assembly

        return assembly(self.text, self.target)
