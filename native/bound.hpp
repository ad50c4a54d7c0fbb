// A request that is run again and again: linearized once, its fields given by arrays.
#pragma once

#include <utility>
#include <vector>

#include "program.hpp"

namespace cortex {

// One thread at a time may use it; a second one is refused. All but the compiled function runs with the GIL held.
class Bound {
 public:
  Bound(nb::handle_t<Program> program, nb::handle structures, bool single, std::int64_t threads, nb::handle out);
  Bound(const Bound&) = delete;
  Bound& operator=(const Bound&) = delete;

  // Read the fields from their arrays, run the program, and write the states at the roots.
  void run();

  // From now on, run `program`: the same code with other weights.
  void use(nb::handle_t<Program> program);

  // By name, the array of each field in the user's order: int64 or float32. One that the model's control flow reads is
  // read-only, since other values could need other code; where the model reads no such field of a node, it is 0.
  nb::dict fields() const;

  nb::object root(std::size_t state);
  nb::object nodes(std::size_t state) const;
  std::int64_t num_nodes() const { return run_.num_nodes(); }

  int traverse(visitproc visit, void* arg) const;
  void drop_references() {}  // as for Run

 private:
  // A field, where its values come from, and the nodes that it is read of.
  struct Column {
    FieldRef field;
    nb::object array;
    bool is_fixed;
    std::vector<std::int32_t> nodes;
  };

  void add(FieldRef field, const std::string& name, const std::vector<npy_intp>& shape, bool is_fixed,
           const Request& request);
  void read(const Column& column);
  void refuse_if_busy() const;

  Run run_;
  std::vector<std::pair<std::string, Column>> columns_;
  bool is_busy_ = false;  // guarded by the GIL
};

}  // namespace cortex
