"""When a let can be computed: before the recursion, for all nodes of the kind at once, or group by group.

A let that reads no child state does not wait for the recursion. Products among such lets (the input terms
`W @ emb[word]` of a cell) are worth taking out: over all nodes of the kind they are one large product instead
of a small one per group. Lets they feed stay with the recursion.
"""

from __future__ import annotations

from cortex.ra import ir as ra
from cortex.ra.shapes import operand_names

_LEAVES = (ra.State, ra.Field, ra.Param, ra.Fill, ra.Arity)


def before_recursion(kind: ra.Kind) -> frozenset[str]:
    """The lets of `kind` that are computed for all its nodes before the recursion starts.

    All lets when the kind reads no child state and nothing per edge; otherwise the products that read no child
    state, what they are made of, and the pointwise lets that use nothing else.
    """
    lets = {let.name: let for let in kind.lets}
    free: set[str] = set()
    product: set[str] = set()
    for let in kind.lets:
        names = operand_names(let.op)
        waits = isinstance(let.op, ra.State | ra.OverChildren) or let.over is not None
        if waits or any(n not in free for n in names):
            continue
        free.add(let.name)
        if isinstance(let.op, ra.Contract) or any(n in product for n in names):
            product.add(let.name)
    if len(free) == len(lets):
        return frozenset(free)
    chosen: set[str] = set()
    stack = list(product)
    while stack:
        name = stack.pop()
        if name not in chosen:
            chosen.add(name)
            stack.extend(operand_names(lets[name].op))
    return frozenset(chosen)


def heads_of_sums(kind: ra.Kind) -> frozenset[str]:
    """Per-edge lets that a reduction over children reads in place, so that no value per edge is stored.

    before:  for e: for j: t[e, j] = a[child(e), j] * b[child(e), j]
             for n: for j: for e in ptr(n)..ptr(n+1): s[n, j] += t[e, j]
    after:   for n: for j: for e in ptr(n)..ptr(n+1): s[n, j] += a[child(e), j] * b[child(e), j]

    Such a let is arithmetic on states, fields and parameters, with nothing but arithmetic below it, and is used once:
    by the reduction or by another such let. Functions stay out: the reduction's loop would hold their expansion.
    """
    lets = {let.name: let for let in kind.lets}
    users: dict[str, list[ra.Let]] = {}
    for let in kind.lets:
        for name in operand_names(let.op):
            users.setdefault(name, []).append(let)
    heads: set[str] = set()
    for let in reversed(kind.lets):
        uses = users.get(let.name, [])
        read_once = len(uses) == 1 and (isinstance(uses[0].op, ra.OverChildren) or uses[0].name in heads)
        if let.over is not None and read_once and isinstance(let.op, ra.Binary) and let.type.dtype == "f32":
            heads.add(let.name)
    for let in kind.lets:
        below = [n for n in operand_names(let.op) if n not in heads and not isinstance(lets[n].op, _LEAVES)]
        if let.name in heads and below:
            heads.remove(let.name)
    return frozenset(heads)


def joined_products(kind: ra.Kind, early: frozenset[str]) -> dict[str, str]:
    """Sums of products that share one accumulator: maps each joining product, and the sum, to the first product.

    before:  a = W1 @ x; b = W2 @ y; c = a + b        (a and b used nowhere else)
    after:   a = W1 @ x; a += W2 @ y; c is a
    """
    lets = {let.name: let for let in kind.lets}
    uses: dict[str, int] = {}
    for let in kind.lets:
        for name in operand_names(let.op):
            uses[name] = uses.get(name, 0) + 1
    for name in (*kind.results, *(r for child in kind.inlined for r in child.results)):
        uses[name] = uses.get(name, 0) + 1
    root: dict[str, str] = {}
    place = {let.name: number for number, let in enumerate(kind.lets)}

    def first_of(name: str) -> str | None:
        if name in root and isinstance(lets[name].op, ra.Binary):
            return root[name]
        op = lets[name].op
        is_sum = isinstance(op, ra.Contract) and set(op.spec.split("->")[0]) - set(op.spec.split("->")[1]) - {","}
        return name if is_sum else None

    for let in kind.lets:
        if not (isinstance(let.op, ra.Binary) and let.op.fn == "add"):
            continue
        x, y = let.op.x, let.op.y
        same = all(lets[n].type == let.type and lets[n].over == let.over and uses[n] == 1 for n in (x, y))
        if x == y or not same or len({let.name in early, x in early, y in early}) != 1:
            continue
        if isinstance(lets[x].op, ra.Contract) and place[y] < place[x]:
            x, y = y, x
        a, b = first_of(x), first_of(y)
        if a is None or b is None or not isinstance(lets[y].op, ra.Contract) or place[a] > place[y]:
            continue
        root[y] = a
        root[let.name] = a
    return root
