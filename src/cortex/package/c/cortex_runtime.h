/* Run a compiled recursive model from C or C++: what all models share. The header of a model has the rest.
 *
 * A model is its weights, read once and then shared by any number of threads. A session has the memory of one request
 * and the threads that compute it; one caller uses it at a time. Nothing is printed and nothing ends the process:
 * every function says by its status what is wrong, and in words where it is given an error to write to.
 */
#ifndef CORTEX_RUNTIME_H
#define CORTEX_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  CORTEX_OK = 0,
  CORTEX_OUT_OF_MEMORY = 1,
  CORTEX_BAD_ARGUMENT = 2,   /* a null pointer, a session of another model, too little room for results */
  CORTEX_NO_FILE = 3,        /* the weights cannot be opened or read */
  CORTEX_BAD_WEIGHTS = 4,    /* the file is damaged, or no safetensors file */
  CORTEX_OTHER_WEIGHTS = 5,  /* the file is whole, but was exported with another model */
  CORTEX_TOO_LARGE = 6,      /* more than 2147483647 nodes or edges */
  CORTEX_NO_SUCH_NODE = 7,   /* a child or a root is no node of the forest, or pointers do not rise */
  CORTEX_CYCLE = 8,          /* a node is below itself */
  CORTEX_UNKNOWN_KIND = 9,   /* a node of a kind that the model was not compiled for */
  CORTEX_NO_CHILD = 10,      /* the model recurses into a child that is not there */
  CORTEX_NO_FIELD = 11,      /* the model reads a field that is not given */
  CORTEX_FIELD_RANGE = 12    /* an integer field is outside the table that it indexes */
};

typedef struct cortex_error {
  int status;
  int64_t node; /* the node it is about, or -1 */
  char message[192];
} cortex_error;

typedef struct cortex_model cortex_model;
typedef struct cortex_session cortex_session;

#define CORTEX_MOST_THREADS 64

/* Give back what `MODEL_load` and `MODEL_open` made; NULL is allowed. Sessions are closed before their model. */
void cortex_unload(cortex_model *model);
void cortex_close(cortex_session *session);

/* The name of a status: "CORTEX_CYCLE". */
const char *cortex_status_name(int status);

/* The lists of children of trees that are given by the parent of every node, -1 for roots: those of node i are
 * index[pointer[i]] .. index[pointer[i + 1] - 1], in the order of their numbers. `pointer` has room for num_nodes + 1
 * numbers, `index` for num_nodes; how many of these are used is pointer[num_nodes]. */
int cortex_children_of_parents(int64_t num_nodes, const int32_t *parents, int32_t *pointer, int32_t *index,
                               cortex_error *error);

#ifdef __cplusplus
}
#endif

#endif
