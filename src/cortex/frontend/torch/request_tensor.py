"""A tensor that is given to the module beside the structure: nodes take rows of it, or all use it as a whole.

By rows, it has any number of them: `inputs[node.idx]`. What is done to it before that is done to the row that is taken
(row_wise.py). As a whole, it is one tensor of a fixed shape, as a latent vector is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import torch
from torch.nn import functional as F  # noqa: N812 - its usual name
from torch.overrides import TorchFunctionMode

from cortex.errors import ModelError
from cortex.frontend.arity.told import Count
from cortex.frontend.builder import asked_by_user
from cortex.frontend.spans import fail
from cortex.frontend.standin import Attribute
from cortex.frontend.torch.calls import Row
from cortex.frontend.torch.mode import symbolic
from cortex.frontend.torch.number import Number
from cortex.frontend.torch.row_field import RowField
from cortex.frontend.torch.row_positions import (
    as_position,
    as_positions,
    is_full,
    only_row,
    place_of_rows,
    refuse_index,
)
from cortex.frontend.torch.row_wise import (
    Applied,
    Expression,
    Extent,
    RowCount,
    Rows,
    Tried,
    at_row,
    changed,
    changes_in_place,
    holds,
    names_in,
    parts,
    renamed,
    tried,
)  # fmt: skip
from cortex.frontend.torch.standins import tracing
from cortex.frontend.torch.steps import At, Steps
from cortex.frontend.torch.tensor import TorchTensor

if TYPE_CHECKING:
    from cortex.frontend.torch.tracing import TorchBuilder

FACTS = ("dim", "ndimension", "is_floating_point", "is_complex", "is_signed", "element_size", "get_device")
"""Methods that the shape and the element type tell."""
OF_TYPE = ("dtype", "device", "is_cuda", "requires_grad", "layout", "is_sparse", "is_leaf", "grad_fn", "is_meta")
NEW = ("new", "new_zeros", "new_ones", "new_full", "new_empty", "new_tensor")


NUMBER = "Give forward the number as an argument of its own."


class RowByRow(TorchFunctionMode):
    """Sees calls of torch with tensors of the request before anyone else does."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Row by row, where an argument is such a tensor."""
        kwargs = kwargs or {}
        if any(isinstance(x, RequestTensor) for x in parts((args, kwargs))):
            return of_request(function, args, kwargs)
        return function(*args, **kwargs)


