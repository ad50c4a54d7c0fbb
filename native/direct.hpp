// Calls of a compiled module, from its arguments to its result, as most of them are.
#pragma once

#include <vector>

#include "program.hpp"

namespace cortex {

// What a call with certain constants is made by. It takes arguments by position, finds out whether they are such ones,
// makes the request, runs it, and gives the result, or NotImplemented where anything is unlike the calls that it is for.
class DirectCall {
 public:
  explicit DirectCall(nb::dict spec);
  DirectCall(const DirectCall&) = delete;
  DirectCall& operator=(const DirectCall&) = delete;

  nb::object operator()(nb::handle args) const;

  int traverse(visitproc visit, void* arg) const;
  void drop_references();

 private:
  enum class Expected : std::uint8_t { kNode, kConstant, kTensor };
  struct Parameter {
    Expected expected;
    nb::object name, attribute;  // of the module, and of the object that holds the arguments
    nb::object value;            // the constant; the form of a tensor's rows
    nb::object missing;          // what it is where it is not given; null where it has to be given
  };

  bool fits(const Parameter& parameter, PyObject* value) const;
  nb::object root(PyObject* const* values) const;

  nb::object program_, kinds_, tensor_classes_, form_of_, array_of_, holder_, head_, relations_, result_;
  std::int64_t threads_;
  std::vector<Parameter> parameters_;
  std::size_t node_;             // the parameter that is the node
  bool takes_list_, is_single_;  // may the only argument be a list; is the result one tensor of float32?
  bool gives_run_;               // is the result made from the run and its root, rather than from arrays?
  struct Part {
    std::size_t state;
    std::vector<RowsOfList> rows;  // in place of the state of the root, where there are any
  };
  nb::object part(Run& made, const Part& part) const;
  std::vector<Part> parts_;  // of the result
};

}  // namespace cortex
