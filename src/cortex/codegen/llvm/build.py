"""From ILIR to object code."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import llvmlite.binding as llvm

from cortex.codegen.llvm.host import start_llvm
from cortex.codegen.llvm.module import module_text
from cortex.codegen.object_code import ObjectCode
from cortex.codegen.target import Target
from cortex.errors import InternalError
from cortex.ilir.ir import Func

_emitting = threading.Lock()
SWITCHED_OFF = ("disable-machine-licm", "disable-lsr")


def build(f: Func, target: Target) -> ObjectCode:
    """Compile `f`, which has no transcendental functions left, for `target`."""
    start_llvm(target)
    text = module_text(f, target)
    machine = _machine(target)
    module = _optimized(text, machine)
    with _our_code_generator():
        return ObjectCode(machine.emit_object(module), f.name, target, lambda: text)


def assembly(text: str, target: Target) -> str:
    """The machine code of an LLVM module as text."""
    start_llvm(target)
    machine = _machine(target)
    module = _optimized(text, machine)
    with _our_code_generator():
        return str(machine.emit_assembly(module))


@contextmanager
def _our_code_generator() -> Iterator[None]:
    """LLVM without two of its passes on loops, while our own code is emitted; the options are the process's.

    One hoists loads of constants out of all loops: those of an epilogue then occupy the registers of the tile in the
    loops over K before it, which spill. The other finds cheaper ways to count; it takes 40% of the time of emitting.
    """
    with _emitting:
        for name in SWITCHED_OFF:
            llvm.set_option("cortex", f"-{name}=true")
        try:
            yield
        finally:
            for name in SWITCHED_OFF:
                llvm.set_option("cortex", f"-{name}=false")


def _machine(target: Target) -> llvm.TargetMachine:
    return llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=target.features, opt=2, reloc="pic", codemodel="small"
    )


def _optimized(text: str, machine: llvm.TargetMachine) -> llvm.ModuleRef:
    try:
        module = llvm.parse_assembly(text, llvm.create_context())
        module.verify()
    except RuntimeError as error:
        raise InternalError(f"the generated LLVM module is not valid: {error}") from None
    # Registers of the program are small arrays on the stack until here; LLVM has to see that they are values. Nothing
    # else is needed: addresses were simplified and loops unrolled and vectorized by the schedule, and LLVM's code
    # generator removes common subexpressions of the blocks that loops consist of.
    passes = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=1))
    manager = llvm.create_new_function_pass_manager()
    manager.add_sroa_pass()
    for function in module.functions:
        if not function.is_declaration:
            manager.run(function, passes)
    return module
