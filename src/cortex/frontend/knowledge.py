"""What tracing has learned about a model so far, shared by the traces of all its kinds."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import TYPE_CHECKING, Any

import numpy as np

from cortex.frontend.clock import Clock
from cortex.frontend.fields import Accessors
from cortex.frontend.numpy_meanings import Site
from cortex.frontend.signals import NeedsExample, Restart
from cortex.frontend.spans import fail, span_of_function
from cortex.frontend.state_form import Guess, StateForm
from cortex.frontend.weights import Weights
from cortex.options import Options
from cortex.ra.ir import Gather, TensorType, Test

if TYPE_CHECKING:
    from cortex.frontend.arity.told import Told
    from cortex.frontend.decision import Traced
    from cortex.frontend.model import TracedModel


Place = tuple[Any, ...]
"""A reduction, and where the user's code calls it."""


class Knowledge:
    """Relations, field types and state types, filled in as kinds are traced.

    Dictionaries with None values stand for ordered sets.
    """

    def __init__(self, model: TracedModel, arguments: dict[str, Any], weights: Weights, accessors: Accessors) -> None:
        self.name = model.name
        self.model = model
        self.definition = span_of_function(model.function.__code__)
        self.arguments = arguments
        self.weights = weights
        self.accessors = accessors
        self.clock = Clock(Options.from_environment().tracing_seconds)
        self.slots: dict[str, None] = {}
        self.lists: dict[str, None] = {}
        self.item_lists: dict[str, None] = {}
        """Lists of plain values, of whose lengths kinds may be independent."""
        self.examples: dict[str, list[Any] | None] = {}
        """Items of lists, for nodes that have none in them; None where there are none yet."""
        self.tags: dict[str, None] = {}
        self.read: dict[str, None] = {}
        """Every attribute of a node that some trace has read."""
        self.counts: dict[str, str | None] = {}
        """Attributes that hold the number of children in a list relation, as far as seen: `num_children`.

        None for those that did so by chance.
        """
        self.told: dict[Test, Told] = {}
        """Questions whose answers follow from the number of children in a list."""
        self.same_length: dict[str, str] = {}
        """Lists of calls on the items of a list, which are as many: the relation's name, and the list's."""
        self.reduced: dict[Site, set[tuple[int, ...]]] = {}
        """The shapes that reductions over children gave, by where the code calls them."""
        self.fields: dict[str, TensorType] = {}
        self.forms: dict[str, tuple[tuple[int, ...], bool]] = {}
        """Of fields that torch code has read: the shape of a real value, and whether it consists of integers."""
        self.gathers: dict[str, Gather] = {}
        """Lists that consist of what calls add to collections, by name."""
        self.kind_of: Callable[[Any], Traced | None] = lambda node: None
        """The kind that has been traced for a node like this."""
        self.states: StateForm | None = None
        self.first_kind = ""
        self.prefers_calls = False
        """Shall a function be refused that is better compiled by its calls (beyond.py)?"""
        self.guess: Guess | None = None
        self._leaf_means_empty: set[str] = set()
        self._over_none: dict[Place, tuple[int, ...] | None] = {}
        self._ask_lengths = False
        self.trees_only = False
        """May a node be below one other node only?"""
        self.is_draft = False
        """Is it only found out what there is to be known, before kinds are traced for good?"""
        self._computed: dict[tuple[str, tuple[int, ...] | None], str] = {}
        """Other names of fields that are integers in some kinds and other numbers in other ones, or of other shapes."""

    def shape_over_none(self, place: Place) -> tuple[int, ...] | None:
        """The shape of a reduction over no children, where calls are seen: a number until another one is known."""
        return None if self.model.explores else self._over_none.setdefault(place, ())

    def note_reduced(self, place: Place, shape: tuple[int, ...]) -> None:
        """A reduction has this shape; trace again where it was supposed to be a number."""
        if self.model.explores or self._over_none.get(place) == shape:
            return
        supposed, self._over_none[place] = self._over_none.get(place), shape
        if supposed == ():
            self.reduced.clear()
            for role in self.model.roles:
                role.forget()
            raise Restart
        if supposed is not None:
            self._over_none[place] = None  # it has several

    def note_slot(self, name: str) -> None:
        """`node.NAME` is a child."""
        if name in self.lists:
            raise fail(f"node.{name} is used as one child here and as a list of children elsewhere; choose one.")
        self._note_relation(self.slots, name)

    def note_list(self, name: str) -> None:
        """`node.NAME` is a list of children."""
        if name in self.slots:
            raise fail(f"node.{name} is used as a list of children here and as one child elsewhere; choose one.")
        self._note_relation(self.lists, name)

    def _note_relation(self, names: dict[str, None], name: str) -> None:
        names.setdefault(name)
        if self._leaf_means_empty - {name}:
            self._leaf_means_empty.clear()
            self._ask_lengths = True
            raise Restart

    def empty_means_leaf(self, name: str) -> bool:
        """Is "this list is empty" the same question as "is the node a leaf"?

        It is while `name` is the only relation; learning of another one restarts the tracing.
        """
        if self._ask_lengths or set(self.slots) | set(self.lists) - {name}:
            return False
        self._leaf_means_empty.add(name)
        return True

    def int_field(self, name: str) -> TensorType:
        """`node.NAME` is used as an index, hence an integer."""
        known = self.fields.setdefault(name, TensorType((), "i64"))
        if known.dtype != "i64":
            if known.shape:
                raise fail(f"node.{name} is used as an index here, but it is a float field of shape {known.shape}.")
            self.fields[name] = TensorType((), "i64")
            raise Restart
        return known

    def float_field(self, name: str, shape: tuple[int, ...] | None) -> TensorType:
        """`node.NAME` is used as a tensor; `shape` is that of a real value, where there is one."""
        if name not in self.fields:
            shape = self.accessors.shapes.get(name, shape)
            if shape is None:
                raise NeedsExample(f"the shape of the field '{name}'")
            self.fields[name] = TensorType(shape)
        return self.fields[name]

    def is_of_children(self, name: str) -> bool:
        """Is a list a relation of the model, or of the length of one? Only such lengths are known when a kind runs."""
        return name in self.lists or any(name == base and own in self.lists for own, base in self.same_length.items())

    def computed_name(self, name: str, sample: Any, shape: tuple[int, ...] | None) -> str:
        """What the field is called where it is computed with.

        It has another name than where it is an index, if it is no integer, and one for each further shape.
        """
        known = self.fields.get(name)
        is_index = known is not None and known.dtype == "i64"
        if shape is None and any(other == name and of is not None for other, of in self._computed):
            raise NeedsExample(f"which shape the field '{name}' has")
        if known is None or shape is None or (not is_index and known.shape == shape):
            return name
        if is_index and not shape and not isinstance(sample, float | np.floating):
            return name
        if name in self.accessors.shapes:
            return name
        key = (name, None if is_index and not shape else shape)
        if key not in self._computed:
            own = "_".join([name, *(["computed"] if key[1] is None else map(str, shape or ("scalar",)))])
            while own in self.read or own in self.fields:
                own += "_"
            self._computed[key] = own
        self.read.setdefault(self._computed[key])
        self.accessors.add_name(self._computed[key], name)
        return self._computed[key]

    def children(self, node: Any, through: Container[str] | None = None) -> list[Any]:
        """All children of a real node, through every relation known so far, or through these."""
        slots, lists = ([n for n in names if through is None or n in through] for names in (self.slots, self.lists))
        found = [child for name in slots if (child := self.accessors.read(node, name, None)) is not None]
        for name in lists:
            found += self.accessors.items(node, name)
        return found
