"""Names that C and C++ take."""

from __future__ import annotations

import re

_RESERVED = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl const constexpr const_cast
    continue decltype default delete do double dynamic_cast else enum explicit export extern false float for friend goto
    if inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public
    register reinterpret_cast restrict return short signed sizeof static static_assert static_cast struct switch
    template this thread_local throw true try typedef typeid typename typeof union unsigned using virtual void volatile
    wchar_t while xor xor_eq
    """
_KEYWORDS = frozenset(_RESERVED.split())


def identifier(text: str) -> str:
    """A name made of `text`: letters, digits and underscores, and no keyword."""
    name = re.sub(r"\W", "_", text, flags=re.ASCII).strip("_") or "x"
    if name[0].isdigit():
        name = f"n{name}"
    return f"{name}_" if name in _KEYWORDS else name


class Names:
    """Gives each thing a name of its own."""

    def __init__(self, *taken: str) -> None:
        self._taken = set(taken)

    def fresh(self, *wanted: str) -> str:
        """The identifier of the first text, followed by as much as it takes to be new."""
        name = identifier("_".join(wanted))
        number = 2
        while name in self._taken:
            name = f"{identifier('_'.join(wanted))}_{number}"
            number += 1
        self._taken.add(name)
        return name
