// Doing without the GIL while a compiled function runs.
#pragma once

#include "python.hpp"

namespace cortex {

// Releases the GIL for its lifetime. Threads that call compiled models give it back and want it again every few
// microseconds, and waking one that sleeps for it takes longer than a short call. So a thread looks for a while whether
// such a caller still has it before it asks Python, which would put it to sleep.
class WithoutGil {
 public:
  WithoutGil();
  ~WithoutGil();
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_;
};

}  // namespace cortex
