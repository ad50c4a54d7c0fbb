"""Tensors beside the structure and on nodes: which element of which tensor each float field of each node is.

A request is linearized once more with the numbers of elements in place of the elements. So whatever way leads from a
node to a row of a tensor, adjoints of fields go back along it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np

from cortex import _native
from cortex.errors import StructureError
from cortex.frontend.fields import Accessors
from cortex.frontend.torch.accessors import TorchAccessors
from cortex.frontend.torch.calls import Row
from cortex.frontend.torch.forms import EXACT
from cortex.frontend.torch.serving import Request
from cortex.lower.linear_form import LinearForm
from cortex.ra import ir as ra
from cortex.runtime.known_kinds import Kinds
from cortex.runtime.linearize import linearizer_spec
from cortex.runtime.storage import Array


class TensorSources:
    """Tensors, their elements numbered from 1 on: 0 is no element."""

    def __init__(self) -> None:
        self.tensors: list[Any] = []
        self._starts: list[int] = [1]
        self._known: dict[int, int] = {}

    def numbers(self, tensor: Any) -> Array:
        """The numbers of a tensor's elements, as floats."""
        place = self._known.get(id(tensor))
        if place is None:
            place = self._known[id(tensor)] = len(self.tensors)
            self.tensors.append(tensor)
            self._starts.append(self._starts[-1] + tensor.numel())
            if self._starts[-1] > EXACT:
                raise StructureError(
                    f"gradients of tensors beside the structure or on nodes are wanted, and these have more than "
                    f"{EXACT} elements in one call; make several calls of fewer structures each"
                )
        start = self._starts[place]
        return np.arange(start, start + tensor.numel(), dtype=np.float32).reshape(tuple(tensor.shape))

    def values(self, numbers: Array) -> Array:
        """The elements of these numbers."""
        pieces = [np.zeros(1, np.float32), *(np.ravel(t.detach().float().numpy()) for t in self.tensors)]
        found: Array = np.concatenate(pieces)[numbers]
        return found

    def gradients(self, given: Sequence[tuple[Array, Array]]) -> list[Array]:
        """From numbers of elements and their adjoints to the gradients of the tensors."""
        numbers = np.concatenate([n.ravel() for n, _ in given]) if given else np.zeros(0, np.int64)
        weights = np.concatenate([x.ravel() for _, x in given]) if given else np.zeros(0)
        total = np.bincount(numbers, weights, self._starts[-1]).astype(np.float32)
        ends = zip(self._starts, self._starts[1:], self.tensors, strict=False)
        return [total[a:b].reshape(tuple(tensor.shape)) for a, b, tensor in ends]


def with_numbers(requests: Sequence[Any], sources: TensorSources) -> list[Any]:
    """The requests with numbers of elements in place of the tensors of floats that forward is given."""

    def numbered(request: Any) -> Any:
        if not isinstance(request, Request):
            return request
        made = copy(request)
        tensors = {n: request.arguments[n] for n in request.tensors}
        made.tensors = {
            n: sources.numbers(x) if hasattr(x, "is_floating_point") and x.is_floating_point() else request.tensors[n]
            for n, x in tensors.items()
        }
        return made

    return list(map(numbered, requests))


def fields_of_tensors(m: ra.Model, kinds: Kinds) -> tuple[str, ...]:
    """The float fields that may be elements of tensors that gradients are wanted of."""
    given = kinds.accessors
    tested = {getattr(f.test, "name", "") for k in m.kinds for f in k.guard if not isinstance(f.test, ra.IsNone)}
    fields = (f.name for f in m.fields if f.type.dtype == "f32" and f.name not in tested)
    return tuple(name for name in fields if _of_request(given, name) or not _are_calls(given))


def numbered_fields(
    m: ra.Model,
    kinds: Kinds,
    windows: Sequence[int],
    requests: Sequence[Any],
    sources: TensorSources,
    fields: Collection[str],
) -> tuple[LinearForm, dict[str, Array]]:
    """The linear form of requests, and the number of each element of `fields` at each node."""
    spec = linearizer_spec(m, kinds.accessors, windows=tuple(windows), checked=kinds.checked_lengths())
    if not _are_calls(kinds.accessors):
        spec["accessors"] |= {name: _Numbering(kinds.accessors, name, sources) for name in fields}
    try:
        form = LinearForm(**_native.Linearizer(spec).linearize(kinds.roots(with_numbers(requests, sources)), 1))
    except RuntimeError as error:
        if not wants_gradient(error):
            raise
        raise StructureError(
            "a tensor of a node requires_grad, and gradients of tensors on nodes are computed only where forward calls "
            "itself on children and no other method recurses. Store x.detach() on the nodes, or give forward the "
            "tensor as an argument, whose rows nodes take."
        ) from None
    return form, {name: np.rint(form.fields[name]).astype(np.int64) for name in fields}


def wants_gradient(error: RuntimeError) -> bool:
    """Was reading a node's tensor refused by torch because gradients of it are wanted?"""
    return "requires grad" in str(error)


def refuse_others(form: LinearForm, numbered: LinearForm) -> None:
    """Refuse requests whose tensors say of which kinds nodes are."""
    if any(not np.array_equal(x, numbered.arrays[name]) for name, x in form.arrays.items()):
        raise StructureError(
            "gradients of tensors are wanted whose elements decide what is computed. Pass tensor.detach(), or call the "
            "module itself."
        )


class _Numbering:
    """Reads a field of a node as numbers of elements."""

    def __init__(self, accessors: Accessors, name: str, sources: TensorSources) -> None:
        self._accessors, self._name, self._sources = accessors, name, sources

    def __call__(self, node: Any) -> Any:
        """The numbers; what is no tensor is one of its own."""
        value = self._accessors.read(node, self._name, None)
        if value is None:
            return None
        return self._sources.numbers(value if hasattr(value, "detach") else _as_tensor(value))


def _as_tensor(x: Any) -> Any:
    from cortex.frontend.torch.autograd import without_gradient

    return without_gradient(x)


def _are_calls(given: Accessors) -> bool:
    return isinstance(given, TorchAccessors) and given.of_calls


def _of_request(given: Accessors, name: str) -> bool:
    return isinstance(given, TorchAccessors) and given.of_calls and isinstance(given.of_call(name), Row)


def by_field(numbers: Mapping[str, Array], adjoints: Mapping[str, Array]) -> list[tuple[Array, Array]]:
    """Numbers of elements, and the adjoints of fields."""
    return [(n, adjoints[name]) for name, n in numbers.items() if name in adjoints]
