"""Pieces of C text. Tables are compound literals, which at file scope live as long as the program."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any


def array(kind: str, items: Sequence[str | int]) -> str:
    """An array of constants; none at all is NULL."""
    return f"(const {kind}[]){{{', '.join(map(str, items))}}}" if items else "NULL"


def table(kind: str, name: str, items: Sequence[str]) -> str:
    """The definition of a named array, an item per line; one without items has one that nobody reads."""
    lines = ",\n".join(f"    {item}" for item in items) or "    {0}"
    return f"static const {kind} {name}[] = {{\n{lines},\n}};\n"


def string(text: str | None) -> str:
    """A string of printable ASCII."""
    if text is None:
        return "NULL"
    plain = "".join(c if " " <= c <= "~" else "?" for c in text)
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"').replace("??", "?\\?") + '"'


def path_text(path: Iterable[tuple[Any, ...]], slots: list[str], lists: list[str]) -> str:
    """A path as `runtime/linearize.py` has it: ("slot", name), ("item", name, index), ("each", name)."""
    hops = [_hop(hop, slots, lists) for hop in path]
    return f"{{{len(hops)}, {array('cortex_hop', hops)}}}"


def _hop(hop: tuple[Any, ...], slots: list[str], lists: list[str]) -> str:
    match hop:
        case ("slot", name):
            return f"{{CORTEX_SLOT, {slots.index(name)}, 0}}"
        case ("item", name, index):
            return f"{{CORTEX_ITEM, {lists.index(name)}, {index}}}"
        case (_, name):
            return f"{{CORTEX_EACH, {lists.index(name)}, 0}}"
        case _:
            raise AssertionError(hop)


def comment(text: str) -> str:
    """Text inside a comment, which it cannot end."""
    return "".join(c if " " <= c <= "~" else "?" for c in text).replace("*/", "* /")
