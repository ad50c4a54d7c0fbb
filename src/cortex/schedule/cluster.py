"""Which nests to fuse: clusters of nests that share loops, with every use pointwise inside a cluster.

Nests are taken in order. A nest may join a cluster when the two have the same rows and columns and everything
the nest uses is computed in an earlier cluster, or in the same one at the same element. A new cluster is put at
the earliest place its operands allow, so that later nests can still join clusters behind it: the sum of the
children's forget terms lands before the product whose epilogue adds it.
"""

from __future__ import annotations

from cortex.ilir.ir import Accumulate, For, Func, Store
from cortex.ir.node import walk
from cortex.ir.scalar import Var
from cortex.ir.simplify import substitute
from cortex.poly.accesses import Access
from cortex.poly.quick import QuickRules
from cortex.schedule.locate import Block
from cortex.schedule.nest import Nest, nest_of

Cluster = list[Nest]


def clusters_of(f: Func, block: Block, most_sums: int, whole: frozenset[str] = frozenset()) -> list[Cluster]:
    """The nests of a statement list, grouped; at most `most_sums` accumulators in a cluster with products.

    Nests without products that compute buffers of `whole` share no loops with others.
    """
    known = QuickRules.of(f)
    clusters: list[Cluster] = []
    for s in block:
        if not isinstance(s, For):
            continue
        nest = nest_of(f, s)
        first, after = _earliest(known, clusters, nest)
        # States of inlined children are stored at nodes that no fact tells apart: nothing joins such a nest to others.
        apart = not _pointwise(known, nest, nest)
        mine = _computes(nest, whole)
        homes = (c for c in clusters[first:] if _joins(c, nest, most_sums) and _computes(c[0], whole) == mine)
        home = None if apart else next(homes, None)
        if home is None:
            clusters.insert(after, [nest])
        else:
            home.append(nest)
    _sink_pointwise(known, clusters)
    return clusters


def _earliest(known: QuickRules, clusters: list[Cluster], nest: Nest) -> tuple[int, int]:
    """The first cluster `nest` may join, and the first position at which it may stand alone."""
    first = after = 0
    for number, cluster in enumerate(clusters):
        against = [other for other in cluster if not known.commute(other.rows, nest.rows)]
        if against:
            together = cluster[0].space == nest.space and all(_meet(known, o, nest) for o in against)
            first, after = number if together else number + 1, number + 1
    return first, after


def _meet(known: QuickRules, a: Nest, b: Nest) -> bool:
    """May `b` follow `a` in the same loops? A sum may only add to the element that `a` sums into."""
    if b.kind != "pointwise" and not all(x.buffer in a.targets & b.targets for x, _ in _conflicts(known, a, b)):
        return False
    return _pointwise(known, a, b)


def _pointwise(known: QuickRules, a: Nest, b: Nest) -> bool:
    """Do `a` and `b`, run in the same loops, meet only at the same element?"""
    around = (a.rows, *a.columns)
    return all(all(known.aligned(x, y, loop.var) for loop in around) for x, y in _conflicts(known, a, b))


def _conflicts(known: QuickRules, a: Nest, b: Nest) -> list[tuple[Access, Access]]:
    """The accesses at which two nests of one space, run in the same loops, may meet."""
    names = {y.var: Var(x.var) for x, y in zip((a.rows, *a.columns), (b.rows, *b.columns), strict=True)}
    return list(known.conflicts(a.body, substitute(b.body, names), (a.rows, *a.columns)))


def _joins(cluster: Cluster, nest: Nest, most_sums: int) -> bool:
    """May `nest` share the loops of `cluster`, as far as their kinds go?"""
    kinds = {n.kind for n in cluster} - {"pointwise"}
    if cluster[0].space != nest.space or "dot" in kinds or nest.kind == "dot":
        return False
    if nest.kind == "pointwise":
        return True
    sums = frozenset[str]().union(*(n.targets for n in cluster)) | nest.targets
    return kinds == {nest.kind} and len(sums) <= most_sums


def _computes(nest: Nest, buffers: frozenset[str]) -> bool:
    """Does a nest without products write to one of `buffers`?"""
    if nest.kind in ("product", "dot"):
        return False
    return any(isinstance(n, Store | Accumulate) and n.buffer in buffers for s in nest.body for n in walk(s))


def _sink_pointwise(known: QuickRules, clusters: list[Cluster]) -> None:
    """Move pointwise nests from a cluster of their own to the one cluster that uses them.

    before:  [a = x * y] ... [t = U @ s; c = t + a]
    after:   [t = U @ s; a = x * y; c = t + a]
    """
    for number in range(len(clusters) - 1, -1, -1):
        cluster = clusters[number]
        if any(n.kind != "pointwise" for n in cluster):
            continue
        for nest in reversed(list(cluster)):
            stays = any(not known.commute(nest.rows, n.rows) for n in cluster[cluster.index(nest) + 1 :])
            later = [c for c in clusters[number + 1 :] if any(not known.commute(nest.rows, n.rows) for n in c)]
            if stays or len(later) != 1 or later[0][0].space != nest.space or later[0][0].kind == "dot":
                continue
            users = [n for n in later[0] if not known.commute(nest.rows, n.rows)]
            if all(n.kind == "pointwise" and _pointwise(known, nest, n) for n in users):
                cluster.remove(nest)
                later[0].insert(later[0].index(users[0]), nest)
    clusters[:] = [c for c in clusters if c]
