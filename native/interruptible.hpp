// Compiled functions that a handler of a signal can interrupt.
#pragma once

#include "team.hpp"

namespace cortex {

// Might a function that is expected to take so long (infinity: nobody knows) keep Python from handling a signal for too
// long? Only in the thread that Python runs handlers in.
bool may_delay_signals(double nanoseconds);

// Run `job` with the GIL released, on so many threads as `run` says, which is run_call or run_on_team, and give what it
// gives. The calling thread, which holds the GIL, runs handlers of signals meanwhile; where one raises, the job is stopped
// and the exception thrown, and what the job has written means nothing. In a child that a handler forks, the job begins
// again. Where the system gives no thread for it, the job runs on this one and signals wait.
bool run_interruptibly(const Job& job, std::int64_t threads, bool (*run)(const Job&, std::int64_t));

}  // namespace cortex
