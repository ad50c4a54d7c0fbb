"""From words to the integers that index an embedding table."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import TypeAlias

from cortex.errors import StructureError

Words: TypeAlias = "Mapping[str, int] | Callable[[str], int]"

DEFAULT_SIZE = 20_000


def hashed(size: int = DEFAULT_SIZE) -> Callable[[str], int]:
    """A vocabulary that needs no file: CRC-32 of the word modulo `size`, the same in every process."""
    if size < 1:
        raise StructureError(f"hashed({size}): a vocabulary needs at least one entry; give a positive size")
    known: dict[str, int] = {}

    def word_id(word: str) -> int:
        found = known.get(word)
        if found is None:
            found = known[word] = zlib.crc32(word.encode("utf-8", "surrogatepass")) % size
        return found

    return word_id


def word_ids(words: Words | None) -> Callable[[str], int]:
    """What an adapter calls for each word: `words` itself, a lookup that refuses unknown words, or a hash."""
    if words is None:
        return hashed()
    if not isinstance(words, Mapping):
        return words
    table = words

    def word_id(word: str) -> int:
        try:
            return table[word]
        except KeyError:
            raise StructureError(
                f"looking up {word!r}: it is not in the vocabulary of {len(table)} words; "
                "add it, or pass words=lambda word: vocabulary.get(word, 0)"
            ) from None

    return word_id
