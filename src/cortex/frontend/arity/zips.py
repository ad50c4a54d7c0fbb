"""Values of one item that are made from several relations: those to the items, and to positions at the same places.

before:  w_i = f(children[i].h, steps[i].h); s = sum of all w_i
after:   w_i = both[i].w                     where each position of the routine `both` reads the other two

Only edges of one relation are reduced at once, so positions are made that have all that the owner reads at a place.
"""

from __future__ import annotations

from cortex.frontend.arity.chains import Found, Trace, Writer, form
from cortex.ra import ir

MIDDLE = 1
"""The item whose values stand for those of all."""


def find_zip(t: Trace, name: str, states: str, always: bool = False) -> Found | None:
    """A routine for what is made of items one by one; None where only one relation is read, unless `always`."""
    if t.count <= MIDDLE + 1:
        return None
    sources = {hop.name for let in t.lets if (hop := _hop(let, t)) is not None}
    if not sources or (len(sources) < 2 and not always):
        return None
    early = {let.name for let in t.lets if t.items[let.name].bit_count() == 1 and not t.level[let.name]}
    outputs = [v for v in _at(t, MIDDLE, early) if any(u not in early for u in t.users.get(v, ()))]
    if not outputs:
        return None
    w = Writer(t, name, states)
    w.declare([t.by_name[v].type for v in outputs])
    rest = w.body(outputs, {})
    instead: dict[str, ir.Op] = {}
    keys: dict[str, object] = {}
    for i in range(t.count):
        own = {_key(t, v, keys): v for v in _at(t, i, early)}
        for v, decl in zip(outputs, w.decls, strict=True):
            found = own.get(_key(t, v, keys))
            if found is not None:
                instead[found] = ir.State(decl.name, (ir.Item(name, i),))
    return w.found(True, None, rest, instead)


def _hop(let: ir.Let, t: Trace) -> ir.Item | None:
    """The item that a let reads."""
    if isinstance(let.op, ir.Field | ir.State) and let.op.path:
        hop = let.op.path[0]
        return hop if isinstance(hop, ir.Item) and hop.name in t.relations else None
    return None


def _at(t: Trace, i: int, early: set[str]) -> list[str]:
    return [let.name for let in t.lets if let.name in early and t.items[let.name] == 1 << i]


def _key(t: Trace, name: str, known: dict[str, object]) -> object:
    """The same for what is computed of each item in the same way."""
    if name not in known:
        whole = not t.items[name]
        known[name] = name if whole else (form(t.op(name)), tuple(_key(t, x, known) for x in t.operands(name)))
    return known[name]
