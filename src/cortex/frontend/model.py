"""`@cortex.model`: a recursive function that can be traced."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from cortex.errors import ModelError
from cortex.frontend.arity.mentions import Mentions, mentions
from cortex.frontend.beyond import beyond
from cortex.frontend.builder import Builder, Value, builder, building, is_tracing
from cortex.frontend.facts import Facts
from cortex.frontend.fields import Accessors
from cortex.frontend.handled import no_handled_errors
from cortex.frontend.items_apart import ItemsApart
from cortex.frontend.knowledge import Knowledge
from cortex.frontend.node_identity import functions_of
from cortex.frontend.slices import Slices
from cortex.frontend.spans import fail, refusals, span_of_function
from cortex.frontend.standin import Attribute, Place, StandIn
from cortex.frontend.state import StateRecord, child_state, states_of
from cortex.frontend.state_form import StateForm
from cortex.frontend.tensor import Operand, Tensor
from cortex.frontend.weight_space import WeightSpace
from cortex.frontend.written import codes
from cortex.ra.ir import Fact

Results = dict[str, Value]
"""The values that a kind computes, by the names of its states."""


class TracedModel(ABC):
    """What tracing needs of a model: how to run it on a stand-in node."""

    explores = True
    """Can it be traced for assumed nodes? Else only for real ones."""
    roles: Sequence[Any] = ()
    """What is known of its routines, where calls are seen."""
    starts_from_nodes = True
    """Are the structures of a request the nodes that `roots` gives?"""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name = name
        self.function = function
        self.told_at: set[tuple[str, int]] = set()
        """Lines of code that compute remainders and the like of numbers of children (arity/told.py)."""
        self.slices = Slices()
        self.families = ItemsApart()

    def closed_over(self) -> list[Any]:
        """The NumPy arrays that the function takes from the scopes around it."""
        return []

    def mentions(self) -> Mentions:
        """The numbers that its code knows."""
        functions = list(functions_of(self.function))
        found = [code for function in functions for code in codes(function.__code__)]
        names = {name for code in found for name in (*code.co_names, *code.co_freevars)}
        spaces = []
        for function in functions:
            scope = {**function.__globals__, **inspect.getclosurevars(function).nonlocals}
            spaces.append(own := {name: scope[name] for name in names & scope.keys()})
            spaces += [vars(x) for x in own.values() if hasattr(x, "__dict__") and not isinstance(x, type)]
        return mentions(found, spaces, (x for function in functions for x in function.__defaults__ or ()), self.told_at)

    def code(self) -> list[Any]:
        """The functions and objects whose code and attributes decide what a node's children are used for."""
        return [self.function]

    def roots(self, requests: Iterable[Any], *, traced: bool = True) -> list[Any]:
        """The nodes that requests start from; unless `traced`, they are only given to the linearizer."""
        return list(requests)

    def forgotten(self, k: Knowledge) -> None:
        """Everything is traced again."""
        k.states = None

    def confirm(self, k: Knowledge) -> None:  # noqa: B027 - most have nothing to do
        """Refuse a model that computes something else when it is run for the same nodes once more."""

    def prepare(self, k: Knowledge, requests: Sequence[Any]) -> bool:
        """Learn what there is to be learned before anything is traced; True if traces are likely to show much more."""
        return False

    def look_ahead(self) -> bool:
        """Prepare for nodes that no structure has shown; True if everything has to be traced again for that."""
        return False

    @cached_property
    def looks_up(self) -> bool:
        """Can its code reach a dictionary of numbers by name?"""
        return False

    @abstractmethod
    def accessors(self, fields: Any, children: Any) -> Accessors:
        """What names mean on the user's objects."""

    @abstractmethod
    def arguments(self, weights: WeightSpace) -> dict[str, Any]:
        """The arguments beside the node: the weights and the defaults."""

    @abstractmethod
    def run(self, k: Knowledge, facts: Facts) -> tuple[StateForm, Results, Builder]:
        """Call the function: the form of its states, their values, and the graph they are in."""

    def uses(self) -> int:
        """Grows when relations that are known come to be followed from more nodes."""
        return 0

    def decided_by(self, guard: tuple[Fact, ...]) -> Container[str]:
        """Relations that lead to nodes on which control flow depends in a kind, though no result may."""
        return ()

    def states(self) -> StateForm | None:
        """The states of the whole model, where kinds may have some of them only; None where each has all."""
        return None

    def shown_states(self) -> tuple[str, ...] | None:
        """The states that can be asked for; None where all can."""
        return None

    def merged(self, instead: Mapping[str, str]) -> None:  # noqa: B027 - most models need not know
        """States are not kept for which there is an equal one `instead`."""

    def call_model(self, model: RecursiveModel, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """A model function is called while this model is traced."""
        raise beyond(
            f"model '{model.name}' is called inside model '{self.name}': a model may call itself only. Compute both in "
            f"one model and return both results as states, cortex.state({self.name}=..., {model.name}=...), or compile "
            "a torch module, whose methods may call one another."
        )

    def no_base_case(self) -> ModelError | None:
        """What to say where no kind can be traced first; None where states can be supposed."""
        return None


class RecursiveModel(TracedModel):
    """A model function, for `cortex.compile`. Called by itself, `f(tree, weights)`, it runs as plain Python on arrays.

    Nodes are then the user's objects, weights float32 arrays, and what is returned for a node is float32 too. A node
    that is reached several times is computed once.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function.__name__, function)
        self.signature = inspect.signature(function)
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__
        self.__wrapped__ = function
        parameters = list(self.signature.parameters.values())
        required = [p for p in parameters if p.default is inspect.Parameter.empty]
        odd = [p for p in parameters if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        if odd or not required:
            raise ModelError(
                f"model '{self.name}' has the parameters {self.signature}: a model takes the node, the weights if it "
                "has any, and what calls are given beside these, by name or position.",
                span_of_function(function.__code__),
            )
        self.node_parameter = parameters[0].name
        self.weight_parameters = [p.name for p in required[1:2] if p.name != self.node_parameter]
        self.passed_parameters = [p.name for p in required[2:]]

    def uncompiled(
        self,
        structure: Any,
        weights: Any = None,
        *,
        children: str | tuple[str, ...] | Callable[[Any], Iterable[Any]] | None = None,
        fields: Mapping[str, Any] | None = None,
    ) -> Any:
        """The function's own result for a structure, without compiling; arguments are those of `cortex.compile`."""
        from cortex.frontend.uncompiled import Meaning, run_uncompiled

        return run_uncompiled(self, structure, weights, {}, Meaning(children, fields))

    @cached_property
    def looks_up(self) -> bool:
        """Can its code reach a dictionary of numbers by name?"""
        from cortex.frontend.torch.dictionaries import dictionaries
        from cortex.frontend.torch.function_entry import FunctionEntry
        from cortex.frontend.torch.lookups import is_table

        return any(is_table(held) for *_, held in dictionaries(FunctionEntry.of(self)))

    def __repr__(self) -> str:
        return f"<cortex model {self.name}{self.signature}>"

    def closed_over(self) -> list[Any]:
        """The NumPy arrays that the function takes from the scopes around it."""
        outside = inspect.getclosurevars(self.function)
        values = (*outside.nonlocals.values(), *outside.globals.values())
        return [value for value in values if isinstance(value, np.ndarray)]

    def accessors(self, fields: Any, children: Any) -> Accessors:
        """As `fields` and `children` say."""
        return Accessors(fields, children)

    def run(self, k: Knowledge, facts: Facts) -> tuple[StateForm, Results, Builder]:
        """Call the function with a stand-in."""
        b = Builder(k, facts)
        with building(b):
            with refusals(), no_handled_errors(codes(self.function.__code__)):
                result: Any = self.function(Place(()), **k.arguments)
            form, values = states_of(result)
        return form, dict(zip(form.names, values, strict=True)), b

    def arguments(self, weights: WeightSpace) -> dict[str, Any]:
        """The arguments beside the node: the weights and the defaults."""
        found: dict[str, Any] = {}
        for p in list(self.signature.parameters.values())[1:]:
            if p.default is not inspect.Parameter.empty:
                found[p.name] = p.default
            elif p.name in self.weight_parameters:
                found[p.name] = weights
        return found

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """While the model is traced: the state of a child. Else the function itself is run, on NumPy arrays."""
        if not is_tracing():
            from cortex.frontend.uncompiled import call

            return call(self, args, kwargs)
        b = builder()
        if b.knowledge.model is not self:
            return b.knowledge.model.call_model(self, args, kwargs)
        given = self.given(args, kwargs, f"a child: {self.name}(node.left)")
        node = given.pop(self.node_parameter)
        self._check_constant(b, given)
        return child_state(self._path(node))

    def given(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], wanted: str) -> dict[str, Any]:
        """The arguments of a call by name, which need not say what the weights are; `wanted` is what to call it on."""
        try:
            given = self.signature.bind_partial(*args, **kwargs).arguments
        except TypeError as error:
            raise fail(f"call of {self.name}{self.signature}: {error}.") from None
        if self.node_parameter not in given:
            raise fail(f"{self.name} is called without a node. Call it on {wanted}.")
        return given

    def _path(self, node: Any) -> Any:
        """The path to the child a recursive call is made on."""
        match node:
            case StandIn():
                if isinstance(node, Attribute) and isinstance(node._cortex_sample(), list | tuple):
                    name = node._cortex_name
                    raise fail(
                        f"{self.name} is called on node.{name}, which is a list. Call it on each child: "
                        f"cortex.sum({self.name}(k) for k in node.{name})."
                    )
                path = node._cortex_path()
                if not path:
                    raise fail(
                        f"{self.name} calls itself on the node itself, which would never end (P.2). Call it on a "
                        "child: node.left, or each k in node.children."
                    )
                return path
            case None:
                raise beyond(
                    f"{self.name} is called on None: this child is missing. Test for it first, as in "
                    f"`if node.left is not None`."
                )
            case Tensor() | StateRecord() | tuple():
                raise fail(
                    f"{self.name} is called on a computed value (P.3). Call it on a child of the node; a node's "
                    "result may depend on its children only through their states."
                )
            case _:
                raise beyond(
                    f"{self.name} is called on a {type(node).__name__}, which is not below the node (P.2). Call it on "
                    "a child: node.left, or each k in node.children."
                )

    def _check_constant(self, b: Builder, given: Mapping[str, Any]) -> None:
        """Every call has to get the same further arguments as the first one."""
        for name, value in given.items():
            top = b.knowledge.arguments[name]
            if isinstance(value, Operand | StateRecord):
                raise beyond(
                    f"argument '{name}' of a recursive call of {self.name} is a computed value (P.3): a call may not "
                    "depend on results of siblings or of the nodes above. Return what a node needs from below as a "
                    "state and combine it there. What it needs from above is computed by a torch module, which may "
                    "pass it down, or by a model of its own before: it recurses into the node above (fields="
                    '{"above": "parent"}), and its results are a field of the nodes for this one.'
                )
            if isinstance(value, WeightSpace) and isinstance(top, WeightSpace) and value is not top:
                raise beyond(
                    f"argument '{name}' of a recursive call of {self.name} is not the first call's group of weights. "
                    f"Pass `{name}` itself."
                )
            if value is not top and not _same_constant(value, top):
                raise beyond(
                    f"argument '{name}' of a recursive call of {self.name} differs from the first call's; all calls "
                    "have to get the same constant. What differs between nodes has to be a field of the node."
                )


def _same_constant(a: object, b: object) -> bool:
    plain = (str, int, float, bool, tuple, type(None), np.generic)
    return isinstance(a, plain) and isinstance(b, plain) and type(a) is type(b) and bool(a == b)


def model(function: Callable[..., Any]) -> RecursiveModel:
    """Make a recursive function of a node (and weights) a model that `cortex.compile` can compile."""
    if not inspect.isfunction(function):
        raise ModelError(f"@cortex.model decorates a function, not a {type(function).__name__}.")
    return RecursiveModel(function)
