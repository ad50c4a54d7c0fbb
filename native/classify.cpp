// Finding the kind of every node by the model's decision tree.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "errors.hpp"
#include "request.hpp"

namespace cortex {

namespace {

// Is a value of a subclass of `base` compared as its values are?
bool keeps_equality(PyObject* value, PyTypeObject& base) { return Py_TYPE(value)->tp_richcompare == base.tp_richcompare; }

// A value that Python compares with plain ones as its class says: a text or a number of any class, or None.
bool is_comparable(PyObject* value) {
  if (PyUnicode_CheckExact(value) || PyLong_CheckExact(value) || PyFloat_CheckExact(value) || PyBool_Check(value) ||
      value == Py_None || (PyArray_CheckScalar(value) && !PyArray_Check(value) && !PyComplex_Check(value)))
    return true;
  static PyObject* const asked =
      nb::object(nb::module_::import_("cortex.frontend.computed").attr("is_comparable")).release().ptr();
  return PyObject_IsTrue(own(PyObject_CallOneArg(asked, value)).ptr()) == 1;
}

// How a value compares with a plain one; the answer of its class may be anything that has a truth value.
bool compares(PyObject* value, PyObject* with, int order) {
  const int holds = PyObject_IsTrue(own(PyObject_RichCompare(value, with, order)).ptr());
  if (holds < 0) throw nb::python_error();
  return holds != 0;
}

// A value as a guard can hold it: exactly a str, int, float, bool or None; invalid where it is something else, or is of
// a subclass that compares in its own way.
nb::object plain(PyObject* value) {
  if (PyUnicode_CheckExact(value) || PyLong_CheckExact(value) || PyFloat_CheckExact(value) || PyBool_Check(value) ||
      value == Py_None)
    return nb::borrow(value);
  const bool is_scalar = PyArray_CheckScalar(value) && !PyArray_Check(value);
  if (!is_scalar && PyUnicode_Check(value))
    return keeps_equality(value, PyUnicode_Type) ? own(PyUnicode_FromObject(value)) : nb::object();
  if (!is_scalar && PyFloat_Check(value))
    return keeps_equality(value, PyFloat_Type) ? own(PyFloat_FromDouble(PyFloat_AS_DOUBLE(value))) : nb::object();
  if (PyLong_Check(value))
    return keeps_equality(value, PyLong_Type) ? own(_PyLong_Copy(reinterpret_cast<PyLongObject*>(value))) : nb::object();
  if (PyArray_CheckScalar(value) && !PyArray_Check(value)) {
    const nb::object item = nb::borrow(value).attr("item")();
    return PyArray_CheckScalar(item.ptr()) ? nb::object() : plain(item.ptr());
  }
  return {};
}

// What a plain value is told from others by, as `Fact.key` of ra/ir.py makes it.
nb::object key_of(const nb::object& value) {
  const nb::object type = nb::borrow(reinterpret_cast<PyObject*>(Py_TYPE(value.ptr())));
  if (PyFloat_CheckExact(value.ptr())) {
    const double x = PyFloat_AS_DOUBLE(value.ptr());
    if (x == 0 && std::signbit(x)) return nb::make_tuple(type, value, "negative");
  }
  return nb::make_tuple(type, value);
}

bool are_plain_texts(PyObject* a, PyObject* b) {
  return PyUnicode_CheckExact(a) && PyUnicode_CheckExact(b) && PyUnicode_IS_READY(a) && PyUnicode_IS_READY(b);
}

// Texts are kept in the narrowest form that holds them, so that equal ones are equal bytes.
bool is_same_text(PyObject* a, PyObject* b) {
  if (a == b) return true;
  const Py_ssize_t length = PyUnicode_GET_LENGTH(a);
  if (length != PyUnicode_GET_LENGTH(b) || PyUnicode_KIND(a) != PyUnicode_KIND(b)) return false;
  const auto bytes = static_cast<std::size_t>(length) * static_cast<std::size_t>(PyUnicode_KIND(a));
  return std::memcmp(PyUnicode_DATA(a), PyUnicode_DATA(b), bytes) == 0;
}

// Is None in a list? What a kind says of a list of nodes is not for that.
bool holds_none(PyObject* value) {
  if (!PyList_CheckExact(value) && !PyTuple_CheckExact(value)) return false;
  PyObject** const items = PySequence_Fast_ITEMS(value);
  return std::find(items, items + PySequence_Fast_GET_SIZE(value), Py_None) != items + PySequence_Fast_GET_SIZE(value);
}

// len(value), and 0 for None.
std::int64_t size_of(PyObject* value) {
  const Py_ssize_t size = value == Py_None ? 0 : PyObject_Size(value);
  if (size < 0) throw nb::python_error();
  return size;
}

}  // namespace

// Is there a child at the end of an edge? Calls are asked before their children have numbers.
inline bool Request::has_child(std::size_t edge) const {
  return (spec_.of_calls() && added_.empty() ? edge_calls_[edge] : graph_.edge_child[edge]) >= 0;
}

// The answer to a question about a text in a slot of the node, where it takes no more than to compare addresses.
inline Branch Request::answer_at_hand(const Test& test, std::int32_t node) const {
  PyObject* const value = value_at_hand(node, test.number);
  if (!value || !PyUnicode_CheckExact(value)) return kNotYet;
  if (test.op == Test::Op::kEquals && value == test.value.ptr()) return test.yes;
  if (test.op == Test::Op::kEquals && PyUnicode_CHECK_INTERNED(value) && PyUnicode_CheckExact(test.value.ptr())) return test.no;
  if (test.op == Test::Op::kValue)
    for (const auto& [text, branch] : test.texts)
      if (text.ptr() == value) return branch;
  return kNotYet;
}

inline Branch Request::answer(const Test& test, std::int32_t node) {
  if (!test.path.empty() && (node = follow(test.path, node)) < 0) return kUnknown;
  if (test.subject == Test::Subject::kAttribute) {
    const Branch found = answer_at_hand(test, node);
    return found == kNotYet ? answer_by_value(test, node, kept(node, test.number)) : found;
  }
  const auto v = static_cast<std::size_t>(node);
  if (test.subject == Test::Subject::kNode) return test.choose(graph_.height[v] == (test.op == Test::Op::kIsLeaf ? 0 : 1));
  const auto number = static_cast<std::size_t>(test.number);
  const bool is_list = test.subject == Test::Subject::kList;
  const std::int64_t length = is_list ? graph_.list_len[v * spec_.lists.size() + number] : 0;
  const bool none = is_list ? length < 0 : !has_child(static_cast<std::size_t>(graph_.edge_start[v]) + number);
  switch (test.op) {
    case Test::Op::kIsLeaf:
    case Test::Op::kIsAboveLeaves:
    case Test::Op::kIsNone:
      return test.choose(none);
    case Test::Op::kLength:
    case Test::Op::kHasLength:
      return test.choose_by_length(std::max<std::int64_t>(length, 0));
    case Test::Op::kCounts:
      return test.no;
    case Test::Op::kEquals:  // a child equals None or nothing that a guard can hold
      return test.choose(none && test.value.is_none());
    case Test::Op::kCompares:
    case Test::Op::kValue:
      return kUnknown;
  }
  return kUnknown;
}

// The kind of a node, by the model's decision tree.
inline std::int32_t Request::decide(std::int32_t node) {
  Branch branch = spec_.tree;
  while (branch >= 0) branch = answer(spec_.tests[static_cast<std::size_t>(branch)], node);
  if (branch == kUnknown) unknown_kind(object_of(node), where(node), nb::list());
  return kind_of_branch(branch);
}

std::int32_t Request::kind_of(std::int32_t node) { return decide(node); }

// The kind of a node that was added, by the tree of those.
std::int32_t Request::decide_from(Branch branch, std::int32_t node) {
  while (branch >= 0) branch = answer(spec_.tests[static_cast<std::size_t>(branch)], node);
  if (branch == kUnknown) unknown_kind(object_of(node), where(node), nb::list());
  return kind_of_branch(branch);
}

void Request::classify() {
  const std::size_t n = graph_.num_nodes();
  if (graph_.kind.size() != n) {
    graph_.kind.resize(n);
    std::int32_t* const kind = graph_.kind.data();
    for (std::size_t v = 0; v < n; ++v) {
      kind[v] = decide(static_cast<std::int32_t>(v));
      look_for_signals(v);
    }
  }
  if (spec_.has_lengths) check_lengths();
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
    const std::int64_t entry = lengths.entry([&](int list) -> std::int64_t {
      if (list < 0) return size_of(kept(static_cast<std::int32_t>(v), -1 - list));
      return std::max(graph_.list_len[v * spec_.lists.size() + static_cast<std::size_t>(list)], 0);
    });
    if (!lengths.table[entry] && met.emplace(lengths.table, entry).second) nodes.push_back(static_cast<std::int32_t>(v));
  }
  if (nodes.empty()) return;
  nb::list unchecked;
  for (const std::int32_t node : nodes) unchecked.append(object_of(node));
  unknown_kind(unchecked[0], where(nodes[0]), unchecked);
}

