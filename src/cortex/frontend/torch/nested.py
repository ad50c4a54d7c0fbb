"""Recursive functions that are defined inside others: `def encode(node): ...` in forward.

Each run of the outer function makes a new one, with the variables that it takes from there. So that its calls are seen,
the code that it is made from is replaced by code that hands its arguments and those variables to `Nested`:

    def encode(node):                                      def encode(node):
        return self.cell(h0, encode(node.left))    ->          return seen({"node": node, "self": self, "h0": h0, ...})

and what is traced is a function of both, which can be called without the outer one. Variables that inner functions
rebind (`nonlocal`) are known to the outer run alone; such functions are left as they are.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping
from types import CellType, CodeType, FunctionType
from typing import Any

from cortex.frontend.builder import builder, is_tracing
from cortex.frontend.node_identity import is_bound
from cortex.frontend.torch.routines import Routine, unwrapped
from cortex.frontend.written import inside, with_inner, written

OUTER = "outer_"
"""Before the name of a variable that is also a parameter."""


class Nested:
    """The inner functions of the user's code whose calls are seen."""

    def __init__(self) -> None:
        self._inner: set[CodeType] = set()
        """The code of all inner functions."""
        self._routines: dict[tuple[Any, ...], Routine] = {}

    def seen(self, code: CodeType, scope: dict[str, Any]) -> CodeType:
        """Code whose recursive inner functions are seen by functions that are put into `scope`; itself without any."""
        inner = {const: self.seen(const, scope) for const in code.co_consts if isinstance(const, CodeType)}
        for const, name in _recursive(code).items():
            inner[const] = self._seeing(inner[const], name, scope)
        self._inner |= set(inner.values())
        if all(before is after for before, after in inner.items()):
            return code
        return code.replace(co_consts=tuple(inner.get(c, c) if isinstance(c, CodeType) else c for c in code.co_consts))

    def _seeing(self, code: CodeType, name: str, scope: dict[str, Any]) -> CodeType:
        """Code with the same parameters and variables, which hands them on."""
        hook = f"_cortex_seen_{name}_{len(scope)}"
        text = f"def around({', '.join(code.co_freevars)}):\n  def {name}({', '.join(_parameters(code))}):\n"
        text += f"    return {hook}(locals())\n    {', '.join(code.co_freevars)}\n"
        around = next(c for c in compile(text, __file__, "exec").co_consts if isinstance(c, CodeType))
        made = next(c for c in around.co_consts if isinstance(c, CodeType))
        assert made.co_freevars == code.co_freevars

        def seen(found: dict[str, Any]) -> Any:
            functions, values = self._around({n: found[n] for n in code.co_freevars if n in found})
            key = (made, *functions, *values)
            if key not in self._routines:
                self._routines[key] = _routine(code, name, functions, scope, tuple(values))
            routine = self._routines[key]
            args, kwargs = _arguments(code, found)
            kwargs |= {_outer(code, n): value for n, value in values.items()}
            call = getattr(builder(), "call", None) if is_tracing() else None
            return routine.original(*args, **kwargs) if call is None else call(routine, args, kwargs)

        scope[hook] = seen
        return made

    def _around(self, values: Mapping[str, Any]) -> tuple[dict[str, FunctionType], dict[str, Any]]:
        """The inner functions among variables, and all other variables that these or they use."""
        functions: dict[str, FunctionType] = {}
        others: dict[str, Any] = {}
        todo = dict(values)
        while todo:
            name, value = todo.popitem()
            function = unwrapped(value)
            if not isinstance(function, FunctionType) or function.__code__ not in self._inner:
                others[name] = value
            elif name not in functions:
                functions[name] = function
                cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
                todo |= {n: cell.cell_contents for n, cell in cells if n not in others and is_bound(cell)}
        return functions, dict(sorted(others.items()))


