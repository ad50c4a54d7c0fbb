// Walking the user's objects in preorder, without recursion, sharing nodes by identity.
#include <algorithm>
#include <limits>
#include <utility>

#include "errors.hpp"
#include "line.hpp"
#include "request.hpp"

namespace cortex {

namespace {

bool is_ordered_collection(PyObject* value) {
  if (PyUnicode_Check(value) || PyBytes_Check(value) || PyDict_Check(value) || PyAnySet_Check(value)) return false;
  return Py_TYPE(value)->tp_iter != nullptr || PySequence_Check(value);
}

bool is_plain_value(PyObject* value) {
  return PyLong_CheckExact(value) || PyBool_Check(value) || PyFloat_CheckExact(value) || PyComplex_CheckExact(value) ||
         PyUnicode_CheckExact(value) || PyBytes_CheckExact(value) || PyList_CheckExact(value) ||
         PyTuple_CheckExact(value) || PyDict_CheckExact(value) || PyAnySet_CheckExact(value) ||
         PyArray_Check(value) || PyArray_IsScalar(value, Generic);
}

}  // namespace

// What follows runs for every node or edge. It is inlined into `descend`: entering and leaving five functions took a
// quarter of all instructions.

// Add an edge of the last node. Takes over the reference to `child`.
inline void Request::add_edge(PyObject* child) {
  edge_objects_.push_back(child);
  __builtin_prefetch(reinterpret_cast<const char*>(child) + kLine);  // the first line was fetched to count the reference
  graph_.edge_child.push_back(-1);
}

// Add the edge that a slot of the last node is, and say whether it leads to a child.
[[gnu::always_inline]] inline bool Request::expand_slot(const Accessor& slot, PyObject* node) {
  PyObject* child = slot.at_hand(node);
  if (!child) {
    put_all_in_table();
    child = slot.get(node);
    if (child) slot.attribute().set_found();
    if (child == Py_None) Py_CLEAR(child);
    add_edge(child);
    return child != nullptr;
  }
  slot.attribute().set_found();
  const bool is_child = child != Py_None;
  add_edge(is_child ? Py_NewRef(child) : nullptr);
  return is_child;
}

// Add the children in a list or tuple that is in a slot; gives their number.
inline std::int32_t Request::add_items(const Accessor& list, PyObject* held_by) {
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(held_by);
  if (count == 0) return 0;
  if (count > spec_.max_nodes) too_many_children();
  if (Py_REFCNT(held_by) > 1) put_all_in_table();
  PyObject** const items = PySequence_Fast_ITEMS(held_by);
  std::int32_t length = 0;
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (items[i] == Py_None) none_in_list();
    add_edge(Py_NewRef(items[i]));
    ++length;
  }
  return length;
}

// Add the children in one list; gives their number, or -1 where the list is None or absent.
[[gnu::always_inline]] inline std::int32_t Request::expand_list(const Accessor& list, PyObject* node) {
  if (list.is_parts()) return expand_parts(list, node);
  PyObject* found = list.at_hand(node);
  nb::object holder;
  if (!found) {
    found = list.get(node);
    put_all_in_table();
    if (!found) return -1;
    holder = nb::steal(found);
  }
  list.attribute().set_found();
  if (found == Py_None) return -1;
  // Adding the items of a list or tuple runs no Python code, so that they stay as they are.
  if (PyList_CheckExact(found) || PyTuple_CheckExact(found)) return add_items(list, found);
  put_all_in_table();
  return iterate(list, holder.is_valid() ? std::move(holder) : nb::borrow(found));
}

// Add `node` and the edges to its children; says whether it has any. A leaf is finished at once.
[[gnu::always_inline]] inline bool Request::discover(PyObject* node) {
  add_node(node);
  if (!(Py_TYPE(node)->tp_flags & Py_TPFLAGS_HEAPTYPE) && !spec_.has_functions && is_plain_value(node)) refuse_plain(node);

  bool has_child = false;
  const Accessor* reading = nullptr;
  try {
    for (std::size_t s = 0; s < spec_.own_slots; ++s) has_child |= expand_slot(*(reading = &spec_.slots[s]), node);
    for (std::size_t s = spec_.own_slots; s < spec_.slots.size(); ++s) add_edge(nullptr);
    for (std::size_t l = 0; l < spec_.own_lists; ++l) {
      const std::int32_t length = expand_list(*(reading = &spec_.lists[l]), node);
      graph_.list_len.push_back(length);
      has_child |= length > 0;
    }
    graph_.list_len.resize(graph_.list_len.size() + spec_.lists.size() - spec_.own_lists, -1);
  } catch (nb::python_error& error) {
    note_place(error, reading->name(), static_cast<std::int32_t>(objects_.size()) - 1);
    throw;
  }
  if (!has_child) graph_.height.back() = 0;
  return has_child;
}

