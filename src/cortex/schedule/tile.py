"""Tile: form the register tile of a fused nest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, replace
from typing import Literal

from cortex.ilir.ir import Barrier, Buffer, Case, For, Func, If, Let, LoopKind, Scope, Stmt, Store, Switch
from cortex.ir.node import Node, rewrite
from cortex.ir.scalar import Expr, Int, Load, Var
from cortex.ir.simplify import add, ceildiv, floordiv, free_vars, mul, simplify, sub, substitute
from cortex.ir.step import Step, step
from cortex.poly.legal import why_not_any_order
from cortex.poly.quick import QuickRules
from cortex.schedule.locate import Block, Names, constant_extent, find_loop, perfect_chain, refuse, replace_loop
from cortex.schedule.padding import padding_is_harmless
from cortex.schedule.sums import Sums, redirect, split_sums


@step
class Tile(Step[Func]):
    """Compute `height` rows by `vectors` x `lanes` columns at a time, with the sums in registers.

    before:  for n: for j: { t[n, j] = 0; for k: t[n, j] += x[n, k] * w[j, k]; h[n, j] = f(t[n, j]) }
    after:   for j_o: for each tile of rows:
               switch rows in the tile: case r:                  (exact for every r up to `height`)
                 acc[0..r, 0..vectors, lanes] = 0
                 for k: acc[...] += x[n, k] * w[j, k]            (`unroll`(r) values of k at a time)
                 tile[0..r, ...] = acc
               for each row: h[n, j] = f(tile[...])
    legal:   the loops from `nest` to `columns` are perfectly nested and no element uses another element's results;
             sums read nothing the nest writes. Columns have a constant extent. With rows=None one row is computed
             at a time and the sums stay in registers throughout.

    Tiles are balanced: 7 rows with height 6 are 4 and 3. The last columns are an exact number of vectors; the last
    vector runs over row padding where that is harmless, else it is shorter. Loops named by `inside` run inside a block
    of columns. The rest is one text for all "rows", or, if it is short, on the sums in "registers" (`epilogue`); where
    there is none, sums go to memory from registers. With `rows_first`, tiles of rows run around blocks of columns.
    """

    nest: str
    columns: str
    rows: str | None
    height: int
    vectors: int
    lanes: int
    unroll: tuple[int, ...]
    inside: tuple[str, ...] = ()
    epilogue: Literal["rows", "registers"] = "rows"
    rows_first: bool = False

    def __repr__(self) -> str:
        """Python that rebuilds the step; what is as usual is left out."""
        said = [f for f in fields(self) if f.default is MISSING or getattr(self, f.name) != f.default]
        return f"Tile({', '.join(f'{f.name}={getattr(self, f.name)!r}' for f in said)})"

    def apply(self, f: Func) -> Func:
        """`f` with the nest tiled."""
        outer = find_loop(f, self.nest, self)
        if min(self.height, self.vectors, self.lanes, *self.unroll) < 1 or len(self.unroll) < self._most_rows():
            reason = "height, vectors and lanes must be at least 1, and unroll must say so many values for each height"
            refuse(self, f"{reason} up to {self._most_rows()}.", f, self.nest)
        chain = perfect_chain(outer, self.columns)
        if chain is None:
            refuse(self, f"the loops from {self.nest!r} to {self.columns!r} are not perfectly nested.", f, self.nest)
        extent = constant_extent(chain[-1])
        if extent is None:
            refuse(self, f"the extent of {self.columns!r} is not constant.", f, self.columns)
        rows = next((loop for loop in chain[:-1] if loop.var == self.rows), None)
        if self.rows is not None and rows is None:
            refuse(self, f"{self.rows!r} is not a loop between {self.nest!r} and {self.columns!r}.", f, self.nest)
        others = [loop.var for loop in chain[:-1] if loop is not rows]
        if not set(self.inside) <= set(others) or len(set(self.inside)) != len(self.inside):
            reason = f"inside names loops of the nest, each once; it has {', '.join(others) or 'no others'}"
            refuse(self, f"{reason}.", f, self.nest)
        if self.epilogue not in ("rows", "registers"):
            refuse(self, "the epilogue must be by 'rows' or in 'registers'.", f, self.nest)
        if self.rows_first and (rows is None or self.inside):
            refuse(self, "rows_first needs rows, and no loop inside a block of columns.", f, self.nest)
        by_name = {loop.var: loop for loop in chain}
        order = [name for name in others if name not in self.inside] + list(self.inside)
        for place, name in enumerate(order):
            tied = (free_vars(by_name[name].lo) | free_vars(by_name[name].hi)) & set(order[place:])
            if tied:
                refuse(self, f"the bounds of {name!r} depend on {min(tied)!r}.", f, name)
        body = chain[-1].body
        if any(isinstance(s, If | Switch | Let | Barrier) for s in body):
            refuse(self, f"the body of {self.columns!r} has more than sums and stores.", f, self.columns)
        if any(loop.kind is LoopKind.VECTORIZED for loop in chain):
            refuse(self, "a loop of the nest is vectorized already.", f, self.nest)
        if conflict := why_not_any_order(f, chain):
            refuse(self, "an element uses what another element writes.", f, self.columns, conflict)
        sums = split_sums(QuickRules.of(f), chain, body)
        if sums is None:
            refuse(self, "a sum reads what the nest writes, or is read before it is complete.", f, self.columns)
        for loop in (loop for r in sums.reductions for loop in r.loops):
            tied = (free_vars(loop.lo) | free_vars(loop.hi)) & {self.rows, self.columns}
            if tied:
                refuse(self, f"the bounds of {loop.var!r} depend on {min(map(str, tied))!r}.", f, self.columns)
        writer = _Writer(self, f, Names(f), chain, rows, sums, extent)
        new = replace_loop(f, self.nest, writer.nest())
        return replace(new, buffers=(*f.buffers, *writer.buffers))

    def _most_rows(self) -> int:
        return 1 if self.rows is None else self.height


class _Writer:
    """Writes one tiled nest."""

    def __init__(
        self, tile: Tile, f: Func, names: Names, chain: tuple[For, ...], rows: For | None, sums: Sums, extent: int
    ) -> None:
        self.tile, self.names, self.chain, self.rows, self.sums, self.extent = tile, names, chain, rows, sums, extent
        self.padded = padding_is_harmless(f, chain[-1].body, chain[-1].var, extent, tile.lanes)
        self.staged = rows is not None and tile.height > 1 and tile.epilogue == "rows" and bool(sums.rest)
        height = tile.height if rows is not None else 1
        self.acc = {b: names.fresh(f"{b}_acc") for b in sums.targets}
        self.stage = {b: names.fresh(f"{b}_tile") for b in sums.targets} if self.staged else {}
        shape = (Int(height), Int(tile.vectors), Int(tile.lanes))
        self.buffers = [Buffer(name, "f32", shape, Scope.REGISTER) for name in self.acc.values()]
        flat = (Int(height), Int(tile.vectors * tile.lanes))
        self.buffers += [Buffer(name, "f32", flat, Scope.PRIVATE, tile.lanes) for name in self.stage.values()]

    def nest(self) -> Block:
        """Other loops outermost, then blocks of columns, then loops that are to be inside, then rows; or rows first."""
        if self.tile.rows_first:
            body = self.row_tiles(lambda first, height: self.column_blocks(lambda c: self.elements(c, first, height)))
        else:
            body = self.column_blocks(self.within)
        around = [loop for loop in self.chain[:-1] if loop is not self.rows and loop.var not in self.tile.inside]
        for loop in reversed(around):
            body = (replace(loop, body=body, turned=None),)
        return body

    def within(self, columns: _Columns) -> Block:
        """The loops that run inside one block of columns, around its rows."""
        loops = {loop.var: loop for loop in self.chain}
        names: dict[str, Expr] = {}
        fresh: list[For] = []
        for name in self.tile.inside:  # every block of columns has loops of its own
            lo, hi = (substitute(bound, names) for bound in (loops[name].lo, loops[name].hi))
            names[name] = Var(self.names.fresh(f"{name}_in"))
            fresh.append(For(f"{name}_in", lo, hi, (), loops[name].kind))
        body = substitute(self.row_tiles(lambda first, height: self.elements(columns, first, height)), names)
        for loop, var in zip(reversed(fresh), reversed(names.values()), strict=True):
            assert isinstance(var, Var)
            body = (replace(loop, var=var.name, body=body),)
        return body

    def column_blocks(self, of: Callable[[_Columns], Block]) -> Block:
        """What is to be done `of` a block of columns, for all of them."""
        lanes = self.tile.lanes
        whole, odd = divmod(self.extent, lanes)
        if odd and self.padded:
            whole, odd = whole + 1, 0
        blocks, vectors = divmod(whole, self.tile.vectors)
        stmts: list[Stmt] = []
        if blocks:
            block = Var(self.names.fresh(f"{self.tile.columns}_o"))
            columns = _Columns(mul(block, self.tile.vectors * lanes), self.tile.vectors, lanes)
            stmts.append(For(block.name, Int(0), Int(blocks), of(columns)))
        if vectors:
            stmts += of(_Columns(Int((whole - vectors) * lanes), vectors, lanes))
        if odd:
            stmts += of(_Columns(Int(whole * lanes), 1, odd))
        return tuple(stmts)

    def row_tiles(self, of: Callable[[Expr, Var | int], Block]) -> Block:
        """What is to be done `of` a tile of rows, given its first row and their number, for all of them."""
        if self.rows is None:
            return of(Int(0), 1)
        height = self.tile.height
        count = constant_extent(self.rows)
        if count is not None:
            return self.fixed_rows(count, of)
        lo, hi = self.rows.lo, self.rows.hi
        length = Var(self.names.fresh(f"{self.tile.rows}_len"))
        tiles = Var(self.names.fresh(f"{self.tile.rows}_tiles"))
        tile = Var(self.names.fresh(f"{self.tile.rows}_o"))
        first = Var(self.names.fresh(f"{self.tile.rows}_first"))
        here = Var(self.names.fresh(f"{self.tile.rows}_rows"))
        begin = floordiv(mul(tile, length), tiles)
        end = floordiv(mul(add(tile, 1), length), tiles)
        body = (Let(first, add(lo, begin)), Let(here, sub(end, begin)), *of(first, here))
        return (
            Let(length, simplify(sub(hi, lo))),
            Let(tiles, ceildiv(length, height)),
            For(tile.name, Int(0), tiles, body),
        )

    def fixed_rows(self, count: int, of: Callable[[Expr, Var | int], Block]) -> Block:
        """Rows whose number is known: full tiles, then one exact tile for the rest."""
        height = self.tile.height
        stmts: list[Stmt] = []
        if count >= height:
            tile = Var(self.names.fresh(f"{self.tile.rows}_o"))
            stmts.append(For(tile.name, Int(0), Int(count // height), of(mul(tile, height), height)))
        if count % height:
            stmts += of(Int(count - count % height), count % height)
        return tuple(stmts)

    def elements(self, columns: _Columns, first: Expr, height: Var | int) -> Block:
        """The sums of a tile and all that uses them; a text for every number of rows where that is not known."""
        if isinstance(height, int):
            return (*self.kernel(columns, first, height), *self.rest(columns, first, Int(height)))
        cases = tuple(Case(r, self.exactly(columns, first, r)) for r in range(1, self.tile.height + 1))
        return Switch(height, cases), *(self.rest(columns, first, height) if self.staged else ())

    def exactly(self, columns: _Columns, first: Expr, height: int) -> Block:
        """The sums of `height` rows, and, where they stay in registers, everything after them."""
        sums = self.kernel(columns, first, height)
        return sums if self.staged else (*sums, *self.rest(columns, first, Int(height)))

    def kernel(self, columns: _Columns, first: Expr, height: int) -> Block:
        """The sums of `height` rows: start values, the reduction, and the copy out of the registers."""
        stmts: list[Stmt] = []
        if self.sums.starts:
            stmts += self.around_tile(columns, first, height, self.sums.starts)
        if self.sums.continued:
            stmts += self.load_sums(columns, first, height)
        for reduction in self.sums.reductions:
            stmts += self.reduction(columns, first, height, reduction.loops, reduction.body)
        if self.staged:
            row, vector, lane = (Var(self.names.fresh(f"{self.tile.columns}_{c}")) for c in "rvl")
            place = (row, add(mul(vector, self.tile.lanes), lane))
            copies: Block = tuple(Store(self.stage[b], place, Load(self.acc[b], (row, vector, lane))) for b in self.acc)
            stmts += columns.loops(row.name, vector.name, lane.name, Int(height), copies)
        return tuple(stmts)

    def load_sums(self, columns: _Columns, first: Expr, height: int) -> Block:
        """Sums that other statements have begun go on from where those left them."""
        row, vector, lane = (Var(self.names.fresh(f"{self.tile.columns}_{c}")) for c in "rvl")
        begun = tuple(Store(b, index, Load(b, index)) for b, index in self.sums.continued.items())
        loads = tuple(
            Store(self.acc[s.buffer], (row, vector, lane), s.value)
            for s in self.place(begun, columns, first, row, vector, lane)
            if isinstance(s, Store)
        )
        return columns.loops(row.name, vector.name, lane.name, Int(height), loads)

    def reduction(self, columns: _Columns, first: Expr, height: int, loops: tuple[For, ...], body: Block) -> Block:
        """The loops of a sum, the innermost one unrolled, around the tile."""
        *outer, last = loops
        renamed = {loop.var: Var(self.names.fresh(loop.var)) for loop in loops}
        inner = self.innermost(columns, first, height, last, renamed, substitute(body, renamed))
        for loop in reversed(outer):
            inner = (For(renamed[loop.var].name, loop.lo, loop.hi, inner),)
        return inner

    def innermost(
        self, columns: _Columns, first: Expr, height: int, loop: For, renamed: dict[str, Var], body: Block
    ) -> Block:
        factor = self.tile.unroll[height - 1]
        extent = constant_extent(loop)
        k = renamed[loop.var]
        if extent is None or factor == 1:
            return (For(k.name, loop.lo, loop.hi, self.around_tile(columns, first, height, body)),)
        stmts: list[Stmt] = []
        if extent >= factor:
            step_in = Var(self.names.fresh(f"{loop.var}_i"))
            unrolled = substitute(body, {k.name: add(mul(k, factor), step_in)})
            tile = self.around_tile(columns, first, height, unrolled)
            whole = For(step_in.name, Int(0), Int(factor), tile, LoopKind.UNROLLED)
            stmts.append(For(k.name, Int(0), Int(extent // factor), (whole,)))
        if extent % factor:
            tail = Var(self.names.fresh(f"{loop.var}_tail"))
            tile = self.around_tile(columns, first, height, substitute(body, {k.name: tail}))
            stmts.append(For(tail.name, Int(extent - extent % factor), Int(extent), tile))
        return tuple(stmts)

    def around_tile(self, columns: _Columns, first: Expr, height: int, body: Block) -> Block:
        """`body` at every element of the tile, its sums in registers."""
        row, vector, lane = (Var(self.names.fresh(f"{self.tile.columns}_{c}")) for c in "rvl")
        placed = self.place(body, columns, first, row, vector, lane)
        in_registers = redirect(placed, {b: (acc, (row, vector, lane)) for b, acc in self.acc.items()})
        return columns.loops(row.name, vector.name, lane.name, Int(height), in_registers)

    def rest(self, columns: _Columns, first: Expr, height: Expr) -> Block:
        """Everything after the sums, row by row: the sums go to memory for whoever else reads them, then the rest."""
        row, vector, lane = (Var(self.names.fresh(f"{self.tile.columns}_{c}")) for c in "rvl")
        keep = tuple(Store(b, index, Load(b, index)) for b, index in self.sums.targets.items())
        placed = self.place((*keep, *self.sums.rest), columns, first, row, vector, lane)
        where: dict[str, tuple[str, tuple[Expr, ...]]]
        if self.staged:
            where = {b: (s, (row, add(mul(vector, self.tile.lanes), lane))) for b, s in self.stage.items()}
        else:
            where = {b: (a, (row, vector, lane)) for b, a in self.acc.items()}
        read: list[Stmt] = []

        def newest(n: Node) -> Node:
            return Load(*where[n.buffer]) if isinstance(n, Load) and n.buffer in where else n

        for number, s in enumerate(placed):
            read.append(rewrite(s, newest))
            if number >= len(keep) and isinstance(s, Store):
                where.pop(s.buffer, None)  # from here on the element in memory is the newer one
        kind = LoopKind.SERIAL if self.staged else LoopKind.UNROLLED
        return columns.loops(row.name, vector.name, lane.name, height, tuple(read), kind)

    def place(self, body: Block, columns: _Columns, first: Expr, row: Var, vector: Var, lane: Var) -> Block:
        values: dict[str, Expr] = {
            self.tile.columns: add(columns.first, add(mul(vector, columns.lanes), lane)),
        }
        if self.rows is not None:
            values[self.rows.var] = add(first, row)
        return substitute(body, values)


@dataclass(frozen=True)
class _Columns:
    """`vectors` x `lanes` columns from `first` on."""

    first: Expr
    vectors: int
    lanes: int

    def loops(
        self, row: str, vector: str, lane: str, height: Expr, body: Block, rows: LoopKind = LoopKind.UNROLLED
    ) -> Block:
        """`body` for every row, vector and lane; nothing for no body."""
        if not body:
            return ()
        lanes = For(lane, Int(0), Int(self.lanes), body, LoopKind.VECTORIZED)
        vectors = For(vector, Int(0), Int(self.vectors), (lanes,), LoopKind.UNROLLED)
        return (For(row, Int(0), height, (vectors,), rows),)
