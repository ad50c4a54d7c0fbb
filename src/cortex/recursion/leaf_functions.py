"""What a node computes from one child alone: functions of a leaf, where all its children are leaves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cortex.ra import ir
from cortex.ra.build import Builder
from cortex.ra.shapes import Declared, operand_names, rename_operands
from cortex.ra.simplify import drop_dead_lets
from cortex.recursion.leaf_rows import Function, LeafRows

Path = tuple[ir.Hop, ...]


@dataclass(frozen=True)
class LeafFunctions:
    """The lets of a kind with products of sums taken apart, and the lets to look up: by name, whose and which."""

    lets: tuple[ir.Let, ...]
    results: tuple[str, ...]
    field: str
    found: Mapping[str, tuple[Path, Function]]

    @property
    def wanted(self) -> tuple[Function, ...]:
        """What tables must have, each once."""
        return tuple(dict.fromkeys(function for _, function in self.found.values()))

    def looked_up(
        self, columns: Mapping[Function, str], declared: Declared
    ) -> tuple[tuple[ir.Let, ...], tuple[str, ...]]:
        """The lets with look-ups for what the parameters `columns` have, and the results."""
        b = Builder(declared, [let.name for let in self.lets])
        words: dict[Path, str] = {}
        tables: dict[str, str] = {}
        for let in self.lets:
            if let.name not in self.found:
                b.add(let.op, let.name, let.span)
                continue
            path, function = self.found[let.name]
            if path not in words:
                words[path] = b.add(ir.Field(self.field, path))
            param = columns[function]
            if param not in tables:
                tables[param] = b.add(ir.Param(param))
            b.add(ir.Lookup(tables[param], words[path]), let.name, let.span)
        return drop_dead_lets(b.lets, self.results), self.results


def above_leaves(kind: ir.Kind, rows: LeafRows, declared: Declared) -> LeafFunctions | None:
    """What nodes of `kind` can look up where all their children are leaves; None where that saves no product."""
    lets = _take_sums_apart(kind, rows, declared)
    owners = _owners(lets, rows)
    by_name = {let.name: let for let in lets}
    multiplies: set[str] = set()
    for let in lets:
        is_product = isinstance(let.op, ir.Contract) and owners[let.name] is not None
        if is_product or any(n in multiplies for n in operand_names(let.op)):
            multiplies.add(let.name)
    used = {n for let in lets if not owners[let.name] for n in operand_names(let.op)} | set(kind.results)
    found: dict[str, tuple[Path, Function]] = {}
    for name in by_name:
        path = owners[name]
        if path and name in used & multiplies and by_name[name].type.dtype == "f32":
            found[name] = path, _function(drop_dead_lets(lets, (name,)), declared)
    return LeafFunctions(lets, kind.results, rows.field, found) if found else None


def _owners(lets: tuple[ir.Let, ...], rows: LeafRows) -> dict[str, Path | None]:
    """By let, the child whose states it depends on and nothing else of nodes; () for parameters alone, else None."""
    made = set() if rows.table is None else set(rows.table.params)
    owners: dict[str, Path | None] = {}
    for let in lets:
        match let.op:
            case ir.State(name, path):
                owners[let.name] = path if len(path) == 1 and name in rows.states else None
            case ir.Field() | ir.Arity() | ir.OverChildren():
                owners[let.name] = None
            case ir.Param(name):
                owners[let.name] = None if name in made else ()
            case op:
                below = {owners[n] for n in operand_names(op)} - {()}
                owners[let.name] = () if not below else below.pop() if len(below) == 1 else None
    return owners


def _take_sums_apart(kind: ir.Kind, rows: LeafRows, declared: Declared) -> tuple[ir.Let, ...]:
    """The lets of a kind with each product of a sum written as a sum of products, where these are of one child each.

    before:  s = sum over children of h_k; t = U @ (s + left.h)
    after:   t = sum over children of (U @ h_k) + U @ left.h
    """
    owners = _owners(kind.lets, rows)
    ops = {let.name: let.op for let in kind.lets}
    types = {let.name: let.type for let in kind.lets}
    b = Builder(declared, [let.name for let in kind.lets])

    def is_sum(name: str) -> bool:
        """Is it a sum of values of one child each?"""
        match ops[name]:
            case _ if owners[name]:
                return True
            case ir.OverChildren("add", x, _):
                return is_sum(x)
            case ir.Binary("add" | "sub", x, y):
                return types[x] == types[y] == types[name] and is_sum(x) and is_sum(y)
            case _:
                return False

    def product(op: ir.Contract, name: str, target: str | None = None) -> str:
        """`op` with the value `name` for what is not a parameter."""
        if owners[name]:
            x, y = (name, op.y) if owners[op.y] == () else (op.x, name)
            return b.add(ir.Contract(op.spec, x, y), target)
        match ops[name]:
            case ir.OverChildren(fn, x, relation):
                return b.add(ir.OverChildren(fn, product(op, x), relation), target)
            case ir.Binary(fn, x, y):
                return b.add(ir.Binary(fn, product(op, x), product(op, y)), target)
            case other:
                raise AssertionError(other)

    for let in kind.lets:
        match let.op:
            case ir.Contract(_, x, y) if owners[let.name] is None and () in (owners[x], owners[y]):
                value = x if owners[y] == () else y
                if is_sum(value):
                    product(let.op, value, let.name)
                    continue
        b.add(let.op, let.name, let.span)
    return drop_dead_lets(b.lets, kind.results)


def _function(lets: tuple[ir.Let, ...], declared: Declared) -> Function:
    """`lets` as a function of a leaf, under names that depend on their order only: equal functions are equal."""
    b = Builder(declared)
    names: dict[str, str] = {}
    for let in lets:
        op = ir.State(let.op.name, ()) if isinstance(let.op, ir.State) else rename_operands(let.op, names)
        names[let.name] = b.add(op)
    return b.lets
