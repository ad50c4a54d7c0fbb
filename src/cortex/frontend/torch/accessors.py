"""What the names of a traced module mean on the user's objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cortex.frontend.computed import Computed, Constant
from cortex.frontend.fields import Accessors, Declared, Source
from cortex.frontend.torch.calls import RESERVED, Relation, Row, Storing, said
from cortex.frontend.torch.steps import (
    NOWHERE,
    At,
    Attr,
    LookedUp,
    Meant,
    Steps,
    Way,
    first_attributes,
    follow,
    identifier,
    replaced,
)


@dataclass(frozen=True)
class Ways:
    """What names mean where that is not what the user said of them; `related` are those with relations."""

    of_calls: bool
    steps: dict[str, Steps]
    careful: tuple[str, ...]
    related: dict[str, Relation | Storing | Row | None]
    """None: what the steps lead to, if they lead anywhere."""


class TorchAccessors(Accessors):
    """Names of attributes, and of what steps lead to.

    Where the nodes of a request are calls (`of_calls`), an attribute is one of the user's node that the call is made
    on.
    """

    def __init__(
        self,
        fields: Mapping[str, str | Callable[[Any], Any] | Declared] | None = None,
        children: str | tuple[str, ...] | Callable[[Any], Iterable[Any]] | None = None,
        itemize: Callable[[str], None] = lambda name: None,
    ) -> None:
        super().__init__(fields, children)
        self._itemize = itemize
        """What to do about a list of children in which there is None."""
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

    def ways(self, names: Iterable[str]) -> Ways:
        """What these names mean."""
        known = sorted(name for name in names if name in self._steps or name in self._relations)
        related = {name: self._relations[name] for name in known if name in self._relations}
        return Ways(
            self.of_calls,
            {name: self._steps[name] for name in known if name in self._steps},
            tuple(name for name in known if name in self._careful),
            {name: x if isinstance(x, Relation | Storing | Row) else None for name, x in related.items()},
        )

    def restore(self, ways: Ways) -> None:
        """Let names mean what they did when `ways` was taken."""
        self.of_calls = ways.of_calls
        self._steps |= ways.steps
        self._careful |= set(ways.careful)
        for name, relation in ways.related.items():
            self.relate(name, Way(ways.steps[name], careful=True) if relation is None else relation)

    def meanings(self, names: Iterable[str]) -> dict[str, Source]:
        """What the user said of attributes that these names of the model read."""
        own = [name for name in names if name not in self._relations]
        steps = [self._steps[name] for name in own if name in self._steps]
        numbers = (x for r in self.relations_of_calls.values() for _, x in r.numbers)
        steps += [x for x in numbers if not isinstance(x, Constant)]
        read = {name for name in own if name not in self._steps}
        return super().meanings(read | first_attributes(steps))

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

    def item(self, name: str) -> tuple[str, int] | None:
        """The list of plain values, and the place in it, that a name stands for; None for other names."""
        steps = self._steps.get(name, ())
        last = steps[-1] if len(steps) > 1 else None
        if not isinstance(last, At) or type(last.key) is not int:
            return None
        return self.name(steps[:-1]), last.key

    def name_of_item(self, name: str, index: int) -> str:
        """The name that stands for one item of such a list."""
        return self.name((*self._steps[name], At(index)))

    def item_name(self, name: str, stem: str) -> str:
        """What the items of such a list are called: the way from an item to itself has no steps."""
        own = super().item_name(name, stem)
        while self._steps.setdefault(own, ()):
            own += "_"
        return own

    def steps(self, name: str) -> Steps:
        """The steps that a name stands for."""
        return self._steps[name]

    def way_of_list(self, name: str) -> Steps | None:
        """The way to the list of nodes that a relation leads to, or to the calls on its items."""
        relation = self._relations.get(name)
        return relation.steps if isinstance(relation, Relation) else self._steps.get(name)

    def is_way(self, name: str) -> bool:
        """Does a name stand for steps, rather than for a relation?"""
        return name in self._steps and name not in self._relations

    def relate(self, name: str, function: Callable[[Any], Any]) -> None:
        """`name` is a relation whose nodes `function` gives."""
        if isinstance(function, Relation):
            function.meant = self.meant
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
            return relation
        steps = self._steps.get(name)
        if steps is None:
            return super().source(name)
        if not self.of_calls and len(steps) == 1 and isinstance(steps[0], Attr):
            return self._sources.get(steps[0].name, steps[0].name)
        return Way(self.meant(steps), name in self._careful, self.of_calls)

    @property
    def relations_of_calls(self) -> dict[str, Relation]:
        """The relations between calls, by name."""
        return {name: x for name, x in self._relations.items() if isinstance(x, Relation)}

    def of_call(self, name: str) -> Way | Storing | Row | None:
        """What a name means on a call, but for `RESERVED` names: steps are those from the node that it is made on."""
        relation = self._relations.get(name)
        if isinstance(relation, Storing | Row):
            return relation
        return Way(self.meant(self._steps[name]), name in self._careful) if name in self._steps else None

    def items(self, node: Any, name: str) -> list[Any]:
        """The children in a list, all of them nodes: one that may hold None is not taken for a list of children."""
        value = self.read(node, name, None)
        if isinstance(value, list | tuple) and any(x is None for x in value):
            relation = self._relations.get(name)
            self._itemize(self.name(relation.steps) if isinstance(relation, Relation) else name)
        return [child for child in self.listed(node, name) if child is not None]

    def add_name(self, other: str, name: str) -> None:
        """`other` is a second name for what `name` means."""
        if name in self._relations:
            self._relations[other] = self._relations[name]
        if name in self._steps:
            self._steps[other] = self._steps[name]
        if name in self._careful:
            self._careful.add(other)

    def said(self, name: str) -> str:
        """What a name of the model is called in code."""
        return said(self._steps[name]) if name in self._steps else super().said(name)

    def computed_by(self, name: str) -> Computed | None:
        """The expression that gives what has this name, if one does."""
        steps = self._steps.get(name)
        return steps[-1] if steps and isinstance(steps[-1], Computed) else None

    def looks_up(self, name: str) -> LookedUp | None:
        """The dictionary in which what has this name is looked up, if it is."""
        steps = self._steps.get(name)
        return steps[-1] if steps and isinstance(steps[-1], LookedUp) else None

    def key(self, node: Any, name: str) -> tuple[Any, str]:
        """With what it is looked up for a node, and how code reads that."""
        steps = self._steps[name][:-1]
        return self._follow(node, steps), said(steps)

    def renamed(self, name: str) -> bool:
        """Does the name mean anything else than the attribute of that name?"""
        return self.source(name) != name

    def meant(self, steps: Steps) -> Steps:
        """The steps, with the user's meaning of attributes."""
        return replaced(steps, self._with_meaning)

    def _with_meaning(self, steps: Steps) -> Steps:
        first = steps[0] if steps else None
        if not isinstance(first, Attr) or first.name not in self._sources:
            return steps
        source = self._sources[first.name]
        return (Meant(first.name, lambda x: self._take(source, x, first.name, None)), *steps[1:])

    def _read(self, node: Any, name: str, default: Any) -> Any:
        if name in self._relations:
            return self._relations[name](node)
        steps = self._steps.get(name)
        if steps is None:
            return super()._read(node, name, default)
        try:
            return self._follow(node, steps)
        except NOWHERE:
            return default

    def _follow(self, node: Any, steps: Steps) -> Any:
        """What the steps lead to from a node of the model."""
        return follow(node.node, self.meant(steps), node.numbers) if self.of_calls else follow(node, self.meant(steps))
