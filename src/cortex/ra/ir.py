"""RA: the recursive IR. A model is, for each kind of node, an expression graph from fields, parameters and
child states to states.

    Model  = name, params, fields, slots, lists, states, kinds, derived, tables, batching, dedup, inputs_first, finish,
             positions, gathers, unordered
    Kind   = name, guard, lets, results, own_group, variant_of, inlined, collects, rows
    Let    = name, op, type, over
    Op     = Param | Field | State | Arity | Fill                              leaves
           | Unary | Binary | Where | Cast                                     pointwise, NumPy broadcasting
           | Contract | Reduce | OverChildren                                  sums and other reductions
           | Concat | Slice | Reshape | Transpose | Broadcast | Lookup         data movement
    Hop    = Slot | Item | Each                                                one step down the structure
    Test   = IsLeaf | IsAboveLeaves                                            what a guard asks
           | IsNone | Length | HasLength | Counts | Equals | Compares | Value

The graph of a kind is a list of lets in an order in which every operand precedes its use; operands are names.
A let is *per node* (`over` is None) or *per edge* of one list relation (`over` names it): then it has one
value for each child in that list, and `Each` stands for that child. A per-edge let may read per-node lets;
only `OverChildren` turns per-edge values into a per-node one.
"""

from __future__ import annotations

from math import copysign
from typing import Any, Literal, TypeAlias

from cortex.ir.node import Node, node, span_field
from cortex.ir.source import Span
from cortex.ra.structure import POSITION as POSITION
from cortex.ra.structure import Collect as Collect
from cortex.ra.structure import Each as Each
from cortex.ra.structure import Gather as Gather
from cortex.ra.structure import Hop as Hop
from cortex.ra.structure import Item as Item
from cortex.ra.structure import Positions as Positions
from cortex.ra.structure import Rows as Rows
from cortex.ra.structure import Slot as Slot

DType = Literal["f32", "i64", "bool"]


@node
class TensorType(Node):
    """Shape and element type. Shapes are constants: only the structure is dynamic."""

    shape: tuple[int, ...]
    dtype: DType = "f32"


@node
class Param(Node):
    """A parameter tensor."""

    name: str


@node
class Field(Node):
    """Field `name` of the node reached by `path` from this one (the node itself for an empty path)."""

    name: str
    path: tuple[Hop, ...] = ()


@node
class State(Node):
    """State `name` of the node reached by `path`, which is empty only in a `Finish`."""

    name: str
    path: tuple[Hop, ...]


@node
class Arity(Node):
    """The number of children in the list relation `name`, as an f32 scalar."""

    name: str


@node
class Fill(Node):
    """A constant tensor: `value` everywhere. 0.0 and -0.0 are different constants."""

    value: float
    shape: tuple[int, ...]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Fill) or (self.value, self.shape) != (other.value, other.shape):
            return False
        return self.value != 0 or copysign(1.0, self.value) == copysign(1.0, other.value)

    def __hash__(self) -> int:
        return hash((self.value, self.shape))


@node
class Unary(Node):
    """A pointwise function of one operand."""

    fn: Literal["neg", "abs", "exp", "log", "sqrt", "tanh", "sigmoid"]
    x: str


@node
class Binary(Node):
    """A pointwise function of two operands, broadcast as in NumPy. Comparisons give bool."""

    fn: Literal["add", "sub", "mul", "div", "min", "max", "lt", "le", "gt", "ge", "eq", "ne", "and", "or"]
    x: str
    y: str


@node
class Where(Node):
    """`x` where `cond` (bool), else `y`; all three broadcast."""

    cond: str
    x: str
    y: str


@node
class Cast(Node):
    """`x` as another element type."""

    x: str
    dtype: DType


@node
class Contract(Node):
    """Sum of products of two operands in einsum notation: "jk,k->j". No letter repeats within one term.

    Every letter of the output appears in an operand. Letters missing from the output are summed over.
    """

    spec: str
    x: str
    y: str


@node
class Reduce(Node):
    """Reduce `x` over `axes` (non-negative, increasing; the axes are removed)."""

    fn: Literal["add", "max", "min"]
    x: str
    axes: tuple[int, ...]


