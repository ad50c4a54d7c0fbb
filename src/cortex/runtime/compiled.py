"""What the compiler made of a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from cortex.codegen.gpu.device_code import DeviceCode
from cortex.codegen.object_code import ObjectCode
from cortex.cost.choose import Considered
from cortex.errors import ModelError
from cortex.ilir.ir import Func
from cortex.ra import ir as ra
from cortex.runtime.signature import Signature
from cortex.schedule.schedule import Schedule


@dataclass(frozen=True)
class Compiled:
    """What the compiler made of a model: the program before and after scheduling, and its code.

    Calls need the signature of the program only. `make_func` gives the program itself, compiled again up to code
    generation where the code is older than this process.
    """

    model: ra.Model
    schedule: Schedule
    considered: tuple[Considered, ...]  # what the automatic scheduler thought of
    signature: Signature
    code: ObjectCode | DeviceCode
    tables: tuple[Compiled, ...]  # the programs that fill the model's tables, in order
    make_func: Callable[[], Func] = field(compare=False, repr=False)

    @property
    def object_code(self) -> ObjectCode:
        """The code of a program for processors."""
        if isinstance(self.code, DeviceCode):
            raise ModelError(
                f"{self.model.name} was compiled for {self.code.target}, and this needs object code for a processor: "
                "leave out `target`, or name another one that `cortex targets` lists."
            )
        return self.code

    @cached_property
    def func(self) -> Func:
        """The program that the code computes."""
        return self.make_func()
