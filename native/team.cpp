#include "team.hpp"

#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <new>
#include <thread>

#include "blocked_signals.hpp"
#include "floating_point.hpp"
#include "relax.hpp"

namespace cortex {

namespace {

using Clock = std::chrono::steady_clock;

std::atomic<std::int64_t> spin_microseconds{50};
constexpr auto kAnnounced = std::chrono::milliseconds(2);  // for how much longer to look for a job that was announced
constexpr std::int64_t kMostCaution = 16;
constexpr std::int64_t kWakingUp = 150'000;  // nanoseconds that a parked worker may take to begin

std::int64_t nanoseconds(clockid_t clock) {
  timespec now{};
  return clock_gettime(clock, &now) == 0 ? now.tv_sec * 1'000'000'000LL + now.tv_nsec : 0;
}

clockid_t clock_of_this_thread() {
  clockid_t clock = CLOCK_MONOTONIC;
  pthread_getcpuclockid(pthread_self(), &clock);
  return clock;
}

// What concerns one thread. Each line of the cache has one writer.
struct alignas(128) Member {
  std::atomic<std::uint64_t> arrived{0};  // number of the job and of the barriers it has come to
  std::uint64_t here = 0;                 // the same, for the thread itself
  std::int64_t lost = 0;                  // nanoseconds of this job in which threads without a processor made it wait
  clockid_t clock = CLOCK_MONOTONIC;      // the thread's own time; valid while it has a job
  alignas(64) std::atomic<std::uint64_t> given{0};  // number of the last job for this thread
  alignas(64) std::atomic<std::uint64_t> done{0};   // number of the last job it finished
  alignas(64) std::atomic<int> parked{0};
  std::atomic<int> kept_off{-1};  // the processor that its caller was last on when it woke this thread
  std::atomic<pid_t> id{0};
};

struct Team {
  void (*barrier)(void* team, std::int64_t thread);  // compiled code finds it here
  std::int64_t threads = 1;                          // of the job at hand
  int patience = 0;                                  // how often to look at a flag before giving way to others
  Job job{};
  FloatingPoint floating_point;
  std::uint64_t jobs = 0;
  std::int64_t size = 1;  // workers and the caller
  const std::int64_t of_machine = std::thread::hardware_concurrency();  // processors; to ask takes 8 us
  std::int64_t caution = 0;                  // a call that lost time makes others run alone for so many times as long
  std::atomic<std::int64_t> alone_until{0};  // nanoseconds of the clock; calls do without the team before
  alignas(64) std::atomic<bool> busy{false};
  alignas(64) std::atomic<bool> announced{false};  // will a job come soon? A hint
  Member members[kMaxThreads];
};

// Has a flag come to a value? Flags only count up, and those that hold the number of a job in their upper half begin again
// at 0 after 2^32 jobs.
bool has_come_to(const std::atomic<std::uint64_t>& flag, std::uint64_t value) {
  return static_cast<std::int64_t>(flag.load(std::memory_order_acquire) - value) >= 0;
}

// Wait until `flag` of `other` has come to `value` in this job, or until `stop` says that it may never come; for how many
// nanoseconds had it or we no processor?
// Threads of a job wait for each other for microseconds; where that takes longer, somebody else needs the processor,
// perhaps the very thread that is waited for. One that was parked and is waking up has lost nothing yet.
std::int64_t await(const Member& other, const std::atomic<std::uint64_t>& flag, std::uint64_t value, std::uint64_t job,
                   int patience, const std::atomic<std::int64_t>* stop = nullptr) {
  for (int looks = 0; looks < patience; ++looks) {
    if (has_come_to(flag, value)) return 0;
    relax();
  }
  const clockid_t theirs = other.clock;
  const auto without_processor = [theirs] {
    return 2 * nanoseconds(CLOCK_MONOTONIC) - nanoseconds(theirs) - nanoseconds(CLOCK_THREAD_CPUTIME_ID);
  };
  const bool has_begun = other.arrived.load(std::memory_order_relaxed) >> 32 == job;
  const std::int64_t before = without_processor() + (has_begun ? 0 : kWakingUp);
  while (!has_come_to(flag, value) && !(stop && stop->load(std::memory_order_relaxed))) std::this_thread::yield();
  return std::max<std::int64_t>(0, without_processor() - before);
}

void barrier(void* given, std::int64_t thread) {
  Team& team = *static_cast<Team*>(given);
  Member& me = team.members[thread];
  const std::uint64_t here = ++me.here;
  me.arrived.store(here, std::memory_order_release);
  for (std::int64_t t = 0; t < team.threads; ++t)
    if (t != thread)
      me.lost += await(team.members[t], team.members[t].arrived, here, here >> 32, team.patience, team.job.stop);
}

void run_share(Team& team, std::int64_t thread, std::uint64_t number) {
  Member& me = team.members[thread];
  me.here = number << 32;
  me.lost = 0;
  me.arrived.store(me.here, std::memory_order_relaxed);
  team.job.entry(team.job.arrays, team.job.sizes, thread, team.threads, &team);
}

// The number of the next job after `last`: look for it for a while, then sleep until woken, and look again.
std::uint64_t next_job(const Team& team, Member& me, std::uint64_t last) {
  for (;;) {
    const auto until = Clock::now() + std::chrono::microseconds(spin_microseconds.load(std::memory_order_relaxed));
    Clock::time_point now;
    do {
      for (int i = 0; i < 32; ++i) {
        const std::uint64_t number = me.given.load(std::memory_order_acquire);
        if (number != last) return number;
        relax();
      }
      now = Clock::now();
    } while (now < until || (now < until + kAnnounced && team.announced.load(std::memory_order_relaxed)));
    // Either the caller sees that we are parked, or we see its job: both sides write first and read afterwards.
    me.parked.store(1);
    if (me.given.load() == last) me.parked.wait(1);
    me.parked.store(0);
  }
}

// How many processors this thread may run on.
std::int64_t processors() {
#if defined(__linux__)
  cpu_set_t mine;
  if (sched_getaffinity(0, sizeof mine, &mine) == 0) return CPU_COUNT(&mine);
#endif
  return static_cast<std::int64_t>(std::thread::hardware_concurrency());
}

// Linux likes to wake a thread on the processor of who wakes it, even where another one is idle: both would take turns
// at every barrier, for milliseconds. So a worker is not let on the processor of its caller.
void keep_off_my_processor(Member& worker) {
#if defined(__linux__)
  const int mine = sched_getcpu();
  cpu_set_t others;
  if (mine < 0 || mine == worker.kept_off.load(std::memory_order_relaxed)) return;
  if (sched_getaffinity(0, sizeof others, &others) != 0) return;
  CPU_CLR(mine, &others);
  if (CPU_COUNT(&others) == 0 || sched_setaffinity(worker.id.load(), sizeof others, &others) != 0) return;
  worker.kept_off.store(mine, std::memory_order_relaxed);
#else
  (void)worker;
#endif
}

void wake(Member& worker) {
  if (!worker.parked.load() || !worker.parked.exchange(0)) return;
  keep_off_my_processor(worker);
  worker.parked.notify_one();
}

[[noreturn]] void work(Team& team, std::int64_t thread) {
  Member& me = team.members[thread];
  me.clock = clock_of_this_thread();
  me.id.store(gettid());
  for (std::uint64_t last = 0;;) {
    last = next_job(team, me, last);
    team.floating_point.assume();
    run_share(team, thread, last);
    me.done.store(last, std::memory_order_release);
  }
}

// Have at least `threads` members, if the system allows.
void grow(Team& team, std::int64_t threads) {
  if (team.size >= threads) return;
  const BlockedSignals blocked;
  try {
    for (; team.size < threads; ++team.size) std::thread(work, std::ref(team), team.size).detach();
  } catch (const std::exception&) {  // no more threads, or no more memory: the job runs on those there are
  }
}

// A team is never freed: workers may look at it until the process ends, and a forked child leaves its parent's be.
std::atomic<Team*> the_team{nullptr};

// Has a forked child a team of its own? Null pointers stand for one that is made when it is needed.
bool is_renewed_in_children() {
  static std::atomic<bool> is_set{false};
  if (is_set.load(std::memory_order_relaxed)) return true;
  const bool done = pthread_atfork(nullptr, nullptr, [] { the_team.store(nullptr); }) == 0;
  is_set.store(done, std::memory_order_relaxed);  // set twice by two threads does no harm
  return done;
}

// The team, or null where there is no memory for one.
Team* team_of_process() {
  Team* team = the_team.load(std::memory_order_acquire);
  if (team || !is_renewed_in_children()) return team;
  Team* fresh = new (std::nothrow) Team;
  if (!fresh) return nullptr;
  fresh->barrier = barrier;
  if (the_team.compare_exchange_strong(team, fresh)) return fresh;
  delete fresh;
  return team;
}

}  // namespace

void run_alone(const Job& job) { job.entry(job.arrays, job.sizes, 0, 1, nullptr); }

bool run_on_team(const Job& job, std::int64_t threads) noexcept {
  threads = std::min(threads, kMaxThreads);
  Team* team = threads > 1 ? team_of_process() : nullptr;
  if (!team || team->busy.exchange(true, std::memory_order_acquire)) {
    run_alone(job);
    return false;
  }
  const std::int64_t start = nanoseconds(CLOCK_MONOTONIC);
  grow(*team, threads);
  threads = std::min(threads, team->size);
  team->threads = threads;
  team->patience = threads > team->of_machine ? 32 : 2000;
  team->job = job;
  team->floating_point = FloatingPoint();
  team->members[0].clock = clock_of_this_thread();
  team->announced.store(false, std::memory_order_relaxed);
  const std::uint64_t number = ++team->jobs;
  for (std::int64_t t = 1; t < threads; ++t) {
    team->members[t].given.store(number);
    wake(team->members[t]);
  }
  run_share(*team, 0, number);
  std::int64_t lost = 0;
  for (std::int64_t t = 1; t < threads; ++t) {
    team->members[0].lost += await(team->members[t], team->members[t].done, number, number, team->patience);
    lost = std::max(lost, team->members[t].lost);
  }
  lost = std::max(lost, team->members[0].lost);
  const std::int64_t now = nanoseconds(CLOCK_MONOTONIC);
  const bool crowded = lost > (now - start) / 4 && processors() < threads;
  // One thread would have taken as long as all of them together, without what was lost. The first time is an accident.
  if (crowded || lost > (now - start) * (threads - 1) / threads) {
    if (crowded) team->caution = kMostCaution;
    if (team->caution > 0) team->alone_until.store(now + team->caution * lost, std::memory_order_relaxed);
    team->caution = std::clamp<std::int64_t>(2 * team->caution, 1, kMostCaution);
  } else {
    team->caution /= 2;
  }
  team->busy.store(false, std::memory_order_release);
  return threads > 1;
}

bool run_call(const Job& job, std::int64_t threads) noexcept {
  Team* team = threads > 1 ? the_team.load(std::memory_order_acquire) : nullptr;
  if (team && nanoseconds(CLOCK_MONOTONIC) < team->alone_until.load(std::memory_order_relaxed)) {
    run_alone(job);
    return false;
  }
  return run_on_team(job, threads);
}

void run_with_tables(Entry entry, void*** tables, const std::int64_t* sizes, std::int64_t threads) {
  struct Tables {
    Entry entry;
    void*** each;
  } all{entry, tables};
  const Entry choose = [](void** given, const std::int64_t* s, std::int64_t thread, std::int64_t count, void* team) {
    const auto& mine = *reinterpret_cast<const Tables*>(given);
    mine.entry(mine.each[thread], s, thread, count, team);
  };
  run_on_team({choose, reinterpret_cast<void**>(&all), sizes}, threads);
}

Announcement::Announcement(std::int64_t threads) {
  Team* team = threads > 1 ? the_team.load(std::memory_order_acquire) : nullptr;
  if (!team || team->busy.load(std::memory_order_relaxed)) return;
  if (nanoseconds(CLOCK_MONOTONIC) < team->alone_until.load(std::memory_order_relaxed)) return;
  made_ = true;
  team->announced.store(true, std::memory_order_relaxed);
  for (std::int64_t t = 1; t < std::min(threads, kMaxThreads); ++t) wake(team->members[t]);
}

void Announcement::call_off() {
  Team* team = made_ ? the_team.load(std::memory_order_acquire) : nullptr;
  if (team) team->announced.store(false, std::memory_order_relaxed);
  made_ = false;
}

double barrier_nanoseconds(std::int64_t threads) {
  constexpr int kBarriers = 100;  // few, so that some try is not interrupted
  const Entry entry = [](void**, const std::int64_t*, std::int64_t thread, std::int64_t threads, void* team) {
    for (int i = 0; i < kBarriers && threads > 1; ++i) static_cast<Team*>(team)->barrier(team, thread);
  };
  const auto start = Clock::now();
  run_on_team({entry, nullptr, nullptr}, threads);
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count() / kBarriers;
}

void set_team_spin(std::int64_t microseconds) {
  spin_microseconds.store(std::max<std::int64_t>(0, microseconds), std::memory_order_relaxed);
}

}  // namespace cortex
