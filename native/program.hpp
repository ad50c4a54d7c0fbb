// A compiled program and the result of running it.
#pragma once

#include <memory>
#include <vector>

#include "linearizer.hpp"
#include "pace.hpp"
#include "team.hpp"
#include "workspace.hpp"

namespace cortex {

// A state as it lies in memory: `rows` rows of `columns` elements, `pitch` apart, `stride` elements per node.
struct StateLayout {
  std::vector<npy_intp> shape;
  std::int64_t rows, columns, pitch, stride;
  std::size_t block;
  bool operator==(const StateLayout&) const = default;
};

// Everything a program takes, and where in a workspace it goes.
struct ProgramLayout {
  struct Argument {
    bool is_weight;
    std::size_t number;  // of the weight or of the block
    bool operator==(const Argument&) const = default;
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

  // Does a workspace that was filled for one serve the other? Weights may differ in their values only.
  bool is_like(const ProgramLayout& other) const;

 private:
  void read_argument(nb::handle entry);
  void read_table(nb::handle entry);
  void add_block(Extent extent, std::int64_t elements, bool per_thread = false, int copies = -1);
};

// A state of the nodes in a list relation, the last of them first where they are `reversed`, or of the child in a slot.
// The arrays of the relation are blocks of the workspace.
struct RowsOfList {
  std::size_t state;
  enum class How : std::uint8_t { kList, kReversed, kSlot } how;
  std::size_t starts, nodes;
};

class Program {
 public:
  Program(nb::object linearizer, nb::dict layout) : layout_(std::move(linearizer), std::move(layout)) {}
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  const ProgramLayout& layout() const { return layout_; }
  // The rows that a list names: for each run of them the state, the relation, and how they are taken.
  std::vector<RowsOfList> rows_of(nb::handle runs) const;
  WorkspacePool& pool() { return pool_; }

  Ways ways;              // of running requests
  bool uses_team = true;  // did the last request?

  // Raises RuntimeError after drop_references().
  Linearizer& linearizer() const;

  int traverse(visitproc visit, void* arg) const;
  void drop_references();

 private:
  ProgramLayout layout_;
  WorkspacePool pool_;
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
  // Let go of the memory of a request that has failed, perhaps because a signal interrupted it.
  void discard() noexcept;
  // Write the states at the roots into the arrays that there are: those that were given, and those that were asked for.
  void write_roots();

  // Run another program from now on, whose layout is like that of the present one.
  void use(nb::object program);

  // The states at the roots: the array that was given, or one that is made when it is first asked for.
  nb::object root(std::size_t state);
  bool has_root(std::size_t state) const { return state < roots_.size() && roots_[state].is_valid(); }
  nb::object nodes(std::size_t state) const;
  // The rows of states at the nodes in lists of the roots, those of a root one after the other; and where each root's end.
  std::pair<nb::object, nb::object> rows(const std::vector<RowsOfList>& parts) const;
  nb::dict linear_form() const;
  // Nodes that were computed, and nodes that the user gave: more than were computed where duplicates were merged.
  std::int64_t num_nodes() const { return workspace_->sizes[0]; }
  std::int64_t num_user_nodes() const {
    return program_->linearizer().spec().tells_user_nodes() ? workspace_->sizes.back() : num_nodes();
  }

  const Program& program() const { return *program_; }
  Workspace& workspace() const { return *workspace_; }

  int traverse(visitproc visit, void* arg) const;
  void drop_references() {}  // a cycle through a run also goes through its program, which lets go

 private:
  void fill_tables() const;
  void place_arguments() const;
  std::vector<npy_intp> shape_of(std::size_t state, std::int64_t count, bool leading_axis) const;
  float* copy_rows(std::size_t state, const std::int32_t* first, const std::int32_t* last, float* to) const;
  void gather(std::size_t state, std::size_t index_block, std::int64_t first, std::int64_t last, float* to) const;
  template <class To>
  void gather_all(std::size_t state, std::size_t index_block, std::int64_t count, To to) const;
  void check(std::size_t state) const;
  void check_whole() const;
  void check_out(std::size_t state) const;
  nb::object roots_of(std::size_t state) const;

  nb::object program_object_;
  Program* program_;
  bool single_;
  std::int64_t threads_;
  std::unique_ptr<Workspace> workspace_;
  std::vector<nb::object> roots_;  // per state; not valid unless it was given or asked for
  bool has_run_ = false, is_whole_ = false;  // ever; and are the states of the last run there?
};

// Linearize a list of structures or a Forest, and run the program on it. `out` as in Run.
Run run_program(nb::object program, nb::handle structures, bool single, std::int64_t threads, nb::handle out);

}  // namespace cortex
