// Nested tuples and lists as arrays. Every occurrence is a node of its own: Python itself merges equal constants,
// so that identity says nothing about what the user meant.
#include <vector>

#include "arrays.hpp"
#include "errors.hpp"
#include "node_table.hpp"
#include "signals.hpp"

namespace cortex {

namespace {

bool is_sequence(PyObject* item) { return PyTuple_Check(item) || PyList_Check(item); }

nb::object int32_array(const std::vector<std::int32_t>& values) {
  npy_intp length = static_cast<npy_intp>(values.size());
  nb::object array = own(PyArray_SimpleNew(1, &length, NPY_INT32));
  auto* to = static_cast<std::int32_t*>(PyArray_DATA(reinterpret_cast<PyArrayObject*>(array.ptr())));
  for (std::size_t i = 0; i < values.size(); ++i) to[i] = values[i];
  return array;
}

}  // namespace

nb::tuple flatten_nested(nb::handle data, std::int64_t max_nodes) {
  struct Frame {
    nb::object sequence;  // handlers of signals may change the sequence around it
    Py_ssize_t next;
    std::int32_t node;
  };
  nb::list items;
  std::vector<std::int32_t> parent, length;
  std::vector<Frame> stack;
  auto add = [&](PyObject* item, std::int32_t above) {
    if (static_cast<std::int64_t>(parent.size()) >= max_nodes)
      structure_error("the nested data have more than " + std::to_string(max_nodes) + " nodes, the limit of a forest");
    const auto node = static_cast<std::int32_t>(parent.size());
    parent.push_back(above);
    length.push_back(0);
    if (above >= 0) ++length[static_cast<std::size_t>(above)];
    items.append(is_sequence(item) ? nb::none() : nb::borrow(item));
    if (!is_sequence(item)) return;
    stack.push_back({nb::borrow(item), 0, node});
    // A list inside itself makes the stack deeper than any list is long; looking for it at doublings is cheap.
    if ((stack.size() & (stack.size() - 1)) == 0) {
      for (std::size_t i = 0; i + 1 < stack.size(); ++i)
        if (stack[i].sequence.ptr() == item) structure_error("nested data must not contain themselves, but a list does");
    }
  };
  add(data.ptr(), -1);
  while (!stack.empty()) {
    Frame& top = stack.back();
    if (top.next >= PySequence_Fast_GET_SIZE(top.sequence.ptr())) {
      stack.pop_back();
      continue;
    }
    add(PySequence_Fast_GET_ITEM(top.sequence.ptr(), top.next++), top.node);
    look_for_signals(parent.size());
  }

  // Children come after their parents in preorder, so a prefix sum and one pass give the lists in order.
  const std::size_t n = parent.size();
  std::vector<std::int32_t> ptr(n + 1, 0), idx(n - 1), place(n);
  for (std::size_t v = 0; v < n; ++v) {
    ptr[v + 1] = ptr[v] + length[v];
    place[v] = ptr[v];
  }
  for (std::size_t v = 1; v < n; ++v)
    idx[static_cast<std::size_t>(place[static_cast<std::size_t>(parent[v])]++)] = static_cast<std::int32_t>(v);
  return nb::make_tuple(int32_array(ptr), int32_array(idx), items);
}

}  // namespace cortex
