"""What is compiled: a module or a function, its parameters, and what it is called with."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from types import CellType, CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

from cortex.errors import ModelError
from cortex.frontend.spans import is_library, span_of_function
from cortex.frontend.torch.categories import is_data, is_node
from cortex.frontend.torch.collections_passed import FRESH, Content
from cortex.frontend.torch.interface import Constants, Interface, nodes_among
from cortex.frontend.torch.kept_objects import closed_over, kept_collections
from cortex.frontend.torch.language import Language
from cortex.frontend.torch.outside import ClassAttributes, Space
from cortex.frontend.torch.rebuild import Scope, comparing_nodes
from cortex.frontend.torch.rewrite import rewrite
from cortex.frontend.torch.routines import Routine
from cortex.frontend.torch.serving import Mode, Request
from cortex.frontend.written import names_in

if TYPE_CHECKING:
    from cortex.frontend.model import RecursiveModel


@dataclass(frozen=True, eq=False)
class Entry:
    """What is called, its methods and functions that may be called on nodes, and the modules it consists of."""

    language: ClassVar[Language]

    name: str
    routine: Routine
    modules: dict[str, Any]
    routines: dict[tuple[int, str], Routine]
    functions: dict[int, Routine]
    weights: dict[str, Any]
    scopes: list[Scope]
    cells: list[tuple[CellType, CellType, str]]
    """Cells of functions that hold dictionaries: those that are traced with, the functions' own, and the names."""
    called: Any
    """The module or the function itself."""
    buffers_read: set[str] = field(default_factory=set)
    """Buffers of integers and truth values that traces have read: code is compiled for their elements."""
    weight_parameters: tuple[str, ...] = ()
    """Parameters that are the weights of a model function."""

    @cached_property
    def does_more(self) -> bool:
        """Does a call do more than to call the routine?"""
        return False

    def call(self, arguments: dict[str, Any]) -> Any:
        """Call what does more than its routine."""
        raise NotImplementedError

    def traced(self) -> AbstractContextManager[Any]:
        """Let calls of methods be seen."""
        return nullcontext()

    def start(self, mode: Mode, arguments: dict[str, Any]) -> tuple[dict[Hashable, Routine], Mode]:
        """The recursive routines and the mode to start tracing with, as far as a call shows them beforehand."""
        return {}, mode

    def routine_of(self, model: RecursiveModel) -> Routine | None:
        """The routine that a model function is here; None where it is none."""
        return None

    @cached_property
    def closed_over(self) -> list[Any]:
        """The collections that its functions take from the scopes around them."""
        routines = (self.routine, *self.routines.values(), *self.functions.values())
        return closed_over(getattr(r.original, "__func__", r.original) for r in routines)

    def undisturbed(self) -> AbstractContextManager[None]:
        """Tracing leaves nothing in these collections."""
        return kept_collections(self.closed_over)

    @cached_property
    def params(self) -> dict[int, str]:
        """The names of the weights by the identity of the tensors."""
        return {id(tensor): name for name, tensor in reversed(self.weights.items())}

    @cached_property
    def seen_code(self) -> set[CodeType]:
        """The code of all functions whose calls are seen."""
        return {r.function.__code__ for r in (*self.routines.values(), *self.functions.values())}

    @cached_property
    def _methods_of_nodes(self) -> dict[CodeType, CodeType]:
        return {}

    def of_node(self, method: FunctionType) -> FunctionType:
        """A method of the user's nodes as it is run on what stands for one."""
        code = self._methods_of_nodes.setdefault(method.__code__, rewrite(method.__code__))
        self.seen_code.add(code)
        return comparing_nodes(method, code)

    def interface(self, calls: list[tuple[Any, ...]]) -> Interface:
        """How it is called, as these calls are."""
        lists = any(len(call) == 1 and type(call[0]) is list for call in calls)
        return Interface(
            self.name, self.routine.signature, lists, any(type(call[0]) is tuple for call in calls if call)
        )

    @cached_property
    def spaces(self) -> list[Space]:
        """Where calls can leave something behind."""
        found: dict[int, Space] = {}
        for label, module in self.modules.items():
            for path, part in module.named_modules():
                name = ".".join([label or "self", *([path] if path else [])])
                found[id(part)] = Space(name, (vars(part),))
                for cls in type(part).__mro__:
                    if not is_library(getattr(sys.modules.get(cls.__module__), "__file__", None) or ""):
                        found.setdefault(id(cls), Space(cls.__name__, (ClassAttributes(cls),)))
                for key, held in vars(part).items():
                    if is_node(held) and hasattr(held, "__dict__") and not isinstance(held, ModuleType | dict):
                        found.setdefault(id(held), Space(f"{name}.{key}", (vars(held),)))
        functions = [r.function for r in (*self.routines.values(), *self.functions.values())]
        for scope in {id(f.__globals__): f.__globals__ for f in functions}.values():
            names = frozenset(n for f in functions if f.__globals__ is scope for n in names_in(f.__code__))
            found[id(scope)] = Space("", (scope, *(s for s in self.scopes if s.outer is scope)), names)
        return list(found.values())

    def held(self) -> Iterator[dict[str, Any]]:
        """What code can read by name: from the spaces, parameters, variables of outer functions, and defaults."""
        yield from ({name: x for _, name, x in space.bound()} for space in self.spaces)
        for module in self.modules.values():
            for part in module.modules():
                yield part._parameters
                yield part._buffers
        for routine in (*self.routines.values(), *self.functions.values()):
            yield dict(inspect.getclosurevars(routine.function).nonlocals)
            defaults = routine.function.__defaults__ or ()
            names = routine.function.__code__.co_varnames[: routine.function.__code__.co_argcount]
            yield dict(zip(reversed(names), reversed(defaults), strict=False))

    def holds(self, x: Any) -> bool:
        """Is this an attribute of one of the modules, or a global variable that their code reads?

        Such an object is the same one in all calls, and code may ask whether it is.
        """
        return any(held is x for space in self.spaces for _, _, held in space.bound())


