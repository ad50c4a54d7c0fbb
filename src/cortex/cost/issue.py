"""Instructions a statement list issues per run: what the pipelines of a core are busy with.

Under a vectorized loop one instruction does all lanes. A load whose index does not depend on an unrolled or
vectorized loop is issued once for all its iterations, because its value stays in a register. A sum waits for its
previous value, so a list of sums takes at least one latency per step of the loop around it, however few they are.
"""

from __future__ import annotations

from dataclasses import dataclass

from cortex.cost.movement import Access
from cortex.cost.sites import Site, Sites
from cortex.ilir.ir import Accumulate, For, Let, LoopKind, Scope, Store
from cortex.ir.node import walk
from cortex.ir.scalar import Binary, Expr, Fma, Int, Load, Select, Unary, dtype_of
from cortex.ir.simplify import free_vars

# In multiples of a multiply-add. Division, square root and logarithm keep the unit busy; what touches only bits or
# compares runs beside it on other units. tanh and its like are met only in programs that have not been through the
# passes, which expand them.
_SLOTS = {
    "div": 8.0, "sqrt": 10.0, "log": 20.0, "exp": 12.0, "tanh": 20.0, "sigmoid": 20.0,
    "min": 0.5, "max": 0.5, "abs": 0.5, "copysign": 0.5, "round": 0.5, "ldexp": 1.0, "neg": 0.0,
}  # fmt: skip

# Of a vector of narrow weights to f32, on the units of multiply-adds; bf16 takes a shift or a mask beside them. Weights
# of sums that take two steps at a time are not widened, but i8 to 16 bits, beside the units of multiply-adds.
_WIDENING = {"bf16": 0.5, "f16": 1.0, "i8": 1.0}


@dataclass(frozen=True)
class Issue:
    """Per run of a list: arithmetic (in multiply-adds), loads and stores issued, and links of dependent sums.

    `loads` are of vectors, `broadcasts` of single elements (for all lanes, or one by one for a gather).

    `spilled` are the values per step that have no register: they are stored and loaded each time.
    """

    site: Site
    arithmetic: float
    loads: float
    broadcasts: float
    stores: float
    links: float
    spilled: float


def issues(sites: Sites, accesses: list[Access], registers: int, reserved: int = 1) -> list[Issue]:
    """What each list that computes issues; `reserved` registers are for elements that all lanes are multiplied by."""
    by_site: dict[int, list[Access]] = {}
    for a in accesses:
        by_site.setdefault(a.site.number, []).append(a)
    found = []
    for site in sites.sites:
        busy = sum(slots(s) for s in site.body)
        mine = by_site.get(site.number, [])
        if not site.phase or not (busy or mine):
            continue
        chain = sites.chain(site)
        loads = sum(_share(a, chain) for a in mine if not a.writes and _by_lane(a, chain))
        broadcasts = sum(_share(a, chain) for a in mine if not a.writes and not _by_lane(a, chain))
        stores = sum(_share(a, chain) for a in mine if a.writes)
        in_pairs = any(_takes_two_steps(s) for s in site.body)
        widening = 0.0 if in_pairs else sum(_share(a, chain) * _WIDENING.get(a.buffer.dtype, 0.0) for a in mine)
        links, live = _links(site, chain, sites)
        spilled = max(0.0, live + loads / links + reserved - registers) * links if links else 0.0
        found.append(Issue(site, busy / _lanes(chain) + widening, loads, broadcasts, stores, links, spilled))
    return found


def slots(s: object) -> float:
    """The arithmetic of a statement, without the lists inside it, in multiply-adds."""
    match s:
        case Store(_, _, value) | Let(_, value):
            return _arithmetic(value) if dtype_of(value) == "f32" else 0.0
        case Accumulate(_, _, "add", Binary("mul", x, y)):
            return 1.0 + _arithmetic(x) + _arithmetic(y)
        case Accumulate() if _takes_two_steps(s):
            return 1.0
        case Accumulate(_, _, _, value):
            return 1.0 + _arithmetic(value)
        case _:
            return 0.0


def _takes_two_steps(s: object) -> bool:
    """Does a sum add two products of narrow numbers that lie side by side? One instruction does."""
    match s:
        case Accumulate(_, _, "add", Binary("add", Binary("mul", Load(), Load()), Binary("mul", Load(), Load()))):
            return True
        case _:
            return False


def _arithmetic(e: Expr) -> float:
    total = 0.0
    for n in walk(e):
        match n:
            case Unary(fn, x) | Binary(fn, x, _) if dtype_of(x) == "f32":
                total += _SLOTS.get(fn, 1.0)
            case Fma() | Select():
                total += 1.0
            case _:
                pass
    return total


def _lanes(chain: list[Site]) -> int:
    loop = chain[-1].loop
    return _extent(loop) if loop is not None and loop.kind is LoopKind.VECTORIZED else 1


def _extent(loop: For) -> int:
    return loop.hi.value - loop.lo.value if isinstance(loop.lo, Int) and isinstance(loop.hi, Int) else 1


def _in_registers(chain: list[Site]) -> list[tuple[int, For]]:
    """The unrolled and vectorized loops around a list, up to the first that is neither, innermost first."""
    loops = []
    for i in range(len(chain) - 1, -1, -1):
        loop = chain[i].loop
        if loop is None or loop.kind is LoopKind.SERIAL:
            break
        loops.append((i, loop))
    return loops


def _share(a: Access, chain: list[Site]) -> float:
    """Instructions that an access is worth per run of its list."""
    share = 1.0
    for i, loop in _in_registers(chain):
        contiguous = loop.kind is LoopKind.VECTORIZED and a.strides[i] == 1
        if not a.depends[i] or contiguous:
            share /= max(1, _extent(loop))
    return share


def _by_lane(a: Access, chain: list[Site]) -> bool:
    """Does one instruction load all lanes?"""
    loop = chain[-1].loop
    return loop is not None and loop.kind is LoopKind.VECTORIZED and a.strides[-1] == 1


def _links(site: Site, chain: list[Site], sites: Sites) -> tuple[float, float]:
    """Links of dependent sums per run, and vectors of sums that are live at a time."""
    scopes = {b.name: b.scope for b in sites.func.buffers}
    sums = {(s.buffer, s.index) for s in site.body if isinstance(s, Accumulate) and scopes[s.buffer] is Scope.REGISTER}
    if not sums:
        return 0.0, 0.0
    independent = 1
    for _, loop in _in_registers(chain):
        if any(loop.var in free_vars(index) for _, index in sums):
            independent *= max(1, _extent(loop))
    return 1.0 / independent, len(sums) * independent / _lanes(chain)
