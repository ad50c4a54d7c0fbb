"""Running a model function uncompiled: its own code, on real nodes and NumPy arrays.

Nodes are the user's own objects. Where `children` or `fields` say what attributes mean, or the code asks for
`node.is_leaf` and the objects have none, nodes are seen through `NodeView`, which reads attributes as a compiled model
does. A trace of the model then says what leads to children; numbers never come from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from cortex.frontend.beyond import Beyond
from cortex.frontend.fields import Accessors
from cortex.frontend.knowledge import Knowledge
from cortex.frontend.numpy_meanings import SHAPE_OVER_NONE, Site, array_of, copied, read_only
from cortex.frontend.spans import fail
from cortex.frontend.state import map_states
from cortex.frontend.torch.categories import is_node
from cortex.frontend.unseen import ABSENT, attribute_of
from cortex.frontend.weight_space import WeightSpace
from cortex.frontend.weights import Weights
from cortex.frontend.written import names_in

if TYPE_CHECKING:
    from cortex.frontend.model import RecursiveModel

Recurse = Callable[["RecursiveModel", Any, dict[str, Any]], Any]
"""What a call of a model on a node with these arguments gives."""


@dataclass(frozen=True)
class Meaning:
    """What `node.children` and other attributes are, as `cortex.compile` is told."""

    children: str | tuple[str, ...] | Callable[[Any], Iterable[Any]] | None = None
    fields: Mapping[str, Any] | None = None


class NodeView:
    """A node whose attributes are read as a compiled model reads them; all else is done to the node itself."""

    __slots__ = ("_cortex_node", "_cortex_run")

    def __init__(self, node: Any, run: Run) -> None:
        object.__setattr__(self, "_cortex_node", node)
        object.__setattr__(self, "_cortex_run", run)

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("__", "_cortex")):
            raise AttributeError(name)
        return self._cortex_run.read(self._cortex_node, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._cortex_node, name, value)

    @property  # type: ignore[misc]  # object's can also be set
    def __class__(self) -> type:
        return type(self._cortex_node)

    def __eq__(self, other: object) -> bool:
        return bool(self._cortex_node == raw(other))

    def __hash__(self) -> int:
        return hash(self._cortex_node)

    def __bool__(self) -> bool:
        return bool(self._cortex_node)

    def __len__(self) -> int:
        return len(self._cortex_node)

    def __iter__(self) -> Iterator[Any]:
        return (self._cortex_run.shown_value(x) for x in self._cortex_node)

    def __contains__(self, key: object) -> bool:
        return raw(key) in self._cortex_node

    def __getitem__(self, key: Any) -> Any:
        return self._cortex_run.shown_value(self._cortex_node[key])

    def __repr__(self) -> str:
        return repr(self._cortex_node)


def raw(x: Any) -> Any:
    """The node that a view shows, and anything else itself."""
    return x._cortex_node if type(x) is NodeView else x


class Run:
    """One run of a model function: what its nodes and weights are, and what was computed so far."""

    def __init__(
        self,
        model: RecursiveModel,
        arguments: dict[str, Any],
        find_out: Callable[[], Knowledge],
        find_out_by_calls: Callable[[], Knowledge] | None = None,
        *,
        views: bool,
        recurse: Recurse | None = None,
        space: Any = None,
        meaning: Meaning = Meaning(),
    ) -> None:
        """`find_out` traces the model, node by node or by calls.

        `recurse` answers recursive calls instead of running the function for them.
        """
        self.model = model
        self.arguments = arguments
        self.space = space
        self._accessors = Accessors(meaning.fields, meaning.children)
        self._find_out = find_out
        self._find_out_by_calls = find_out_by_calls
        self._views = views
        self._recurse = recurse or self._computed
        self._seen: dict[int, NodeView] = {}
        self._known: dict[tuple[int, ...], tuple[Any, Any]] = {}
        """Results by the identity of the node and the arguments, and what keeps these identities from being reused."""

    @cached_property
    def knowledge(self) -> Knowledge:
        """What tracing says of the model: relations, and shapes of what is reduced over no children."""
        return self._find_out()

    @cached_property
    def _is_plain(self) -> bool:
        """Does a trace node by node tell what leads to children? Else values do: objects are nodes."""
        try:
            return self.knowledge is not None
        except Beyond:
            return False

    def of(self, node: Any) -> Any:
        """The function's result for a node, in plain arrays."""
        with self._running():
            result = _as_states(self.model.function(self._shown(node), **self.arguments))
        return map_states(result, np.asarray)

    def called(self, model: RecursiveModel, node: Any, given: Mapping[str, Any]) -> Any:
        """The function calls itself, or another model; without weights, it is with those of the first call."""
        own = {} if self.space is None else model.arguments(self.space)
        return map_states(self._recurse(model, raw(node), {**own, **given}), copied)

    def read(self, node: Any, name: str) -> Any:
        """`node.NAME` as a compiled model reads it."""
        if not self._is_plain:
            return self._read_value(node, name)
        k = self.knowledge
        if name == "is_leaf" and not k.accessors.renamed(name):
            own = attribute_of(node, name)
            return not k.children(node) if own is ABSENT else own
        value = k.accessors.read(node, name, None)
        if value is None:
            return None
        if name in k.lists:
            return [self._shown(child) for child in k.accessors.items(node, name)]
        if name in k.slots:
            return self._shown(value)
        if isinstance(value, list | tuple) and name in k.fields:
            value = np.asarray(value)
        return read_only(value.detach().cpu().numpy() if hasattr(value, "detach") else value)

    def _read_value(self, node: Any, name: str) -> Any:
        value = self._accessors.read(node, name, ABSENT)
        if value is ABSENT and name == "is_leaf":
            return not self._read_value(node, "children")
        if value is ABSENT:
            raise AttributeError(f"'{type(node).__name__}' object has no attribute '{name}'")
        return self.shown_value(value)

    def shown_value(self, value: Any) -> Any:
        """What a node holds, as a compiled model sees it."""
        if type(value) in (list, tuple):
            return type(value)(map(self.shown_value, value))
        if is_node(value):
            return self._shown(value)
        return read_only(value.detach().cpu().numpy() if hasattr(value, "detach") else value)

    def _shown(self, node: Any) -> Any:
        if not self._views:
            return node
        if id(node) not in self._seen:
            self._seen[id(node)] = NodeView(node, self)
        return self._seen[id(node)]

    def _computed(self, model: RecursiveModel, node: Any, arguments: dict[str, Any]) -> Any:
        key = (id(model), id(node), *map(id, arguments.values()))
        if key not in self._known:
            shown = self._shown(node) if is_node(node) else node
            result = _as_states(model.function(shown, **arguments))
            self._known[key] = (result, (node, arguments))
        return self._known[key][0]

    @contextmanager
    def _running(self) -> Iterator[None]:
        run, none = _current.set(self), SHAPE_OVER_NONE.set(self._shape_over_none)
        try:
            with np.errstate(all="ignore"):
                yield
        finally:
            _current.reset(run)
            SHAPE_OVER_NONE.reset(none)
            self._seen.clear()  # views know the run
            self._known.clear()

    def _shape_over_none(self, site: Site) -> tuple[int, ...] | None:
        k = self.knowledge if self._is_plain or self._find_out_by_calls is None else self._find_out_by_calls()
        shapes = k.reduced.get(site, set())
        return next(iter(shapes)) if len(shapes) == 1 else None