@node
class OverChildren(Node):
    """Reduce the per-edge value `x` over the children in the list relation `name`, in order; 0 over none."""

    fn: Literal["add", "max", "min"]
    x: str
    name: str


@node
class Concat(Node):
    """Operands one after the other along `axis`."""

    xs: tuple[str, ...]
    axis: int


@node
class Slice(Node):
    """x[start_0 : stop_0 : step_0, ...], one (start, stop, step) per axis, 0 <= start <= stop, step >= 1."""

    x: str
    ranges: tuple[tuple[int, int, int], ...]


@node
class Reshape(Node):
    """The elements of `x`, row-major, in another shape."""

    x: str
    shape: tuple[int, ...]


@node
class Transpose(Node):
    """Axis i of the result is axis perm[i] of `x`."""

    x: str
    perm: tuple[int, ...]


@node
class Broadcast(Node):
    """`x` repeated to `shape` by NumPy's rules."""

    x: str
    shape: tuple[int, ...]


@node
class Lookup(Node):
    """Row `index` (an i64 scalar) of `table`, along its first axis. The linearizer checks the range."""

    table: str
    index: str


Op: TypeAlias = (
    "Param | Field | State | Arity | Fill | Unary | Binary | Where | Cast | Contract | Reduce | OverChildren"
    " | Concat | Slice | Reshape | Transpose | Broadcast | Lookup"
)


@node
class Let(Node):
    """Name the value of `op`."""

    name: str
    op: Op
    type: TensorType
    over: str | None = None
    span: Span | None = span_field()


@node
class IsLeaf(Node):
    """Has the node no child in any relation of the model?"""

    path: tuple[Hop, ...] = ()


@node
class IsAboveLeaves(Node):
    """Has the node children, and are all of them leaves? No model asks; steps split kinds by it."""

    path: tuple[Hop, ...] = ()


@node
class IsNone(Node):
    """Is the attribute `name` None, or absent?"""

    name: str
    path: tuple[Hop, ...] = ()


@node
class Length(Node):
    """How many children has the list relation `name`? (an int)"""

    name: str
    path: tuple[Hop, ...] = ()


@node
class HasLength(Node):
    """Has the list relation `name` exactly `count` children?"""

    name: str
    count: int
    path: tuple[Hop, ...] = ()


@node
class Counts(Node):
    """Is the attribute `name` the number of children in the list relation `relation`?"""

    name: str
    relation: str
    path: tuple[Hop, ...] = ()


@node
class Equals(Node):
    """Does the attribute `name` equal `value`? (a str, int, float, bool or None)"""

    name: str
    value: str | int | float | bool | None
    path: tuple[Hop, ...] = ()


Order: TypeAlias = Literal["lt", "le", "gt", "ge"]


@node
class Compares(Node):
    """Is the attribute `name`, a number, less than `bound` ("lt"), at most ("le"), more ("gt") or at least that ("ge")?

    A NaN is neither; no `bound` is one.
    """

    name: str
    fn: Order
    bound: int | float
    path: tuple[Hop, ...] = ()


@node
class Value(Node):
    """The value of the attribute `name`, a str, int, float or bool."""

    name: str
    path: tuple[Hop, ...] = ()


Test: TypeAlias = "IsLeaf | IsAboveLeaves | IsNone | Length | HasLength | Counts | Equals | Compares | Value"


def answer_key(answer: Any) -> tuple[Any, ...]:
    """What answers are told apart by: the class, the value, and that a zero is negative."""
    if type(answer) is float and answer == 0 and copysign(1, answer) < 0:
        return float, answer, "negative"
    return type(answer), answer


@node
class Fact(Node):
    """`test` answers `answer`.

    Facts are equal where no model can tell their answers apart: 1, 1.0 and True differ, and so do 0.0 and -0.0.
    """

    test: Test
    answer: bool | int | float | str | None

    @property
    def key(self) -> tuple[Any, ...]:
        """What the answer is told from others by."""
        return answer_key(self.answer)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fact) and self.key == other.key and self.test == other.test

    def __hash__(self) -> int:
        return hash((self.test, self.key))


@node
class Inlined(Node):
    """The node at the end of `path`, of kind `kind`, whose states the node at its start computes.

    `results[i]` is its state i. The nodes along the path are inlined too.
    """

    path: tuple[Slot | Item, ...]
    kind: str
    results: tuple[str, ...]


