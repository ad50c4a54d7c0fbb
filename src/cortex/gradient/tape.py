"""Reverse mode over a list of lets: adjoints are collected on the way back and added up where they are needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cortex.ra import ir
from cortex.ra.build import Builder

Ranges = tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class Part:
    """The adjoint `g` of a slice of a value."""

    ranges: Ranges
    g: str


class Tape:
    """Adjoints of forward values, as lets of a graph that `builder` holds.

    `lets` are the forward lets, `value(name)` gives a let of the new graph with the forward value of `name`, and
    `wants(name)` says whether its adjoint is of use.
    """

    def __init__(
        self,
        builder: Builder,
        lets: Mapping[str, ir.Let],
        value: Callable[[str], str],
        wants: Callable[[str], bool],
    ) -> None:
        self.builder = builder
        self.lets = lets
        self.value = value
        self.wants = wants
        self._given: dict[str, list[str | Part]] = {}
        self._totals: dict[str, str] = {}

    def add(self, op: ir.Op) -> str:
        """A let of the new graph."""
        return self.builder.add(op)

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a forward value."""
        return self.lets[name].type.shape

    def give(self, name: str, g: str | Part) -> None:
        """Add `g` to the adjoint of `name`: where that is per node and `g` per edge, its sum over the edges."""
        at = g if isinstance(g, str) else g.g
        over = self.builder.overs[at]
        if over is not None and self.lets[name].over is None:
            at = self.add(ir.OverChildren("add", at, over))
            g = at if isinstance(g, str) else Part(g.ranges, at)
        self._given.setdefault(name, []).append(g)

    def total(self, name: str) -> str | None:
        """The adjoint of a forward value; None where nothing depends on it."""
        if name in self._totals:
            return self._totals[name]
        given = self._given.get(name)
        if not given:
            return None
        whole = [g for g in given if isinstance(g, str)]
        parts = [g for g in given if isinstance(g, Part)]
        if parts:
            joined = self._joined(self.shape(name), parts)
            whole += [joined] if joined is not None else [self._widened(self.shape(name), p) for p in parts]
        found = whole[0]
        for g in whole[1:]:
            found = self.add(ir.Binary("add", found, g))
        self._totals[name] = found
        return found

    def _joined(self, shape: tuple[int, ...], parts: list[Part]) -> str | None:
        """Slices that lie side by side along one axis, with zeros between them."""
        differing = {a for p in parts for a, n in enumerate(shape) if p.ranges[a] != (0, n, 1)}
        if len(differing) != 1:
            return None
        (axis,) = differing
        ordered = sorted(parts, key=lambda p: p.ranges[axis])
        pieces: list[str] = []
        at = 0
        for p in ordered:
            start, stop, step = p.ranges[axis]
            if start < at or step != 1 or stop == start:
                return None
            pieces += self._zeros(shape, axis, start - at)
            pieces.append(p.g)
            at = stop
        pieces += self._zeros(shape, axis, shape[axis] - at)
        return pieces[0] if len(pieces) == 1 else self.add(ir.Concat(tuple(pieces), axis))

    def _zeros(self, shape: tuple[int, ...], axis: int, count: int) -> list[str]:
        extent = (*shape[:axis], count, *shape[axis + 1 :])
        return [self.add(ir.Fill(0.0, extent))] if count else []

    def _widened(self, shape: tuple[int, ...], part: Part) -> str:
        """The adjoint of a slice as one of the whole, zero elsewhere."""
        g = part.g
        for axis, (start, stop, step) in enumerate(part.ranges):
            have = self.builder.types[g].shape
            if step > 1:
                g = self._spread(g, axis, step)
                have = self.builder.types[g].shape
                stop = start + have[axis]
            if stop > shape[axis]:  # zeros after the last element
                keep = tuple((0, n if a != axis else shape[axis] - start, 1) for a, n in enumerate(have))
                g, stop = self.add(ir.Slice(g, keep)), shape[axis]
            pieces = [*self._zeros(have, axis, start), g, *self._zeros(have, axis, shape[axis] - stop)]
            g = pieces[0] if len(pieces) == 1 else self.add(ir.Concat(tuple(pieces), axis))
        return g

    def _spread(self, g: str, axis: int, step: int) -> str:
        """`g` with `step` - 1 zeros after each of its elements along `axis`."""
        have = self.builder.types[g].shape
        apart = self.add(ir.Reshape(g, (*have[: axis + 1], 1, *have[axis + 1 :])))
        zeros = self.add(ir.Fill(0.0, (*have[: axis + 1], step - 1, *have[axis + 1 :])))
        both = self.add(ir.Concat((apart, zeros), axis + 1))
        return self.add(ir.Reshape(both, (*have[:axis], have[axis] * step, *have[axis + 1 :])))
