// Ways from an object to what the user's code reaches from it: `node.left.word`; see frontend/torch/steps.py.
#pragma once

#include <array>
#include <vector>

#include "attribute.hpp"
#include "python.hpp"

namespace cortex {

// What a function of an object gives, remembered per class: for functions that look at nothing else.
//
// It is used only while the class has the version tag it had then, as offsets of attributes are.
class ByClass {
 public:
  // A new reference, or null where nothing is remembered.
  PyObject* get(PyTypeObject* type) const;
  void set(PyTypeObject* type, const nb::object& value) const;

 private:
  struct Place {
    PyTypeObject* type = nullptr;
    unsigned int version = 0;
    nb::object value;
  };
  mutable std::array<Place, 8> places_{};
};

class Steps {
 public:
  Steps() = default;

  // From a list of ("attribute", name), ("item", key), ("function", name, function), ("call", arguments),
  // ("contains", key) and ("has", name).
  explicit Steps(nb::handle source);

  // What the steps lead to, a new reference. Errors of the user's objects pass through.
  PyObject* follow(PyObject* from) const;

  // The same, or null where they lead nowhere: there is no such attribute, index or key, or not on such an object.
  PyObject* find(PyObject* from) const;

  int traverse(visitproc visit, void* arg) const;
  void drop_references();

 private:
  struct Step {
    enum class Kind { kAttribute, kItem, kFunction, kOfClass, kTruth, kLength, kList, kCall, kContains, kHas } kind;
    Attribute attribute;  // kAttribute, kHas
    nb::object value;     // the key, the function, or the arguments
    Py_ssize_t index = 0;  // kItem: the key, where it is an index
    bool is_index = false;
    ByClass known = {};  // kOfClass
  };

  static Step step(nb::handle source);
  static PyObject* take(const Step& step, PyObject* from);
  static PyObject* item(const Step& step, PyObject* from);
  static nb::object aloud(const Step& step, PyObject* from);

  std::vector<Step> steps_;
};

}  // namespace cortex
