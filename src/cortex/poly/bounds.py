"""Is every access of a program within its array?

For each access and each dimension the prover is asked for 0 <= index < extent, given the loops, branches and lets
around it and the declared facts of the index functions. An access that is not proven may be wrong, or a fact may be
missing: both are reported, and neither is ever taken for right.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cortex.ilir.ir import Func
from cortex.ilir.show import show_expr
from cortex.ir.scalar import Int
from cortex.poly.facts import conjunction
from cortex.poly.points import le, lt
from cortex.poly.prove import PATIENT, Outcome, Prover
from cortex.poly.sites import Site, sites


@dataclass(frozen=True)
class Finding:
    """What was found of one access. `goal` is the first dimension's bounds that did not hold, or all of them."""

    site: Site
    outcome: Outcome
    goal: str
    counterexample: Mapping[str, int]

    @property
    def proven(self) -> bool:
        """Is the access within bounds?"""
        return self.outcome == "proven"

    def __str__(self) -> str:
        index = ", ".join(map(show_expr, self.site.index))
        text = f"{self.outcome}: {self.site.way} {self.site.array}[{index}]: {self.goal}"
        if self.site.loops:
            text += f"\n  in {' / '.join(self.site.loops)}"
        if self.counterexample:
            text += "\n  fails at " + ", ".join(f"{name} = {n}" for name, n in self.counterexample.items())
        return text


def in_bounds(f: Func, *, padding: bool = True, prover: Prover | None = None) -> list[Finding]:
    """One finding for every access in the text of `f`. Rows include their padding unless `padding` is False."""
    asked = prover or Prover(f, milliseconds=PATIENT)
    return [_check(asked, site) for site in sites(f, padding)]


def _check(prover: Prover, site: Site) -> Finding:
    goals = []
    for index, extent in zip(site.index, site.extents, strict=True):
        goal = conjunction((le(Int(0), index), lt(index, extent)))
        text = f"0 <= {show_expr(index)} < {show_expr(extent)}"
        answer = prover.ask(site.given, goal)
        if not answer.proven:
            return Finding(site, answer.outcome, text, answer.counterexample)
        goals.append(text)
    return Finding(site, "proven", ", ".join(goals), {})
