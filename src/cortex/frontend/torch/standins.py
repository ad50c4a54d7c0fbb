"""What the user's torch code gets instead of its nodes.

A module is always traced for a real node, so what an attribute holds decides what stands for it: None and truth values
are themselves, numbers and tensors become fields, lists become lists of what stands for their items, objects become
nodes whose attributes can be read in turn. Every answer is recorded as a fact of the node that is being traced.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from cortex.frontend.builder import Value, asked_by_user, builder
from cortex.frontend.computed import Computed, Constant, constant
from cortex.frontend.facts import ABSENT, Path, Seen
from cortex.frontend.field_arithmetic import common, is_spread
from cortex.frontend.node_identity import tells_truth
from cortex.frontend.signals import NeedsExample
from cortex.frontend.spans import fail, is_printing, user_span
from cortex.frontend.standin import OF_ARRAYS, Attribute, IndexableAttribute, Place
from cortex.frontend.torch import number_lists
from cortex.frontend.torch.calls import said
from cortex.frontend.torch.categories import METHODS, OF_SCALAR, PLAIN, category, is_data, is_node
from cortex.frontend.torch.child_lists import is_item_of_numbers, may_be_empty, refuse_many_items
from cortex.frontend.torch.identity import HASH, is_equal, is_same
from cortex.frontend.torch.keyed import Key, computes, is_key, node_at, reached
from cortex.frontend.torch.node_lists import NodeList, NodeTuple, is_nested
from cortex.frontend.torch.node_methods import Method, TextMethod
from cortex.frontend.torch.recursion import refuse_unseen_recursion
from cortex.frontend.torch.steps import (
    CATEGORY,
    CLASS,
    FLOATS,
    IDENTITY,
    ITEMS,
    KEYS,
    LENGTH,
    PATTERN,
    TRUTH,
    At,
    Attr,
    Called,
    Contains,
    Given,
    Steps,
    presence,
    refuse_deep,
    text,
)
from cortex.frontend.torch.texts import METHODS as TEXT_METHODS
from cortex.ra.ir import IsNone, Length
from cortex.ra.ir import Value as ValueOf

if TYPE_CHECKING:
    from cortex.frontend.torch.tracing import TorchBuilder


def tracing() -> TorchBuilder:
    """The builder of the kind that is being traced."""
    from cortex.frontend.torch.tracing import TorchBuilder

    b = builder()
    assert isinstance(b, TorchBuilder)
    return b


class TorchNode(Place):
    """An object of the user's: the node that is traced, or what its attributes lead to."""

    __slots__ = ("_cortex_sample", "_cortex_steps")

    def __init__(self, steps: Steps, sample: Any) -> None:
        super().__init__(())
        self._cortex_steps = steps
        self._cortex_sample = sample

    def _cortex_class(self) -> type:
        ask_value((*self._cortex_steps, CLASS))
        return type(self._cortex_sample)

    def _cortex_text(self) -> str:
        return said(self._cortex_steps)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_cortex") or (name.startswith("__") and not hasattr(self._cortex_sample, name)):
            raise AttributeError(name)
        b = tracing()
        if type(self._cortex_sample) is dict and name in ("get", "keys", "items", "values"):
            return getattr(self, f"_cortex_{name}")
        found = b.stored(self._cortex_steps, name)
        if found is not ABSENT:
            return found
        if name == "is_leaf" and b.language.knows_leaves and not hasattr(self._cortex_sample, name):
            return not self.children
        return _read(b, (*self._cortex_steps, Attr(name)))

    def _cortex_get(self, key: Any, default: Any = None) -> Any:
        if key in self:
            return self[key]
        return default

    def _cortex_keys(self) -> list[Any]:
        ask_value((*self._cortex_steps, KEYS))
        return list(self._cortex_sample)

    def _cortex_values(self) -> list[Any]:
        return [self[key] for key in self._cortex_keys()]

    def _cortex_items(self) -> list[tuple[Any, Any]]:
        return [(key, self[key]) for key in self._cortex_keys()]

    def __setattr__(self, name: str, value: object) -> None:
        if name.startswith("_cortex"):
            object.__setattr__(self, name, value)
        else:
            tracing().store(self._cortex_steps, name, value)

    def __delattr__(self, name: str) -> None:
        tracing().store(self._cortex_steps, name, None)

    def __eq__(self, other: object) -> bool:
        kind: Any = type(self._cortex_sample)
        is_own = kind.__eq__ is not object.__eq__
        if type(other) is TorchNode:
            theirs: Any = type(other._cortex_sample)
            by_class = is_own or theirs.__eq__ is not object.__eq__
            return is_equal(tracing(), self, other) if by_class else is_same(tracing(), self, other)
        if hasattr(other, "_cortex_where"):
            return NotImplemented  # who knows what is there says so
        if not is_own:
            is_object = is_node(other) and not hasattr(other, "_cortex_steps")
            return is_object and is_same(tracing(), self, other)
        if other is not None and asked_by_user():
            raise fail(
                f"{self._cortex_text()} is compared with a {type(other).__name__} by the == of {kind.__name__}. "
                "Compare it with nodes, or compare fields of it: node.label == 3."
            )
        return False

    def __hash__(self) -> int:
        kind = type(self._cortex_sample)
        if kind.__hash__ is None:
            raise TypeError(f"unhashable type: '{kind.__name__}'")
        return HASH

    def __bool__(self) -> bool:
        kind = type(self._cortex_sample)
        if not hasattr(kind, "__bool__") and not hasattr(kind, "__len__"):
            return True
        return bool(ask_value((*self._cortex_steps, TRUTH)))

    def __len__(self) -> int:
        return int(ask_value((*self._cortex_steps, LENGTH)))

    def __iter__(self) -> Iterator[Any]:
        if type(self._cortex_sample) is dict:
            return iter(self._cortex_keys())
        return iter(self._cortex_list())

    def _cortex_list(self) -> Any:
        """What stands for the items."""
        b, steps, sample = tracing(), self._cortex_steps, self._cortex_sample
        if type(sample) not in (list, tuple):
            return present(b, (*steps, ITEMS))
        if (*steps, ITEMS) not in b.places:
            b.places[*steps, ITEMS] = _sequence(b, steps, sample)
        return b.places[*steps, ITEMS]

    def __contains__(self, key: object) -> bool:
        if isinstance(key, TorchNode | Attribute):
            raise fail("`in` a node: nodes cannot be compared. Compare fields of them: node.label == 3.")
        return bool(ask_value((*self._cortex_steps, Contains(key))))

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, int | slice) and isinstance(self._cortex_sample, list | tuple):
            return self._cortex_list()[key]
        if isinstance(key, NodeField):
            return reached(tracing(), "getitem", self._cortex_steps, key)
        if not isinstance(key, str | int):
            raise fail(f"a node is indexed with a {type(key).__name__}; a str or an int is accepted.")
        return _read(tracing(), (*self._cortex_steps, At(key)))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """As a method of the node."""
        return Method(self._cortex_steps, self, "__call__")(*args, **kwargs)

    def __repr__(self) -> str:
        return self._cortex_shown("__repr__")

    def __str__(self) -> str:
        return self._cortex_shown("__str__")

    def __format__(self, spec: str) -> str:
        return format(self._cortex_shown("__str__"), spec)

    def _cortex_shown(self, method: str) -> str:
        """The text of the node, which decides its kind, unless it is only printed or says nothing but an address."""
        kind: Any = type(self._cortex_sample)
        says_more = kind.__repr__ is not object.__repr__ or kind.__str__ is not object.__str__
        if not says_more or is_printing():
            return self._cortex_text()
        return str(ask_value((*self._cortex_steps, Attr(method), Called(()))))

    def __dir__(self) -> list[str]:
        return dir(self._cortex_sample) if asked_by_user() else []


