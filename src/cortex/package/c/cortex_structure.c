/* Reading a structure: arrays are copied, checked and given heights. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cortex_internal.h"

int cortex_fail(cortex_error *error, int status, int64_t node, const char *format, ...) {
  if (error) {
    va_list arguments;
    error->status = status;
    error->node = node;
    va_start(arguments, format);
    vsnprintf(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
  }
  return status;
}

void *cortex_reserve(cortex_linear *l, enum cortex_use use, int64_t count, size_t each) {
  cortex_room *room = &l->rooms[use];
  const uint64_t wanted = (uint64_t)count * each + 1;
  if (count < 0 || (uint64_t)count > (uint64_t)(PTRDIFF_MAX / 2) / each) {
    cortex_fail(l->error, CORTEX_OUT_OF_MEMORY, -1, "%lld elements are more than memory holds", (long long)count);
    return NULL;
  }
  if (room->bytes < wanted) {
    free(room->at);
    room->bytes = 0;
    room->at = malloc((size_t)(wanted + wanted / 2));
    if (!room->at) {
      cortex_fail(l->error, CORTEX_OUT_OF_MEMORY, -1, "cannot allocate %llu bytes", (unsigned long long)wanted);
      return NULL;
    }
    room->bytes = (size_t)(wanted + wanted / 2);
  }
  return room->at;
}

void cortex_forget(cortex_linear *l) {
  for (int i = 0; i < NUM_ROOMS; ++i) free(l->rooms[i].at);
  memset(l->rooms, 0, sizeof l->rooms);
}

static int check_list(cortex_linear *l, const cortex_list *list) {
  const int64_t n = l->n;
  if (!list->pointer || (!list->index && list->num_edges > 0))
    return cortex_fail(l->error, CORTEX_BAD_ARGUMENT, -1, "a list of children is NULL");
  if (list->num_edges < 0 || list->num_edges > INT32_MAX)
    return cortex_fail(l->error, CORTEX_TOO_LARGE, -1, "%lld edges; at most 2147483647", (long long)list->num_edges);
  if (list->pointer[0] != 0 || list->pointer[n] != list->num_edges)
    return cortex_fail(l->error, CORTEX_NO_SUCH_NODE, -1, "pointers must rise from 0 to the number of edges (%lld)",
                       (long long)list->num_edges);
  for (int64_t v = 0; v < n; ++v)
    if (list->pointer[v] > list->pointer[v + 1])
      return cortex_fail(l->error, CORTEX_NO_SUCH_NODE, v, "the pointers of a list fall after node %lld", (long long)v);
  return CORTEX_OK;
}

/* Lay out the edges of every node together. */
static int lay_out(cortex_linear *l) {
  const cortex_description *d = l->d;
  const int64_t n = l->n;
  int64_t edges = n * d->num_slots;
  for (int32_t s = 0; s < d->num_slots; ++s)
    if (!l->in->slots[s]) return cortex_fail(l->error, CORTEX_BAD_ARGUMENT, -1, "an array of children is NULL");
  for (int32_t i = 0; i < d->num_lists; ++i) {
    const int status = check_list(l, &l->in->lists[i]);
    if (status) return status;
    edges += l->in->lists[i].num_edges;
  }
  if (edges > INT32_MAX)
    return cortex_fail(l->error, CORTEX_TOO_LARGE, -1, "%lld edges; at most 2147483647", (long long)edges);
  l->edge_start = cortex_reserve(l, ROOM_EDGE_START, n + 1, sizeof(int64_t));
  l->edge_child = cortex_reserve(l, ROOM_EDGE_CHILD, edges, sizeof(int32_t));
  l->list_len = cortex_reserve(l, ROOM_LIST_LENGTH, n * d->num_lists, sizeof(int32_t));
  if (!l->edge_start || !l->edge_child || !l->list_len) return CORTEX_OUT_OF_MEMORY;
  int64_t at = 0;
  for (int64_t v = 0; v < n; ++v) {
    l->edge_start[v] = at;
    for (int32_t s = 0; s < d->num_slots; ++s) l->edge_child[at++] = l->in->slots[s][v];
    for (int32_t i = 0; i < d->num_lists; ++i) {
      const cortex_list *list = &l->in->lists[i];
      for (int64_t e = list->pointer[v]; e < list->pointer[v + 1]; ++e) {
        if (list->index[e] < 0)
          return cortex_fail(l->error, CORTEX_NO_SUCH_NODE, v, "a list of node %lld holds %ld, which is no node",
                             (long long)v, (long)list->index[e]);
        l->edge_child[at++] = list->index[e];
      }
      l->list_len[v * d->num_lists + i] = list->pointer[v + 1] - list->pointer[v];
    }
  }
  l->edge_start[n] = at;
  return CORTEX_OK;
}

