"""The rules of simplification, in the order in which they are tried on an op.

Cheap facts first (constants and identities make most other rules unnecessary), then views, which expose
concatenations and transposes to contractions; the rules that need to know all uses of a value come last, when
nothing else changes it any more.
"""

from __future__ import annotations

from cortex.ra.rules.contractions import (
    absorb_transposes,
    absorb_unit_axes,
    multiply_without_sum,
    normalize_contractions,
    split_concats,
)
from cortex.ra.rules.fold_constants import drop_neutral, fold_fills, multiply_zeros, shrink_fills
from cortex.ra.rules.graph import Rule
from cortex.ra.rules.merge_views import drop_broadcasts, drop_identities, merge_views, normalize_slices
from cortex.ra.rules.over_children import choose_by_lengths, count_invariants, pull_products_out, use_lengths
from cortex.ra.rules.sink_slices import sink_slices_into_ops, sink_slices_into_views

FILLS_AND_VIEWS: tuple[Rule, ...] = (
    fold_fills,
    multiply_zeros,
    drop_neutral,
    shrink_fills,
    merge_views,
    drop_broadcasts,
    sink_slices_into_views,
)

RULES: tuple[Rule, ...] = (
    use_lengths,
    choose_by_lengths,
    count_invariants,
    normalize_slices,
    drop_identities,
    *FILLS_AND_VIEWS,
    absorb_transposes,
    absorb_unit_axes,
    split_concats,
    multiply_without_sum,
    normalize_contractions,
    sink_slices_into_ops,
    pull_products_out,
)
