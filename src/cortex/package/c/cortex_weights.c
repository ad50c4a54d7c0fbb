/* Reading the weights: a safetensors file, of which nothing is believed before it is checked. */
#define _POSIX_C_SOURCE 200809L

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "cortex_internal.h"

enum { NAME_ROOM = 256, DEEPEST = 16 };
static const uint64_t MOST_HEADER = 100u << 20;

typedef struct {
  const char *at, *end;
} cursor;

static void skip_space(cursor *c) {
  while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\r' || *c->at == '\t')) ++c->at;
}

static int take(cursor *c, char wanted) {
  skip_space(c);
  if (c->at >= c->end || *c->at != wanted) return 0;
  ++c->at;
  return 1;
}

/* A string; one that is too long, or has anything but plain ASCII, which ours have not, is read as the empty one. */
static int take_string(cursor *c, char *text) {
  size_t length = 0;
  int ours = 1;
  if (!take(c, '"')) return 0;
  for (; c->at < c->end && *c->at != '"'; ++c->at) {
    if (*c->at == '\\') {
      ours = 0;
      if (++c->at >= c->end) return 0;
    }
    if (*c->at < ' ' || *c->at > '~') ours = 0;
    if (length + 1 < NAME_ROOM) text[length++] = *c->at;
    else ours = 0;
  }
  text[ours ? length : 0] = 0;
  return take(c, '"');
}

static int take_number(cursor *c, uint64_t *number) {
  skip_space(c);
  if (c->at >= c->end || *c->at < '0' || *c->at > '9') return 0;
  for (*number = 0; c->at < c->end && *c->at >= '0' && *c->at <= '9'; ++c->at) {
    if (*number > (UINT64_MAX - 9) / 10) return 0;
    *number = *number * 10 + (uint64_t)(*c->at - '0');
  }
  return 1;
}

/* Any value: strings, numbers, arrays and objects of them. */
static int skip_value(cursor *c, int depth) {
  char text[NAME_ROOM];
  uint64_t number;
  skip_space(c);
  if (c->at >= c->end || depth > DEEPEST) return 0;
  if (*c->at == '"') return take_string(c, text);
  if (*c->at != '[' && *c->at != '{') return take_number(c, &number);
  const int is_object = *c->at == '{';
  const char close = is_object ? '}' : ']';
  ++c->at;
  if (take(c, close)) return 1;
  do {
    if (is_object && !(take_string(c, text) && take(c, ':'))) return 0;
    if (!skip_value(c, depth + 1)) return 0;
  } while (take(c, ','));
  return take(c, close);
}

typedef struct {
  char dtype[NAME_ROOM];
  uint64_t begin, end;
} tensor;

static int take_tensor(cursor *c, tensor *t) {
  char key[NAME_ROOM];
  int has_dtype = 0, has_offsets = 0;
  if (!take(c, '{')) return 0;
  do {
    if (!take_string(c, key) || !take(c, ':')) return 0;
    if (strcmp(key, "dtype") == 0) {
      if (!take_string(c, t->dtype)) return 0;
      has_dtype = 1;
    } else if (strcmp(key, "data_offsets") == 0) {
      if (!take(c, '[') || !take_number(c, &t->begin) || !take(c, ',') || !take_number(c, &t->end) || !take(c, ']'))
        return 0;
      has_offsets = 1;
    } else if (!skip_value(c, 0)) {
      return 0;
    }
  } while (take(c, ','));
  return take(c, '}') && has_dtype && has_offsets && t->begin <= t->end;
}

/* Is the fingerprint among the strings about the file the one we want? -1: this is no such object. */
static int take_metadata(cursor *c, const char *fingerprint) {
  char key[NAME_ROOM], value[NAME_ROOM];
  int same = 0;
  if (!take(c, '{')) return -1;
  if (take(c, '}')) return 0;
  do {
    if (!take_string(c, key) || !take(c, ':') || !take_string(c, value)) return -1;
    if (strcmp(key, "fingerprint") == 0) same = strcmp(value, fingerprint) == 0;
  } while (take(c, ','));
  return take(c, '}') ? same : -1;
}

/* Find all weights: where each one begins in the file's data, which has `size` bytes. */
static int read_header(cursor c, const cortex_description *d, uint64_t size, uint64_t *begins, cortex_error *error) {
  char name[NAME_ROOM];
  int is_ours = 0;
  if (!take(&c, '{')) return cortex_fail(error, CORTEX_BAD_WEIGHTS, -1, "the header is no JSON object");
  do {
    if (!take_string(&c, name) || !take(&c, ':')) return cortex_fail(error, CORTEX_BAD_WEIGHTS, -1, "a name is damaged");
    if (strcmp(name, "__metadata__") == 0) {
      const int same = take_metadata(&c, d->fingerprint);
      if (same < 0) return cortex_fail(error, CORTEX_BAD_WEIGHTS, -1, "the header's metadata is damaged");
      is_ours |= same;
      continue;
    }
    tensor t;
    if (!take_tensor(&c, &t)) return cortex_fail(error, CORTEX_BAD_WEIGHTS, -1, "the header is damaged at '%.60s'", name);
    if (t.end > size)
      return cortex_fail(error, CORTEX_BAD_WEIGHTS, -1, "the file ends before the tensor '%.60s'", name);
    for (int32_t i = 0; i < d->num_weights; ++i) {
      const cortex_weight *w = &d->weights[i];
      if (!w->name || strcmp(w->name, name) != 0) continue;
      if (strcmp(w->dtype, t.dtype) != 0 || (int64_t)(t.end - t.begin) != w->bytes)
        return cortex_fail(error, CORTEX_OTHER_WEIGHTS, -1, "the tensor '%.60s' has %llu bytes of %.8s, not %lld of %s",
                           name, (unsigned long long)(t.end - t.begin), t.dtype, (long long)w->bytes, w->dtype);
      begins[i] = t.begin;
    }
  } while (take(&c, ','));
  if (!take(&c, '}')) return cortex_fail(error, CORTEX_BAD_WEIGHTS, -1, "the header has no end");
  for (int32_t i = 0; i < d->num_weights; ++i)
    if (d->weights[i].name && begins[i] == UINT64_MAX)
      return cortex_fail(error, CORTEX_OTHER_WEIGHTS, -1, "there is no tensor '%.60s'", d->weights[i].name);
  if (!is_ours) return cortex_fail(error, CORTEX_OTHER_WEIGHTS, -1, "these weights are of another export of %s", d->name);
  return CORTEX_OK;
}

