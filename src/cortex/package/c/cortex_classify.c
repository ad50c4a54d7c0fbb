/* The kind of every node, by the model's decision tree; and the fields that its code reads, and only those. */
#include <math.h>
#include <string.h>

#include "cortex_internal.h"

int32_t cortex_follow(const cortex_linear *l, const cortex_path *path, int32_t node) {
  for (int32_t i = 0; i < path->length; ++i) {
    const cortex_hop *hop = &path->hops[i];
    int64_t edge = l->edge_start[node];
    if (hop->kind == CORTEX_SLOT) {
      edge += hop->relation;
    } else {
      const int32_t *length = l->list_len + (int64_t)node * l->d->num_lists;
      if (hop->index >= length[hop->relation]) return -1;
      edge += l->d->num_slots + hop->index;
      for (int32_t k = 0; k < hop->relation; ++k) edge += length[k];
    }
    node = l->edge_child[edge];
    if (node < 0) return -1;
  }
  return node;
}

static int is_present(const cortex_column *column, int64_t node) {
  return column->values && (!column->present || column->present[node]);
}

static int32_t answer(const cortex_linear *l, const cortex_test *test, int32_t node) {
  int64_t integer = 0;
  double number = 0;
  const cortex_column *column = NULL;
  node = cortex_follow(l, &test->path, node);
  if (node < 0) return -1;
  switch (test->subject) {
    case CORTEX_OF_NODE:
      integer = l->height[node];
      break;
    case CORTEX_OF_SLOT:
      return l->edge_child[l->edge_start[node] + test->number] < 0 ? test->none : test->otherwise;
    case CORTEX_OF_LIST:
      integer = l->list_len[(int64_t)node * l->d->num_lists + test->number];
      break;
    default:
      column = &l->in->columns[test->number];
      if (!is_present(column, node)) return test->none;
      if (test->num_answers == 0) return test->otherwise; /* a column of which only this is asked has no values */
      if (test->subject >= CORTEX_OF_NUMBERS) number = ((const float *)column->values)[node];
      else integer = ((const int64_t *)column->values)[node];
      if (test->subject == CORTEX_OF_COUNT)
        integer = integer == l->list_len[(int64_t)node * l->d->num_lists + test->list];
  }
  for (int32_t i = 0; i < test->num_answers; ++i) {
    const cortex_answer *known = &test->answers[i];
    int fits = 0;
    switch (test->subject) {
      case CORTEX_OF_NUMBERS: fits = number == known->number; break;
      case CORTEX_OF_LOW_NUMBERS: fits = number <= known->number; break;
      case CORTEX_OF_HIGH_NUMBERS: fits = number >= known->number; break;
      case CORTEX_OF_SAME_NUMBERS: fits = number == known->number && !signbit(number) == !signbit(known->number); break;
      case CORTEX_OF_LOW_INTEGERS: fits = integer <= known->integer; break;
      case CORTEX_OF_HIGH_INTEGERS: fits = integer >= known->integer; break;
      default: fits = integer == known->integer;
    }
    if (fits) return known->branch;
  }
  return test->otherwise;
}

/* Is the kind of a node right for the numbers of children that it has? */
static int is_checked(const cortex_linear *l, const cortex_kind *kind, int64_t node) {
  const int32_t *length = l->list_len + node * l->d->num_lists;
  int64_t entry = 0;
  for (int32_t i = 0; i < kind->num_lengths; ++i) {
    const int32_t n = length[kind->lengths[i]];
    entry = entry * (kind->most + 1) + (n < kind->most ? n : kind->most);
  }
  if (kind->num_lengths == 0) return 1;
  for (int32_t i = 0; i < kind->num_checked; ++i)
    if (kind->checked[i].from <= entry && entry < kind->checked[i].to) return 1;
  return 0;
}

int cortex_classify(cortex_linear *l) {
  l->kind = cortex_reserve(l, ROOM_KIND, l->n, sizeof(int32_t));
  if (!l->kind) return CORTEX_OUT_OF_MEMORY;
  for (int64_t v = 0; v < l->n; ++v) {
    int32_t branch = l->d->tree;
    while (branch >= 0) branch = answer(l, &l->d->tests[branch], (int32_t)v);
    if (branch == -1)
      return cortex_fail(l->error, CORTEX_UNKNOWN_KIND, v, "node %lld is of a kind that no example had; export the "
                         "model with examples of it", (long long)v);
    l->kind[v] = -2 - branch;
    if (!is_checked(l, &l->d->kinds[l->kind[v]], v))
      return cortex_fail(l->error, CORTEX_UNKNOWN_KIND, v, "node %lld has a number of children that the model was not "
                         "checked for; export the model with an example of it", (long long)v);
  }
  return CORTEX_OK;
}

