"""The zoo: published recursive models, each beside its PyTorch reference and with structures to run on.

    entry = zoo.load("tree_lstm")
    weights = entry.weights(hidden=256, vocab=1000)
    fast = cortex.compile(entry.model, weights)
    fast(entry.structures(random.Random(0), 10, 1000))

The compiler knows nothing of what is here.
"""

from __future__ import annotations

from cortex.errors import ModelError
from cortex.zoo import (
    dag_rnn,
    gru,
    lstm,
    mv_rnn,
    nary_tree_lstm,
    rntn,
    simple_tree_gru,
    tree_fc,
    tree_gru,
    tree_lstm,
    tree_rnn,
)
from cortex.zoo.entry import Entry

ENTRIES: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        tree_fc.ENTRY,
        tree_rnn.ENTRY,
        tree_lstm.ENTRY,
        tree_lstm.WORDS_ENTRY,
        nary_tree_lstm.ENTRY,
        tree_gru.ENTRY,
        tree_gru.WORDS_ENTRY,
        simple_tree_gru.ENTRY,
        mv_rnn.ENTRY,
        dag_rnn.ENTRY,
        lstm.ENTRY,
        gru.ENTRY,
        rntn.ENTRY,
    )
}


def load(name: str) -> Entry:
    """The entry called `name`."""
    try:
        return ENTRIES[name]
    except KeyError:
        raise ModelError(f"zoo.load({name!r}): no such model; there are {', '.join(ENTRIES)}") from None
