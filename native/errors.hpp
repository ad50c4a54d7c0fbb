// How the native side tells the user that their data breaks a rule.
#pragma once

#include "python.hpp"

namespace cortex {

// Raise cortex.errors.StructureError with `message`.
[[noreturn]] void structure_error(const std::string& message);

// The same, whose cause is an error of a user's object.
[[noreturn]] void structure_error_from(const nb::object& cause, const std::string& message);

// Raise cortex._native.UnknownKind: no kind of the model fits `node`, which is found at `where`; or one does, but it is
// the first of the nodes in `unchecked`, which have numbers of children that their kinds are not checked for.
[[noreturn]] void unknown_kind(nb::handle node, const std::string& where, nb::list unchecked);

// Is this a StructureError or an UnknownKind, and not what the user's own code raised?
bool is_own_error(const nb::python_error& error);

// Raise an exception of a builtin type.
[[noreturn]] void python_error(PyObject* type, const std::string& message);

// The name of an object's class as the user wrote it.
std::string type_name(PyObject* object);

// repr() of a value; "a Name" for one that is long, says only where it is in memory, or fails.
std::string brief_repr(PyObject* value);

// The same with its type: "3.0 (float)", or "a Name".
std::string value_and_type(PyObject* value);

// Create the exception classes; called once, on import.
void define_errors(nb::module_& module);

}  // namespace cortex
