"""compile(): the whole pipeline, from a model to its object code."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypedDict, Unpack, overload

import numpy as np

from cortex import __version__
from cortex.cache.entry import Entry
from cortex.cache.keep import keep, recall
from cortex.codegen.gpu.program import DIALECTS
from cortex.codegen.gpu.target import GpuTarget
from cortex.codegen.object_code import ObjectCode
from cortex.codegen.target import CPUS, NATIVE, Target
from cortex.cost.choose import TABLE_BYTES, Considered
from cortex.errors import ModelError, ScheduleError
from cortex.frontend.beyond import BetterByCalls, Beyond
from cortex.frontend.clock import tick
from cortex.frontend.fields import Accessors
from cortex.frontend.model import RecursiveModel, TracedModel
from cortex.frontend.torch.function_entry import FunctionEntry
from cortex.frontend.trace import Trace
from cortex.frontend.uncompiled import Meaning
from cortex.frontend.weights import Source, Weights
from cortex.ilir import verify as ilir_verify
from cortex.ilir.ir import Func
from cortex.ilir.show import show as show_ilir
from cortex.ir.step import Step, apply, attempt
from cortex.lower.lower import lower
from cortex.options import Options
from cortex.passes.pipeline import PASSES, run
from cortex.plan import Plan, Wishes, for_table, for_training
from cortex.ra import ir as ra
from cortex.ra import verify as ra_verify
from cortex.ra.show import show as show_ra
from cortex.ra.simplify import simplify
from cortex.ra.table_model import table_model
from cortex.runtime.check_function import check_function
from cortex.runtime.compiled_function import CompiledFunction
from cortex.runtime.compiled_module import CompiledModule
from cortex.runtime.devices import gpu_target
from cortex.runtime.executable import Compiled, Executable
from cortex.runtime.function_executable import FunctionExecutable
from cortex.runtime.signature import Signature
from cortex.saved.write import Wanted
from cortex.schedule.barrier import PlaceBarriers
from cortex.schedule.default import Choices
from cortex.schedule.items import AloneItem
from cortex.schedule.narrow import Narrow, narrow_type, packed_weights
from cortex.schedule.parallel import Alone, Parallel
from cortex.schedule.parallel_default import parallel_schedule
from cortex.schedule.parallel_trees import ParallelTrees
from cortex.schedule.schedule import GPU_STEPS, Schedule
from cortex.schedule.windows import Windows, rows_of_all_nodes

OnPanels = Callable[[Func], tuple[tuple[Step[Func], ...], tuple[Considered, ...]]]


class CompileOptions(TypedDict, total=False):
    """What `compile` takes beside the model and its weights; see there."""

    children: str | tuple[str, ...] | Callable[[Any], Iterable[Any]] | None
    fields: Mapping[str, Any] | None
    examples: Any
    target: Target | GpuTarget | str | None
    cpu: str | None
    recursion: tuple[Step[ra.Model], ...] | None
    choices: Choices | None
    schedule: Schedule | None
    threads: int
    table_bytes: int
    weights_dtype: str | None
    check: bool
    train: bool


@overload
def compile(  # type: ignore[overload-overlap]  # models can be called too
    model: RecursiveModel, weights: Source | None = None, **options: Unpack[CompileOptions]
) -> Executable: ...
@overload
def compile(model: Callable[..., Any], weights: None = None, **options: Unpack[CompileOptions]) -> CompiledModule: ...
def compile(
    model: Any,
    weights: Any = None,
    *,
    children: str | tuple[str, ...] | Callable[[Any], Iterable[Any]] | None = None,
    fields: Mapping[str, Any] | None = None,
    examples: Any = None,
    target: Target | GpuTarget | str | None = None,
    cpu: str | None = None,
    recursion: tuple[Step[ra.Model], ...] | None = None,
    choices: Choices | None = None,
    schedule: Schedule | None = None,
    threads: int = 1,
    table_bytes: int = TABLE_BYTES,
    weights_dtype: str | None = None,
    check: bool = True,
    train: bool = False,
) -> Executable | CompiledModule | CompiledFunction:
    """Compile a recursive model to native code.

    A model is a function decorated with `@cortex.model`, which becomes an `Executable`; or a PyTorch module (or a
    function that uses torch) whose code recurses over its argument, which becomes a `CompiledModule` that is called as
    the module is. Of a module, an example is a structure, or a tuple of arguments; its weights are its own.

    `weights` are the model's parameters: a mapping of arrays, or the path of an .npz or .safetensors file. Their
    values, and those of a module, are taken as they are now; changes take effect by `fast.update(weights)`.
    `children` and `fields` say what `node.children` and other attributes mean on your objects, where they are not
    simply attributes of that name. A node may lack an attribute, which is then None to the model; where you name one
    (`children="kids"`), some node must have it.

    `examples` are structures (a list, or one) whose kinds of nodes are compiled now; kinds met later are compiled when
    they are first seen. The nodes of a request, which `out.nodes` lists, are those that the attributes lead to which
    the kinds known by then use as children. A kind met later that uses another attribute as a child widens that for
    all requests after it; examples of every kind of node fix it at once. With `check`, some of the examples are also
    computed uncompiled, by the function on NumPy arrays or by the module itself, and a difference beyond rounding is a
    ModelError. It takes less than running the examples once; the module and the structures stay as they were.

    The schedule is what `cortex tune` found best for this model on this machine, if it keeps to `table_bytes` and no
    `weights_dtype` is given; else the one that is predicted best for the examples, or for typical structures.
    `recursion`, the steps to apply to the recursive model, and `choices`,
    those of the default schedule of its loops, fix a part of it; `schedule` fixes it all: exactly its steps are
    applied. Tables, where they pay, take at most `table_bytes`. Calls run on `threads` threads
    unless they say otherwise; results do not depend on it.

    `target` and `cpu` name another machine to compile for ("aarch64-linux-gnu", "neoverse-n1"; `cortex targets` lists
    them). What this machine cannot run is for `cortex.export`, which writes a C package. Target "opencl" or "cuda" is a
    device, `cpu` then part of its name or its architecture ("sm_80"); `cortex.gpu_target` says more about kernels.

    `weights_dtype` "bf16", "fp16", "int16" or "int8" stores the weights of products in 16 or 8 bits: fewer bytes to
    read, and results that deviate, by as much as `fast.report(structures)` measures. Integers have a scale per output
    channel. What the weights are multiplied with is rounded too, once per node, where that makes products faster: to
    bf16 for "bf16" on machines that multiply such numbers, to 16-bit integers with a scale per node for integers. Sums
    are in fp32, or exact; biases, embeddings and tables stay in fp32. `schedule` may say the same by `Narrow` and
    `NarrowInputs`.

    With `train`, a module is compiled for training, as `fast.train()` has it: results have gradients.
    """
    if train and isinstance(model, RecursiveModel):
        raise ModelError("train=True is for PyTorch modules. A model function has gradients by fast.vjp(structures).")
    if not (choices is None or isinstance(choices, Choices)):
        raise ScheduleError(f"choices={choices!r}: give Choices, or None for those that are predicted best.")
    if not (schedule is None or isinstance(schedule, Schedule)):
        raise ScheduleError(
            f"schedule={schedule!r}: give a Schedule, as Schedule((Fuse(...), ...)) or Schedule.load(file)."
        )
    if isinstance(table_bytes, bool) or not isinstance(table_bytes, int | np.integer) or table_bytes < 0:
        raise ModelError(f"table_bytes={table_bytes!r}: give a number of bytes, 0 for no tables.")
    narrow = narrow_type(weights_dtype)
    structures = None if examples is None else list(examples) if type(examples) in (list, tuple) else [examples]
    machine = target_of(target, cpu)

    device = machine if isinstance(machine, GpuTarget) else None
    wanted = Wanted(__version__, recursion, choices, schedule, int(table_bytes), narrow, device)

    def executable(
        model: TracedModel, weights: Any, structures: list[Any] | None, prefers_calls: bool = False
    ) -> Executable:
        trace = Trace(model, Weights(weights), fields=fields, children=children)
        trace.knowledge.prefers_calls = prefers_calls
        trace.explore()
        if structures:
            trace.see(structures)
        trace.knowledge.prefers_calls = False
        made_of = FunctionExecutable if isinstance(model, RecursiveModel) else Executable
        trace.check_fields()
        if isinstance(machine, GpuTarget):
            from cortex.device_compiler import DevicePlan, build_kernels

            on_device = DevicePlan.of(machine, recursion, choices, schedule, threads, narrow)
            return checked(made_of(trace, lambda m, _: build_kernels(m, on_device), save=wanted.save), trace)
        wishes = Wishes(trace, structures, int(table_bytes))
        plan = Plan(machine, recursion, choices, schedule, wishes, narrow=narrow)
        return checked(  # at once: traces remember this frame, which must not keep what it made
            made_of(
                trace,
                lambda m, threads: build(m, replace(plan, threads=threads)),
                threads,
                lambda m: build(m, plan.in_f32(m)),
                wanted.save,
                build_for_training=lambda m, threads: build(m, for_training(machine, threads)),
                build_like=lambda m, threads, target, used: build(m, plan.like(used, target, threads)),
            ),
            trace,
        )

    def checked(made: Executable, trace: Trace) -> Executable:
        """With the examples compared, if there are any."""
        if check and structures and isinstance(trace.traced_model, RecursiveModel):
            check_function(made, trace, trace.traced_model, structures)
        return made

    if isinstance(model, RecursiveModel):

        def by_calls(weights: Any) -> CompiledFunction:
            meaning = Meaning(children, fields) if check else None
            entry = FunctionEntry.of(model)
            return CompiledFunction(entry, Weights(weights), structures, executable, wanted.save, meaning)

        def by_nodes_first(made: Executable) -> Executable:
            assert isinstance(made, FunctionExecutable)
            made.make_by_calls = by_calls
            return made

        by_nodes = False
        try:
            if not model.passed_parameters:
                return by_nodes_first(executable(model, weights, structures, prefers_calls=bool(structures)))
        except Beyond as refusal:
            by_nodes = isinstance(refusal, BetterByCalls)
        try:
            return by_calls(weights)
        except ModelError:
            if not by_nodes:
                raise
        return by_nodes_first(executable(model, weights, structures))
    if "torch" not in sys.modules:
        return executable(model, weights, structures)
    from cortex.frontend.torch.torch_entry import entry_of

    entry = entry_of(model, weights)
    if entry is None:
        return executable(model, weights, structures)
    as_it_is = not Accessors(fields, children).renames  # the module itself reads attributes by their own names
    made = CompiledModule(entry, structures, executable, wanted.save, check and as_it_is)
    return made.train() if train else made


def target_of(target: Target | GpuTarget | str | None, cpu: str | None) -> Target | GpuTarget:
    """The target that is asked for by name and processor, or as a value; by default this machine."""
    if isinstance(target, Target | GpuTarget):
        if cpu is not None:
            has = target.cpu if isinstance(target, Target) else target.device
            raise ModelError(f"cpu={cpu!r}: the target has a processor already, {has!r}; give one of the two.")
        return target
    if target in DIALECTS:
        return gpu_target(target, cpu)
    if target is None and cpu not in (None, NATIVE):
        raise ModelError(f"cpu={cpu!r}: give the target too: target={' or '.join(map(repr, CPUS))}.")
    return Target.host() if target is None else Target.named(target, cpu)


def build(m: ra.Model, plan: Plan) -> Compiled:
    """The object code of a traced model and of the programs that fill its tables: as it was kept, or made now."""
    folder = Options.from_environment().code
    key = None if folder is None else plan.key(m)
    entry = None if folder is None or key is None else recall(folder, key)
    made: Func | None = None
    if entry is None:
        with _without_collector():
            last = final(m, plan)
            entry, made = _generate(last, plan.target), last.func
        if folder is not None and key is not None:
            keep(folder, key, entry)
    tables = tuple(build(table_model(entry.model, t), for_table(plan.target)) for t in entry.model.tables)
    return with_code(m, plan, entry, tables, made)


@contextmanager
def _without_collector() -> Iterator[None]:
    """Programs are trees of values that hold no cycles; looking for some takes a tenth of a compilation."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def with_code(
    m: ra.Model, plan: Plan, entry: Entry, tables: tuple[Compiled, ...], made: Func | None = None
) -> Compiled:
    """A model whose object code there is; the program is made again for who asks, where it was not just `made`."""
    again = replace(plan, schedule=entry.schedule)
    func = cache(lambda: made or final(m, again).func)
    code = ObjectCode(entry.code, entry.name, plan.target, lambda: _module(func(), plan.target))
    return Compiled(entry.model, entry.schedule, entry.considered, entry.signature, code, tables, func)


