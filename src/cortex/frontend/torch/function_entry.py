"""A model function as what is compiled where its calls have to be seen, with all that modules may do.

Its routines are the function, the model functions and the plain functions that it can reach by name. Weights are a
constant of its calls. What a model function returns are states, as when it runs uncompiled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from cortex.frontend.torch.entry import Entry, as_call
from cortex.frontend.torch.interface import Interface
from cortex.frontend.torch.kept_objects import closed_over
from cortex.frontend.torch.language import OWN
from cortex.frontend.torch.rebuild import Rebuilt
from cortex.frontend.torch.routines import Routine

if TYPE_CHECKING:
    from cortex.frontend.model import RecursiveModel


@dataclass(frozen=True, eq=False)
class FunctionEntry(Entry):
    """A model function, and what it calls."""

    language = OWN
    rebuilt: Rebuilt | None = None

    @classmethod
    def of(cls, model: RecursiveModel) -> FunctionEntry:
        """The function with all that it can reach."""
        rebuilt = Rebuilt(cls.language)
        routine = rebuilt.of_model(model)
        weights = tuple(model.weight_parameters)
        found, scopes, cells = rebuilt.routines, rebuilt.scopes, rebuilt.cells
        return cls(
            model.name, routine, {}, {}, found, {}, scopes, cells, model, weight_parameters=weights, rebuilt=rebuilt
        )

    def routine_of(self, model: RecursiveModel) -> Routine:
        """The routine that a model function is."""
        assert self.rebuilt is not None
        return self.rebuilt.of_model(model)

    @cached_property
    def closed_over(self) -> list[Any]:
        """The collections that its functions take from the scopes around them."""
        return closed_over(routine.function for routine in self.functions.values())

    def interface(self, calls: list[tuple[Any, ...]]) -> Interface:
        """How it is called: without the weights."""
        signature = self.routine.signature
        kept = [p for name, p in signature.parameters.items() if name not in self.weight_parameters]
        found = super().interface(calls)
        return replace(found, signature=signature.replace(parameters=kept), names_states=True)

    def calls(self, examples: list[Any]) -> list[tuple[Any, ...]]:
        """The arguments of each example; where there is one parameter only, the example is what it is given."""
        one = len(self.routine.signature.parameters) - len(self.weight_parameters) == 1
        return [(example,) if one else as_call(example) for example in examples]


def with_weights(
    model: RecursiveModel, args: tuple[Any, ...], kwargs: Mapping[str, Any], weights: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments of a call of a model function, which need not say what the weights are."""
    given = model.given(args, kwargs, f"a child: {model.name}(node.left)")
    return {**dict.fromkeys(model.weight_parameters, next(iter(weights.values()), None)), **given}
