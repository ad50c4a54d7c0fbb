"""What the names of a traced module mean on the user's objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from cortex.frontend.fields import Accessors, Declared, Source
from cortex.frontend.torch.calls import Relation, relation_attribute
from cortex.frontend.torch.steps import NOWHERE, Attr, Of, Steps, careful_reader, follow, identifier, reader

RESERVED = ("call_from", "call_role", "call_via")
"""Attributes of calls."""


class TorchAccessors(Accessors):
    """Names of attributes, and of what steps lead to.

    Where the nodes of a request are calls (`of_calls`), an attribute is one of the user's node that the call is made
    on.
    """

    def __init__(
        self,
        fields: Mapping[str, str | Callable[[Any], Any] | Declared] | None = None,
        children: str | tuple[str, ...] | Callable[[Any], Iterable[Any]] | None = None,
    ) -> None:
        super().__init__(fields, children)
        self.of_calls = False
        self._names: dict[Steps, str] = {}
        self._steps: dict[str, Steps] = {}
        self._relations: dict[str, Callable[[Any], Any]] = {}
        self._careful: set[str] = set()

    def forget(self) -> None:
        """Start again with other nodes."""
        self._names.clear()
        self._steps.clear()
        self._relations.clear()
        self._careful.clear()

    def name(self, steps: Steps) -> str:
        """The name of what the steps lead to; always the same one."""
        if steps not in self._names:
            stem = identifier(steps)
            name, number = stem, 2
            while name in self._steps or name in self._relations or name in RESERVED:
                name, number = f"{stem}_{number}", number + 1
            self._names[steps] = name
            self._steps[name] = steps
        return self._names[steps]

    def steps(self, name: str) -> Steps:
        """The steps that a name stands for."""
        return self._steps[name]

    def relate(self, name: str, function: Callable[[Any], Any]) -> None:
        """`name` is a relation whose nodes `function` gives."""
        self._relations[name] = function

    def may_lack(self, name: str) -> None:
        """Some objects have no such attribute, and the model knows what to do then."""
        self._careful.add(name)

    def may_be_absent(self, name: str) -> bool:
        """Has some object no such attribute?"""
        return name in self._careful

    def source(self, name: str) -> Source:
        """An attribute's name where the object simply has it; else a function."""
        relation = self._relations.get(name)
        if relation is not None:
            return relation_attribute(name) if isinstance(relation, Relation) else relation
        steps = self._steps.get(name)
        if steps is None:
            return super().source(name)
        if not self.of_calls and len(steps) == 1 and isinstance(steps[0], Attr):
            return self._sources.get(steps[0].name, steps[0].name)
        full = (Attr("node"), *self._meant(steps)) if self.of_calls else self._meant(steps)
        return careful_reader(full) if name in self._careful else reader(full)

    def renamed(self, name: str) -> bool:
        """Does the name mean anything else than the attribute of that name?"""
        return self.source(name) != name

    def _meant(self, steps: Steps) -> Steps:
        """The steps, with the user's meaning of attributes."""
        first = steps[0] if steps else None
        if not isinstance(first, Attr) or first.name not in self._sources:
            return steps
        return (Of(first.name, lambda x: Accessors._read(self, x, first.name, None)), *steps[1:])

    def _read(self, node: Any, name: str, default: Any) -> Any:
        if name in self._relations:
            return self._relations[name](node)
        steps = self._steps.get(name)
        if steps is None:
            return super()._read(node, name, default)
        try:
            return follow(node.node if self.of_calls else node, self._meant(steps))
        except NOWHERE:
            return default