def of_request(function: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """What a function gives some of whose arguments are tensors of the request."""
    if any(isinstance(x, RequestTensor) and x._cortex_is_whole for x in parts((args, kwargs))):
        args, kwargs = changed((args, kwargs), lambda x: _as_tensor(x) if _is_whole(x) else x)
        if not any(isinstance(x, RequestTensor) for x in parts((args, kwargs))):
            return function(*args, **kwargs)
    name = getattr(function, "__name__", "")
    taken = TAKES_ROWS.get(function)
    if taken is not None and (found := taken(*args, **kwargs)) is not NotImplemented:
        return found
    given = changed((args, kwargs), lambda x: x._cortex_expression if isinstance(x, RequestTensor) else x)
    tensors = [x for x in parts((args, kwargs)) if isinstance(x, RequestTensor)]
    extents = {id(x._cortex_expression): x._cortex_extent for x in tensors}
    result = tried(function, given[0], given[1], lambda x: extents.get(id(x)))
    if result is not None:
        return _results(result, lambda path: Applied(function, given[0], given[1], path))
    if changes_in_place(function, kwargs):
        raise fail(
            f"{name} changes a tensor that is given beside the structure in place. Compute a new one: x = x + 1, "
            "x = torch.where(mask, x, y)."
        )
    if any(isinstance(x, RowCount) for x in parts((args, kwargs))):
        _refuse_count()
    return _as_whole(tensors, name)


def _results(result: Tried, expression: Callable[[tuple[int, ...]], Expression], path: tuple[int, ...] = ()) -> Any:
    if isinstance(result, Extent):
        return RequestTensor(expression(path), result)
    assert result is not None
    return tuple(_results(each, expression, (*path, i)) for i, each in enumerate(result))


def _argument(b: TorchBuilder, name: str) -> str:
    """The argument of forward that a call has under this name."""
    if b.role.routine is None:
        return name
    call: Any = b.facts.oracle
    given = call.node.given[name]
    return next(str(each) for each, x in call.node.graph.head.given.items() if x is given)


def _is_whole(x: Any) -> bool:
    return isinstance(x, RequestTensor) and x._cortex_is_whole


def _as_tensor(x: RequestTensor) -> Any:
    return x._cortex_tensor()


BY_ROW = "each row of what it gives depends on more than that row and weights"
BY_CALL = "calls compute another one from it for the calls that they make"


def _as_whole(tensors: list[RequestTensor], what: str, why: str = BY_ROW) -> NoReturn:
    """Have tensors of a fixed shape as a whole from the next trace on, if they are; else refuse."""
    b = tracing()
    names = list(dict.fromkeys(name for x in tensors for name in names_in(x._cortex_expression)))
    arguments = [_argument(b, name) for name in names]
    b.model.signature.take_whole(arguments)
    told = " and ".join(f"'{name}'" for name in dict.fromkeys(arguments))
    raise fail(
        f"{what or 'this'} takes {told}, given beside the structure, as a whole: {why}, and the number of rows "
        "differs from request to request. Let nodes take their rows first, inputs[node.idx]; or compute that in torch "
        "before the call, and give the module the result."
    )


class RequestTensor:
    """The tensor, or what was computed from it row by row."""

    _cortex_is_of_request = True

    def __init__(self, expression: Expression, extent: Extent, is_whole: bool = False) -> None:
        self._cortex_expression = expression
        self._cortex_extent = extent
        self._cortex_is_whole = is_whole

    @classmethod
    def __torch_function__(cls, function: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
        """A function of the whole tensor is one of each row, where that is the same."""
        return of_request(function, args, kwargs or {})

    @property  # type: ignore[misc]  # object's can also be set
    def __class__(self) -> type:
        return torch.Tensor if asked_by_user() else type(self)

    def _cortex_passed(self) -> Any:
        """The tensor as a whole, where calls pass on what they compute from it."""
        return self._cortex_tensor("a recursive call", BY_CALL)

    @property
    def _cortex_key(self) -> tuple[Any, ...]:
        """What calls that are passed it know of it, by the place of the tensors that it is computed from."""
        if self._cortex_is_whole:
            return ("whole",)
        names = {name: f"#{i}" for i, name in enumerate(names_in(self._cortex_expression))}
        if holds(self._cortex_expression, lambda x: isinstance(x, TorchTensor)):
            _as_whole([self], "a recursive call")
        return (renamed(self._cortex_expression, names), self._cortex_extent.sizes, self._cortex_extent.dtype)

    def _cortex_inherits(self, parameter: str) -> list[tuple[str, str]]:
        """The tensors that a call gets whose argument it is: by which names, and which of the caller's they are."""
        names = names_in(self._cortex_expression)
        return [(inherited(parameter, i), name) for i, name in enumerate(names)]

    def _cortex_tensor(self, what: str = "this line", why: str = BY_ROW) -> Any:
        """The tensor as a whole."""
        if not self._cortex_is_whole:
            _as_whole([self], what, why)
        assert isinstance(self._cortex_expression, Rows)
        return symbolic(_related(Row(self._cortex_expression.name, is_whole=True), "whole"))

    def _cortex_at(self, position: int | Steps) -> Any:
        """The row at a position, constant or of the node, as a tensor of one row."""
        made: dict[str, Any] = {}

        def row(name: str) -> Any:
            if name not in made:
                made[name] = symbolic(_row(name, position)).unsqueeze(0)
            return made[name]

        return at_row(self._cortex_expression, row)

    def __getitem__(self, key: Any) -> Any:
        if self._cortex_is_whole:
            return self._cortex_tensor()[_constant_key(key)]
        items = list(key) if type(key) is tuple else [key]
        place = place_of_rows(items, self._cortex_extent)
        if place is None or is_full(items[place]):
            return of_request(torch.Tensor.__getitem__, (self, key), {})
        rows, item = self._cortex_rows(items[place])
        items[place] = item
        return rows[tuple(items)]

    def _cortex_rows(self, item: Any) -> tuple[Any, Any]:
        """The rows that an index takes, one after the other, and what takes the result from these."""
        axis = self._cortex_extent.axis
        if isinstance(item, slice):
            return self._cortex_at(only_row(item)), slice(None)
        position = as_position(item)
        if position is not None:
            return self._cortex_at(position), 0
        shape, positions = as_positions(item)
        rows = [self._cortex_at(each) for each in positions]
        order = torch.arange(len(rows)).reshape(shape)
        return (torch.cat(rows, axis) if rows else refuse_index(item)), order

    def size(self, dim: int | None = None) -> Any:
        """The sizes, or one of them; the number of rows is known by name only."""
        if self._cortex_is_whole:
            return self._cortex_tensor().size() if dim is None else self._cortex_tensor().size(dim)
        sizes = tuple(RowSize(self) if n is None else n for n in self._cortex_extent.sizes)
        return sizes if dim is None else sizes[dim]

    @property
    def shape(self) -> Any:
        """The sizes."""
        return self.size()

    def __len__(self) -> int:
        if not self._cortex_is_whole and self._cortex_extent.axis == 0:
            raise _refused("len()", NUMBER)
        return int(self.size(0))

    def __iter__(self) -> Iterator[Any]:
        if not self._cortex_is_whole and self._cortex_extent.axis == 0:
            raise _refused("a loop over the rows")
        return iter([self[i] for i in range(int(self.size(0)))])

    def __bool__(self) -> bool:
        raise _refused("the truth")

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("__", "_cortex_")):  # no names of the user's: asked by Python and by the front end
            raise AttributeError(name)
        if self._cortex_is_whole:
            return getattr(self._cortex_tensor(), name)
        found = getattr(torch.Tensor, name)
        if name in (*OF_TYPE, *NEW, *FACTS):
            with torch._C.DisableTorchFunction():
                like = torch.zeros(
                    [1 if n is None else n for n in self._cortex_extent.sizes], dtype=self._cortex_extent.dtype
                )
            return getattr(like, name)
        if name == "ndim":
            return len(self._cortex_extent.sizes)
        if callable(found):
            return partial(_method, found, self)
        return of_request(found.__get__, (self,), {})

    __hash__ = object.__hash__


def _method(function: Any, tensor: RequestTensor, *args: Any, **kwargs: Any) -> Any:
    return of_request(function, (tensor, *args), kwargs)


class RowSize(RowCount):
    """The number of rows, as sizes of other tensors have it: `x.view(x.size(0), -1)`."""

    __slots__ = ("_tensor",)

    def __init__(self, tensor: RequestTensor) -> None:
        self._tensor = tensor

    def __index__(self) -> int:
        raise _refused("the number of rows", NUMBER)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowCount) or _refuse_count()

    __hash__ = RowCount.__hash__