def _generate(last: Stage, target: Target) -> Entry:
    from cortex.codegen.llvm.build import build as generate

    f, code = last.func, generate(last.func, target)
    return Entry(last.model, last.schedule, last.considered, Signature.of(f), code.code, code.entry)


def _module(f: Func, target: Target) -> str:
    from cortex.codegen.llvm.module import module_text

    return module_text(f, target)


@dataclass(frozen=True)
class Stage:
    """The program at one point of the pipeline, the steps applied so far, and what else was considered."""

    name: str
    model: ra.Model
    schedule: Schedule
    func: Func
    considered: tuple[Considered, ...] = ()

    def text(self) -> str:
        """The program as text."""
        return show_ra(self.model) if self.name in ("traced", "simplified", "recursion") else show_ilir(self.func)


def final(m: ra.Model, plan: Plan) -> Stage:
    """The program after the last stage."""
    *_, last = stages(m, plan)
    return last


def stages(m: ra.Model, plan: Plan) -> Iterator[Stage]:
    """The program after each stage, in order."""
    check = Options.from_environment().verify
    empty = Func(m.name, (), (), (), ())
    yield Stage("traced", m, Schedule(), empty)
    fixed = plan.fixed(m)
    m = simplify(m)
    yield Stage("simplified", m, Schedule(), empty)
    recursion, considered = (fixed.on_recursion, ()) if fixed is not None else plan.on_recursion(m)
    m = apply(m, recursion)
    if check:
        ra_verify.verify(m)
    yield Stage("recursion", m, Schedule(recursion), empty, considered)
    f = lower(m, plan.lanes)
    yield Stage("lowered", m, Schedule(recursion), f, considered)
    is_shared = plan.threads > 1 and plan.schedule is None
    mapping, shared = plan.on_threads(m, f) if is_shared else (None, ())
    considered = (*considered, *shared)
    loops = fixed.on_loops if fixed is not None else plan.on_loops(m, f, mapping)
    if plan.narrow is not None and not any(isinstance(s, Narrow) for s in loops):
        loops = _narrowed(f, loops, plan.narrow)
    if is_shared:
        loops = (*loops, *parallel_schedule(apply(f, loops), plan.threads, mapping))
    f, loops, turned = _applied(f, loops, fixed is None, plan.on_panels, check)
    considered = (*considered, *turned)
    schedule = Schedule((*recursion, *loops))
    yield Stage("scheduled", m, schedule, f, considered)
    f = run(PASSES, f)
    if check:
        ilir_verify.verify(f)
    yield Stage("passes", m, schedule, f, considered)


