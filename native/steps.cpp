#include "steps.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "computed.hpp"
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

// Does an instance say that it is of another class than it is of?
bool poses(PyTypeObject* type) {
  static PyObject* const name = PyUnicode_InternFromString("__class__");
  return _PyType_Lookup(type, name) != _PyType_Lookup(&PyBaseObject_Type, name);
}

// Is it a class or a member of an enumeration?
bool is_constant(PyObject* x) {
  static PyObject* const enumeration = nb::object(nb::module_::import_("enum").attr("Enum")).release().ptr();
  return PyType_Check(x) || PyType_IsSubtype(Py_TYPE(x), reinterpret_cast<PyTypeObject*>(enumeration));
}

bool is_exact_sequence(PyObject* x) { return PyTuple_CheckExact(x) || PyList_CheckExact(x); }

// Texts that are asked for by tests are compared by address first.
nb::object interned(nb::object text) {
  if (!PyUnicode_CheckExact(text.ptr())) return text;
  PyObject* found = text.release().ptr();
  PyUnicode_InternInPlace(&found);
  return nb::steal(found);
}

constexpr Py_ssize_t kLongPattern = 64;
constexpr std::size_t kMostForms = 16;

PyObject* attribute_named(PyObject* x, const char* text, PyObject*& name) {
  if (!name) name = PyUnicode_InternFromString(text);
  return PyObject_GetAttr(x, name);
}

// Is it a tensor of torch, as far as its class tells?
bool may_be_tensor(PyObject* x) {
  static PyObject* const name = PyUnicode_InternFromString("detach");
  return _PyType_Lookup(Py_TYPE(x), name) != nullptr;
}

// Tells whether an object still has its class as it was. Code of the user's can give it another one, or change the class.
class Unchanged {
 public:
  explicit Unchanged(PyObject* object) : object_(object), type_(nb::borrow(type())), version_(version()) {}
  explicit operator bool() const { return type() == type_.ptr() && version() == version_; }

 private:
  PyObject* type() const { return reinterpret_cast<PyObject*>(Py_TYPE(object_)); }
  unsigned int version() const {
    static PyObject* const name = PyUnicode_InternFromString("__class__");
    _PyType_Lookup(Py_TYPE(object_), name);  // gives the class a version, where it has none
    return Py_TYPE(object_)->tp_version_tag;
  }

  PyObject* object_;
  nb::object type_;
  unsigned int version_;
};

}  // namespace

Remembered::Place& Remembered::place(void* what) const {
  const auto bits = reinterpret_cast<std::uintptr_t>(what);
  return places_[((bits >> 4) ^ (bits >> 9)) % places_.size()];
}

PyObject* Remembered::of_class(PyTypeObject* type) const {
  const Place& found = place(type);
  if (found.what != type || found.version == 0 || found.version != type->tp_version_tag) return nullptr;
  return Py_NewRef(found.value.ptr());
}

PyObject* Remembered::of_object(PyObject* object) const {
  const Place& found = place(object);
  return found.what == object ? Py_NewRef(found.value.ptr()) : nullptr;
}

// What was remembered before is let go last: that may run code that comes here again.
void Remembered::keep_for_class(PyTypeObject* type, const nb::object& value) const {
  if (!poses(type)) std::exchange(place(type), {type, type->tp_version_tag, {}, value});
}

void Remembered::keep_for_object(PyObject* object, const nb::object& value) const {
  std::exchange(place(object), {object, 0, nb::borrow(object), value});
}

int Remembered::traverse(visitproc visit, void* arg) const {
  for (const Place& each : places_)
    if (each.kept.is_valid()) Py_VISIT(each.kept.ptr());
  return 0;
}

void Remembered::drop_references() { places_ = {}; }

// What is remembered is let go after the list is in order: that may run code that comes here again.
void RememberedForms::keep(Known made) const {
  std::vector<Known> before;
  if (known_.size() == kMostForms) before.swap(known_);
  known_.push_back(std::move(made));
}

// The text of a form: remembered, or made by `function`. `look` gives the form anew, since the function may run code of the
// user's that changes it.
template <class Look>
nb::object RememberedForms::text(PyObject* x, PyObject* function, Look look) const {
  Known form = look();
  if (!form.is_short()) return interned(own(PyObject_CallOneArg(function, x)));
  for (const Known& each : known_)
    if (each.is_like(form)) return each.text;
  form.text = interned(own(PyObject_CallOneArg(function, x)));
  nb::object text = form.text;
  if (look().is_like(form)) keep(std::move(form));
  return text;
}

