"""A request that is bound to a compiled model: linearized once, run as often as one likes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from cortex import _native
from cortex.errors import StructureError
from cortex.runtime.forest import narrowed
from cortex.runtime.output import Output
from cortex.runtime.storage import Array

if TYPE_CHECKING:
    from cortex.runtime.executable import Executable
    from cortex.runtime.loaded import Loaded


class BoundFields(Mapping[str, Array]):
    """The fields of a bound request by name: one entry per node, in the order of `out.nodes`.

    Change values in place (`fields["word"][3] = 7`) or all at once (`fields["word"] = words`). Integers are int64 and
    checked when the request is run; numbers are float32. What the model does not read of a node is 0, and what one
    puts there does not matter. A field that the model's control flow reads is read-only: other values could make the
    node one of another kind.
    """

    __slots__ = ("_arrays",)

    def __init__(self, arrays: dict[str, Array]) -> None:
        self._arrays = arrays

    def __getitem__(self, name: str) -> Array:
        if name not in self._arrays:
            raise KeyError(f"no field {name!r}; the model reads {', '.join(self._arrays) or 'none'}")
        return self._arrays[name]

    def __setitem__(self, name: str, values: Any) -> None:
        array = self[name]
        if not array.flags.writeable:
            raise StructureError(
                f"field {name!r} of a bound request is read by the model's control flow and cannot change; bind the "
                "changed structure"
            )
        if np.ma.is_masked(values):
            raise StructureError(f"field {name!r} is set to a masked array, and what is masked has no value")
        try:
            wide = np.asarray(values)
            if array.dtype == np.float32 and wide.dtype.kind == "f" and wide.shape in ((), array.shape):
                values = narrowed(np.broadcast_to(wide, array.shape), f"field {name!r}")
            np.copyto(array, values, casting="same_kind")
        except (TypeError, ValueError) as error:
            raise StructureError(
                f"field {name!r} is set to values that do not fit ({error}); it must have {array.dtype} values of "
                f"shape {array.shape}"
            ) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{n}: {a.dtype}{list(a.shape)}' for n, a in self._arrays.items())})"


class Bound:
    """A request that was linearized once; calling it runs the model on the present values of `fields`.

    Every call writes the same arrays of states and returns the same `Output`. The structure itself, and which kind
    each node is of, are as they were when the request was bound; the objects it was made from are not looked at again.
    The weights are those of now: `fast.update` is for requests that were bound before it, too.
    One thread at a time may call it: a second one gets a RuntimeError. Bind once for each thread; the compiled code and
    the weights are shared.
    """

    __slots__ = ("_executable", "_loaded", "_native", "_output", "fields")

    fields: BoundFields

    def __init__(self, output: Output, native: _native.Bound, loaded: Loaded, executable: Executable) -> None:
        self._native = native
        self._output = output
        self._loaded = loaded
        self._executable = executable
        self.fields = BoundFields(native.fields())

    def __call__(self) -> Output:
        """States at the roots, and at every node, for the fields as they are now."""
        if self._loaded.updates != self._executable.updates:
            loaded = self._executable.updated(self._loaded)
            self._native.use(loaded.native_program)
            self._loaded = loaded
        self._native.run()
        return self._output

    @property
    def num_nodes(self) -> int:
        """The number of nodes of the request."""
        return self._native.num_nodes

    def __repr__(self) -> str:
        return f"<bound request of {self.num_nodes} nodes, {self.fields!r}>"
