#include "computed.hpp"

#include <array>
#include <string>
#include <utility>

#include "errors.hpp"

namespace cortex {

namespace {

constexpr std::size_t kMostOperands = 2;

PyObject* power(PyObject* x, PyObject* y) { return PyNumber_Power(x, y, Py_None); }

using Binary = PyObject* (*)(PyObject*, PyObject*);
constexpr std::array<std::pair<const char*, Binary>, 12> kBinary{{
    {"add", PyNumber_Add}, {"sub", PyNumber_Subtract}, {"mul", PyNumber_Multiply}, {"truediv", PyNumber_TrueDivide},
    {"floordiv", PyNumber_FloorDivide}, {"mod", PyNumber_Remainder}, {"pow", power}, {"and", PyNumber_And},
    {"or", PyNumber_Or}, {"xor", PyNumber_Xor}, {"lshift", PyNumber_Lshift}, {"rshift", PyNumber_Rshift},
}};
constexpr std::array<std::pair<const char*, int>, 6> kOrders{
    {{"lt", Py_LT}, {"le", Py_LE}, {"gt", Py_GT}, {"ge", Py_GE}, {"eq", Py_EQ}, {"ne", Py_NE}}};

}  // namespace

Computed::Computed(nb::handle source) : function_(nb::object(source[2])), failure_(nb::object(source[4])) {
  const std::string name = nb::cast<std::string>(nb::object(source[1]));
  for (nb::handle each : list_of(source[3])) {
    const bool is_constant = nb::cast<std::string>(nb::object(each[0])) == "constant";
    operands_.push_back(is_constant ? Operand{nb::object(each[1]), {}} : Operand{{}, Steps(each[1])});
  }
  if (operands_.empty() || operands_.size() > kMostOperands)
    python_error(PyExc_ValueError, "a computed field has one operand or two");
  if (operands_.size() != kMostOperands) return;
  for (const auto& [known, function] : kBinary)
    if (name == known) binary_ = function;
  for (const auto& [known, order] : kOrders)
    if (name == known) order_ = order;
}

nb::object Computed::operand(std::size_t number, PyObject* from, Given given) const {
  const Operand& wanted = operands_[number];
  return wanted.constant.is_valid() ? wanted.constant : nb::steal(wanted.steps.follow(from, given));
}

PyObject* Computed::apply(PyObject* const* operands) const {
  if (binary_) return binary_(operands[0], operands[1]);
  if (order_ >= 0) return PyObject_RichCompare(operands[0], operands[1], order_);
  return PyObject_Vectorcall(function_.ptr(), operands, operands_.size(), nullptr);
}

PyObject* Computed::of(PyObject* from, Given given) const {
  const nb::object first = operand(0, from, given);
  const nb::object second = operands_.size() > 1 ? operand(1, from, given) : nb::object();
  const std::array<PyObject*, kMostOperands> operands{first.ptr(), second.ptr()};
  if (PyObject* found = apply(operands.data())) return found;
  nb::python_error raised;
  own(PyObject_CallOneArg(failure_.ptr(), raised.value().ptr()));
  throw raised;
}

int Computed::traverse(visitproc visit, void* arg) const {
  if (function_.is_valid()) Py_VISIT(function_.ptr());
  if (failure_.is_valid()) Py_VISIT(failure_.ptr());
  for (const Operand& each : operands_) {
    if (each.constant.is_valid()) Py_VISIT(each.constant.ptr());
    if (int found = each.steps.traverse(visit, arg)) return found;
  }
  return 0;
}

void Computed::drop_references() {
  failure_ = nb::none();
  for (Operand& each : operands_) each.steps.drop_references();
}

}  // namespace cortex