nb::object RememberedForms::of_array(PyObject* x, PyObject* function) const {
  return text(x, function, [x]() -> Known {
    auto* const array = reinterpret_cast<PyArrayObject*>(x);
    Known form{nb::borrow(reinterpret_cast<PyObject*>(Py_TYPE(x))),
               nb::borrow(reinterpret_cast<PyObject*>(PyArray_DESCR(array))), PyArray_NDIM(array)};
    if (form.is_short()) std::copy_n(PyArray_DIMS(array), form.rank, form.shape.begin());
    return form;
  });
}

nb::object RememberedForms::of_tensor(PyObject* x, PyObject* function) const {
  static PyObject *shape_name = nullptr, *dtype_name = nullptr;
  return text(x, function, [x]() -> Known {
    const nb::object sizes = own(attribute_named(x, "shape", shape_name));
    const bool is_tuple = PyTuple_Check(sizes.ptr());
    Known form{nb::borrow(reinterpret_cast<PyObject*>(Py_TYPE(x))), own(attribute_named(x, "dtype", dtype_name)),
               is_tuple ? PyTuple_GET_SIZE(sizes.ptr()) : std::numeric_limits<Py_ssize_t>::max()};
    for (Py_ssize_t i = 0; form.is_short() && i < form.rank; ++i) {
      const Py_ssize_t size = PyLong_AsSsize_t(PyTuple_GET_ITEM(sizes.ptr(), i));
      if (size == -1 && PyErr_Occurred()) throw nb::python_error();
      form.shape[static_cast<std::size_t>(i)] = size;
    }
    return form;
  });
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
  if (what == "compute") {
    Step found{Kind::kCompute, none, {}};
    found.computed = std::make_shared<Computed>(source);
    return found;
  }
  if (what == "constant") return {Kind::kValue, none, first};
  if (what == "given") {
    Step found{Kind::kGiven, none, {}};
    found.index = nb::cast<Py_ssize_t>(first);
    return found;
  }
  if (what == "look up") {
    if (!PyDict_Check(first.ptr())) python_error(PyExc_TypeError, "a linearizer looks up in dictionaries only");
    Step found{Kind::kLookUp, none, first};
    found.otherwise = nb::object(source[2]);
    return found;
  }
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
                    : name == "identity"                   ? Kind::kConstant
                    : name == "items"                      ? Kind::kPattern
                    : name == "floats"                     ? Kind::kFloats
                    : name == "form"                       ? Kind::kForm
                                                           : Kind::kFunction;
  return {kind, none, nb::object(source[2])};
}

PyObject* Steps::item(const Step& step, PyObject* from) {
  if (step.is_index && is_exact_sequence(from)) {
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

// The value of a function that looks at the object's class only.
nb::object Steps::of_class(const Step& step, PyObject* from) {
  if (PyObject* known = step.known.of_class(Py_TYPE(from))) return nb::steal(known);
  const Unchanged unchanged(from);
  nb::object found = interned(own(PyObject_CallOneArg(step.value.ptr(), from)));
  if (unchanged) step.known.keep_for_class(Py_TYPE(from), found);
  return found;
}

// The form of an array or a tensor. What other objects have is a function of their class.
nb::object Steps::form(const Step& step, PyObject* from) {
  if (PyArray_Check(from)) return step.forms.of_array(from, step.value.ptr());
  return may_be_tensor(from) ? step.forms.of_tensor(from, step.value.ptr()) : of_class(step, from);
}

// The value of a function that gives a letter for each item, which depends on the item's class only.
nb::object Steps::pattern(const Step& step, PyObject* from) {
  if (!is_exact_sequence(from) || PySequence_Fast_GET_SIZE(from) > kLongPattern)
    return own(PyObject_CallOneArg(step.value.ptr(), from));
  const nb::object items = own(PySequence_Tuple(from));  // a list may change while a function runs
  std::array<char, kLongPattern + 1> letters{};
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.ptr()); ++i) {
    PyObject* item = PyTuple_GET_ITEM(items.ptr(), i);
    nb::object letter = nb::steal(step.known.of_class(Py_TYPE(item)));
    if (!letter.is_valid()) {
      const Unchanged unchanged(item);
      letter = own(PyObject_CallOneArg(step.value.ptr(), nb::make_tuple(nb::borrow(item)).ptr()));
      if (unchanged) step.known.keep_for_class(Py_TYPE(item), letter);
    }
    letters[static_cast<std::size_t>(i)] = static_cast<char>(PyUnicode_READ_CHAR(letter.ptr(), 0));
  }
  return own(PyUnicode_InternFromString(letters.data()));
}

