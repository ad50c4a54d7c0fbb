"""The weights of an exported model: as they lie in memory, padded and packed, in a safetensors file.

Tables and derived parameters have been computed, so that whoever loads the file has nothing left to do.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cortex.runtime.signature import Signature
from cortex.runtime.storage import Array

_DTYPES = {"float32": "F32", "float16": "F16", "uint16": "U16", "int16": "I16", "int8": "I8"}


@dataclass(frozen=True)
class Weight:
    """An array that code takes; one that no code reads has no name, and is in no file."""

    name: str | None
    dtype: str
    array: Array


def weights_of(f: Signature, arguments: list[tuple[Any, ...]]) -> list[Weight]:
    """The weights among the arguments of object code, in order; `arguments` are those of `f`."""
    buffers = (None,) * len(f.index_functions) + f.buffers
    found = []
    for number, (buffer, argument) in enumerate(zip(buffers, arguments, strict=True)):
        if argument[0] == "weight" and buffer is not None:
            plain = re.fullmatch(r"[A-Za-z_][\w.]{0,99}", buffer.name, re.ASCII) and buffer.name != "__metadata__"
            name = buffer.name if plain else f"weight.{number}"
            array = argument[1]
            found.append(Weight(name if buffer.name in f.read else None, _DTYPES[array.dtype.name], array))
    return found


def fingerprint(code: bytes, weights: list[Weight]) -> str:
    """Equal for equal code that takes equally laid out weights: weights that were trained anew fit it."""
    digest = hashlib.sha256(code)
    for w in weights:
        digest.update(f"{w.name} {w.dtype} {w.array.shape}\n".encode())
    return digest.hexdigest()


def save(weights: list[Weight], mark: str, file: Path) -> None:
    """Write a safetensors file, with the fingerprint among what it says about itself."""
    from safetensors.numpy import save_file

    arrays = {w.name: np.ascontiguousarray(w.array) for w in weights if w.name is not None}
    save_file(arrays, file, {"fingerprint": mark})
