"""Cut a function at its barriers: what a kernel runs of it, and what the host does between kernels.

    for g in 0..num_groups:              for g in 0..num_groups:              (host)
      if group_kind(g) == 1:               if group_kind(g) == 1:
        barrier                              launch k1(g)
        for p parallel: S1(g)                launch k2(g)
        barrier
        for p parallel: S2(g)

Loops and conditions that hold a barrier are the host's: their bounds read sizes and index functions only, which it
has. What one kernel wrote, the next one sees. A let is evaluated by every kernel that uses it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from cortex.codegen.gpu.program import Host, HostFor, HostIf, Launch
from cortex.errors import InternalError
from cortex.ilir.ir import Barrier, For, Func, If, Let, Stmt, Switch
from cortex.ir.node import walk
from cortex.ir.scalar import Binary, Int
from cortex.ir.simplify import free_vars

Block = tuple[Stmt, ...]


@dataclass(frozen=True)
class Stretch:
    """What one kernel runs, and the host loops around it, outermost first."""

    name: str
    body: Block
    loops: tuple[str, ...] = ()


@dataclass
class _Cutter:
    name: str
    stretches: list[Stretch] = field(default_factory=list)

    def block(self, body: Block, loops: tuple[str, ...], lets: Block) -> tuple[Host, ...]:
        """The host's part of a list; `lets` are those it sees."""
        host: list[Host] = []
        run: list[Stmt] = []

        def close() -> None:
            if any(not isinstance(s, Let) for s in run):
                host.append(self.launch(tuple(run), loops, lets))
            run.clear()

        for s in body:
            if not any(isinstance(n, Barrier) and n.among == "team" for n in walk(s)):
                run.append(s)
                continue
            close_lets = tuple(each for each in run if isinstance(each, Let))
            close()
            lets = (*lets, *close_lets)
            host += self.on_host(s, loops, lets)
        close()
        return tuple(host)

    def on_host(self, s: Stmt, loops: tuple[str, ...], lets: Block) -> tuple[Host, ...]:
        match s:
            case Barrier():
                return ()
            case For(var, lo, hi, body):
                inside = self.block(body, (*loops, var), lets)
                return (HostFor(var, lo, hi, inside),) if inside else ()
            case If(cond, then, orelse):
                first, second = self.block(then, loops, lets), self.block(orelse, loops, lets)
                return (HostIf(cond, first, second),) if first or second else ()
            case Switch(value, cases):
                return tuple(
                    HostIf(Binary("eq", value, Int(c.value)), inside)
                    for c in cases
                    if (inside := self.block(c.body, loops, lets))
                )
            case _:
                raise InternalError(f"{type(s).__name__} holds a barrier")

    def launch(self, body: Block, loops: tuple[str, ...], lets: Block) -> Launch:
        """A kernel of its own for statements, after the lets they use."""
        wanted, used = free_vars(body), list[Stmt]()
        for s in reversed(lets):
            if isinstance(s, Let) and s.var.name in wanted:
                used.insert(0, s)
                wanted = wanted | free_vars(s.value)
        name = f"{self.name}_{len(self.stretches) + 1}"
        self.stretches.append(Stretch(name, (*used, *body), tuple(v for v in loops if v in wanted)))
        return Launch(name)


def stretches(f: Func, name: str) -> tuple[tuple[Stretch, ...], tuple[Host, ...]]:
    """A kernel called `name`_1, `name`_2, ... for each stretch between barriers, and the host's program."""
    cutter = _Cutter(name)
    host = cutter.block(f.body, (), ())
    return tuple(cutter.stretches), host
