// Finding the kind of every node by the model's decision tree.
#include <algorithm>
#include <set>

#include "errors.hpp"
#include "request.hpp"

namespace cortex {

namespace {

// A value as a guard can hold it: exactly a str, int, float, bool or None; invalid where it is something else.
// A subclass may compare and hash as it likes, so that only the plain value means the same as it does in a guard.
nb::object plain(PyObject* value) {
  if (PyUnicode_CheckExact(value) || PyLong_CheckExact(value) || PyFloat_CheckExact(value) || PyBool_Check(value) ||
      value == Py_None)
    return nb::borrow(value);
  if (PyUnicode_Check(value)) return own(PyUnicode_FromObject(value));
  if (PyFloat_Check(value)) return own(PyFloat_FromDouble(PyFloat_AS_DOUBLE(value)));
  if (PyLong_Check(value)) return own(_PyLong_Copy(reinterpret_cast<PyLongObject*>(value)));
  if (PyArray_CheckScalar(value) && !PyArray_Check(value)) {
    const nb::object item = nb::borrow(value).attr("item")();
    return PyArray_CheckScalar(item.ptr()) ? nb::object() : plain(item.ptr());
  }
  return {};
}

// Texts of which there is one object each, as those that stand in a program are.
bool is_interned(PyObject* value) { return PyUnicode_CheckExact(value) && PyUnicode_CHECK_INTERNED(value); }

}  // namespace

void Request::classify() {
  const std::size_t n = graph_.num_nodes();
  if (graph_.kind.size() != n) {
    kept_.assign(n * static_cast<std::size_t>(spec_.num_columns), nullptr);
    graph_.kind.resize(n);
    for (std::size_t v = 0; v < n; ++v) graph_.kind[v] = kind_of(static_cast<std::int32_t>(v));
  }
  if (spec_.has_lengths) check_lengths();
}

// Is there a child at the end of an edge? Calls are asked before their children have numbers.
bool Request::has_child(std::size_t edge) const {
  return (spec_.of_calls() ? edge_calls_[edge] : graph_.edge_child[edge]) >= 0;
}

// Are all nodes' kinds checked for the number of their children? Where each is for one list at most, and without a
// branch for each node: this is done for every request.
bool Request::all_checked() const {
  const std::size_t n = graph_.num_nodes(), lists = spec_.lists.size();
  const ListLength* const per_kind = spec_.list_lengths.data();
  const std::int32_t* const kind = graph_.kind.data();
  const std::int32_t* list_len = graph_.list_len.data();
  std::uint8_t checked = 1;
  for (std::size_t v = 0; v < n; ++v, list_len += lists) {
    const ListLength& own = per_kind[kind[v]];
    checked &= own.table[std::min(std::max(list_len[own.list], 0), own.most)];
  }
  return checked != 0;
}

// Report the nodes whose kinds are not checked for the number of their children, one of each number.
void Request::check_lengths() {
  if (spec_.one_list_each && all_checked()) return;
  std::set<std::pair<const std::uint8_t*, std::int64_t>> met;
  std::vector<std::int32_t> nodes;
  for (std::size_t v = 0; v < graph_.num_nodes(); ++v) {
    const Lengths& lengths = spec_.kinds[static_cast<std::size_t>(graph_.kind[v])].lengths;
    if (!lengths.table) continue;
    const std::int64_t entry = lengths.entry(&graph_.list_len[v * spec_.lists.size()]);
    if (!lengths.table[entry] && met.emplace(lengths.table, entry).second) nodes.push_back(static_cast<std::int32_t>(v));
  }
  if (nodes.empty()) return;
  nb::list unchecked;
  for (const std::int32_t node : nodes) unchecked.append(object_of(node));
  unknown_kind(unchecked[0], where(nodes[0]), unchecked);
}

std::int32_t Request::kind_of(std::int32_t node) {
  Branch branch = spec_.tree;
  while (branch >= 0) branch = answer(spec_.tests[static_cast<std::size_t>(branch)], node);
  if (branch == kUnknown) unknown_kind(object_of(node), where(node), nb::list());
  return kind_of_branch(branch);
}

Branch Request::answer(const Test& test, std::int32_t node) {
  if (!test.path.empty() && (node = follow(test.path, node)) < 0) return kUnknown;
  const auto v = static_cast<std::size_t>(node);
  const auto number = static_cast<std::size_t>(test.number);
  auto choose = [&](bool yes) { return yes ? test.yes : test.no; };

  bool none = false;
  std::int64_t length = 0;
  switch (test.subject) {
    case Test::Subject::kNode:
      return choose(graph_.height[v] == 0);
    case Test::Subject::kSlot:
      none = !has_child(static_cast<std::size_t>(graph_.edge_start[v]) + number);
      break;
    case Test::Subject::kList:
      length = graph_.list_len[v * spec_.lists.size() + number];
      none = length < 0;
      break;
    case Test::Subject::kAttribute:
      none = kept(node, test.number) == Py_None;
      break;
  }

  const bool is_attribute = test.subject == Test::Subject::kAttribute;
  switch (test.op) {
    case Test::Op::kIsLeaf:
    case Test::Op::kIsNone:
      return choose(none);
    case Test::Op::kLength:
    case Test::Op::kHasLength:
      if (is_attribute && !none && (length = PyObject_Size(kept(node, test.number))) < 0) throw nb::python_error();
      if (test.op == Test::Op::kHasLength) return choose(std::max<std::int64_t>(length, 0) == test.count);
      for (const auto& [answer, branch] : test.lengths)
        if (answer == std::max<std::int64_t>(length, 0)) return branch;
      return kUnknown;
    case Test::Op::kCounts: {
      if (!is_attribute) return choose(false);
      const nb::object found = plain(kept(node, test.number));
      if (!found.is_valid() || !PyLong_CheckExact(found.ptr())) return choose(false);
      if (test.list >= 0) {
        length = graph_.list_len[v * spec_.lists.size() + static_cast<std::size_t>(test.list)];
      } else if (PyObject* items = kept(node, test.counted); items == Py_None) {
        length = 0;
      } else if ((length = PyObject_Size(items)) < 0) {
        throw nb::python_error();
      }
      int overflow = 0;
      const long long count = PyLong_AsLongLongAndOverflow(found.ptr(), &overflow);
      return choose(!overflow && count == std::max<std::int64_t>(length, 0));
    }
    case Test::Op::kEquals: {
      // A child equals None or nothing that a guard can hold.
      if (!is_attribute) return choose(none && test.value.is_none());
      // A value that no guard can hold fits no kind; tracing the node tells the user so.
      PyObject* const value = kept(node, test.number);
      if (is_interned(value) && is_interned(test.value.ptr())) return choose(value == test.value.ptr());
      const nb::object found = plain(value);
      if (!found.is_valid()) return kUnknown;
      const int equal = PyObject_RichCompareBool(found.ptr(), test.value.ptr(), Py_EQ);
      if (equal < 0) throw nb::python_error();
      return choose(equal != 0);
    }
    case Test::Op::kValue: {
      if (!is_attribute) return kUnknown;
      PyObject* const value = kept(node, test.number);
      for (const auto& [text, branch] : test.texts)
        if (text.ptr() == value) return branch;
      const nb::object found = plain(value);
      if (!found.is_valid()) return kUnknown;
      const nb::tuple key = nb::make_tuple(nb::borrow(reinterpret_cast<PyObject*>(Py_TYPE(found.ptr()))), found);
      PyObject* branch = PyDict_GetItemWithError(test.branches.ptr(), key.ptr());
      if (!branch && PyErr_Occurred()) throw nb::python_error();
      return branch ? static_cast<Branch>(PyLong_AsLong(branch)) : kUnknown;
    }
  }
  return kUnknown;
}

// The node at the end of `path`, or -1 where the structure has none.
std::int32_t Request::follow(const Path& path, std::int32_t node) const {
  for (const Hop& hop : path)
    if ((node = follow(hop, node)) < 0) return -1;
  return node;
}

std::int32_t Request::follow(const Hop& hop, std::int32_t node) const {
  const auto v = static_cast<std::size_t>(node);
  std::int64_t edge = graph_.edge_start[v];
  if (hop.kind == Hop::Kind::kSlot) {
    edge += hop.relation;
  } else {
    edge += static_cast<std::int64_t>(spec_.slots.size()) + hop.index;
    const std::int32_t* length = &graph_.list_len[v * spec_.lists.size()];
    for (int l = 0; l < hop.relation; ++l) edge += std::max(length[l], 0);
    if (hop.index >= length[hop.relation]) return -1;
  }
  return graph_.edge_child[static_cast<std::size_t>(edge)];
}

// The value of an attribute that tests ask about, None where it is absent; read once and kept. Borrowed.
PyObject* Request::kept(std::int32_t node, int attribute) {
  const int column = spec_.attributes[static_cast<std::size_t>(attribute)].column;
  const auto at = static_cast<std::size_t>(node) * static_cast<std::size_t>(spec_.num_columns) +
                  static_cast<std::size_t>(column);
  if (!kept_[at]) {
    PyObject* found = value(node, attribute);
    kept_[at] = found ? found : Py_NewRef(Py_None);
  }
  return kept_[at];
}

}  // namespace cortex
