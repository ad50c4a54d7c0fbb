// Reading a Forest: the structure is already in arrays, which are copied, checked and given heights.
//
// Arrays are copied before they are checked, so that nothing depends on their owner leaving them alone; slots straight
// to where the edges of a node stand together.
#include <algorithm>
#include <limits>

#include "arrays.hpp"
#include "errors.hpp"
#include "request.hpp"

namespace cortex {

namespace {

constexpr std::size_t kAnyLength = std::numeric_limits<std::size_t>::max();
constexpr std::size_t kShownCycle = 8;

// What a mapping of the forest has under `key`, or an invalid object.
nb::object entry(const nb::object& mapping, const std::string& key) {
  PyObject* found = PyMapping_GetItemString(mapping.ptr(), key.c_str());
  if (!found) {
    if (!PyErr_ExceptionMatches(PyExc_KeyError)) throw nb::python_error();
    PyErr_Clear();
  }
  return nb::steal(found);
}

// The integers in an array of the forest. Valid until Python code runs, which may give the array other memory.
struct Ints {
  const std::int32_t* at;
  std::size_t length;
};

Ints view_ints(const nb::object& source, const std::string& what, std::size_t length) {
  auto* array = reinterpret_cast<PyArrayObject*>(source.ptr());
  if (!PyArray_Check(source.ptr()) || PyArray_TYPE(array) != NPY_INT32 || PyArray_NDIM(array) != 1 ||
      !PyArray_ISCARRAY_RO(array) ||
      (length != kAnyLength && PyArray_DIM(array, 0) != static_cast<npy_intp>(length))) {
    structure_error("the forest's " + what + " is not the array that it was made with");
  }
  return {static_cast<const std::int32_t*>(PyArray_DATA(array)), static_cast<std::size_t>(PyArray_DIM(array, 0))};
}

std::vector<std::int32_t> copy_ints(const nb::object& source, const std::string& what, std::size_t length) {
  const Ints ints = view_ints(source, what, length);
  return {ints.at, ints.at + ints.length};
}

std::string known_relations(const nb::object& forest) {
  nb::object names = own(PySequence_List(forest.attr("slots").ptr()));
  names = own(PyNumber_InPlaceAdd(names.ptr(), own(PySequence_List(forest.attr("lists").ptr())).ptr()));
  return brief_repr(names.ptr());
}

// A slot as the forest gives it. Its memory is looked at after all relations have been asked for.
struct Slot {
  nb::object array;
  std::string what;
};

// A list relation as the forest gives it: pointers and indices, or several slots that make up a list.
struct List {
  std::vector<Slot> slots;
  std::vector<std::int32_t> ptr, idx;
};

struct Relations {
  std::vector<Slot> slots;
  std::vector<List> lists;
};

std::vector<Ints> view_slots(const std::vector<Slot>& slots, std::size_t n) {
  std::vector<Ints> views;
  for (const Slot& slot : slots) views.push_back(view_ints(slot.array, slot.what, n));
  return views;
}

Slot read_slot(const nb::object& forest, const std::string& name) {
  const nb::object found = entry(forest.attr("slots"), name);
  if (!found.is_valid()) {
    structure_error("the model follows '" + name + "', and the forest has only the relations " +
                    known_relations(forest) + "; make it with a slot '" + name + "'");
  }
  return {found, "slot '" + name + "'"};
}

List copy_list(nb::handle source, const std::string& name, std::size_t n) {
  List list;
  const std::string what = "list '" + name + "'";
  list.ptr = copy_ints(nb::object(source[0]), what, n + 1);
  list.idx = copy_ints(nb::object(source[1]), what, kAnyLength);
  bool rises = list.ptr.front() == 0 && list.ptr.back() == static_cast<std::int64_t>(list.idx.size());
  for (std::size_t i = 1; i < list.ptr.size(); ++i) rises &= list.ptr[i - 1] <= list.ptr[i];
  if (!rises) {
    structure_error("the pointers of the " + what + " must rise from 0 to the number of edges (" +
                    std::to_string(list.idx.size()) + ")");
  }
  for (const std::int32_t child : list.idx)
    if (child < 0)
      structure_error("the " + what + " holds " + std::to_string(child) + "; it must hold indices of nodes");
  return list;
}

List read_list(const nb::object& forest, const Accessor& list, std::size_t n) {
  if (list.is_parts() && entry(forest.attr("slots"), list.parts().front().text()).is_valid()) {
    List result;
    for (const Attribute& part : list.parts()) result.slots.push_back(read_slot(forest, part.text()));
    return result;
  }
  const nb::object lists = forest.attr("lists");
  nb::object found = entry(lists, list.attribute().text());
  if (!found.is_valid()) found = entry(lists, list.name());
  if (!found.is_valid()) {
    structure_error("the model follows the list '" + list.name() + "', and the forest has only the relations " +
                    known_relations(forest) + "; make it with relation='" + list.name() + "'");
  }
  return copy_list(found, list.name(), n);
}

[[noreturn]] void no_such_node(std::int32_t child, std::size_t n) {
  structure_error("a forest of " + std::to_string(n) + " nodes has no node " + std::to_string(child) +
                  "; children must be from 0 to " + std::to_string(static_cast<std::int64_t>(n) - 1) +
                  ", or -1 for none in a slot");
}

// Lay out the edges of every node together, as `Graph` has them.
void lay_out(const Relations& relations, std::size_t n, Graph& graph) {
  std::size_t most = n * relations.slots.size();
  for (const List& list : relations.lists) most += n * list.slots.size() + list.idx.size();
  graph.edge_start.resize(n + 1);
  graph.edge_child.resize(most);
  graph.list_len.resize(n * relations.lists.size());
  const std::vector<Ints> slots = view_slots(relations.slots, n);
  std::vector<std::vector<Ints>> of_lists;
  for (const List& list : relations.lists) of_lists.push_back(view_slots(list.slots, n));
  std::int32_t* next = graph.edge_child.data();
  std::int32_t* length = graph.list_len.data();
  for (std::size_t v = 0; v < n; ++v) {
    graph.edge_start[v] = next - graph.edge_child.data();
    for (const Ints& slot : slots) *next++ = slot.at[v];
    for (std::size_t l = 0; l < of_lists.size(); ++l) {
      const List& list = relations.lists[l];
      const std::int32_t* before = next;
      for (const Ints& slot : of_lists[l]) {
        const std::int32_t child = slot.at[v];
        if (child != -1) *next++ = child;
      }
      if (list.slots.empty()) next = std::copy(list.idx.begin() + list.ptr[v], list.idx.begin() + list.ptr[v + 1], next);
      *length++ = static_cast<std::int32_t>(next - before);
    }
  }
  graph.edge_start[n] = next - graph.edge_child.data();
  graph.edge_child.resize(static_cast<std::size_t>(graph.edge_start[n]));
}

// Which way children stand from their parents in the user's order, where all stand the same way.
enum class Order { kChildrenBefore, kChildrenAfter, kMixed };

Order check_range(const Graph& graph, std::size_t n) {
  bool before = true, after = true, good = true;
  for (std::size_t v = 0; v < n; ++v) {
    const auto parent = static_cast<std::int32_t>(v);
    for (std::int64_t e = graph.edge_start[v]; e < graph.edge_start[v + 1]; ++e) {
      const std::int32_t child = graph.edge_child[static_cast<std::size_t>(e)];
      good &= child >= -1 && child < static_cast<std::int64_t>(n);
      before &= child < parent;
      after &= child == -1 || child > parent;
    }
  }
  if (!good) {
    for (const std::int32_t child : graph.edge_child)
      if (child < -1 || child >= static_cast<std::int64_t>(n)) no_such_node(child, n);
  }
  return before ? Order::kChildrenBefore : after ? Order::kChildrenAfter : Order::kMixed;
}

void find_height(Graph& graph, std::size_t v) {
  std::int32_t height = -1;
  for (std::int64_t e = graph.edge_start[v]; e < graph.edge_start[v + 1]; ++e) {
    const std::int32_t child = graph.edge_child[static_cast<std::size_t>(e)];
    if (child >= 0) height = std::max(height, graph.height[static_cast<std::size_t>(child)]);
  }
  graph.height[v] = height + 1;
}

[[noreturn]] void cycle_error(const std::vector<std::pair<std::int32_t, std::int64_t>>& stack, std::int32_t node,
                              nb::handle names) {
  std::size_t i = stack.size();
  while (stack[--i].first != node) {
  }
  const std::string called = name_of_node(names, node);
  std::string text = called;
  const std::size_t end = std::min(stack.size(), i + 1 + kShownCycle);
  for (++i; i < end; ++i) text += " -> " + name_of_node(names, stack[i].first);
  structure_error("a forest must not contain a cycle, but node " + called + " is below itself: " + text +
                  (end < stack.size() ? " -> ..." : "") + " -> " + called);
}

// Compute the heights of a graph whose edges are complete and in range; refuse cycles. Where children stand on one
// side of their parents there is none, and one pass from that side finds every child's height before its parents'.
void find_heights(Graph& graph, Order order, nb::handle names) {
  constexpr std::int32_t kNew = -1, kOpen = -2;
  const std::size_t n = graph.edge_start.size() - 1;
  graph.height.assign(n, kNew);
  if (order == Order::kChildrenBefore) {
    for (std::size_t v = 0; v < n; ++v) find_height(graph, v);
    return;
  }
  if (order == Order::kChildrenAfter) {
    for (std::size_t v = n; v-- > 0;) find_height(graph, v);
    return;
  }
  std::vector<std::pair<std::int32_t, std::int64_t>> stack;
  for (std::size_t root = 0; root < n; ++root) {
    if (graph.height[root] != kNew) continue;
    graph.height[root] = kOpen;
    stack.emplace_back(static_cast<std::int32_t>(root), graph.edge_start[root]);
    while (!stack.empty()) {
      auto& [node, next] = stack.back();
      const auto v = static_cast<std::size_t>(node);
      const std::int64_t end = graph.edge_start[v + 1];
      std::int32_t child = -1;
      while (next < end) {
        child = graph.edge_child[static_cast<std::size_t>(next++)];
        if (child >= 0 && graph.height[static_cast<std::size_t>(child)] < 0) break;
        child = -1;
      }
      if (child < 0) {
        find_height(graph, v);
        stack.pop_back();
      } else if (graph.height[static_cast<std::size_t>(child)] == kOpen) {
        cycle_error(stack, child, names);
      } else {
        graph.height[static_cast<std::size_t>(child)] = kOpen;
        stack.emplace_back(child, graph.edge_start[static_cast<std::size_t>(child)]);
      }
    }
  }
}

}  // namespace

void Request::read_forest(nb::handle source) {
  const nb::object forest_type = nb::module_::import_("cortex.runtime.forest").attr("Forest");
  const int is_forest = PyObject_IsInstance(source.ptr(), forest_type.ptr());
  if (is_forest < 0) throw nb::python_error();
  if (!is_forest) {
    structure_error("cannot linearize " + brief_repr(source.ptr()) + " (" + type_name(source.ptr()) +
                    "); give a list of structures or a Forest");
  }
  forest_ = nb::borrow(source);
  copy_relations();

  const std::size_t n = graph_.num_nodes();
  graph_.roots = copy_ints(forest_.attr("roots"), "roots", kAnyLength);
  for (const std::int32_t root : graph_.roots)
    if (root < 0 || root >= static_cast<std::int64_t>(n))
      structure_error("a forest of " + std::to_string(n) + " nodes has no node " + std::to_string(root) +
                      " to be a root");

  const nb::object fields = forest_.attr("fields");
  for (const NodeAttribute& a : spec_.attributes) {
    nb::object column = entry(fields, a.accessor.attribute().text());
    if (!column.is_valid()) column = entry(fields, a.accessor.name());
    if (column.is_valid() && PyObject_Size(column.ptr()) != static_cast<Py_ssize_t>(n)) {
      PyErr_Clear();
      structure_error("the forest's field '" + a.accessor.name() + "' is not the one that it was made with");
    }
    columns_.push_back(std::move(column));
  }
}

void Request::copy_relations() {
  const auto count = nb::cast<std::int64_t>(forest_.attr("num_nodes"));
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (count < 0 || count > most)
    structure_error("the forest has " + std::to_string(count) + " nodes, more than the limit of one request (" +
                    std::to_string(most) + ")");
  const auto n = static_cast<std::size_t>(count);
  Relations relations;
  for (std::size_t s = 0; s < spec_.own_slots; ++s)
    relations.slots.push_back(read_slot(forest_, spec_.slots[s].attribute().text()));
  for (std::size_t l = 0; l < spec_.own_lists; ++l) relations.lists.push_back(read_list(forest_, spec_.lists[l], n));
  lay_out(relations, n, graph_);
  find_heights(graph_, check_range(graph_, n), nb::none());
  if (!spec_.positions.empty()) make_room();
  if (!spec_.unshared.empty()) check_unshared();
}

// The value of an attribute: of the node object, or of the forest's column.
PyObject* Request::value(std::int32_t node, int attribute) {
  const auto a = static_cast<std::size_t>(attribute);
  if (static_cast<std::size_t>(node) >= num_user_) {
    const Added& added = added_[static_cast<std::size_t>(node) - num_user_];
    if (added.value) return Py_NewRef(added.value);  // the only field that positions of numbers have
    node = added.owner;
  }
  if (!forest_.is_valid()) {
    const Accessor& accessor = spec_.attributes[a].accessor;
    try {
      if (spec_.of_calls()) return calls_.value(node_calls_[static_cast<std::size_t>(node)], a);
      PyObject* found = accessor.get(objects_[static_cast<std::size_t>(node)]);
      if (!found && accessor.is_renamed()) absent(accessor, accessor.attribute(), node);
      return found;
    } catch (nb::python_error& error) {
      note_place(error, accessor.name(), node);
      throw;
    }
  }
  const nb::object& column = columns_[a];
  if (!column.is_valid()) return nullptr;
  if (PyArray_Check(column.ptr())) {
    auto* array = reinterpret_cast<PyArrayObject*>(column.ptr());
    if (PyArray_NDIM(array) == 1 && node < PyArray_DIM(array, 0))
      return own(PyArray_GETITEM(array, static_cast<const char*>(PyArray_GETPTR1(array, node)))).release().ptr();
  }
  return own(PySequence_GetItem(column.ptr(), node)).release().ptr();
}

std::string name_of_node(nb::handle names, std::int32_t node) {
  if (names.is_none()) return std::to_string(node);
  return brief_repr(own(PySequence_GetItem(names.ptr(), node)).ptr());
}

void check_forest(nb::list slots, nb::list lists, std::int64_t num_nodes, nb::handle names) {
  const auto n = static_cast<std::size_t>(num_nodes);
  Relations relations;
  for (nb::handle slot : slots) relations.slots.push_back({nb::borrow(slot), "slots"});
  for (nb::handle list : lists)
    relations.lists.push_back(copy_list(list, nb::cast<std::string>(nb::object(list[2])), n));
  Graph graph;
  lay_out(relations, n, graph);
  find_heights(graph, check_range(graph, n), names);
}

}  // namespace cortex
