"""Identifiers of C for the names of a program, which may be any text."""

from __future__ import annotations

import re

_KEYWORDS = """
auto bool break case char const continue default do double else enum extern false float for goto if inline int long
register restrict return short signed sizeof static struct switch true typedef union unsigned void volatile while
half uint ulong uchar ushort size_t kernel global local constant private generic read_only write_only read_write
and and_eq asm bitand bitor catch class compl const_cast delete dynamic_cast explicit export friend mutable namespace
new not not_eq operator or or_eq protected public reinterpret_cast static_cast template this throw try typeid typename
using virtual wchar_t xor xor_eq
"""
_USED = """
barrier mem_fence atomic_add atomic_inc atomic_xchg grid_barrier maximum minimum scale fma fmaf fabs fabsf sqrt sqrtf
rint rintf log logf copysign copysignf min max abs as_float blockIdx threadIdx arrived group_memory GROUP GROUPS
ITEM_X ITEM_Y ITEMS_X ITEMS_Y SHARE INFINITY NAN NULL
"""
_TAKEN = frozenset((*_KEYWORDS.split(), *_USED.split()))


class Identifiers:
    """An identifier for each name: the name itself where that is one, and nobody has it.

    Variables and arrays are named apart from each other: a weight may be called as a loop is.
    """

    def __init__(self) -> None:
        self._given: dict[tuple[str, str], str] = {}
        self._used: set[str] = set(_TAKEN)

    def variable(self, name: str) -> str:
        """The identifier of a size, a loop variable or a let; always the same."""
        return self._identifier("variable", name)

    def array(self, name: str) -> str:
        """The identifier of a buffer or an index function; always the same."""
        return self._identifier("array", name)

    def function(self, name: str) -> str:
        """The identifier of a kernel; always the same."""
        return self._identifier("function", name)

    def _identifier(self, what: str, name: str) -> str:
        if (what, name) not in self._given:
            plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
            if not re.match(r"[A-Za-z]", plain):
                plain = f"v{plain}"
            identifier, number = plain, 0
            while identifier in self._used:
                number += 1
                identifier = f"{plain}_{number}"
            self._used.add(identifier)
            self._given[what, name] = identifier
        return self._given[what, name]
