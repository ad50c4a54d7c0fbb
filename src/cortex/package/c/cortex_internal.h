/* Between the files of the runtime. */
#ifndef CORTEX_INTERNAL_H
#define CORTEX_INTERNAL_H

#include "cortex_description.h"

/* Code may read the width of a vector past the end of an array. */
enum { CORTEX_LINE = 64 };

struct cortex_model {
  const cortex_description *description;
  void *memory;
  void **weights;
};

/* Say what is wrong; gives `status`. */
int cortex_fail(cortex_error *error, int status, int64_t node, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 4, 5)))
#endif
    ;

/* Memory that is used again by later requests. */
typedef struct {
  void *at;
  size_t bytes;
} cortex_room;

enum cortex_use {
  ROOM_EDGE_START, ROOM_EDGE_CHILD, ROOM_LIST_LENGTH, ROOM_HEIGHT, ROOM_KIND, ROOM_ROOTS, ROOM_STACK, ROOM_NEXT,
  ROOM_DEMAND, ROOM_INTS, ROOM_FLOATS, ROOM_INT_ARRAYS, ROOM_FLOAT_ARRAYS, ROOM_FIRST, ROOM_FIRST_EQUAL, ROOM_UNIQUE, ROOM_TABLE, ROOM_HASHES,
  ROOM_CHOSEN, ROOM_PARENTS, ROOM_INLINED, ROOM_RANK, ROOM_WAITS, ROOM_PARENT_START, ROOM_PARENT, ROOM_READY,
  ROOM_LEVEL, ROOM_MOST, ROOM_NODES_AT,
  ROOM_GROUP_KIND_OF, ROOM_PART, ROOM_SETS, ROOM_COUNT, ROOM_SORTED, ROOM_BY_GROUP, ROOM_ID_OF, ROOM_NODE_OF,
  ROOM_GROUP_START, ROOM_GROUP_LEN, ROOM_GROUP_KIND, ROOM_KIND_START, ROOM_PART_GROUP, ROOM_WINDOWS, ROOM_PLACES,
  ROOM_SIZES, NUM_ROOMS
};

/* A request on its way to the linear form. Nodes are the user's; the edges of a node stand together, one for each slot
 * (-1 where there is no child), then those of each list. */
typedef struct {
  const cortex_description *d;
  const cortex_request *in;
  cortex_error *error;
  cortex_room rooms[NUM_ROOMS];
  int64_t n, num_user_nodes, num_roots, num_groups, num_parts, num_windows, max_window;
  int64_t *edge_start;
  int32_t *edge_child, *list_len, *height, *kind, *roots;
  uint8_t *demand; /* per node and field: read by a node further up; NULL where no kind reads so */
  int32_t *staged_ints;
  float *staged_floats;
  int32_t *unique_of, *first; /* of the user's nodes the node that stands for them, and back; NULL without dedup */
  int32_t *rank, *group_kind_of, *part;
  int32_t *id_of, *node_of, *group_start, *group_len, *group_kind, *kind_start, *part_group;
  int32_t *windows; /* per window its first group and, for each kind of `d->windows`, the place of its first node */
  int64_t *sizes;
} cortex_linear;

/* Room for `count` elements of `each` bytes, undefined; NULL, and the error says so, where there is none. */
void *cortex_reserve(cortex_linear *l, enum cortex_use use, int64_t count, size_t each);
void cortex_forget(cortex_linear *l);

/* The stages, in order: structure, kinds, fields, equal nodes, variants, parts and numbers, arrays. */
int cortex_read_structure(cortex_linear *l);
int cortex_classify(cortex_linear *l);
int cortex_check_fields(cortex_linear *l);
int cortex_merge_equals(cortex_linear *l);
int cortex_choose_variants(cortex_linear *l);
int cortex_number(cortex_linear *l, int64_t parts);
void cortex_emit(const cortex_linear *l, int32_t *const *index, float *const *floats);

/* The node at the end of `path`, or -1 where the structure has none. */
int32_t cortex_follow(const cortex_linear *l, const cortex_path *path, int32_t node);

/* Fields of all nodes: into integer arrays and float arrays whose rows stand `strides` apart, by the number that
 * `place` gives a node, or its own where that is NULL. They have been checked. */
void cortex_fill_fields(const cortex_linear *l, int32_t *const *ints, float *const *floats, int padded,
                        const int32_t *place);
void cortex_copy_rows(const cortex_float_field *field, const float *from, float *to, int padded);

/* The rank of every node, groups of a lower one run first, in l->rank; the kind of its group in l->group_kind_of. */
int cortex_rank(cortex_linear *l);

/* Sort nodes stably by `key`, below `keys`; count[k] is then where those of key k start, count[keys] where all end. */
int cortex_sort(cortex_linear *l, const int32_t *key, int64_t keys, const int32_t *from, int32_t *to);

/* How many index arrays there are, and how many rows the one called by its number has for given sizes. */
int32_t cortex_num_index_arrays(const cortex_description *d);
int64_t cortex_index_rows(const cortex_description *d, int32_t number, const int64_t *sizes);

enum { CORTEX_NUM_NODES, CORTEX_NUM_GROUPS, CORTEX_NUM_ROOTS, CORTEX_MAX_GROUP, CORTEX_FIRST_LIST_SIZE };

/* The team: threads that run one function together with the caller. */
typedef struct cortex_team cortex_team;
int cortex_new_team(int threads, cortex_team **team);
void cortex_end_team(cortex_team *team);
void cortex_run_on_team(cortex_team *team, cortex_entry entry, void **arrays, const int64_t *sizes, int64_t threads);

#endif
