/* Parts, numbers and groups of nodes, and the arrays of the linear form. */
#include <stdlib.h>
#include <string.h>

#include "cortex_internal.h"

static int32_t first_of(int32_t *set, int32_t v) {
  while (set[v] != v) {
    set[v] = set[set[v]]; /* halve the way for those who come later */
    v = set[v];
  }
  return v;
}

typedef struct {
  int32_t size, first;
} set_of_nodes;

static int larger_first(const void *a, const void *b) {
  const set_of_nodes *x = a, *y = b;
  if (x->size != y->size) return x->size > y->size ? -1 : 1;
  return x->first < y->first ? -1 : x->first > y->first;
}

/* Nodes that edges connect stay together. The largest of these sets comes first, each to the part that has fewest nodes
 * so far. */
static int divide(cortex_linear *l, int64_t wanted) {
  const int64_t n = l->n;
  l->num_parts = n > 0;
  l->part = NULL;
  if (wanted < 2 || n < 2) return CORTEX_OK;
  int32_t *set = cortex_reserve(l, ROOM_PART, n, sizeof(int32_t));
  int32_t *size = cortex_reserve(l, ROOM_COUNT, n, sizeof(int32_t));
  set_of_nodes *sets = cortex_reserve(l, ROOM_SETS, n, sizeof(set_of_nodes));
  if (!set || !size || !sets) return CORTEX_OUT_OF_MEMORY;
  for (int64_t v = 0; v < n; ++v) set[v] = (int32_t)v;
  for (int64_t v = 0; v < n; ++v)
    for (int64_t e = l->edge_start[v]; e < l->edge_start[v + 1]; ++e) {
      if (l->edge_child[e] < 0) continue;
      const int32_t a = first_of(set, (int32_t)v), b = first_of(set, l->edge_child[e]);
      if (a < b) set[b] = a;
      else set[a] = b;
    }
  memset(size, 0, (size_t)n * sizeof(int32_t));
  for (int64_t v = 0; v < n; ++v) {
    set[v] = set[set[v]]; /* what stands before v leads to the first of its set at once */
    ++size[set[v]];
  }
  int64_t num_sets = 0;
  for (int64_t v = 0; v < n; ++v)
    if (set[v] == v) {
      const set_of_nodes one = {size[v], (int32_t)v};
      sets[num_sets++] = one;
    }
  l->num_parts = wanted < num_sets ? wanted : num_sets;
  if (l->num_parts == 1) return CORTEX_OK;
  qsort(sets, (size_t)num_sets, sizeof *sets, larger_first);
  int64_t nodes[CORTEX_MOST_THREADS] = {0};
  for (int64_t i = 0; i < num_sets; ++i) {
    int32_t least = 0;
    for (int32_t p = 1; p < l->num_parts; ++p)
      if (nodes[p] < nodes[least]) least = p;
    nodes[least] += sets[i].size;
    size[sets[i].first] = least; /* from here on: the part of the set */
  }
  for (int64_t v = 0; v < n; ++v) set[v] = size[set[v]];
  l->part = set;
  return CORTEX_OK;
}

/* Order nodes by part, then by rank, then by the kind of their group, then as the user has them; NULL: no memory. */
static const int32_t *sorted_nodes(cortex_linear *l) {
  const int64_t n = l->n;
  int32_t *from = cortex_reserve(l, ROOM_BY_GROUP, n, sizeof(int32_t));
  int32_t *to = cortex_reserve(l, ROOM_SORTED, n, sizeof(int32_t)), *other;
  if (!from || !to) return NULL;
  int32_t last = -1;
  for (int64_t v = 0; v < n; ++v) {
    from[v] = (int32_t)v;
    if (l->rank[v] > last) last = l->rank[v];
  }
  if (cortex_sort(l, l->group_kind_of, l->d->num_kinds, from, to)) return NULL;
  if (cortex_sort(l, l->rank, (int64_t)last + 1, to, from)) return NULL;
  if (!l->part) return from;
  other = to;
  return cortex_sort(l, l->part, l->num_parts, from, other) ? NULL : other;
}

