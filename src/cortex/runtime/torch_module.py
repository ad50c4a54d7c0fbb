"""A compiled module: called as the module was, it returns torch tensors in the module's own form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any

from cortex.errors import StructureError
from cortex.frontend.model import TracedModel
from cortex.runtime.executable import Executable

if TYPE_CHECKING:  # torch is loaded where a module is compiled, not before
    from cortex.frontend.torch.entry import Entry
    from cortex.frontend.torch.model import TorchModel

Compile = Callable[[TracedModel, Any, list[Any] | None], Executable]


class CompiledModule:
    """Call it as the module: `fast(tree)`; or with one list of structures, which gives every tensor one row more.

    It computes what the module in `eval()` computes. Calls with other constants (a flag, a name) are compiled when they
    are first made. `update` takes new weights without compiling anything.
    """

    training = False

    def __init__(self, entry: Entry, examples: list[Any] | None, compile: Compile) -> None:
        from cortex.frontend.torch.entry import as_call

        self._entry = entry
        self._examples = [entry.bind(as_call(example), {}) for example in examples or []]
        self._compile = compile
        self._lock = Lock()
        self._made: dict[tuple[Any, ...], tuple[TorchModel, Executable]] = {}
        self._weights: Mapping[str, Any] | None = None
        for arguments in self._examples:
            self._for(arguments)

    def __repr__(self) -> str:
        return f"<compiled module {self._entry.name}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the module returns for these arguments, or for each structure of one list."""
        batch = self._entry.batch(args, kwargs)
        if batch is None:
            arguments = self._entry.bind(args, kwargs)
            model, run = self._for(arguments)
            return model.returned(run(model.request(arguments)))
        if not batch:
            raise StructureError("the module is called with an empty list; give it at least one structure")
        several = [self._entry.bind((x,), {}) for x in batch]
        model, run = self._for(several[0])
        return model.returned(run([model.request(each) for each in several]))

    def executable(self, *args: Any, **kwargs: Any) -> Executable:
        """The compiled program that a call with these arguments runs; it explains itself and reports."""
        return self._for(self._entry.bind(args, kwargs))[1]

    def update(self, weights: Mapping[str, Any]) -> None:
        """Use these weights, as a `state_dict` has them, from now on. Nothing is compiled."""
        with self._lock:
            for _, run in self._made.values():
                run.update(weights)
            self._weights = weights

    def eval(self) -> CompiledModule:
        """Itself: it computes what the module in `eval()` does."""
        return self

    def train(self, mode: bool = True) -> CompiledModule:
        """Refused, unless `mode` is False: a compiled module cannot be trained."""
        if mode:
            raise StructureError("a compiled module cannot be trained; train the module, and call update(state_dict)")
        return self

    def to(self, device: Any = "cpu", *_: Any, **__: Any) -> CompiledModule:
        """Refused for other devices than the processor."""
        if str(device).split(":")[0] != "cpu":
            raise StructureError(f"a compiled module runs on the processor; .to({device!r}) is not possible")
        return self

    def cpu(self) -> CompiledModule:
        """Itself."""
        return self

    def _for(self, arguments: dict[str, Any]) -> tuple[TorchModel, Executable]:
        key = self._entry.constants(arguments)
        with self._lock:
            if key not in self._made:
                made = self._make(arguments, key)
                if self._weights is not None:
                    made[1].update(self._weights)
                self._made[key] = made
            return self._made[key]

    def _make(self, arguments: dict[str, Any], key: tuple[Any, ...]) -> tuple[TorchModel, Executable]:
        """Compile for calls like this one."""
        from cortex.frontend.torch.entry import Signature
        from cortex.frontend.torch.model import TorchModel

        signature = Signature.of(self._entry, arguments)
        model = TorchModel(self._entry, signature)
        alike = [example for example in self._examples if self._entry.constants(example) == key]
        requests = [signature.request(example) for example in alike or [arguments]]
        return model, self._compile(model, self._entry.weights, requests)