def _applied(
    f: Func, loops: tuple[Step[Func], ...], automatic: bool, on_panels: OnPanels, check: bool
) -> tuple[Func, tuple[Step[Func], ...], tuple[Considered, ...]]:
    """`f` after the steps `loops` and those that finish an automatic schedule; the steps; what else was considered."""
    applied: list[Step[Func]] = []
    considered: tuple[Considered, ...] = ()
    rest: dict[Step[Func], None] = {}  # until these steps, what is in no parallel loop is still every thread's
    finish = automatic and not any(isinstance(s, GPU_STEPS) for s in loops)
    for each in (*loops, None):
        if finish and (each is None or isinstance(each, PlaceBarriers)):
            finish = False
            in_windows = rows_of_all_nodes(f) and not any(isinstance(s, ParallelTrees) for s in loops)
            f = _where_legal(f, (Windows(),) if in_windows else (), applied)
            turns, considered = on_panels(f)
            f = _where_legal(f, turns, applied)
        if each is None:
            break
        tick()
        f = each.apply(f)
        applied.append(each)
        if isinstance(each, (Parallel, ParallelTrees, *GPU_STEPS)):
            rest |= dict.fromkeys((Alone(), AloneItem()) if isinstance(each, GPU_STEPS) else (Alone(),))
        if check:
            ilir_verify.verify(apply(f, tuple(rest)))
    return f, tuple(applied), considered


def _where_legal(f: Func, steps: tuple[Step[Func], ...], applied: list[Step[Func]]) -> Func:
    """`f` after those of the steps that are not refused, which are added to `applied`."""
    for each in steps:
        after = attempt(f, each)
        if after is not None:
            f = after
            applied.append(each)
    return f


def _narrowed(f: Func, loops: tuple[Step[Func], ...], narrow: Narrow) -> tuple[Step[Func], ...]:
    """`loops` with the weights they pack narrow, before work is shared out among threads; no step if there are none."""
    shared = (i for i, s in enumerate(loops) if isinstance(s, Parallel | ParallelTrees | Alone))
    place = next(shared, len(loops))
    step = (narrow,) if packed_weights(apply(f, loops[:place])) else ()
    return (*loops[:place], *step, *loops[place:])