static void count_sizes(cortex_linear *l) {
  const int32_t lists = l->d->num_lists;
  int64_t max_group = 0, *sizes = l->sizes;
  for (int32_t i = 0; i < lists; ++i) sizes[CORTEX_FIRST_LIST_SIZE + 2 * i] = sizes[CORTEX_FIRST_LIST_SIZE + 2 * i + 1] = 0;
  for (int64_t g = 0; g < l->num_groups; ++g) {
    if (l->group_len[g] > max_group) max_group = l->group_len[g];
    for (int32_t i = 0; i < lists; ++i) {
      int64_t edges = 0;
      for (int32_t k = 0; k < l->group_len[g]; ++k)
        edges += l->list_len[(int64_t)l->node_of[l->group_start[g] + k] * lists + i];
      sizes[CORTEX_FIRST_LIST_SIZE + 2 * i] += edges;
      if (edges > sizes[CORTEX_FIRST_LIST_SIZE + 2 * i + 1]) sizes[CORTEX_FIRST_LIST_SIZE + 2 * i + 1] = edges;
    }
  }
  sizes[CORTEX_NUM_NODES] = l->n;
  sizes[CORTEX_NUM_GROUPS] = l->num_groups;
  sizes[CORTEX_NUM_ROOTS] = l->num_roots;
  sizes[CORTEX_MAX_GROUP] = max_group;
  int32_t next = CORTEX_FIRST_LIST_SIZE + 2 * lists;
  if (l->d->parts) sizes[next++] = l->num_parts;
  if (l->d->num_windows) {
    sizes[next++] = l->num_windows;
    sizes[next++] = l->max_window;
  }
  if (l->d->dedup) sizes[next] = l->num_user_nodes;
}

/* Divide the groups into windows. */
static int find_windows(cortex_linear *l) {
  const cortex_description *d = l->d;
  const int64_t columns = 1 + (int64_t)d->num_windows;
  l->num_windows = l->max_window = 0;
  if (!d->num_windows) return CORTEX_OK;
  l->windows = cortex_reserve(l, ROOM_WINDOWS, (l->num_groups + 1) * columns, sizeof(int32_t));
  int32_t *place = cortex_reserve(l, ROOM_PLACES, (int64_t)d->num_kinds + 1, sizeof(int32_t));
  if (!l->windows || !place) return CORTEX_OUT_OF_MEMORY;
  memcpy(place, l->kind_start, (size_t)(d->num_kinds + 1) * sizeof(int32_t));
  int64_t nodes = 0;
  for (int64_t g = 0; g <= l->num_groups; ++g) {
    const int64_t length = g < l->num_groups ? l->group_len[g] : 0;
    if (g == 0 || g == l->num_groups || nodes + length > d->window_nodes) {
      int32_t *window = l->windows + (g == 0 ? 0 : ++l->num_windows) * columns;
      *window++ = (int32_t)g;
      for (int32_t i = 0; i < d->num_windows; ++i) *window++ = place[d->windows[i]];
      if (nodes > l->max_window) l->max_window = nodes;
      nodes = 0;
    }
    nodes += length;
    for (int64_t i = 0; i < length; ++i) ++place[l->kind[l->node_of[l->group_start[g] + i]]];
  }
  return CORTEX_OK;
}

