"""Proofs by Z3 from what a function declares.

    Prover(f).ask(given, goal)     does `goal` follow from `given` and the declared facts of `f`?
    Prover(f).implied(...)         the same as yes or not proven
    Prover(f).disjoint(...)        do two accesses never meet?

A question is decided by refutation: facts, hypotheses and the negated goal have no model. Every question has a
budget of 100 ms; what is not decided within it is "unknown", and only "proven" is ever taken for yes. `ask` comes
back with a model if there is one: values of the variables under which the goal fails.

Questions are renamed to a canonical form and answered once: programs ask the same few hundred times.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from time import perf_counter
from typing import Any, Literal, assert_never

import z3

from cortex.ilir.ir import Func
from cortex.ilir.show import show_expr
from cortex.ir.node import walk
from cortex.ir.scalar import Binary, Cast, Expr, Float, Fma, Index, Int, Load, Select, Unary, Var, dtype_of
from cortex.ir.simplify import substitute
from cortex.poly.facts import Facts, Key, conjunction

# In Z3's own units of work, so that an answer does not depend on the machine: about 30 ms of an idle core.
BUDGET = 200_000
MILLISECONDS = 100  # on the clock: for work that Z3 does not count, and for machines that are busy
PATIENT = 2_000  # milliseconds for questions that nobody waits for one by one
SMALL = (3, 10)  # sizes of structures that are easy to draw

Outcome = Literal["proven", "refuted", "unknown"]


@dataclass(frozen=True)
class Answer:
    """`refuted` comes with values of variables and index functions that satisfy all facts used and not the goal."""

    outcome: Outcome
    counterexample: Mapping[str, int]

    @property
    def proven(self) -> bool:
        """Is it a yes?"""
        return self.outcome == "proven"


class Prover:
    """Answers questions about the integers of one function; only its declarations matter, not its body."""

    def __init__(self, f: Func, budget: int = BUDGET, milliseconds: int = MILLISECONDS) -> None:
        self.f, self.budget, self.milliseconds = f, budget, milliseconds
        self.sizes = frozenset(f.sizes)
        self.facts, self.encode = Facts(f), _Encoder()
        self.encoded: dict[Key, list[Any]] = {}
        self.decided: dict[tuple[tuple[Expr, ...], Expr, bool], _Decision] = {}
        self.asked = 0  # questions that Z3 was given

    def knows(self, f: Func) -> bool:
        """Does `f` declare what this prover was made from?"""
        mine = self.f
        return (mine.sizes, mine.index_functions, mine.promises) == (f.sizes, f.index_functions, f.promises)

    def implied(self, given: Iterable[Expr], goal: Expr) -> bool:
        """Does `goal` follow? False means "not proven"."""
        return self._answer(tuple(given), goal, explain=False).proven

    def ask(self, given: tuple[Expr, ...], goal: Expr) -> Answer:
        """Whether `goal` follows from `given`, and where it fails if it does not."""
        return self._answer(given, goal, explain=True)

    def disjoint(self, a: tuple[Expr, ...], b: tuple[Expr, ...], given: Iterable[Expr] = ()) -> bool:
        """Do two indices into one buffer name different elements wherever all of `given` hold?"""
        meet = conjunction(Binary("eq", x, y) for x, y in zip(a, b, strict=True))
        return self.implied(given, Unary("not", meet))

    def _answer(self, given: tuple[Expr, ...], goal: Expr, explain: bool) -> Answer:
        """By what is connected to the goal or, failing that, by everything; within one budget of time."""
        clock = _Clock(self.milliseconds)
        near = self._connected(given, goal)
        answer = self._canonical(near, goal, explain, clock)
        return answer if answer.proven or len(near) == len(given) else self._canonical(given, goal, explain, clock)

    def _connected(self, given: tuple[Expr, ...], goal: Expr) -> tuple[Expr, ...]:
        """The hypotheses that share a variable, directly or through others, with the goal."""
        names = [_names(e) - self.sizes for e in given]
        reached, chosen, grown = _names(goal) - self.sizes, [False] * len(given), True
        while grown:
            grown = False
            for i, mine in enumerate(names):
                if not chosen[i] and mine & reached:
                    chosen[i] = grown = True
                    reached |= mine
        return tuple(e for e, used in zip(given, chosen, strict=True) if used)

    def _canonical(self, given: tuple[Expr, ...], goal: Expr, explain: bool, clock: _Clock) -> Answer:
        """Ask with variables named by the order in which they appear, and remember the answer."""
        order = dict.fromkeys(n for e in (goal, *given) for n in walk(e) if isinstance(n, Var))
        there = {v.name: Var(f"variable {i}", v.dtype) for i, v in enumerate(order) if v.name not in self.sizes}
        key = (tuple(substitute(e, there) for e in given), substitute(goal, there), explain)
        found = self.decided.get(key)
        if found is None:
            found = self._decide(*key, clock)
            if not clock.out:  # what the clock cut short may be known another time
                self.decided[key] = found
        back: dict[str, Expr] = {new.name: Var(old, new.dtype) for old, new in there.items()}
        return Answer(found.outcome, {show_expr(substitute(e, back)): n for e, n in found.values})

    def _decide(self, given: tuple[Expr, ...], goal: Expr, explain: bool, clock: _Clock) -> _Decision:
        self.asked += 1
        encode, terms = self.encode, self.facts.terms_of((goal, *given))
        if terms not in self.encoded:
            self.encoded[terms] = [encode(e) for e in self.facts.at(terms)]
        solver = z3.Solver(ctx=encode.context)
        solver.set("rlimit", self.budget)
        solver.add(*self.encoded[terms], *(encode(e) for e in given), z3.Not(encode(goal)))
        match clock.check(solver):
            case "unsat":
                return _Decision("proven", ())
            case "sat" if explain:
                model = self._small_model(solver, clock)
                return _Decision("refuted", encode.values(model, (goal, *given), self.f.sizes))
            case "sat":
                return _Decision("refuted", ())
            case _:
                return _Decision("unknown", ())

    def _small_model(self, solver: Any, clock: _Clock) -> Any:
        """A model, with small sizes if there is one: it is read by people."""
        model = solver.model()
        for limit in SMALL:
            solver.push()
            solver.add(*(self.encode(Var(size)) <= limit for size in self.f.sizes))
            if clock.check(solver) == "sat":
                return solver.model()
            solver.pop()
        return model


class _Clock:
    """The time that Z3 has left for a question."""

    def __init__(self, milliseconds: float) -> None:
        self.left = milliseconds

    @property
    def out(self) -> bool:
        """Is no time left?"""
        return self.left < 1

    def check(self, solver: Any) -> str:
        """Z3's answer: "sat", "unsat", or "unknown" when the time or the budget is over."""
        if self.out:
            return "unknown"
        solver.set("timeout", int(self.left))
        start = perf_counter()
        answer = str(solver.check())
        self.left -= 1000 * (perf_counter() - start)
        return answer


