"""TabulateLeafProducts: nodes above leaves read products of their children from tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

from cortex.ir.step import Step, step
from cortex.ra import ir
from cortex.ra.guards import can_be_leaf
from cortex.ra.shapes import Declared, terms
from cortex.recursion.leaf_functions import LeafFunctions, above_leaves
from cortex.recursion.leaf_rows import Function, LeafRows
from cortex.recursion.refuse import refuse, refuse_model, refuse_positions, refuse_unrolled

FLOAT_BYTES = 4


@step
class TabulateLeafProducts(Step[ir.Model]):
    """Let nodes whose children are all leaves look up what they compute from each child's states, products above all.

    before:  kind inner: s = sum over children of h_k; h = tanh(U @ s + b)
    after:   tables leaf_0: row v is U @ h of a leaf whose word is v         computed once, when first looked up
             kind inner_above_leaves, all children are leaves: t = sum over children of leaf_0[word_k]; h = tanh(t + b)
             kind inner, not all children are leaves: as before

    A product with a sum of states is the sum of the products, which is all that changes: states of such nodes, and
    what follows from them, differ in their last bits from those without the step. They depend on nothing but the
    structure below the node. What a product is used for is in the table too, as far as it needs nothing but the child.

    legal:   leaves are of one kind; what they compute depends on parameters and one integer field alone, which has a
             limit because it indexes a table already; some kind multiplies its children's states, or sums of them, with
             parameters; and all tables of the model take at most `limit_bytes`.
    """

    limit_bytes: int = 64 << 20

    def apply(self, program: ir.Model) -> ir.Model:
        """`program` with such kinds split in two, and a table of leaves that has more columns."""
        refuse_unrolled(self, program)
        refuse_positions(self, program)
        found = leaf_products(program)
        if isinstance(found, str):
            refuse_model(self, found, program)
        needed = found.bytes + table_bytes(program)
        if needed > self.limit_bytes:
            parts = f"{found.rows.limit} values of {found.rows.field!r} x {found.row_bytes} bytes"
            refuse(
                self,
                f"all tables would take {needed} bytes ({parts} more than now), and the limit is {self.limit_bytes}. "
                f"Give a limit of at least {needed}, or leave the model as it is.",
                program,
            )
        return found.model


@dataclass(frozen=True)
class LeafProducts:
    """A model whose nodes above leaves look up products, and what its table of leaves has more."""

    model: ir.Model
    rows: LeafRows
    functions: tuple[Function, ...]

    @property
    def row_bytes(self) -> int:
        """The memory that one value of the field takes more."""
        return sum(FLOAT_BYTES * prod(f[-1].type.shape) for f in self.functions)

    @property
    def multiply_adds(self) -> int:
        """What computing the columns takes for one value of the field."""
        return sum(_multiply_adds(function) for function in self.functions)

    @property
    def bytes(self) -> int:
        """The memory that the tables take more, without padding."""
        return self.rows.limit * self.row_bytes


def table_bytes(m: ir.Model) -> int:
    """The memory of a model's tables, without padding."""
    made = {name for table in m.tables for name in table.params}
    return sum(FLOAT_BYTES * prod(p.type.shape) for p in m.params if p.name in made)


def leaf_products(m: ir.Model) -> LeafProducts | str:
    """`m` after the step whatever it takes, or why that cannot be done."""
    leaves = [kind for kind in m.kinds if can_be_leaf(kind, m)]
    if len(leaves) != 1:
        names = ", ".join(repr(kind.name) for kind in leaves) or "none"
        return f"leaves must be of one kind, for a node to know how they are computed; kinds they can be of: {names}."
    rows = LeafRows.of(m, leaves[0])
    if isinstance(rows, str):
        return f"kind {leaves[0].name!r}, that of leaves, {rows}."
    declared = Declared.of(m)
    open_kinds = [kind for kind in m.kinds if all(fact.test != ir.IsAboveLeaves() for fact in kind.guard)]
    functions = {kind.name: f for kind in open_kinds if (f := above_leaves(kind, rows, declared)) is not None}
    if not functions:
        done = " that does not look them up already" if len(open_kinds) < len(m.kinds) else ""
        return f"no kind{done} multiplies states of its children, or sums of them, with parameters."
    wanted = tuple(dict.fromkeys(x for f in functions.values() for x in f.wanted))
    with_rows, params = rows.extend(m, wanted)
    columns = dict(zip(wanted, params, strict=True))
    declared = Declared.of(with_rows)
    taken = {kind.name for kind in m.kinds}
    kinds = tuple(k for kind in m.kinds for k in _split(kind, functions.get(kind.name), columns, declared, taken))
    return LeafProducts(replace(with_rows, kinds=kinds), rows, wanted)


def _multiply_adds(function: Function) -> int:
    types = {let.name: let.type for let in function}
    found = 0
    for let in function:
        if isinstance(let.op, ir.Contract):
            tx, ty, _ = terms(let.op.spec)
            shapes = types[let.op.x].shape + types[let.op.y].shape
            found += prod(dict(zip(tx + ty, shapes, strict=True)).values())
    return found


def _split(
    kind: ir.Kind, f: LeafFunctions | None, columns: dict[tuple[ir.Let, ...], str], declared: Declared, taken: set[str]
) -> Iterator[ir.Kind]:
    if f is None:
        yield kind
        return
    name = f"{kind.name}_above_leaves"
    while name in taken:
        name += "_"
    taken.add(name)
    lets, results = f.looked_up(columns, declared)
    test = ir.IsAboveLeaves()
    yield replace(kind, name=name, guard=(*kind.guard, ir.Fact(test, True)), lets=lets, results=results)
    yield replace(kind, guard=(*kind.guard, ir.Fact(test, False)))