def _refuse_count(*_: Any) -> NoReturn:
    raise _refused("the number of rows", NUMBER)


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "radd", "rsub", "rmul", "rtruediv",
              "rfloordiv", "rmod", "neg", "lt", "le", "gt", "ge", "int", "float", "bool", "str", "format"):  # fmt: skip
    setattr(RowSize, f"__{_name}__", _refuse_count)


def inherited(parameter: str, number: int) -> str:
    """The name of a tensor that an argument of a call is computed from."""
    return f"{parameter}#{number}" if number else parameter


def passed_on(parameter: str, key: tuple[Any, ...], sample: Callable[[str], Any]) -> RequestTensor:
    """An argument of a call by what is known of it; `sample` gives tensors that it is computed from."""
    if key == ("whole",):
        return RequestTensor(Rows(parameter), Extent((), torch.float32), is_whole=True)
    expression, sizes, dtype = key
    names = {f"#{i}": inherited(parameter, i) for i in range(len(names_in(expression)))}
    is_leaf = isinstance(expression, Rows)
    extent = Extent.of(torch.as_tensor(sample(parameter))) if is_leaf else Extent(sizes, dtype, (0, 1))
    return RequestTensor(renamed(expression, names), extent)


# Rows of a node.


def _row(name: str, position: int | Steps) -> RowField:
    if isinstance(position, int):
        return _related(Row(name, number=position), str(position))
    b = tracing()
    b.model.signature.by_rows.add(_argument(b, name))
    return _related(Row(name, position), f"of_{b.accessors.name(position)}")


