"""All of a saved model: its kinds, its schedule and its weights, and the compiler where the code does not fit."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from cortex import __version__
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
from cortex.runtime.code_format import CODE_FORMAT
from cortex.runtime.executable import Compiled, Executable
from cortex.runtime.known_kinds import KnownKinds
from cortex.runtime.linearize import names_read
from cortex.runtime.loaded_module import LoadedModule
from cortex.runtime.part import Made
from cortex.runtime.threads import checked_threads
from cortex.saved.head import File, not_understood
from cortex.saved.names import restore_names
from cortex.saved.read import UNREADABLE, Program, Saved, SavedPart, SavedProgram, read_all, ready_of
from cortex.saved.write import Wanted

Children = str | tuple[str, ...] | Callable[[Any], Iterable[Any]] | None
Fields = Mapping[str, Any] | None


log = logging.getLogger("cortex")


def restore(
    file: File, children: Children, fields: Fields, threads: int | None, as_torch: bool, trust_code: bool
) -> Executable | LoadedModule:
    """All of the model in a file; see `cortex.load` for the arguments."""
    saved = read_all(file)
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
            kinds = KnownKinds(part.model, part.checked, Weights.unwritten(part.weights), accessors, roots)
            made.append((part.serving, executable(file, saved, part, kinds, threads, trust_code)))
        except UNREADABLE:  # all parts of the description can be read, and they do not belong together
            raise not_understood(saved.what, saved.wanted.cortex) from None
    if saved.interface is None:
        return made[0][1]
    tensor: Callable[[Any], Any] = np.asarray
    if as_torch:
        from cortex.frontend.torch.torch_entry import tensor_of as tensor
    serving = [(serving, run) for serving, run in made if serving is not None]
    return LoadedModule(saved.interface, serving, tensor, replace(saved.wanted, cortex=__version__).save)


def executable(
    file: File, saved: Saved, part: SavedPart, kinds: KnownKinds, threads: int | None, trust_code: bool
) -> Executable:
    """A part of a file, ready to be called."""
    wanted = replace(saved.wanted, cortex=__version__)
    if wanted.device is not None:
        log.info("%s: '%s' is compiled for the device %s", saved.what, part.model.name, wanted.device)
        return _on_device(wanted, wanted.device, kinds, threads)
    number = part.threads if threads is None else checked_threads(threads)
    traced, what = part.model, saved.what  # who builds more has no use for the weights in the file
    usable = _usable(saved, part, trust_code)
    made = _best(usable, number)
    plans = _Plans(wanted, made)
    used = None if made is None else Made(plans.compiled(part.model, made), made.threads, ready_of(file, made))

    def build_here(m: ra.Model, team: int) -> Compiled:
        """The program of the file for so many threads, where it has one; else it is compiled."""
        found = next((p for p in usable if (p.threads > 1) == (team > 1)), None) if m == traced else None
        if found is not None:
            return plans.compiled(m, found)
        log.info("%s: '%s' is compiled for threads=%d, which the file has no code for", what, m.name, team)
        return build(m, plans.of(threads=team))

    return Executable(
        kinds,
        build_here,
        number,
        lambda m: build(m, plans.of().in_f32(m)),
        wanted.save,
        used,
        build_like=lambda m, team, target, _: build(m, plans.of(target, team)),
    )


def _usable(saved: Saved, part: SavedPart, trust_code: bool) -> list[SavedProgram]:
    """The programs of a file that run here, the widest vectors first; where there are none, it is told why."""
    machines = ", ".join(sorted({str(p.target) for p in part.programs}))
    if not trust_code:
        why = "trust_code=False"
    elif saved.code_format != CODE_FORMAT:
        why = f"its code has format {saved.code_format}, and this Cortex uses format {CODE_FORMAT}"
    elif not (found := [p for p in part.programs if p.target.runs_here()]):
        why = f"its code is for {machines}, which this machine cannot run"
    else:
        return sorted(found, key=lambda p: -p.target.lanes)
    log.warning("%s: '%s' is compiled again: %s", saved.what, part.model.name, why)
    return []


def _best(usable: list[SavedProgram], threads: int) -> SavedProgram | None:
    """The first of the widest programs that is for so many threads, or one, as is wanted; else the first."""
    like = (p for p in usable if (p.threads > 1) == (threads > 1) and p.target.lanes == usable[0].target.lanes)
    return next(like, next(iter(usable), None))


class _Plans:
    """How the programs of a file were compiled, for others to be compiled alike; LLVM is loaded for those only."""

    def __init__(self, wanted: Wanted, made: SavedProgram | None) -> None:
        self._wanted, self._made = wanted, made

    def of(self, target: Target | None = None, threads: int = 1) -> Plan:
        """How a program is compiled for a machine, by default this one, with the bits of the program in use."""
        taken = None if self._made is None else _takes_products(self._made.program())
        return self._plan(target or Target.host(), threads, taken)

    def compiled(self, m: ra.Model, saved: SavedProgram) -> Compiled:
        """A program of the file."""
        program = saved.program()
        return _with_code(m, self._plan(saved.target, saved.threads, _takes_products(program)), program)

    def _plan(self, target: Target, threads: int, leaf_products: bool | None) -> Plan:
        wanted = self._wanted
        wishes = Wishes(table_bytes=wanted.table_bytes, leaf_products=leaf_products)
        given = wanted.recursion, wanted.choices, wanted.schedule
        return Plan(target, *given, wishes, threads=threads, narrow=wanted.narrow)


def _takes_products(program: Program) -> bool:
    return any(isinstance(step, TabulateLeafProducts) for step in program.entry.schedule.steps)


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
