"""States that kinds share: each kind stores other values in them, of the same shape."""

from __future__ import annotations

from cortex.ra import ir

Shape = tuple[int, ...]


class SharedStates:
    """States called `stem` and a number, as many of each shape as the kind with most values of that shape needs."""

    def __init__(self, stem: str, types: dict[str, ir.TensorType]) -> None:
        """The types of the states are added to `types`."""
        self._stem = stem
        self._types = types
        self._of_shape: dict[Shape, list[str]] = {}
        self._stored: dict[int, dict[str, str]] = {}

    def name(self, kind: int, let: str, shape: Shape) -> str:
        """The state that holds the value `let` of a kind."""
        stored = self._stored.setdefault(kind, {})
        if let not in stored:
            names = self._of_shape.setdefault(shape, [])
            free = next((name for name in names if name not in stored.values()), None)
            if free is None:
                free = f"{self._stem}_{sum(map(len, self._of_shape.values()))}"
                names.append(free)
                self._types[free] = ir.TensorType(shape)
            stored[let] = free
        return stored[let]

    def declared(self) -> tuple[ir.StateDecl, ...]:
        """All of them, in the order of their making."""
        names = sorted((n for names in self._of_shape.values() for n in names), key=lambda n: int(n.split("_")[-1]))
        return tuple(ir.StateDecl(name, self._types[name]) for name in names)

    def let_of(self, kind: int, state: str) -> str | None:
        """The value of a kind that a state holds, if it has one there."""
        return next((let for let, name in self._stored.get(kind, {}).items() if name == state), None)

    def lets(self, kind: int) -> tuple[str, ...]:
        """The values of a kind that are stored."""
        return tuple(self._stored.get(kind, {}))