def as_call(example: Any) -> tuple[Any, ...]:
    """The arguments of an example: a tuple of them, or the only one."""
    return example if type(example) is tuple else (example,)


@dataclass(frozen=True, eq=False)
class Signature:
    """What calls are like: an example of the arguments, and which are nodes, tensors, or constants."""

    example: dict[str, Any]
    nodes: tuple[str, ...]
    tensors: tuple[str, ...]
    numbers: tuple[str, ...] = ()
    """Those that are data of the request."""
    whole: frozenset[str] = frozenset()
    """Tensors that are taken as a whole, rather than by rows."""
    taken_whole: set[str] = field(default_factory=set)
    """The same, of all calls of the module; tracing adds to it."""
    fixed: frozenset[str] = frozenset()
    """Tensors that have the same shape in all examples."""
    by_rows: set[str] = field(default_factory=set)
    """Tensors of which nodes take rows."""

    def has_more_wholes(self) -> bool:
        """Has a trace taken another of its tensors as a whole?"""
        return not self.taken_whole.intersection(self.tensors) <= self.whole

    def take_whole(self, names: Iterable[str]) -> None:
        """Have tensors of a fixed shape as a whole from the next trace on, unless nodes take rows of them."""
        if all(name in self.fixed and name not in self.by_rows for name in names):
            self.taken_whole.update(names)

    @classmethod
    def of(
        cls,
        entry: Entry,
        arguments: dict[str, Any],
        constants: Constants,
        taken_whole: set[str] | None = None,
        alike: Sequence[dict[str, Any]] = (),
    ) -> Signature:
        """From the arguments of a call, what they are, and examples of such calls."""
        nodes = nodes_among(arguments)
        if not nodes:
            given = ", ".join(f"'{name}' is a {type(value).__name__}" for name, value in arguments.items())
            raise ModelError(
                f"{entry.name} is given no structure: {given or 'it has no arguments'}. Give an object with the "
                f"attributes that {entry.routine.label} reads.",
                span_of_function(entry.routine.function.__code__),
            )
        for name, value in arguments.items():
            if type(value) in FRESH and value and name not in nodes and Content.of(value) is None:
                raise ModelError(
                    f"argument '{name}' of {entry.name} is a {type(value).__name__} of other things than constants. "
                    "Give nodes, tensors and constants as arguments of their own.",
                    span_of_function(entry.routine.function.__code__),
                )
        tensors = tuple(name for name, value in arguments.items() if is_data(value))
        numbers = tuple(name for name, *what in constants if what in (["int"], ["float"]))
        shapes = {name: {tuple(x[name].shape) for x in (arguments, *alike)} for name in tensors}
        fixed = frozenset(name for name, found in shapes.items() if len(found) == 1)
        taken_whole = set() if taken_whole is None else taken_whole
        return cls(arguments, nodes, tensors, numbers, frozenset(taken_whole).intersection(tensors), taken_whole, fixed)

    def request(self, arguments: dict[str, Any]) -> Request:
        """A call, ready to be walked."""
        return Request.of(arguments, self.nodes[0], self.tensors)

    def given(self) -> tuple[str, dict[str, Any]]:
        """The parameter that is the node, and the other arguments."""
        others = {name: value for name, value in self.example.items() if name != self.nodes[0]}
        return self.nodes[0], {
            name: Content.of(value) or type(value) if type(value) in FRESH else value for name, value in others.items()
        }
