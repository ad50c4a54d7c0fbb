"""A dictionary of the user's that has nothing for what a node holds."""

from __future__ import annotations


class MissingEntry(KeyError):
    """What Python raises, which the user's code may handle; else the structure is refused."""

    def __init__(self, key: object, table: str, read: str) -> None:
        super().__init__(key)
        self.said = missing_entry(key, table, read)


def missing_entry(key: object, table: str, read: str) -> str:
    """`read` is how the code gets the key: `node.word`."""
    return (
        f"{read} is {key!r}, which is not in the dictionary '{table}' that it is looked up in. Put it there, or write "
        f"{table}.get({read}, ...) with what unknown ones have"
    )
