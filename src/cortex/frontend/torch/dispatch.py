"""From a call of a torch function with symbolic tensors to its implementation on symbolic values."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import torch

from cortex.frontend import pointwise
from cortex.frontend.builder import Value, builder
from cortex.frontend.spans import fail
from cortex.frontend.standin import Attribute
from cortex.frontend.tensor import Operand
from cortex.frontend.torch.aten import AtenMode, as_meta, wrap
from cortex.frontend.torch.constants import NotConstant, computed_now
from cortex.frontend.torch.content import Content, integers
from cortex.frontend.torch.exact import of_fields
from cortex.frontend.torch.fields import WHOLE_TYPES, field_tensor, unchangeable
from cortex.frontend.torch.meta_results import run_on_meta
from cortex.frontend.torch.number import Number
from cortex.frontend.torch.numpy_arrays import as_numpy, is_of_numpy
from cortex.frontend.torch.operators.indexing import meta_index, prepared
from cortex.frontend.torch.operators.table import functions
from cortex.frontend.torch.refusals import FLOATS, NEVER, NoRule, Unsupported, operator_name, plain_name, remedy
from cortex.frontend.torch.tensor import TorchTensor, meta_of
from cortex.frontend.torch.tokens import Tokens
from cortex.frontend.torch.unknown import refuse_unknown
from cortex.ra.ir import Param

INDEXED = (torch.Tensor.__getitem__, torch.Tensor.__setitem__)
CONSTANT = (
    "computed values are written into a constant tensor of integers or truth values, or one that torch made unseen. "
    "Build it with torch.stack or torch.where instead."
)


class Dispatcher:
    """Calls implementations. `params` gives the weight names of the real tensors that are parameters or buffers."""

    def __init__(self, params: Mapping[int, str], read: set[str]) -> None:
        self.params = params
        self.read = read
        """Buffers of integers whose elements code has looked at."""
        self.tokens = Tokens()
        self.made: dict[int, list[TorchTensor]] = {}
        """Symbolic tensors by their storage, which they share with what torch makes of them unseen."""
        self.outermost: Any = None
        """The function that torch writes in Python, and the user calls, which is running."""
        self.aten = AtenMode(self.symbolic, computed_now, NotConstant)

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
        with torch._C.DisableTorchFunction(), torch.no_grad():
            why = None
            try:
                return self.noted(self._run(function, args, kwargs))
            except Unsupported as error:
                why = error
            try:
                return self._of_constants(function, args, kwargs)
            except NotConstant:
                outermost = self.outermost or function
                text = remedy(plain_name(outermost), str(why)) if isinstance(why, NoRule) else why
                raise fail(f"{operator_name(outermost)}: {text}") from None

    def _run(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """By a function of its own, or as torch breaks it down."""
        if function in INDEXED:
            args = (args[0], prepared(args[1]), *args[2:])
        args = tuple(self.symbolic(a) for a in args)
        kwargs = {name: self.symbolic(a) for name, a in kwargs.items()}
        own = functions().get(function)
        if own is None:
            if (name := plain_name(function)) in NEVER:
                raise Unsupported(remedy(name))
            return _told(self.outermost or function, self.aten.run, function, args, kwargs)
        meta = _told(function, _of_index, function, args) if function in INDEXED else None
        _bind(own, args, kwargs)
        return wrap(plain_name(function), own(*args, **kwargs), meta)

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

    @contextmanager
    def within(self, function: Any) -> Iterator[None]:
        """Errors name `function`, unless it is called by another that torch writes in Python."""
        before, self.outermost = self.outermost, self.outermost or function
        try:
            yield
        finally:
            self.outermost = before

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


def _told(function: Any, run: Callable[..., Any], *args: Any) -> Any:
    """What `run` gives; what torch says against the arguments of `function` is told the user."""
    try:
        return run(*args)
    except (NotImplementedError, RuntimeError, TypeError, IndexError, ValueError) as error:
        said = str(error).splitlines()[0]
        raise fail(f"{operator_name(function)}: {FLOATS if 'scalar types: Long' in said else said}") from None


def _of_index(function: Any, args: tuple[Any, ...]) -> Any:
    """What torch says of `x[...]`, read or written; None where that depends on values."""
    try:
        return run_on_meta(function, [args[0]._cortex_meta, meta_index(args[1]), *map(as_meta, args[2:])], {})
    except NotImplementedError:
        return None
    except RuntimeError as error:
        if "meta tensor" in str(error):
            return None
        raise


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
