"""A module that was compiled in this process: called as the module is, and trained as it is."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from cortex.errors import ModelError
from cortex.frontend.torch.digest import digest, refuse_changed
from cortex.frontend.torch.interface import Interface
from cortex.frontend.torch.serving import Serving
from cortex.frontend.weights import Weights, mapping_of
from cortex.runtime.check_module import check_module
from cortex.runtime.executable import Executable
from cortex.runtime.node_results import NodeResults
from cortex.runtime.part import Save
from cortex.runtime.torch_module import Compile, CompiledHere
from cortex.runtime.torch_training import trained_states
from cortex.runtime.weights_of_modules import name_outside, untied

if TYPE_CHECKING:  # torch is loaded where a module is compiled, not before
    from cortex.frontend.torch.model import TorchModel
    from cortex.frontend.torch.torch_entry import TorchEntry

Own = TypeVar("Own", bound="CompiledModule")


class CompiledModule(CompiledHere):
    """A module that was compiled in this process; it returns torch tensors."""

    def __init__(
        self, entry: TorchEntry, examples: list[Any] | None, compile: Compile, save: Save, check: bool
    ) -> None:
        from cortex.frontend.torch.entry import as_call
        from cortex.frontend.torch.held_tensors import digests, outside
        from cortex.frontend.torch.torch_entry import gradients_wanted, tensor_of

        calls = [as_call(example) for example in examples or []]
        face, weights = replace(entry.interface(calls), outside=outside(entry)), Weights(entry.weights)
        super().__init__(face, tensor_of, save, compile, weights)
        name_outside(entry.name, face.outside)
        self._entry: TorchEntry = entry
        self._digests = digests(entry)
        """Of tensors, as they were when the programs were compiled."""
        self._read = self._digests
        """The same, when the module was last read."""
        self._is_for_training = gradients_wanted if entry.is_trained else None
        self._modes = entry.modes()
        self._versions = entry.versions
        """Of the weights that the programs compute with."""
        self._examples = [self._interface.bind(call, {}) for call in calls]
        for arguments in self._examples:
            self._for(arguments)
        self._weights.own()
        if check:
            self._check()

    def _gives_gradients(self) -> bool:
        """Is the module in training mode?"""
        return self._entry.is_training

    def _with_gradients(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The results of a call for inference, until the first backward(), which is the call of `train`."""
        if self._entry.versions != self._versions:
            return self.train()(*args, **kwargs)
        from cortex.frontend.torch.late_gradients import with_late_gradients

        def again() -> Any:
            return self.train()(*args, **kwargs)

        return with_late_gradients(lambda: self(*args, **kwargs), again, self._entry.current_weights(), (args, kwargs))

    def train(self: Own, mode: bool = True) -> Own:
        """Have calls compute gradients for backward(), as those of the module do, and read its weights where they are.

        Whatever changes the weights is seen by the next call. `eval()`, or `train(False)`, ends it.
        """
        if not mode:
            return self.eval()
        from cortex.frontend.torch.autograd import as_tensor

        self.training, self._tensor, self._is_for_training, self._last = True, as_tensor, None, None
        return self

    def eval(self: Own) -> Own:
        """Compute what the module does with the weights of now, from now on, and no gradients."""
        from cortex.frontend.torch.torch_entry import tensor_of

        was_trained, self.training, self._tensor, self._is_for_training = self.training, False, tensor_of, None
        if was_trained:
            self.update(self._entry.called)
        return self

    def _states(self, model: TorchModel | Serving, run: Executable, request: Any, threads: int | None) -> Any:
        if not self.training:
            return super()._states(model, run, request, threads)
        return trained_states(self._entry, model, run, request, threads)

    def _for(self, arguments: dict[str, Any]) -> tuple[TorchModel, Executable]:
        if self.training:
            self._follow_modes()
        return super()._for(arguments)

    def _follow_modes(self) -> None:
        """Trace the module again where parts of it went into or out of training mode, which its code may ask for."""
        from cortex.frontend.torch.held_tensors import digests
        from cortex.frontend.torch.torch_entry import gradients_wanted

        modes = self._entry.modes()
        if gradients_wanted() and modes != self._modes:
            entry = self._entry.again(self._entry.called)
            assert entry is not None
            with self._lock:
                self._compile_again(entry, digests(entry))
            self._modes = modes

    def _joined(self, parts: Sequence[Any]) -> Any:
        if not self.training:
            return super()._joined(parts)
        from cortex.frontend.torch.autograd import concatenated

        return concatenated(parts)

    def _expect_more(self, arguments: dict[str, Any], model: TorchModel | Serving, run: Executable) -> None:
        if not self.training:
            super()._expect_more(arguments, model, run)

    def _nodes_of(self, arguments: dict[str, Any], name: str | None) -> NodeResults:
        if not self.training:
            return super()._nodes_of(arguments, name)
        model, run = self._for(arguments)
        request = model.request(arguments)
        states: Any = trained_states(self._entry, model, run, request, None, everywhere=True)
        return self._results_at_nodes(model, run, request, states, name)

    def _check(self) -> None:
        """Compare with the module itself."""
        for model, run, alike in self._examples_by_program():
            check_module(self._entry, model, run, alike)

    def update(self, weights: Any) -> None:
        """Use these weights from now on, as a `state_dict` or the module itself has them now: see `CalledAsModule`."""
        from cortex.frontend.torch.held_tensors import compiled_in, digests

        with self._lock:
            self._versions = self._entry.versions
            entry = self._entry.again(weights)
            known = compiled_in(self._entry, self._digests)
            if entry is not None:
                found = digests(entry)
                is_same = all(found.get(name) == text for name, text in known.items())
                if is_same and untied(self._entry.weights, entry.weights) is None:
                    self._take(entry.weights)
                else:
                    self._compile_again(entry, found)
                self._read = digests(self._entry)
                return
            new = mapping_of(weights)
            same = {name: digest(x) for name, x in new.items() if name in known}
            refuse_changed(same, known, "Load them into the module, and call update(module).")
            if (apart := untied(self._entry.weights, new)) is not None:
                raise ModelError(
                    f"update: '{apart[0]}' and '{apart[1]}' were one tensor when the module was compiled, and are "
                    "different here. Load them into the module, and call update(module)."
                )
            self._take(new)
            now = digests(self._entry)
            left = [name for name in self._interface.outside if name not in new]
            changed = next((name for name in left if now.get(name) != self._read[name]), None)
            if changed is not None:
                warnings.warn(
                    f"update is given a state_dict, which does not have '{changed}'; that has changed since the module "
                    "was read, and stays as it was in the compiled module. update(module) reads it.",
                    stacklevel=2,
                )

    def _compile_again(self, entry: TorchEntry, found: dict[str, str]) -> None:
        """Have a module whose programs are other ones."""
        from cortex.frontend.torch.held_tensors import outside

        entry.refuse_unfit()
        before, self._entry = self._entry, entry
        weights, made = Weights(entry.weights), {}
        try:
            for key, (model, _) in self._made.items():
                made[key] = self._make(model.signature.example, key, weights)
                weights = made[key][1].given_weights
        except BaseException:
            self._entry = before
            raise
        for _, run in self._made.values():
            run.retire()
        weights.own()
        self._made, self._weights, self._digests = made, Weights() if made else weights, found
        self._interface = replace(self._interface, outside=outside(entry))

    def _described(self) -> Interface:
        from cortex.frontend.torch.held_tensors import compiled_in

        return replace(self._interface, compiled_in=compiled_in(self._entry, self._digests))
