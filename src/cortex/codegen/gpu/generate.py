"""A scheduled function of ILIR as a program for a GPU: source, kernels, and what the host does."""

from __future__ import annotations

from typing import Literal

from cortex.codegen.gpu.dialect import DIALECTS, Dialect
from cortex.codegen.gpu.lift_barriers import lift_barriers
from cortex.codegen.gpu.names import Identifiers
from cortex.codegen.gpu.program import Argument, DialectName, GpuProgram, Host, Kernel, Launch
from cortex.codegen.gpu.statements import StatementPrinter
from cortex.codegen.gpu.stretches import Stretch, stretches
from cortex.ilir.ir import Func, Scope

Form = Literal["persistent", "per level"]

_ON_DEVICE = (Scope.PARAM, Scope.PACKED, Scope.FIELD, Scope.STATE, Scope.SCRATCH)


def generate(
    f: Func, dialect: DialectName, groups: int, work_items: tuple[int, int], form: Form = "persistent"
) -> GpuProgram:
    """The program that runs `f`, after all passes, on `groups` work-groups of so many items.

    "persistent" is one kernel, with a grid barrier where threads of the team wait for each other; "per level" ends
    the kernel there and launches the next.
    """
    words, identifier = DIALECTS[dialect], Identifiers()
    name = identifier.function(f.name)
    parts: tuple[Stretch, ...]
    host: tuple[Host, ...]
    if form == "persistent":
        parts, host = (Stretch(name, f.body),), (Launch(name),)
    else:
        parts, host = stretches(f, name)
    writer = _Writer(f, words, identifier, groups, work_items)
    printed = [writer.kernel(part) for part in parts]
    source = "\n".join([*writer.prelude(), *(line for _, lines in printed for line in ("", *lines))]) + "\n"
    return GpuProgram(
        f.name,
        dialect,
        source,
        tuple(kernel for kernel, _ in printed),
        host,
        groups,
        writer.has_grid_barrier,
        f.sizes,
        f.index_functions,
        tuple(b for b in f.buffers if b.scope in _ON_DEVICE),
    )


class _Writer:
    """Writes the kernels of a program, and what they need before them."""

    def __init__(
        self, f: Func, words: Dialect, identifier: Identifiers, groups: int, work_items: tuple[int, int]
    ) -> None:
        self.f, self.words, self.identifier, self.groups, self.work_items = f, words, identifier, groups, work_items
        self.functions: set[str] = set()
        self.has_grid_barrier = False

    def kernel(self, part: Stretch) -> tuple[Kernel, list[str]]:
        """A kernel and its lines."""
        p = StatementPrinter(self.f, self.words, self.identifier, self.groups)
        lifted = lift_barriers(part.body)
        body = p.kernel_body(lifted)
        self.functions |= p.expr.functions
        self.has_grid_barrier = self.has_grid_barrier or p.has_grid_barrier
        used = p.expr.variables
        buffers = [b.name for b in self.f.buffers if b.name in p.buffers and b.scope in _ON_DEVICE]
        arguments = (
            *(Argument("buffer", name) for name in buffers),
            *(Argument("index", i.name) for i in self.f.index_functions if i.name in p.expr.indices),
            *(Argument("size", name) for name in self.f.sizes if name in used),
            *(Argument("loop", name) for name in part.loops),
            *([Argument("barrier", "arrived")] if p.has_grid_barrier else []),
        )
        x, y = self.work_items
        declared = [self.argument(a, p.written) for a in arguments]
        head = f"{self.words.kernel.format(x=x, y=y, items=x * y)} {part.name}("
        lines = [head, *(f"    {d}," for d in declared[:-1]), *(f"    {d})" for d in declared[-1:]), "{"]
        if not declared:
            lines[0] = f"{head})"
        local = p.local_bytes(lifted)
        at_launch = local if p.is_given_at_launch(lifted) else 0
        kernel = Kernel(part.name, arguments, local, self.work_items, at_launch)
        return kernel, [*lines, *(f"    {b}" for b in body), "}"]

    def argument(self, a: Argument, written: set[str]) -> str:
        match a.kind:
            case "buffer":
                return self.words.pointer("float", self.identifier.array(a.name), a.name in written)
            case "index":
                return self.words.pointer("int", self.identifier.array(a.name), is_written=False)
            case "size" | "loop":
                return f"int {self.identifier.variable(a.name)}"
            case "barrier":
                return self.words.barrier_argument

    def prelude(self) -> list[str]:
        """The definitions that the kernels use."""
        x, y = self.work_items
        lines = [
            *self.words.first_lines,
            f"#define GROUPS {self.groups}",
            f"#define ITEMS_X {x}",
            f"#define ITEMS_Y {y}",
            "#define SHARE(group, count) ((group) * (count) / GROUPS)",
        ]
        for name, definition in _FUNCTIONS.items():
            if name in self.functions:
                text = definition.format(float_of_bits=self.words.float_of_bits)
                lines += ["", *f"{self.words.device_function} {text}".split("\n")]
        if self.has_grid_barrier:
            lines += ["", *self.words.grid_barrier]
        return lines


_FUNCTIONS = {
    "maximum": """float maximum(float x, float y)
{{
    return x > y || x != x ? x : y;
}}""",
    "minimum": """float minimum(float x, float y)
{{
    return x < y || x != x ? x : y;
}}""",
    "scale": """float scale(float x, float power)
{{
    const int whole = (int)power, half_of_it = whole / 2;
    const float first = {float_of_bits}((unsigned int)(half_of_it + 127) << 23);
    return x * first * {float_of_bits}((unsigned int)(whole - half_of_it + 127) << 23);
}}""",
}
"""maximum and minimum give NaN if either is; scale is x * 2**power, in two steps as one may leave the range."""
