"""A compiled module: called as the module was, it returns tensors in the module's own form."""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import numpy as np

from cortex import _native
from cortex.errors import ModelError, StructureError
from cortex.frontend.model import TracedModel
from cortex.frontend.torch.interface import Constants, Interface, Numbers
from cortex.frontend.torch.serving import Serving
from cortex.frontend.weights import Source, Weights
from cortex.runtime.check_module import Example
from cortex.runtime.device_report import DeviceReport
from cortex.runtime.direct_call import direct_call
from cortex.runtime.executable import Executable
from cortex.runtime.loaded import long_way
from cortex.runtime.node_results import NodeResults, by_state, calls_of, chosen
from cortex.runtime.not_copied import NotCopied
from cortex.runtime.output import Output, no_rows
from cortex.runtime.part import Part, Save
from cortex.runtime.report import Report
from cortex.runtime.row_results import in_order, shape_of_rows
from cortex.runtime.weights_of_modules import NO_GRADIENTS, update_all
from cortex.schedule.schedule import Schedule

if TYPE_CHECKING:  # torch is loaded where a module is compiled, not before
    from cortex.frontend.torch.entry import Entry
    from cortex.frontend.torch.model import TorchModel

Compile = Callable[[TracedModel, Any, list[Any] | None], Executable]
Alike = tuple["TorchModel | Serving", Executable, Sequence[int], list[Any]]
"""Calls of a list that the same program makes: what it is, where they stand in the list, and their requests."""
Self = TypeVar("Self", bound="CalledAsModule")


