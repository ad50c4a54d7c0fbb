// Calls that are under way when the interpreter ends.
//
// A daemon thread that wants the GIL back while Python 3.11 shuts down is ended by pthread_exit, which unwinds its
// stack: through C++ frames that must not throw, so that the process would abort. So the end of the interpreter waits
// for running calls, and threads that begin one afterwards sleep until the process is gone.
#pragma once

#include "python.hpp"

namespace cortex {

// Held, with the GIL, around everything that releases the GIL or runs Python code.
class RunningCall {
 public:
  RunningCall();
  ~RunningCall();
  RunningCall(const RunningCall&) = delete;
  RunningCall& operator=(const RunningCall&) = delete;
};

// Have the interpreter wait for running calls when it ends; called once, on import.
void wait_for_calls_at_exit(nb::module_& module);

}  // namespace cortex
