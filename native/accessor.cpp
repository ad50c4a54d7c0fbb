#include "accessor.hpp"

#include <structmember.h>

#include "errors.hpp"

namespace cortex {

namespace {

nb::object attribute_name(const std::string& name, nb::handle meaning) {
  if (meaning.is_valid() && PyUnicode_Check(meaning.ptr())) return nb::borrow(meaning);
  return own(PyUnicode_FromStringAndSize(name.data(), static_cast<Py_ssize_t>(name.size())));
}

// Like getattr(node, name, <null>), without creating the exception that says there is none.
int lookup(PyObject* node, PyObject* name, PyObject** value) {
#if PY_VERSION_HEX >= 0x030D0000
  return PyObject_GetOptionalAttr(node, name, value);
#else
  return _PyObject_LookupAttr(node, name, value);
#endif
}

// The offset of a plain `__slots__` member, or 0 when `found` is something else.
Py_ssize_t slot_offset(PyTypeObject* type, PyObject* found) {
  if (!found || Py_TYPE(found) != &PyMemberDescr_Type || type->tp_getattro != PyObject_GenericGetAttr) return 0;
  const auto* descriptor = reinterpret_cast<PyMemberDescrObject*>(found);
  const PyMemberDef* member = descriptor->d_member;
  const bool plain = member->type == T_OBJECT_EX && (member->flags & ~READONLY) == 0;
  return plain && PyType_IsSubtype(type, PyDescr_TYPE(descriptor)) ? member->offset : 0;
}

}  // namespace

Attribute::Attribute(PyObject* name) {
  if (!PyUnicode_CheckExact(name)) python_error(PyExc_TypeError, "an attribute name must be a str");
  Py_INCREF(name);
  PyUnicode_InternInPlace(&name);
  name_ = nb::steal(name);
  const char* text = PyUnicode_AsUTF8(name);
  if (!text) throw nb::python_error();
  text_ = text;
}

PyObject* Attribute::get_slowly(PyObject* node) const {
  PyTypeObject* type = Py_TYPE(node);
  PyObject* value = nullptr;
  const int found = lookup(node, name_.ptr(), &value);
  if (found < 0) throw nb::python_error();

  PyObject* in_class = _PyType_Lookup(type, name_.ptr());
  if (found == 0 && in_class && Py_TYPE(in_class) == &PyProperty_Type) {
    // The property exists and raised AttributeError itself: that is the user's error, not an absent attribute.
    return own(PyObject_GetAttr(node, name_.ptr())).release().ptr();
  }
  if (const Py_ssize_t offset = slot_offset(type, in_class)) {
    places_[slot_of(type)] = {type, type->tp_version_tag, offset};
  }
  return value;
}

Accessor::Accessor(const std::string& name, nb::handle meaning)
    : name_(name), attribute_(attribute_name(name, meaning).ptr()) {
  if (!meaning.is_valid() || PyUnicode_Check(meaning.ptr())) return;
  if (PyTuple_Check(meaning.ptr())) {
    for (nb::handle part : nb::borrow<nb::tuple>(meaning)) parts_.emplace_back(part.ptr());
    if (parts_.empty()) python_error(PyExc_ValueError, "'" + name + "' cannot mean an empty tuple of attributes");
  } else if (PyCallable_Check(meaning.ptr())) {
    call_ = nb::borrow(meaning);
  } else {
    python_error(PyExc_TypeError, "'" + name + "' must mean an attribute name, a tuple of names or a callable, not " +
                                      brief_repr(meaning.ptr()));
  }
}

}  // namespace cortex