def _routine(
    code: CodeType, name: str, functions: Mapping[str, FunctionType], scope: dict[str, Any], variables: tuple[str, ...]
) -> Routine:
    """An inner function as one of its parameters and of the variables that it takes from the outer one."""
    made = FunctionType(code, scope, name, None, tuple(CellType() for _ in code.co_freevars))
    own = [p.replace(default=inspect.Parameter.empty) for p in inspect.signature(made).parameters.values()]
    at = next((i for i, p in enumerate(own) if p.kind is p.VAR_KEYWORD), len(own))
    own[at:at] = [inspect.Parameter(_outer(code, n), inspect.Parameter.KEYWORD_ONLY) for n in variables]

    def original(*args: Any, **kwargs: Any) -> Any:
        cells = {n: CellType() for n in (*functions, *variables)}
        for n in variables:
            cells[n].cell_contents = kwargs.pop(_outer(code, n))
        for n, function in functions.items():
            closure = tuple(cells.get(v) or CellType() for v in function.__code__.co_freevars)
            copy = FunctionType(function.__code__, scope, n, function.__defaults__, closure)
            copy.__kwdefaults__ = function.__kwdefaults__
            cells[n].cell_contents = copy
        closure = tuple(cells.get(v) or CellType() for v in code.co_freevars)
        return FunctionType(code, scope, name, None, closure)(*args, **kwargs)

    original.__signature__ = inspect.Signature(own)  # type: ignore[attr-defined]
    return Routine(code, name, original, made)


def _outer(code: CodeType, variable: str) -> str:
    """The parameter that a variable of the outer function becomes."""
    return OUTER + variable if variable in code.co_varnames else variable


def _parameters(code: CodeType) -> Iterator[str]:
    """As they are written, without defaults: a function gets these when it is made."""
    names, plain, keyword = code.co_varnames, code.co_argcount, code.co_kwonlyargcount
    for i, name in enumerate(names[:plain]):
        yield name
        if i + 1 == code.co_posonlyargcount:
            yield "/"
    at = plain + keyword
    if code.co_flags & inspect.CO_VARARGS:
        yield f"*{names[at]}"
        at += 1
    elif keyword:
        yield "*"
    yield from names[plain : plain + keyword]
    if code.co_flags & inspect.CO_VARKEYWORDS:
        yield f"**{names[at]}"


def _arguments(code: CodeType, found: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    names, plain, keyword = code.co_varnames, code.co_argcount, code.co_kwonlyargcount
    args = tuple(found[name] for name in names[:plain])
    kwargs = {name: found[name] for name in names[plain : plain + keyword]}
    at = plain + keyword
    if code.co_flags & inspect.CO_VARARGS:
        args += found[names[at]]
        at += 1
    if code.co_flags & inspect.CO_VARKEYWORDS:
        kwargs |= found[names[at]]
    return args, kwargs


def _recursive(code: CodeType) -> dict[CodeType, str]:
    """The inner functions that reach themselves through variables of this code, with their names."""
    named = dict(_named(code))
    used = {const: set(const.co_freevars) for const in named}
    for _ in named:
        for variables in used.values():
            variables |= {further for const, name in named.items() if name in variables for further in used[const]}
    rebound = _rebound(code) if named else set()
    return {
        const: name
        for const, name in named.items()
        if name in used[const] and not rebound & used[const] and not const.co_flags & inspect.CO_GENERATOR
    }


def _named(code: CodeType) -> Iterator[tuple[CodeType, str]]:
    """The functions that are kept in variables that inner functions use, and the names of these.

    A `def` has the name of its variable. Lambdas are known by the assignment in the source, where that is at hand.
    """
    inner = [x for x in code.co_consts if isinstance(x, CodeType) and x.co_flags & inspect.CO_OPTIMIZED]
    yield from ((x, x.co_name) for x in inner if x.co_name in code.co_cellvars)
    lambdas = {written(x): x for x in inner if x.co_name == "<lambda>"}
    outer = written(code) if lambdas else None
    for x in () if outer is None else inside(outer):
        match x:
            case ast.Assign(targets=[ast.Name(id=name)], value=made) if made in lambdas and name in code.co_cellvars:
                yield lambdas[made], name


def _rebound(code: CodeType) -> set[str]:
    """Variables of this code that functions inside it may bind anew; all of them where the source is not at hand."""
    outer = written(code)
    if outer is None:
        return set(code.co_cellvars)
    found: set[str] = set()
    for x in with_inner(outer):
        match x:
            case ast.Nonlocal(names=names):
                found |= set(names)
            case ast.NamedExpr(target=ast.Name(id=name)):  # in a comprehension, of the function around it
                found.add(name)
    return found
