/* What the generated file of a model tells the runtime; see lower/linear_form.py of the compiler for the linear form.
 *
 * A branch of the decision tree that finds the kind of a node is a test (>= 0), nothing (-1), or kind -2 - branch.
 * Fields are numbered with the integers first. A size is known by its place among those of the linear form, -1 for none.
 */
#ifndef CORTEX_DESCRIPTION_H
#define CORTEX_DESCRIPTION_H

#include "cortex_runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef void (*cortex_entry)(void **arrays, const int64_t *sizes, int64_t thread, int64_t threads, void *team);

enum { CORTEX_SLOT, CORTEX_ITEM, CORTEX_EACH };

typedef struct {
  int32_t kind, relation, index;
} cortex_hop;

typedef struct {
  int32_t length;
  const cortex_hop *hops;
} cortex_path;

typedef struct {
  int64_t integer;
  double number;
  int32_t branch;
} cortex_answer;

enum {
  CORTEX_OF_NODE, CORTEX_OF_SLOT, CORTEX_OF_LIST, CORTEX_OF_COUNT,
  CORTEX_OF_INTEGERS, CORTEX_OF_LOW_INTEGERS, CORTEX_OF_HIGH_INTEGERS,
  CORTEX_OF_NUMBERS, CORTEX_OF_LOW_NUMBERS, CORTEX_OF_HIGH_NUMBERS, CORTEX_OF_SAME_NUMBERS
};

/* A question about the node at the end of `path`: whether it is a leaf (1 or 0), whether it has a child, how many, what
 * a column says, whether that is at most (low) or at least (high) the number of the answer or equal with the same
 * sign (same), or whether it is how many children `list` has (1 or 0). `none` is where it leads if there is nothing
 * there, `otherwise` for an answer not listed. */
typedef struct {
  int32_t subject, number, list;
  cortex_path path;
  int32_t num_answers;
  const cortex_answer *answers;
  int32_t none, otherwise;
} cortex_test;

typedef struct {
  const char *name;
  int32_t column, limited;
  int64_t limit;
} cortex_int_field;

/* A value is `rows` rows of `columns` numbers; in a buffer a node has `stride` of them, padding included. */
typedef struct {
  const char *name;
  int32_t column;
  int64_t rows, columns, stride;
} cortex_float_field;

typedef struct {
  int32_t field;
  cortex_path path;
} cortex_read;

typedef struct {
  int64_t from, to;
} cortex_range;

/* What the code of a kind reads, and how its nodes are grouped. `variants` has rows of num_hops kinds (-1 for none) and
 * the variant for nodes that inline just those. A kind of any number of children in `lengths`, some lists, is used for
 * the numbers that `checked` has: the digits of an entry, to the base `most` + 1, are how many each list has, and `most`
 * stands for more too. */
typedef struct {
  int32_t num_uses;
  const int32_t *uses;
  int32_t num_reads;
  const cortex_read *reads;
  int32_t num_needs;
  const cortex_path *needs;
  int32_t group_kind, within;
  int32_t num_hops;
  const cortex_path *hops;
  int32_t num_variants;
  const int32_t *variants;
  int32_t num_lengths;
  const int32_t *lengths;
  int32_t most;
  int32_t num_checked;
  const cortex_range *checked;
} cortex_kind;

enum { CORTEX_HEIGHT, CORTEX_DEPTH, CORTEX_AGENDA, CORTEX_ALONE };

enum { CORTEX_INDEX, CORTEX_FIELD, CORTEX_WEIGHT, CORTEX_STATE, CORTEX_SCRATCH, CORTEX_PRIVATE };

/* An array that the code takes. `number` is that of the index array, field, weight or state; of scratch memory, `rows`
 * is the size that says how many rows of `elements` there are, and `copies` how many times that. */
typedef struct {
  int32_t what, number, rows, copies;
  int64_t elements;
} cortex_argument;

/* A weight that no code reads has no name. */
typedef struct {
  const char *name, *dtype;
  int64_t bytes;
} cortex_weight;

typedef struct {
  const char *name;
  int64_t rows, columns, stride;
} cortex_state;

typedef struct {
  const char *name, *fingerprint;
  cortex_entry entry;
  int32_t num_slots, num_lists, num_columns, num_kinds, num_ints, num_floats, num_states, num_weights;
  int32_t num_sizes, num_arguments;
  int32_t batching, shares_groups, dedup, parts, unrolled, has_reads, for_team;
  int32_t num_windows, window_nodes; /* kinds whose nodes are listed by windows; the most of a window of groups */
  int32_t tree;
  const int32_t *windows;
  const cortex_test *tests;
  const cortex_int_field *ints;
  const cortex_float_field *floats;
  const cortex_kind *kinds;
  const cortex_state *states;
  const cortex_weight *weights;
  const int32_t *sizes;
  const cortex_argument *arguments;
} cortex_description;

/* What a request is made of. Of a column, `present` says which nodes have a value; NULL: all of them. */
typedef struct {
  const int32_t *pointer, *index;
  int64_t num_edges;
} cortex_list;

typedef struct {
  const void *values;
  const uint8_t *present;
} cortex_column;

typedef struct {
  int64_t num_nodes;
  const int32_t *const *slots;
  const cortex_list *lists;
  const cortex_column *columns;
  int64_t num_roots;
  const int32_t *roots;
} cortex_request;

/* Where states go: rows for the roots, of which there is `room`, and rows for all nodes; NULL for what is not wanted. */
typedef struct {
  int64_t room, num_roots;
  float *const *roots;
  float *const *nodes;
} cortex_results;

int cortex_load(const cortex_description *description, const char *file, cortex_model **model, cortex_error *error);
int cortex_open(const cortex_description *description, const cortex_model *model, int threads,
                cortex_session **session, cortex_error *error);
int cortex_run(const cortex_description *description, cortex_session *session, const cortex_request *request,
               cortex_results *results, cortex_error *error);

#ifdef __cplusplus
}
#endif

#endif
