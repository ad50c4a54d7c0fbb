#include "tensors.hpp"

namespace cortex {

namespace {

// DLPackExchangeAPI, version 1: what torch.Tensor.__dlpack_c_exchange_api__ points to.
struct ExchangeApi {
  std::uint32_t major, minor;
  ExchangeApi* previous;
  void* allocate;
  void* managed_from_object;
  void* object_from_managed;
  int (*view_of_object)(void* object, TensorView* view);
  void* current_stream;
};

// The classes of tensors, once torch is loaded, and how to look into them.
struct Torch {
  PyObject *tensor = nullptr, *parameter = nullptr;
  const ExchangeApi* api = nullptr;
  bool is_known = false;
};

// What torch has; a torch without the API has no classes here. Nothing is loaded.
Torch loaded_torch(PyObject* modules) {
  Torch found;
  PyObject* torch = PyDict_GetItemString(modules, "torch");
  PyObject* parameters = PyDict_GetItemString(modules, "torch.nn.parameter");
  if (!torch || !parameters) return found;
  const nb::object tensor = nb::steal(PyObject_GetAttrString(torch, "Tensor"));
  const nb::object parameter = nb::steal(PyObject_GetAttrString(parameters, "Parameter"));
  const nb::object capsule =
      nb::steal(tensor.is_valid() ? PyObject_GetAttrString(tensor.ptr(), "__dlpack_c_exchange_api__") : nullptr);
  if (!tensor.is_valid() || !parameter.is_valid() || !capsule.is_valid()) {
    PyErr_Clear();
    found.is_known = tensor.is_valid() && parameter.is_valid();
    return found;
  }
  found.is_known = true;
  const auto* api = static_cast<const ExchangeApi*>(PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
  if (!api) PyErr_Clear();
  while (api && api->major > 1) api = api->previous;
  if (!api || api->major != 1 || !api->view_of_object) return found;
  found.api = api;
  found.tensor = Py_NewRef(tensor.ptr());
  found.parameter = Py_NewRef(parameter.ptr());
  return found;
}

}  // namespace

bool TensorView::is_contiguous() const {
  if (!strides) return true;
  std::int64_t expected = 1;
  for (std::int32_t i = rank; i-- > 0;) {
    if (sizes[i] != 1 && strides[i] != expected) return false;
    expected *= sizes[i];
  }
  return true;
}

bool is_negated(PyObject* x, const TensorView& view) {
  for (const std::int64_t size : view.shape())
    if (size != 1) return false;
  static PyObject* const name = PyUnicode_InternFromString("is_neg");
  return nb::cast<bool>(own(PyObject_CallMethodNoArgs(x, name)));
}

bool view_tensor(PyObject* x, TensorView& view) {
  static Torch torch;
  auto* const type = reinterpret_cast<PyObject*>(Py_TYPE(x));
  if (!torch.is_known) torch = loaded_torch(PyImport_GetModuleDict());
  if (!torch.api || (type != torch.tensor && type != torch.parameter)) return false;
  if (torch.api->view_of_object(x, &view) == 0) return true;
  PyErr_Clear();
  return false;
}

}  // namespace cortex