/* Call for every node that `path` reaches: mark the field of it as read, unless that is -1. */
static int reach(cortex_linear *l, const cortex_path *path, int32_t from, int32_t field) {
  cortex_path rest = *path;
  if (rest.length == 0) {
    if (field >= 0) l->demand[(int64_t)from * (l->d->num_ints + l->d->num_floats) + field] = 1;
    return CORTEX_OK;
  }
  cortex_hop hop = *rest.hops;
  const cortex_path first = {1, &hop};
  --rest.length;
  ++rest.hops;
  if (hop.kind == CORTEX_EACH) {
    const int32_t length = l->list_len[(int64_t)from * l->d->num_lists + hop.relation];
    hop.kind = CORTEX_ITEM;
    for (hop.index = 0; hop.index < length; ++hop.index) {
      const int status = reach(l, &rest, cortex_follow(l, &first, from), field);
      if (status) return status;
    }
    return CORTEX_OK;
  }
  const int32_t next = cortex_follow(l, &first, from);
  if (next < 0)
    return cortex_fail(l->error, CORTEX_NO_CHILD, from, "the model recurses into a child that node %ld has not",
                       (long)from);
  return reach(l, &rest, next, field);
}

static int is_read(const cortex_linear *l, int64_t node, int32_t field) {
  if (l->demand && l->demand[node * (l->d->num_ints + l->d->num_floats) + field]) return 1;
  const cortex_kind *kind = &l->d->kinds[l->kind[node]];
  for (int32_t i = 0; i < kind->num_uses; ++i)
    if (kind->uses[i] == field) return 1;
  return 0;
}

static int check_field(cortex_linear *l, int32_t field) {
  const cortex_description *d = l->d;
  const cortex_int_field *as_int = field < d->num_ints ? &d->ints[field] : NULL;
  const cortex_float_field *as_float = as_int ? NULL : &d->floats[field - d->num_ints];
  const char *name = as_int ? as_int->name : as_float->name;
  const cortex_column *column = &l->in->columns[as_int ? as_int->column : as_float->column];
  for (int64_t v = 0; v < l->n; ++v) {
    if (!is_read(l, v, field)) continue;
    if (!is_present(column, v))
      return cortex_fail(l->error, CORTEX_NO_FIELD, v, "the model reads the field %s of node %lld, which is not given",
                         name, (long long)v);
    if (!as_int) continue;
    const int64_t value = ((const int64_t *)column->values)[v];
    if (as_int->limited ? value < 0 || value >= as_int->limit : value < INT32_MIN || value > INT32_MAX)
      return cortex_fail(l->error, CORTEX_FIELD_RANGE, v, "field %s of node %lld is %lld; it must be from %lld to %lld",
                         name, (long long)v, (long long)value, as_int->limited ? 0LL : (long long)INT32_MIN,
                         as_int->limited ? (long long)as_int->limit - 1 : (long long)INT32_MAX);
  }
  return CORTEX_OK;
}

int cortex_check_fields(cortex_linear *l) {
  const cortex_description *d = l->d;
  const int32_t fields = d->num_ints + d->num_floats;
  l->demand = NULL;
  if (d->has_reads) {
    l->demand = cortex_reserve(l, ROOM_DEMAND, l->n * fields, 1);
    if (!l->demand) return CORTEX_OUT_OF_MEMORY;
    memset(l->demand, 0, (size_t)l->n * (size_t)fields);
  }
  for (int64_t v = 0; v < l->n; ++v) {
    const cortex_kind *kind = &d->kinds[l->kind[v]];
    int status = CORTEX_OK;
    for (int32_t i = 0; i < kind->num_needs && !status; ++i) status = reach(l, &kind->needs[i], (int32_t)v, -1);
    for (int32_t i = 0; i < kind->num_reads && !status; ++i)
      status = reach(l, &kind->reads[i].path, (int32_t)v, kind->reads[i].field);
    if (status) return status;
  }
  for (int32_t f = 0; f < fields; ++f) {
    const int status = check_field(l, f);
    if (status) return status;
  }
  return CORTEX_OK;
}

void cortex_copy_rows(const cortex_float_field *field, const float *from, float *to, int padded) {
  const int64_t pitch = padded && field->rows > 0 ? field->stride / field->rows : field->columns;
  for (int64_t r = 0; r < field->rows; ++r)
    memcpy(to + r * pitch, from + r * field->columns, (size_t)field->columns * sizeof(float));
}

void cortex_fill_fields(const cortex_linear *l, int32_t *const *ints, float *const *floats, int padded,
                        const int32_t *place) {
  const cortex_description *d = l->d;
  for (int32_t f = 0; f < d->num_ints; ++f) {
    const int64_t *values = l->in->columns[d->ints[f].column].values;
    for (int64_t v = 0; v < l->n; ++v)
      ints[f][place ? place[v] : v] = is_read(l, v, f) ? (int32_t)values[v] : 0;
  }
  for (int32_t f = 0; f < d->num_floats; ++f) {
    const cortex_float_field *field = &d->floats[f];
    const float *values = l->in->columns[field->column].values;
    const int64_t elements = field->rows * field->columns, stride = padded ? field->stride : elements;
    memset(floats[f], 0, (size_t)(l->n * stride) * sizeof(float));
    for (int64_t v = 0; v < l->n; ++v)
      if (is_read(l, v, d->num_ints + f))
        cortex_copy_rows(field, values + v * elements, floats[f] + (place ? place[v] : v) * stride, padded);
  }
}
