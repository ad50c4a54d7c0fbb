"""Iteration domains: for each point of the text, the set of its runs, as an isl set.

    for i in 0..n: for j in 0..i: A[i, j] = ...       [n] -> { S[i, j] : 0 <= i < n and 0 <= j < i }

The sizes of the function are parameters. So is the value of an index function that no loop here changes
(`group_start(g)` while one group is looked at): equal terms are equal parameters. A term that a loop does change,
or that is not affine, is unknown: the set then holds every run that its declared range allows, and is not `exact`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import islpy as isl

from cortex.ilir.ir import For, Func, IndexFunction, Let
from cortex.ir.node import walk
from cortex.ir.scalar import COMPARISONS, Binary, Cast, Expr, Index, Int, Load, Unary, Var, dtype_of
from cortex.ir.simplify import free_vars, simplify, substitute
from cortex.poly.points import Point

_SIGNS = {"add": "+", "sub": "-", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "=", "ne": "!="}
_NEGATED = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq"}


def runs(speak: Vocabulary, name: str, point: Point, loops: tuple[For, ...]) -> tuple[isl.Set, bool]:
    """The set of runs of a point, for all values of `loops`, and whether it is exact."""
    say = Sayer(speak, loops, point.lets)
    formulas = []
    for loop in loops:
        var = say.integer(Var(loop.var))
        formulas += [f"{say.integer(loop.lo)} <= {var}", f"{var} < {say.integer(loop.hi)}"]
    formulas += [say.condition(c) for c in point.conditions]
    return isl.Set(say.text(name, None, formulas)), not say.unknowns


@dataclass
class Vocabulary:
    """Names for isl: sizes and fixed terms as parameters, the same throughout one function."""

    f: Func
    parameters: dict[Expr, str] = field(default_factory=dict)
    functions: Mapping[str, IndexFunction] = field(init=False)

    def __post_init__(self) -> None:
        self.functions = {i.name: i for i in self.f.index_functions}
        self.parameters = {Var(size): f"p{i}" for i, size in enumerate(self.f.sizes)}

    def parameter(self, e: Expr) -> str:
        """The parameter that stands for a term no loop at hand changes."""
        return self.parameters.setdefault(e, f"p{len(self.parameters)}")


class Sayer:
    """Writes expressions at one point in isl's notation; what it cannot say exactly becomes an unknown."""

    def __init__(self, speak: Vocabulary, loops: tuple[For, ...], lets: tuple[Let, ...]) -> None:
        self.speak = speak
        self.dims = {loop.var: f"i{depth}" for depth, loop in enumerate(loops)}
        self.values: dict[str, Expr] = {}
        for let in lets:
            self.values[let.var.name] = substitute(let.value, self.values)
        self.unknowns: list[str] = []
        self.ranges: list[str] = []
        self.used: set[str] = set()

    def text(self, name: str, target: str | None, formulas: list[str]) -> str:
        """A set of runs (or a map from them to `target`) where all of `formulas` hold."""
        tuple_ = f"{name}[{', '.join(self.dims.values())}]" + (f" -> {target}" if target else "")
        body = " and ".join(f"({x})" for x in (*formulas, *self.ranges)) or "true"
        if self.unknowns:
            body = f"exists {', '.join(self.unknowns)}: {body}"
        return f"[{', '.join(sorted(self.used))}] -> {{ {tuple_} : {body} }}"

    def integer(self, e: Expr) -> str:
        """An integer expression."""
        return self._integer(simplify(substitute(e, self.values)))

    def _integer(self, e: Expr) -> str:
        match e:
            case Int(value):
                return str(value)
            case Var(name) if name in self.dims:
                return self.dims[name]
            case Binary("add" | "sub" as fn, x, y):
                return f"({self._integer(x)} {_SIGNS[fn]} {self._integer(y)})"
            case Binary("mul", x, Int(c)) | Binary("mul", Int(c), x):
                return f"({c} * {self._integer(x)})"
            case Binary("floordiv", x, Int(c)) if c > 0:
                return f"floor({self._integer(x)} / {c})"
            case Binary("mod", x, Int(c)) if c > 0:
                return f"({self._integer(x)} mod {c})"
            case Binary("min" | "max" as fn, x, y):
                return f"{fn}({self._integer(x)}, {self._integer(y)})"
            case Unary("neg", x):
                return f"(-{self._integer(x)})"
            case _:
                return self._term(e)

    def _term(self, e: Expr) -> str:
        """A term that is not affine: a parameter if nothing here changes it, else an unknown within its range."""
        changes = free_vars(e) & set(self.dims) or any(isinstance(n, Load) for n in walk(e))
        if not changes:
            name = self.speak.parameter(e)
            self.used.add(name)
            return name
        unknown = f"u{len(self.unknowns)}"
        self.unknowns.append(unknown)
        if isinstance(e, Index) and e.fn in self.speak.functions:
            function = self.speak.functions[e.fn]
            if {"in_nodes", "non_negative"} & set(function.facts):
                self.ranges.append(f"{unknown} >= 0")
            if function.less_than is not None:
                self.ranges.append(f"{unknown} < {self.integer(function.less_than)}")
        return unknown

    def condition(self, e: Expr) -> str:
        """A condition that holds; "true" for one that isl cannot say, which counts as an unknown."""
        match e:
            case Cast(Int(c), "bool"):
                return "true" if c else "false"
            case Binary("and" | "or" as fn, x, y):
                return f"({self.condition(x)}) {fn} ({self.condition(y)})"
            case Binary(fn, x, y) if fn in COMPARISONS and dtype_of(x) == "i64":
                return f"{self.integer(x)} {_SIGNS[fn]} {self.integer(y)}"
            case Unary("not", Binary("and", x, y)):
                return f"({self.condition(Unary('not', x))}) or ({self.condition(Unary('not', y))})"
            case Unary("not", Binary("or", x, y)):
                return f"({self.condition(Unary('not', x))}) and ({self.condition(Unary('not', y))})"
            case Unary("not", Binary(fn, x, y)) if fn in _NEGATED and dtype_of(x) == "i64":
                return f"{self.integer(x)} {_SIGNS[_NEGATED[fn]]} {self.integer(y)}"
            case Unary("not", Unary("not", x)):
                return self.condition(x)
            case _:
                self.unknowns.append(f"u{len(self.unknowns)}")
                return "true"