class NodeField(Key, Attribute):
    """A number, a text, an array or a tensor that a node holds."""

    __slots__ = ("_cortex_steps",)

    def __init__(self, name: str, steps: Steps, path: Path = ()) -> None:
        super().__init__(Place(path), name)
        self._cortex_steps = steps

    def _cortex_class(self) -> type:
        ask_value((*self._cortex_steps, CLASS))
        return type(self._cortex_sample())

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("__", "_cortex")):
            return super().__getattr__(name)
        sample = self._cortex_sample()
        if is_data(sample):
            self._cortex_ask_form()
            return self._cortex_array_attribute(sample, name)
        if self._cortex_is_array():
            return number_lists.method(self, name)
        if not hasattr(type(sample), name):
            ask_value((*self._cortex_steps, CLASS))
            raise AttributeError(f"'{type(sample).__name__}' object has no attribute '{name}'")
        if isinstance(sample, str) and name in TEXT_METHODS:
            return TextMethod(self, name)
        if isinstance(sample, np.generic) and name in OF_SCALAR:
            ask_value((*self._cortex_steps, CLASS))
            return getattr(sample, name)
        if isinstance(sample, np.bool_ | np.integer | np.floating) and name == "item":
            return partial(self._cortex_compute, type(sample.item()).__name__, (self,))
        return getattr(self._cortex_tag(), name)

    def _cortex_tensor(self) -> Any:
        """The tensor that an array or a list of numbers is computed with as."""
        return self._cortex_array()

    def _cortex_array_attribute(self, sample: Any, name: str) -> Any:
        """`node.x.name` of an array, whose form is known."""
        if name in OF_ARRAYS:
            return getattr(sample, name)
        return getattr(self._cortex_tensor(), name)

    def _cortex_is_array(self) -> bool:
        sample = self._cortex_sample()
        return isinstance(sample, list | tuple) or is_data(sample)

    def _cortex_ask_form(self) -> None:
        """Make the element type and the shape of an array or a tensor facts of the node."""
        if is_data(self._cortex_sample()):
            tracing().model.array_forms.ask(tracing(), self._cortex_steps)

    def _cortex_ask_class(self) -> None:
        """Make it a fact of the node what torch would make of the number, or of the list of numbers."""
        ask_value((*self._cortex_steps, FLOATS if self._cortex_is_list() else CLASS))

    def _cortex_is_list(self) -> bool:
        return isinstance(self._cortex_sample(), list | tuple)

    # As an operand of a computed field.

    def _cortex_apply(self, fn: str, special: str, *others: Any, reflected: bool = False) -> Any:
        longer = number_lists.joined(fn, (*others, self) if reflected else (self, *others))
        return super()._cortex_apply(fn, special, *others, reflected=reflected) if longer is None else longer

    def _cortex_compute(self, fn: str, operands: tuple[Any, ...]) -> Any:
        ways = [x._cortex_steps for x in operands if isinstance(x, NodeField)]
        home = common(ways)
        refuse_deep(ways)
        parts = tuple(x._cortex_steps[len(home) :] if isinstance(x, NodeField) else constant(x) for x in operands)
        return present(tracing(), (*home, Computed(fn, parts, user_span())))

    def _cortex_computed(self) -> Computed | None:
        last = self._cortex_steps[-1] if self._cortex_steps else None
        return last if isinstance(last, Computed) and computes(last) else None

    def _cortex_operands(self) -> tuple[Any, ...]:
        computed, home = self._cortex_computed(), self._cortex_steps[:-1]
        return tuple(
            x.value if isinstance(x, Constant) else present(tracing(), (*home, *x))
            for x in (() if computed is None else computed.operands)
        )

    def _cortex_is_spread(self) -> bool:
        def is_item(steps: Steps) -> bool:
            return any(isinstance(step, At) and type(step.key) is int for step in steps)

        computed = self._cortex_computed()
        return computed is not None and is_spread(computed, is_item, self._cortex_operands())

    def _cortex_item(self, at: int) -> Any:
        """An item of an array or a list, of whose length the kind of node depends then."""
        self._cortex_ask_length()
        return present(tracing(), (*self._cortex_steps, At(at)))

    def _cortex_ask_length(self) -> int:
        b = tracing()
        name, path = b.where(self._cortex_steps)
        if path or not self._cortex_is_list():
            return int(ask_value((*self._cortex_steps, LENGTH)))
        b.knowledge.item_lists.setdefault(name)
        return int(b.facts.ask(Length(name)) or 0)

    def _cortex_value(self) -> Value:
        """The field; lists may be of several lengths, and then their items are fields of their own."""
        sample, b = self._cortex_sample(), tracing()
        self._cortex_ask_form()
        if isinstance(sample, list | tuple):
            before = b.knowledge.fields.get(self._cortex_name)
            if before is not None and before.shape[:1] != (len(sample),):
                if type(b.facts.oracle) is not Seen:
                    raise fail(f"node.{self._cortex_name} is a list of another length.")
                b.model.links.itemize(b.accessors.name(self._cortex_steps))
        return super()._cortex_value()

    def __contains__(self, item: object) -> bool:
        if not self._cortex_is_array():
            return item in self._cortex_tag()
        if not isinstance(item, PLAIN):
            raise fail(
                f"`in` node.{self._cortex_name}, which holds numbers, is asked for a {type(item).__name__}; a number "
                "is accepted."
            )
        return bool(ask_value((*self._cortex_steps, Contains(item))))

    def __iter__(self) -> Iterator[Any]:
        sample = self._cortex_sample()
        if isinstance(sample, list | tuple):
            refuse_many_items(self._cortex_name, len(sample))
            return iter([self._cortex_item(i) for i in range(len(sample))])
        return iter(self._cortex_tensor() if self._cortex_is_array() else self._cortex_text_only("iterable"))

    def __len__(self) -> int:
        sample = self._cortex_sample()
        if is_data(sample):
            self._cortex_ask_form()
            return len(self._cortex_tensor())
        if not isinstance(sample, list | tuple):
            self._cortex_refuse_number("sized")
        return self._cortex_ask_length()

    def __bool__(self) -> bool:
        is_list = isinstance(self._cortex_sample(), list | tuple)
        if is_list:
            return bool(ask_value((*self._cortex_steps, TRUTH)))
        return bool(self._cortex_tensor()) if is_data(self._cortex_sample()) else super().__bool__()

    def _cortex_text_only(self, wanted: str) -> str:
        self._cortex_refuse_number(wanted)
        return str(self._cortex_tag())

    def _cortex_refuse_number(self, wanted: str) -> None:
        sample = self._cortex_sample()
        if not isinstance(sample, str):
            raise TypeError(f"'{type(sample).__name__}' object is not {wanted}")


