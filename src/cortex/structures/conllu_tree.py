"""Dependency trees of the `conllu` package (`TokenTree`), walked as they are: `fast(conllu.parse_tree(text))`.

The names are those of the tokens of `read_conllu`, which needs no package.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cortex.errors import StructureError
from cortex.frontend.fields import Offered
from cortex.structures.meaning import Given, Meaning, by_key
from cortex.structures.vocabulary import Words, word_ids


def conllu_trees(*, words: Words | None = None, fields: Mapping[str, Given] | None = None) -> Meaning:
    """What `node.children`, `node.word`, `node.form`, `node.upos` and `node.deprel` are on a `conllu.TokenTree`.

    `word` is the id that `words` gives the form (by default a hash). `fields` are more: for each of the model's names
    the column (such as "lemma"), or a function of the TokenTree.
    """
    word_id = word_ids(words)

    def word(node: Any) -> int:
        return word_id(_column("form")(node))

    offered = {"word": word, **{name: _column(name) for name in ("form", "upos", "deprel")}}
    return Meaning(children="children", fields=Offered(offered, by_key(fields, _column)))


def _column(name: str) -> Callable[[Any], Any]:
    def value(node: Any) -> Any:
        try:
            return node.token[name]
        except KeyError:
            raise StructureError(
                f"the token {dict(node.token)!r} has no column {name!r}; there are {', '.join(node.token)}"
            ) from None

    return value
