/* Which nodes run together: variants of kinds, batching policies, parts. The linear form's page states the rules. */
#include <string.h>

#include "cortex_internal.h"

int cortex_sort(cortex_linear *l, const int32_t *key, int64_t keys, const int32_t *from, int32_t *to) {
  int32_t *count = cortex_reserve(l, ROOM_COUNT, keys + 2, sizeof(int32_t));
  if (!count) return CORTEX_OUT_OF_MEMORY;
  memset(count, 0, (size_t)(keys + 2) * sizeof(int32_t));
  for (int64_t v = 0; v < l->n; ++v) ++count[(int64_t)key[v] + 2];
  for (int64_t k = 2; k < keys + 2; ++k) count[k] += count[k - 1];
  for (int64_t i = 0; i < l->n; ++i) to[count[(int64_t)key[from[i]] + 1]++] = from[i];
  return CORTEX_OK;
}

/* All nodes, children before their parents. */
static int32_t *rising(cortex_linear *l) {
  int32_t highest = -1;
  int32_t *every = cortex_reserve(l, ROOM_BY_GROUP, l->n, sizeof(int32_t));
  int32_t *sorted = cortex_reserve(l, ROOM_SORTED, l->n, sizeof(int32_t));
  if (!every || !sorted) return NULL;
  for (int64_t v = 0; v < l->n; ++v) {
    every[v] = (int32_t)v;
    if (l->height[v] > highest) highest = l->height[v];
  }
  return cortex_sort(l, l->height, (int64_t)highest + 1, every, sorted) ? NULL : sorted;
}

/* The variant of a node's kind that inlines what fits at its hops, or -1; marks what it inlines. */
static int32_t variant_of(cortex_linear *l, int32_t v, const int32_t *parents, const int32_t *chosen, uint8_t *inlined) {
  const cortex_kind *kind = &l->d->kinds[l->kind[v]];
  for (int32_t i = 0; i < kind->num_variants; ++i) {
    const int32_t *wanted = kind->variants + (int64_t)i * (kind->num_hops + 1);
    int32_t h = 0;
    for (; h < kind->num_hops; ++h) {
      const int32_t c = cortex_follow(l, &kind->hops[h], v);
      const int fits = c >= 0 && parents[c] == 1 && l->height[c] + 1 == l->height[v] && l->d->kinds[l->kind[c]].within >= 0;
      if (wanted[h] != (fits ? chosen[c] : -1)) break;
    }
    if (h < kind->num_hops) continue;
    for (h = 0; h < kind->num_hops; ++h)
      if (wanted[h] >= 0) inlined[cortex_follow(l, &kind->hops[h], v)] = 1;
    return wanted[kind->num_hops];
  }
  return -1;
}

int cortex_choose_variants(cortex_linear *l) {
  const int64_t n = l->n;
  if (l->d->unrolled <= 1) return CORTEX_OK;
  int32_t *parents = cortex_reserve(l, ROOM_PARENTS, n, sizeof(int32_t));
  int32_t *chosen = cortex_reserve(l, ROOM_CHOSEN, n, sizeof(int32_t));
  uint8_t *inlined = cortex_reserve(l, ROOM_INLINED, n, 1);
  const int32_t *order = rising(l);
  if (!parents || !chosen || !inlined || !order) return CORTEX_OUT_OF_MEMORY;
  memset(parents, 0, (size_t)n * sizeof(int32_t));
  memset(inlined, 0, (size_t)n);
  memcpy(chosen, l->kind, (size_t)n * sizeof(int32_t));
  for (int64_t e = 0; e < l->edge_start[n]; ++e)
    if (l->edge_child[e] >= 0) ++parents[l->edge_child[e]];
  /* Children first: a node's variant is chosen by those of the children it inlines. */
  for (int64_t i = 0; i < n; ++i) {
    const int32_t v = order[i];
    if ((l->height[v] - 1) % l->d->unrolled == 0) continue;
    const int32_t variant = variant_of(l, v, parents, chosen, inlined);
    if (variant >= 0) chosen[v] = variant;
  }
  for (int64_t v = 0; v < n; ++v) l->kind[v] = inlined[v] ? l->d->kinds[l->kind[v]].within : chosen[v];
  return CORTEX_OK;
}

