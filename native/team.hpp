// The thread team: worker threads that run one compiled function together with the thread that calls it.
//
// There is one team per process, made when it is first needed and used by one caller at a time; whoever finds it busy
// runs alone. Results do not depend on the number of threads, so nobody can tell the difference.
#pragma once

#include <atomic>
#include <cstdint>

namespace cortex {

// A compiled function. `team` starts with the address of the barrier, `void (*)(void* team, int64_t thread)`, which
// the function calls only where `threads` is greater than 1.
using Entry = void (*)(void** arrays, const std::int64_t* sizes, std::int64_t thread, std::int64_t threads, void* team);

// One call of a compiled function. `stop` is the word behind the sizes: once it is not 0, the function returns soon, and
// what it has written means nothing. Null for a function that nobody stops; its word is 0 all the same.
struct Job {
  Entry entry;
  void** arrays;
  const std::int64_t* sizes;
  std::atomic<std::int64_t>* stop = nullptr;
};

inline constexpr std::int64_t kMaxThreads = 64;

// Run `job` on `threads` threads, the calling one among them, and return when all have finished. On fewer where the
// system gives no more, on this thread alone when another caller has the team; false then.
bool run_on_team(const Job& job, std::int64_t threads) noexcept;

// The same, but alone for a while after threads have waited for another that had no processor: on a busy machine one
// thread is faster than several that wait for each other, each for a time slice of somebody else. The while is as long
// as what was lost, from the second such call in a row on, and up to 16 times as long if that happens again and again.
bool run_call(const Job& job, std::int64_t threads) noexcept;

// Run `entry` likewise, each thread with an array table of its own: thread t with tables[t].
void run_with_tables(Entry entry, void*** tables, const std::int64_t* sizes, std::int64_t threads);

// Tells workers that a job is coming, so that they wake up, or stay awake, while the caller still prepares it. Whether it
// has come, or will not, is clear at the end of the announcement's life.
class Announcement {
 public:
  explicit Announcement(std::int64_t threads);
  ~Announcement() { call_off(); }
  Announcement(const Announcement&) = delete;
  Announcement& operator=(const Announcement&) = delete;
  void call_off();

 private:
  bool made_ = false;
};

// Nanoseconds of one barrier among `threads` threads, the mean of many in a row.
double barrier_nanoseconds(std::int64_t threads);

// How long workers look for the next job before they park.
void set_team_spin(std::int64_t microseconds);

}  // namespace cortex
