"""Places: the rows a loop nest runs over, and how a row names its node.

    NodesOfKind    all nodes of a kind, whatever their height; for work that reads no child states
    NodesOfGroup   the nodes of one group
    AllNodes       every node of the request; for what is left to do once the recursion is over
    EdgesOfGroup   the edges of one list relation that start at the nodes of one group

In a group that several kinds share, `of` is the kind whose nodes are meant, and each row is asked for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from cortex.ir.scalar import Binary, Expr, Index, Int, Var
from cortex.lower.linear_form import NUM_NODES

GROUP = Var("g")


def group_end() -> Expr:
    """One past the last node of the current group."""
    return Binary("add", Index("group_start", (GROUP,)), Index("group_len", (GROUP,)))


def _is_of(kind: int | None, node: Expr) -> Expr | None:
    return None if kind is None else Binary("eq", Index("node_kind", (node,)), Int(kind))


@dataclass(frozen=True)
class NodesOfKind:
    """Rows i in kind_start(kind)..kind_start(kind + 1); row i is the node kind_node(i)."""

    kind: int
    letter = "i"
    relation = None

    def bounds(self) -> tuple[Expr, Expr]:
        """The nodes of the kind, by their place in `kind_node`."""
        return Index("kind_start", (Int(self.kind),)), Index("kind_start", (Int(self.kind + 1),))

    def node(self, row: Expr) -> Expr:
        """The node at a row."""
        return Index("kind_node", (row,))

    def asked(self, row: Expr) -> Expr | None:
        """What a row must be asked, if anything."""
        return None


@dataclass(frozen=True)
class NodesOfGroup:
    """Rows n in group_start(g)..group_start(g) + group_len(g); row n is the node n."""

    of: int | None = None
    letter = "n"
    relation = None

    def bounds(self) -> tuple[Expr, Expr]:
        """The ids of the group."""
        return Index("group_start", (GROUP,)), group_end()

    def node(self, row: Expr) -> Expr:
        """The node at a row: the row itself."""
        return row

    def asked(self, row: Expr) -> Expr | None:
        """What a row must be asked, if anything."""
        return _is_of(self.of, self.node(row))


@dataclass(frozen=True)
class AllNodes:
    """Rows n in 0..num_nodes; row n is the node n."""

    letter = "n"
    relation = None

    def bounds(self) -> tuple[Expr, Expr]:
        """First row, and one past the last."""
        return Int(0), NUM_NODES

    def node(self, row: Expr) -> Expr:
        """The node of a row."""
        return row

    def asked(self, row: Expr) -> Expr | None:
        """What a row must be asked, if anything."""
        return None


@dataclass(frozen=True)
class EdgesOfGroup:
    """Rows e in the edges of the group's nodes; row e belongs to the node relation_parent(e)."""

    relation: str
    of: int | None = None
    letter = "e"

    def bounds(self) -> tuple[Expr, Expr]:
        """The edges of the group."""
        ptr = f"{self.relation}_ptr"
        return Index(ptr, (Index("group_start", (GROUP,)),)), Index(ptr, (group_end(),))

    def node(self, row: Expr) -> Expr:
        """The node an edge starts at."""
        return Index(f"{self.relation}_parent", (row,))

    def asked(self, row: Expr) -> Expr | None:
        """What a row must be asked, if anything."""
        return _is_of(self.of, self.node(row))


Place: TypeAlias = NodesOfKind | NodesOfGroup | AllNodes | EdgesOfGroup