int cortex_number(cortex_linear *l, int64_t parts) {
  const int64_t n = l->n;
  const int32_t kinds = l->d->num_kinds;
  l->part = NULL;
  if (l->d->parts && divide(l, parts)) return CORTEX_OUT_OF_MEMORY;
  if (cortex_rank(l)) return CORTEX_OUT_OF_MEMORY;
  const int32_t *sorted = sorted_nodes(l);
  l->id_of = cortex_reserve(l, ROOM_ID_OF, n, sizeof(int32_t));
  l->node_of = cortex_reserve(l, ROOM_NODE_OF, n, sizeof(int32_t));
  l->group_start = cortex_reserve(l, ROOM_GROUP_START, n, sizeof(int32_t));
  l->group_len = cortex_reserve(l, ROOM_GROUP_LEN, n, sizeof(int32_t));
  l->group_kind = cortex_reserve(l, ROOM_GROUP_KIND, n, sizeof(int32_t));
  l->kind_start = cortex_reserve(l, ROOM_KIND_START, (int64_t)kinds + 1, sizeof(int32_t));
  l->part_group = cortex_reserve(l, ROOM_PART_GROUP, CORTEX_MOST_THREADS + 1, sizeof(int32_t));
  l->sizes = cortex_reserve(l, ROOM_SIZES, CORTEX_FIRST_LIST_SIZE + 2 * (int64_t)l->d->num_lists + 4, sizeof(int64_t));
  if (!sorted || !l->id_of || !l->node_of || !l->group_start || !l->group_len || !l->group_kind || !l->kind_start ||
      !l->part_group || !l->sizes)
    return CORTEX_OUT_OF_MEMORY;

  memset(l->kind_start, 0, (size_t)(kinds + 1) * sizeof(int32_t));
  for (int64_t v = 0; v < n; ++v) ++l->kind_start[l->kind[v] + 1];
  for (int32_t k = 0; k < kinds; ++k) l->kind_start[k + 1] += l->kind_start[k];

  int64_t start = n, last = 0, part = 0;
  l->num_groups = 0;
  for (int64_t first = 0; first < n; first = last) {
    const int32_t v = sorted[first];
    if (first == 0 || (l->part && l->part[v] != l->part[sorted[first - 1]])) l->part_group[part++] = (int32_t)l->num_groups;
    for (last = first + 1; last < n && l->d->batching != CORTEX_ALONE; ++last) {
      const int32_t u = sorted[last];
      if (l->rank[u] != l->rank[v] || l->group_kind_of[u] != l->group_kind_of[v] || (l->part && l->part[u] != l->part[v]))
        break;
    }
    start -= last - first;
    for (int64_t i = first; i < last; ++i) {
      l->id_of[sorted[i]] = (int32_t)(start + i - first);
      l->node_of[start + i - first] = sorted[i];
    }
    l->group_start[l->num_groups] = (int32_t)start;
    l->group_len[l->num_groups] = (int32_t)(last - first);
    l->group_kind[l->num_groups++] = l->group_kind_of[v];
  }
  l->part_group[part] = (int32_t)l->num_groups;
  if (find_windows(l)) return CORTEX_OUT_OF_MEMORY;
  count_sizes(l);
  return CORTEX_OK;
}

int32_t cortex_num_index_arrays(const cortex_description *d) {
  const int32_t windows = d->num_windows ? 1 + d->num_windows : 0;
  return 5 + (d->shares_groups != 0) + (d->parts != 0) + windows + d->num_slots + 3 * d->num_lists + d->num_ints + 2;
}

int64_t cortex_index_rows(const cortex_description *d, int32_t number, const int64_t *sizes) {
  const int32_t after_lists = CORTEX_FIRST_LIST_SIZE + 2 * d->num_lists;
  if (number < 3) return sizes[CORTEX_NUM_GROUPS];
  if (number == 3) return (int64_t)d->num_kinds + 1;
  if (number == 4) return sizes[CORTEX_NUM_NODES];
  number -= 5;
  if (d->shares_groups && number-- == 0) return sizes[CORTEX_NUM_NODES];
  if (d->parts && number-- == 0) return sizes[after_lists] + 1;
  if (d->num_windows && number <= d->num_windows) return sizes[after_lists + (d->parts != 0)] + 1;
  if (d->num_windows) number -= 1 + d->num_windows;
  if (number < d->num_slots) return sizes[CORTEX_NUM_NODES];
  number -= d->num_slots;
  if (number < 3 * d->num_lists)
    return number % 3 == 0 ? sizes[CORTEX_NUM_NODES] + 1 : sizes[CORTEX_FIRST_LIST_SIZE + 2 * (number / 3)];
  number -= 3 * d->num_lists;
  if (number < d->num_ints) return sizes[CORTEX_NUM_NODES];
  if (number == d->num_ints) return sizes[CORTEX_NUM_ROOTS];
  return d->dedup ? sizes[after_lists + (d->parts != 0) + (d->num_windows ? 2 : 0)] : sizes[CORTEX_NUM_NODES];
}