class IndexableNodeField(NodeField, IndexableAttribute):
    """One that can be indexed: an array, a tensor, a list of numbers, a text."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, NodeField) and is_key(key) and isinstance(self._cortex_sample(), list | tuple):
            return reached(tracing(), "getitem", self._cortex_steps, key)
        if type(key) is int and isinstance(self._cortex_sample(), str) and -len(self) <= key < len(self):
            return TextMethod(self, "__getitem__")(key)
        if type(key) in (int, slice) and self._cortex_is_list():
            return number_lists.item_or_slice(self, key)
        return super().__getitem__(key)


def is_stand_in(value: Any) -> bool:
    """Does this stand for a node of the user's, so that a method can be called on it?"""
    return type(value) is TorchNode or (type(value) in (NodeTuple, NodeList) and is_nested(value._cortex_steps))


def ask_value(steps: Steps) -> Any:
    """What the steps lead to, a plain value, as a fact."""
    b = tracing()
    name, path = b.where(steps)
    b.knowledge.tags.setdefault(name)
    return b.facts.ask(ValueOf(name, path))


def field_of(b: TorchBuilder, name: str, steps: Steps, path: Path, *, is_indexable: bool = False) -> NodeField:
    """What stands for data that the steps lead to, with the operators of the tensors that the code computes with."""
    field, indexable = b.model.entry.language.fields
    return (indexable if is_indexable else field)(name, steps, path)


