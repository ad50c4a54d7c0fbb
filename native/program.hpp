// A compiled program and the result of running it.
#pragma once

#include <memory>
#include <vector>

#include "linearizer.hpp"
#include "workspace.hpp"

namespace cortex {

// A state as it lies in memory: `rows` rows of `columns` elements, `pitch` apart, `stride` elements per node.
struct StateLayout {
  std::vector<npy_intp> shape;
  std::int64_t rows, columns, pitch, stride;
  std::size_t block;
};

// What a program and its runs share. A run outlives its program, but needs only the layout and the pool.
struct ProgramLayout {
  using Entry = void (*)(void** arrays, const std::int64_t* sizes);

  struct Argument {
    bool is_weight;
    std::size_t number;  // of the weight or of the block
  };

  Entry entry = nullptr;
  nb::object keepalive, linearizer_object;
  Linearizer* linearizer = nullptr;
  std::vector<std::size_t> sizes;  // which of the linearizer's sizes the function takes
  std::vector<Argument> arguments;
  std::vector<nb::object> weights;
  std::vector<Block> blocks;  // index arrays, float fields, then states and scratch as they come
  std::vector<StateLayout> states;
  WorkspacePool pool;

  ProgramLayout(nb::object linearizer, nb::dict layout);
  nb::object gather(const Workspace& from, std::size_t state, std::size_t index_block, std::int64_t count,
                    bool leading_axis) const;
  int traverse(visitproc visit, void* arg) const;

 private:
  void read_argument(nb::handle entry);
  void add_block(Extent extent, std::int64_t elements);
};

// The result of one call. It holds the memory of the call until it is collected.
class Run {
 public:
  Run(std::shared_ptr<ProgramLayout> layout, std::unique_ptr<Workspace> workspace);
  Run(Run&&) = default;
  friend class Program;
  Run& operator=(Run&&) = delete;
  ~Run();

  nb::object root(std::size_t state) const;
  nb::object nodes(std::size_t state) const;
  nb::dict linear_form() const;
  std::int64_t num_nodes() const { return workspace_->sizes[0]; }

  void copy_roots(bool single);

 private:
  const StateLayout& state_layout(std::size_t state) const;

  std::shared_ptr<ProgramLayout> layout_;
  std::unique_ptr<Workspace> workspace_;
  std::vector<nb::object> roots_;
};

class Program {
 public:
  Program(nb::object linearizer, nb::dict layout)
      : layout_(std::make_shared<ProgramLayout>(std::move(linearizer), std::move(layout))) {}

  Run run(nb::handle structures, bool single);

  int traverse(visitproc visit, void* arg) const { return layout_ ? layout_->traverse(visit, arg) : 0; }
  void drop_references() { layout_.reset(); }

 private:
  std::shared_ptr<ProgramLayout> layout_;
};

}  // namespace cortex
