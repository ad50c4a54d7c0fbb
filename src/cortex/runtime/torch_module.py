"""A compiled module: called as the module was, it returns tensors in the module's own form."""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from cortex.errors import ModelError, StructureError
from cortex.frontend.model import TracedModel
from cortex.frontend.torch.interface import Constants, Interface
from cortex.frontend.torch.serving import Serving
from cortex.frontend.weights import Source, Weights
from cortex.runtime.check_module import Example, check_module
from cortex.runtime.device_report import DeviceReport
from cortex.runtime.executable import Executable
from cortex.runtime.not_copied import NotCopied
from cortex.runtime.part import Part, Save
from cortex.runtime.report import Report

if TYPE_CHECKING:  # torch is loaded where a module is compiled, not before
    from cortex.frontend.torch.entry import Entry
    from cortex.frontend.torch.model import TorchModel

Compile = Callable[[TracedModel, Any, list[Any] | None], Executable]
Self = TypeVar("Self", bound="CalledAsModule")


NO_GRADIENTS = (
    "the results of a compiled module have no gradients: backward() would train what is computed from them, and leave "
    "the module as it is. For inference, call it under torch.no_grad(), or say so once with fast.eval(). To train, "
    "call the module itself, and give its weights to the compiled one afterwards: fast.update(module.state_dict())."
)


class CalledAsModule(NotCopied, ABC):
    """Call it as the module: `fast(tree)`; or with one list of structures, which gives every tensor one row more.

    It computes what the module in `eval()` computes. `update` takes new weights without compiling anything.
    """

    training = False

    def __init__(self, interface: Interface, tensor: Callable[[Any], Any], save: Save) -> None:
        self._interface = interface
        self._tensor = tensor
        self._save = save
        self._is_for_training: Callable[[], bool] | None = None
        """May a call be made for its gradients? Asked until it was so once."""

    def __repr__(self) -> str:
        return f"<compiled module {self._interface.name}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the module returns for these arguments, or for each structure of one list.

        `threads=2` is for a call on so many threads, unless the module has an argument of that name.
        """
        if self._is_for_training is not None and self._is_for_training():
            self._is_for_training = None
            warnings.warn(NO_GRADIENTS, stacklevel=2)
        threads = kwargs.pop("threads") if "threads" in kwargs and self._interface.leaves("threads") else None
        model, run, request = self._requested(args, kwargs)
        return model.returned(run(request) if threads is None else run(request, threads=threads), self._tensor)

    def report(self, *args: Any, **kwargs: Any) -> Report | DeviceReport:
        """What a call with these arguments is made of and where its time goes: see `Executable.report`."""
        _, run, request = self._requested(args, kwargs)
        return run.report(request)

    def explain(self, *args: Any, **kwargs: Any) -> str:
        """The predicted time of a call with these arguments, and why: see `Executable.explain`."""
        _, run, request = self._requested(args, kwargs)
        return run.explain(request)

    def _requested(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[TorchModel | Serving, Executable, Any]:
        """What a call is made by, and the request that it is made with."""
        batch = self._interface.batch(args, kwargs)
        if batch is None:
            arguments = self._interface.bind(args, kwargs)
            model, run = self._for(arguments)
            return model, run, model.request(arguments)
        if not batch:
            raise StructureError("the module is called with an empty list; give it at least one structure")
        several = [self._interface.bind((x,), {}) for x in batch]
        model, run = self._for(several[0])
        return model, run, [model.request(each) for each in several]

    def executable(self, *args: Any, **kwargs: Any) -> Executable:
        """The compiled program that a call with these arguments runs."""
        return self._for(self._interface.bind(args, kwargs))[1]

    @abstractmethod
    def update(self, weights: Source) -> None:
        """Use these weights, as a `state_dict` has them now, from now on. Nothing is compiled."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the compiled module and its weights to a file, for `cortex.load`.

        It knows the kinds of nodes, and the constants of calls, that are known now; no others can be learnt once it is
        loaded.
        """
        self._save(path, self._parts(), self._interface)

    def eval(self: Self) -> Self:
        """Itself: it computes what the module in `eval()` does. Calls are not for gradients from now on."""
        self._is_for_training = None
        return self

    def train(self: Self, mode: bool = True) -> Self:
        """Refused, unless `mode` is False: a compiled module cannot be trained."""
        if mode:
            raise StructureError("a compiled module cannot be trained; train the module, and call update(state_dict)")
        return self

    def to(self: Self, device: Any = "cpu", *_: Any, **__: Any) -> Self:
        """Refused for other devices than the processor."""
        if str(device).split(":")[0] != "cpu":
            raise StructureError(f"a compiled module runs on the processor; .to({device!r}) is not possible")
        return self

    def cpu(self: Self) -> Self:
        """Itself."""
        return self

    @abstractmethod
    def _for(self, arguments: dict[str, Any]) -> tuple[TorchModel | Serving, Executable]:
        """What calls like this one are made by."""

    @abstractmethod
    def _parts(self) -> list[Part]:
        """What there is to save."""


class CompiledModule(CalledAsModule):
    """A module that was compiled in this process; it returns torch tensors.

    Calls with other constants (a flag, a name) are compiled when they are first made.
    """

    def __init__(self, entry: Entry, examples: list[Any] | None, compile: Compile, save: Save, check: bool) -> None:
        from cortex.frontend.torch.entry import as_call, gradients_wanted, tensor_of

        super().__init__(entry.interface, tensor_of, save)
        self._entry = entry
        self._is_for_training = gradients_wanted if entry.is_trained else None
        self._examples = [entry.interface.bind(as_call(example), {}) for example in examples or []]
        self._compile = compile
        self._lock = Lock()
        self._made: dict[Constants, tuple[TorchModel, Executable]] = {}
        self._weights = Weights(entry.weights)
        """The module's, until a program has them in memory."""
        for arguments in self._examples:
            self._for(arguments)
        self._weights.own()
        if check:
            self._check()

    def _check(self) -> None:
        """Compare with the module itself."""
        for key, (model, run) in self._made.items():
            named = [Example(f"examples[{i}]", example) for i, example in enumerate(self._examples)]
            alike = [each for each in named if self._interface.constants(each.arguments) == key]
            check_module(self._entry, model, run, alike)

    def update(self, weights: Source) -> None:
        """Use these weights, as a `state_dict` has them now, from now on. Nothing is compiled."""
        with self._lock:
            if not self._made:
                self._weights.replace(weights)
                self._weights.own()
            new = weights
            for _, run in self._made.values():
                run.update(new)
                new = run.given_weights

    def _parts(self) -> list[Part]:
        with self._lock:
            if not self._made:
                raise ModelError(
                    f"module '{self._entry.name}' is saved before it was compiled for any call. Pass examples=[tree, "
                    "...] to cortex.compile, or call the compiled module first."
                )
            return [replace(run.part(), serving=model.serving(key)) for key, (model, run) in self._made.items()]

    def _for(self, arguments: dict[str, Any]) -> tuple[TorchModel, Executable]:
        key = self._interface.constants(arguments)
        made = self._made.get(key)
        if made is not None:
            return made
        with self._lock:
            if key not in self._made:
                known = next((run.given_weights for _, run in self._made.values()), self._weights)
                self._made[key] = self._make(arguments, key, known)
                self._weights = Weights()
            return self._made[key]

    def _make(self, arguments: dict[str, Any], key: Constants, weights: Weights) -> tuple[TorchModel, Executable]:
        """Compile for calls like this one."""
        from cortex.frontend.torch.entry import Signature
        from cortex.frontend.torch.model import TorchModel

        signature = Signature.of(self._entry, arguments)
        model = TorchModel(self._entry, signature)
        alike = [example for example in self._examples if self._interface.constants(example) == key]
        requests = [signature.request(example) for example in alike or [arguments]]
        with self._entry.undisturbed():
            return model, self._compile(model, weights, requests)