class CalledAsModule(NotCopied, ABC):
    """Call it as the module: `fast(tree)`; or with one list of structures, which gives every tensor one row more.

    Where the module takes several arguments, the list has a tuple of them for each call: `fast([(tree, x), ...])`.
    It computes what the module in `eval()` computes. `update` takes new weights without compiling anything.
    """

    training = False
    _what = "module"
    _made: Mapping[Constants, tuple[TorchModel | Serving, Executable]]

    def __init__(self, interface: Interface, tensor: Callable[[Any], Any], save: Save) -> None:
        self._interface = interface
        self._tensor = tensor
        self._save = save
        self._is_for_training: Callable[[], bool] | None = None
        """May a call be made for its gradients? Asked until it was so once."""
        self._last: Executable | None = None
        """What made the last call."""

    def __repr__(self) -> str:
        return f"<compiled {self._what} {self._interface.name}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the module returns for these arguments, or for each structure or tuple of arguments of one list.

        `threads=2` is for a call on so many threads, unless the module has an argument of that name.
        """
        if self._is_for_training is not None and self._is_for_training():
            if self._gives_gradients():
                return self._with_gradients(args, kwargs)
            self._warn_of_gradients()
        if not kwargs and self._last is not None and (loaded := self._last.in_memory) is not None:
            try:
                if (found := loaded.direct(args)) is not NotImplemented:
                    return found
            except _native.UnknownKind:
                pass
        threads = self._own("threads", kwargs)
        batch = self._interface.batch(args, kwargs)
        if batch is not None:
            return self._called_with_all(batch, threads)
        arguments = self._interface.bind(args, kwargs)
        model, run = self._for(arguments)
        request = model.request(arguments)
        try:
            states = self._states(model, run, request, threads)
        except ModelError:
            if not self._takes_constants(model):
                raise
            model, run = self._for(arguments)
            request = model.request(arguments)
            states = self._states(model, run, request, threads)
        form, names = model.result()  # after the call, which may have shown new kinds
        arrays = [states.result(name, is_single=True) for name in names]
        self._expect_more(arguments, model, run)
        if self._interface.names_states:
            return by_state(form, arrays, lambda: self._results_at_nodes(model, run, request, states, None))
        return form.returned(arrays, self._tensor)

    def _states(self, model: TorchModel | Serving, run: Executable, request: Any, threads: int | None) -> Output:
        """The states at the roots of a request, or of a list of them."""
        return run(request, threads=threads)

    def _joined(self, parts: Sequence[Any]) -> Any:
        """Rows of several programs, one after the other."""
        return np.concatenate(parts)

    def _expect_more(self, arguments: dict[str, Any], model: TorchModel | Serving, run: Executable) -> None:
        """A call has succeeded: have all ready for the next ones that are like it."""
        self._last, loaded = run, run.in_memory
        if loaded is not None and loaded.direct is long_way and loaded.usual is not None:
            key = self._interface.constants(arguments)
            serving = model if isinstance(model, Serving) else model.serving(key)
            loaded.direct = direct_call(self._interface, key, serving, loaded, self._tensor)

    def nodes(self, *args: Any, **kwargs: Any) -> Any:
        """What the module's recursive routine returns at every node: `NodeResults`, or a list of them for a list.

        `routine="down"` chooses one of several, unless the module has an argument of that name.
        """
        if self._is_for_training is not None and self._is_for_training():
            self._warn_of_gradients()
        name = self._own("routine", kwargs)
        batch = self._interface.batch(args, kwargs)
        if batch is not None:
            return [self._nodes_of(arguments, name) for arguments in map(self._interface.element, batch)]
        return self._nodes_of(self._interface.bind(args, kwargs), name)

    def _gives_gradients(self) -> bool:
        """Have the results of a call gradients that nobody asked for by `train`?"""
        return False

    def _with_gradients(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The results of such a call."""
        raise NotImplementedError

    def _warn_of_gradients(self) -> None:
        """Once, at the line that calls the module."""
        self._is_for_training = None
        warnings.warn(NO_GRADIENTS, stacklevel=3)

    @property
    def schedule(self) -> Schedule:
        """The steps in use."""
        return self.program.schedule

    @property
    def program(self) -> Executable:
        """The compiled program, where all calls run the same one: see `executable`."""
        programs = [run for _, run in self._made.values()]
        if len(programs) != 1:
            has = f"{len(programs)} programs, for calls with different constants" if programs else "no program yet"
            raise ModelError(
                f"compiled module {self._interface.name} has {has}. `fast.executable(tree, ...)` gives the one that "
                "such a call runs."
            )
        return programs[0]

    def report(self, *args: Any, **kwargs: Any) -> Report | DeviceReport:
        """What a call with these arguments is made of and where its time goes: see `Executable.report`."""
        _, run, request = self._requested(args, kwargs)
        return run.report(request)

    def explain(self, *args: Any, **kwargs: Any) -> str:
        """The predicted time of a call with these arguments, and why: see `Executable.explain`."""
        _, run, request = self._requested(args, kwargs)
        outside = self.not_in_state_dict
        note = f"\n\nin no state_dict, and read by update(module) alone: {', '.join(outside)}" if outside else ""
        return run.explain(request) + note

    @property
    def not_in_state_dict(self) -> tuple[str, ...]:
        """Tensors that the module computes with and that are in no state_dict: `update(module)` reads them."""
        return self._interface.outside

    def _requested(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[TorchModel | Serving, Executable, Any]:
        """What a call is made by, and the request that it is made with."""
        batch = self._interface.batch(args, kwargs)
        if batch is None:
            arguments = self._interface.bind(args, kwargs)
            model, run = self._for(arguments)
            return model, run, model.request(arguments)
        alike = self._alike(batch)
        if len(alike) > 1:
            raise StructureError(
                f"calls of {self._interface.name} with different constants are made by different programs, and are "
                "looked at one program at a time; give a list of calls with the same ones"
            )
        model, run, _, requests = alike[0]
        return model, run, requests

    def _alike(self, batch: list[Any]) -> list[Alike]:
        """The calls of a list by the program that makes them."""
        if not batch:
            raise StructureError("the module is called with an empty list; give it at least one structure")
        face = self._interface
        if face.are_alike(batch):
            model, run = self._for(face.bind((batch[0],), {}))
            return [(model, run, range(len(batch)), [model.request(face.bind((each,), {})) for each in batch])]
        found: dict[Constants, tuple[TorchModel | Serving, Executable, list[int], list[Any]]] = {}
        for number, arguments in enumerate(map(face.element, batch)):
            key = face.constants(arguments)
            if key not in self._made:
                made = self._for(arguments)
                key = next(known for known, each in self._made.items() if each is made)
            if key not in found:
                found[key] = (*self._for(arguments), [], [])
            model, _, numbers, requests = found[key]
            numbers.append(number)
            requests.append(model.request(arguments))
        return list(found.values())

    def _called_with_all(self, batch: list[Any], threads: int | None) -> Any:
        """What calls of a list return, a row each."""
        if not batch and self._made and not self._interface.names_states:
            model, run = next(iter(self._made.values()))
            form, names = model.result()
            return form.returned(no_rows(names, run.compiled.model.outputs), self._tensor)
        alike = self._alike(batch)
        found = []
        for model, run, _, requests in alike:
            try:
                states = self._states(model, run, requests, threads)
            except ModelError:
                if not self._takes_constants(model):
                    raise
                return self._called_with_all(batch, threads)
            form, names = model.result()  # after the call, which may have shown new kinds
            found.append((form, [states.result(name, is_single=False) for name in names]))
        form, columns = found[0]
        if self._interface.names_states and len(found) == 1:
            return by_state(form, columns, lambda: self._results_at_nodes(model, run, requests, states, None))
        if len(found) > 1:
            shapes = {(form, *map(shape_of_rows, columns)) for form, columns in found}
            if len(shapes) > 1:
                raise StructureError(
                    f"calls of {self._interface.name} with different constants return results of different forms or "
                    "shapes, which cannot be rows of the same tensors; make them by lists of their own"
                )
            numbers = [number for _, _, numbers, _ in alike for number in numbers]
            columns = [
                in_order(parts, numbers, self._joined) for parts in zip(*(rows for _, rows in found), strict=True)
            ]
        return form.returned(columns, self._tensor)

    def _nodes_of(self, arguments: dict[str, Any], name: str | None) -> NodeResults:
        model, run = self._for(arguments)
        request = model.request(arguments)
        states = self._states(model, run, request, None)  # first: it may show new kinds, and modes with them
        return self._results_at_nodes(model, run, request, states, name)

    def _results_at_nodes(
        self, model: TorchModel | Serving, run: Executable, request: Any, states: Output, name: str | None
    ) -> NodeResults:
        routine = chosen(model.routine_states(), name, self._interface)
        return NodeResults(states.nodes, calls_of(routine, model.mode, run.visited(request)), routine, self._tensor)

    def _own(self, name: str, kwargs: dict[str, Any]) -> Any:
        """Take out of the arguments of a call what is not the module's."""
        return kwargs.pop(name) if name in kwargs and self._interface.leaves(name) else None

    def executable(self, *args: Any, **kwargs: Any) -> Executable:
        """The compiled program that a call with these arguments runs."""
        return self._for(self._interface.bind(args, kwargs))[1]

    @abstractmethod
    def update(self, weights: Any) -> None:
        """Use these weights from now on, as a `state_dict` or the module itself has them now.

        A state_dict leaves out tensors that the module holds elsewhere, `not_in_state_dict`: they stay as they were.
        The module has them all. Nothing is compiled, unless elements changed that are part of the program: those of
        tensors that are no parameters or buffers, and of buffers of integers.

        Calls that are running finish with the weights that they began with. Where anything is wrong with the new
        weights, all stay as they were. Names that the module does not have are ignored.
        """

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the compiled module and its weights to a file, for `cortex.load`.

        It knows the kinds of nodes, and the constants of calls, that are known now; no others can be learnt once it is
        loaded.
        """
        self._save(path, self._parts(), self._described())

    def _described(self) -> Interface:
        return self._interface

    def eval(self: Self) -> Self:
        """Itself: it computes what the module in `eval()` does. Calls are not for gradients from now on."""
        self._is_for_training = None
        return self

    def train(self: Self, mode: bool = True) -> Self:
        """Refused, unless `mode` is False: there is no module here whose parameters could be trained."""
        if mode:
            raise StructureError(
                f"{self!r} cannot be trained here: only a module that was compiled in this process can be. Compile the "
                "module, and call train() on what that gives."
            )
        return self

    def to(self: Self, device: Any = "cpu", *_: Any, **__: Any) -> Self:
        """Refused for other devices than the processor."""
        if str(device).split(":")[0] != "cpu":
            raise StructureError(f"a compiled module runs on the processor; .to({device!r}) is not possible")
        return self

    def cpu(self: Self) -> Self:
        """Itself."""
        return self

    def _known(self, arguments: dict[str, Any]) -> Constants:
        """What tells calls like this one apart, by which they are compiled if they are."""
        keys = (self._interface.constants(arguments, numbers) for numbers in get_args(Numbers))
        return next((key for key in keys if key in self._made), self._interface.constants(arguments))

    def _takes_constants(self, model: TorchModel | Serving) -> bool:
        """A call was refused: can it be made with the numbers of forward as constants?"""
        return False

    @abstractmethod
    def _for(self, arguments: dict[str, Any]) -> tuple[TorchModel | Serving, Executable]:
        """What calls like this one are made by."""

    @abstractmethod
    def _parts(self) -> list[Part]:
        """What there is to save."""


class CompiledHere(CalledAsModule):
    """What was compiled in this process. Calls with other constants (a flag, a name) are compiled when first made."""

    _entry: Entry
    _examples: list[dict[str, Any]]

    def __init__(
        self, interface: Interface, tensor: Callable[[Any], Any], save: Save, compile: Compile, weights: Weights
    ) -> None:
        super().__init__(interface, tensor, save)
        self._compile = compile
        self._lock = Lock()
        self._made: dict[Constants, tuple[TorchModel, Executable]] = {}
        self._by_value: set[Constants] = set()
        """Calls whose numbers cannot be data, so that there is a program for each."""
        self._weights = weights
        """Those that were given, until a program has them in memory."""

    def _take(self, weights: Source) -> None:
        """Have weights that the same programs compute with."""
        if not self._made:
            self._weights.replace(weights, optional=self._interface.outside)
            self._weights.own()
        update_all([run for _, run in self._made.values()], weights, self._interface.outside, share=True)

    def _parts(self) -> list[Part]:
        with self._lock:
            if not self._made:
                raise ModelError(
                    f"{self._what} '{self._entry.name}' is saved before it was compiled for any call. Pass examples="
                    f"[tree, ...] to cortex.compile, or call the compiled {self._what} first."
                )
            return [replace(run.part(), serving=model.serving(key)) for key, (model, run) in self._made.items()]

    def _for(self, arguments: dict[str, Any]) -> tuple[TorchModel, Executable]:
        made = self._made.get(self._interface.constants(arguments))
        if made is not None:
            return made
        with self._lock:
            key = self._known(arguments)
            if key not in self._made:
                key = self._make_for(arguments, key)
                self._weights = Weights()
            return self._made[key]

    def _takes_constants(self, model: TorchModel | Serving) -> bool:
        """Have a program for each number of forward, where one for all of them does not do."""
        with self._lock:
            key = next((key for key, (each, _) in self._made.items() if each is model), None)
            signature = None if key is None else self._made[key][0].signature
            if key is None or signature is None or not (signature.numbers or signature.has_more_wholes()):
                return False
            if not signature.has_more_wholes():
                self._by_value.add(key)
            self._weights = self._made.pop(key)[1].given_weights
            return True

    def _make_for(self, arguments: dict[str, Any], key: Constants) -> Constants:
        """Compile for calls like this one; with its numbers as constants where they cannot be data."""
        weights = next((run.given_weights for _, run in self._made.values()), self._weights)
        constants = self._interface.constants(arguments, "constants")
        whole = len(self._interface.taken_whole)
        try:
            if key not in self._by_value:
                self._made[key] = self._make(arguments, key, weights)
                return key
        except ModelError:
            if len(self._interface.taken_whole) > whole:
                return self._make_for(arguments, self._known(arguments))
            if key == constants:
                raise
        self._by_value.add(key)
        self._made[constants] = self._make(arguments, constants, weights)
        return constants

    def _make(self, arguments: dict[str, Any], key: Constants, weights: Weights) -> tuple[TorchModel, Executable]:
        """Compile for calls like this one."""
        from cortex.frontend.torch.entry import Signature
        from cortex.frontend.torch.model import TorchModel

        constants = [{self._interface.constants(x, numbers) for numbers in get_args(Numbers)} for x in self._examples]
        alike = [example for example, keys in zip(self._examples, constants, strict=True) if key in keys]
        signature = Signature.of(self._entry, arguments, key, self._interface.taken_whole, alike)
        model = TorchModel(self._entry, signature)
        requests = [signature.request(example) for example in alike or [arguments]]
        return model, self._compile(model, weights, requests)

    def _examples_by_program(self) -> Iterator[tuple[TorchModel, Executable, list[Example]]]:
        """Each program, and the examples that it computes."""
        named = [Example(f"examples[{i}]", example) for i, example in enumerate(self._examples)]
        for key, (model, run) in self._made.items():
            yield model, run, [each for each in named if self._known(each.arguments) == key]
