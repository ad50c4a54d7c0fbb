"""Items: share the iterations of a loop among the items of a work-group. AloneItem: give the rest to one of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from cortex.ilir.ir import ITEMS, Accumulate, For, Func, LoopKind, Scope, Stmt, Store
from cortex.ilir.statements import with_lists
from cortex.ilir.verify import PER_GROUP, PER_THREAD
from cortex.ir.node import walk
from cortex.ir.scalar import Int
from cortex.ir.step import Step, step
from cortex.poly.legal import why_not_any_order
from cortex.poly.quick import QuickRules
from cortex.schedule.carried import carried
from cortex.schedule.locate import Block, Names, find_loop, refuse, replace_loop
from cortex.schedule.ownership import SHARED, Around, clash, context_of, statements, touches, use_in
from cortex.schedule.parallel import is_parallel

AXES: dict[str, LoopKind] = {"x": LoopKind.ITEMS_X, "y": LoopKind.ITEMS_Y}
OF_ITEMS: tuple[Scope, ...] = (*SHARED, *sorted(PER_GROUP))
"""What the items of a work-group share."""


@step
class Items(Step[Func]):
    """Run the iterations of a loop on the items of a work-group, round robin along an axis: "x" or "y".

    before:  for p in 0..8 parallel: for n: for l in 0..32: h[n, p*32 + l] = ...
    after:   for p in 0..8 parallel: for n: for l in 0..32 items x: h[n, p*32 + l] = ...
    legal:   the loop is inside a parallel loop, and neither inside nor around another loop of its axis; no iteration
             touches an element of memory that another one writes; private buffers and registers, of which every item
             has its own, pass no value from one iteration to another, into the loop or out of it.

    Neighbouring items of axis x run at once on a GPU, and read memory together: it is for columns, y for nodes.
    """

    loop: str
    axis: Literal["x", "y"]

    def apply(self, f: Func) -> Func:
        """`f` with the loop shared among items."""
        loop = find_loop(f, self.loop, self)
        if self.axis not in AXES:
            refuse(self, "the axis must be 'x' or 'y'.", f, self.loop)
        kind = AXES[self.axis]
        if loop.kind is not LoopKind.SERIAL:
            refuse(self, f"{self.loop!r} is {loop.kind.value}, not serial.", f, self.loop)
        around = context_of(f, self.loop)
        if around.parallel is None:
            refuse(self, f"{self.loop!r} is in no parallel loop, so that no work-group runs it.", f, self.loop)
        nested = (n.var for n in (*around.loops, *walk(loop)) if isinstance(n, For) and n.kind is kind)
        if (other := next(nested, None)) is not None:
            refuse(self, f"{self.loop!r} would share axis {self.axis} with {other!r}.", f, self.loop)
        if name := carried(f, loop):
            refuse(self, f"{name!r}, of which every item has its own, passes values on.", f, self.loop)
        if may_meet(f, self.loop):
            own = frozenset(b.name for b in f.buffers if b.scope in PER_THREAD)
            if conflict := why_not_any_order(f, (loop,), own):
                refuse(self, f"iterations of {self.loop!r} depend on each other.", f, self.loop, conflict)
        return replace_loop(f, self.loop, (replace(loop, kind=kind, turned=None),))


def may_meet(f: Func, name: str) -> bool:
    """May iterations of the loop `name` meet in what items share, as far as the form of the program tells?

    Where they may, a prover may still know better; no default schedule waits for one.
    """
    loop, around = next((s, at) for s, at in statements(f.body, Around()) if isinstance(s, For) and s.var == name)
    known = QuickRules.of(f)
    uses = {use_in(known, t, loop) for t in touches(f, (loop,), around, OF_ITEMS)}
    return any(clash(x, y) for x in uses for y in uses)


@step
class AloneItem(Step[Func]):
    """Let one item of an axis run what items share and no loop of that axis shares out.

    before:  for p in 0..8 parallel: for l in 0..32 items x: h[0, p*32 + l] = ...
    after:   for p in 0..8 parallel: for l in 0..32 items x: for item in 0..1 items y: h[0, p*32 + l] = ...
    legal:   always, where shared buffers are written in parallel loops only (`Alone` sees to the rest).
    """

    def apply(self, f: Func) -> Func:
        """`f` with all that items share written in loops of both axes."""
        shared = {b.name for b in f.buffers if b.scope in OF_ITEMS}
        names = Names(f)

        def writes(s: Stmt) -> bool:
            return any(isinstance(n, Store | Accumulate) and n.buffer in shared for n in walk(s))

        def has_items(s: Stmt) -> bool:
            return any(isinstance(n, For) and n.kind in ITEMS for n in walk(s))

        def block(body: Block, missing: tuple[LoopKind, ...]) -> Block:
            """A list that is run by all items of the axes `missing`."""
            new: list[Stmt] = []
            run: list[Stmt] = []  # neighbours that go to one item

            def close() -> None:
                if run:
                    alone: Block = tuple(run)
                    for kind in missing:
                        alone = (For(names.fresh("item"), Int(0), Int(1), alone, kind),)
                    new.extend(alone)
                    run.clear()

            for s in body:
                if writes(s) and not has_items(s):
                    run.append(s)
                    continue
                close()
                new.append(inside(s, missing) if writes(s) else s)
            close()
            return tuple(new)

        def inside(s: Stmt, missing: tuple[LoopKind, ...]) -> Stmt:
            still = tuple(kind for kind in missing if not isinstance(s, For) or kind is not s.kind)
            return with_lists(s, lambda body: block(body, still))

        def team(body: Block) -> Block:
            """A list that stands in no parallel loop."""
            return tuple(
                inside(s, (LoopKind.ITEMS_X, LoopKind.ITEMS_Y)) if is_parallel(s) else with_lists(s, team) for s in body
            )

        return replace(f, body=team(f.body))
