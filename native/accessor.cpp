#include "accessor.hpp"

#include "errors.hpp"

namespace cortex {

namespace {

nb::object attribute_name(const std::string& name, nb::handle meaning) {
  if (meaning.is_valid() && PyUnicode_Check(meaning.ptr())) return nb::borrow(meaning);
  return own(PyUnicode_FromStringAndSize(name.data(), static_cast<Py_ssize_t>(name.size())));
}

}  // namespace

Accessor::Accessor(const std::string& name, nb::handle meaning)
    : name_(name), attribute_(attribute_name(name, meaning).ptr()) {
  if (!meaning.is_valid() || PyUnicode_Check(meaning.ptr())) return;
  if (PyTuple_Check(meaning.ptr())) {
    for (nb::handle part : nb::borrow<nb::tuple>(meaning)) parts_.emplace_back(part.ptr());
    if (parts_.empty()) python_error(PyExc_ValueError, "'" + name + "' cannot mean an empty tuple of attributes");
  } else if (PyDict_Check(meaning.ptr())) {
    steps_ = Steps(meaning["steps"]);
    how_ = nb::cast<bool>(nb::object(meaning["careful"])) ? How::kCarefully : How::kBySteps;
  } else if (PyCallable_Check(meaning.ptr())) {
    how_ = How::kCall;
    call_ = nb::borrow(meaning);
  } else {
    python_error(PyExc_TypeError, "'" + name + "' must mean an attribute name, a tuple of names, steps or a callable, not " +
                                      brief_repr(meaning.ptr()));
  }
}

PyObject* Accessor::compute(PyObject* node) const {
  if (how_ == How::kCall) return own(PyObject_CallOneArg(call_.ptr(), node)).release().ptr();
  if (how_ == How::kBySteps) return steps_.follow(node);
  PyObject* found = steps_.find(node);
  return found ? found : Py_NewRef(Py_None);
}

int Accessor::traverse(visitproc visit, void* arg) const {
  if (call_.is_valid()) Py_VISIT(call_.ptr());
  return steps_.traverse(visit, arg);
}

void Accessor::drop_references() {
  if (call_.is_valid()) call_ = nb::none();
  steps_.drop_references();
}

}  // namespace cortex
