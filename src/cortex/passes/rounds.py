"""Compute functions of functions in rounds over the rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from cortex.ilir.ir import Buffer, For, Func, Let, LoopKind, Scope, Stmt, Store
from cortex.ilir.statements import with_lists
from cortex.ir.node import Node, operands, walk
from cortex.ir.scalar import Binary, Expr, Int, Load, Unary, Var
from cortex.ir.simplify import free_vars, simplify, substitute
from cortex.schedule.locate import Names, constant_extent

LONG = frozenset({"exp", "log", "sigmoid", "tanh"})
"""Functions that take 60 to 90 cycles from argument to value, of which one can be finished every 10 to 15 cycles."""

MOST_VECTORS = 64
"""Vectors of a value that are kept from one round to the next: a few kilobytes, which stay in L1."""

Block = tuple[Stmt, ...]


def in_rounds(f: Func) -> Func:
    """Give each level of functions of functions a loop of its own, where a loop over vectors has several.

    before:  for r in 0..rows: for l vectorized: let c = sigmoid(a[r, l]) * b[r, l]; h[r, l] = tanh(c)
    after:   for r in 0..rows: for l vectorized: let c = sigmoid(a[r, l]) * b[r, l]; c_kept[r, l] = c
             for r_1 in 0..rows: for l_1 vectorized: let c_1 = c_kept[r_1, l_1]; h[r_1, l_1] = tanh(c_1)

    A processor looks some hundred instructions ahead, and the two functions of one row are that many, each waiting for
    the one before: little runs side by side. Of one function, it sees many rows.
    """
    names, kept = Names(f), list[Buffer]()
    private = {b.name: b for b in f.buffers if b.scope is Scope.PRIVATE}

    def block(body: Block) -> Block:
        new: list[Stmt] = []
        for s in (with_lists(s, block) for s in body):
            nest = _nest(s, private) if isinstance(s, For) else None
            new += (s,) if nest is None else _split(nest, names, kept)
        return tuple(new)

    body = block(f.body)
    return replace(f, buffers=(*f.buffers, *kept), body=body)


@dataclass(frozen=True)
class _Nest:
    """A serial loop of at most `rows` iterations over loops that are unrolled or vectorized, and what they run."""

    loops: tuple[For, ...]
    rows: int
    body: tuple[Let | Store, ...]

    @property
    def lanes(self) -> int:
        """Elements of one row."""
        total = 1
        for loop in self.loops[1:]:
            total *= constant_extent(loop) or 1
        return total

    def around(self, body: Block) -> Stmt:
        """The loops around another body."""
        for loop in reversed(self.loops):
            body = (replace(loop, body=body),)
        return body[0]

    def renamed(self, body: Block, names: Names) -> Stmt:
        """The same with new names for loops and lets."""
        renamed = {loop.var: names.fresh(loop.var) for loop in self.loops}
        new: dict[str, Expr] = {old: Var(fresh) for old, fresh in renamed.items()}
        inside: list[Stmt] = []
        for s in body:
            if isinstance(s, Let):
                value, var = substitute(s.value, new), Var(names.fresh(s.var.name), s.var.dtype)
                new[s.var.name] = var
                inside.append(Let(var, value))
            else:
                inside.append(substitute(s, new))
        loops = tuple(replace(loop, var=renamed[loop.var]) for loop in self.loops)
        return replace(self, loops=loops).around(tuple(inside))

    def place(self) -> tuple[Expr, ...]:
        """Where a value of the present iteration is kept."""
        column: Expr = Int(0)
        for loop in self.loops[1:]:
            column = Binary("add", Binary("mul", column, Int(constant_extent(loop) or 1)), Var(loop.var))
        return Var(self.loops[0].var), simplify(column)


def _nest(loop: For, private: Mapping[str, Buffer]) -> _Nest | None:
    """`loop` as a nest of vectors, if it is one, its rows can be kept, and nothing else happens in it."""
    loops, body = [loop], loop.body
    while len(body) == 1 and isinstance(body[0], For) and body[0].kind is not LoopKind.SERIAL:
        loops.append(body[0])
        body = body[0].body
    straight = tuple(s for s in body if isinstance(s, Let | Store))
    is_nest = loop.kind is LoopKind.SERIAL and loop.lo == Int(0) and loop.turned is None and len(loops) > 1
    if not is_nest or len(straight) < len(body) or any(constant_extent(inner) is None for inner in loops[1:]):
        return None
    if loops[-1].kind is not LoopKind.VECTORIZED or any(s.kind is not LoopKind.UNROLLED for s in loops[1:-1]):
        return None
    rows = constant_extent(loop) or _most_rows(loop.var, straight, private)
    found = _Nest(tuple(loops), rows or 0, straight)
    is_small = rows is not None and rows * found.lanes <= MOST_VECTORS * (constant_extent(loops[-1]) or 1)
    return found if is_small else None


def _most_rows(row: str, body: Iterable[Stmt], private: Mapping[str, Buffer]) -> int | None:
    """How many rows a loop has at most, as it reads a row of a private buffer in each."""
    for s in body:
        for n in walk(s):
            match n:
                case Load(buffer, (Var(name), *_)) if name == row and buffer in private:
                    extent = private[buffer].shape[0]
                    return extent.value if isinstance(extent, Int) else None
    return None


def _split(nest: _Nest, names: Names, kept: list[Buffer]) -> Block:
    """The nest as one loop per round; as it is where there is one, or rounds would see other values than before."""
    addresses = [s for s in nest.body if isinstance(s, Let) and s.var.dtype == "i64"]  # computed anew in each round
    body = [s for s in nest.body if s not in addresses]
    rounds = _rounds(body)
    last = max(rounds, default=0)
    parts = [[s for s, r in zip(body, rounds, strict=True) if r == number] for number in range(1, last + 1)]
    made = [{s.var.name: s.var for s in part if isinstance(s, Let)} for part in parts]
    used = [set().union(*(free_vars(s) for s in part)) for part in parts]
    crossing = [{n: v for n, v in lets.items() if n in set().union(*used[i + 1 :])} for i, lets in enumerate(made)]
    if len(parts) < 2 or not _independent(parts) or any(v.dtype != "f32" for each in crossing for v in each.values()):
        return (nest.loops[0],)
    home = {name: names.fresh(f"{name}_kept") for each in crossing for name in each}
    kept += [Buffer(b, "f32", (Int(nest.rows), Int(nest.lanes)), Scope.PRIVATE, nest.lanes) for b in home.values()]
    new: list[Stmt] = []
    for i, part in enumerate(parts):
        earlier = [v for each in crossing[:i] for n, v in each.items() if n in used[i]]
        reads = [Let(v, Load(home[v.name], nest.place())) for v in earlier]
        writes = [Store(home[n], nest.place(), v) for n, v in crossing[i].items()]
        inside: Block = (*addresses, *reads, *part, *writes)
        new.append(nest.around(inside) if i == 0 else nest.renamed(inside, names))
    return tuple(new)


def _rounds(body: Sequence[Let | Store]) -> list[int]:
    """In which round each statement runs, from 1: stores as soon as they can, lets as late as what uses them allows."""
    depth: dict[str, int] = {}
    for s in body:
        if isinstance(s, Let):
            depth[s.var.name] = _depth(s.value, depth)
    latest: dict[str, int] = {}
    rounds = []
    for s in reversed(body):
        own = max(1, _depth(s, depth)) if isinstance(s, Store) else latest.get(s.var.name, 1)
        rounds.append(own)
        for name, above in _uses(s.value if isinstance(s, Let) else s, 0):
            least = own - above if depth.get(name) else own  # what waits for no long function may stand before one
            latest[name] = min(latest.get(name, own), max(1, least))
    return rounds[::-1]


def _depth(n: Node, known: Mapping[str, int]) -> int:
    """How many long functions there are on the longest way to `n`."""
    if isinstance(n, Var):
        return known.get(n.name, 0)
    below = max((_depth(x, known) for x in operands(n)), default=0)
    return below + _is_long(n)


def _uses(n: Node, above: int) -> Iterator[tuple[str, int]]:
    """The names that `n` uses, each with the number of long functions between."""
    if isinstance(n, Var):
        yield n.name, above
    for x in operands(n):
        yield from _uses(x, above + _is_long(n))


def _is_long(n: Node) -> bool:
    return isinstance(n, Unary) and n.fn in LONG


def _independent(parts: list[list[Let | Store]]) -> bool:
    """Do later rounds write nothing that earlier ones use, and read nothing that they write?"""
    read = [{n.buffer for s in part for n in walk(s) if isinstance(n, Load)} for part in parts]
    written = [{s.buffer for s in part if isinstance(s, Store)} for part in parts]
    pairs = [(a, b) for b in range(len(parts)) for a in range(b)]
    return not any(written[b] & (read[a] | written[a]) or read[b] & written[a] for a, b in pairs)
