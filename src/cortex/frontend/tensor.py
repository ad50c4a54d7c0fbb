"""Symbolic tensors: what model code computes with while it is traced."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import chain
from types import FrameType, FunctionType, ModuleType
from typing import Any, NoReturn

import numpy as np

from cortex.frontend import contraction, indexing, movement, pointwise, reduction
from cortex.frontend.arity.told import Count
from cortex.frontend.beyond import beyond
from cortex.frontend.builder import Value, asked_by_user, builder
from cortex.frontend.field_shapes import note_shape
from cortex.frontend.foreign import TORCH, as_operator, foreign, math_function
from cortex.frontend.power import power
from cortex.frontend.spans import fail, running_call, user_frame
from cortex.ra.ir import DType, Param


class Operand:
    """Arithmetic of symbolic tensors and of what becomes one when it is computed with (a field of a node).

    It defines operators only: every other name belongs to the user's nodes.
    """

    __slots__ = ()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **others: Any) -> Any:
        """`ndarray @ tensor` is the operator of tensors, `ndarray += tensor` too; np.tanh(tensor) is refused."""
        usual = method == "__call__" and not others
        found = as_operator(ufunc.__name__, inputs, _is_operand) if usual else NotImplemented
        if found is NotImplemented:
            raise foreign("np", ufunc.__name__)
        return found if out is None else written(found, *out)

    def __array_function__(self, function: Any, *_: Any) -> NoReturn:
        raise foreign("np", function.__name__)

    @classmethod
    def __torch_function__(cls, function: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
        """As `__array_ufunc__`, for PyTorch; where torch code is traced, its functions mean what they do in torch."""
        dispatch = TORCH.get()
        if dispatch is not None:
            return dispatch(function, args, kwargs or {})
        found = as_operator(function.__name__.strip("_"), args, _is_operand)
        if found is NotImplemented:
            raise foreign("torch", function.__name__)
        return found

    def _cortex_value(self) -> Value:
        raise NotImplementedError

    def _cortex_condition(self) -> Any:
        """What `where` chooses by."""
        return self

    def __add__(self, other: Any) -> Tensor:
        return Tensor(pointwise.arithmetic("add", value_of(self), value_of(other)))

    def __radd__(self, other: Any) -> Tensor:
        return Tensor(pointwise.arithmetic("add", value_of(other), value_of(self)))

    def __sub__(self, other: Any) -> Tensor:
        return Tensor(pointwise.arithmetic("sub", value_of(self), value_of(other)))

    def __rsub__(self, other: Any) -> Tensor:
        return Tensor(pointwise.arithmetic("sub", value_of(other), value_of(self)))

    def __mul__(self, other: Any) -> Tensor:
        return Tensor(pointwise.arithmetic("mul", value_of(self), value_of(other)))

    def __rmul__(self, other: Any) -> Tensor:
        return Tensor(pointwise.arithmetic("mul", value_of(other), value_of(self)))

    def __truediv__(self, other: Any) -> Tensor:
        return Tensor(pointwise.arithmetic("div", value_of(self), value_of(other)))

    def __rtruediv__(self, other: Any) -> Tensor:
        return Tensor(pointwise.arithmetic("div", value_of(other), value_of(self)))

    def __matmul__(self, other: Any) -> Tensor:
        return Tensor(contraction.matmul(value_of(self), value_of(other)))

    def __rmatmul__(self, other: Any) -> Tensor:
        return Tensor(contraction.matmul(value_of(other), value_of(self)))

    def __pow__(self, exponent: Any) -> Tensor:
        return Tensor(power(value_of(self), exponent))

    def __neg__(self) -> Tensor:
        return Tensor(pointwise.unary("neg", value_of(self)))

    def __pos__(self) -> Tensor:
        return Tensor(value_of(self))

    def __abs__(self) -> Tensor:
        return Tensor(pointwise.unary("abs", value_of(self)))


class Elements:
    """Elements that a tensor and its views share, and whether one of them has changed these in place."""

    __slots__ = ("changed",)

    def __init__(self) -> None:
        self.changed = False


class Tensor(Operand):
    """A tensor of the node that is being traced; its shape is known, its elements are not."""

    __slots__ = ("_cortex_frozen", "_elements", "_held")
    _cortex_held = None

    def __init__(self, value: Value, frozen: str = "", elements: Elements | None = None) -> None:
        """`frozen` refuses changes in place; `elements` are those that views of one tensor share."""
        self._held = value
        self._cortex_frozen = frozen
        self._elements = elements

    @property
    def _value(self) -> Value:
        if self._elements is not None and self._elements.changed:
            raise fail(
                "a tensor is read here that shares its elements with another one (x.T, x[...], x.reshape(...)), which "
                "was changed in place before. Make another tensor there: write x = x + y instead of x += y."
            )
        return self._held

    def _view(self, value: Value) -> Tensor:
        """A tensor of some of these elements, as NumPy's views are; NumPy makes numbers of single ones."""
        if not value.shape:
            return Tensor(value)
        if self._elements is None:
            self._elements = Elements()
        return Tensor(value, self._cortex_frozen, self._elements)

    def _cortex_assign(self, value: Value) -> None:
        """Change the elements in place: all that have this object see it; those that have a view may not read it."""
        if self._cortex_frozen:
            raise fail(self._cortex_frozen)
        refuse_unfit(value, self.shape, self.dtype)
        if self._elements is not None:
            self._elements.changed = True
            self._elements = None
        self._held = value

    def _cortex_value(self) -> Value:
        return self._value

    def __repr__(self) -> str:
        return f"<cortex tensor {self._value.name}: {self.dtype}{list(self.shape)}>"

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape, a tuple of Python integers."""
        if asked_by_user():
            note_shape(self._value)
        return self._value.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        if asked_by_user():
            note_shape(self._value)
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        if asked_by_user():
            note_shape(self._value)
        return int(np.prod(self.shape))

    @property
    def dtype(self) -> DType:
        """The element type: "f32", "i64" or "bool"."""
        return self._value.dtype

    @property
    def T(self) -> Tensor:  # noqa: N802 - NumPy's name
        """The tensor with its axes reversed."""
        return self._view(movement.transpose(self._value, None))

    def transpose(self, *axes: int) -> Tensor:
        """The tensor with its axes permuted."""
        return self._view(movement.transpose(self._value, _flat(axes) if axes else None))

    def reshape(self, *shape: int) -> Tensor:
        """The same elements in another shape."""
        return self._view(movement.reshape(self._value, _flat(shape)))

    def sum(self, axis: reduction.Axis = None, keepdims: bool = False) -> Tensor:
        """The sum over axes."""
        return Tensor(reduction.axis_reduction("sum", "add", self._value, axis, keepdims))

    def mean(self, axis: reduction.Axis = None, keepdims: bool = False) -> Tensor:
        """The mean over axes."""
        return Tensor(reduction.mean(self._value, axis, keepdims))

    def max(self, axis: reduction.Axis = None, keepdims: bool = False) -> Tensor:
        """The largest element over axes."""
        return Tensor(reduction.axis_reduction("max", "max", self._value, axis, keepdims))

    def min(self, axis: reduction.Axis = None, keepdims: bool = False) -> Tensor:
        """The smallest element over axes."""
        return Tensor(reduction.axis_reduction("min", "min", self._value, axis, keepdims))

    def __getitem__(self, index: Any) -> Tensor:
        items = index if isinstance(index, tuple) else (index,)
        value = self._value
        if items and isinstance(items[0], Operand):
            value = row_of(value, items[0])
            items = items[1:]
        for item in items:
            if isinstance(item, Operand):
                raise fail("only the first axis can be indexed by a field of a node; transpose the tensor first.")
        return self._view(indexing.index_value(value, items) if items else value)

    def __len__(self) -> int:
        if not self.shape:
            raise fail("len() of a scalar tensor.")
        if asked_by_user():
            note_shape(self._value)
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if not self.shape:
            raise fail("iteration over a scalar tensor; only tensors with at least one axis can be iterated.")
        return (self[i] for i in range(self.shape[0]))

    def __lt__(self, other: Any) -> Tensor:
        return Tensor(pointwise.comparison("lt", self._value, value_of(other)))

    def __le__(self, other: Any) -> Tensor:
        return Tensor(pointwise.comparison("le", self._value, value_of(other)))

    def __gt__(self, other: Any) -> Tensor:
        return Tensor(pointwise.comparison("gt", self._value, value_of(other)))

    def __ge__(self, other: Any) -> Tensor:
        return Tensor(pointwise.comparison("ge", self._value, value_of(other)))

    def __eq__(self, other: object) -> Tensor:  # type: ignore[override]
        return Tensor(pointwise.comparison("eq", self._value, value_of(other)))

    def __ne__(self, other: object) -> Tensor:  # type: ignore[override]
        return Tensor(pointwise.comparison("ne", self._value, value_of(other)))

    __hash__ = object.__hash__

    def __and__(self, other: Any) -> Tensor:
        return Tensor(pointwise.logical("and", self._value, value_of(other)))

    def __or__(self, other: Any) -> Tensor:
        return Tensor(pointwise.logical("or", self._value, value_of(other)))

    def __invert__(self) -> Tensor:
        return Tensor(pointwise.negate(self._value))

    def __bool__(self) -> NoReturn:
        call = running_call()
        if call is not None and isinstance(call.func, ast.Name) and call.func.id in ("max", "min"):
            raise beyond(f"{call.func.id}() of computed values. Call cortex.{call.func.id}imum(x, y).")
        raise self._computed("decide what the model does", "Choose between values with cortex.where(cond, x, y)")

    def __int__(self) -> NoReturn:
        raise self._computed("become a Python int", "Keep it a tensor; choose between values with cortex.where")

    def __float__(self) -> NoReturn:
        function = math_function()
        if function is not None:
            raise foreign("math", function)
        raise self._computed("become a Python float", "Keep it a tensor; numbers and tensors can be mixed freely")

    def __index__(self) -> NoReturn:
        raise self._computed("be a Python index or a loop bound", "Index with a field of the node: w.emb[node.word]")

    def __contains__(self, item: object) -> NoReturn:
        raise self._computed("be searched with `in`", "Compare elementwise and choose with cortex.where(cond, x, y)")

    def __array__(self, *_: object, **__: object) -> NoReturn:
        raise self._computed("become a NumPy array", "Use the functions of cortex (cortex.tanh, cortex.concat, ...)")

    def _computed(self, wish: str, remedy: str) -> Exception:
        return fail(
            f"a computed value cannot {wish}: a model is compiled before any value is known, so control flow may "
            f"depend only on the structure (node.is_leaf, node.left is None, node.op == ...). {remedy}."
        )


def _is_operand(x: Any) -> bool:
    return isinstance(x, Operand)


def changes(what: str) -> str:
    """The refusal of a change in place of something that others see."""
    return (
        f"{what} is changed in place here, for all that hold it. Make another one: write x = x + y instead of x += y."
    )


def refuse_unfit(value: Value, shape: tuple[int, ...], dtype: DType) -> None:
    """Refuse elements that an array does not take in place, as NumPy does."""
    if value.shape != shape:
        raise fail(f"a tensor of shape {shape} is changed in place to shape {value.shape}. Write x = x + y.")
    if value.dtype != dtype:
        raise fail(f"a tensor of {dtype} is changed in place to {value.dtype}. Write x = x + y.")


def written(found: Tensor, target: Any) -> Any:
    """`np.add(x, y, out=target)`, and `array += tensor`: the array may only be a local one that nobody reads again."""
    if isinstance(target, Tensor):
        target._cortex_assign(found._cortex_value())
        return target
    if not isinstance(target, np.ndarray) or target.dtype.kind != "f":
        raise fail(f"a {getattr(target, 'dtype', type(target).__name__)} is changed in place to a tensor.")
    refuse_unfit(found._cortex_value(), target.shape, "f32")
    frame = user_frame()
    if target.base is not None or (frame is not None and _is_held(frame, target)):
        raise fail(changes("an array that the model holds"))
    builder().overwritten[id(target)] = target
    return found


def refuse_overwritten(x: Any) -> None:
    """Refuse an array that was changed in place by another name, where that made another tensor."""
    if id(x) in builder().overwritten:
        raise fail(
            "an array is read here that was changed in place before, under another name. Make another one there: write "
            "x = x + y instead of x += y."
        )


def _is_held(frame: FrameType, x: Any) -> bool:
    """Does the code have it from outside: a global name, an attribute of one, a variable around it, a default?"""
    outer = [frame.f_locals.get(name) for name in frame.f_code.co_freevars]
    return any(x is held for held in (*outer, *chain.from_iterable(map(_parts, frame.f_globals.values()))))


def _parts(held: Any) -> Iterator[Any]:
    """It, its attributes and those of its class, and the defaults of functions."""
    yield held
    if isinstance(held, ModuleType):
        return
    kinds = held.__mro__ if isinstance(held, type) else (held, *type(held).__mro__)
    for x in (held, *(x for kind in kinds for x in dict(getattr(kind, "__dict__", {})).values())):
        yield x
        if isinstance(x, FunctionType):
            yield from x.__defaults__ or ()


def _in_place(name: str) -> Any:
    """`x += y`, which changes the tensor for all that have it; a number is another one then, as Python says."""

    def operator(self: Tensor, other: Any) -> Any:
        if not self._held.shape:
            return NotImplemented
        self._cortex_assign(getattr(self, f"__{name}__")(other)._cortex_value())
        return self

    return operator


IN_PLACE = ("add", "sub", "mul", "truediv", "matmul", "pow", "and", "or")
for _name in IN_PLACE:
    setattr(Tensor, f"__i{_name}__", _in_place(_name))


def value_of(x: Any) -> Value:
    """Anything a tensor can be computed from, as a value of the kind that is being traced."""
    match x:
        case Operand():
            return x._cortex_value()
        case Count() if x.is_periodic:
            return value_of(x.as_field())
        case bool() | int() | float() | np.generic():
            return pointwise.fill(float(x))
        case np.ndarray() if x.ndim == 0:
            return pointwise.fill(float(x))
        case None:
            raise fail(
                "None is used as a tensor here. Where an attribute of the node may be None, test `is None` first."
            )
        case list() | tuple():
            raise fail(
                f"a Python {type(x).__name__} is used as a tensor here. Join tensors with cortex.concat or "
                "cortex.stack, and write constants as np.array([...])."
            )
    if hasattr(x, "_cortex_explain"):
        raise fail(x._cortex_explain())
    if hasattr(x, "__array__") or hasattr(x, "detach"):
        b = builder()
        refuse_overwritten(x)
        name = b.knowledge.weights.constant(x)
        return b.emit(Param(name), b.knowledge.weights.shape(name))
    raise fail(f"a {type(x).__name__} is used as a tensor here; tensors, numbers and NumPy arrays are accepted.")


def index_of(x: Operand) -> Value:
    """An index into a table: an integer field of a node."""
    index = getattr(x, "_cortex_index", None)
    return value_of(x) if index is None else index()


def row_of(table: Value, index: Operand) -> Value:
    """`table[index]`."""
    row = getattr(index, "_cortex_row", None)
    return indexing.lookup(table, index_of(index)) if row is None else row(table)


def _flat(sizes: tuple[Any, ...]) -> tuple[int, ...]:
    """Both `f(2, 3)` and `f((2, 3))`."""
    return tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], tuple | list) else sizes
