// Python and NumPy, included in the one order and with the one set of macros that work together.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL cortex_numpy_api
#ifndef CORTEX_IMPORTS_NUMPY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

#include <cstdint>
#include <string>

namespace cortex {

namespace nb = nanobind;

// Take over a new reference; a null pointer means that a Python exception is set.
inline nb::object own(PyObject* fresh) {
  if (!fresh) throw nb::python_error();
  return nb::steal(fresh);
}

// The items of any iterable. (nb::list(x[i]) would take the object behind x[i] for a list whatever it is.)
inline nb::list list_of(nb::handle items) { return nb::list(items); }

}  // namespace cortex
