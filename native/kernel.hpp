// A compiled function on arrays of fixed sizes: weights in place, temporaries from a pool, inputs and a result per call.
#pragma once

#include <limits>
#include <vector>

#include "team.hpp"
#include "workspace.hpp"

namespace cortex {

class Kernel {
 public:
  // `arrays` says where each argument of the function comes from, in order: ("weight", array), ("input", elements),
  // ("output", elements), ("scratch", elements) or ("private", elements of one thread's copy).
  Kernel(std::uintptr_t entry, nb::list arrays, nb::object keepalive);
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  // Run the function on `inputs`, in the order in which it takes them, and give its result: `out`, or, for None, a
  // new array of `shape`. All are f32, contiguous, and of exactly the elements that the function takes. `out` may have
  // memory in common with inputs: it is written when all of them have been read.
  nb::object run(nb::tuple inputs, nb::handle out, nb::tuple shape, std::int64_t threads);

  int traverse(visitproc visit, void* arg) const;
  void drop_references();

 private:
  enum class Source { kWeight, kInput, kOutput, kTemporary };
  struct Argument {
    Source source;
    std::size_t number;  // of the weight, input or temporary
    std::int64_t elements;
  };

  bool overlaps_inputs(nb::handle out, nb::tuple inputs) const;

  Entry entry_;
  std::vector<Argument> arguments_;
  std::vector<nb::object> weights_;
  std::vector<Block> temporaries_;
  std::size_t inputs_ = 0;
  nb::object keepalive_;
  WorkspacePool pool_;
  double longest_ = std::numeric_limits<double>::infinity();  // nanoseconds that a call is expected to take at most
};

}  // namespace cortex
