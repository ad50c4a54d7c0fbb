#include "errors.hpp"

#include <cstring>

namespace cortex {

namespace {

// Both live as long as the process: they are created on import and the module is never unloaded.
PyObject* structure_error_type = nullptr;
PyObject* unknown_kind_type = nullptr;

constexpr Py_ssize_t kMaxRepr = 60;

}  // namespace

void structure_error(const std::string& message) { python_error(structure_error_type, message); }

void structure_error_from(const nb::object& cause, const std::string& message) {
  nb::object text = own(PyUnicode_DecodeUTF8(message.data(), static_cast<Py_ssize_t>(message.size()), "replace"));
  nb::object error = own(PyObject_CallOneArg(structure_error_type, text.ptr()));
  PyException_SetCause(error.ptr(), nb::object(cause).release().ptr());
  PyErr_SetObject(structure_error_type, error.ptr());
  throw nb::python_error();
}

void python_error(PyObject* type, const std::string& message) {
  // A class name or a repr may hold lone surrogates, so decoding must not fail.
  PyObject* text = PyUnicode_DecodeUTF8(message.data(), static_cast<Py_ssize_t>(message.size()), "replace");
  if (text) {
    PyErr_SetObject(type, text);
    Py_DECREF(text);
  }
  throw nb::python_error();
}

void unknown_kind(nb::handle node, const std::string& where, nb::list unchecked) {
  nb::object error = own(PyObject_CallFunction(
      unknown_kind_type, "s", ("no kind of the model fits the node at " + where).c_str()));
  error.attr("node") = node;
  error.attr("where") = nb::str(where.c_str());
  error.attr("unchecked") = unchecked;
  PyErr_SetObject(unknown_kind_type, error.ptr());
  throw nb::python_error();
}

bool is_own_error(const nb::python_error& error) {
  return error.matches(structure_error_type) || error.matches(unknown_kind_type);
}

std::string type_name(PyObject* object) {
  const char* name = Py_TYPE(object)->tp_name;
  const char* dot = nullptr;
  for (const char* c = name; *c; ++c)
    if (*c == '.') dot = c;
  return dot ? dot + 1 : name;
}

std::string brief_repr(PyObject* value) {
  PyObject* text = PyObject_Repr(value);
  const char* bytes = text ? PyUnicode_AsUTF8(text) : nullptr;
  std::string result;
  if (bytes && PyUnicode_GetLength(text) <= kMaxRepr && !std::strstr(bytes, " at 0x")) {
    result = bytes;
  } else {
    const bool interrupted = PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception);
    if (interrupted) Py_XDECREF(text);
    if (interrupted) throw nb::python_error();
    PyErr_Clear();
    result = "a " + type_name(value);
  }
  Py_XDECREF(text);
  return result;
}

std::string value_and_type(PyObject* value) {
  const std::string shown = brief_repr(value), type = type_name(value);
  return shown == "a " + type ? shown : shown + " (" + type + ")";
}

void define_errors(nb::module_& module) {
  structure_error_type = nb::module_::import_("cortex.errors").attr("StructureError").ptr();
  Py_INCREF(structure_error_type);
  unknown_kind_type = PyErr_NewExceptionWithDoc(
      "cortex._native.UnknownKind",
      "No kind of the model fits a node. `node` is the node, `where` says how it is reached. If its kind is only not "
      "checked for the number of its children, `unchecked` has a node for each such number of the request.",
      PyExc_Exception, nullptr);
  if (!unknown_kind_type) throw nb::python_error();
  module.attr("UnknownKind") = nb::borrow(unknown_kind_type);
}

}  // namespace cortex
