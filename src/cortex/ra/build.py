"""Building the graph of a kind: names are made up, types and `over` are inferred.

>>> from cortex.ra.ir import Arity, Fill, Binary
>>> b = Builder(Declared({}, {}, {}, ("children",)))
>>> twice = b.add(Binary("mul", b.add(Arity("children")), b.add(Fill(2.0, (3,)))))
>>> b[twice]
Let(name='t2', op=Binary(fn='mul', x='t0', y='t1'), type=TensorType(shape=(3,), dtype='f32'), over=None)
"""

from __future__ import annotations

from collections.abc import Collection

from cortex.errors import InternalError
from cortex.ir.source import Span
from cortex.ra import ir
from cortex.ra.shapes import Declared, infer, over_of


class Builder:
    """Lets in order of definition, with their types."""

    def __init__(self, declared: Declared, reserved: Collection[str] = ()) -> None:
        """No lets yet; names that are made up stay clear of `reserved`."""
        self.declared = declared
        self.reserved = frozenset(reserved)
        self.types: dict[str, ir.TensorType] = {}
        self.overs: dict[str, str | None] = {}
        self._lets: dict[str, ir.Let] = {}
        self._fresh: dict[str, int] = {}

    @property
    def lets(self) -> tuple[ir.Let, ...]:
        """The lets so far."""
        return tuple(self._lets.values())

    def __getitem__(self, name: str) -> ir.Let:
        """The let called `name`."""
        return self._lets[name]

    def __contains__(self, name: str) -> bool:
        """Is there a let called `name`?"""
        return name in self._lets

    def add(self, op: ir.Op, name: str | None = None, span: Span | None = None) -> str:
        """Define a let for `op`; its name, `name` if given."""
        name = self.fresh("t") if name is None else name
        if name in self._lets:
            raise InternalError(f"let {name!r} is defined twice")
        t, over = infer(op, self.types, self.declared), over_of(op, self.overs)
        self._lets[name] = ir.Let(name, op, t, over, span)
        self.types[name] = t
        self.overs[name] = over
        return name

    def fresh(self, stem: str) -> str:
        """A name that no let has yet: `stem` and a number."""
        n = self._fresh.get(stem, 0)
        while f"{stem}{n}" in self._lets or f"{stem}{n}" in self.reserved:
            n += 1
        self._fresh[stem] = n + 1
        return f"{stem}{n}"
