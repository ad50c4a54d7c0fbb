// Fields that are computed from others by Python's own operators; see frontend/computed.py.
#pragma once

#include <vector>

#include "python.hpp"
#include "steps.hpp"

namespace cortex {

class Computed {
 public:
  // From ("compute", name of the function, the function, operands, failure): operands are ("constant", value) and
  // ("steps", ...), `failure` is called with what the function raised, and raises what the user is told.
  explicit Computed(nb::handle source);

  // The value, a new reference, of the object that operands are reached from and of what a call on it is given.
  PyObject* of(PyObject* from, Given given) const;

  int traverse(visitproc visit, void* arg) const;
  void drop_references();

 private:
  struct Operand {
    nb::object constant;  // invalid where steps lead to the value
    Steps steps;
  };
  using Binary = PyObject* (*)(PyObject*, PyObject*);

  nb::object operand(std::size_t number, PyObject* from, Given given) const;
  PyObject* apply(PyObject* const* operands) const;

  Binary binary_ = nullptr;  // the operator, where it is one of Python's
  int order_ = -1;           // the comparison, where it is one: Py_LT, ...
  nb::object function_, failure_;
  std::vector<Operand> operands_;
};

}  // namespace cortex
