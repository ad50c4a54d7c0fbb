/* A request from arrays to states: linearize, place all memory, run, give the results. */
#include <stdlib.h>
#include <string.h>

#include "cortex_internal.h"

struct cortex_session {
  const cortex_description *description;
  const cortex_model *model;
  cortex_team *team;
  int64_t threads;
  cortex_linear linear;
  char *memory;
  size_t capacity;
  size_t *offsets; /* of index arrays, float fields and states, then of all arguments */
  int32_t **index;
  float **floats; /* fields, then states */
  void **arguments;
  int64_t *sizes;
};

static const char *const NAMES[] = {
    "CORTEX_OK",          "CORTEX_OUT_OF_MEMORY", "CORTEX_BAD_ARGUMENT", "CORTEX_NO_FILE",
    "CORTEX_BAD_WEIGHTS", "CORTEX_OTHER_WEIGHTS", "CORTEX_TOO_LARGE",    "CORTEX_NO_SUCH_NODE",
    "CORTEX_CYCLE",       "CORTEX_UNKNOWN_KIND",  "CORTEX_NO_CHILD",     "CORTEX_NO_FIELD",
    "CORTEX_FIELD_RANGE",
};

const char *cortex_status_name(int status) {
  return status >= 0 && status < (int)(sizeof NAMES / sizeof *NAMES) ? NAMES[status] : "no status";
}

/* Index arrays, float fields and states stand before the arguments. */
static int32_t num_fixed(const cortex_description *d) {
  return cortex_num_index_arrays(d) + d->num_floats + d->num_states;
}

int cortex_open(const cortex_description *description, const cortex_model *model, int threads,
                cortex_session **session, cortex_error *error) {
  if (!session) return cortex_fail(error, CORTEX_BAD_ARGUMENT, -1, "a pointer is NULL");
  *session = NULL;
  if (!model || model->description != description)
    return cortex_fail(error, CORTEX_BAD_ARGUMENT, -1, "these are not the weights of %s", description->name);
  if (threads < 1 || threads > CORTEX_MOST_THREADS)
    return cortex_fail(error, CORTEX_BAD_ARGUMENT, -1, "%d threads; it may be 1 to %d", threads, CORTEX_MOST_THREADS);
  cortex_session *s = calloc(1, sizeof *s);
  if (!s) return cortex_fail(error, CORTEX_OUT_OF_MEMORY, -1, "cannot allocate a session");
  const size_t blocks = (size_t)(num_fixed(description) + description->num_arguments) + 1;
  s->description = description;
  s->model = model;
  s->threads = description->for_team ? threads : 1;
  s->offsets = calloc(blocks, sizeof *s->offsets);
  s->index = calloc(blocks, sizeof *s->index);
  s->floats = calloc(blocks, sizeof *s->floats);
  s->arguments = calloc((size_t)description->num_arguments + 1, sizeof *s->arguments);
  /* Code looks at the word behind its sizes to see whether to stop. It is 0 for good: nobody stops it. */
  s->sizes = calloc((size_t)description->num_sizes + 1, sizeof *s->sizes);
  if (!s->offsets || !s->index || !s->floats || !s->arguments || !s->sizes ||
      (s->threads > 1 && cortex_new_team((int)s->threads, &s->team) != CORTEX_OK)) {
    cortex_close(s);
    return cortex_fail(error, CORTEX_OUT_OF_MEMORY, -1, "cannot allocate a session");
  }
  *session = s;
  return CORTEX_OK;
}

void cortex_close(cortex_session *session) {
  if (!session) return;
  cortex_end_team(session->team);
  cortex_forget(&session->linear);
  free(session->memory);
  free(session->offsets);
  free(session->index);
  free(session->floats);
  free(session->arguments);
  free(session->sizes);
  free(session);
}

static int linearize(cortex_linear *l, int64_t parts) {
  int status = cortex_read_structure(l);
  if (!status) status = cortex_classify(l);
  if (!status && l->d->dedup) {
    status = cortex_check_fields(l);
    if (!status) status = cortex_merge_equals(l);
  }
  if (!status) status = cortex_choose_variants(l);
  if (!status && !l->d->dedup) status = cortex_check_fields(l);
  if (!status) status = cortex_number(l, parts);
  return status;
}

/* Add an array of 4-byte elements to `total`, on a line of its own and with room to read past its end. */
static int add_block(size_t *total, size_t *offset, int64_t rows, int64_t elements, int64_t copies) {
  const uint64_t most = PTRDIFF_MAX / 8;
  uint64_t count = (uint64_t)rows;
  *offset = *total;
  if (elements > 0 && count > most / (uint64_t)elements) return 0;
  count *= (uint64_t)elements;
  if (copies > 0 && count > most / (uint64_t)copies) return 0;
  count *= (uint64_t)copies;
  const uint64_t bytes = (count * 4 + 2 * CORTEX_LINE - 1) / CORTEX_LINE * CORTEX_LINE;
  if (bytes > most - *total) return 0;
  *total += (size_t)bytes;
  return 1;
}