_current: ContextVar[Run | None] = ContextVar("cortex_run", default=None)


def call(model: RecursiveModel, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """A call of a model outside of tracing: the first one, or one that the function makes itself."""
    given = model.given(args, kwargs, f"a structure: {model.name}(tree, weights)")
    node = given.pop(model.node_parameter)
    run = _current.get()
    if run is not None:
        return run.called(model, node, given)
    weights = [p for p in model.weight_parameters if p in given]
    return run_uncompiled(model, node, given.pop(weights[0]) if weights else None, given)


def run_uncompiled(
    model: RecursiveModel,
    node: Any,
    weights: Any,
    constants: Mapping[str, Any],
    meaning: Meaning = Meaning(),
) -> Any:
    """The function's result for a structure."""
    space = weights if isinstance(weights, WeightSpace) else WeightSpace(Weights(weights))
    if weights is None and model.weight_parameters:
        raise fail(f"{model.name} is called without weights: {model.name}(tree, weights).")

    def find_out() -> Knowledge:
        from cortex.frontend.trace import Trace

        trace = Trace(model, space.all_weights(), meaning.fields, meaning.children)
        trace.explore()
        trace.see([node])
        return trace.knowledge

    def find_out_by_calls() -> Knowledge:
        from cortex.frontend.torch.trace_calls import knowledge_of_calls

        return knowledge_of_calls(model, space.all_weights(), {model.node_parameter: node, **constants}, meaning)

    asks_for_leaves = "is_leaf" in names_in(model.function.__code__) and not hasattr(node, "is_leaf")
    views = meaning.children is not None or meaning.fields is not None or asks_for_leaves
    own = {**model.arguments(space), **constants}
    return Run(model, own, find_out, find_out_by_calls, views=views, space=space, meaning=meaning).of(node)


def _as_states(result: Any) -> Any:
    """What a function returned: states are float32, as those of a compiled model are."""
    return map_states(result, _as_state)


def _as_state(x: Any) -> Any:
    with np.errstate(over="ignore"):
        return array_of(x).astype(np.float32)[()]
