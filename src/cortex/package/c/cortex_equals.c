/* Nodes of one kind with equal fields and equal children become one node.
 *
 * Nodes are taken from the leaves up, so that equal children are one already. Equal hashes only say where to look. */
#include <string.h>

#include "cortex_internal.h"

static uint64_t mixed(uint64_t state, uint64_t x) {
  state = (state ^ x) * 0x9E3779B97F4A7C15u;
  return state ^ (state >> 32);
}

/* The floats of field f of node v, as they were staged. */
static const float *staged_float(const cortex_linear *l, int32_t f, int64_t v) {
  const float *at = l->staged_floats;
  for (int32_t i = 0; i < f; ++i) at += l->num_user_nodes * l->d->floats[i].rows * l->d->floats[i].columns;
  return at + v * l->d->floats[f].rows * l->d->floats[f].columns;
}

static uint64_t hash_of(const cortex_linear *l, int64_t v) {
  const cortex_description *d = l->d;
  uint64_t hash = mixed(0x243F6A8885A308D3u, (uint64_t)l->kind[v]);
  for (int32_t i = 0; i < d->num_lists; ++i) hash = mixed(hash, (uint64_t)l->list_len[v * d->num_lists + i]);
  for (int64_t e = l->edge_start[v]; e < l->edge_start[v + 1]; ++e) hash = mixed(hash, (uint32_t)l->edge_child[e]);
  for (int32_t f = 0; f < d->num_ints; ++f) hash = mixed(hash, (uint32_t)l->staged_ints[f * l->num_user_nodes + v]);
  for (int32_t f = 0; f < d->num_floats; ++f)
    for (int64_t i = 0; i < d->floats[f].rows * d->floats[f].columns; ++i) {
      uint32_t bits;
      memcpy(&bits, staged_float(l, f, v) + i, sizeof bits);
      hash = mixed(hash, bits);
    }
  return hash;
}

static int are_equal(const cortex_linear *l, int64_t u, int64_t v) {
  const cortex_description *d = l->d;
  const int64_t edges = l->edge_start[u + 1] - l->edge_start[u];
  if (l->kind[u] != l->kind[v] || edges != l->edge_start[v + 1] - l->edge_start[v]) return 0;
  if (memcmp(l->edge_child + l->edge_start[u], l->edge_child + l->edge_start[v], (size_t)edges * sizeof(int32_t)) != 0)
    return 0;
  for (int32_t i = 0; i < d->num_lists; ++i)
    if (l->list_len[u * d->num_lists + i] != l->list_len[v * d->num_lists + i]) return 0;
  for (int32_t f = 0; f < d->num_ints; ++f)
    if (l->staged_ints[f * l->num_user_nodes + u] != l->staged_ints[f * l->num_user_nodes + v]) return 0;
  for (int32_t f = 0; f < d->num_floats; ++f) {
    const int64_t elements = d->floats[f].rows * d->floats[f].columns;
    if (memcmp(staged_float(l, f, u), staged_float(l, f, v), (size_t)elements * sizeof(float)) != 0) return 0;
  }
  return 1;
}

static int stage_fields(cortex_linear *l) {
  const cortex_description *d = l->d;
  int64_t elements = 0;
  int32_t **ints = cortex_reserve(l, ROOM_INT_ARRAYS, d->num_ints, sizeof(int32_t *));
  float **floats = cortex_reserve(l, ROOM_FLOAT_ARRAYS, d->num_floats, sizeof(float *));
  if (!ints || !floats) return CORTEX_OUT_OF_MEMORY;
  for (int32_t f = 0; f < d->num_floats; ++f) elements += d->floats[f].rows * d->floats[f].columns;
  l->staged_ints = cortex_reserve(l, ROOM_INTS, l->n * d->num_ints, sizeof(int32_t));
  l->staged_floats = cortex_reserve(l, ROOM_FLOATS, l->n * elements, sizeof(float));
  if (!l->staged_ints || !l->staged_floats) return CORTEX_OUT_OF_MEMORY;
  for (int32_t f = 0; f < d->num_ints; ++f) ints[f] = l->staged_ints + f * l->n;
  float *next = l->staged_floats;
  for (int32_t f = 0; f < d->num_floats; ++f) {
    floats[f] = next;
    next += l->n * d->floats[f].rows * d->floats[f].columns;
  }
  cortex_fill_fields(l, ints, floats, 0, NULL);
  return CORTEX_OK;
}

