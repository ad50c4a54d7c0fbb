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

/* Levels take room for so many kinds per node; with more kinds, all nodes of a kind are of one level. */
#define MOST_KINDS_WITH_LEVELS 32

/* The level of every node: the greatest number of nodes of its kind on a way down from it, itself included. */
static int32_t *levels_of(cortex_linear *l) {
  const int64_t n = l->n, kinds = l->d->num_kinds;
  const int told_apart = kinds <= MOST_KINDS_WITH_LEVELS;
  int32_t *level = cortex_reserve(l, ROOM_LEVEL, n, sizeof(int32_t));
  int32_t *most = cortex_reserve(l, ROOM_MOST, told_apart ? n * kinds : 0, sizeof(int32_t)); /* per node and kind */
  const int32_t *order = rising(l);
  if (!level || !most || !order) return NULL;
  for (int64_t i = 0; i < n; ++i) {
    const int32_t v = order[i];
    int32_t *mine = most + (told_apart ? v * kinds : 0);
    level[v] = 1;
    if (!told_apart) continue;
    memset(mine, 0, (size_t)kinds * sizeof(int32_t));
    for (int64_t e = l->edge_start[v]; e < l->edge_start[v + 1]; ++e) {
      const int32_t child = l->edge_child[e];
      for (int64_t k = 0; child >= 0 && k < kinds; ++k)
        if (most[child * kinds + k] > mine[k]) mine[k] = most[child * kinds + k];
    }
    level[v] = ++mine[l->group_kind_of[v]];
  }
  return level;
}

/* A kind on the agenda. */
typedef struct {
  int32_t first, ready; /* of the nodes that are ready, as a chain, and their number */
  int32_t next;         /* nodes that have not run, of the levels up to the present one */
  int32_t level, last;  /* the present level and the end of all, as places among the numbers of nodes at levels */
} kind_on_agenda;

/* Give every kind its levels, and count the nodes at each. */
static const int32_t *nodes_at_levels(cortex_linear *l, const int32_t *level, kind_on_agenda *kinds) {
  int32_t room = 0;
  memset(kinds, 0, (size_t)l->d->num_kinds * sizeof *kinds);
  for (int64_t v = 0; v < l->n; ++v)
    if (level[v] > kinds[l->group_kind_of[v]].last) kinds[l->group_kind_of[v]].last = level[v];
  for (int32_t k = 0; k < l->d->num_kinds; ++k) {
    kinds[k].first = -1;
    kinds[k].level = room;
    room = kinds[k].last += room;
  }
  int32_t *nodes_at = cortex_reserve(l, ROOM_NODES_AT, room, sizeof(int32_t));
  if (!nodes_at) return NULL;
  memset(nodes_at, 0, (size_t)room * sizeof(int32_t));
  for (int64_t v = 0; v < l->n; ++v) ++nodes_at[kinds[l->group_kind_of[v]].level + level[v] - 1];
  for (int32_t k = 0; k < l->d->num_kinds; ++k)
    if (kinds[k].level < kinds[k].last) kinds[k].next = nodes_at[kinds[k].level];
  return nodes_at;
}

/* The kind whose turn it is: it has the greatest share of its next nodes ready; NULL if no node is. */
static kind_on_agenda *whose_turn(cortex_linear *l, kind_on_agenda *kinds) {
  kind_on_agenda *best = NULL;
  for (kind_on_agenda *k = kinds; k < kinds + l->d->num_kinds; ++k) {
    if (k->ready == 0) continue;
    if (best) {
      const int64_t mine = (int64_t)k->ready * best->next, other = (int64_t)best->ready * k->next;
      if (mine < other || (mine == other && k->ready <= best->ready)) continue;
    }
    best = k;
  }
  return best;
}

static void enter(kind_on_agenda *kind, int32_t v, int32_t *following) {
  following[v] = kind->first;
  kind->first = v;
  ++kind->ready;
}

/* Again and again, all ready nodes of the kind that has least to wait for. */
static int rank_by_agenda(cortex_linear *l) {
  const int64_t n = l->n;
  int32_t *waits_for = cortex_reserve(l, ROOM_WAITS, n, sizeof(int32_t));
  int32_t *parent_start = cortex_reserve(l, ROOM_PARENT_START, n + 2, sizeof(int32_t));
  int32_t *parent = cortex_reserve(l, ROOM_PARENT, l->edge_start[n], sizeof(int32_t));
  int32_t *following = cortex_reserve(l, ROOM_NEXT, n, sizeof(int32_t)); /* of the ready nodes of a kind */
  kind_on_agenda *kinds = cortex_reserve(l, ROOM_READY, l->d->num_kinds, sizeof *kinds);
  const int32_t *level = levels_of(l);
  if (!waits_for || !parent_start || !parent || !following || !kinds || !level) return CORTEX_OUT_OF_MEMORY;
  const int32_t *nodes_at = nodes_at_levels(l, level, kinds);
  if (!nodes_at) return CORTEX_OUT_OF_MEMORY;
  memset(waits_for, 0, (size_t)n * sizeof(int32_t));
  memset(parent_start, 0, (size_t)(n + 2) * sizeof(int32_t));
  for (int64_t e = 0; e < l->edge_start[n]; ++e)
    if (l->edge_child[e] >= 0) ++parent_start[(int64_t)l->edge_child[e] + 2];
  for (int64_t v = 0; v < n; ++v) parent_start[v + 2] += parent_start[v + 1];
  for (int64_t v = 0; v < n; ++v)
    for (int64_t e = l->edge_start[v]; e < l->edge_start[v + 1]; ++e) {
      if (l->edge_child[e] < 0) continue;
      parent[parent_start[(int64_t)l->edge_child[e] + 1]++] = (int32_t)v;
      ++waits_for[v];
    }
  for (int32_t v = 0; v < n; ++v)
    if (waits_for[v] == 0) enter(&kinds[l->group_kind_of[v]], v, following);
  for (int32_t turn = 0;; ++turn) {
    kind_on_agenda *best = whose_turn(l, kinds);
    if (!best) return CORTEX_OK;
    best->next -= best->ready;
    if (++best->level < best->last) best->next += nodes_at[best->level];
    int32_t v = best->first;
    best->first = -1;
    best->ready = 0;
    for (; v >= 0; v = following[v]) {
      l->rank[v] = turn;
      for (int32_t p = parent_start[v]; p < parent_start[v + 1]; ++p)
        if (--waits_for[parent[p]] == 0) enter(&kinds[l->group_kind_of[parent[p]]], parent[p], following);
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
