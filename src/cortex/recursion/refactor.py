"""Refactor: move the back edge of the recursion into the cell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from cortex.errors import ScheduleError
from cortex.ir.step import Step, step
from cortex.ra import ir
from cortex.ra.build import Builder
from cortex.ra.shapes import Declared, operand_names, rename_operands
from cortex.ra.simplify import drop_dead_lets
from cortex.recursion.fit_tail import Value, fit
from cortex.recursion.refuse import refuse, refuse_model, refuse_positions
from cortex.recursion.tail import NoTail, Tail, tail_after, tails

Fits = dict[str, dict[str, Value]]
"""Per kind, the value of the kind for each value that crosses."""


@step
class Refactor(Step[ir.Model]):
    """Let parents finish their children: the tail of a cell is computed where the parent reads the child.

    before:  s = sum over children of h_k; ...; h = u * g           h is kept per node
    after:   s = sum over children of u_k * g_k; ...                u and g are kept per node
             finish: h = u * g                                      for all nodes, after the recursion

    The tail is what `kind` computes after the values `cut`. Without `cut`, the step takes the point in the order of
    the kind's lets after which the fewest bytes cross, the latest of equals, among those that are legal; without
    `kind`, any kind that reads children. What crosses become the states of the recursion, and users see the states
    they know. The tail is computed once more for every child read, so the step pays where reading is the cost.

    legal:   the tail is pointwise and not empty; every other kind can end in the same tail, by the operators it ends
             in itself or by neutral elements (a leaf's h is h + 0 to a parent that adds two values).
    """

    kind: str = ""
    cut: tuple[str, ...] = ()

    def apply(self, program: ir.Model) -> ir.Model:
        """`program` with the back edge moved."""
        refuse_positions(self, program)
        if program.finish is not None:
            refuse_model(self, "the back edge was moved before; one Refactor with an earlier cut does both.", program)
        if any(kind.variant_of for kind in program.kinds):
            refuse_model(self, "the model is unrolled already. Put Refactor before Unroll.", program)
        tail, fits = self._choose(program, self._kinds(program))
        return _move(program, tail, fits)

    def _kinds(self, m: ir.Model) -> tuple[ir.Kind, ...]:
        """The kinds that may define the tail."""
        reading = tuple(k for k in m.kinds if any(isinstance(let.op, ir.State) for let in k.lets))
        if self.kind:
            named = tuple(k for k in m.kinds if k.name == self.kind)
            if not named:
                known = ", ".join(k.name for k in m.kinds)
                raise ScheduleError(f"{self}: {m.name} has no kind {self.kind!r}. Its kinds: {known}.")
            return named
        if self.cut and len(reading) > 1:
            names = ", ".join(k.name for k in reading)
            refuse_model(self, f"several kinds read children ({names}); say with kind= whose values the cut names.", m)
        if not reading:
            refuse_model(self, "no kind reads the state of a child, so there is no back edge to move.", m)
        return reading

    def _choose(self, m: ir.Model, kinds: tuple[ir.Kind, ...]) -> tuple[Tail, Fits]:
        """The tail to move, and how every kind ends in it."""
        candidates = [self._named(m, kinds[0])] if self.cut else [t for k in kinds for t in tails(k)]
        if not candidates:
            kind = kinds[0]
            refuse(self, f"kind {kind.name!r} does not end in pointwise operators.", m, kind)
        refused: tuple[Tail, ir.Kind] | None = None
        for tail in sorted(candidates, key=lambda t: t.bytes):
            fits: Fits = {}
            for kind in m.kinds:
                found = {let.name: let.name for let in tail.crossing} if kind == tail.kind else fit(tail, kind)
                if found is None:
                    refused = refused or (tail, kind)
                    break
                fits[kind.name] = dict(found)
            else:
                return tail, fits
        assert refused is not None
        tail, kind = refused
        crossing = ", ".join(let.name for let in tail.crossing)
        refuse(
            self,
            f"kind {kind.name!r} cannot end as kind {tail.kind.name!r} does after ({crossing}), and a parent reads "
            "both alike. Every kind must end in the same operators, or in a part of them.",
            m,
            kind,
        )

    def _named(self, m: ir.Model, kind: ir.Kind) -> Tail:
        unknown = [name for name in self.cut if name not in {let.name for let in kind.lets}]
        if unknown:
            refuse(self, f"kind {kind.name!r} has no value {unknown[0]!r}.", m, kind)
        try:
            tail = tail_after(kind, self.cut)
        except NoTail as reason:
            refuse(self, f"{reason}. Put it, or what follows it, into the cut.", m, kind)
        unused = [name for name in self.cut if name not in {let.name for let in tail.crossing}]
        if unused:
            refuse(self, f"nothing after the cut reads {unused[0]!r}. Leave it out of the cut.", m, kind)
        if not tail.moves:
            refuse(self, "nothing is computed after the cut. Name values further up.", m, kind)
        return tail


def crossing(m: ir.Model) -> tuple[ir.StateDecl, ...]:
    """What crosses the back edge of a model: the states that parents read."""
    read = {let.op.name for k in m.kinds for let in k.lets if isinstance(let.op, ir.State)}
    return tuple(s for s in m.states if s.name in read)


def _move(m: ir.Model, tail: Tail, fits: Fits) -> ir.Model:
    states = _states(m, tail)
    moved = replace(m, states=tuple(states.values()))
    kinds = tuple(_rewrite(kind, m, moved, _Reading(tail, states), fits[kind.name]) for kind in m.kinds)
    b = Builder(Declared.of(moved))
    own = _Finished(b, _Reading(tail, states), ())
    results = tuple(own(r) for r in tail.kind.results)
    return replace(moved, kinds=kinds, finish=ir.Finish(m.states, b.lets, results))


def _states(m: ir.Model, tail: Tail) -> dict[str, ir.StateDecl]:
    """The states of the recursion by the value of the tail's kind; a state that crosses as it is keeps its name."""
    pairs = list(zip(m.states, tail.kind.results, strict=True))
    taken = {s.name for s in m.states}
    states: dict[str, ir.StateDecl] = {}
    for let in tail.crossing:
        name = next((s.name for s, result in pairs if result == let.name), "")
        number = 0
        while not name or (name in taken and number):
            number += 1
            name = f"{next(s.name for s, result in pairs if _needs(tail, result, let.name))}_{number}"
        taken.add(name)
        states[let.name] = ir.StateDecl(name, let.type)
    return states


def _needs(tail: Tail, result: str, value: str) -> bool:
    """Does the tail compute `result` from `value`?"""
    return any(value in operand_names(let.op) for let in drop_dead_lets(tail.lets, (result,)))


def _rewrite(kind: ir.Kind, m: ir.Model, moved: ir.Model, reading: _Reading, values: dict[str, Value]) -> ir.Kind:
    """`kind` of `m` computing what crosses, from what crosses at its children."""
    b = Builder(Declared.of(moved), [let.name for let in kind.lets])
    result_of = {s.name: r for s, r in zip(m.states, reading.tail.kind.results, strict=True)}
    children: dict[tuple[ir.Hop, ...], _Finished] = {}
    renamed: dict[str, str] = {}
    for let in kind.lets:
        if isinstance(let.op, ir.State):
            child = children.setdefault(let.op.path, _Finished(b, reading, let.op.path))
            renamed[let.name] = child(result_of[let.op.name])
        else:
            renamed[let.name] = b.add(rename_operands(let.op, renamed), let.name, let.span)
    outputs = []
    for value, state in reading.states.items():
        found = values[value]
        outputs.append(renamed[found] if isinstance(found, str) else b.add(ir.Fill(found, state.type.shape)))
    return replace(kind, lets=drop_dead_lets(b.lets, tuple(outputs)), results=tuple(outputs))


@dataclass(frozen=True)
class _Reading:
    """A tail, and the state that holds each value that crosses."""

    tail: Tail
    states: Mapping[str, ir.StateDecl]


class _Finished:
    """The values of a tail at the node that `path` leads to, as lets; each is added when it is first asked for."""

    def __init__(self, b: Builder, reading: _Reading, path: tuple[ir.Hop, ...]) -> None:
        self._b = b
        self._reading = reading
        self._path = path
        self._lets = {let.name: let for let in reading.tail.lets}
        self._added: dict[str, str] = {}

    def __call__(self, value: str) -> str:
        """The let that is `value`, of the tail or of what crosses."""
        if value not in self._added:
            self._added[value] = self._add(value)
        return self._added[value]

    def _add(self, value: str) -> str:
        if value in self._reading.states:
            state = self._reading.states[value].name
            name = "_".join([*(hop.name for hop in self._path), state])
            if name in self._b or name in self._b.reserved:
                name = self._b.fresh(f"{name}_")
            return self._b.add(ir.State(state, self._path), name)
        let = self._lets[value]
        operands = {name: self(name) for name in operand_names(let.op)}
        return self._b.add(rename_operands(let.op, operands), span=let.span)
