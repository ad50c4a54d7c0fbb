#include "attribute.hpp"

#include <structmember.h>

#include "errors.hpp"

namespace cortex {

namespace {

// The offset of a plain `__slots__` member, or 0 when `found` is something else.
Py_ssize_t slot_offset(PyTypeObject* type, PyObject* found) {
  if (!found || Py_TYPE(found) != &PyMemberDescr_Type || type->tp_getattro != PyObject_GenericGetAttr) return 0;
  const auto* descriptor = reinterpret_cast<PyMemberDescrObject*>(found);
  const PyMemberDef* member = descriptor->d_member;
  const bool plain = member->type == T_OBJECT_EX && (member->flags & ~READONLY) == 0;
  return plain && PyType_IsSubtype(type, PyDescr_TYPE(descriptor)) ? member->offset : 0;
}

}  // namespace

int look_up(PyObject* node, PyObject* name, PyObject** value) {
#if PY_VERSION_HEX >= 0x030D0000
  return PyObject_GetOptionalAttr(node, name, value);
#else
  return _PyObject_LookupAttr(node, name, value);
#endif
}

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
  PyObject* value = nullptr;
  const int found = look_up(node, name_.ptr(), &value);
  if (found < 0) throw nb::python_error();

  // Reading may have given the node another class, and have freed the one it had: look at the present one.
  PyTypeObject* const type = Py_TYPE(node);
  PyObject* const in_class = _PyType_Lookup(type, name_.ptr());
  if (found == 0 && in_class && Py_TYPE(in_class) == &PyProperty_Type) {
    // The property exists and raised AttributeError itself: that is the user's error, not an absent attribute.
    return own(PyObject_GetAttr(node, name_.ptr())).release().ptr();
  }
  if (const Py_ssize_t offset = slot_offset(type, in_class)) {
    places_[type->tp_version_tag % kPlaces] = {type->tp_version_tag, offset};
  }
  return value;
}

}  // namespace cortex