static int read_at(FILE *file, uint64_t offset, void *to, uint64_t bytes) {
  if (offset > INT64_MAX || fseeko(file, (off_t)offset, SEEK_SET) != 0) return 0;
  return fread(to, 1, (size_t)bytes, file) == bytes;
}

static size_t room_of(int64_t bytes) {
  return ((size_t)bytes + 2 * CORTEX_LINE - 1) / CORTEX_LINE * CORTEX_LINE;
}

/* Memory for all weights, each on a line of the cache of its own with room to read past its end. */
static cortex_model *new_model(const cortex_description *d) {
  size_t total = CORTEX_LINE;
  for (int32_t i = 0; i < d->num_weights; ++i) total += room_of(d->weights[i].bytes);
  cortex_model *model = calloc(1, sizeof *model);
  if (!model) return NULL;
  model->description = d;
  model->memory = aligned_alloc(CORTEX_LINE, total);
  model->weights = calloc((size_t)d->num_weights + 1, sizeof *model->weights);
  if (!model->memory || !model->weights) {
    cortex_unload(model);
    return NULL;
  }
  memset(model->memory, 0, total);
  char *next = model->memory;
  for (int32_t i = 0; i < d->num_weights; ++i) {
    model->weights[i] = next;
    next += room_of(d->weights[i].bytes);
  }
  return model;
}

static int read_file(FILE *file, cortex_model *model, uint64_t *begins, cortex_error *error) {
  const cortex_description *d = model->description;
  unsigned char first[8];
  uint64_t length = 0;
  if (fseeko(file, 0, SEEK_END) != 0) return cortex_fail(error, CORTEX_NO_FILE, -1, "the file cannot be read");
  const off_t size = ftello(file);
  if (size < 0) return cortex_fail(error, CORTEX_NO_FILE, -1, "the file cannot be read");
  if (size < 8 || !read_at(file, 0, first, 8)) return cortex_fail(error, CORTEX_BAD_WEIGHTS, -1, "the file is too short");
  for (int i = 8; i-- > 0;) length = length << 8 | first[i];
  if (length > MOST_HEADER || length > (uint64_t)size - 8)
    return cortex_fail(error, CORTEX_BAD_WEIGHTS, -1, "the file ends before its header does");
  char *header = malloc((size_t)length + 1);
  if (!header) return cortex_fail(error, CORTEX_OUT_OF_MEMORY, -1, "cannot allocate the header of the weights");
  int status = CORTEX_OK;
  if (!read_at(file, 8, header, length)) {
    status = cortex_fail(error, CORTEX_NO_FILE, -1, "the file cannot be read");
  } else {
    const cursor c = {header, header + length};
    status = read_header(c, d, (uint64_t)size - 8 - length, begins, error);
  }
  free(header);
  for (int32_t i = 0; i < d->num_weights && !status; ++i)
    if (d->weights[i].name && !read_at(file, 8 + length + begins[i], model->weights[i], (uint64_t)d->weights[i].bytes))
      status = cortex_fail(error, CORTEX_NO_FILE, -1, "the tensor '%.60s' cannot be read", d->weights[i].name);
  return status;
}

int cortex_load(const cortex_description *description, const char *file, cortex_model **model, cortex_error *error) {
  if (!model || !file) return cortex_fail(error, CORTEX_BAD_ARGUMENT, -1, "a pointer is NULL");
  *model = NULL;
  FILE *opened = fopen(file, "rb");
  if (!opened) return cortex_fail(error, CORTEX_NO_FILE, -1, "cannot open '%.150s'", file);
  cortex_model *made = new_model(description);
  uint64_t *begins = malloc(((size_t)description->num_weights + 1) * sizeof *begins);
  int status = CORTEX_OK;
  if (!made || !begins) {
    status = cortex_fail(error, CORTEX_OUT_OF_MEMORY, -1, "cannot allocate memory for the weights");
  } else {
    for (int32_t i = 0; i < description->num_weights; ++i) begins[i] = UINT64_MAX;
    status = read_file(opened, made, begins, error);
  }
  free(begins);
  fclose(opened);
  if (status) cortex_unload(made);
  else *model = made;
  return status;
}

void cortex_unload(cortex_model *model) {
  if (!model) return;
  free(model->memory);
  free(model->weights);
  free(model);
}
