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
from cortex.ilir.ir import For, Func, If, Let, Scope, Storage, Switch
from cortex.ir.scalar import Binary, Cast, Expr, Index, Int, Select, Unary, Var
from cortex.ir.simplify import free_vars
from cortex.lower.linear_form import LinearForm
from cortex.lower.places import GROUP

Array = npt.NDArray[Any]
BYTES: dict[Storage, int] = {"f32": 4, "i64": 8, "bool": 1, "bf16": 2, "f16": 2, "i8": 1, "i16": 2, "i32": 4}
INDEX_BYTES = 4


@dataclass(frozen=True)
class Work:
    """What a phase does for a request: arithmetic, bytes loaded and stored (registers cost nothing), barriers."""

    phase: Phase
    operations: int
    loaded: int
    stored: int
    barriers: int


@dataclass(frozen=True)
class Runs:
    """How often each site runs, by group; the last column is what is outside the loop over groups."""

    sites: Sites
    runs: Array  # (sites, groups + 1), int64
    amounts: Array  # see _amounts

    def counts(self) -> Counts:
        """Everything the request does, as `ilir.interp` counts it."""
        total = Counts()
        for site, n in zip(self.sites.sites, self.runs.sum(axis=1).tolist(), strict=True):
            total.add(site.counts, n)
        return total

    def work(self) -> list[Work]:
        """What each phase does."""
        totals = np.zeros((len(self.sites.phases), self.amounts.shape[1]), np.int64)
        np.add.at(totals, [s.phase for s in self.sites.sites], self.amounts * self.runs.sum(axis=1)[:, None])
        return [Work(p, *map(int, row)) for p, row in zip(self.sites.phases, totals, strict=True)]


def _amounts(sites: Sites) -> Array:
    """Operations, bytes loaded, bytes stored and barriers of one run of each site."""
    kept = {b.name: BYTES[b.dtype] for b in sites.func.buffers if b.scope is not Scope.REGISTER}

    def amounts(c: Counts) -> tuple[int, int, int, int]:
        loaded = sum(kept.get(b, 0) * n for b, n in c.loads.items()) + INDEX_BYTES * sum(c.index_reads.values())
        stored = sum(kept.get(b, 0) * n for b, n in c.stores.items())
        return sum(c.flops.values()), loaded, stored, c.barriers

    return np.array([amounts(s.counts) for s in sites.sites], np.int64).reshape(-1, 4)


class Counter:
    """Counts requests for one program."""

    def __init__(self, f: Func) -> None:
        self.sites = Sites.of(f)
        self._amounts = _amounts(self.sites)
        self._needs: dict[int, frozenset[str]] = {}
        self._wanted: dict[int, frozenset[str] | None] = {}  # None: nothing inside
        self._find_needs(f.body)

    def __call__(self, form: LinearForm) -> Runs:
        """How often everything runs for a request."""
        groups = form.sizes["num_groups"]
        arrays = {name: np.asarray(a, dtype=np.int64) for name, a in form.arrays.items()}
        runs = np.zeros((len(self.sites.sites), groups + 1), np.int64)
        request = _Request(self.sites, self._needs, self._wanted, arrays, runs)
        env: dict[str, Any] = dict(form.sizes)
        request.block(self.sites.func.body, np.array([groups]), np.array([1]), env)
        return Runs(self.sites, request.runs, self._amounts)

    def _find_needs(self, body: Block) -> frozenset[str]:
        """The variables from outside that decide how often something in `body` runs."""
        need: set[str] = set()
        bound: set[str] = set()  # lets that decide something further down the list
        for s in reversed(body):
            match s:
                case For(var, lo, hi, inner, _):
                    need |= (self._find_needs(inner) - {var}) | free_vars((lo, hi))
                case If(cond, then, orelse):
                    need |= free_vars(cond) | self._find_needs(then) | (self._find_needs(orelse) if orelse else set())
                case Switch(value, cases):
                    need |= free_vars(value).union(*(self._find_needs(c.body) for c in cases))
                case Let(var, value) if var.name in need:
                    bound.add(var.name)
                    need = (need - {var.name}) | free_vars(value)
                case _:
                    pass
        branches = any(isinstance(s, For | If | Switch) for s in body)
        self._wanted[id(body)] = frozenset(bound) if branches else None
        self._needs[id(body)] = frozenset(need)
        return self._needs[id(body)]


@dataclass
class _Request:
    """One request being counted. A point stands for `weight` runs of a list in column `column`."""

    sites: Sites
    needs: Mapping[int, frozenset[str]]
    wanted: Mapping[int, frozenset[str] | None]
    arrays: Mapping[str, Array]
    runs: Array

    def block(self, body: Block, column: Array, weight: Array, env: dict[str, Any]) -> None:
        np.add.at(self.runs[self.sites.number_of[id(body)]], column, weight)
        wanted = self.wanted[id(body)]
        if wanted is None:
            return
        env = dict(env)
        for s in body:
            match s:
                case Let(var, value) if var.name in wanted:
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
        is_groups = s.var == GROUP.name
        followed = is_groups or s.var in self.needs[id(s.body)]
        if not followed and isinstance(hi - lo, int):
            if hi > lo:
                self.block(s.body, column, weight * (hi - lo), env)
            return
        times = np.maximum(0, np.broadcast_to(hi - lo, column.shape))
        if not followed:
            some = times > 0
            self.where(some, s.body, column, weight * times, env)
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
