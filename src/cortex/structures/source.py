"""Text given to an adapter, and the place in it that an error names."""

from __future__ import annotations

from pathlib import Path

from cortex.errors import StructureError, printable

MOST_SHOWN = 200


def shown(x: object) -> str:
    """A value in a message: not more than a line or two of it, however large and deep it is."""
    try:
        text = repr(x)
    except RecursionError:
        return f"a {type(x).__name__} that is nested too deeply to be shown"
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."


def text_of(source: str | Path, asked: str) -> tuple[str, str]:
    """(text, name): a Path is read as UTF-8, a str is the text itself."""
    if isinstance(source, str):
        return source, "text"
    try:
        return source.read_text(encoding="utf-8"), printable(source.name)
    except OSError as error:
        raise StructureError(f"{asked}({str(source)!r}): {error.strerror}; give a readable file or its text") from None
    except UnicodeDecodeError as error:
        raise StructureError(
            f"{asked}({str(source)!r}): byte {error.start} is not UTF-8; give a UTF-8 file or decoded text"
        ) from None
    except ValueError as error:  # a NUL in the name
        raise StructureError(f"{asked}({str(source)!r}): {error}; give a readable file or its text") from None


def place(text: str, position: int, name: str) -> str:
    """`name, line L, column C` of a character position, both counted from 1, and the line with a caret."""
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    line = text[start : end if end >= 0 else len(text)]
    column = position - start
    first = max(0, column - 60)
    some = "".join(c if c.isprintable() or c == "\t" else "\ufffd" for c in line[first : first + 110])
    number = text.count("\n", 0, position) + 1
    return f"  {name}, line {number}, column {column + 1}:\n    {some}\n    {' ' * (column - first)}^"
