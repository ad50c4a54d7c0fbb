"""What a C program sees of a model: the members of its two structures and the names of constants."""

from __future__ import annotations

from dataclasses import dataclass

from cortex.package.columns import Column, columns
from cortex.package.names import Names
from cortex.ra.ir import Model, TensorType


@dataclass(frozen=True)
class ColumnMember:
    """The members for a column: its values, unless only its presence matters, and which nodes have one."""

    column: Column
    values: str | None
    present: str | None
    codes: tuple[str, ...]  # names of the constants, in the order of the column's values


@dataclass(frozen=True)
class ListMember:
    """The members for a list relation."""

    name: str
    pointer: str
    index: str
    edges: str


@dataclass(frozen=True)
class StateMember:
    """The members for a state: at the roots, and at all nodes."""

    name: str
    type: TensorType
    roots: str
    nodes: str


@dataclass(frozen=True)
class Interface:
    """The C names of a model whose functions begin with `prefix`."""

    prefix: str
    slots: tuple[tuple[str, str], ...]
    lists: tuple[ListMember, ...]
    columns: tuple[ColumnMember, ...]
    states: tuple[StateMember, ...]

    @staticmethod
    def of(m: Model, prefix: str) -> Interface:
        """The interface of `m`."""
        members, constants = Names("num_nodes", "num_roots", "roots"), Names()
        slots = tuple((s, members.fresh(s)) for s in m.slots)
        lists = tuple(
            ListMember(r, members.fresh(r, "pointer"), members.fresh(r, "index"), members.fresh(r, "edges"))
            for r in m.lists
        )
        results = Names("room", "num_roots")
        return Interface(
            prefix,
            slots,
            lists,
            tuple(_column(c, prefix, members, constants) for c in columns(m)),
            tuple(
                StateMember(s.name, s.type, results.fresh(_state(s.name)), results.fresh(_state(s.name), "nodes"))
                for s in m.outputs
            ),
        )


def _column(c: Column, prefix: str, members: Names, constants: Names) -> ColumnMember:
    name = f"{c.name}_length" if c.what == "lengths" else c.name
    values = None if c.what == "presence" else members.fresh(name)
    present = members.fresh(c.name, "present") if c.nullable or c.what == "presence" else None
    codes = tuple(constants.fresh(prefix, c.name, str(v)).upper() for v in c.values)
    return ColumnMember(c, values, present, codes)


def _state(name: str) -> str:
    """States without names are called "0", "1", ..."""
    return f"state_{name}" if name.isdigit() else name
