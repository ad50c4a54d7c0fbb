#include "direct.hpp"

#include <array>

#include "errors.hpp"

namespace cortex {

namespace {

constexpr std::size_t kMostParameters = 16;

PyObject* interned(const char* text) { return PyUnicode_InternFromString(text); }

void set(const nb::object& object, PyObject* name, PyObject* value) {
  if (PyObject_SetAttr(object.ptr(), name, value) < 0) throw nb::python_error();
}

}  // namespace

DirectCall::DirectCall(nb::dict spec)
    : program_(spec["program"]),
      kinds_(spec["kinds"]),
      tensor_classes_(spec["tensor_classes"]),
      form_of_(spec["form_of"]),
      array_of_(spec["array_of"]),
      holder_(spec["holder"]),
      head_(spec["head"]),
      relations_(spec["relations"]),
      result_(spec["result"]),
      threads_(nb::cast<std::int64_t>(spec["threads"])),
      node_(nb::cast<std::size_t>(spec["node"])),
      takes_list_(nb::cast<bool>(spec["takes_list"])),
      is_single_(nb::cast<bool>(spec["is_single"])),
      gives_run_(nb::cast<bool>(spec["gives_run"])) {
  if (!nb::isinstance<Program>(program_) || !PyDict_Check(kinds_.ptr()) || !PyTuple_Check(tensor_classes_.ptr()) ||
      !(holder_.is_none() || PyType_Check(holder_.ptr())))
    python_error(PyExc_TypeError, "a direct call is made by a program, with classes in a dictionary");
  for (nb::handle p : list_of(spec["parameters"])) {
    const auto expected = nb::cast<std::string>(nb::object(p[0]));
    const auto kind = expected == "node"       ? Expected::kNode
                      : expected == "constant" ? Expected::kConstant
                                               : Expected::kTensor;
    nb::object attribute = nb::object(p[2]);
    PyObject* text = attribute.release().ptr();
    PyUnicode_InternInPlace(&text);
    parameters_.push_back({kind, nb::object(p[1]), nb::steal(text), nb::object(p[3]), nb::object()});
    if (nb::len(p) > 4) parameters_.back().missing = nb::object(p[4]);
  }
  for (nb::handle state : list_of(spec["states"])) {
    if (PyList_Check(state.ptr()))
      parts_.push_back({0, nb::cast<Program*>(program_)->rows_of(state)});
    else
      parts_.push_back({nb::cast<std::size_t>(state), {}});
  }
  if (parameters_.size() > kMostParameters || node_ >= parameters_.size() || (is_single_ && parts_.size() != 1))
    python_error(PyExc_ValueError, "a direct call has a node among at most 16 parameters, and a tensor if it is single");
}

// Is this argument like that of the calls that this is for? Where it is not known at once, it is not.
bool DirectCall::fits(const Parameter& parameter, PyObject* value) const {
  static PyObject* const node = interned("node");
  if (parameter.expected == Expected::kConstant) return value == parameter.value.ptr();
  auto* const type = reinterpret_cast<PyObject*>(Py_TYPE(value));
  if (parameter.expected == Expected::kTensor)
    return PySequence_Contains(tensor_classes_.ptr(), type) == 1 &&
           form_of_(nb::handle(value)).equal(parameter.value);
  PyObject* const known = PyDict_GetItemWithError(kinds_.ptr(), type);
  if (!known && PyErr_Occurred()) throw nb::python_error();
  if (known) return known == node;
  if (parameters_.size() > 1) return false;
  if (PyDict_CheckExact(value)) return PyDict_GET_SIZE(value) > 0;
  if (PyTuple_CheckExact(value)) return PyTuple_GET_SIZE(value) > 0;
  return takes_list_ && PyList_CheckExact(value) && PyList_GET_SIZE(value) > 0;
}

// What the linearizer walks the request from: the node, or an object that holds the arguments.
nb::object DirectCall::root(PyObject* const* values) const {
  static PyObject* const tensors = interned("tensors");
  static PyObject* const relations = interned("_relations");
  if (holder_.is_none()) return nb::borrow(values[node_]);
  auto* type = reinterpret_cast<PyTypeObject*>(holder_.ptr());
  nb::object made = own(type->tp_alloc(type, 0));
  set(made, head_.ptr(), Py_True);
  for (std::size_t i = 0; i < parameters_.size(); ++i) set(made, parameters_[i].attribute.ptr(), values[i]);
  if (relations_.is_none()) return made;
  nb::dict arrays;
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    if (parameters_[i].expected == Expected::kTensor) arrays[parameters_[i].name] = array_of_(nb::handle(values[i]));
  set(made, tensors, arrays.ptr());
  set(made, relations, relations_.ptr());
  return made;
}

nb::object DirectCall::operator()(nb::handle args) const {
  const nb::object no = nb::borrow(Py_NotImplemented);
  if (!PyTuple_CheckExact(args.ptr()) || !program_.is_valid()) return no;
  const auto count = static_cast<std::size_t>(PyTuple_GET_SIZE(args.ptr()));
  if (count > parameters_.size()) return no;
  std::array<PyObject*, kMostParameters> values;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    values[i] = i < count ? PyTuple_GET_ITEM(args.ptr(), static_cast<Py_ssize_t>(i)) : parameters_[i].missing.ptr();
    if (!values[i] || !fits(parameters_[i], values[i])) return no;
  }
  nb::list batch = nb::steal<nb::list>(own(PyList_New(1)).release());
  const nb::object start = root(values.data());
  PyList_SET_ITEM(batch.ptr(), 0, nb::object(start).release().ptr());
  Run made = run_program(program_, batch, true, threads_, nb::none());
  if (gives_run_) return result_(nb::cast(std::move(made)), start);
  if (is_single_) return own(PyObject_CallOneArg(result_.ptr(), part(made, parts_[0]).ptr()));
  nb::list arrays;
  for (const Part& each : parts_) arrays.append(part(made, each));
  return result_(arrays);
}

nb::object DirectCall::part(Run& made, const Part& part) const {
  return part.rows.empty() ? made.root(part.state) : made.rows(part.rows).first;
}

int DirectCall::traverse(visitproc visit, void* arg) const {
  for (const nb::object* each : {&program_, &kinds_, &tensor_classes_, &form_of_, &array_of_, &holder_, &head_, &relations_, &result_})
    Py_VISIT(each->ptr());
  for (const Parameter& p : parameters_)
    for (const nb::object* each : {&p.name, &p.attribute, &p.value, &p.missing}) Py_VISIT(each->ptr());
  return 0;
}

void DirectCall::drop_references() {
  for (nb::object* each : {&program_, &kinds_, &tensor_classes_, &form_of_, &array_of_, &relations_, &result_}) each->reset();
  parameters_.clear();
}

}  // namespace cortex
