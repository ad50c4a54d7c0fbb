"""From a call of a torch function with symbolic tensors to its implementation on symbolic values."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import torch

from cortex.errors import InternalError
from cortex.frontend import pointwise
from cortex.frontend.builder import Value, builder
from cortex.frontend.spans import fail
from cortex.frontend.standin import Attribute
from cortex.frontend.tensor import Operand
from cortex.frontend.torch.constants import NotConstant, computed_now
from cortex.frontend.torch.content import Content, Integers, integers
from cortex.frontend.torch.exact import checked, of_fields
from cortex.frontend.torch.fields import WHOLE_TYPES, field_tensor, unchangeable
from cortex.frontend.torch.meta_results import run_on_meta
from cortex.frontend.torch.number import Number
from cortex.frontend.torch.numpy_arrays import as_numpy, is_of_numpy
from cortex.frontend.torch.operators.indexing import meta_index, prepared
from cortex.frontend.torch.operators.table import Entry, table
from cortex.frontend.torch.refusals import FLOATS, Unsupported, operator_name, plain_name, unsupported
from cortex.frontend.torch.tensor import TorchTensor, meta_of
from cortex.frontend.torch.tokens import Tokens
from cortex.frontend.torch.unknown import refuse_unknown
from cortex.frontend.torch.views import View
from cortex.ra.ir import Param

INDEXED = (torch.Tensor.__getitem__, torch.Tensor.__setitem__)
CONSTANT = (
    "computed values are written into a constant tensor of integers or truth values, or one that torch made unseen. "
    "Build it with torch.stack or torch.where instead."
)
NARROW = (torch.int16, torch.int8, torch.uint8)
WRAPPING = (
    "add", "radd", "sub", "rsub", "mul", "rmul", "pow", "rpow", "neg", "square", "abs", "multiply", "subtract",
    "negative",
)  # fmt: skip
"""Operators whose results may not fit in few bits."""
NUMPY_NAMES = {"axis": "dim", "keepdims": "keepdim"}
"""Torch's functions know some arguments by NumPy's names too."""


class Dispatcher:
    """Calls implementations. `params` gives the weight names of the real tensors that are parameters or buffers."""

    def __init__(self, params: Mapping[int, str], read: set[str]) -> None:
        self.params = params
        self.read = read
        """Buffers of integers whose elements code has looked at."""
        self.tokens = Tokens()
        self.made: dict[int, list[TorchTensor]] = {}
        """Symbolic tensors by their storage, which they share with what torch makes of them unseen."""

    def __call__(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What `function(*args, **kwargs)` gives, some argument of which is symbolic."""
        if torch.is_autocast_enabled("cpu"):
            raise fail("torch.autocast: compiled modules compute in float32. Leave it out.")
        refuse_unknown((args, kwargs))
        if is_of_numpy(function, args, kwargs):
            return as_numpy(self._called(function, args, kwargs))
        return self._called(function, args, kwargs)

    def _called(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        exact = of_fields(function, args, kwargs)
        if exact is not None:
            return self.noted(self.symbolic(exact))
        entry = table().get(function)
        with torch._C.DisableTorchFunction(), torch.no_grad():
            why = None
            try:
                if entry is not None:
                    return self._run(function, entry, args, kwargs)
            except Unsupported as error:
                why = f"{operator_name(function)}: {error}"
            try:
                return self._of_constants(function, args, kwargs)
            except NotConstant:
                raise (unsupported(function) if why is None else fail(why)) from None

    def _of_constants(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What torch computes now; tensors that share elements with an argument must not be changed later."""
        try:
            given = self.symbolic(args), {name: self.symbolic(x) for name, x in kwargs.items()}
        except Unsupported:
            raise NotConstant from None
        return self._as_constant(computed_now(function, *given))

    def _as_constant(self, x: Any) -> Any:
        if isinstance(x, torch.Tensor):
            return self.noted(TorchTensor(constant(x), meta_of(x), CONSTANT)) if x.is_floating_point() else x
        return type(x)(map(self._as_constant, x)) if type(x) in (list, tuple) else x

    def _run(self, function: Any, entry: Entry, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if function in INDEXED:
            args = (args[0], prepared(args[1]), *args[2:])
        args = tuple(self.symbolic(a) for a in args)
        kwargs = {NUMPY_NAMES.get(name, name): self.symbolic(a) for name, a in kwargs.items()}
        if kwargs.get("out", self) is None:
            del kwargs["out"]
        meta = _on_meta(function, args, kwargs) if entry.checked else None
        _bind(entry.run, args, kwargs)
        result = entry.run(*args, **kwargs)
        if isinstance(result, Value) and isinstance(meta, torch.Tensor) and meta.dtype in WHOLE_TYPES:
            result = entry.run(*map(checked, args), **kwargs)  # torch computes with integers, and this with floats
        return self.noted(_wrap(function, result, meta))

    def noted(self, result: Any) -> Any:
        """`result`, which is remembered if it is a symbolic tensor."""
        if isinstance(result, TorchTensor):
            made = self.made.setdefault(result._cortex_meta.untyped_storage()._cdata, [])
            if not any(each is result for each in made):
                made.append(result)
        return result

    def symbolic(self, x: Any) -> Any:
        """`x` with symbolic tensors in place of real ones and of fields of nodes."""
        match x:
            case TorchTensor():
                return x
            case Attribute():
                return field_tensor(x)
            case Number():
                return x._cortex_tensor()
            case Operand():
                return TorchTensor(x._cortex_value())
            case torch.Tensor():
                return self.real(x)
            case list():
                return [self.symbolic(each) for each in x]
            case tuple() if type(x) is tuple:
                return tuple(self.symbolic(each) for each in x)
            case slice():
                return slice(*map(self.symbolic, (x.start, x.stop, x.step)))
        return x

    def real(self, x: torch.Tensor) -> TorchTensor:
        """A real tensor: a parameter by its name, anything else by its content."""
        name = self.params.get(id(x))
        if x.is_meta:
            return self._copied(x)
        if x.grad_fn is not None:
            raise Unsupported(
                "a tensor is used that was computed from parameters before the module was traced, so new weights would "
                "not change it. Compute it in forward, or store x.detach()."
            )
        meta = meta_of(x)
        if name is not None and x.is_floating_point():
            b = builder()
            return TorchTensor(b.emit(Param(name), tuple(x.shape)), meta, unchangeable(f"parameter '{name}'"))
        return TorchTensor(self.constant(x), meta, CONSTANT)

    def _copied(self, x: torch.Tensor) -> TorchTensor:
        """What a constructor of torch that nobody can override made of a symbolic tensor, as `Variable` does."""
        for made in self.made.get(x.untyped_storage()._cdata, ()):
            same = made._cortex_meta
            if (x.shape, x.stride(), x.storage_offset()) == (same.shape, same.stride(), same.storage_offset()):
                return made
        raise Unsupported("a tensor of the module went through a constructor. Use the tensor itself.")

    def constant(self, x: torch.Tensor) -> Content:
        """A real tensor that is no parameter, by its content."""
        if self.tokens.are_in(x):
            return self.tokens.resolved(x)
        return constant(x)


def constant(x: torch.Tensor) -> Content:
    """The elements of a real tensor."""
    x = x.detach().cpu()
    if x.dtype in WHOLE_TYPES:
        return integers([int(e) for e in x.reshape(-1).tolist()], tuple(x.shape))
    if not (x.is_floating_point() or x.dtype is torch.bool):
        raise Unsupported(f"a tensor of {x.dtype} is used; floats, integers and truth values are accepted.")
    value: Value
    if x.numel() == 0 or bool((x == x.reshape(-1)[0]).all()):
        value = pointwise.fill(float(x.reshape(-1)[0]) if x.numel() else 0.0, tuple(x.shape))
    else:
        b = builder()
        name = b.knowledge.weights.equal_constant(x.float())
        value = b.emit(Param(name), tuple(x.shape))
    return pointwise.comparison("ne", value, pointwise.fill(0.0)) if x.dtype is torch.bool else value


def _on_meta(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What torch makes of the shapes and element types; its errors are the user's."""
    try:
        given = [meta_index(a) if function in INDEXED and i == 1 else _meta(a) for i, a in enumerate(args)]
        return run_on_meta(function, given, {name: _meta(a) for name, a in kwargs.items()})
    except NotImplementedError:
        return None  # it needs values: the implementation says so
    except (RuntimeError, TypeError, IndexError, ValueError) as error:
        if "meta tensor" in str(error):
            return None
        said = str(error).splitlines()[0]
        raise fail(f"{operator_name(function)}: {FLOATS if 'scalar types: Long' in said else said}") from None


def _meta(x: Any) -> Any:
    match x:
        case TorchTensor():
            return x._cortex_meta
        case list():
            return [_meta(each) for each in x]
        case tuple() if type(x) is tuple:
            return tuple(_meta(each) for each in x)
        case slice():
            return slice(*map(_meta, (x.start, x.stop, x.step)))
    return x


@lru_cache(maxsize=4096)
def _why_unbound(run: Callable[..., Any], count: int, names: tuple[str, ...]) -> str:
    """What is wrong with arguments: so many by position, and these by name."""
    signature = inspect.signature(run)
    try:
        signature.bind(*(None,) * count, **dict.fromkeys(names))
        return ""
    except TypeError as error:
        accepted = ", ".join(signature.parameters)
        return f"{error}; the arguments that can be compiled are ({accepted})."


def _bind(run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuse arguments that the implementation does not know."""
    if why := _why_unbound(run, len(args), tuple(kwargs)):
        raise Unsupported(why)


def _wrap(function: Any, result: Any, meta: Any) -> Any:
    """The result as the user's code sees it; `meta` is what torch says it is, where torch was asked."""
    match result:
        case TorchTensor() | None:
            return result
        case View() if meta is not None and not _shares(meta, result.base._cortex_meta):
            return _tensor(function, result.read(result.base._cortex_content()), meta)  # a copy, says torch
        case View() | Value() | Integers():
            return _tensor(function, result, meta)
        case list() | tuple():
            metas = [None] * len(result) if meta is None else list(meta)
            wrapped = [_wrap(function, each, m) for each, m in zip(result, metas, strict=True)]
            if meta is None:
                return type(result)(wrapped)
            return type(meta)(wrapped)
    return result


def _tensor(function: Any, held: Content | View, meta: torch.Tensor | None) -> TorchTensor:
    if meta is None:
        return TorchTensor(held)
    if meta.dtype not in (torch.float32, torch.bool, *WHOLE_TYPES):
        raise Unsupported(f"it gives {meta.dtype}, and compiled modules compute in torch.float32. Write x.float().")
    if meta.dtype in NARROW and plain_name(function).strip("_") in WRAPPING:
        raise Unsupported(f"it gives {meta.dtype}, whose numbers wrap around. Write x.long() or x.float().")
    if not isinstance(held, View):
        if tuple(held.shape) != tuple(meta.shape):
            raise InternalError(f"{operator_name(function)}: traced as {held.shape}, but torch gives {meta.shape}")
        if isinstance(held, Value) and held.dtype == "bool" and meta.dtype is not torch.bool:
            held = pointwise.as_float(held)
        if isinstance(held, Value) and held.dtype != "bool" and meta.dtype is torch.bool:
            held = pointwise.comparison("ne", held, pointwise.fill(0.0))
    return TorchTensor(held, meta)


def _shares(x: torch.Tensor, y: torch.Tensor) -> bool:
    return bool(x.untyped_storage()._cdata == y.untyped_storage()._cdata)
