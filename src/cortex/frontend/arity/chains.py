"""Finding steps over the items of a list in a trace in which every item has expressions of its own.

Every value has the set of items that it depends on. In a fold from the first item to the last, the values of step i
depend on items 0 to i; so the values of one step are known by that set, and correspond to those of the next in order.
A sum (maximum, minimum) of values of three items or more is a value of the owner, as rolling finds it later.

What is found is a guess: that a routine computes what the trace does is for `pattern` to check.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from cortex.frontend.arity.sequences import Body, Routine
from cortex.frontend.arity.values import NotAlike
from cortex.ra import ir
from cortex.ra.build import Builder
from cortex.ra.shapes import Declared, operand_names, rename_operands
from cortex.ra.simplify import drop_dead_lets

FOLDED = ("add", "max", "min")
VIEWS = (ir.Reshape, ir.Transpose)
SEVERAL = 3
"""A sum with terms of so many items is one over items, rather than a part of a step."""


@dataclass(frozen=True)
class Found:
    """A routine, and the lets of the trace, which read its positions."""

    routine: Routine
    lets: tuple[ir.Let, ...]


@dataclass
class Trace:
    """A trace of a node with `count` items in each of the relations, which belong together."""

    lets: tuple[ir.Let, ...]
    results: tuple[str, ...]
    relations: tuple[str, ...]
    count: int
    declared: Declared
    wholes: dict[str, str] = field(default_factory=dict)
    """Values of the owner that positions read, and the states that they are."""
    by_name: dict[str, ir.Let] = field(init=False)
    by_op: dict[ir.Op, str] = field(init=False)
    items: dict[str, int] = field(default_factory=dict)
    """The items that a value depends on, as bits."""
    level: dict[str, int] = field(default_factory=dict)
    """How many sums over items it depends on, one through the other."""
    partial: set[str] = field(default_factory=set)
    """Sums so far."""
    users: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.by_name = {let.name: let for let in self.lets}
        self.by_op = {let.op: let.name for let in self.lets}
        for let in self.lets:
            for x in dict.fromkeys(operand_names(let.op)):
                self.users.setdefault(x, []).append(let.name)
        for result in self.results:
            self.users.setdefault(result, []).append("")
        for let in self.lets:
            self._look(let)

    def op(self, name: str) -> ir.Op:
        """How a value is computed."""
        return self.by_name[name].op

    def operands(self, name: str) -> tuple[str, ...]:
        """What it is computed from."""
        return operand_names(self.op(name))

    def _look(self, let: ir.Let) -> None:
        op, operands = let.op, operand_names(let.op)
        bits, level = 0, max((self.level[x] for x in operands), default=0)
        for x in operands:
            bits |= self.items[x]
        match op:
            case ir.Field(_, (ir.Item(relation, i), *_)) | ir.State(_, (ir.Item(relation, i), *_)) if (
                relation in self.relations
            ):
                bits |= 1 << i
            case ir.Binary(fn) if fn in FOLDED and not self._is_partial(let.name, fn):
                terms, inner = self._terms(let.name, fn)
                if len({self.items[t] for t in terms} - {0}) >= SEVERAL:
                    bits, level = 0, level + 1
                    self.partial |= inner
        self.items[let.name], self.level[let.name] = bits, level

    def _is_partial(self, name: str, fn: str) -> bool:
        """Is the value a term of one more sum, and nothing else?"""
        users = self.users.get(name, [])
        if len(users) != 1 or not users[0]:
            return False
        user = self.op(users[0])
        return isinstance(user, ir.Binary) and user.fn == fn and user.x != user.y

    def _terms(self, name: str, fn: str) -> tuple[list[str], set[str]]:
        terms, inner, todo = [], set[str](), [name]
        while todo:
            at = todo.pop()
            op = self.by_name[at].op
            if at == name or (isinstance(op, ir.Binary) and op.fn == fn and self._is_partial(at, fn)):
                inner.add(at)
                todo += operand_names(op)
            else:
                terms.append(at)
        return terms, inner - {name}


def find_routine(t: Trace, name: str, states: str) -> Found | None:
    """A recurrence over the items; None if there is none that this can find."""
    if t.count <= SEVERAL:
        return None
    for is_forward in (True, False):
        for level in sorted(set(t.level.values())):
            found = _Chain(t, name, states, is_forward, level).found()
            if found is not None:
                return found
    return None


def form(op: ir.Op) -> ir.Op:
    """An op without its operands, and without the item that it reads."""
    match op:
        case ir.Field(_, (ir.Item(relation), *rest)) | ir.State(_, (ir.Item(relation), *rest)):
            return replace(op, path=(ir.Item(relation, -1), *rest))
        case _:
            return rename_operands(op, dict.fromkeys(operand_names(op), ""))


class _Chain:
    """One attempt: steps in one direction, of values of one level."""

    def __init__(self, t: Trace, name: str, states: str, is_forward: bool, level: int) -> None:
        self.t = t
        self.level = level
        self.is_forward = is_forward
        self.writer = Writer(t, name, states)
        self.last = t.count - 1
        self._keys: dict[Any, int] = {}
        self._part_keys: dict[str, int] = {}
        self.steps: list[list[str]] = [[] for _ in range(t.count)]
        sets = {self._prefix(p): p for p in range(1, self.last)}
        for let in t.lets:
            p = sets.get(t.items[let.name])
            if p is not None and t.level[let.name] == level and let.name not in t.partial:
                self.steps[p].append(let.name)

    def _item(self, p: int) -> int:
        return p if self.is_forward else self.last - p

    def _prefix(self, p: int) -> int:
        """The items of the first steps, up to `p`."""
        return sum(1 << self._item(i) for i in range(p + 1))

    def _intern(self, key: Any) -> int:
        return self._keys.setdefault(key, len(self._keys))

    def _part_key(self, name: str) -> int:
        """The same for what is computed of each item alone in the same way."""
        if name not in self._part_keys:
            t = self.t
            own = ("whole", name) if not t.items[name] else (form(t.op(name)), *map(self._part_key, t.operands(name)))
            self._part_keys[name] = self._intern(own)
        return self._part_keys[name]

    def found(self) -> Found | None:
        t, last = self.t, self.last
        if not all(self.steps[1:last]):
            return None
        following: list[dict[str, str]] = [{}]
        for p in range(1, last - 1):
            matched = self._matched(p)
            if matched is None:
                return None
            following.append(matched)
        top = last - 1
        self.up = following[top - 1]  # from the step before the one that stands for all, to that
        at_last = self._at_last()
        carried = {self.up[x] for v in self.steps[top] for x in t.operands(v) if x in self.up}
        if not carried:
            return None
        kept = set(at_last)
        own = set(self.steps[top])
        while True:
            more = {u for u in carried if u not in kept and not self._is_free(u, own, kept)}
            if not more:
                break
            kept |= more
        read = {x for u in carried for x in self._kept_below(u, kept, own)}
        members = {v: self._members(v, following, at_last) for v in self.steps[top]}
        inside = {m for each in members.values() for m in each[1:] if m}
        asked = {v for v in self.steps[top] if any(self._is_outside(m, inside) for m in members[v][1:] if m)}
        outputs = [v for v in self.steps[top] if v in {self._viewed(v, own) for v in read | asked}]
        back = self._back(following[1])
        if back is None:
            return None
        first_of = {v: members[v][1] for v in self.steps[top]}
        return self._written(outputs, members, first_of, back)

    def _is_outside(self, name: str, inside: set[str]) -> bool:
        """Does somebody else than steps read the value?"""
        return any(user not in inside for user in self.t.users.get(name, ()))

    def _viewed(self, v: str, own: set[str]) -> str:
        """The value of the step that `v` has the elements of."""
        while isinstance(self.t.op(v), VIEWS) and self.t.operands(v)[0] in own:
            v = self.t.operands(v)[0]
        return v

    def _matched(self, p: int) -> dict[str, str] | None:
        """The values of step p + 1 that correspond to those of step p."""
        here, there = self._by_key(p), self._by_key(p + 1)
        if here is None or there is None or Counter(k for k, _ in here) != Counter(k for k, _ in there):
            return None
        waiting: dict[int, list[str]] = {}
        for key, name in reversed(there):
            waiting.setdefault(key, []).append(name)
        return {name: waiting[key].pop() for key, name in here}

    def _by_key(self, p: int) -> list[tuple[int, str]] | None:
        t, own = self.t, dict.fromkeys(self.steps[p], -1)
        item, before = 1 << self._item(p), self._prefix(p - 1)

        def key(x: str) -> int:
            if x in own:
                return own[x]
            if not t.items[x]:
                return self._intern(("whole", x))
            if t.items[x] == item:
                return self._part_key(x)
            if t.items[x] == before:
                return self._intern(("before", t.by_name[x].type))
            return -1

        for v in self.steps[p]:
            keys = tuple(key(x) for x in t.operands(v))
            if -1 in keys:
                return None
            own[v] = self._intern((form(t.op(v)), keys))
        return [(k, v) for v, k in own.items()]

    def _at_last(self) -> dict[str, str]:
        """The values of the last step that correspond to those of the one before it, as far as there are any."""
        t, top = self.t, self.last - 1
        parts = {
            self._part_key(let.name): let.name for let in t.lets if t.items[let.name] == 1 << self._item(self.last)
        }
        found: dict[str, str] = {}
        for v in self.steps[top]:
            names: dict[str, str] = {}
            for x in t.operands(v):
                if not t.items[x]:
                    names[x] = x
                elif x in self.up:
                    names[x] = self.up[x]
                elif x in found:
                    names[x] = found[x]
                elif t.items[x] == 1 << self._item(top) and self._part_key(x) in parts:
                    names[x] = parts[self._part_key(x)]
            if len(names) == len(set(t.operands(v))):
                other = t.by_op.get(rename_operands(t.op(v), names))
                if other is not None:
                    found[v] = other
        return found

    def _is_free(self, u: str, own: set[str], kept: set[str]) -> bool:
        """Can the next step compute it from what is kept?"""
        t = self.t
        return all(not t.items[x] or (x in own and (x in kept or self._is_free(x, own, kept))) for x in t.operands(u))

    def _kept_below(self, u: str, kept: set[str], own: set[str]) -> Iterator[str]:
        if u in kept:
            yield u
            return
        for x in self.t.operands(u):
            if x in own:
                yield from self._kept_below(x, kept, own)

    def _members(self, v: str, following: list[dict[str, str]], at_last: dict[str, str]) -> list[str]:
        """The value that corresponds to `v` at each step, "" where there is none; the first is left open."""
        found = ["" for _ in range(self.last + 1)]
        found[self.last] = at_last.get(v, "")
        found[self.last - 1] = v
        for p in range(self.last - 2, 0, -1):
            found[p] = next(a for a, b in following[p].items() if b == found[p + 1])
        return found

    def _back(self, second: dict[str, str]) -> dict[str, str] | None:
        """For values of step 1 that step 2 depends on, those of step 0."""
        t, back = self.t, dict[str, str]()
        for v in self.steps[1]:
            for x0, x1 in zip(t.operands(v), t.operands(second[v]), strict=True):
                if t.items[x1] == self._prefix(1) and x1 in second and back.setdefault(x1, x0) != x0:
                    return None
        todo = list(back.items())
        while todo:
            v1, v0 = todo.pop()
            if form(t.op(v1)) != form(t.op(v0)):
                continue
            for x1, x0 in zip(t.operands(v1), t.operands(v0), strict=True):
                if x1 in second and x1 not in back:
                    back[x1] = x0
                    todo.append((x1, x0))
        return back

    def _written(
        self, outputs: list[str], members: dict[str, list[str]], first_of: dict[str, str], back: dict[str, str]
    ) -> Found | None:
        t, w, top = self.t, self.writer, self.last - 1
        one, zero = 1 << self._item(1), 1 << self._item(0)
        firsts = {self._part_key(let.name): let.name for let in t.lets if t.items[let.name] == zero}
        known0 = dict(back)
        for v in self.steps[1]:  # what the first step has of the others
            names: dict[str, str] = {}
            for x in t.operands(v):
                if not t.items[x]:
                    names[x] = x
                elif x in known0:
                    names[x] = known0[x]
                elif t.items[x] == one and self._part_key(x) in firsts:
                    names[x] = firsts[self._part_key(x)]
            if v not in known0 and len(names) == len(set(t.operands(v))):
                other = t.by_op.get(rename_operands(t.op(v), names))
                if other is not None:
                    known0[v] = other
        if any(first_of[v] not in known0 for v in outputs):
            return None
        w.declare([t.by_name[v].type for v in outputs])
        state = {v: decl.name for v, decl in zip(outputs, w.decls, strict=True)}
        slots: dict[str, ir.Op] = {}  # views of what the position before has are computed here
        for v in outputs:
            slots[members[v][top - 1]] = ir.State(state[v], (ir.Slot(w.routine.prev),))
        rest = w.body(outputs, slots)
        first = w.body([known0[first_of[v]] for v in outputs], {})
        instead: dict[str, ir.Op] = {}
        for v in outputs:
            places = [known0[first_of[v]], *members[v][1:]]
            for p, name in enumerate(places):
                is_read = isinstance(t.op(name), ir.Field | ir.State) if name else True
                if name and not is_read and t.items[name]:
                    instead[name] = ir.State(state[v], (ir.Item(w.routine.name, self._item(p)),))
        return w.found(self.is_forward, first, rest, instead)


class Writer:
    """Writes the bodies of a routine, and the trace that reads its positions."""

    def __init__(self, t: Trace, name: str, states: str) -> None:
        self.t = t
        self.states = states
        self.routine = Routine(name, "", True, (), None, Body((), ()))
        self.decls: tuple[ir.StateDecl, ...] = ()
        self.wholes = t.wholes
        self._constant: dict[str, bool] = {}

    def declare(self, types: Iterable[ir.TensorType]) -> None:
        """The states of a position."""
        found = tuple(ir.StateDecl(f"{self.routine.name}_{i}", kind) for i, kind in enumerate(types))
        if any(decl.type.dtype != "f32" for decl in found):
            raise NotAlike("steps over the items of a list pass on what is no tensor of floats")
        self.decls = found

    def body(self, wanted: list[str], slots: dict[str, ir.Op]) -> Body:
        """The lets that compute values of one step; `slots` are those that other nodes have."""
        t = self.t
        states = {**t.declared.states, **{d.name: d.type for d in self.decls}}
        states |= {name: t.by_name[v].type for v, name in self.wholes.items() if v in t.by_name}
        b = Builder(replace(t.declared, states=states))
        made: dict[str, str] = {}

        def write(name: str) -> str:
            if name in made:
                return made[name]
            let = t.by_name[name]
            op = slots.get(name)
            if op is None and not t.items[name] and not self._is_constant(name):
                op = self._of_owner(let, b)
            if op is None:
                match let.op:
                    case ir.Field(_, (ir.Item(relation), *rest)) | ir.State(_, (ir.Item(relation), *rest)):
                        is_plain = relation not in t.declared.lists  # the item of a list of numbers is the field
                        way = () if is_plain else (ir.Slot(self.routine.at(relation)), *rest)
                        op = replace(let.op, path=way)
                    case _:
                        op = rename_operands(let.op, {x: write(x) for x in operand_names(let.op)})
            made[name] = b.add(op, span=let.span)
            return made[name]

        results = tuple(write(name) for name in wanted)
        return Body(b.lets, results)

    def _of_owner(self, let: ir.Let, b: Builder) -> ir.Op | None:
        """A value of the owner, which computes it before; fields that are no floats are read where they are."""
        if let.type.dtype != "f32":
            if isinstance(let.op, ir.Field):
                return replace(let.op, path=(ir.Slot(self.routine.owner), *let.op.path))
            if operand_names(let.op):
                return None
            raise NotAlike("steps over the items of a list read what is no tensor of floats")
        if let.name not in self.wholes:
            self.wholes[let.name] = f"{self.states}_{len(self.wholes)}"
            states = {**b.declared.states, self.wholes[let.name]: let.type}
            b.declared = replace(b.declared, states=states)
        return ir.State(self.wholes[let.name], (ir.Slot(self.routine.owner),))

    def _is_constant(self, name: str) -> bool:
        """Is it computed from parameters alone?"""
        if name not in self._constant:
            op = self.t.op(name)
            reads = isinstance(op, ir.Field | ir.State | ir.Arity | ir.OverChildren)
            self._constant[name] = not reads and all(map(self._is_constant, operand_names(op)))
        return self._constant[name]

    def found(self, is_forward: bool, first: Body | None, rest: Body, instead: dict[str, ir.Op]) -> Found:
        """The routine, and the trace with `instead` of values that positions have."""
        t = self.t
        lets = []
        for let in t.lets:
            op = instead.get(let.name)
            lets.append(let if op is None else replace(let, op=op))
        kept = drop_dead_lets(tuple(lets), (*t.results, *self.wholes))
        routine = replace(
            self.routine, relation=t.relations[0], is_forward=is_forward, states=self.decls, first=first, rest=rest
        )
        return Found(routine, kept)