// What one step leads to, a new reference; null where it is known without an exception that it leads nowhere.
PyObject* Steps::take(const Step& step, PyObject* from, Given given) {
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
    case Kind::kOfClass:
      return of_class(step, from).release().ptr();
    case Kind::kConstant: {
      if (PyObject* known = step.known.of_object(from)) return known;
      nb::object found = interned(own(PyObject_CallOneArg(step.value.ptr(), from)));
      if (is_constant(from)) step.known.keep_for_object(from, found);
      return found.release().ptr();
    }
    case Kind::kPattern:
      return pattern(step, from).release().ptr();
    case Kind::kFloats: {
      if (!is_exact_sequence(from)) return of_class(step, from).release().ptr();
      bool some = false;
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(from); ++i)
        some |= PyFloat_Check(PySequence_Fast_GET_ITEM(from, i));
      return own(PyUnicode_InternFromString(some ? "some" : "none")).release().ptr();
    }
    case Kind::kForm:
      return form(step, from).release().ptr();
    case Kind::kLookUp: {
      PyObject* found = PyDict_GetItemWithError(step.value.ptr(), from);
      if (!found && PyErr_Occurred()) throw nb::python_error();
      if (!found && !step.otherwise.is_none()) found = step.otherwise.ptr();
      return Py_XNewRef(found);
    }
    case Kind::kCompute:
      return step.computed->of(from, given);
    case Kind::kValue:
      return Py_NewRef(step.value.ptr());
    case Kind::kGiven:
      if (static_cast<std::size_t>(step.index) >= given.size() || !given[static_cast<std::size_t>(step.index)])
        python_error(PyExc_KeyError, "a call is not given what is read of it");
      return Py_NewRef(given[static_cast<std::size_t>(step.index)]);
    case Kind::kFunction:
      break;
  }
  return own(PyObject_CallOneArg(step.value.ptr(), from)).release().ptr();
}

// The same by the way of Python's own that says why it leads nowhere.
nb::object Steps::aloud(const Step& step, PyObject* from) {
  if (step.kind == Step::Kind::kAttribute) return own(PyObject_GetAttr(from, step.attribute.name().ptr()));
  if (step.kind == Step::Kind::kItem) return own(PyObject_GetItem(from, step.value.ptr()));
  if (step.kind == Step::Kind::kLookUp) {
    PyErr_SetObject(PyExc_KeyError, from);
    throw nb::python_error();
  }
  const Py_ssize_t length = PyObject_Size(from);
  if (length < 0) throw nb::python_error();
  return own(PyLong_FromSsize_t(length));
}

PyObject* Steps::follow(PyObject* from, Given given) const {
  nb::object at = nb::borrow(from);
  try {
    for (const Step& step : steps_) {
      PyObject* found = take(step, at.ptr(), given);
      at = found ? nb::steal(found) : aloud(step, at.ptr());
    }
  } catch (nb::python_error& error) {
    if (!leads_nowhere(error)) throw;
    nb::object cause = nb::borrow(error.value());
    structure_error_from(cause, type_name(cause.ptr()) + ": " + nb::cast<std::string>(nb::str(cause)));
  }
  return at.release().ptr();
}

PyObject* Steps::find(PyObject* from, Given given) const {
  nb::object at = nb::borrow(from);
  try {
    for (const Step& step : steps_) {
      PyObject* found = take(step, at.ptr(), given);
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
  for (const Step& step : steps_) {
    if (step.value.is_valid()) Py_VISIT(step.value.ptr());
    if (int found = step.known.traverse(visit, arg)) return found;
    if (int found = step.computed ? step.computed->traverse(visit, arg) : 0) return found;
  }
  return 0;
}

void Steps::drop_references() {
  for (Step& step : steps_) {
    step.known.drop_references();
    if (step.computed) step.computed->drop_references();
    if (step.kind == Step::Kind::kFunction || step.kind == Step::Kind::kLookUp) step.value = nb::none();
  }
}

}  // namespace cortex
