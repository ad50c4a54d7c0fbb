"""From ILIR to object code."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import llvmlite.binding as llvm
from llvmlite.binding.newpassmanagers import NewPassManager

from cortex.codegen.llvm.host import start_llvm
from cortex.codegen.llvm.module import module_text
from cortex.codegen.object_code import ObjectCode
from cortex.codegen.target import Target
from cortex.errors import InternalError
from cortex.ilir.ir import Func

_emitting = threading.Lock()


def build(f: Func, target: Target) -> ObjectCode:
    """Compile `f`, which has no transcendental functions left, for `target`."""
    start_llvm(target)
    text = module_text(f, target)
    machine = _machine(target)
    module = _optimized(text, machine)
    with _constants_stay_in_memory():
        return ObjectCode(machine.emit_object(module), f.name, target, lambda: text)


def assembly(text: str, target: Target) -> str:
    """The machine code of an LLVM module as text."""
    start_llvm(target)
    machine = _machine(target)
    module = _optimized(text, machine)
    with _constants_stay_in_memory():
        return str(machine.emit_assembly(module))


@contextmanager
def _constants_stay_in_memory() -> Iterator[None]:
    """Keep the constants of an epilogue out of registers while the loops over K before it run.

    LLVM hoists loads of constants out of all loops; the registers they occupy are those of the tile, which then
    spills. The option is the process's, so it is set for our own code only.
    """
    with _emitting:
        llvm.set_option("cortex", "-disable-machine-licm=true")
        try:
            yield
        finally:
            llvm.set_option("cortex", "-disable-machine-licm=false")


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
    # LLVM's simplification of one function at -O1 is all that is needed: there is one function of any size, which is
    # not to be inlined, and loops have been unrolled and vectorized by the schedule. -O2 takes twice the time.
    options = llvm.create_pipeline_tuning_options(speed_level=1)
    options.loop_unrolling = False
    passes = llvm.create_pass_builder(machine, options)
    manager = passes.getFunctionPassManager()
    try:
        for function in module.functions:
            if not function.is_declaration:
                manager.run(function, passes)
    finally:
        NewPassManager._dispose(manager)  # llvmlite has this method hidden by another, and never gives back memory
        manager.detach()
    return module