@dataclass(frozen=True)
class _Decision:
    """An answer in canonical names."""

    outcome: Outcome
    values: tuple[tuple[Expr, int], ...]


class _Encoder:
    """Expressions as Z3 terms. What integers alone do not determine (floats, loads) is an unknown each time."""

    def __init__(self) -> None:
        self.context = z3.Context()
        self.terms: dict[Expr, Any] = {}
        self.unknowns = 0

    def __call__(self, e: Expr) -> Any:
        if e in self.terms:
            return self.terms[e]
        before = self.unknowns
        term = self.encode(e)
        if self.unknowns == before:  # an unknown stands for one occurrence: the next load may see another value
            self.terms[e] = term
        return term

    def encode(self, e: Expr) -> Any:
        match e:
            case Int(value):
                return z3.IntVal(value, self.context)
            case Var(name, dtype):
                return self.variable(name, dtype)
            case Index(fn, args):
                integer = z3.IntSort(self.context)
                return z3.Function(fn, *(integer for _ in args), integer)(*(self(a) for a in args))
            case Cast(Int(value), "bool"):
                return z3.BoolVal(value != 0, self.context)
            case Unary() | Binary() if dtype_of(e.x) == "f32":
                return self.unknown(e)
            case Unary(fn, x):
                return self.unary(e, fn, self(x))
            case Binary(fn, x, y):
                return self.binary(e, fn, self(x), self(y))
            case Select(cond, x, y) if dtype_of(x) != "f32":
                return z3.If(self(cond), self(x), self(y))
            case Select() | Load() | Cast() | Fma() | Float():
                return self.unknown(e)
            case _:
                assert_never(e)

    def unary(self, e: Expr, fn: str, x: Any) -> Any:
        match fn:
            case "neg":
                return -x
            case "abs":
                return z3.If(x >= 0, x, -x)
            case "not":
                return z3.Not(x)
            case _:
                return self.unknown(e)

    def binary(self, e: Expr, fn: str, x: Any, y: Any) -> Any:
        match fn:
            case "and":
                return z3.And(x, y)
            case "or":
                return z3.Or(x, y)
            case "min":
                return z3.If(x <= y, x, y)
            case "max":
                return z3.If(x >= y, x, y)
            case _ if fn in _OPERATORS:
                return _OPERATORS[fn](x, y)
            case _:
                return self.unknown(e)

    def variable(self, name: str, dtype: str) -> Any:
        return z3.Bool(name, self.context) if dtype == "bool" else z3.Int(name, self.context)

    def unknown(self, e: Expr) -> Any:
        """A constant nobody knows anything of. No name of a program has a space in it."""
        self.unknowns += 1
        return self.variable(f"unknown {self.unknowns}", dtype_of(e))

    def values(self, model: Any, question: tuple[Expr, ...], sizes: tuple[str, ...]) -> tuple[tuple[Expr, int], ...]:
        """The value a model gives to every integer variable and index function of the question that it uses."""
        terms = [n for e in question for n in walk(e)]
        variables = [n for n in terms if isinstance(n, Var) and n.dtype == "i64"]
        functions = [n for n in terms if isinstance(n, Index) and not any(isinstance(x, Load) for x in walk(n))]
        variables.sort(key=lambda n: n.name in sizes)
        wanted: dict[Expr, None] = dict.fromkeys((*variables, *functions))
        return tuple((e, model.eval(self(e), model_completion=True).as_long()) for e in wanted)


# Quotients and remainders of the language are those of a positive divisor, where Z3's agree with rounding down.
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "floordiv": operator.truediv, "mod": operator.mod,
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "eq": operator.eq, "ne": operator.ne,
}  # fmt: skip


@lru_cache(maxsize=4096)
def _names(e: Expr) -> frozenset[str]:
    return frozenset(n.name for n in walk(e) if isinstance(n, Var))
