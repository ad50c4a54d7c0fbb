#include "request.hpp"

#include <limits>

namespace cortex {

namespace {

void release(std::vector<PyObject*>& owned) {
  for (PyObject* object : owned) Py_XDECREF(object);
  owned.clear();
}

template <class T>
std::size_t bytes_of(const std::vector<T>& v) {
  return v.capacity() * sizeof(T);
}

}  // namespace

void Graph::clear() {
  edge_start.clear();
  edge_child.clear();
  list_len.clear();
  height.clear();
  kind.clear();
  roots.clear();
}

void Request::linearize(nb::handle structures, std::int64_t parts, bool merge) {
  clear();
  num_user_ = std::numeric_limits<std::size_t>::max();
  merges_ = spec_.dedup && merge;
  const bool is_list = PyList_Check(structures.ptr()) || PyTuple_Check(structures.ptr());
  of_objects_ = is_list && !spec_.of_calls();
  if (is_list) {
    walk(structures);
  } else {
    read_forest(structures);
  }
  run_signal_handlers();
  classify();
  num_user_ = graph_.num_nodes();
  if (!spec_.positions.empty()) add_positions();
  if (merges_) dedup();
  run_signal_handlers();
  choose_variants();
  if (spec_.parts) divide(parts);
  run_signal_handlers();
  number();
  run_signal_handlers();
}

void Request::clear() {
  for (const Added& added : added_) Py_XDECREF(added.value);
  added_.clear();
  release(kept_);
  release(edge_objects_);
  release(root_objects_);
  objects_.clear();
  node_calls_.clear();
  edge_calls_.clear();
  calls_.clear();
  frames_.clear();
  walked_first_ = -1;
  columns_.clear();
  forest_.reset();
  demand_.clear();
  graph_.clear();
}

std::size_t Request::bytes() const {
  const Graph& g = graph_;
  const Numbering& n = numbering_;
  const Agenda& a = n.agenda;
  const Duplicates& d = duplicates_;
  return bytes_of(g.edge_start) + bytes_of(g.edge_child) + bytes_of(g.list_len) + bytes_of(g.height) +
         bytes_of(g.kind) + bytes_of(g.roots) + bytes_of(n.id_of) + bytes_of(n.node_of) + bytes_of(n.group_start) +
         bytes_of(n.group_len) + bytes_of(n.group_kind) + bytes_of(n.rank) + bytes_of(n.group_kind_of) +
         bytes_of(n.part) + bytes_of(n.part_group) + bytes_of(n.windows) + bytes_of(n.count) +
         bytes_of(n.sorted) + bytes_of(n.by_group) + bytes_of(a.kinds) + bytes_of(a.nodes_at) +
         bytes_of(a.level) + bytes_of(a.waits_for) + bytes_of(a.most) + bytes_of(a.first_above) +
         bytes_of(a.next_ready) + bytes_of(a.next_above) + bytes_of(a.parent) + bytes_of(d.unique_of) + bytes_of(d.first) + bytes_of(d.ints) +
         bytes_of(d.floats) + bytes_of(objects_) + bytes_of(root_objects_) + bytes_of(edge_objects_) +
         calls_.bytes() + bytes_of(node_calls_) + bytes_of(edge_calls_) +
         bytes_of(kept_) + bytes_of(frames_) + bytes_of(demand_) + table_.bytes();
}

}  // namespace cortex