def present(b: TorchBuilder, steps: Steps) -> Any:
    """What stands for the object that the steps lead to."""
    if steps not in b.places:
        b.places[steps] = _present(b, steps)
    return b.places[steps]


def _read(b: TorchBuilder, steps: Steps) -> Any:
    """What stands for it, where code may tell True from what equals it by `is`."""
    found = present(b, steps)
    if type(found) is not bool or not any(map(tells_truth, b.model.entry.seen_code)):
        return found
    ask_value((*steps, CLASS))
    return type(b.facts.oracle.sample(*b.where(steps)))(found)


def _present(b: TorchBuilder, steps: Steps) -> Any:
    if len(steps) > 2:
        refuse_unseen_recursion(b.recursive_code)
    name, path = b.where(steps)
    b.knowledge.read.setdefault(name)
    last = steps[-1] if steps else None
    if isinstance(last, Computed) and computes(last):
        sample = NodeField(name, steps, path)._cortex_sample()
        if sample is ABSENT:
            raise NeedsExample(f"the value of {said(steps)}")
    else:
        sample = b.facts.oracle.sample(name, path)
        sample = b.model.families.sample(b, steps) if sample is ABSENT else sample
    if sample is ABSENT:
        _absent(b, steps, name, path)
    if isinstance(sample, METHODS):
        return Method(steps, b.places[steps[:-1]], str(getattr(steps[-1], "name", "")))
    is_number = isinstance(last, Given) or computes(last) or is_item_of_numbers(b, name, path, sample)
    if not is_number and b.facts.ask(IsNone(name, path)):
        if b.accessors.may_be_absent(name):
            ask_value(presence(steps))
        return None
    if sample is None:
        return object()  # it is supposed to be something else than it is; what it is then is not known
    if b.model.is_mixed(b.accessors.steps(name) if path else steps, category(sample)):
        ask_value((*steps, CATEGORY))
    if isinstance(sample, bool | np.bool_):
        return bool(ask_value(steps))
    if isinstance(sample, Enum | type):
        ask_value((*steps, IDENTITY))
        return sample
    if isinstance(sample, PLAIN) or is_data(sample):
        indexable = not isinstance(sample, PLAIN) or isinstance(sample, str | bytes)
        return field_of(b, name, steps, path, is_indexable=indexable)
    if type(sample) in (list, tuple) and not b.model.walks.is_container(steps) and not _is_below_list(steps):
        return _sequence(b, steps, sample)
    return TorchNode(steps, sample)


