"""A saved model as a callable: calls need its record only, and the rest of the file is read when somebody asks."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, Any

from cortex import _native
from cortex.runtime.batch import batch_of
from cortex.runtime.by_file import ByFile
from cortex.runtime.output import Output
from cortex.runtime.recorded import Recorded

if TYPE_CHECKING:
    from cortex.runtime.executable import Executable


class SavedModel(ByFile):
    """What `cortex.load` gives: an `Executable` that reads what it needs from its file, when it needs it.

    Calls use the record of a program. What else an executable can do, `whole` does, and from then on makes the calls.
    """

    def __init__(self, recorded: Recorded, threads: int, restored: Callable[[], Executable]) -> None:
        self._name = recorded.name
        self._restored: Callable[[], Executable] | None = restored
        self._whole: Executable | None = None
        self._lock = Lock()
        self._node_class: type | None = None  # of the last structure that was given alone
        self._team = recorded.most(threads)
        self._answer: Callable[[type[Output], Any, bool, int], Output] | None = recorded.program.answer
        self._output = recorded.output

    def __call__(self, structures: Any, *, out: Any = None, threads: int | None = None) -> Output:
        """States of the model at the root of each structure: see `Executable`."""
        answer = self._answer
        if answer is not None and out is None and threads is None:
            given = type(structures)
            single = given is self._node_class
            batch = [structures] if single else structures if given is list else batch_of(structures)
            if batch is not structures:
                self._node_class, single = given, True
            try:
                return answer(self._output, batch, single, self._team)
            except _native.UnknownKind:
                pass
        return self.whole(structures, out=out, threads=threads)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.whole, name)

    def save(self, file: Any, **options: Any) -> None:
        """Write it to a file again: see `Executable.save`."""
        self.whole.save(file, **options)

    def __dir__(self) -> list[str]:
        return dir(self.whole)

    def __repr__(self) -> str:
        return f"<compiled model {self._name}, from a file>"

    @property
    def whole(self) -> Executable:
        """The model with everything that the file has of it."""
        with self._lock:
            if self._whole is None:
                assert self._restored is not None
                self._whole = self._restored()
                self._restored = self._answer = None  # and with them the file, once the weights are others
            return self._whole
