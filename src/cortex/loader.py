"""load(): a saved model as a callable."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal, overload

import numpy as np

from cortex import __version__
from cortex.cache.key import contents as compiler_contents
from cortex.codegen.gpu.target import GpuTarget
from cortex.codegen.target import Target
from cortex.compiler import build, with_code
from cortex.errors import ModelError
from cortex.frontend.torch.accessors import TorchAccessors
from cortex.frontend.weights import Weights
from cortex.plan import Plan, Wishes, for_table
from cortex.ra import ir as ra
from cortex.ra.table_model import table_model
from cortex.recursion.tabulate_leaf_products import TabulateLeafProducts
from cortex.runtime.executable import Compiled, Executable
from cortex.runtime.known_kinds import KnownKinds
from cortex.runtime.linearize import names_read
from cortex.runtime.loaded_module import LoadedModule
from cortex.saved.names import restore_names
from cortex.saved.read import UNREADABLE, Program, Saved, SavedPart, not_understood, read
from cortex.saved.write import Wanted

Children = str | tuple[str, ...] | Callable[[Any], Iterable[Any]] | None
Fields = Mapping[str, Any] | None


@overload
def load(
    path: str | os.PathLike[str],
    *,
    children: Children = None,
    fields: Fields = None,
    threads: int | None = None,
    as_torch: Literal[True],
) -> LoadedModule: ...
@overload
def load(
    path: str | os.PathLike[str],
    *,
    children: Children = None,
    fields: Fields = None,
    threads: int | None = None,
    as_torch: bool = False,
) -> Executable | LoadedModule: ...
def load(
    path: str | os.PathLike[str],
    *,
    children: Children = None,
    fields: Fields = None,
    threads: int | None = None,
    as_torch: bool = False,
) -> Executable | LoadedModule:
    """The compiled model that `fast.save(path)` wrote; it computes the same, to the bit.

    `children` and `fields` are those of `cortex.compile`. What was said by attribute names is in the file; what was
    said by functions is not, and has to be given again. `threads` is as many as it was compiled for, unless given.

    The object code in the file is used if the processor has all instructions that it was made for, and this is the
    Cortex that made it. Else the model, which is in the file too, is compiled again; on another processor, results may
    then differ in the last bits. Nodes of kinds that were not known when it was saved are refused. A model that is for
    a device (target="opencl" or "cuda") is compiled for it again.

    A saved torch module is called as the module was, and returns NumPy arrays in the module's own form: torch is not
    loaded. With `as_torch` it is, and the arrays are torch tensors. Results that are named tuples or dataclasses are so
    again if their class is loaded by then; else they are tuples and dictionaries.

    The file holds machine code, which runs with the rights of this process: load only files that you would run as
    programs. A file that was damaged or edited is refused, but no check tells who wrote it. `cortex inspect` runs
    nothing.
    """
    saved = read(path)
    what = f"cortex.load({saved.what})"
    if as_torch and saved.interface is None:
        raise ModelError(
            f"{what}, as_torch=True: model '{saved.parts[0].model.name}' is no torch module, "
            "and gives NumPy arrays. Leave as_torch out."
        )
    made = []
    for part in saved.parts:
        accessors = restore_names(part.names, children, fields, what, names_read(part.model, part.checked))
        roots: Callable[[Iterable[Any]], list[Any]] = list
        try:
            if part.serving is not None:
                assert isinstance(accessors, TorchAccessors)
                roots = part.serving.roots
                for name, relation in part.serving.relations.items():
                    accessors.relate(name, relation)
            kinds = KnownKinds(part.model, part.checked, Weights(part.weights), accessors, roots)
            made.append((part.serving, executable(saved, part, kinds, threads)))
        except UNREADABLE:  # all parts of the description can be read, and they do not belong together
            raise not_understood(saved.what, saved.wanted.cortex) from None
    if saved.interface is None:
        return made[0][1]
    tensor: Callable[[Any], Any] = np.asarray
    if as_torch:
        from cortex.frontend.torch.torch_entry import tensor_of as tensor
    serving = [(serving, run) for serving, run in made if serving is not None]
    return LoadedModule(saved.interface, serving, tensor, replace(saved.wanted, cortex=__version__).save)


def executable(saved: Saved, part: SavedPart, kinds: KnownKinds, threads: int | None) -> Executable:
    """A part of a file, ready to be called."""
    if saved.wanted.device is not None:
        return _on_device(replace(saved.wanted, cortex=__version__), saved.wanted.device, kinds, threads)
    wanted, host = replace(saved.wanted, cortex=__version__), Target.host()
    wishes = Wishes(table_bytes=wanted.table_bytes)
    plan = Plan(host, wanted.recursion, wanted.choices, wanted.schedule, wishes, narrow=wanted.narrow)
    made = None
    if saved.compiler and saved.compiler == compiler_contents():
        program = None if part.program is None else part.program()
        if program is not None and program.target.runs_here():
            taken = any(isinstance(step, TabulateLeafProducts) for step in program.entry.schedule.steps)
            plan = replace(plan, wishes=replace(wishes, leaf_products=taken))  # for more threads, the same bits
            code = _with_code(part.model, replace(plan, target=program.target, threads=part.built_for), program)
            made = code, part.built_for
    return Executable(
        kinds,
        lambda m, threads: build(m, replace(plan, threads=threads)),
        part.threads if threads is None else threads,
        lambda m: build(m, plan.in_f32(m)),
        wanted.save,
        made,
    )


def _on_device(wanted: Wanted, device: GpuTarget, kinds: KnownKinds, threads: int | None) -> Executable:
    """A part of a file that is for a device: kernels are text, and the device's own compiler keeps what it has made."""
    from cortex.device_compiler import DevicePlan, build_kernels

    plan = DevicePlan.of(device, wanted.recursion, None, wanted.schedule, 1 if threads is None else threads)
    return Executable(kinds, lambda m, _: build_kernels(m, plan), save=wanted.save)


def _with_code(m: ra.Model, plan: Plan, program: Program) -> Compiled:
    pairs = zip(program.entry.model.tables, program.tables, strict=True)
    tables = tuple(_filling(table_model(program.entry.model, t), plan, p) for t, p in pairs)
    return with_code(m, plan, program.entry, tables)


def _filling(m: ra.Model, plan: Plan, program: Program) -> Compiled:
    """The program that fills a table. It is for the machine that compiled, which may have been another one."""
    if not program.target.runs_here():
        return build(m, for_table(plan.target))
    return _with_code(m, for_table(program.target), program)
