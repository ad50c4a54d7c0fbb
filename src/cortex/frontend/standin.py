"""Stand-in nodes: what the model function gets instead of a node of the user's.

`Place` is a node reached by a path: the node itself, or a child in a list relation. `Attribute` is what reading
an attribute gives; it becomes what it is used as: a child, a list of children, a tag, or a field. Every public
name belongs to the user's nodes, hence the `_cortex` names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, NoReturn

import numpy as np

from cortex.errors import StructureError
from cortex.frontend.absence import has_default, refuse_absence_test
from cortex.frontend.arity.counts import ask_value
from cortex.frontend.beyond import beyond, prefer_calls
from cortex.frontend.builder import Value, asked_by_user, builder, is_tracing
from cortex.frontend.children import iterate
from cortex.frontend.computed import Computed, Constant, Named
from cortex.frontend.facts import ABSENT, Path, Seen, is_plain
from cortex.frontend.field_arithmetic import (
    FieldArithmetic,
    compute,
    compute_named,
    is_spread,
    is_unusual,
    refuse_joining,
    sample_of,
    spread,
)
from cortex.frontend.field_comparisons import FieldComparisons, is_truth_by_identity
from cortex.frontend.field_in_place import FieldsInPlace
from cortex.frontend.field_shapes import is_one_integer, note_shape, shape_of
from cortex.frontend.field_uses import called, no_array, no_element_type
from cortex.frontend.fields import Failure
from cortex.frontend.index_arithmetic import IndexArithmetic
from cortex.frontend.node_identity import REMEDY
from cortex.frontend.signals import MissingAttribute, NeedsExample, OneByOne
from cortex.frontend.spans import fail, running_twice
from cortex.frontend.tensor import Tensor, changes, refuse_overwritten
from cortex.ra.ir import Each, Field, IsLeaf, IsNone, Item, Length, Slot

ATTRIBUTE: ContextVar[Callable[[StandIn, str], Attribute]] = ContextVar("cortex_attribute")
"""What reading an attribute gives; an `IndexableAttribute` where nothing is set."""

OF_ARRAYS = ("shape", "ndim", "size", "dtype")
LISTED = "the attributes of a node are listed here. Test for one: node.left is None."
UPWARD = ("parent", "up")
"""Names that lead away from the leaves wherever they are used."""


class StandIn:
    """What `Place` and `Attribute` share: they are nodes whose attributes can be read."""

    __slots__ = ()

    def _cortex_path(self) -> Path:
        """The hops from the node being traced; using it makes every hop a relation of the model."""
        raise NotImplementedError

    def _cortex_explain(self) -> str:
        return "a node is used as a tensor here. Call the model on it, or read a field such as node.word."

    def _cortex_class(self) -> type:
        """What `isinstance(node, Join)` in a model asks for."""
        raise beyond(f"the class of a node is asked for, and {REMEDY}")

    def _cortex_text(self) -> str:
        raise beyond("a node is made a text here. Read its fields: str(node.label).")

    @property  # type: ignore[misc]  # object's can also be set
    def __class__(self) -> type:
        return self._cortex_class() if asked_by_user() else type(self)

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("__", "_cortex")):
            raise AttributeError(name)  # Python and NumPy probe for protocols
        return read_attribute(self, name)

    def __setattr__(self, name: str, value: object) -> None:
        if not name.startswith("_cortex"):
            raise beyond(
                f"node.{name} is set here: a model may only read its nodes. Return what it computes as a state."
            )
        object.__setattr__(self, name, value)

    def __dir__(self) -> list[str]:
        if asked_by_user():
            raise beyond(LISTED)
        return []

    def __repr__(self) -> str:
        return self._cortex_text() if asked_by_user() else f"<cortex {type(self).__name__.lower()}>"

    def __str__(self) -> str:
        return self._cortex_text() if asked_by_user() else repr(self)

    def __format__(self, spec: str) -> str:
        return format(self._cortex_text(), spec) if asked_by_user() else repr(self)


def read_attribute(owner: StandIn, name: str) -> Any:
    """`owner.NAME`: a real bool for `is_leaf`, a real None where the attribute is None, else an Attribute."""
    refuse_absence_test(name)
    builder().knowledge.read.setdefault(name)
    facts, path = builder().facts, owner._cortex_path()
    if path and builder().knowledge.prefers_calls and (running := running_twice()) is not None:
        prefer_calls(f"{running} calls itself: each depth of a structure would be a kind of node.")
    in_list = any(isinstance(hop, Each) for hop in path)
    if name == "is_leaf" and not builder().knowledge.accessors.renamed(name):
        if in_list:
            raise OneByOne
        return facts.ask(IsLeaf(path))
    if not in_list and facts.ask(IsNone(name, path)):
        missing = facts.oracle.is_missing(name, path)
        if missing is not None and not has_default():
            raise MissingAttribute(f"a {type(missing).__name__} has no attribute '{name}'", missing, name)
        return None
    found = ATTRIBUTE.get(IndexableAttribute)(owner, name)
    return found._cortex_tag() if is_truth_by_identity(found) else found


class Place(StandIn):
    """The node being traced (empty path), or a child in a list relation."""

    __slots__ = ("_cortex_hops",)

    def __init__(self, path: Path) -> None:
        self._cortex_hops = path

    @property
    def __dict__(self) -> NoReturn:  # type: ignore[override]
        if type(self) is Place and asked_by_user():
            raise fail(LISTED)
        raise AttributeError("__dict__")

    def _cortex_path(self) -> Path:
        return self._cortex_hops

    def __eq__(self, other: object) -> bool:
        if other is None:
            return False
        raise beyond("nodes are compared with ==. Compare fields of them: node.label == 3.")

    def __hash__(self) -> int:
        raise beyond("a node is used as the key of a dict or a member of a set. Use a field of it: node.label.")

    def __iter__(self) -> Iterator[Any]:
        raise beyond("a node cannot be iterated; iterate the list of its children: for k in node.children.")

    def __len__(self) -> int:
        raise beyond("the length of a node is asked for; ask for that of its list of children: len(node.children).")

    def __bool__(self) -> bool:
        oracle = builder().facts.oracle
        kind = type(oracle.resolve(self._cortex_hops)) if isinstance(oracle, Seen) else object
        if hasattr(kind, "__len__") or hasattr(kind, "__bool__"):
            raise beyond(f"the truth of a {kind.__name__} is asked for. Ask for that of a field: if node.children.")
        return True

    def __contains__(self, key: object) -> bool:
        raise beyond("`in` a node: nodes cannot be compared. Compare fields of them: node.label == 3.")

    def __getitem__(self, key: object) -> Any:
        raise beyond(f"a node cannot be indexed with {key!r}; read its attributes: node.left, node.children[0].")


class Attribute(FieldComparisons, FieldsInPlace, FieldArithmetic, StandIn):
    """`owner.name`, which is not None."""

    __slots__ = ("_cortex_answer", "_cortex_name", "_cortex_owner")
    _cortex_owner: StandIn

    def __init__(self, owner: StandIn, name: str) -> None:
        self._cortex_owner = owner
        self._cortex_name = name
        self._cortex_answer: Any = ABSENT  # its value once the model has looked at it, for messages

    def _cortex_class(self) -> type:
        sample = self._cortex_sample()
        if sample is ABSENT:
            raise NeedsExample(f"the class of '{self._cortex_name}'")
        return type(self._cortex_object()) if is_plain(sample) else super()._cortex_class()

    def _cortex_text(self) -> str:
        return str(self._cortex_object())

    def _cortex_object(self) -> Any:
        """The value as an object of its own class, which the code asks for or prints: NumPy has classes of its own."""
        name = self._cortex_compute("numpy_class", (self,))._cortex_tag()
        return getattr(np, name)(self._cortex_tag()) if name else self._cortex_tag()

    def _cortex_sample(self) -> Any:
        computed = self._cortex_computed()
        if computed is not None:  # of samples: there may be more children than the node has
            try:
                return sample_of(computed, self._cortex_operands())
            except StructureError as error:
                oracle = builder().facts.oracle
                if isinstance(oracle, Seen):
                    owner = oracle.resolve(self._cortex_owner._cortex_path())
                    builder().knowledge.accessors.failure = Failure(error, owner, self._cortex_name)
                raise
        return builder().facts.oracle.sample(self._cortex_name, self._cortex_owner._cortex_path())

    # As a child.

    def _cortex_path(self) -> Path:
        owner = self._cortex_owner._cortex_path()
        name = self._cortex_name
        if self._cortex_computed() is not None:
            raise fail("a number that is computed from fields is used as a node here.")
        if name in UPWARD:
            raise beyond(
                f"node.{name} is used as a child: a model may only look below the node, or it would not end (P.2). "
                "Recurse into children; what comes from above has to be a field of the node."
            )
        if any(isinstance(hop, Each) for hop in owner):
            raise OneByOne
        builder().knowledge.note_slot(name)
        builder().facts.contradict_leaf(owner)
        return (*owner, Slot(name))

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("__", "_cortex")):
            raise AttributeError(name)
        sample = self._cortex_sample()
        if sample is not ABSENT and is_plain(sample):
            return getattr(self._cortex_tag() if isinstance(sample, str) else self._cortex_object(), name)
        if self._cortex_is_numbers(sample):
            return self._cortex_of_array(name)
        if sample is ABSENT and name in OF_ARRAYS and self._cortex_name not in builder().knowledge.slots:
            raise NeedsExample(f"whether '{self._cortex_name}' is a child or an array")
        is_plain_name = any(hasattr(plain, name) for plain in (str, float))
        if sample is ABSENT and (is_plain_name or self._cortex_computed() is not None):
            raise NeedsExample(f"whether '{self._cortex_name}' is a child or a plain value")
        return read_attribute(self, name)

    def _cortex_is_numbers(self, sample: Any) -> bool:
        """Is it an array of NumPy or a tensor of torch, or declared to be one?"""
        is_array = isinstance(sample, np.ndarray) or hasattr(type(sample), "detach")
        return is_array or self._cortex_name in builder().knowledge.accessors.shapes

    def _cortex_of_array(self, name: str) -> Any:
        if name == "dtype":
            raise no_element_type(self._cortex_name)
        value = self._cortex_value()
        if name in OF_ARRAYS:
            note_shape(value)
        return getattr(self._cortex_array(), name)

    def _cortex_array(self) -> Tensor:
        """The array that the node holds, of which views may not be changed."""
        return Tensor(self._cortex_value(), changes(f"node.{self._cortex_name}"))

    # As a list of children.

    def _cortex_list(self) -> Path:
        owner = self._cortex_owner._cortex_path()
        if any(isinstance(hop, Each) for hop in owner):
            raise OneByOne
        builder().knowledge.note_list(self._cortex_name)
        return owner

    def _cortex_length(self) -> int:
        length = builder().facts.ask(Length(self._cortex_name, self._cortex_list()))
        assert isinstance(length, int)
        return length

    def _cortex_items(self) -> list[Place]:
        path, name = self._cortex_list(), self._cortex_name
        return [Place((*path, Item(name, i))) for i in range(self._cortex_length())]

    def _cortex_is_text(self, use: str) -> bool:
        """Is this a str, so that `use` asks for its characters and not for children?"""
        sample = self._cortex_sample()
        known = {*builder().knowledge.lists, "children"}
        if sample is ABSENT and self._cortex_name not in known:
            raise NeedsExample(f"what {use} of '{self._cortex_name}' is")
        return isinstance(sample, str)

    def __contains__(self, item: object) -> bool:
        if self._cortex_is_text("`in`"):
            return item in self._cortex_tag()
        raise beyond(
            f"`in` node.{self._cortex_name}: nodes cannot be compared. Compare fields of them: node.label == 3."
        )

    def __iter__(self) -> Iterator[Any]:
        if isinstance(self._cortex_sample(), str):
            return iter(self._cortex_tag())
        if self._cortex_is_numbers(self._cortex_sample()):
            return iter(self._cortex_array())
        path = self._cortex_list()
        if path:
            return iter(self._cortex_items())
        return iterate(self._cortex_name, lambda: Place((Each(self._cortex_name),)), self._cortex_items)

    def __len__(self) -> int:
        if self._cortex_is_array() or self._cortex_is_numbers(self._cortex_sample()):
            value = self._cortex_value()
            note_shape(value)
            return len(Tensor(value))
        return len(self._cortex_tag()) if self._cortex_is_text("the length") else self._cortex_length()

    # As a tag: the model's control flow looks at its value.

    def _cortex_tag(self) -> Any:
        path = self._cortex_owner._cortex_path()
        if any(isinstance(hop, Each) for hop in path):
            raise OneByOne
        builder().knowledge.tags.setdefault(self._cortex_name)
        self._cortex_answer = ask_value(self._cortex_name, path)
        return self._cortex_answer

    def __hash__(self) -> int:
        knowledge = builder().knowledge
        if knowledge.prefers_calls and knowledge.model.looks_up:
            prefer_calls(f"node.{self._cortex_name} is looked up: each value would be a kind of node.")
        return hash(self._cortex_tag())

    def __bool__(self) -> bool:
        knowledge = builder().knowledge
        sample = self._cortex_sample()
        if sample is ABSENT:
            is_list = self._cortex_name in knowledge.lists or self._cortex_name == "children"
            if not is_list and self._cortex_name not in knowledge.slots:
                raise NeedsExample(f"what '{self._cortex_name}' is")
        else:
            if not isinstance(sample, bool | np.bool_) and (self._cortex_computed() is not None or is_unusual(sample)):
                return bool(compute("bool", (self,)))
            if is_plain(sample):
                return bool(self._cortex_tag())
            is_list = hasattr(sample, "__len__") and not isinstance(sample, np.ndarray)
        if not is_list:
            return True
        path = self._cortex_list()
        if knowledge.empty_means_leaf(self._cortex_name):
            return not builder().facts.ask(IsLeaf(path))
        return self._cortex_length() > 0

    def __int__(self) -> int:
        is_asked = is_unusual(self._cortex_sample()) or self._cortex_computed() is not None
        return int((compute("int", (self,)) if is_asked else self)._cortex_tag())

    def __float__(self) -> float:
        is_asked = is_unusual(self._cortex_sample()) or self._cortex_computed() is not None
        return float((compute("float", (self,)) if is_asked else self)._cortex_tag())

    def __repr__(self) -> str:
        if asked_by_user():
            return repr(self._cortex_object())
        value = "" if self._cortex_answer is ABSENT else f" = {self._cortex_answer!r}"
        is_computed = is_tracing() and self._cortex_computed() is not None
        shown = builder().knowledge.accessors.said(self._cortex_name) if is_computed else f"node.{self._cortex_name}"
        return f"{shown}{value}"

    def __format__(self, spec: str) -> str:
        return format(self._cortex_object(), spec) if asked_by_user() else repr(self)

    def __index__(self) -> int:
        return int(self._cortex_tag())

    def __array__(self, *_: object, **__: object) -> NoReturn:
        raise no_array(self._cortex_name)

    def __call__(self, *_: object, **__: object) -> Any:
        """Refuse: methods of nodes cannot be traced."""
        names, owner = [self._cortex_name], self._cortex_owner
        while isinstance(owner, Attribute):
            names.insert(0, owner._cortex_name)
            owner = owner._cortex_owner
        is_computed = self._cortex_computed() is not None
        raise called(builder().knowledge.accessors.said(self._cortex_name) if is_computed else "", names)

    def _cortex_is_elementwise(self, other: object) -> bool:
        """Does a comparison with `other` compare numbers of arrays?"""
        is_array = isinstance(other, Tensor | np.ndarray) or (isinstance(other, Attribute) and other._cortex_is_array())
        return is_array or self._cortex_is_array()

    def _cortex_elementwise(self, special: str, *others: Any) -> Any:
        if isinstance(self._cortex_sample(), list | tuple):
            refuse_joining(self._cortex_name, others)
        own = getattr(Tensor, special, None)
        if own is None:
            return getattr(self._cortex_tag(), special)(*others)
        return own(Tensor(self._cortex_value()), *others)

    # As an operand of a computed field.

    def _cortex_compute(self, fn: str, operands: tuple[Any, ...]) -> Any:
        return compute_named(fn, operands)

    def _cortex_beside(self, owner: StandIn, name: str) -> Attribute:
        """Another attribute, of the node or of one below it."""
        return ATTRIBUTE.get(IndexableAttribute)(owner, name)

    def _cortex_wrapped(self, value: Value) -> Any:
        return Tensor(value)

    def _cortex_computed(self) -> Computed | None:
        """What the attribute is computed from."""
        return builder().knowledge.accessors.computed.get(self._cortex_name)

    def _cortex_operands(self) -> tuple[Any, ...]:
        computed, home = self._cortex_computed(), self._cortex_owner._cortex_path()
        return tuple(
            x.value if isinstance(x, Constant) else self._cortex_beside(Place((*home, *x.path)), x.name)
            for x in (() if computed is None else computed.operands)
        )

    def _cortex_is_spread(self) -> bool:
        def is_item(x: Named) -> bool:
            return any(isinstance(hop, Item) for hop in x.path)

        computed = self._cortex_computed()
        return computed is not None and is_spread(computed, is_item, self._cortex_operands())

    def _cortex_condition(self) -> Any:
        """What `where` chooses by: a bool of the node, or of each child."""
        sample = self._cortex_sample()
        if sample is ABSENT:
            raise NeedsExample(f"what '{self._cortex_name}' is")
        if not isinstance(sample, bool | np.bool_):
            return self
        return Tensor(self._cortex_value()) > 0 if self._cortex_is_of_child() else bool(self)

    def _cortex_is_of_child(self) -> bool:
        """Is this of a child in a list, in a model that should compute the same for every child?"""
        path = self._cortex_owner._cortex_path()
        return builder().knowledge.model.explores and any(isinstance(hop, Each | Item) for hop in path)

    def _cortex_is_array(self) -> bool:
        """Is its value an array, or a list of numbers?"""
        if self._cortex_name in builder().knowledge.accessors.shapes:
            return True
        sample = self._cortex_sample()
        is_list = isinstance(sample, list | tuple) and bool(sample) and all(isinstance(n, int | float) for n in sample)
        return is_list or isinstance(sample, np.ndarray)

    def _cortex_field(self, index: bool) -> Value:
        b, sample = builder(), self._cortex_sample()
        name, path = self._cortex_name, self._cortex_owner._cortex_path()
        shape = None if sample is ABSENT else shape_of(sample, name)
        if index and ((shape and not is_one_integer(sample)) or isinstance(sample, float | np.floating)):
            shown = b.knowledge.accessors.said(name)
            raise fail(f"{shown} is used as an index, but its value is not an integer: {sample!r:.60}.")
        if index:
            kind = b.knowledge.int_field(name)
        else:
            name = b.knowledge.computed_name(name, sample, shape)
            if shape is None and self._cortex_computed() is not None and name not in b.knowledge.fields:
                shape = self._cortex_supposed_shape()
            kind = b.knowledge.float_field(name, shape)
        over = next((hop.name for hop in path if isinstance(hop, Each)), None)
        return b.emit(Field(name, path), kind.shape, dtype=kind.dtype, over=over)

    def _cortex_supposed_shape(self) -> tuple[int, ...]:
        """The shape of a computed field of which no value is known: a number, where it is computed from numbers."""
        fields = [x._cortex_value() for x in self._cortex_operands() if isinstance(x, Attribute)]
        return max((x.shape for x in fields), key=len)

    def _cortex_value(self) -> Value:
        refuse_overwritten(self)
        if self._cortex_is_spread():
            computed = self._cortex_computed()
            assert computed is not None
            return spread(computed.fn, self._cortex_operands())
        return self._cortex_field(index=False)

    def _cortex_index(self) -> Value:
        return self._cortex_field(index=True)


class IndexableAttribute(IndexArithmetic, Attribute):
    """An attribute that may be a list. Python and torch take what can be indexed for a sequence, so numbers cannot."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        if self._cortex_is_numbers(self._cortex_sample()):
            return self._cortex_array()[key]
        if not isinstance(key, int | slice):
            raise fail(f"node.{self._cortex_name} is indexed with a {type(key).__name__}; children are indexed by int.")
        if self._cortex_is_text("an item"):
            return self._cortex_tag()[key]
        items = self._cortex_items()
        if isinstance(key, int) and not -len(items) <= key < len(items):
            raise IndexError(f"node.{self._cortex_name}[{key}]: this node has {len(items)} children there")
        return items[key]

    def __reversed__(self) -> Iterator[Any]:
        return reversed(self._cortex_tag() if self._cortex_is_text("the order") else self._cortex_items())


Sequence.register(IndexableAttribute)  # so that `match node.children:` tries the patterns of lists
