// Rounding and the treatment of denormal numbers: a thread computes in its caller's mode, or its bits would differ.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#else
#include <cfenv>
#endif

namespace cortex {

// The mode of the thread that makes it.
struct FloatingPoint {
#if defined(__x86_64__)
  unsigned mode = _mm_getcsr();
  void assume() const { _mm_setcsr(mode); }
#else
  std::fenv_t mode;
  FloatingPoint() { std::fegetenv(&mode); }
  void assume() const { std::fesetenv(&mode); }
#endif
};

}  // namespace cortex
