"""The form of a model's states: how many tensors a call returns, what they are called, and their types."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from cortex.ra.ir import TensorType

Form = Literal["named", "bare", "tuple"]


@dataclass(frozen=True)
class StateForm:
    """`cortex.state(...)` is "named", one tensor is "bare" (called "out"), a tuple is called "0", "1", ..."""

    form: Form
    names: tuple[str, ...]
    types: tuple[TensorType, ...]

    def text(self) -> str:
        """As a user would write it: `state(h=(4,), c=(4,))`."""
        shapes = [str(t.shape) for t in self.types]
        match self.form:
            case "named":
                return f"state({', '.join(f'{n}={s}' for n, s in zip(self.names, shapes, strict=True))})"
            case "bare":
                return f"one tensor of shape {shapes[0]}"
            case "tuple":
                return f"a tuple of tensors of shapes {', '.join(shapes)}"


@dataclass
class Guess:
    """A supposed form, for models in which every kind calls the model: tried, then checked against the result."""

    form: Form
    shape: tuple[int, ...]
    count: int = 1
    types: dict[str, TensorType] = field(default_factory=dict)
    steps: int = 0
    """How many values have been computed from the states that are supposed."""

    def type_of(self, name: str) -> TensorType:
        """The supposed type of a state; remembered, so that the names that are used are known."""
        return self.types.setdefault(name, TensorType(self.shape))

    def text(self) -> str:
        """As `StateForm.text`, with the states that have been used so far."""
        types = self.types or {str(i): TensorType(self.shape) for i in range(self.count)}
        return StateForm(self.form, tuple(types), tuple(types.values())).text()