/* Within a kind ids fall as groups run, so the groups in order give each kind's nodes from the last one down. */
static void emit_kinds(const cortex_linear *l, int32_t *kind_start, int32_t *kind_node) {
  memcpy(kind_start, l->kind_start, (size_t)(l->d->num_kinds + 1) * sizeof(int32_t));
  int32_t *place = l->kind_start; /* this copy is not needed any more */
  for (int64_t g = 0; g < l->num_groups; ++g)
    for (int32_t i = l->group_len[g]; i-- > 0;) {
      const int32_t id = l->group_start[g] + i;
      kind_node[place[l->kind[l->node_of[id]]]++] = id;
    }
}

static void emit_edges(const cortex_linear *l, int32_t *const *children, int32_t *const *lists) {
  const int32_t slots = l->d->num_slots, num_lists = l->d->num_lists;
  for (int32_t i = 0; i < num_lists; ++i) lists[3 * i][0] = 0;
  for (int64_t id = 0; id < l->n; ++id) {
    const int32_t v = l->node_of[id];
    const int32_t *edge = l->edge_child + l->edge_start[v];
    for (int32_t s = 0; s < slots; ++s, ++edge) children[s][id] = *edge < 0 ? -1 : l->id_of[*edge];
    for (int32_t i = 0; i < num_lists; ++i) {
      int32_t at = lists[3 * i][id];
      for (int32_t k = l->list_len[(int64_t)v * num_lists + i]; k > 0; --k, ++at, ++edge) {
        lists[3 * i + 1][at] = l->id_of[*edge];
        lists[3 * i + 2][at] = (int32_t)id;
      }
      lists[3 * i][id + 1] = at;
    }
  }
}

/* The fields of nodes that were merged: as they were read to compare them. */
static void emit_staged(const cortex_linear *l, int32_t *const *ints, float *const *floats) {
  const cortex_description *d = l->d;
  for (int64_t u = 0; u < l->n; ++u) {
    const float *values = l->staged_floats;
    for (int32_t f = 0; f < d->num_ints; ++f)
      ints[f][l->id_of[u]] = l->staged_ints[f * l->num_user_nodes + l->first[u]];
    for (int32_t f = 0; f < d->num_floats; ++f) {
      const int64_t elements = d->floats[f].rows * d->floats[f].columns;
      cortex_copy_rows(&d->floats[f], values + l->first[u] * elements, floats[f] + l->id_of[u] * d->floats[f].stride, 1);
      values += l->num_user_nodes * elements;
    }
  }
}

void cortex_emit(const cortex_linear *l, int32_t *const *index, float *const *floats) {
  const cortex_description *d = l->d;
  for (int64_t g = 0; g < l->num_groups; ++g) {
    index[0][g] = l->group_start[g];
    index[1][g] = l->group_len[g];
    index[2][g] = l->group_kind[g];
  }
  emit_kinds(l, index[3], index[4]);
  index += 5;
  if (d->shares_groups) {
    for (int64_t id = 0; id < l->n; ++id) index[0][id] = l->kind[l->node_of[id]];
    ++index;
  }
  if (d->parts) memcpy(*index++, l->part_group, (size_t)(l->num_parts + 1) * sizeof(int32_t));
  for (int64_t c = 0, columns = 1 + (int64_t)d->num_windows; d->num_windows && c < columns; ++c, ++index)
    for (int64_t w = 0; w <= l->num_windows; ++w) (*index)[w] = l->windows[w * columns + c];
  emit_edges(l, index, index + d->num_slots);
  index += d->num_slots + 3 * d->num_lists;
  if (l->first) emit_staged(l, index, floats);
  else cortex_fill_fields(l, index, floats, 1, l->id_of);
  index += d->num_ints;
  for (int64_t r = 0; r < l->num_roots; ++r) index[0][r] = l->id_of[l->roots[r]];
  for (int64_t v = 0; v < l->num_user_nodes; ++v) index[1][v] = l->id_of[l->unique_of ? l->unique_of[v] : v];
}
