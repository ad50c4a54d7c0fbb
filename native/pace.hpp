// Which requests run on the team: those that have been faster on it.
//
// A second thread may have to be woken and has to be waited for, which a short request does not pay for. When that is so
// depends on the machine and on who else uses it, so both ways are tried, and the slower one again now and then.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

namespace cortex {

// How fast a program has lately been at its fastest, for requests of about the same size; guarded by the GIL.
class Pace {
 public:
  bool is_known(bool on_team) const { return expected(on_team) != kUnknown; }
  bool prefers_team() const { return team_ < alone_; }
  double expected(bool on_team) const { return on_team ? team_ : alone_; }
  void see(bool on_team, double nanoseconds) {
    double& best = on_team ? team_ : alone_;
    best = std::min(nanoseconds, 1.01 * best);  // a few slow calls in a row say nothing
  }

  bool preferred_team = false;  // when this was last asked

 private:
  static constexpr double kUnknown = std::numeric_limits<double>::infinity();
  double team_ = kUnknown, alone_ = kUnknown;  // nanoseconds per node
};

// The choice for the requests of one program, one after the other.
class Ways {
 public:
  // The pace of requests of so many nodes: sizes within a fifth of each other are taken together.
  Pace& pace(std::int64_t nodes) {
    return paces_[static_cast<std::size_t>(kSizesPerDoubling * std::log2(static_cast<double>(nodes)))];
  }

  // Whether the next request, which has so many nodes, is better run on the team.
  //
  // The team is tried for a few requests in a row, whatever their sizes, because the first one finds it asleep; to run
  // alone takes no preparation, so one request tells. A try that finds nothing better doubles the time to the next:
  // else one request in thirty would take twice as long as it could. What is slow on the team shows without a try, since
  // its pace is known; that the team has become faster does not, so it is tried several times a second.
  bool prefers_team(std::int64_t nodes) {
    const std::uint32_t number = requests_++;
    Pace& mine = pace(nodes);
    const double fastest = std::min({mine.expected(true), mine.expected(false), last_pace_});
    const double expected = static_cast<double>(nodes) * fastest;
    const bool is_long = expected > kLong && last_pace_ > 0;  // it does not notice waking
    tries_ = false;
    if (is_long && !mine.is_known(true)) return true;
    if (is_long && !mine.is_known(false)) return number % kTryLong != kTryLong - 1;
    if (!is_long && number < kFirst) return number / kInARow % 2 == 0;
    if (!mine.is_known(true) || !mine.is_known(false)) return mine.is_known(false);
    const bool best = mine.prefers_team();
    soon_ = is_long && !best ? kTryLong : kTryAgain;
    most_ = best ? kTrySeldom : static_cast<std::uint32_t>(std::clamp<double>(kTryTeam / expected, kTryLong, kTrySeldom));
    if (best != mine.preferred_team) {
      mine.preferred_team = best;
      wait_ = soon_;
      next_ = std::min(next_, number + wait_);
    }
    if (left_ == 0 && number >= next_) {
      tried_team_ = !best;
      left_ = tried_team_ && !is_long ? kInARow : 1;
      found_better_ = false;
    }
    if (left_ == 0) return best;
    ends_ = --left_ == 0;
    tries_ = true;
    return tried_team_;
  }

  // The nanoseconds that a request of so many nodes is expected to take at most; infinity where nothing like it has run.
  double longest(std::int64_t nodes, bool on_team) {
    constexpr double kOtherSize = 8;  // how much slower than another request it may be
    const Pace& mine = pace(nodes);
    const double known = mine.is_known(on_team) ? std::max(mine.expected(on_team), last_pace_) : kOtherSize * last_pace_;
    return known > 0 ? known * static_cast<double>(nodes) : std::numeric_limits<double>::infinity();
  }

  // How the request went that was asked about last.
  void see(std::int64_t nodes, bool on_team, double nanoseconds) {
    Pace& mine = pace(nodes);
    if (tries_ && on_team == tried_team_) found_better_ |= nanoseconds < mine.expected(!on_team);
    mine.see(on_team, nanoseconds);
    last_pace_ = nanoseconds;
    if (!ends_) return;
    ends_ = false;
    wait_ = found_better_ ? soon_ : std::min(2 * wait_, most_);
    next_ = requests_ + wait_;
  }

 private:
  static constexpr std::uint32_t kInARow = 4, kFirst = 4 * kInARow;                      // requests
  static constexpr std::uint32_t kTryLong = 8, kTryAgain = 128, kTrySeldom = 4096;  // requests between two tries
  static constexpr double kLong = 1e6, kTryTeam = 2e8;                                   // nanoseconds
  static constexpr std::size_t kSizesPerDoubling = 4;

  std::array<Pace, 64 * kSizesPerDoubling> paces_;  // in place: used while others call
  std::uint32_t requests_ = 0;
  std::uint32_t next_ = kTryAgain, wait_ = kTryAgain;  // the request of the next try; how many come before the one after
  std::uint32_t soon_ = kTryAgain, most_ = kTryAgain;  // the least and the most to wait, for the last request
  std::uint32_t left_ = 0;                             // requests of the present try
  bool tries_ = false, tried_team_ = false, found_better_ = false, ends_ = false;
  double last_pace_ = 0;  // of the last request, in nanoseconds per node
};

}  // namespace cortex
