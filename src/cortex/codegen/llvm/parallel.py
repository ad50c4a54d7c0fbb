"""What a thread of the team runs of a parallel loop, and how threads wait for each other.

`%thread`, `%threads` and `%team` are parameters of the function; `team` points to the address of the barrier.
"""

from __future__ import annotations

from cortex.codegen.llvm import integers
from cortex.codegen.llvm.stop import look
from cortex.codegen.llvm.types import Value, integer
from cortex.codegen.llvm.writer import Writer
from cortex.ilir.ir import Barrier, For, Func, LoopKind
from cortex.ilir.statements import statements
from cortex.ir.scalar import Int

THREAD, THREADS, TEAM = "%thread", "%threads", "%team"


def runs_on_team(f: Func) -> bool:
    """Does `f` have anything for several threads to do?"""
    return any(
        isinstance(n, Barrier) or (isinstance(n, For) and n.kind is LoopKind.PARALLEL) for n in statements(f.body)
    )


def prepare_shares(w: Writer, f: Func) -> None:
    """Compute the shares of loops with constant bounds once, on entry: a thread has the same ones in every group."""
    for n in statements(f.body):
        match n:
            case For(lo=Int(lo), hi=Int(hi), kind=LoopKind.PARALLEL):
                share(w, integer(lo), integer(hi))
            case _:
                pass


def share(w: Writer, lo: Value, hi: Value) -> tuple[str, str]:
    """The bounds of this thread's iterations of a parallel loop: lo + thread*n // threads, and that of the next."""
    count = w.scalar(integers.subtract(w, hi, lo))
    if lo.constant is None or hi.constant is None:
        count = w.pure(w.call("llvm.smax.i64", "i64", f"i64 {count}", "i64 0"))
    following = w.pure(f"add nuw nsw i64 {THREAD}, 1")
    bounds = []
    for thread in (THREAD, following):
        before = w.pure(f"mul nuw nsw i64 {thread}, {count}")
        bounds.append(w.pure(f"udiv i64 {before}, {THREADS}"))
    first, last = (w.scalar(integers.add(w, lo, Value(b, "i64"))) for b in bounds)
    return first, last


def barrier(w: Writer) -> None:
    """Call the team's barrier; a lone thread goes on."""
    alone = w.pure(f"icmp eq i64 {THREADS}, 1")
    meet, after = w.label("barrier"), w.label("together")
    w.effect(f"br i1 {alone}, label %{after}, label %{meet}")
    w.start(meet)
    wait = w.instruction(f"load ptr, ptr {TEAM}, align 8")
    w.effect(f"call void {wait}(ptr {TEAM}, i64 {THREAD})")
    look(w)  # others do not come to a barrier any more
    w.effect(f"br label %{after}")
    w.start(after)
