"""Grids as graphs: each cell depends on its left and its upper neighbour."""

from __future__ import annotations

from collections.abc import Sequence

from cortex.errors import StructureError
from cortex.structures.tree import Node


def grid(rows: int, columns: int, words: Sequence[int]) -> Node:
    """The lower right cell of a grid whose words are given row by row; `children` are (left, upper), where present."""
    if rows < 1 or columns < 1 or len(words) != rows * columns:
        raise StructureError(
            f"grid({rows}, {columns}, {len(words)} words): rows and columns must be positive "
            f"and there must be rows * columns words"
        )
    above: list[Node] = []
    for i in range(rows):
        row: list[Node] = []
        for j in range(columns):
            neighbours = (row[j - 1 : j]) + (above[j : j + 1])
            row.append(Node(neighbours, words[i * columns + j]))
        above = row
    return above[-1]