// The number of the node at the end of an edge, which is `next` if it is new; -1 if there is none.
[[gnu::always_inline]] inline std::int32_t Request::number_at(std::int64_t edge, std::int32_t next) {
  const auto at = static_cast<std::size_t>(edge);
  if (spec_.of_calls()) {
    if (edge_calls_[at] < 0) return -1;
    std::int32_t& number = calls_[edge_calls_[at]].number;
    return number < 0 ? number = next : number;
  }
  PyObject* child = edge_objects_[at];
  if (!child) return -1;
  if (!all_in_table_ && Py_REFCNT(child) == 2) return next;  // held by its parent and by us: no other way leads to it
  return table_.find_or_add(child, next);
}

// Objects lie all over memory, and each is found through another: have those of the next node on their way.
inline void Request::look_ahead(PyObject* node) const {
  if (!node) return;
  for (std::size_t l = 0; l < spec_.own_lists; ++l) spec_.lists[l].attribute().prefetch(node);
}

void Request::walk(nb::handle structures) {
  table_.clear();
  all_in_table_ = false;
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(structures.ptr());
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* root = PySequence_Fast_GET_ITEM(structures.ptr(), i);
    if (root == Py_None) {
      structure_error("structure " + std::to_string(i) + " of " + std::to_string(count) +
                      " is None; a structure must be a node");
    }
    root_objects_.push_back(Py_NewRef(root));
  }
  for (PyObject* root : root_objects_) {
    const std::int32_t call = spec_.of_calls() ? calls_.start(root) : -1;
    if (call >= 0 && !spec_.calls.gathers.empty()) walk_collected(call);
    const auto next = static_cast<std::int32_t>(objects_.size());
    const std::int32_t v = call < 0 ? table_.find_or_add(root, next) : next;
    graph_.roots.push_back(v);
    if (v == next && (call < 0 ? discover(root) : discover_call(call))) {
      frames_.push_back({v, 0, graph_.edge_start.back(), static_cast<std::int64_t>(graph_.edge_child.size())});
      descend();
    }
  }
  graph_.edge_start.push_back(static_cast<std::int64_t>(graph_.edge_child.size()));
  if (spec_.name_checks > 0 && !spec_.of_calls()) check_names();
  if (!spec_.unshared.empty()) check_unshared();
}

// See whether relations that no node has had so far may have other names on these objects. Once each was found, or
// after some requests without a sign of that, no more is looked at.
void Request::check_names() {
  --spec_.name_checks;
  nb::list unknown, known, fields;
  auto look = [&](const Accessor& relation, const Attribute& attribute) {
    if (attribute.found()) {
      known.append(attribute.name());
    } else {
      unknown.append(nb::make_tuple(relation.name(), attribute.name(), relation.is_parts()));
    }
  };
  auto look_at = [&](const std::vector<Accessor>& relations, std::size_t count) {
    for (std::size_t r = 0; r < count; ++r) {
      const Accessor& relation = relations[r];
      for (const Attribute& part : relation.parts()) look(relation, part);
      if (!relation.is_call() && !relation.is_parts()) look(relation, relation.attribute());
    }
  };
  look_at(spec_.slots, spec_.own_slots);
  look_at(spec_.lists, spec_.own_lists);
  if (unknown.size() == 0) spec_.name_checks = 0;
  if (unknown.size() == 0 || objects_.empty()) return;
  for (const NodeAttribute& a : spec_.attributes) fields.append(a.accessor.attribute().name());
  nb::list nodes;
  for (PyObject* node : objects_) nodes.append(nb::borrow(node));
  nb::module_::import_("cortex.frontend.unseen").attr("refuse_unseen_children")(nodes, unknown, known, fields);
}

void Request::descend() {
  while (!frames_.empty()) {
    Frame& top = frames_.back();
    if (top.next == top.end) {
      const std::int32_t height = top.height + 1;
      graph_.height[static_cast<std::size_t>(top.node)] = height;
      frames_.pop_back();
      if (!frames_.empty()) frames_.back().height = std::max(frames_.back().height, height);
      continue;
    }
    const std::int64_t edge = top.next++;
    const auto at = static_cast<std::size_t>(edge);
    if (top.next != top.end && !spec_.of_calls()) look_ahead(edge_objects_[static_cast<std::size_t>(top.next)]);
    const auto next = static_cast<std::int32_t>(objects_.size());
    const std::int32_t v = number_at(edge, next);
    if (v < 0) continue;
    graph_.edge_child[at] = v;
    if (v != next) {
      const std::int32_t height = graph_.height[static_cast<std::size_t>(v)];
      if (height < 0) cycle(edge, top.node, v);
      top.height = std::max(top.height, height);
    } else if (spec_.of_calls() ? discover_call(edge_calls_[at]) : discover(edge_objects_[at])) {
      frames_.push_back({v, 0, graph_.edge_start.back(), static_cast<std::int64_t>(graph_.edge_child.size())});
    }
  }
}

