"""From a function of torch to rules: torch itself breaks the function down into ATen operators.

While torch runs a function on tensors without elements, it hands every ATen operator to `AtenMode`, with its arguments
in the order of the operator's schema. An operator with a rule gives a symbolic tensor; any other is broken down
further, by what it is composed of in torch or by torch's own table of decompositions, until all have rules. Variants
that change an argument (`add_`, `out=`) are the operator itself, and then an assignment.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from cortex.errors import CortexError, InternalError
from cortex.frontend import pointwise
from cortex.frontend.builder import Value
from cortex.frontend.torch.content import Content, Integers
from cortex.frontend.torch.exact import checked
from cortex.frontend.torch.fields import WHOLE_TYPES
from cortex.frontend.torch.meta_results import run_on_meta
from cortex.frontend.torch.operators.inplace import assign
from cortex.frontend.torch.operators.table import Rule, rules
from cortex.frontend.torch.refusals import PYTHON, RANDOM, NoRule, Unsupported, remedy
from cortex.frontend.torch.tensor import TorchTensor, meta_of
from cortex.frontend.torch.views import View

NARROW = (torch.int16, torch.int8, torch.uint8)
WRAPPING = ("add", "sub", "rsub", "mul", "pow", "neg", "square", "abs")
"""Operators whose results may not fit in few bits."""
OUT = "the result is written into a tensor of another shape (out=). Bind it to a name instead: y = torch.add(a, b)."


@dataclass(frozen=True)
class Operator:
    """An ATen operator: its name without the marks of variants, its rule, and the arguments that it changes."""

    name: str
    rule: Rule | None
    changes_first: bool
    outs: tuple[str, ...]


@lru_cache(maxsize=4096)
def operator(op: Any) -> Operator:
    """What is known of an overload."""
    schema = op._schema
    name, overload = schema.name.split("::")[1], op._overloadname
    written = [a for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write]
    outs = tuple(a.name for a in written if a.kwarg_only)
    changes_first = bool(written) and not outs and name.endswith("_")
    name = name.removesuffix("_") if changes_first else name
    return Operator(name, rules().get(f"{name}.{overload}", rules().get(name)), changes_first, outs)


class AtenMode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sees the ATen operators that torch calls. `constant` gives the content of a real tensor, `computed` what torch
    makes of constants, or raises `NotConstant`."""

    def __init__(self, symbolic: Callable[[Any], Any], computed: Callable[..., Any], refused: type[Exception]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.symbolic = symbolic
        self.computed = computed
        self.refused = refused
        self.within: list[Any] = []

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else torch's compiler would be imported

    def run(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What `function` gives, all of whose tensors are symbolic."""
        with torch._C._AutoDispatchBelowAutograd(), _modes_are_seen(), self:
            return function(*args, **kwargs)

    def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """What an ATen operator gives."""
        kwargs = kwargs or {}
        known = operator(op)
        if not _has_tensors(args) and not _has_tensors(tuple(kwargs.values())):
            return self._made(op, args, kwargs)
        args = tuple(self.symbolic(x) for x in args)
        kwargs = {name: self.symbolic(x) for name, x in kwargs.items()}
        try:
            if known.outs:
                return self._written(op, known, args, kwargs)
            if not (known.changes_first or op.is_view) and _are_known_integers((*args, *kwargs.values())):
                return self._computed(op, args, kwargs)
            if known.rule is None:
                return self._broken_down(op, known, args, kwargs)
            return self._by_rule(op, known, known.rule, args, kwargs)
        except Unsupported:
            if known.outs or known.changes_first or (op.is_view and known.name != "to"):
                raise
            try:
                return self._computed(op, args, kwargs)
            except self.refused:
                pass
            raise

    def _computed(self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if torch.Tag.nondeterministic_seeded in op.tags:
            raise self.refused
        return self._wrapped_constant(self.computed(op, args, kwargs))

    def _made(self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A tensor from numbers: torch makes it, with elements."""
        if torch.Tag.nondeterministic_seeded in op.tags:
            raise Unsupported(RANDOM)
        given = {name: x for name, x in kwargs.items() if name not in ("device", "pin_memory", "layout")}
        if "empty" in op._schema.name:
            made = torch.zeros(args[0], dtype=kwargs.get("dtype"))
        else:
            made = op(*args, **given, **({"device": torch.device("cpu")} if "device" in kwargs else {}))
        return self._wrapped_constant(made)

    def _wrapped_constant(self, x: Any) -> Any:
        if isinstance(x, torch.Tensor):
            held = self.symbolic(x)
            return TorchTensor(held._cortex_content(), meta_of(x)) if not isinstance(x, TorchTensor) else x
        return type(x)(map(self._wrapped_constant, x)) if type(x) in (list, tuple) else x

    def _by_rule(self, op: Any, known: Operator, rule: Rule, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        viewed = known.changes_first and args[0]._cortex_viewed
        meta = _on_meta(op, args, kwargs) if rule.is_checked else None
        result = _applied(op, rule, args, kwargs)
        if isinstance(result, Value) and isinstance(meta, torch.Tensor) and meta.dtype in WHOLE_TYPES:
            given = tuple(map(checked, args))
            if any(x is not y for x, y in zip(given, args, strict=True)):
                result = _applied(op, rule, given, kwargs)  # torch computes with integers, and this with floats
        is_copy = op.is_view and isinstance(result, Value | Integers)
        if is_copy and isinstance(meta, torch.Tensor) and _shares(meta, args[0]._cortex_meta):
            raise InternalError(f"the rule of {op} copies, and torch does not")
        if known.changes_first:
            if isinstance(result, View):
                op(*args, **kwargs)  # the symbolic tensor's own form
            return assign(args[0], result, viewed)
        return wrap(known.name, result, meta)

    def _written(self, op: Any, known: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """`out=`: what the operator gives, written into the tensor."""
        outs = [kwargs.pop(name) for name in known.outs]
        with self:
            found = op._overloadpacket(*args, **kwargs)
        results: list[Any] = [found] if isinstance(found, torch.Tensor) else list(found)
        for out, result in zip(outs, results, strict=True):
            if out._cortex_shape != result._cortex_shape:
                raise Unsupported(OUT)
            assign(out, result)
        return outs[0] if len(outs) == 1 else tuple(outs)

    def _broken_down(self, op: Any, known: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the operator is composed of."""
        if torch.Tag.nondeterministic_seeded in op.tags:
            raise Unsupported(RANDOM)
        if known.name == "_local_scalar_dense":
            raise Unsupported(PYTHON)
        if op in self.within:
            raise _no_rule(known)
        self.within.append(op)
        try:
            with self:
                found = op.decompose(*args, **kwargs)
                if found is not NotImplemented:
                    return found
                if known.changes_first:
                    return assign(args[0], getattr(torch.ops.aten, known.name)(*args, **kwargs))
                written = _decompositions().get(op)
                if written is None:
                    raise _no_rule(known)
                return written(*args, **kwargs)
        finally:
            self.within.pop()


def _no_rule(known: Operator) -> NoRule:
    name = f"{known.name}_" if known.changes_first else known.name
    return NoRule(remedy(known.name, remedy(name)))


def _modes_are_seen() -> AbstractContextManager[Any]:
    """Constructors of tensors switch modes off while they iterate over their items."""
    if not torch._C._dispatch_tls_is_dispatch_key_excluded(torch._C.DispatchKey.Python):
        return nullcontext()
    excluded = torch._C._dispatch_tls_local_exclude_set()
    for key in (torch._C.DispatchKey.Python, torch._C.DispatchKey.PythonTLSSnapshot):
        excluded = excluded.remove(key)
    return torch._C._ForceDispatchKeyGuard(torch._C._dispatch_tls_local_include_set(), excluded)


@lru_cache(maxsize=1)
def _decompositions() -> dict[Any, Callable[..., Any]]:
    """Torch's table; it takes long to import, and few operators need it."""
    from torch._decomp import decomposition_table

    return decomposition_table


def _has_tensors(x: Any) -> bool:
    if isinstance(x, list | tuple):
        return any(map(_has_tensors, x))
    return isinstance(x, torch.Tensor)


def _are_known_integers(x: Any) -> bool:
    """Are all tensors in it integers that are constants?"""
    if isinstance(x, list | tuple):
        return all(map(_are_known_integers, x))
    if not isinstance(x, TorchTensor):
        return True
    held = x._cortex_content()
    return isinstance(held, Integers) and held.known


def _applied(op: Any, rule: Rule, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    try:
        return rule.run(*args, **kwargs)
    except (TypeError, ValueError, IndexError, KeyError, RuntimeError, AssertionError) as error:
        if isinstance(error, CortexError):
            raise
        raise InternalError(f"the rule of {op}: {type(error).__name__}: {error}") from error


def _on_meta(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What torch makes of the shapes and element types; its errors are the user's."""
    try:
        return run_on_meta(op, [as_meta(x) for x in args], {name: as_meta(x) for name, x in kwargs.items()})
    except NotImplementedError:
        return None  # it needs values: the rule says so
    except RuntimeError as error:
        if "meta tensor" in str(error):
            return None
        raise


def as_meta(x: Any) -> Any:
    """`x` with tensors without elements in place of symbolic ones."""
    match x:
        case TorchTensor():
            return x._cortex_meta
        case list():
            return [as_meta(each) for each in x]
        case tuple() if type(x) is tuple:
            return tuple(map(as_meta, x))
        case slice():
            return slice(*map(as_meta, (x.start, x.stop, x.step)))
    return x


def wrap(name: str, result: Any, meta: Any) -> Any:
    """The result as symbolic tensors; `meta` is what torch says it is, where torch was asked."""
    match result:
        case TorchTensor() | None:
            return result
        case View() if meta is not None and not _shares(meta, result.base._cortex_meta):
            return _tensor(name, result.read(result.base._cortex_content()), meta)  # a copy, says torch
        case View() | Value() | Integers():
            return _tensor(name, result, meta)
        case list() | tuple():
            metas = [None] * len(result) if meta is None else list(meta)
            wrapped = [wrap(name, each, m) for each, m in zip(result, metas, strict=True)]
            return type(result)(wrapped) if meta is None else type(meta)(wrapped)
    return result


def _tensor(name: str, held: Content | View, meta: torch.Tensor | None) -> TorchTensor:
    if meta is None:
        return TorchTensor(held)
    if meta.dtype not in (torch.float32, torch.bool, *WHOLE_TYPES):
        raise Unsupported(f"it gives {meta.dtype}, and compiled modules compute in torch.float32. Write x.float().")
    if meta.dtype in NARROW and name in WRAPPING:
        raise Unsupported(f"it gives {meta.dtype}, whose numbers wrap around. Write x.long() or x.float().")
    if not isinstance(held, View):
        if tuple(held.shape) != tuple(meta.shape):
            raise InternalError(f"{name}: traced as {held.shape}, but torch gives {tuple(meta.shape)}")
        if isinstance(held, Value) and held.dtype == "bool" and meta.dtype is not torch.bool:
            held = pointwise.as_float(held)
        if isinstance(held, Value) and held.dtype != "bool" and meta.dtype is torch.bool:
            held = pointwise.comparison("ne", held, pointwise.fill(0.0))
    return TorchTensor(held, meta)


def _shares(x: torch.Tensor, y: torch.Tensor) -> bool:
    return bool(x.untyped_storage()._cdata == y.untyped_storage()._cdata)