/* For every node the first one, in the user's order, that equals it; edges are led to those as well. */
static int find_equals(cortex_linear *l, int32_t *first_equal) {
  const int64_t n = l->n;
  int32_t highest = -1;
  int32_t *every = cortex_reserve(l, ROOM_BY_GROUP, n, sizeof(int32_t));
  int32_t *rising = cortex_reserve(l, ROOM_SORTED, n, sizeof(int32_t));
  if (!every || !rising) return CORTEX_OUT_OF_MEMORY;
  for (int64_t v = 0; v < n; ++v) {
    every[v] = (int32_t)v;
    if (l->height[v] > highest) highest = l->height[v];
  }
  if (cortex_sort(l, l->height, (int64_t)highest + 1, every, rising)) return CORTEX_OUT_OF_MEMORY;
  uint64_t size = 16;
  while (size < 2 * (uint64_t)n) size *= 2;
  int32_t *table = cortex_reserve(l, ROOM_TABLE, (int64_t)size, sizeof(int32_t));
  uint64_t *hashes = cortex_reserve(l, ROOM_HASHES, (int64_t)size, sizeof(uint64_t));
  if (!table || !hashes) return CORTEX_OUT_OF_MEMORY;
  for (uint64_t i = 0; i < size; ++i) table[i] = -1;
  for (int64_t i = 0; i < n; ++i) {
    const int32_t v = rising[i];
    for (int64_t e = l->edge_start[v]; e < l->edge_start[v + 1]; ++e)
      if (l->edge_child[e] >= 0) l->edge_child[e] = first_equal[l->edge_child[e]];
    const uint64_t hash = hash_of(l, v);
    uint64_t at = hash & (size - 1);
    while (table[at] >= 0 && !(hashes[at] == hash && are_equal(l, table[at], v))) at = (at + 1) & (size - 1);
    if (table[at] < 0) {
      table[at] = v;
      hashes[at] = hash;
    }
    first_equal[v] = table[at];
  }
  return CORTEX_OK;
}

int cortex_merge_equals(cortex_linear *l) {
  const int64_t n = l->n;
  const int32_t lists = l->d->num_lists;
  int32_t *first_equal = cortex_reserve(l, ROOM_FIRST_EQUAL, n, sizeof(int32_t));
  l->unique_of = cortex_reserve(l, ROOM_UNIQUE, n, sizeof(int32_t));
  l->first = cortex_reserve(l, ROOM_FIRST, n, sizeof(int32_t));
  if (!first_equal || !l->unique_of || !l->first) return CORTEX_OUT_OF_MEMORY;
  int status = stage_fields(l);
  if (!status) status = find_equals(l, first_equal);
  if (status) return status;

  int64_t left = 0, end = 0;
  for (int64_t v = 0; v < n; ++v) {
    const int32_t first = first_equal[v]; /* never after v */
    l->unique_of[v] = first == v ? (int32_t)left : l->unique_of[first];
    if (first == v) l->first[left++] = (int32_t)v;
  }
  /* Arrays shrink in place: what is written was read before. */
  for (int64_t u = 0; u < left; ++u) {
    const int32_t v = l->first[u];
    const int64_t from = l->edge_start[v], to = l->edge_start[v + 1];
    l->edge_start[u] = end;
    for (int64_t e = from; e < to; ++e, ++end)
      l->edge_child[end] = l->edge_child[e] < 0 ? -1 : l->unique_of[l->edge_child[e]];
    for (int32_t i = 0; i < lists; ++i) l->list_len[u * lists + i] = l->list_len[(int64_t)v * lists + i];
    l->height[u] = l->height[v];
    l->kind[u] = l->kind[v];
  }
  l->edge_start[left] = end;
  for (int64_t r = 0; r < l->num_roots; ++r) l->roots[r] = l->unique_of[l->roots[r]];
  l->n = left;
  return CORTEX_OK;
}
