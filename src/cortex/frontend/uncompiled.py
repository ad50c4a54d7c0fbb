"""Running a model function uncompiled: its own code, on real nodes and NumPy arrays.

Nodes are the user's own objects. Where `children` or `fields` say what attributes mean, or the code asks for
`node.is_leaf` and the objects have none, nodes are seen through `NodeView`, which reads attributes as a compiled model
does. A trace of the model then says what leads to children; numbers never come from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from types import CodeType
from typing import TYPE_CHECKING, Any

import numpy as np

from cortex.errors import ModelError
from cortex.frontend.knowledge import Knowledge
from cortex.frontend.numpy_meanings import SHAPE_OVER_NONE, Site, array_of, tensorlike
from cortex.frontend.spans import fail
from cortex.frontend.state import StateRecord
from cortex.frontend.unseen import ABSENT, attribute_of
from cortex.frontend.weight_space import WeightSpace
from cortex.frontend.weights import Weights

if TYPE_CHECKING:
    from cortex.frontend.model import RecursiveModel

Recurse = Callable[[Any, dict[str, Any]], Any]
"""What a recursive call on a node with these arguments gives."""


class NodeView:
    """A node whose attributes are read as a compiled model reads them."""

    __slots__ = ("_cortex_node", "_cortex_run")

    def __init__(self, node: Any, run: Run) -> None:
        self._cortex_node = node
        self._cortex_run = run

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("__", "_cortex")):
            raise AttributeError(name)
        return self._cortex_run.read(self._cortex_node, name)

    def __repr__(self) -> str:
        return repr(self._cortex_node)


class Run:
    """One run of a model function: what its nodes and weights are, and what was computed so far."""

    def __init__(
        self,
        model: RecursiveModel,
        arguments: dict[str, Any],
        find_out: Callable[[], Knowledge],
        *,
        views: bool,
        recurse: Recurse | None = None,
    ) -> None:
        """`find_out` traces the model; `recurse` answers recursive calls instead of running the function for them."""
        self.model = model
        self.arguments = arguments
        self._find_out = find_out
        self._views = views
        self._recurse = recurse or self._computed
        self._seen: dict[int, NodeView] = {}
        self._known: dict[tuple[int, ...], tuple[Any, Any]] = {}
        """Results by the identity of the node and the arguments, and what keeps these identities from being reused."""

    @cached_property
    def knowledge(self) -> Knowledge:
        """What tracing says of the model: relations, and shapes of what is reduced over no children."""
        return self._find_out()

    def of(self, node: Any) -> Any:
        """The function's result for a node, in plain arrays."""
        with self._running():
            result = _as_states(self.model.function(self._shown(node), **self.arguments))
        match result:
            case StateRecord():
                return StateRecord({name: np.asarray(x) for name, x in result._tensors.items()})
            case tuple():
                return tuple(map(np.asarray, result))
            case _:
                return np.asarray(result)

    def called(self, node: Any, given: Mapping[str, Any]) -> Any:
        """The function calls itself; arguments that it does not give are those of the first call."""
        raw = node._cortex_node if isinstance(node, NodeView) else node
        if raw is None:
            raise fail(
                f"{self.model.name} is called on None: this child is missing. Test for it first, as in `if node.left "
                "is not None`."
            )
        return self._recurse(raw, {**self.arguments, **given})

    def read(self, node: Any, name: str) -> Any:
        """`node.NAME` as a compiled model reads it."""
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
        return tensorlike(value.detach().cpu().numpy() if hasattr(value, "detach") else value)

    def _shown(self, node: Any) -> Any:
        if not self._views:
            return node
        if id(node) not in self._seen:
            self._seen[id(node)] = NodeView(node, self)
        return self._seen[id(node)]

    def _computed(self, node: Any, arguments: dict[str, Any]) -> Any:
        key = (id(node), *map(id, arguments.values()))
        if key not in self._known:
            result = _as_states(self.model.function(self._shown(node), **arguments))
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
        shapes = self.knowledge.reduced.get(site, set())
        return next(iter(shapes)) if len(shapes) == 1 else None


_current: ContextVar[Run | None] = ContextVar("cortex_run", default=None)


def call(model: RecursiveModel, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """A call of a model outside of tracing: the first one, or one that the function makes itself."""
    try:
        given = model.signature.bind_partial(*args, **kwargs).arguments
    except TypeError as error:
        raise fail(f"call of {model.name}{model.signature}: {error}.") from None
    if model.node_parameter not in given:
        raise fail(f"{model.name} is called without a node. Call it on a structure: {model.name}(tree, weights).")
    node = given.pop(model.node_parameter)
    run = _current.get()
    if run is not None and run.model is model:
        return run.called(node, given)
    weights = [p for p in model.weight_parameters if p in given]
    return run_uncompiled(model, node, given.pop(weights[0]) if weights else None, given)


def run_uncompiled(
    model: RecursiveModel,
    node: Any,
    weights: Any,
    constants: Mapping[str, Any],
    children: str | tuple[str, ...] | Callable[[Any], Iterable[Any]] | None = None,
    fields: Mapping[str, Any] | None = None,
) -> Any:
    """The function's result for a structure, with `children` and `fields` as `cortex.compile` takes them."""
    space = weights if isinstance(weights, WeightSpace) else WeightSpace(Weights(weights))
    if weights is None and model.weight_parameters:
        raise fail(f"{model.name} is called without weights: {model.name}(tree, weights).")

    def find_out() -> Knowledge:
        from cortex.frontend.trace import Trace

        trace = Trace(model, space.all_weights(), fields, children)
        trace.explore()
        trace.see([node])
        return trace.knowledge

    asks_for_leaves = "is_leaf" in _names(model.function.__code__) and not hasattr(node, "is_leaf")
    views = children is not None or fields is not None or asks_for_leaves
    return Run(model, {**model.arguments(space), **constants}, find_out, views=views).of(node)


def _names(code: CodeType) -> set[str]:
    inner = (_names(c) for c in code.co_consts if isinstance(c, CodeType))
    return set(code.co_names).union(*inner)


def _as_states(result: Any) -> Any:
    """What a function returned: states are float32, as those of a compiled model are."""
    match result:
        case None:
            raise ModelError(
                "the model returned None. Every path has to return a tensor, a tuple of tensors, or cortex.state(...)."
            )
        case StateRecord():
            return StateRecord({name: _as_state(x) for name, x in result._tensors.items()})
        case tuple() | list():
            return tuple(map(_as_state, result))
        case _:
            return _as_state(result)


def _as_state(x: Any) -> Any:
    with np.errstate(over="ignore"):
        return tensorlike(array_of(x).astype(np.float32))
