"""Distribute: give every statement of a loop a loop of its own."""

from __future__ import annotations

from dataclasses import replace

from cortex.ilir.ir import For, Func, Let, Stmt
from cortex.ir.scalar import Var
from cortex.ir.simplify import substitute
from cortex.ir.step import Step, step
from cortex.poly.legal import why_not_distribute
from cortex.schedule.locate import Block, Names, find_loop, refuse, replace_loop


@step
class Distribute(Step[Func]):
    """Run the statements of a loop, or of `depth` nested loops, in loops of their own; the inverse of Fuse.

    before:  for i: for j: { A(i, j); B(i, j) }
    after:   for i: for j: A(i, j)
             for i_1: for j_1: B(i_1, j_1)                                (depth=2)
    legal:   the loops are perfectly nested and no statement is a let; where two statements touch one element, a write
             among them, the one that stands later does not do so in an earlier iteration.
    """

    loop: str
    depth: int = 1

    def apply(self, f: Func) -> Func:
        """`f` with the loop distributed."""
        loop = find_loop(f, self.loop, self)
        chain = [loop]
        while len(chain) < self.depth:
            match chain[-1].body:
                case (For() as inner,):
                    chain.append(inner)
                case _:
                    refuse(self, f"{self.loop!r} is not {self.depth} loops nested perfectly.", f, self.loop)
        body = chain[-1].body
        if len(body) < 2 or self.depth < 1:
            refuse(self, f"the body of {chain[-1].var!r} is one statement.", f, chain[-1].var)
        if any(isinstance(s, Let) for s in body):
            refuse(self, f"a let of {chain[-1].var!r} would be out of sight of its uses.", f, chain[-1].var)
        if conflict := why_not_distribute(f, tuple(chain)):
            refuse(
                self,
                "a statement would run before earlier iterations of one after it, which touch the same.",
                f,
                self.loop,
                conflict,
            )
        names = Names(f)
        nests = [_around(chain, (body[0],))]
        for s in body[1:]:
            new = {each.var: Var(names.fresh(each.var)) for each in chain}
            renamed = [
                replace(
                    each,
                    var=new[each.var].name,
                    lo=substitute(each.lo, new),
                    hi=substitute(each.hi, new),
                    turned=None if each.turned is None else substitute(each.turned, new),
                )
                for each in chain
            ]
            nests.append(_around(renamed, (substitute(s, new),)))
        return replace_loop(f, self.loop, tuple(nests))


def _around(chain: list[For], body: Block) -> Stmt:
    for loop in reversed(chain):
        body = (replace(loop, body=body),)
    return body[0]
