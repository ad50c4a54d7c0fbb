#include "steps.hpp"

#include <string>

#include "errors.hpp"

namespace cortex {

namespace {

PyObject* truth(int found) {
  if (found < 0) throw nb::python_error();
  return Py_NewRef(found ? Py_True : Py_False);
}

bool leads_nowhere(const nb::python_error& error) {
  return error.matches(PyExc_AttributeError) || error.matches(PyExc_IndexError) || error.matches(PyExc_KeyError) ||
         error.matches(PyExc_TypeError);
}

// Is it sure that indexing or measuring such an object raises TypeError?
bool has_no_items(PyObject* x) {
  const PyTypeObject* type = Py_TYPE(x);
  return !(type->tp_as_mapping && type->tp_as_mapping->mp_subscript) &&
         !(type->tp_as_sequence && type->tp_as_sequence->sq_item) && !PyType_Check(x);
}

bool has_no_length(PyObject* x) {
  const PyTypeObject* type = Py_TYPE(x);
  return !(type->tp_as_mapping && type->tp_as_mapping->mp_length) &&
         !(type->tp_as_sequence && type->tp_as_sequence->sq_length);
}

std::size_t place_of(const PyTypeObject* type) {
  const auto bits = reinterpret_cast<std::uintptr_t>(type);
  return (bits >> 4) ^ (bits >> 9);
}

// Does an instance say that it is of another class than it is of?
bool poses(PyTypeObject* type) {
  static PyObject* const name = PyUnicode_InternFromString("__class__");
  return _PyType_Lookup(type, name) != _PyType_Lookup(&PyBaseObject_Type, name);
}

}  // namespace

PyObject* ByClass::get(PyTypeObject* type) const {
  const Place& place = places_[place_of(type) % places_.size()];
  if (place.type != type || place.version == 0 || place.version != type->tp_version_tag) return nullptr;
  return Py_NewRef(place.value.ptr());
}

void ByClass::set(PyTypeObject* type, const nb::object& value) const {
  if (!poses(type)) places_[place_of(type) % places_.size()] = {type, type->tp_version_tag, value};
}

Steps::Steps(nb::handle source) {
  for (nb::handle each : list_of(source)) steps_.push_back(step(each));
}

Steps::Step Steps::step(nb::handle source) {
  using Kind = Step::Kind;
  const std::string what = nb::cast<std::string>(nb::object(source[0]));
  const nb::object first = source[1];
  if (what == "attribute") return {Kind::kAttribute, Attribute(first.ptr()), {}};
  const Attribute none(own(PyUnicode_InternFromString("")).ptr());
  if (what == "has") return {Kind::kHas, Attribute(first.ptr()), {}};
  if (what == "call") return {Kind::kCall, none, first};
  if (what == "contains") return {Kind::kContains, none, first};
  if (what == "item") {
    Step found{Kind::kItem, none, first};
    found.is_index = PyLong_CheckExact(first.ptr());
    if (found.is_index && (found.index = PyLong_AsSsize_t(first.ptr())) == -1 && PyErr_Occurred())
      throw nb::python_error();
    return found;
  }
  if (what != "function") python_error(PyExc_ValueError, "a linearizer's spec has the unknown step '" + what + "'");
  const std::string name = nb::cast<std::string>(first);
  const Kind kind = name == "bool"                         ? Kind::kTruth
                    : name == "len"                        ? Kind::kLength
                    : name == "list"                       ? Kind::kList
                    : name == "type" || name == "category" ? Kind::kOfClass
                                                           : Kind::kFunction;
  return {kind, none, nb::object(source[2])};
}

PyObject* Steps::item(const Step& step, PyObject* from) {
  if (step.is_index && (PyTuple_CheckExact(from) || PyList_CheckExact(from))) {
    const Py_ssize_t length = PySequence_Fast_GET_SIZE(from);
    const Py_ssize_t at = step.index < 0 ? step.index + length : step.index;
    return at < 0 || at >= length ? nullptr : Py_NewRef(PySequence_Fast_GET_ITEM(from, at));
  }
  if (PyDict_CheckExact(from)) {
    PyObject* found = PyDict_GetItemWithError(from, step.value.ptr());
    if (!found && PyErr_Occurred()) throw nb::python_error();
    return Py_XNewRef(found);
  }
  if (has_no_items(from)) return nullptr;
  return own(PyObject_GetItem(from, step.value.ptr())).release().ptr();
}

// What one step leads to, a new reference; null where it is known without an exception that it leads nowhere.
PyObject* Steps::take(const Step& step, PyObject* from) {
  using Kind = Step::Kind;
  switch (step.kind) {
    case Kind::kAttribute:
      return step.attribute.get(from);
    case Kind::kItem:
      return item(step, from);
    case Kind::kTruth:
      return truth(PyObject_IsTrue(from));
    case Kind::kLength: {
      if (has_no_length(from)) return nullptr;
      const Py_ssize_t length = PyObject_Size(from);
      if (length < 0) throw nb::python_error();
      return own(PyLong_FromSsize_t(length)).release().ptr();
    }
    case Kind::kList:
      return own(PySequence_List(from)).release().ptr();
    case Kind::kCall:
      return own(PyObject_CallObject(from, step.value.ptr())).release().ptr();
    case Kind::kContains:
      return truth(PySequence_Contains(from, step.value.ptr()));
    case Kind::kHas: {
      PyObject* found = nullptr;
      const int is_there = look_up(from, step.attribute.name().ptr(), &found);
      Py_XDECREF(found);
      return truth(is_there);
    }
    case Kind::kOfClass: {
      PyTypeObject* type = Py_TYPE(from);
      if (PyObject* known = step.known.get(type)) return known;
      nb::object found = own(PyObject_CallOneArg(step.value.ptr(), from));
      step.known.set(type, found);
      return found.release().ptr();
    }
    case Kind::kFunction:
      break;
  }
  return own(PyObject_CallOneArg(step.value.ptr(), from)).release().ptr();
}

// The same by the way of Python's own that says why it leads nowhere.
nb::object Steps::aloud(const Step& step, PyObject* from) {
  if (step.kind == Step::Kind::kAttribute) return own(PyObject_GetAttr(from, step.attribute.name().ptr()));
  if (step.kind == Step::Kind::kItem) return own(PyObject_GetItem(from, step.value.ptr()));
  const Py_ssize_t length = PyObject_Size(from);
  if (length < 0) throw nb::python_error();
  return own(PyLong_FromSsize_t(length));
}

PyObject* Steps::follow(PyObject* from) const {
  nb::object at = nb::borrow(from);
  for (const Step& step : steps_) {
    PyObject* found = take(step, at.ptr());
    at = found ? nb::steal(found) : aloud(step, at.ptr());
  }
  return at.release().ptr();
}

PyObject* Steps::find(PyObject* from) const {
  nb::object at = nb::borrow(from);
  try {
    for (const Step& step : steps_) {
      PyObject* found = take(step, at.ptr());
      if (!found) return nullptr;
      at = nb::steal(found);
    }
  } catch (nb::python_error& error) {
    if (!leads_nowhere(error)) throw;
    return nullptr;
  }
  return at.release().ptr();
}

int Steps::traverse(visitproc visit, void* arg) const {
  for (const Step& step : steps_)
    if (step.value.is_valid()) Py_VISIT(step.value.ptr());
  return 0;
}

void Steps::drop_references() {
  for (Step& step : steps_)
    if (step.kind == Step::Kind::kFunction) step.value = nb::none();
}

}  // namespace cortex