class LoadedModule(CalledAsModule):
    """A module that was saved. There is no code of it that calls with other constants could be traced from."""

    def __init__(
        self,
        interface: Interface,
        made: Sequence[tuple[Serving, Executable]],
        tensor: Callable[[Any], Any],
        save: Save,
    ) -> None:
        super().__init__(interface, tensor, save)
        self._made = {serving.constants: (serving, run) for serving, run in made}

    def update(self, weights: Source) -> None:
        """Use these weights, as a `state_dict` has them now, from now on. Nothing is compiled."""
        for _, run in self._made.values():
            run.update(weights)

    def _parts(self) -> list[Part]:
        return [replace(run.part(), serving=serving) for serving, run in self._made.values()]

    def _for(self, arguments: dict[str, Any]) -> tuple[Serving, Executable]:
        key = self._interface.constants(arguments)
        if key not in self._made:
            known = "; ".join(_text(each) for each in self._made)
            raise StructureError(
                f"call of {self._interface.name} with {_text(key)}: the saved module has no code for that, and the "
                f"Python code that it could be traced from is not in the file; known is {known}. Compile it with "
                "examples of such calls, examples=[(tree, ...), ...], and save it again."
            )
        return self._made[key]


def _text(constants: Constants) -> str:
    """A call by its constants: `(node=a node, flag=True)`."""
    return (
        f"({', '.join(f'{name}={what[-1]!r}' if len(what) > 1 else f'{name}: {what[0]}' for name, *what in constants)})"
    )
