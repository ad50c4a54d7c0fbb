"""The weights of a model: arrays under dotted names, and the arrays a model closes over."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from cortex.errors import ModelError

Array = npt.NDArray[np.float32]

EXACT = 1 << 24
"""Integers up to this size are exact in single precision."""


class Weights:
    """Float32 arrays by dotted name, from a mapping, a state_dict, an .npz or a .safetensors file.

    Other float types are converted to float32, rounding; integers and booleans too, if they are exact in float32.
    """

    def __init__(self, source: Mapping[str, Any] | str | os.PathLike[str] | None = None) -> None:
        given = _load(source) if isinstance(source, str | os.PathLike) else source
        if given is None:
            given = {}
        if not isinstance(given, Mapping):
            raise ModelError(
                f"weights of type {type(given).__name__}: give a mapping from names to arrays (a state_dict is one), "
                "or the path of an .npz or .safetensors file."
            )
        self._arrays = {str(name): to_float32(value, str(name)) for name, value in given.items()}
        self._constants: dict[int, tuple[str, object]] = {}
        self._equal: dict[tuple[tuple[int, ...], bytes], Array] = {}

    @classmethod
    def of(cls, source: Weights | Mapping[str, Any] | str | os.PathLike[str] | None) -> Weights:
        """`source` itself if it is a `Weights`, else a new one of it."""
        return source if isinstance(source, cls) else cls(source)  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(self._arrays)

    @property
    def names(self) -> tuple[str, ...]:
        """All names: those the user gave, then the arrays the model closes over."""
        return tuple(self._arrays)

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a weight."""
        return tuple(self._arrays[name].shape)

    def arrays(self, names: Iterable[str]) -> dict[str, Array]:
        """The arrays with these names: contiguous, float32, in the order given."""
        return {name: self._arrays[name] for name in names}

    def replace(self, source: Mapping[str, Any]) -> None:
        """Take new arrays of the same names and shapes; names that nobody gave before are left out."""
        given = {name: to_float32(value, name) for name, value in source.items() if name in self._arrays}
        missing = [name for name in self._arrays if name not in given and not name.startswith("const_")]
        if missing:
            raise ModelError(f"the new weights lack '{missing[0]}'; give all of them, as a state_dict does.")
        for name, array in given.items():
            if array.shape != self.shape(name):
                raise ModelError(
                    f"the new weight '{name}' has shape {array.shape}; the model was compiled for {self.shape(name)}."
                )
        self._arrays |= given

    def constant(self, value: object) -> str:
        """The name of an array the model closes over: const_0, const_1, ... by identity."""
        key = id(value)
        if key not in self._constants:
            number = len(self._constants)
            while f"const_{number}" in self._arrays:
                number += 1
            name = f"const_{number}"
            self._arrays[name] = to_float32(value, name)
            self._constants[key] = (name, value)  # holding the value keeps its id from being reused
        return self._constants[key][0]

    def is_constant(self, name: str) -> bool:
        """Is this an array that the model closes over?"""
        return any(name == own for own, _ in self._constants.values())

    def equal_constant(self, value: object) -> str:
        """As `constant`, by content: arrays that a model makes anew in every trace are one constant."""
        array = to_float32(value, "constant")
        return self.constant(self._equal.setdefault((array.shape, array.tobytes()), array))


def to_float32(value: Any, name: str) -> Array:
    """An array-like or a torch tensor as a contiguous float32 array."""
    if hasattr(value, "detach"):  # torch; `float` also takes care of bfloat16, which NumPy lacks
        value = value.detach().cpu().float().numpy() if value.is_floating_point() else value.detach().cpu().numpy()
    try:
        array = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise ModelError(f"weight '{name}' cannot be read as an array: {error}.") from None
    if array.dtype.kind not in "fiub":
        raise ModelError(f"weight '{name}' has element type {array.dtype}; only real numbers can be weights.")
    if array.dtype.kind in "iu" and array.size and max(abs(int(array.min())), abs(int(array.max()))) > EXACT:
        raise ModelError(f"weight '{name}' holds integers beyond 2**24, which float32 cannot represent exactly.")
    with np.errstate(over="ignore"):
        narrow = np.ascontiguousarray(array, dtype=np.float32).reshape(array.shape)
    if not np.isfinite(narrow).all() and (lost := np.isinf(narrow) & np.isfinite(array)).any():
        raise ModelError(f"weight '{name}' holds {array[lost][0]}, which is too large for float32 (up to 3.4e38).")
    return narrow


def _load(path: str | os.PathLike[str]) -> dict[str, Any]:
    name = os.fspath(path)
    if not os.path.exists(name):
        raise ModelError(f"weights file {name!r} does not exist.")
    if name.endswith(".npz"):
        with np.load(name) as archive:
            return dict(archive)
    if name.endswith(".safetensors"):
        from safetensors.numpy import load_file  # optional, and only needed for these files

        return load_file(name)
    raise ModelError(f"weights file {name!r}: only .npz and .safetensors files can be read.")
