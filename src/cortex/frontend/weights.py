"""The weights of a model: arrays under dotted names, and the arrays a model closes over."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cortex.errors import ModelError
from cortex.ra import ir as ra

Array = npt.NDArray[np.float32]

Source: TypeAlias = "Weights | Mapping[str, Any] | str | os.PathLike[str]"
Taken = tuple[dict[str, Array], set[str], dict[str, Array | None]]

PIECE = 1 << 18
EXACT = 1 << 24
"""Integers up to this size are exact in single precision."""


class Weights:
    """Float32 arrays by dotted name, from a mapping, a state_dict, an .npz or a .safetensors file.

    Other float types are converted to float32, rounding; integers and booleans too, if they are exact in float32.

    Arrays that need no conversion are the caller's until `own` copies them, so that those which are copied on the way,
    to where code reads them, are copied once. Of other `Weights`, the arrays are shared.
    """

    def __init__(self, source: Source | None = None, *, only: Collection[str] | None = None) -> None:
        """Of `source`, all names, or those that are wanted `only`."""
        self._given: dict[str, Array] = {}
        self._borrowed: set[str] = set()
        self.placed: dict[str, Array | None] = {}
        """The given weights as code takes them, with padded rows, where some code has; see runtime/loaded.py."""
        self._closed_over: dict[str, Array] = {}
        self._constants: dict[int, tuple[str, object]] = {}
        self._is_finite: dict[str, tuple[Array, bool]] = {}
        self._equal: dict[tuple[tuple[int, ...], bytes], Array] = {}
        if isinstance(source, Weights):
            self.take_back(source.taken())
            return
        for key, value in mapping_of(source).items():
            name = str(key)
            if only is None or name in only:
                self._given[name], is_borrowed = to_float32(value, name)
                self.placed[name] = None
                if is_borrowed and not isinstance(source, str | os.PathLike):
                    self._borrowed.add(name)

    @classmethod
    def of(cls, source: Source | None) -> Weights:
        """`source` itself if it is a `Weights`, else a new one of it."""
        return source if isinstance(source, cls) else cls(source)

    @classmethod
    def unwritten(cls, arrays: Mapping[str, Array]) -> Weights:
        """Float32 arrays that nobody writes to, as those of a file are: they are not copied."""
        made = cls()
        made.take_back(({name: _unwritable(array) for name, array in arrays.items()}, set(), dict.fromkeys(arrays)))
        return made

    def __len__(self) -> int:
        return len(self._given) + len(self._closed_over)

    @property
    def names(self) -> tuple[str, ...]:
        """All names: those the user gave, then the arrays the model closes over."""
        return (*self._given, *self._closed_over)

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a weight."""
        return tuple(self._array(name).shape)

    def shapes(self) -> list[tuple[int, ...]]:
        """The shapes of all weights."""
        return [self.shape(name) for name in self.names]

    def is_finite(self, name: str) -> bool:
        """Is no element of a weight infinite or NaN?"""
        array = self._array(name)
        known = self._is_finite.get(name)
        if known is None or known[0] is not array:
            known = self._is_finite[name] = array, _all_finite(array)
        return known[1]

    def with_promises(self, m: ra.Model) -> ra.Model:
        """`m` with parameters that are declared finite where the weights are; simplification relies on it."""
        return replace(m, params=tuple(replace(p, is_finite=self.is_finite(p.name)) for p in m.params))

    def breaks_promise(self, m: ra.Model) -> bool:
        """Is a weight not finite, though `m` was compiled for finite ones?"""
        names = {*self._given, *self._closed_over}
        return any(p.is_finite and p.name in names and not self.is_finite(p.name) for p in m.params)

    def arrays(self, names: Iterable[str]) -> dict[str, Array]:
        """The arrays with these names: float32, in the order given."""
        return {name: self._array(name) for name in names}

    def _array(self, name: str) -> Array:
        return self._given[name] if name in self._given else self._closed_over[name]

    def replace(self, source: Source | None, optional: Collection[str] = ()) -> None:
        """Take new arrays of the same names and shapes; names that nobody gave before are left out.

        Those that are `optional`, and constants, stay as they are where there are no new ones.
        """
        new = source if isinstance(source, Weights) else Weights(source, only=self._given.keys())
        given, borrowed, placed = new.taken()
        stay = {name for name in self._given if name.startswith("const_")} | set(optional)
        missing = [name for name in self._given if name not in given and name not in stay]
        if missing:
            raise ModelError(f"the new weights lack '{missing[0]}'; give all of them, as a state_dict does.")
        for name in self._given.keys() & given.keys():
            if new.shape(name) != self.shape(name):
                raise ModelError(
                    f"the new weight '{name}' has shape {new.shape(name)}; "
                    f"the model was compiled for {self.shape(name)}."
                )
        kept = {name: array for name, array in self.placed.items() if name not in given}
        self.take_back(({name: given.get(name, old) for name, old in self._given.items()}, borrowed, placed | kept))

    def taken(self) -> Taken:
        """All that was given, for `take_back`."""
        return dict(self._given), set(self._borrowed), dict(self.placed)

    def take_back(self, taken: Taken) -> None:
        """Be what it was when this was `taken`, of itself or of others."""
        self._given, self._borrowed, self.placed = taken

    def keep(self, arrays: Mapping[str, Array]) -> None:
        """Let go of the arrays with these names for equal ones, which nobody else will write to."""
        self._given |= arrays
        self._borrowed.difference_update(arrays)

    def own(self) -> None:
        """Copy what is the caller's still: from now on, it may change."""
        for name in self._borrowed:
            self._given[name] = _unwritable(self._given[name].copy())
        self._borrowed.clear()

    def constant(self, value: object) -> str:
        """The name of an array the model closes over, as it is now: const_0, const_1, ... by identity."""
        if id(value) not in self._constants:
            array, is_borrowed = to_float32(value, self._next_constant())
            self._add_constant(value, array.copy() if is_borrowed else array)
        return self._constants[id(value)][0]

    def is_constant(self, name: str) -> bool:
        """Is this an array that the model closes over?"""
        return any(name == own for own, _ in self._constants.values())

    def equal_constant(self, value: object) -> str:
        """As `constant`, by content: arrays that a model makes anew in every trace are one constant."""
        array, is_borrowed = to_float32(value, "constant")
        key = array.shape, array.tobytes()
        if key not in self._equal:
            self._equal[key] = array = array.copy() if is_borrowed else array
            self._add_constant(array, array)
        return self._constants[id(self._equal[key])][0]

    def _next_constant(self) -> str:
        number = len(self._constants)
        while f"const_{number}" in self._given or f"const_{number}" in self._closed_over:
            number += 1
        return f"const_{number}"

    def _add_constant(self, value: object, array: Array) -> None:
        name = self._next_constant()
        self._closed_over[name] = _unwritable(array)
        self._constants[id(value)] = (name, value)  # holding the value keeps its id from being reused