def _is_below_list(steps: Steps) -> bool:
    """Is a list or tuple an item of a structure that consists of them? It is looked into only when code does so."""
    is_item = bool(steps) and isinstance(steps[-1], At) and is_nested(steps)
    return is_item and ask_value((*steps, FLOATS)) == "none"


def _sequence(b: TorchBuilder, steps: Steps, sample: Any) -> Any:
    (own, path), name = b.where(steps), b.accessors.name(steps)
    are_keys = b.model.walks.is_list_of_keys(steps, sample)
    is_plain = not are_keys and not is_nested(steps) and name not in b.model.links.itemized
    numbers = all(isinstance(x, int | float) for x in sample)
    if is_plain and numbers and may_be_empty(b, b.accessors.steps(own) if path else steps, sample) and sample:
        b.knowledge.tags.setdefault(own)
        b.model.counts.ask(b, steps)  # as of an empty list, in which there could be nodes
    if sample and is_plain and numbers:
        return field_of(b, own, steps, path, is_indexable=True)
    nodes = are_keys or all(map(is_node, sample))
    if nodes and name not in b.model.links.itemized:
        items: list[Any] = b.model.families.stand_ins(b, steps, sample)
    else:
        if name not in b.model.links.itemized:
            b.model.links.itemize(name)
        ask_value((*steps, PATTERN))
        items = [
            None if x is None else node_at(b, (*steps, At(i)), x) if is_node(x) else present(b, (*steps, At(i)))
            for i, x in enumerate(sample)
        ]
    return NodeTuple(steps, items) if isinstance(sample, tuple) else NodeList(steps, items)


def _absent(b: TorchBuilder, steps: Steps, name: str, path: Path) -> None:
    """The object has no such attribute: what Python says, once it is a fact."""
    if not b.accessors.may_be_absent(name):
        b.accessors.may_lack(name)
        b.model.restart()
    b.facts.ask(IsNone(name, path))
    ask_value(presence(steps))
    raise AttributeError(f"{said(steps[:-1])} has no {text(steps[-1:], '')}")
