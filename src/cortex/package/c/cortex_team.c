/* The team: threads that run one compiled function together with the thread that calls it. */
#define _POSIX_C_SOURCE 200809L

#include <fenv.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "cortex_internal.h"

typedef struct {
  cortex_team *team;
  int64_t thread;
} member;

struct cortex_team {
  void (*barrier)(void *team, int64_t thread); /* compiled code finds it here, at the start */
  int64_t threads;                             /* of the job at hand, the caller among them */
  int64_t size;                                /* workers and the caller */
  int patience;                                /* how often to look before giving way to others */
  cortex_entry entry;
  void **arrays;
  const int64_t *sizes;
  fenv_t floating_point;
  int ending;
  atomic_uint_fast64_t job; /* its number; a worker that sees a new one sees all of the above */
  char apart[CORTEX_LINE];
  atomic_int_fast64_t arrived;
  char far_apart[CORTEX_LINE];
  atomic_uint_fast64_t meeting;
  atomic_int_fast64_t done;
  pthread_mutex_t lock;
  pthread_cond_t wake;
  pthread_t workers[CORTEX_MOST_THREADS];
  member members[CORTEX_MOST_THREADS];
};

static void look_away(int *looks, int patience) {
  if (++*looks > patience) sched_yield();
}

static void barrier(void *given, int64_t thread) {
  cortex_team *team = given;
  const uint_fast64_t meeting = atomic_load(&team->meeting);
  (void)thread;
  if (atomic_fetch_add(&team->arrived, 1) == team->threads - 1) {
    atomic_store(&team->arrived, 0);
    atomic_store(&team->meeting, meeting + 1);
    return;
  }
  for (int looks = 0; atomic_load(&team->meeting) == meeting;) look_away(&looks, team->patience);
}

static void *work(void *given) {
  const member *me = given;
  cortex_team *team = me->team;
  for (uint_fast64_t last = 0;;) {
    for (int looks = 0; looks < 2000 && atomic_load(&team->job) == last; ++looks) continue;
    if (atomic_load(&team->job) == last) {
      pthread_mutex_lock(&team->lock);
      while (atomic_load(&team->job) == last) pthread_cond_wait(&team->wake, &team->lock);
      pthread_mutex_unlock(&team->lock);
    }
    last = atomic_load(&team->job);
    if (team->ending) return NULL;
    if (me->thread < team->threads) {
      /* Rounding and the treatment of denormal numbers are the caller's, or the bits would differ. */
      fesetenv(&team->floating_point);
      team->entry(team->arrays, team->sizes, me->thread, team->threads, team);
    }
    atomic_fetch_add(&team->done, 1);
  }
}

static void announce(cortex_team *team) {
  pthread_mutex_lock(&team->lock);
  atomic_fetch_add(&team->job, 1);
  pthread_cond_broadcast(&team->wake);
  pthread_mutex_unlock(&team->lock);
}

int cortex_new_team(int threads, cortex_team **made) {
  cortex_team *team = calloc(1, sizeof *team);
  *made = team;
  if (!team) return CORTEX_OUT_OF_MEMORY;
  const long processors = sysconf(_SC_NPROCESSORS_ONLN);
  team->barrier = barrier;
  team->size = 1;
  team->patience = threads > processors ? 32 : 2000;
  atomic_init(&team->job, 0);
  atomic_init(&team->arrived, 0);
  atomic_init(&team->meeting, 0);
  atomic_init(&team->done, 0);
  pthread_mutex_init(&team->lock, NULL);
  pthread_cond_init(&team->wake, NULL);
  /* Signals are left to the threads of the program. */
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  /* Where the system gives no more threads, the team has those there are: results do not depend on it. */
  for (; team->size < threads; ++team->size) {
    member *me = &team->members[team->size];
    me->team = team;
    me->thread = team->size;
    if (pthread_create(&team->workers[team->size], NULL, work, me) != 0) break;
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return CORTEX_OK;
}

void cortex_end_team(cortex_team *team) {
  if (!team) return;
  team->ending = 1;
  announce(team);
  for (int64_t t = 1; t < team->size; ++t) pthread_join(team->workers[t], NULL);
  pthread_cond_destroy(&team->wake);
  pthread_mutex_destroy(&team->lock);
  free(team);
}

void cortex_run_on_team(cortex_team *team, cortex_entry entry, void **arrays, const int64_t *sizes, int64_t threads) {
  if (!team || threads < 2 || team->size < 2) {
    entry(arrays, sizes, 0, 1, NULL);
    return;
  }
  team->threads = threads < team->size ? threads : team->size;
  team->entry = entry;
  team->arrays = arrays;
  team->sizes = sizes;
  fegetenv(&team->floating_point);
  atomic_store(&team->done, 0);
  announce(team);
  entry(arrays, sizes, 0, team->threads, team);
  for (int looks = 0; atomic_load(&team->done) < team->size - 1;) look_away(&looks, team->patience);
}
