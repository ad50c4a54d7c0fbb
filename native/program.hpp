// A compiled program and the result of running it.
#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <vector>

#include "linearizer.hpp"
#include "team.hpp"
#include "workspace.hpp"

namespace cortex {

// A state as it lies in memory: `rows` rows of `columns` elements, `pitch` apart, `stride` elements per node.
struct StateLayout {
  std::vector<npy_intp> shape;
  std::int64_t rows, columns, pitch, stride;
  std::size_t block;
};

// Everything a program takes, and where in a workspace it goes.
struct ProgramLayout {
  struct Argument {
    bool is_weight;
    std::size_t number;  // of the weight or of the block
  };

  // Rows that are computed when a request first has their values; see runtime/tables.py.
  struct Table {
    std::size_t block;  // of the field
    std::int64_t rows;
    nb::object filled;  // an array of bytes, one for each row
    nb::object fill;    // called with the values whose rows are missing
  };

  Entry entry = nullptr;
  nb::object keepalive, linearizer_object;
  Linearizer* linearizer = nullptr;  // null once the collector has taken the program apart
  std::vector<std::size_t> sizes;    // which of the linearizer's sizes the function takes
  std::vector<Argument> arguments;
  std::vector<nb::object> weights;
  std::vector<Block> blocks;  // index arrays, float fields, then states and scratch as they come
  std::size_t root_block, order_block;
  std::vector<StateLayout> states;
  std::vector<Table> tables;

  ProgramLayout(nb::object linearizer, nb::dict layout);

 private:
  void read_argument(nb::handle entry);
  void read_table(nb::handle entry);
  void add_block(Extent extent, std::int64_t elements, bool per_thread = false, int copies = -1);
};

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

 private:
  static constexpr double kUnknown = std::numeric_limits<double>::infinity();
  double team_ = kUnknown, alone_ = kUnknown;  // nanoseconds per node
};

class Program {
 public:
  Program(nb::object linearizer, nb::dict layout) : layout_(std::move(linearizer), std::move(layout)) {}
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  const ProgramLayout& layout() const { return layout_; }
  WorkspacePool& pool() { return pool_; }

  // The pace of requests of so many nodes: sizes within a fifth of each other are taken together.
  Pace& pace(std::int64_t nodes);

  // Whether the next request, which has this pace, is better run on the team.
  //
  // A second thread may have to be woken and has to be waited for, which a short request does not pay for. When that is
  // so depends on the machine and on who else uses it, so both ways are tried, and the slower one again now and then:
  // for a few requests in a row, whatever their sizes, because the first one finds the team asleep. A long request does
  // not notice waking, and to try it the other way costs its caller milliseconds: once is enough.
  bool prefers_team(const Pace& pace, double nodes) {
    constexpr std::uint32_t kInARow = 4, kFirst = 4 * kInARow, kTryAgain = 128, kTryLong = 8;  // requests
    constexpr double kLong = 1e6;                                                              // nanoseconds
    const std::uint32_t number = requests_++;
    if (nodes * std::min({pace.expected(true), pace.expected(false), last_pace}) > kLong && last_pace > 0) {
      if (!pace.is_known(true)) return true;
      if (!pace.is_known(false)) return number % kTryLong != kTryLong - 1;
      return pace.prefers_team() ? number % kTryAgain != 0 : number % kTryLong == 0;
    }
    if (number < kFirst) return number / kInARow % 2 == 0;
    if (!pace.is_known(true) || !pace.is_known(false)) return pace.is_known(false);
    const bool try_other = number % kTryAgain < kInARow;
    return pace.prefers_team() != try_other;
  }
  bool uses_team = true;  // did the last request?
  double last_pace = 0;   // of the last request, in nanoseconds per node

  // Raises RuntimeError after drop_references().
  Linearizer& linearizer() const;

  int traverse(visitproc visit, void* arg) const;
  void drop_references();

 private:
  ProgramLayout layout_;
  WorkspacePool pool_;
  static constexpr std::size_t kSizesPerDoubling = 4;
  std::array<Pace, 64 * kSizesPerDoubling> paces_;  // in place: used while others call
  std::uint32_t requests_ = 0;
};

// A request in its workspace, and what the program made of it. It holds the memory of the call until it is collected.
class Run {
 public:
  // `out` has an array to write for each state, or None; or is None itself.
  Run(nb::object program, bool single, std::int64_t threads, nb::handle out);
  Run(Run&&) = default;
  Run& operator=(Run&&) = delete;
  ~Run();

  // Linearize a list of structures or a Forest into the workspace. `merge` as in Request::linearize.
  void prepare(Request& request, nb::handle structures, bool merge = true);
  // Run the compiled function, on `threads` threads where they can be had and are faster than one; without the GIL,
  // unless that takes no longer than handing the GIL over. The team is told where it is not needed after all.
  void execute(Announcement* announced = nullptr);
  // How many threads to announce this request to.
  std::int64_t expected_threads() const { return program_->uses_team ? threads_ : 1; }
  // Write the states at the roots into the arrays that were given, or into new ones.
  void write_roots();

  nb::object root(std::size_t state) const;
  nb::object nodes(std::size_t state) const;
  nb::dict linear_form() const;
  // Nodes that were computed, and nodes that the user gave: more than were computed where duplicates were merged.
  std::int64_t num_nodes() const { return workspace_->sizes[0]; }
  std::int64_t num_user_nodes() const {
    return program_->linearizer().spec().dedup ? workspace_->sizes.back() : num_nodes();
  }

  const Program& program() const { return *program_; }
  Workspace& workspace() const { return *workspace_; }

  int traverse(visitproc visit, void* arg) const;
  void drop_references() {}  // a cycle through a run also goes through its program, which lets go

 private:
  void fill_tables() const;
  std::vector<npy_intp> shape_of(std::size_t state, std::int64_t count, bool leading_axis) const;
  void gather(std::size_t state, std::size_t index_block, std::int64_t count, float* to) const;
  void check(std::size_t state) const;
  void check_out(std::size_t state) const;

  nb::object program_object_;
  Program* program_;
  bool single_;
  std::int64_t threads_;
  std::unique_ptr<Workspace> workspace_;
  std::vector<nb::object> roots_;  // per state; not valid until it is written or given
};

}  // namespace cortex