def _related(row: Row, what: str) -> RowField:
    b = tracing()
    b.model.need_calls()  # only calls have rows
    name = f"{row.name.replace('#', '_')}_{what}".replace("-", "minus_")
    while b.accessors.of_call(name) not in (None, row):
        name += "_"
    b.accessors.relate(name, row)
    return RowField(name, (At(name),))


def _constant_key(key: Any) -> Any:
    """An index of a tensor that is taken as a whole, which no node says."""
    if any(isinstance(x, Attribute | Number | Count) for x in parts(key)):
        raise fail(
            "a tensor that is given beside the structure is used as a whole, and nodes take rows of it too; one of "
            "both is accepted. Give the module two arguments, the tensor and what is computed from all of it in torch."
        )
    return key


# Functions that take rows.


def _narrow(x: Any, dim: int, start: Any, length: int) -> Any:
    return _along(x, dim, [start] if length == 1 else slice(start, start + length))


def _embedding(input: Any, weight: Any, *args: Any, **kwargs: Any) -> Any:
    takes = isinstance(weight, RequestTensor) and not isinstance(input, RequestTensor)
    return weight[input] if takes else NotImplemented


def _torch_embedding(weight: Any, indices: Any, *args: Any, **kwargs: Any) -> Any:
    return _embedding(indices, weight)


def _along(x: Any, dim: int, index: Any) -> Any:
    if not isinstance(x, RequestTensor) or x._cortex_is_whole:
        return NotImplemented
    axis = dim % len(x._cortex_extent.sizes)
    return x[(*(slice(None),) * axis, index)] if axis == x._cortex_extent.axis else NotImplemented


TAKES_ROWS: dict[Any, Callable[..., Any]] = {
    torch.select: _along, torch.Tensor.select: _along, torch.index_select: _along, torch.Tensor.index_select: _along,
    torch.narrow: _narrow, torch.Tensor.narrow: _narrow, F.embedding: _embedding, torch.embedding: _torch_embedding,
}  # fmt: skip


def _operator(name: str) -> Callable[..., Any]:
    function = getattr(torch.Tensor, name)

    def method(self: RequestTensor, *others: Any) -> Any:
        return of_request(function, (self, *others), {})

    method.__name__ = name
    return method


for _name in ("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "pow", "rpow", "matmul", "rmatmul",
              "floordiv", "rfloordiv", "mod", "rmod", "neg", "pos", "abs", "invert", "and", "or", "xor", "lt",
              "le", "gt", "ge", "eq", "ne", "setitem", "iadd", "isub", "imul", "itruediv"):  # fmt: skip
    setattr(RequestTensor, f"__{_name}__", _operator(f"__{_name}__"))


def _refused(what: str, remedy: str = "Take a node's row first: inputs[node.idx].") -> ModelError:
    return fail(
        f"{what} of a tensor that is given beside the structure: its number of rows differs from request to request. "
        f"{remedy}"
    )
