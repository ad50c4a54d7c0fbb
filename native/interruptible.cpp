#include "interruptible.hpp"

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "blocked_signals.hpp"
#include "floating_point.hpp"
#include "python.hpp"

namespace cortex {

namespace {

// A tenth of what a signal may wait for: an expectation may be wrong by as much.
constexpr double kNoticed = 20e6;
constexpr auto kBetweenHandlers = std::chrono::milliseconds(20);

// The thread that runs a job for another one.
class Deputy {
 public:
  Deputy(const Job& job, std::int64_t threads, bool (*run)(const Job&, std::int64_t)) {
    const BlockedSignals blocked;
    thread_ = std::thread([this, &job, threads, run] {
      floating_point_.assume();
      const bool on_team = run(job, threads);
      const std::lock_guard lock(mutex_);
      found_ = on_team;
      finished_.notify_one();
    });
  }

  // What the job gave, if it has finished or does so in a while.
  std::optional<bool> wait_a_while() {
    std::unique_lock lock(mutex_);
    finished_.wait_for(lock, kBetweenHandlers, [this] { return found_.has_value(); });
    return found_;
  }

  void join() { thread_.join(); }

 private:
  const FloatingPoint floating_point_;
  std::mutex mutex_;
  std::condition_variable finished_;
  std::optional<bool> found_;
  std::thread thread_;  // the last to be made: it uses the others
};

bool run_without_gil(const Job& job, std::int64_t threads, bool (*run)(const Job&, std::int64_t)) {
  const nb::gil_scoped_release without_gil;
  return run(job, threads);
}

}  // namespace

bool may_delay_signals(double nanoseconds) {
  if (nanoseconds < kNoticed) return false;
  const nb::object main = nb::module_::import_("threading").attr("main_thread")().attr("ident");
  return !main.is_none() && nb::cast<unsigned long>(main) == PyThread_get_thread_ident();
}

bool run_interruptibly(const Job& job, std::int64_t threads, bool (*run)(const Job&, std::int64_t)) {
  const pid_t process = getpid();
  std::unique_ptr<Deputy> deputy;
  try {
    deputy = std::make_unique<Deputy>(job, threads, run);
  } catch (const std::exception&) {  // no more threads, or no more memory
    return run_without_gil(job, threads, run);
  }
  const auto end = [&] {
    const nb::gil_scoped_release without_gil;
    deputy->join();
  };
  for (;;) {
    std::optional<bool> found;
    {
      const nb::gil_scoped_release without_gil;
      found = deputy->wait_a_while();
    }
    if (found) {
      end();
      return *found;
    }
    const bool has_raised = PyErr_CheckSignals() < 0;
    if (getpid() != process) {  // a child, which has none of its parent's threads: nobody uses the deputy again
      (void)deputy.release();
      if (has_raised) throw nb::python_error();
      return run_without_gil(job, threads, run);
    }
    if (!has_raised) continue;
    const nb::python_error raised;
    job.stop->store(1, std::memory_order_relaxed);
    end();
    throw raised;
  }
}

}  // namespace cortex
