"""The namespace a model function sees as its weights: `w.W`, `w["W"]`, `w.cell.W`, `w.layers[0].W`."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

from cortex.errors import ModelError
from cortex.frontend.builder import builder, is_tracing
from cortex.frontend.numpy_meanings import read_only
from cortex.frontend.spans import fail, user_span
from cortex.frontend.tensor import Tensor, changes
from cortex.frontend.weights import Weights
from cortex.ra.ir import Param


class UnknownWeight(ModelError, AttributeError):
    """Also an AttributeError, so that `hasattr(w, "bias")` and `getattr(w, "bias", None)` work."""


class WeightSpace:
    """The weights whose names begin with a prefix."""

    __slots__ = ("_prefix", "_weights")

    def __init__(self, weights: Weights, prefix: str = "") -> None:
        self._weights = weights
        self._prefix = prefix

    def _cortex_prefix(self) -> str:
        """What the names of these weights begin with."""
        return self._prefix

    def all_weights(self) -> Weights:
        """The weights that these are some of."""
        return self._weights

    def _cortex_explain(self) -> str:
        inside = ", ".join(f"'{name}'" for name in self)
        group = self._prefix.rstrip(".")
        return f"the group of weights '{group}' is used as a tensor. It contains {inside or 'nothing'}."

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("__", "_cortex")):
            raise AttributeError(name)
        return self._get(name)

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str | int) or isinstance(key, bool):
            raise fail(f"weights are indexed by name, not by a {type(key).__name__}.")
        return self._get(str(key))

    def __contains__(self, name: object) -> bool:
        full = f"{self._prefix}{name}"
        return any(known == full or known.startswith(full + ".") for known in self._weights.names)

    def __iter__(self) -> Iterator[str]:
        inside = (n[len(self._prefix) :] for n in self._weights.names if n.startswith(self._prefix))
        return iter(dict.fromkeys(name.split(".")[0] for name in inside))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _get(self, name: str) -> Any:
        full = self._prefix + name
        if full in self._weights.names:
            if not is_tracing():
                return read_only(self._weights.arrays([full])[full])
            return Tensor(builder().emit(Param(full), self._weights.shape(full)), changes(f"weight '{full}'"))
        if name in self:
            return WeightSpace(self._weights, full + ".")
        close = get_close_matches(full, self._weights.names, n=1, cutoff=0.5)
        given = ", ".join(f"'{n}'" for n in self._weights.names[:12]) or "none"
        hint = f"Did you mean '{close[0]}'?" if close else f"The weights given are: {given}."
        raise UnknownWeight(f"the model reads weight '{full}', which was not given. {hint}", user_span())
