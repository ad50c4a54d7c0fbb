#include "running.hpp"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <new>
#include <thread>

namespace cortex {

namespace {

// A call whose accessor never returns must not keep the process alive.
constexpr auto kLongest = std::chrono::seconds(10);
constexpr auto kBetweenLooks = std::chrono::milliseconds(1);

std::atomic<int> running{0};
thread_local int of_this_thread = 0;
std::atomic<bool> ending{false};
std::thread::id ended_by;  // written before `ending`, read after it

void wait_for_calls() {
  ended_by = std::this_thread::get_id();
  ending.store(true);
  if (running.load() <= 0) return;
  nb::gil_scoped_release without_gil;
  const auto until = std::chrono::steady_clock::now() + kLongest;
  while (running.load() > 0 && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(kBetweenLooks);
}

[[noreturn]] void sleep_without_gil() {
  PyEval_SaveThread();
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

}  // namespace

RunningCall::RunningCall() {
  // The thread that ends the interpreter may still call: from exit handlers.
  if (ending.load() && ended_by != std::this_thread::get_id()) sleep_without_gil();
  ++running;
  ++of_this_thread;
}

RunningCall::~RunningCall() {
  --running;
  --of_this_thread;
}

void wait_for_calls_at_exit(nb::module_& module) {
  // A forked child has none of its parent's threads but the one that forks, which may be inside of calls.
  if (pthread_atfork(nullptr, nullptr, [] { running.store(of_this_thread); }) != 0) throw std::bad_alloc();
  module.def("wait_for_calls", wait_for_calls, "Wait for the calls of other threads; they can begin no more.");
  nb::module_::import_("atexit").attr("register")(module.attr("wait_for_calls"));
}

}  // namespace cortex
