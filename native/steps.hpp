// Ways from an object to what the user's code reaches from it: `node.left.word`; see frontend/torch/steps.py.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "attribute.hpp"
#include "python.hpp"

namespace cortex {

// What a function gives, remembered for some of the things that it was asked of.
//
// By class, for functions that look at nothing else of an object: used only while the class has the version tag it had
// then, as offsets of attributes are. By object, for those of constants, which are kept alive.
class Remembered {
 public:
  // A new reference, or null where nothing is remembered.
  PyObject* of_class(PyTypeObject* type) const;
  PyObject* of_object(PyObject* object) const;
  void keep_for_class(PyTypeObject* type, const nb::object& value) const;
  void keep_for_object(PyObject* object, const nb::object& value) const;

  int traverse(visitproc visit, void* arg) const;
  void drop_references();

 private:
  struct Place {
    void* what = nullptr;
    unsigned int version = 0;
    nb::object kept;
    nb::object value;
  };
  mutable std::array<Place, 16> places_{};

  Place& place(void* what) const;
};

// The texts of forms of arrays and tensors (`float32[3]`), remembered by class, element type and shape.
class RememberedForms {
 public:
  // `function` makes the text where it is not remembered.
  nb::object of_array(PyObject* array, PyObject* function) const;
  nb::object of_tensor(PyObject* tensor, PyObject* function) const;

 private:
  struct Known {
    nb::object type;
    nb::object element_type;
    Py_ssize_t rank = 0;                   // more than `shape` has room for: not remembered
    std::array<Py_ssize_t, 8> shape = {};  // in place: this is made for every array that is looked at
    nb::object text = {};

    bool is_short() const { return static_cast<std::size_t>(rank) <= shape.size(); }
    bool is_like(const Known& other) const {
      return type.is(other.type) && element_type.is(other.element_type) && rank == other.rank && shape == other.shape;
    }
  };
  mutable std::vector<Known> known_;

  void keep(Known made) const;
  template <class Look>
  nb::object text(PyObject* x, PyObject* function, Look look) const;
};

class Computed;

// The numbers and texts that a call is given (borrowed), by their places in the table of calls.
using Given = std::span<PyObject* const>;

class Steps {
 public:
  Steps() = default;

  // From a list of ("attribute", name), ("item", key), ("function", name, function), ("call", arguments),
  // ("contains", key), ("has", name), ("look up", dictionary, default or None), ("given", number), ("constant", value) and ("compute", ...)
  // (computed.hpp).
  explicit Steps(nb::handle source);

  // What the steps lead to, a new reference, of an object that a call is made on which is `given` numbers and texts. A
  // StructureError where they lead nowhere, as with `find`; other errors of the user's objects pass through.
  PyObject* follow(PyObject* from, Given given = {}) const;

  // The same, or null where they lead nowhere: there is no such attribute, index or key, or not on such an object.
  PyObject* find(PyObject* from, Given given = {}) const;

  int traverse(visitproc visit, void* arg) const;
  void drop_references();

 private:
  struct Step {
    enum class Kind {
      kAttribute, kItem, kCall, kContains, kHas, kTruth, kLength, kList, kFunction,
      kOfClass,   // a function of the object's class
      kConstant,  // a function of a constant: a class, or a member of an enumeration
      kPattern,   // which items are nodes: a function of the classes of the items
      kFloats,    // whether some items are floats; of other objects, a function of the class
      kLookUp,    // what a dictionary holds for the object
      kForm,      // the element type and the shape of an array; of other objects, a function of the class
      kCompute,   // what is computed from what steps lead to from the object
      kGiven,     // what the call is given
      kValue,     // a constant of the code, whatever the object is
    } kind;
    Attribute attribute;  // kAttribute, kHas
    nb::object value;     // the key, the function, the arguments, or the dictionary
    nb::object otherwise = {};  // kLookUp: what is found where the dictionary holds nothing; None where nothing is
    Py_ssize_t index = 0;  // kItem: the key, where it is an index; kGiven: which one
    bool is_index = false;
    Remembered known = {};
    RememberedForms forms = {};  // kForm
    std::shared_ptr<Computed> computed = {};  // kCompute
  };

  static Step step(nb::handle source);
  static PyObject* take(const Step& step, PyObject* from, Given given);
  static PyObject* item(const Step& step, PyObject* from);
  static nb::object of_class(const Step& step, PyObject* from);
  static nb::object pattern(const Step& step, PyObject* from);
  static nb::object form(const Step& step, PyObject* from);
  static nb::object aloud(const Step& step, PyObject* from);

  std::vector<Step> steps_;
};

}  // namespace cortex
