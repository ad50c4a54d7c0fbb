"""How often every statement list of a program runs for a request, and so what the request costs.

Exact and without running anything: control flow in ILIR depends on integers alone, so all iterations of a loop are
followed at once, as arrays. A loop whose variable decides no bound and no branch inside is not even followed; its
body runs as often as the loop says.

    for n in 0..len: for k in 0..256: S        S runs len * 256 times             (a product)
    for n in 0..len: for e in ptr(n)..ptr(n+1): S    S runs sum of ptr(n+1) - ptr(n) times   (an array over n)

The counts equal those of `ilir.interp`, list by list.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cortex.cost.sites import Block, Phase, Sites
from cortex.errors import InternalError
from cortex.ilir.count import Counts
from cortex.ilir.ir import For, Func, If, Let, Scope, Switch
from cortex.ir.scalar import Binary, Cast, Expr, Index, Int, Select, Unary, Var
from cortex.ir.simplify import free_vars
from cortex.lower.linear_form import LinearForm
from cortex.lower.places import GROUP

Array = npt.NDArray[Any]
BYTES = {"f32": 4, "i64": 8, "bool": 1}
INDEX_BYTES = 4


@dataclass(frozen=True)
class Work:
    """What a phase does for a request: arithmetic, and bytes loaded and stored (registers cost nothing)."""

    phase: Phase
    counts: Counts
    operations: int
    loaded: int
    stored: int


@dataclass(frozen=True)
class Runs:
    """How often each site runs, by group; the last column is what is outside the loop over groups."""

    sites: Sites
    runs: Array  # (sites, groups + 1), int64

    def counts(self) -> Counts:
        """Everything the request does, as `ilir.interp` counts it."""
        total = Counts()
        for site, n in zip(self.sites.sites, self.runs.sum(axis=1).tolist(), strict=True):
            total.add(site.counts, n)
        return total

    def work(self) -> list[Work]:
        """What each phase does."""
        kept = {b.name: BYTES[b.dtype] for b in self.sites.func.buffers if b.scope is not Scope.REGISTER}
        by_phase = [Counts() for _ in self.sites.phases]
        for site, n in zip(self.sites.sites, self.runs.sum(axis=1).tolist(), strict=True):
            by_phase[site.phase].add(site.counts, n)
        return [
            Work(
                phase,
                c,
                sum(c.flops.values()),
                sum(kept.get(b, 0) * n for b, n in c.loads.items()) + INDEX_BYTES * sum(c.index_reads.values()),
                sum(kept.get(b, 0) * n for b, n in c.stores.items()),
            )
            for phase, c in zip(self.sites.phases, by_phase, strict=True)
        ]


class Counter:
    """Counts requests for one program."""

    def __init__(self, f: Func) -> None:
        self.sites = Sites.of(f)
        self._needs: dict[int, frozenset[str]] = {}
        self._find_needs(f.body)

    def __call__(self, form: LinearForm) -> Runs:
        """How often everything runs for a request."""
        groups = form.sizes["num_groups"]
        arrays = {name: np.asarray(a, dtype=np.int64) for name, a in form.arrays.items()}
        request = _Request(self.sites, self._needs, arrays, np.zeros((len(self.sites.sites), groups + 1), np.int64))
        env: dict[str, Any] = dict(form.sizes)
        request.block(self.sites.func.body, np.array([groups]), np.array([1]), env)
        return Runs(self.sites, request.runs)

    def _find_needs(self, body: Block) -> frozenset[str]:
        """The variables from outside that decide how often something in `body` runs."""
        need: set[str] = set()
        for s in reversed(body):
            match s:
                case For(var, lo, hi, inner, _):
                    need |= (self._find_needs(inner) - {var}) | free_vars((lo, hi))
                case If(cond, then, orelse):
                    need |= free_vars(cond) | self._find_needs(then) | (self._find_needs(orelse) if orelse else set())
                case Switch(value, cases):
                    need |= free_vars(value).union(*(self._find_needs(c.body) for c in cases))
                case Let(var, value) if var.name in need:
                    need = (need - {var.name}) | free_vars(value)
                case _:
                    pass
        self._needs[id(body)] = frozenset(need)
        return self._needs[id(body)]


@dataclass
class _Request:
    """One request being counted. A point stands for `weight` runs of a list in column `column`."""

    sites: Sites
    needs: Mapping[int, frozenset[str]]
    arrays: Mapping[str, Array]
    runs: Array

    def block(self, body: Block, column: Array, weight: Array, env: dict[str, Any]) -> None:
        np.add.at(self.runs[self.sites.number_of[id(body)]], column, weight)
        if not any(isinstance(s, For | If | Switch) for s in body):
            return
        env = dict(env)
        for number, s in enumerate(body):
            match s:
                case Let(var, value) if any(var.name in _control(later, self.needs) for later in body[number + 1 :]):
                    env[var.name] = self.value(value, env)
                case For():
                    self.loop(s, column, weight, env)
                case If(cond, then, orelse):
                    holds = np.broadcast_to(self.value(cond, env), column.shape).astype(bool)
                    self.where(holds, then, column, weight, env)
                    if orelse:
                        self.where(~holds, orelse, column, weight, env)
                case Switch(value, cases):
                    chosen = np.broadcast_to(self.value(value, env), column.shape)
                    for c in cases:
                        self.where(chosen == c.value, c.body, column, weight, env)
                case _:
                    pass

    def where(self, holds: Array, body: Block, column: Array, weight: Array, env: dict[str, Any]) -> None:
        """Run `body` at the points where `holds`."""
        if holds.any():
            self.block(body, column[holds], weight[holds], self.kept(body, env, lambda x: x[holds]))

    def loop(self, s: For, column: Array, weight: Array, env: dict[str, Any]) -> None:
        lo, hi = self.value(s.lo, env), self.value(s.hi, env)
        times = np.maximum(0, np.broadcast_to(hi - lo, column.shape))
        is_groups = s.var == GROUP.name
        if not is_groups and s.var not in self.needs[id(s.body)]:
            some = times > 0
            if some.all():
                self.block(s.body, column, weight * times, env)
            else:
                inner = self.kept(s.body, env, lambda x: x[some])
                if some.any():
                    self.block(s.body, column[some], (weight * times)[some], inner)
            return
        if not times.any():
            return
        inner = self.kept(s.body, env, lambda x: np.repeat(x, times))
        before = np.repeat(np.cumsum(times) - times, times)
        inner[s.var] = np.arange(len(before)) - before + np.repeat(np.broadcast_to(lo, column.shape), times)
        self.block(s.body, inner[s.var] if is_groups else np.repeat(column, times), np.repeat(weight, times), inner)

    def kept(self, body: Block, env: dict[str, Any], of: Any) -> dict[str, Any]:
        """The variables `body` asks for, at other points."""
        need = self.needs[id(body)]
        return {name: of(x) if isinstance(x, np.ndarray) else x for name, x in env.items() if name in need}

    def value(self, e: Expr, env: Mapping[str, Any]) -> Any:
        match e:
            case Int(value):
                return value
            case Var(name):
                return env[name]
            case Index(fn, (argument,)):
                return self.arrays[fn][self.value(argument, env)]
            case Binary(fn, x, y):
                return _BINARY[fn](self.value(x, env), self.value(y, env))
            case Unary("not", x):
                return np.logical_not(self.value(x, env))
            case Unary("neg", x):
                return -self.value(x, env)
            case Select(cond, x, y):
                return np.where(self.value(cond, env), self.value(x, env), self.value(y, env))
            case Cast(x, "i64"):
                return self.value(x, env)
            case _:
                raise InternalError(f"how often a loop runs depends on data, not on the structure: {e}")


def _control(s: Any, needs: Mapping[int, frozenset[str]]) -> frozenset[str]:
    """The variables that decide how a statement runs."""
    match s:
        case For(_, lo, hi, body, _):
            return free_vars((lo, hi)) | needs[id(body)]
        case If(cond, then, orelse):
            return free_vars(cond) | needs[id(then)] | (needs[id(orelse)] if orelse else frozenset())
        case Switch(value, cases):
            return free_vars(value).union(*(needs[id(c.body)] for c in cases))
        case Let(_, value):
            return free_vars(value)
        case _:
            return frozenset()


_BINARY: dict[str, Any] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "floordiv": lambda x, y: x // y,
    "mod": lambda x, y: x % y,
    "min": np.minimum,
    "max": np.maximum,
    "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y,
    "gt": lambda x, y: x > y,
    "ge": lambda x, y: x >= y,
    "eq": lambda x, y: x == y,
    "ne": lambda x, y: x != y,
    "and": np.logical_and,
    "or": np.logical_or,
}
