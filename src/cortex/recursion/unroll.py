"""UnrollRecursion: a node computes the nodes below it too, to a given depth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import NoReturn, TypeAlias

from cortex.ir.step import Step, step
from cortex.ra import ir
from cortex.ra.build import Builder
from cortex.ra.shapes import Declared, rename_operands
from cortex.recursion.refuse import refuse, refuse_model, refuse_positions

MOST_VARIANTS = 64
MOST_OPERATORS = 2000  # of all kinds together: beyond it, code takes minutes to compile
MOST_NUMBER = 10_000  # beyond it, how many there would be is not counted
FixedHop: TypeAlias = "ir.Slot | ir.Item"
Path: TypeAlias = "tuple[FixedHop, ...]"


@step
class UnrollRecursion(Step[ir.Model]):
    """Let the nodes of one level in `depth` compute the levels below them, down to the next such level.

    before:  kind inner:                               h = tanh(left.h + right.h + b)
    after:   kind inner:                               as before, for nodes that compute only themselves
             kind inner_with_left_inner:               l = tanh(left.left.h + left.right.h + b); left.h = l
                                                       h = tanh(l + right.h + b)
             kind inner_with_right_inner, and kind inner_with_left_inner_right_inner likewise
             kind inner_within:                        nothing; for the nodes that others compute
             (depth=2; with 3, kinds such as inner_with_left_inner_left_left_inner too)

    `depth` levels are then one group. Which nodes compute others is decided by heights, for each request: see
    lower/linear_form.py. A leaf, and a child more than one level lower, is computed on its own, and so is a node that
    several parents share, in a DAG: nothing is computed twice, and there is a variant for every choice of children that
    may be missing from a block. Every state is still kept for every node. This is the last step on the recursion.

    legal:   the depth is at least 2; some kind reads children by attribute or by fixed position, and a kind of such
             children reads nothing per edge (`FixArity` makes positions of lists). There are at most 64 variants
             (binary trees of one kind have 3 at depth 2, 24 at depth 3, 675 at depth 4; sequences one less than the
             depth), and at most 2000 operators in all kinds together.
    """

    depth: int = 2

    def apply(self, program: ir.Model) -> ir.Model:
        """`program` with a variant for each choice of nodes to compute."""
        refuse_positions(self, program)
        if self.depth < 2:
            refuse_model(self, "a node computes itself at any rate. Use a depth of at least 2.", program)
        if any(kind.variant_of for kind in program.kinds):
            refuse_model(self, "the model is unrolled already.", program)
        if program.batching != "height" or program.dedup or not all(kind.own_group for kind in program.kinds):
            reason = "levels are put together by height, and every kind needs groups of its own"
            refuse_model(self, f"{reason}. Leave out Batch, Dedup and partial Specialize.", program)
        inside = tuple(kind for kind in program.kinds if _reads_children(kind) and not _per_edge(kind))
        around = tuple(kind for kind in program.kinds if _hops(kind))
        if not inside or not around:
            self._refuse(program)
        count = sum(n - 1 for n in _counts(around, inside, self.depth))
        if count > MOST_VARIANTS:
            reason = f"there would be {_number(count)} variants, one for each choice of kinds of nodes to compute"
            refuse_model(self, f"{reason}; {MOST_VARIANTS} are the most. Use a smaller depth.", program)
        declared = Declared.of(program)
        names = {kind.name for kind in program.kinds}
        within = [replace(k, name=_unused(f"{k.name}_within", names), variant_of=k.name) for k in inside]
        variants = [
            _variant(program, block, declared, names)
            for kind in around
            for block in _blocks(kind, inside, self.depth)
            if block.below
        ]
        operators = sum(len(kind.lets) for kind in (*program.kinds, *variants))
        if operators > MOST_OPERATORS:
            reason = f"the {len(variants)} variants would have {operators} operators"
            refuse_model(self, f"{reason}; {MOST_OPERATORS} are the most. Use a smaller depth.", program)
        return replace(program, kinds=(*program.kinds, *within, *variants))

    def _refuse(self, m: ir.Model) -> NoReturn:
        listed = next((kind for kind in m.kinds if _per_edge(kind)), None)
        if listed is None:
            refuse_model(self, "no kind reads the states of children that have children.", m)
        refuse(
            self,
            f"kind {listed.name!r} reads any number of children. "
            f"Use FixArity({listed.name!r}, n) for the numbers that matter first.",
            m,
            listed,
        )


@dataclass(frozen=True)
class _Block:
    """A node of some kind, and the nodes below that are computed with it, each with the hop that leads to it."""

    kind: ir.Kind
    below: tuple[tuple[FixedHop, _Block], ...] = ()


def _blocks(kind: ir.Kind, inside: tuple[ir.Kind, ...], depth: int) -> Iterator[_Block]:
    """All blocks of at most `depth` levels with a node of `kind` at the top, that node alone first."""
    hops = _hops(kind) if depth > 1 else ()
    smaller = [block for child in inside for block in _blocks(child, inside, depth - 1)] if hops else []
    for chosen in product((None, *smaller), repeat=len(hops)):
        yield _Block(kind, tuple((hop, block) for hop, block in zip(hops, chosen, strict=True) if block is not None))


def _counts(around: tuple[ir.Kind, ...], inside: tuple[ir.Kind, ...], depth: int) -> list[int]:
    """How many blocks of at most `depth` levels each of `around` has at the top; of very many, at least so many."""
    smaller = len(inside)
    for _ in range(depth - 2):
        larger = sum((1 + smaller) ** len(_hops(kind)) for kind in inside)
        if larger == smaller or smaller > MOST_NUMBER:
            break
        smaller = larger
    return [(1 + smaller) ** len(_hops(kind)) for kind in around]


def _reads_children(kind: ir.Kind) -> bool:
    return any(isinstance(let.op, ir.State) for let in kind.lets)


def _per_edge(kind: ir.Kind) -> bool:
    """Does the kind use something that a path from the parent cannot lead to?"""
    return any(let.over is not None or isinstance(let.op, ir.OverChildren | ir.Arity) for let in kind.lets)


def _hops(kind: ir.Kind) -> tuple[FixedHop, ...]:
    """The hops to children whose states the kind reads, unless it reads some child by a list as well."""
    paths = [let.op.path for let in kind.lets if isinstance(let.op, ir.State)]
    if any(isinstance(path[0], ir.Each) for path in paths):
        return ()
    hops = [path[0] for path in paths if len(path) == 1]
    return tuple(dict.fromkeys(hop for hop in hops if not isinstance(hop, ir.Each)))


def _variant(m: ir.Model, block: _Block, declared: Declared, names: set[str]) -> ir.Kind:
    """The kind of the node at the top of `block` that computes all of it."""
    writer = _Writer(m, Builder(declared, [let.name for let in block.kind.lets]))
    results = writer.node(block, ())
    parts = [f"{'_'.join(map(_word, child.path))}_{child.kind}" for child in writer.inlined]
    return ir.Kind(
        _unused("_".join([block.kind.name, "with", *parts]), names),
        tuple(dict.fromkeys(writer.guard)),
        writer.b.lets,
        results,
        variant_of=block.kind.name,
        inlined=tuple(writer.inlined),
    )


class _Writer:
    """Writes the lets of a block, the nodes further down first."""

    def __init__(self, m: ir.Model, b: Builder) -> None:
        self.m = m
        self.b = b
        self.guard: list[ir.Fact] = []
        self.inlined: list[ir.Inlined] = []
        self.states: dict[ir.State, str] = {}

    def node(self, block: _Block, path: Path) -> tuple[str, ...]:
        """The lets of the node that `path` leads to and of those below it; the names of its states."""
        kind = block.kind
        guard = (replace(fact, test=replace(fact.test, path=(*path, *fact.test.path))) for fact in kind.guard)
        self.guard += guard
        for hop, below in block.below:
            at = (*path, hop)
            place = len(self.inlined)
            results = self.node(below, at)
            self.inlined.insert(place, ir.Inlined(at, below.kind.name, results))
            self.states |= {ir.State(s.name, at): r for s, r in zip(self.m.states, results, strict=True)}
        renamed: dict[str, str] = {}
        for let in kind.lets:
            op = _below(rename_operands(let.op, renamed), path)
            if isinstance(op, ir.State) and op in self.states:
                renamed[let.name] = self.states[op]
            else:
                renamed[let.name] = self.b.add(op, self._name(let.name, path), let.span)
        return tuple(renamed[r] for r in kind.results)

    def _name(self, name: str, path: Path) -> str | None:
        """The name of a let; None for any name, where the one that tells the node is taken."""
        if not path:
            return name
        name = "_".join([*map(_word, path), name])
        return None if name in self.b or name in self.b.reserved else name


def _below(op: ir.Op, path: Path) -> ir.Op:
    """`op` of the node that `path` leads to, seen from where it starts."""
    match op:
        case ir.Field(name, further):
            return ir.Field(name, (*path, *further))
        case ir.State(name, further):
            return ir.State(name, (*path, *further))
        case _:
            return op


def _word(hop: FixedHop) -> str:
    return f"{hop.name}_{hop.index}" if isinstance(hop, ir.Item) else hop.name


def _unused(name: str, names: set[str]) -> str:
    while name in names:
        name += "_"
    names.add(name)
    return name


def _number(count: int) -> str:
    return str(count) if count <= MOST_NUMBER else f"more than {MOST_NUMBER}"