/* Deepest first; the depth of a node is its longest distance from a node that is nobody's child. */
static int rank_by_depth(cortex_linear *l) {
  const int32_t *order = rising(l);
  int32_t deepest = 0;
  if (!order) return CORTEX_OUT_OF_MEMORY;
  memset(l->rank, 0, (size_t)l->n * sizeof(int32_t));
  for (int64_t i = l->n; i-- > 0;) { /* parents are higher, so they come before */
    const int32_t v = order[i];
    if (l->rank[v] > deepest) deepest = l->rank[v];
    for (int64_t e = l->edge_start[v]; e < l->edge_start[v + 1]; ++e) {
      const int32_t child = l->edge_child[e];
      if (child >= 0 && l->rank[child] < l->rank[v] + 1) l->rank[child] = l->rank[v] + 1;
    }
  }
  for (int64_t v = 0; v < l->n; ++v) l->rank[v] = deepest - l->rank[v];
  return CORTEX_OK;
}

/* Again and again, all ready nodes of the kind that has most of them; of equals, the first of the model. */
static int rank_by_agenda(cortex_linear *l) {
  const int64_t n = l->n;
  const int32_t kinds = l->d->num_kinds;
  int32_t *waits_for = cortex_reserve(l, ROOM_WAITS, n, sizeof(int32_t));
  int32_t *parent_start = cortex_reserve(l, ROOM_PARENT_START, n + 2, sizeof(int32_t));
  int32_t *parent = cortex_reserve(l, ROOM_PARENT, l->edge_start[n], sizeof(int32_t));
  int32_t *next = cortex_reserve(l, ROOM_NEXT, n, sizeof(int32_t)); /* ready nodes of a kind, as a chain */
  int32_t *ready = cortex_reserve(l, ROOM_READY, 2 * (int64_t)kinds, sizeof(int32_t));
  if (!waits_for || !parent_start || !parent || !next || !ready) return CORTEX_OUT_OF_MEMORY;
  int32_t *head = ready, *count = ready + kinds;
  memset(waits_for, 0, (size_t)n * sizeof(int32_t));
  memset(parent_start, 0, (size_t)(n + 2) * sizeof(int32_t));
  for (int32_t k = 0; k < kinds; ++k) {
    head[k] = -1;
    count[k] = 0;
  }
  for (int64_t e = 0; e < l->edge_start[n]; ++e)
    if (l->edge_child[e] >= 0) ++parent_start[(int64_t)l->edge_child[e] + 2];
  for (int64_t v = 0; v < n; ++v) parent_start[v + 2] += parent_start[v + 1];
  for (int64_t v = 0; v < n; ++v)
    for (int64_t e = l->edge_start[v]; e < l->edge_start[v + 1]; ++e) {
      if (l->edge_child[e] < 0) continue;
      parent[parent_start[(int64_t)l->edge_child[e] + 1]++] = (int32_t)v;
      ++waits_for[v];
    }
  for (int64_t v = 0; v < n; ++v) {
    if (waits_for[v] > 0) continue;
    next[v] = head[l->group_kind_of[v]];
    head[l->group_kind_of[v]] = (int32_t)v;
    ++count[l->group_kind_of[v]];
  }
  for (int32_t turn = 0;; ++turn) {
    int32_t most = 0;
    for (int32_t k = 1; k < kinds; ++k)
      if (count[k] > count[most]) most = k;
    int32_t v = head[most];
    if (v < 0) return CORTEX_OK;
    head[most] = -1;
    count[most] = 0;
    while (v >= 0) {
      const int32_t following = next[v];
      l->rank[v] = turn;
      for (int32_t p = parent_start[v]; p < parent_start[v + 1]; ++p) {
        const int32_t above = parent[p], kind = l->group_kind_of[above];
        if (--waits_for[above] > 0) continue;
        next[above] = head[kind];
        head[kind] = above;
        ++count[kind];
      }
      v = following;
    }
  }
}

int cortex_rank(cortex_linear *l) {
  l->group_kind_of = l->kind;
  if (l->d->shares_groups) {
    l->group_kind_of = cortex_reserve(l, ROOM_GROUP_KIND_OF, l->n, sizeof(int32_t));
    if (!l->group_kind_of) return CORTEX_OUT_OF_MEMORY;
    for (int64_t v = 0; v < l->n; ++v) l->group_kind_of[v] = l->d->kinds[l->kind[v]].group_kind;
  }
  l->rank = l->height;
  if (l->d->batching != CORTEX_DEPTH && l->d->batching != CORTEX_AGENDA) return CORTEX_OK;
  l->rank = cortex_reserve(l, ROOM_RANK, l->n, sizeof(int32_t));
  if (!l->rank) return CORTEX_OUT_OF_MEMORY;
  return l->d->batching == CORTEX_DEPTH ? rank_by_depth(l) : rank_by_agenda(l);
}
