"""A compiled module that was saved and loaded again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import FunctionType
from typing import Any

from cortex.errors import StructureError
from cortex.frontend.torch.categories import WHOLE
from cortex.frontend.torch.digest import digest, refuse_changed
from cortex.frontend.torch.interface import Constants, Interface
from cortex.frontend.torch.serving import Serving
from cortex.frontend.weights import mapping_of
from cortex.runtime.executable import Executable
from cortex.runtime.part import Part, Save
from cortex.runtime.torch_module import CalledAsModule
from cortex.runtime.weights_of_modules import update_all


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
        self._made: dict[Constants, tuple[Serving, Executable]] = {
            serving.constants: (serving, run) for serving, run in made
        }
        forms = {name: what for key in self._made for name, *what in key}
        interface.taken_whole.update(name for name, (form, *_) in forms.items() if str(form).startswith(WHOLE))

    def update(self, weights: Any) -> None:
        """Use these weights from now on, as a `state_dict` or the module itself has them now: see `CalledAsModule`."""
        known, remedy = self._interface.compiled_in, "Compile the module and save it again."
        if hasattr(weights, "named_parameters") or isinstance(weights, FunctionType):
            from cortex.frontend.torch.held_tensors import digests
            from cortex.frontend.torch.torch_entry import entry_again

            entry = entry_again(weights, self._interface.name)
            refuse_changed(digests(entry), known, remedy)
            weights = entry.weights
        else:
            weights = mapping_of(weights)
            refuse_changed({name: digest(x) for name, x in weights.items() if name in known}, known, remedy)
        update_all([run for _, run in self._made.values()], weights, self._interface.outside)

    def _parts(self, cpus: Sequence[str] | str | None = None, threads: Sequence[int] | int | None = None) -> list[Part]:
        return [replace(run.part(cpus, threads), serving=serving) for serving, run in self._made.values()]

    def _for(self, arguments: dict[str, Any]) -> tuple[Serving, Executable]:
        key = self._known(arguments)
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
