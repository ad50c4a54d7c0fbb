"""UnrollRecursion: a node computes its children too."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import NoReturn, TypeAlias

from cortex.ir.step import Step, step
from cortex.ra import ir
from cortex.ra.build import Builder
from cortex.ra.shapes import Declared, rename_operands
from cortex.recursion.refuse import refuse, refuse_model

MOST_VARIANTS = 64
FixedHop: TypeAlias = "ir.Slot | ir.Item"


@step
class UnrollRecursion(Step[ir.Model]):
    """Let nodes of every other level compute their children from their grandchildren.

    before:  kind inner:                               h = tanh(left.h + right.h + b)
    after:   kind inner:                               as before, for nodes that have no part in a pair of levels
             kind inner_with_left_inner:               l = tanh(left.left.h + left.right.h + b); left.h = l
                                                       h = tanh(l + right.h + b)
             kind inner_with_right_inner, and kind inner_with_left_inner_right_inner likewise
             kind inner_within:                        nothing; for the children that their parents compute

    Two levels are then one group. Which nodes compute children is decided by heights, for each request: see
    lower/linear_form.py. Every state is still kept for every node. This is the last step on the recursion.

    legal:   some kind reads children by attribute or by fixed position, and a kind of such children reads nothing per
             edge (`FixArity` makes positions of lists); the depth is 2.
    """

    depth: int = 2

    def apply(self, program: ir.Model) -> ir.Model:
        """`program` with a variant for each choice of children to compute."""
        if self.depth != 2:
            refuse_model(self, "a node can be unrolled with its children, not further. Use depth=2.", program)
        if any(kind.variant_of for kind in program.kinds):
            refuse_model(self, "the model is unrolled already.", program)
        if program.batching != "height" or program.dedup or not all(kind.own_group for kind in program.kinds):
            reason = "levels are paired by height, and every kind needs groups of its own"
            refuse_model(self, f"{reason}. Leave out Batch, Dedup and partial Specialize.", program)
        inside = tuple(kind for kind in program.kinds if _reads_children(kind) and not _per_edge(kind))
        around = tuple((kind, hops) for kind in program.kinds if (hops := _hops(kind)))
        if not inside or not around:
            self._refuse(program)
        count = sum((1 + len(inside)) ** len(hops) - 1 for _, hops in around)
        if count > MOST_VARIANTS:
            reason = f"there would be {count} variants, one for each choice of children's kinds"
            refuse_model(self, f"{reason}; {MOST_VARIANTS} are the most.", program)
        declared = Declared.of(program)
        variants = [
            _variant(program, kind, {hop: child for hop, child in zip(hops, chosen, strict=True) if child}, declared)
            for kind, hops in around
            for chosen in product((None, *inside), repeat=len(hops))
            if any(chosen)
        ]
        within = [replace(kind, name=f"{kind.name}_within", variant_of=kind.name) for kind in inside]
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


def _variant(m: ir.Model, parent: ir.Kind, children: dict[FixedHop, ir.Kind], declared: Declared) -> ir.Kind:
    """`parent` computing `children`, each of the kind given, from grandchildren."""
    b = Builder(declared, [let.name for let in parent.lets])
    guard = list(parent.guard)
    inlined: list[ir.Inlined] = []
    states: dict[ir.State, str] = {}
    for hop, kind in children.items():
        guard += [replace(fact, test=replace(fact.test, path=(hop, *fact.test.path))) for fact in kind.guard]
        names: dict[str, str] = {}
        for let in kind.lets:
            name = f"{_word(hop)}_{let.name}"
            taken = name in b or name in b.reserved
            names[let.name] = b.add(_below(rename_operands(let.op, names), hop), None if taken else name, let.span)
        results = tuple(names[r] for r in kind.results)
        inlined.append(ir.Inlined(hop, kind.name, results))
        states |= {ir.State(s.name, (hop,)): r for s, r in zip(m.states, results, strict=True)}
    renamed: dict[str, str] = {}
    for let in parent.lets:
        if isinstance(let.op, ir.State) and let.op in states:
            renamed[let.name] = states[let.op]
        else:
            renamed[let.name] = b.add(rename_operands(let.op, renamed), let.name, let.span)
    return ir.Kind(
        "_".join([parent.name, "with", *(f"{_word(hop)}_{kind.name}" for hop, kind in children.items())]),
        tuple(dict.fromkeys(guard)),
        b.lets,
        tuple(renamed[r] for r in parent.results),
        variant_of=parent.name,
        inlined=tuple(inlined),
    )


def _below(op: ir.Op, hop: FixedHop) -> ir.Op:
    """`op` of the child at `hop`, seen from the parent."""
    match op:
        case ir.Field(name, path):
            return ir.Field(name, (hop, *path))
        case ir.State(name, path):
            return ir.State(name, (hop, *path))
        case _:
            return op


def _word(hop: FixedHop) -> str:
    return f"{hop.name}_{hop.index}" if isinstance(hop, ir.Item) else hop.name