// The answer to a question about an attribute, which has the value `value` there.
Branch Request::answer_by_value(const Test& test, std::int32_t node, PyObject* value) {
  switch (test.op) {
    case Test::Op::kIsLeaf:
    case Test::Op::kIsAboveLeaves:
    case Test::Op::kIsNone:
      return test.choose(value == Py_None);
    case Test::Op::kLength:
    case Test::Op::kHasLength:
      return holds_none(value) ? kUnknown : test.choose_by_length(size_of(value));
    case Test::Op::kCounts: {
      const nb::object found = plain(value);
      if (!found.is_valid() || !PyLong_CheckExact(found.ptr())) return test.no;
      const std::int64_t length =
          test.list < 0 ? size_of(kept(node, test.counted))
                        : std::max(graph_.list_len[static_cast<std::size_t>(node) * spec_.lists.size() +
                                                   static_cast<std::size_t>(test.list)], 0);
      int overflow = 0;
      const long long count = PyLong_AsLongLongAndOverflow(found.ptr(), &overflow);
      return test.choose(!overflow && count == length);
    }
    case Test::Op::kEquals: {
      PyObject* const expected = test.value.ptr();
      if (are_plain_texts(value, expected)) return test.choose(is_same_text(value, expected));
      // A value that is no text and no number fits no kind; tracing the node tells the user so.
      return is_comparable(value) ? test.choose(compares(value, expected, Py_EQ)) : kUnknown;
    }
    case Test::Op::kCompares: {
      PyObject* const bound = test.value.ptr();
      if (PyFloat_CheckExact(value) && PyFloat_CheckExact(bound)) {
        const double x = PyFloat_AS_DOUBLE(value), y = PyFloat_AS_DOUBLE(bound);
        return test.choose(test.order == Py_LT ? x < y : test.order == Py_LE ? x <= y : test.order == Py_GT ? x > y : x >= y);
      }
      // A value that has no order with a number fits no kind; tracing the node tells the user so.
      if (!is_comparable(value) || value == Py_None || PyUnicode_Check(value)) return kUnknown;
      return test.choose(compares(value, bound, test.order));
    }
    case Test::Op::kValue: {
      for (const auto& [text, branch] : test.texts)
        if (text.ptr() == value) return branch;
      const nb::object found = plain(value);
      if (!found.is_valid()) return kUnknown;
      const nb::object key = key_of(found);
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
  if (hop.kind == Hop::Kind::kSlot)
    return graph_.edge_child[static_cast<std::size_t>(graph_.edge_start[static_cast<std::size_t>(node)] + hop.relation)];
  const auto [first, length] = list_of_node(node, hop.relation);
  return hop.index < length ? graph_.edge_child[static_cast<std::size_t>(first + hop.index)] : -1;
}

// The first edge of a list of a node, and its length, which is -1 where the list is None.
std::pair<std::int64_t, std::int32_t> Request::list_of_node(std::int32_t node, int list) const {
  const auto v = static_cast<std::size_t>(node);
  const std::int32_t* length = &graph_.list_len[v * spec_.lists.size()];
  std::int64_t first = graph_.edge_start[v] + static_cast<std::int64_t>(spec_.slots.size());
  for (int l = 0; l < list; ++l) first += std::max(length[l], 0);
  return {first, length[list]};
}

// The value of an attribute, None where it is absent. A new reference.
PyObject* Request::keep(std::int32_t node, int attribute) {
  if (PyObject* at_hand = value_at_hand(node, attribute)) return Py_NewRef(at_hand);
  PyObject* found = value(node, attribute);
  return found ? found : Py_NewRef(Py_None);
}

}  // namespace cortex
