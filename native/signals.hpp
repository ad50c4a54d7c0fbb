// Handlers of signals, which Python runs in its main thread and only where it is asked to.
#pragma once

#include "python.hpp"

namespace cortex {

// Run the handlers of signals that have come; what one of them raises is thrown.
inline void run_signal_handlers() {
  if (PyErr_CheckSignals() < 0) throw nb::python_error();
}

// The same once in a while, for loops that run no Python code; `step` counts up. Handlers are code of the user's: what a
// loop has borrowed from their objects may be gone afterwards.
inline void look_for_signals(std::size_t step) {
  constexpr std::size_t kInterval = std::size_t{1} << 14;
  if (step % kInterval == kInterval - 1) [[unlikely]]
    run_signal_handlers();
}

}  // namespace cortex