static void find_height(cortex_linear *l, int64_t v) {
  int32_t height = -1;
  for (int64_t e = l->edge_start[v]; e < l->edge_start[v + 1]; ++e) {
    const int32_t child = l->edge_child[e];
    if (child >= 0 && l->height[child] > height) height = l->height[child];
  }
  l->height[v] = height + 1;
}

/* Heights where children stand on both sides of their parents: depth first, with a stack of our own. */
static int find_heights_in_any_order(cortex_linear *l) {
  enum { NEW = -1, OPEN = -2 };
  int32_t *stack = cortex_reserve(l, ROOM_STACK, l->n, sizeof(int32_t));
  int64_t *next = cortex_reserve(l, ROOM_NEXT, l->n, sizeof(int64_t));
  if (!stack || !next) return CORTEX_OUT_OF_MEMORY;
  for (int64_t v = 0; v < l->n; ++v) l->height[v] = NEW;
  for (int64_t top = 0; top < l->n; ++top) {
    int64_t depth = 0;
    if (l->height[top] != NEW) continue;
    l->height[top] = OPEN;
    stack[depth] = (int32_t)top;
    next[depth++] = l->edge_start[top];
    while (depth > 0) {
      const int32_t v = stack[depth - 1];
      int64_t *edge = &next[depth - 1];
      int32_t child = -1;
      while (*edge < l->edge_start[v + 1]) {
        child = l->edge_child[(*edge)++];
        if (child >= 0 && l->height[child] < 0) break;
        child = -1;
      }
      if (child < 0) {
        find_height(l, v);
        --depth;
      } else if (l->height[child] == OPEN) {
        return cortex_fail(l->error, CORTEX_CYCLE, child, "node %ld is below itself", (long)child);
      } else {
        l->height[child] = OPEN;
        stack[depth] = child;
        next[depth++] = l->edge_start[child];
      }
    }
  }
  return CORTEX_OK;
}

static int find_heights(cortex_linear *l) {
  const int64_t n = l->n;
  int before = 1, after = 1;
  for (int64_t v = 0; v < n; ++v)
    for (int64_t e = l->edge_start[v]; e < l->edge_start[v + 1]; ++e) {
      const int32_t child = l->edge_child[e];
      if (child < -1 || child >= n)
        return cortex_fail(l->error, CORTEX_NO_SUCH_NODE, v, "node %lld has the child %ld; there are nodes 0 to %lld",
                           (long long)v, (long)child, (long long)n - 1);
      before &= child < v;
      after &= child == -1 || child > v;
    }
  if (!before && !after) return find_heights_in_any_order(l);
  for (int64_t v = 0; v < n; ++v) find_height(l, before ? v : n - 1 - v);
  return CORTEX_OK;
}

