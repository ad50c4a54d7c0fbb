#include "without_gil.hpp"

#include <atomic>
#include <chrono>
#include <thread>

#include "relax.hpp"

namespace cortex {

namespace {

using Clock = std::chrono::steady_clock;

// Longer than a caller needs between two compiled functions, shorter than a time slice.
constexpr auto kPatience = std::chrono::microseconds(30);
constexpr int kLooks = 16;

// Has a caller of compiled functions taken the GIL and not come to the next one? A hint: it may have released the GIL
// elsewhere since. Whoever comes to the next function corrects it.
alignas(64) std::atomic<bool> taken{false};
alignas(64) std::atomic<int> looking{0};

bool take() { return !taken.load(std::memory_order_relaxed) && !taken.exchange(true, std::memory_order_acquire); }

void look_for_it() {
  static const int processors = static_cast<int>(std::thread::hardware_concurrency());
  if (looking.fetch_add(1, std::memory_order_relaxed) + 1 < processors) {
    const auto until = Clock::now() + kPatience;
    do {
      for (int i = 0; i < kLooks && taken.load(std::memory_order_relaxed); ++i) relax();
    } while (!take() && Clock::now() < until);
  }
  looking.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace

WithoutGil::WithoutGil() : state_(PyEval_SaveThread()) { taken.store(false, std::memory_order_release); }

WithoutGil::~WithoutGil() {
  if (!take()) look_for_it();
  PyEval_RestoreThread(state_);
  taken.store(true, std::memory_order_relaxed);
}

}  // namespace cortex
