"""From words to the integers that index an embedding table."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
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


class Vocabulary(dict[str, int]):
    """The ids of the words that occur in `words`: the most frequent first, equally frequent ones as they come.

    `size` keeps that many ids at most, `unknown` counted; words that occur fewer than `at_least` times are left out.
    The id of a word that is not there is 0, that of `unknown`; with `unknown=None` it is an error to look it up. An
    embedding table has `len(vocabulary)` rows, and `list(vocabulary)` is all there is to keep in a file.
    """

    def __init__(
        self, words: Iterable[str], *, size: int | None = None, at_least: int = 1, unknown: str | None = "<unk>"
    ) -> None:
        if size is not None and size < 1:
            raise StructureError(f"Vocabulary(size={size}): it needs at least one entry; give a positive size")
        kept = [] if unknown is None else [unknown]
        kept += [word for word, count in Counter(words).most_common() if count >= at_least and word != unknown]
        super().__init__({word: i for i, word in enumerate(kept[:size])})
        self._has_unknown = unknown is not None
        if not self:
            raise StructureError("Vocabulary(words): there are no words; give some, or a name for unknown ones")

    def __missing__(self, word: str) -> int:
        if self._has_unknown:
            return 0
        raise not_in(self, word)


def not_in(words: Mapping[str, int], word: str) -> StructureError:
    """What to say of a word that a vocabulary lacks."""
    return StructureError(
        f"looking up {word!r}: it is not in the vocabulary of {len(words)} words; "
        "add it, or pass words=lambda word: vocabulary.get(word, 0)"
    )


def word_ids(words: Words | None) -> Callable[[str], int]:
    """What an adapter calls for each word: `words` itself, a lookup that refuses unknown words, or a hash."""
    if words is None:
        return hashed()
    if isinstance(words, Vocabulary):
        return words.__getitem__
    if not isinstance(words, Mapping):
        return words
    table = words

    def word_id(word: str) -> int:
        try:
            return table[word]
        except KeyError:
            raise not_in(table, word) from None

    return word_id