/* Place all arrays of a request in one piece of memory. */
static int place(cortex_session *s) {
  const cortex_description *d = s->description;
  const int64_t *sizes = s->linear.sizes;
  const int32_t index_arrays = cortex_num_index_arrays(d), fixed = num_fixed(d);
  size_t total = 0;
  int fits = 1;
  for (int32_t i = 0; i < index_arrays; ++i)
    fits = fits && add_block(&total, &s->offsets[i], cortex_index_rows(d, i, sizes), 1, 1);
  for (int32_t i = 0; i < d->num_floats; ++i)
    fits = fits && add_block(&total, &s->offsets[index_arrays + i], s->linear.n, d->floats[i].stride, 1);
  for (int32_t i = 0; i < d->num_states; ++i)
    fits = fits && add_block(&total, &s->offsets[index_arrays + d->num_floats + i], s->linear.n, d->states[i].stride, 1);
  for (int32_t i = 0; i < d->num_arguments; ++i) {
    const cortex_argument *a = &d->arguments[i];
    const int64_t rows = a->rows < 0 ? 1 : sizes[a->rows];
    const int64_t copies = a->what == CORTEX_PRIVATE ? s->threads : a->copies < 0 ? 1 : sizes[a->copies];
    if (a->what == CORTEX_SCRATCH || a->what == CORTEX_PRIVATE)
      fits = fits && add_block(&total, &s->offsets[fixed + i], rows, a->elements, copies);
  }
  if (fits && total > s->capacity) {
    free(s->memory);
    s->capacity = 0;
    s->memory = aligned_alloc(CORTEX_LINE, total);
    if (s->memory) s->capacity = total;
  }
  if (!fits || (total > 0 && !s->memory))
    return cortex_fail(s->linear.error, CORTEX_OUT_OF_MEMORY, -1, "not enough memory for a request of %lld nodes",
                       (long long)s->linear.n);
  for (int32_t i = 0; i < index_arrays; ++i) s->index[i] = (int32_t *)(void *)(s->memory + s->offsets[i]);
  for (int32_t i = index_arrays; i < fixed; ++i)
    s->floats[i - index_arrays] = (float *)(void *)(s->memory + s->offsets[i]);
  return CORTEX_OK;
}

static void set_arguments(cortex_session *s) {
  const cortex_description *d = s->description;
  for (int32_t i = 0; i < d->num_arguments; ++i) {
    const cortex_argument *a = &d->arguments[i];
    switch (a->what) {
      case CORTEX_INDEX:
        s->arguments[i] = s->index[a->number];
        break;
      case CORTEX_FIELD:
        s->arguments[i] = s->floats[a->number];
        break;
      case CORTEX_WEIGHT:
        s->arguments[i] = s->model->weights[a->number];
        break;
      case CORTEX_STATE:
        s->arguments[i] = s->floats[d->num_floats + a->number];
        break;
      default:
        s->arguments[i] = s->memory + s->offsets[num_fixed(d) + i];
    }
  }
  for (int32_t i = 0; i < d->num_sizes; ++i) s->sizes[i] = s->linear.sizes[d->sizes[i]];
}

/* The rows of a state at the nodes that an index array names, without padding. */
static void gather(const cortex_state *state, const float *from, const int32_t *index, int64_t count, float *to) {
  const int64_t pitch = state->rows > 0 ? state->stride / state->rows : 0;
  for (int64_t i = 0; i < count; ++i)
    for (int64_t r = 0; r < state->rows; ++r, to += state->columns)
      memcpy(to, from + index[i] * state->stride + r * pitch, (size_t)state->columns * sizeof(float));
}

static void give_results(const cortex_session *s, cortex_results *results) {
  const cortex_description *d = s->description;
  const int32_t index_arrays = cortex_num_index_arrays(d);
  const int32_t *root = s->index[index_arrays - 2], *order = s->index[index_arrays - 1];
  for (int32_t i = 0; i < d->num_states; ++i) {
    const float *from = s->floats[d->num_floats + i];
    if (results->roots[i]) gather(&d->states[i], from, root, s->linear.num_roots, results->roots[i]);
    if (results->nodes[i]) gather(&d->states[i], from, order, s->linear.num_user_nodes, results->nodes[i]);
  }
}

int cortex_run(const cortex_description *description, cortex_session *session, const cortex_request *request,
               cortex_results *results, cortex_error *error) {
  const cortex_description *d = description;
  cortex_session *s = session;
  if (!s || s->description != d)
    return cortex_fail(error, CORTEX_BAD_ARGUMENT, -1, "this is no session of %s", d->name);
  cortex_linear *l = &s->linear;
  cortex_error own;
  l->d = d;
  l->in = request;
  l->error = error ? error : &own;
  int status = linearize(l, s->threads);
  if (status) return status;
  int wants_roots = 0;
  for (int32_t i = 0; i < d->num_states; ++i) wants_roots |= results->roots[i] != NULL;
  if (wants_roots && results->room < l->num_roots)
    return cortex_fail(error, CORTEX_BAD_ARGUMENT, -1, "there is room for %lld roots, and there are %lld",
                       (long long)results->room, (long long)l->num_roots);
  results->num_roots = l->num_roots;
  if (l->n == 0) return CORTEX_OK;
  status = place(s);
  if (status) return status;
  cortex_emit(l, s->index, s->floats);
  set_arguments(s);
  cortex_run_on_team(s->team, d->entry, s->arguments, s->sizes, s->threads);
  give_results(s, results);
  if (error) {
    error->status = CORTEX_OK;
    error->node = -1;
    error->message[0] = 0;
  }
  return CORTEX_OK;
}
