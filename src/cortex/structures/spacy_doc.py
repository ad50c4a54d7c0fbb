"""Dependency trees of spaCy as arrays: a tree for each sentence of a parsed `Doc`, or of a `Span` of one.

The names are those of the tokens of `read_conllu`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from cortex.errors import StructureError
from cortex.runtime.forest import Forest
from cortex.structures.columns import stacked
from cortex.structures.vocabulary import Words, word_ids


def from_spacy(
    doc: Any, *, words: Words | None = None, fields: Mapping[str, str | Callable[[Any], Any]] | None = None
) -> Forest:
    """The forest of the tokens of a `Doc` or a `Span`, in their order, with the fields word, form, upos and deprel.

    A token's children are its dependents, left to right. The roots are the tokens that are their own heads, one per
    sentence, and in a Span also those whose heads lie outside of it. `word` is the id that `words` gives the text (by
    default a hash). `fields` are more: for each of the model's names the attribute of a token (such as "lemma_" or
    "vector"), or a function of it.
    """
    whole = getattr(doc, "doc", doc)
    if len(whole) and not whole.has_annotation("DEP"):
        raise StructureError(
            f"from_spacy({type(doc).__name__} of {len(doc)} tokens): it has no dependency parse; run a pipeline with a "
            "parser, or make the Doc with heads= and deps="
        )
    first = 0 if doc is whole else doc.start
    table = whole.to_array(["HEAD", "ORTH", "POS", "DEP"])[first : first + len(doc)]
    tokens = np.arange(len(doc))
    head = tokens + table[:, 0].astype(np.int64)
    head[(head == tokens) | (head < 0) | (head >= len(doc))] = -1
    strings = whole.vocab.strings
    columns: dict[str, Any] = {
        name: [strings[i] for i in table[:, k].tolist()] for k, name in enumerate(("form", "upos", "deprel"), 1)
    }
    columns["word"] = list(map(word_ids(words), columns["form"]))
    for name, given in (fields or {}).items():
        columns[name] = stacked([getattr(t, given) if isinstance(given, str) else given(t) for t in doc])
    return Forest.from_parents(head, columns, names=doc)
