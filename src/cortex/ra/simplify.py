"""Simplify the graphs of a model: RA -> RA, same meaning, fewer and smaller ops.

before:  t = U @ concat(l, r) + b; i = t[0:H]; o = t[H:2H]; x = sigmoid(i); y = sigmoid(i) * 1
after:   i = U[0:H, 0:H] @ l + U[0:H, H:2H] @ r + b[0:H]; o = ...; x = sigmoid(i)

Each round rebuilds a kind's graph in order: every op is brought to its simplest form by the rules (see
`cortex.ra.rules`), equal ops become one let, and lets that nothing needs are dropped. Rounds repeat until nothing
changes. Results are equal up to rounding, with the exceptions that `fold_constants` documents.
"""

from __future__ import annotations

from dataclasses import replace

from cortex.errors import InternalError
from cortex.ra import ir
from cortex.ra.guards import has_some, length_told
from cortex.ra.rules import RULES
from cortex.ra.rules.graph import Graph, Rule, Uses, uses_of
from cortex.ra.shapes import Declared, operand_names, rename_operands


def simplify(m: ir.Model, rules: tuple[Rule, ...] = RULES) -> ir.Model:
    """`m` with every kind simplified."""
    declared = Declared.of(m)
    return replace(m, kinds=tuple(simplify_kind(k, declared, rules) for k in m.kinds))


def simplify_kind(kind: ir.Kind, declared: Declared, rules: tuple[Rule, ...] = RULES) -> ir.Kind:
    """`kind` with its graph simplified.

    The first round does not know uses, so that equal values have become one before uses are counted. A round moves
    a slice at least one op down, so the number of rounds is bounded by the size of the graph.
    """
    told = {name: length_told(kind.guard, name) for name in declared.lists}
    lengths = {name: length for name, length in told.items() if length is not None}
    not_empty = frozenset(name for name in declared.lists if has_some(kind.guard, name, declared.relations))
    uses: Uses = {}
    for number in range(50 + 2 * len(kind.lets)):
        simpler = _round(
            kind, Graph(declared, rules, lengths, uses, frozenset(let.name for let in kind.lets), not_empty)
        )
        if simpler == kind and number > 0:
            return kind
        kind, uses = simpler, uses_of(simpler)
    raise InternalError(f"simplifying kind {kind.name!r} does not come to an end")


def drop_dead_lets(lets: tuple[ir.Let, ...], results: tuple[str, ...]) -> tuple[ir.Let, ...]:
    """The lets that `results` depend on."""
    needed = set(results)
    kept = []
    for let in reversed(lets):
        if let.name in needed:
            needed.update(operand_names(let.op))
            kept.append(let)
    return tuple(reversed(kept))


def _round(kind: ir.Kind, g: Graph) -> ir.Kind:
    names: dict[str, str] = {}
    for let in kind.lets:
        names[let.name] = g.define(let, rename_operands(let.op, names))
    results = tuple(names[r] for r in kind.results)
    return replace(kind, lets=drop_dead_lets(g.builder.lets, results), results=results)
