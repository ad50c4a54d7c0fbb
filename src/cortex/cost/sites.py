"""The text of a program as a tree of statement lists, each with the phase it belongs to.

A *site* is a statement list: the program's body, the body of a loop, an arm of a branch. What a request costs is
how often each site runs times what one run does, so everything here is found once per program, and a request only
adds the numbers of runs (see `count`).

A *phase* is one outermost loop nest: before the recursion, or inside the loop over groups under the arm of a kind.
Phase 0 is what is left: the loop over groups, that over parts or windows where there is one, and the choice of the arm.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from cortex.ilir.count import Counts, count_list
from cortex.ilir.ir import Accumulate, For, Func, If, Scope, Stmt, Store, Switch
from cortex.ir.node import walk
from cortex.ir.scalar import Binary, Index, Int
from cortex.lower.linear_form import NUM_PARTS, NUM_WINDOWS, kinds_in_windows
from cortex.lower.places import GROUP

Block = tuple[Stmt, ...]


@dataclass(frozen=True)
class Phase:
    """One outermost loop nest: the kind of nodes it is for, whether it is inside the loop over groups, its results."""

    number: int
    kind: int | None
    in_groups: bool
    loop: str
    writes: tuple[str, ...]

    def label(self, kinds: tuple[str, ...] = ()) -> str:
        """What a reader calls it: `inner: h, c`."""
        if self.kind is None:
            return self.loop
        name = kinds[self.kind] if self.kind < len(kinds) else f"kind {self.kind}"
        short = [w.removeprefix("state_").removeprefix(f"{name}_") for w in self.writes]
        more = f" and {len(short) - 2} more" if len(short) > 3 else ""
        return f"{name}: {', '.join(short[:2] if more else short) or self.loop}{more}"


@dataclass(frozen=True)
class Site:
    """A statement list: the site it is in, the loop whose body it is (None for an arm of a branch), its own counts."""

    number: int
    parent: int
    body: Block
    loop: For | None
    phase: int
    counts: Counts


@dataclass
class Sites:
    """All sites of a program, parents before children, and its phases."""

    func: Func
    sites: list[Site] = field(default_factory=list)
    phases: list[Phase] = field(default_factory=list)
    number_of: dict[int, int] = field(default_factory=dict)  # id of a statement list -> its site

    @staticmethod
    def of(f: Func) -> Sites:
        """Read a program."""
        found = Sites(f)
        found.phases.append(Phase(0, None, False, "groups", ()))
        found._block(f.body, -1, None, 0, False, None)
        return found

    def chain(self, site: Site) -> list[Site]:
        """The sites from the outermost one of the phase (or the program) down to `site`."""
        chain = [site]
        while chain[-1].parent >= 0 and self.sites[chain[-1].parent].phase == site.phase:
            chain.append(self.sites[chain[-1].parent])
        return chain[::-1]

    def _block(self, body: Block, parent: int, loop: For | None, phase: int, groups: bool, kind: int | None) -> None:
        site = Site(len(self.sites), parent, body, loop, phase, count_list(body))
        self.sites.append(site)
        self.number_of[id(body)] = site.number
        for s in body:
            match s:
                case For():
                    is_groups = phase == 0 and s.var == GROUP.name
                    is_parts = phase == 0 and s.hi in (NUM_PARTS, NUM_WINDOWS)
                    inner = phase if phase or is_groups or is_parts else self._phase(s, groups, kind)
                    self._block(s.body, site.number, s, inner, groups or is_groups, kind)
                case If(cond, then, orelse):
                    self._block(then, site.number, None, phase, groups, _kind_tested(cond, kind))
                    if orelse:
                        self._block(orelse, site.number, None, phase, groups, kind)
                case Switch(_, cases):
                    for c in cases:
                        self._block(c.body, site.number, None, phase, groups, kind)
                case _:
                    pass

    def _phase(self, s: For, groups: bool, kind: int | None) -> int:
        scopes = {b.name: b.scope for b in self.func.buffers}
        sizes = {b.name: b.shape for b in self.func.buffers}
        writes = dict.fromkeys(n.buffer for n in walk(s) if isinstance(n, Store | Accumulate))
        # A tile's staging area has no rows per node: it is a detail of the nest and not a result.
        results = tuple(
            b for b in writes if scopes[b] is not Scope.REGISTER and sizes[b] and not isinstance(sizes[b][0], Int)
        )
        if kind is None:
            # Its rows are kind_start(kind) .. kind_start(kind + 1), or those of a window.
            starts = [n.args[0] for n in walk(s) if isinstance(n, Index) and n.fn == "kind_start"]
            in_window = kinds_in_windows(n.fn for n in walk(s) if isinstance(n, Index))
            kind = min((*(e.value for e in starts if isinstance(e, Int)), *in_window), default=None)
        self.phases.append(Phase(len(self.phases), kind, groups, s.var, results))
        return len(self.phases) - 1


def _kind_tested(cond: object, otherwise: int | None) -> int | None:
    match cond:
        case Binary("eq", Index("group_kind", _), Int(value)):
            return value
        case _:
            return otherwise
