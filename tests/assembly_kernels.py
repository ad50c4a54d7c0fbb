"""What the machine code of a function looks like where it matters: its loops over K, which multiply and add.

A register tile that does not fit into the registers is spilled to the stack inside its loop over K, and loses most
of its speed. Schedules are chosen so that this does not happen; here it is checked.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_LABEL = re.compile(r"^([.\w$\"]+):")
_JUMP = re.compile(r"^\s+(?:j\w+|b|b\.\w+|cbn?z\s+\w+,|tbn?z\s+\w+,\s*#\d+,)\s+(\.\w+)\s*$")
_MULTIPLY_ADD = re.compile(r"^(?:v?fn?m(?:add|sub|la|ls)\w*|vdpbf16ps|vpdp\w+|v?pmaddwd)$")
_ACTIVATION = re.compile(r"^v?f?(?:div|rndscale|round|frint|scalef)")
_COMMENT = re.compile(r"#\s.*|//.*")
_ADDRESS = re.compile(r"^movq\s+-?\d*\(%rsp\), %r\w+$")
_STACK = re.compile(r"\(%[re]sp\b|\[sp\b")
# Registers that point to the stack if the function says so, and are like any other if it does not.
_FRAMES = (
    (re.compile(r"^\s+movq\s+%rsp, %rbp$"), re.compile(r"\(%rbp\b")),
    (re.compile(r"^\s+(?:mov|add)\s+x29, sp\b"), re.compile(r"\[x29\b")),
)


@dataclass(frozen=True)
class Kernel:
    """An innermost loop with multiply-adds: its label, its instructions, and those that touch the stack."""

    label: str
    instructions: tuple[str, ...]
    multiply_adds: int
    spills: tuple[str, ...]


def kernels(assembly: str) -> tuple[Kernel, ...]:
    """The innermost loops that sum products, in the order of the text.

    Loops that evaluate activation functions have multiply-adds too, and are told by their divisions and roundings. A
    loop is the text from a label to the last jump back to it; LLVM lays loops out in one piece.
    """
    lines = [_COMMENT.sub("", line).rstrip() for line in assembly.splitlines()]
    labels = {m[1]: i for i, line in enumerate(lines) if (m := _LABEL.match(line))}
    ends: dict[str, int] = {}
    for i, line in enumerate(lines):
        if (m := _JUMP.match(line)) and labels.get(m[1], i) < i:
            ends[m[1]] = i
    loops = [(labels[name], end, name) for name, end in ends.items()]
    innermost = [x for x in loops if not any(y != x and x[0] <= y[0] and y[1] <= x[1] for y in loops)]
    functions = [0, *(i for name, i in labels.items() if not name.startswith("."))]
    found = (
        _kernel(name, lines[start : end + 1], lines[max(i for i in functions if i <= start) : start])
        for start, end, name in sorted(innermost)
    )
    return tuple(k for k in found if k.multiply_adds and not any(_ACTIVATION.match(i) for i in k.instructions))


def spills(assembly: str) -> tuple[str, ...]:
    """The instructions of all kernels that read or write the stack.

    An address that is read from it behind ten multiply-adds or more does not count: those take longer.
    """
    return tuple(line for k in kernels(assembly) for line in k.spills if not _is_hidden(k))


def _is_hidden(k: Kernel) -> bool:
    return len(k.spills) * 10 <= k.multiply_adds and all(_ADDRESS.match(line) for line in k.spills)


def _kernel(label: str, lines: list[str], before: list[str]) -> Kernel:
    """The loop of these lines, in a function that begins with the lines `before`."""
    instructions = tuple(line.strip() for line in lines if line.startswith(("\t", " ")) and line.strip()[:1] != ".")
    frames = [used for made, used in _FRAMES if any(made.match(line) for line in before)]
    on_stack = tuple(i for i in instructions if any(r.search(i) for r in (_STACK, *frames)))
    multiply_adds = sum(1 for i in instructions if _MULTIPLY_ADD.match(i.split()[0]))
    return Kernel(label, instructions, multiply_adds, on_stack)