// Nodes that only one place refers to need not be found again, as long as every place is looked at once: a slot of a
// node, or a list that is in one slot only. What a property gives may be in any place.
void Request::put_all_in_table() {
  if (all_in_table_) return;
  all_in_table_ = true;
  for (std::size_t v = 0; v < objects_.size(); ++v) table_.find_or_add(objects_[v], static_cast<std::int32_t>(v));
}

void Request::too_many_nodes() {
  structure_error("the structures have more than " + std::to_string(spec_.max_nodes) +
                  " nodes, the limit of one request; split it into smaller batches, give it as arrays (Forest), or, "
                  "if it should be small, see whether reading its children makes new nodes without end");
}

// A number, a text or a list is no node unless functions of the user's say what its attributes are.
void Request::refuse_plain(PyObject* node) {
  std::string names;
  auto add = [&](const Accessor& a) { names += (names.empty() ? "'" : ", '") + a.name() + "'"; };
  for (std::size_t s = 0; s < spec_.own_slots; ++s) add(spec_.slots[s]);
  for (std::size_t l = 0; l < spec_.own_lists; ++l) add(spec_.lists[l]);
  for (const NodeAttribute& a : spec_.attributes) add(a.accessor);
  structure_error("the node at " + where(static_cast<std::int32_t>(objects_.size()) - 1) + " is " +
                  value_and_type(node) + "; it must be an object with the attributes that the model reads" +
                  (names.empty() ? "" : " (" + names + ")"));
}

// Attributes that together are a list.
std::int32_t Request::expand_parts(const Accessor& list, PyObject* node) {
  std::int32_t length = 0;
  put_all_in_table();
  for (const Attribute& part : list.parts()) {
    PyObject* child = part.get(node);
    if (!child) continue;
    part.set_found();
    if (child == Py_None) {
      Py_DECREF(child);
      continue;
    }
    add_edge(child);
    ++length;
  }
  return length;
}

// Add the children that a collection of another class gives.
std::int32_t Request::iterate(const Accessor& list, nb::object collection) {
  PyObject* const found = collection.ptr();
  if (!is_ordered_collection(found)) {
    structure_error(describe(static_cast<std::int32_t>(objects_.size()) - 1) + ": '" + list.name() +
                    "' is " + brief_repr(found) + "; it must be None or a list, tuple or other sequence of nodes");
  }
  if (PyIter_Check(found) && Py_REFCNT(found) > 1) {
    // Somebody else holds the iterator too, so it is stored and not made by this read.
    structure_error(describe(static_cast<std::int32_t>(objects_.size()) - 1) + ": '" + list.name() + "' is a " +
                    type_name(found) + ", which can be read only once; it must be None or a list, tuple or other "
                    "sequence of nodes");
  }
  nb::object iterator = own(PyObject_GetIter(found));
  std::int32_t length = 0;
  while (PyObject* child = PyIter_Next(iterator.ptr())) {
    if (child == Py_None) {
      Py_DECREF(child);
      none_in_list();
    }
    add_edge(child);
    if (++length > spec_.max_nodes) too_many_children();
  }
  if (PyErr_Occurred()) throw nb::python_error();
  return length;
}

// A list that holds None is no list of children: what it means is for the model to say.
void Request::none_in_list() {
  unknown_kind(objects_.back(), where(static_cast<std::int32_t>(objects_.size()) - 1), nb::list());
}

void Request::too_many_children() {
  structure_error(describe(static_cast<std::int32_t>(objects_.size()) - 1) + " has more than " +
                  std::to_string(spec_.max_nodes) + " children, the limit of one request");
}

void Request::cycle(std::int64_t edge, std::int32_t from, std::int32_t to) {
  const std::string place = where(from) + step(from, edge);
  structure_error("a structure must not contain a cycle, but " + place + " is " + where(to) + " again (a " +
                  type_name(objects_[static_cast<std::size_t>(to)]) +
                  "); a node may be shared, but not be below itself");
}

}  // namespace cortex