/* The roots that are given, or the nodes that are nobody's child. */
static int find_roots(cortex_linear *l) {
  const int64_t n = l->n;
  if (l->in->roots) {
    if (l->in->num_roots < 0 || l->in->num_roots > INT32_MAX)
      return cortex_fail(l->error, CORTEX_TOO_LARGE, -1, "%lld roots", (long long)l->in->num_roots);
    l->num_roots = l->in->num_roots;
    l->roots = cortex_reserve(l, ROOM_ROOTS, l->num_roots, sizeof(int32_t));
    if (!l->roots) return CORTEX_OUT_OF_MEMORY;
    for (int64_t r = 0; r < l->num_roots; ++r) {
      l->roots[r] = l->in->roots[r];
      if (l->roots[r] < 0 || l->roots[r] >= n)
        return cortex_fail(l->error, CORTEX_NO_SUCH_NODE, -1, "root %lld is %ld; there are nodes 0 to %lld",
                           (long long)r, (long)l->roots[r], (long long)n - 1);
    }
    return CORTEX_OK;
  }
  l->roots = cortex_reserve(l, ROOM_ROOTS, n, sizeof(int32_t));
  uint8_t *below = cortex_reserve(l, ROOM_STACK, n, 1);
  if (!l->roots || !below) return CORTEX_OUT_OF_MEMORY;
  memset(below, 0, (size_t)n);
  for (int64_t e = 0; e < l->edge_start[n]; ++e)
    if (l->edge_child[e] >= 0) below[l->edge_child[e]] = 1;
  l->num_roots = 0;
  for (int64_t v = 0; v < n; ++v)
    if (!below[v]) l->roots[l->num_roots++] = (int32_t)v;
  return CORTEX_OK;
}

int cortex_read_structure(cortex_linear *l) {
  const int64_t n = l->in->num_nodes;
  if (n < 0) return cortex_fail(l->error, CORTEX_BAD_ARGUMENT, -1, "a forest of %lld nodes", (long long)n);
  if (n > INT32_MAX) return cortex_fail(l->error, CORTEX_TOO_LARGE, -1, "%lld nodes; at most 2147483647", (long long)n);
  l->n = l->num_user_nodes = n;
  l->unique_of = l->first = NULL;
  l->demand = NULL;
  l->height = cortex_reserve(l, ROOM_HEIGHT, n, sizeof(int32_t));
  if (!l->height) return CORTEX_OUT_OF_MEMORY;
  int status = lay_out(l);
  if (!status) status = find_heights(l);
  if (!status) status = find_roots(l);
  return status;
}

int cortex_children_of_parents(int64_t num_nodes, const int32_t *parents, int32_t *pointer, int32_t *index,
                               cortex_error *error) {
  if (num_nodes < 0 || num_nodes > INT32_MAX)
    return cortex_fail(error, CORTEX_TOO_LARGE, -1, "a forest of %lld nodes", (long long)num_nodes);
  if (!pointer || (num_nodes > 0 && (!parents || !index)))
    return cortex_fail(error, CORTEX_BAD_ARGUMENT, -1, "an array is NULL");
  int64_t children = 0;
  for (int64_t v = 0; v <= num_nodes; ++v) pointer[v] = 0;
  for (int64_t v = 0; v < num_nodes; ++v) {
    if (parents[v] < -1 || parents[v] >= num_nodes)
      return cortex_fail(error, CORTEX_NO_SUCH_NODE, v, "node %lld has the parent %ld; there are nodes 0 to %lld",
                         (long long)v, (long)parents[v], (long long)num_nodes - 1);
    if (parents[v] < 0) continue;
    ++pointer[parents[v] + 1];
    ++children;
  }
  for (int64_t v = 0; v < num_nodes; ++v) pointer[v + 1] += pointer[v];
  /* From the last child down, each takes the last free place of its parent. */
  for (int64_t v = num_nodes; v-- > 0;)
    if (parents[v] >= 0) index[--pointer[parents[v] + 1]] = (int32_t)v;
  /* Now pointer[p + 1] is where the children of p begin. */
  for (int64_t v = 0; v < num_nodes; ++v) pointer[v] = pointer[v + 1];
  pointer[num_nodes] = (int32_t)children;
  return CORTEX_OK;
}