def to_float32(value: Any, name: str) -> tuple[Array, bool]:
    """An array-like or a torch tensor as a contiguous float32 array, and whether it may be the caller's own memory."""
    if hasattr(value, "detach"):  # torch
        value = _numpy(value, name)
    if np.ma.is_masked(value):
        raise ModelError(f"weight '{name}' is a masked array, and weights have no masks; give x.filled(value).")
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
    return _unwritable(narrow), bool(np.may_share_memory(narrow, array))


def _all_finite(array: Array) -> bool:
    """Is no element infinite or NaN? A piece at a time: what NumPy makes in between takes a quarter of the array."""
    if not array.ndim:
        return bool(np.isfinite(array))
    rows = max(1, PIECE // max(1, array[:1].size))
    return all(bool(np.isfinite(array[i : i + rows]).all()) for i in range(0, len(array), rows))


def _numpy(tensor: Any, name: str) -> Any:
    """The elements of a torch tensor."""
    try:
        held = tensor.detach().cpu()
        try:
            return held.numpy(force=True)
        except TypeError:  # bfloat16, which NumPy lacks
            return held.float().numpy()
    except (TypeError, RuntimeError, NotImplementedError) as error:  # sparse, quantized, without elements
        raise ModelError(f"weight '{name}' cannot be read as an array: {str(error).splitlines()[0]}") from None


def _unwritable(array: Array) -> Array:
    """A view that cannot be written: what the caller was given back would change behind compiled code."""
    view = array.view()
    view.flags.writeable = False
    return view


def mapping_of(source: Mapping[str, Any] | str | os.PathLike[str] | None) -> Mapping[str, Any]:
    """What is given as weights, by name: a mapping, or what a file holds."""
    if source is None:
        return {}
    if isinstance(source, str | os.PathLike):
        return _load(source)
    if not isinstance(source, Mapping):
        raise ModelError(
            f"weights of type {type(source).__name__}: give a mapping from names to arrays (a state_dict is one), "
            "or the path of an .npz or .safetensors file."
        )
    return source


def _load(path: str | os.PathLike[str]) -> dict[str, Any]:
    name = os.fspath(path)
    if not os.path.exists(name):
        raise ModelError(f"weights file {name!r} does not exist.")
    try:
        if name.endswith(".npz"):
            with open(name, "rb") as file, np.load(file) as archive:
                return dict(archive)
        if name.endswith(".safetensors"):
            from safetensors.numpy import load_file  # optional, and only needed for these files

            return load_file(name)
    except ImportError:
        raise
    except Exception as error:  # each kind of damage has its own, and safetensors a class of its own
        raise ModelError(f"weights file {name!r} cannot be read: {error}.") from None
    raise ModelError(f"weights file {name!r}: only .npz and .safetensors files can be read.")