@node
class Kind(Node):
    """The nodes whose facts agree with `guard`, and how their states are computed.

    The guard lists the questions in the order in which the model's control flow asked them; the guards of all
    kinds of a model form a decision tree, so at most one kind fits a node. `results[i]` names the let that is
    state i. Kinds with `own_group` are run in groups of their own; all others share groups, in which every node's
    kind is asked.

    A kind that is a variant of another takes some of its nodes, chosen by heights when a request is linearized (see
    lower/linear_form.py). With `inlined` nodes, it computes their states too. Without, it computes nothing: its
    nodes are those that others inline.
    """

    name: str
    guard: tuple[Fact, ...]
    lets: tuple[Let, ...]
    results: tuple[str, ...]
    own_group: bool = True
    variant_of: str = ""
    inlined: tuple[Inlined, ...] = ()
    collects: tuple[Collect, ...] = ()
    rows: tuple[Rows, ...] = ()

    @property
    def of_position(self) -> str:
        """The routine whose positions it is for, or the name of what owners compute for these; "" for other kinds."""
        first = self.guard[0] if self.guard else None
        return str(first.answer) if first is not None and first.test == Value(POSITION) else ""

    @property
    def is_within(self) -> bool:
        """Are its nodes computed by others, above them?"""
        return bool(self.variant_of) and not self.inlined


@node
class ParamDecl(Node):
    """A parameter of the model, given by the user or derived.

    `is_finite` promises that no element is infinite or NaN, so that 0 * x is 0.
    """

    name: str
    type: TensorType
    is_finite: bool = True


@node
class FieldDecl(Node):
    """A field read from nodes: an i64 scalar or an f32 tensor.

    `limit` bounds an i64 field that indexes tables: 0 <= value < limit.
    """

    name: str
    type: TensorType
    limit: int | None = None


@node
class StateDecl(Node):
    """A state every node has."""

    name: str
    type: TensorType


@node
class Derived(Node):
    """A parameter computed at load time from other parameters: lets over `Param`s only."""

    name: str
    lets: tuple[Let, ...]
    result: str


@node
class Table(Node):
    """Parameters computed by running `kind` once for every value of the integer field `field`.

    Row v of parameter params[i] is result i for a node whose field is v, computed before it is first read; other rows
    may never be. `kind` reads nothing else from nodes; it is a kind of the model, or the part of one that a table can
    hold.
    """

    kind: Kind
    field: str
    params: tuple[str, ...]


@node
class Finish(Node):
    """How the states that users see follow from the states of the recursion, at every node, once all are known.

    The lets are per node and read parameters and `State(name, ())`: a state of the recursion at the node itself.
    A state of the recursion that users see too has the same name in both and is passed on as it is.
    """

    states: tuple[StateDecl, ...]
    lets: tuple[Let, ...]
    results: tuple[str, ...]


Batching = Literal["height", "depth", "agenda", "none"]


@node
class Model(Node):
    """A recursive model: what it reads from nodes, which relations lead to children, one body per kind.

    `batching` says which nodes run together (see lower/linear_form.py), `dedup` whether equal subtrees of a request
    are one, `inputs_first` whether products that need no child's state are computed for all nodes before the recursion;
    none of them changes what the states are.
    `trees_only` says that a node may be below one other node only, as callers change what is stored there.
    `states` are those of the recursion; users see them, or those of `finish` where there is one.
    `unordered` are relations that lead to nodes of any group, so that no state may be read through them.
    """

    name: str
    params: tuple[ParamDecl, ...]
    fields: tuple[FieldDecl, ...]
    slots: tuple[str, ...]
    lists: tuple[str, ...]
    states: tuple[StateDecl, ...]
    kinds: tuple[Kind, ...]
    derived: tuple[Derived, ...] = ()
    tables: tuple[Table, ...] = ()
    batching: Batching = "height"
    dedup: bool = False
    inputs_first: bool = True
    trees_only: bool = False
    finish: Finish | None = None
    positions: tuple[Positions, ...] = ()
    gathers: tuple[Gather, ...] = ()
    unordered: tuple[str, ...] = ()

    @property
    def outputs(self) -> tuple[StateDecl, ...]:
        """The states that users see."""
        return self.states if self.finish is None else self.finish.states
