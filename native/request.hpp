// One request on its way from the user's structures to the linear form.
//
// The stages run in the order of the members below: `read` (walk.cpp, walk_calls.cpp, arrays.cpp), `classify` (classify.cpp), `dedup`
// where the spec asks for it (dedup.cpp), `choose_variants` (variants.cpp), `number` (number.cpp, batching.cpp, agenda.cpp), then
// `emit` (emit.cpp, fields.cpp) into arrays that the caller owns.
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "calls.hpp"
#include "node_table.hpp"
#include "python.hpp"
#include "signals.hpp"
#include "spec.hpp"

namespace cortex {

// The structure in the user's order: nodes are numbered by first visit in preorder, or by the user's index.
//
// The edges of a node stand together: one for each slot (-1 where there is no child), then those of each list.
struct Graph {
  std::vector<std::int64_t> edge_start;  // per node, and the end of all edges once the graph is complete
  std::vector<std::int32_t> edge_child;
  std::vector<std::int32_t> list_len;  // per node and list; -1 where the list is None
  std::vector<std::int32_t> height;    // -1 while a node's children are being visited
  std::vector<std::int32_t> kind;
  std::vector<std::int32_t> roots;

  std::size_t num_nodes() const { return height.size(); }
  void clear();
};

// The first of a linear form's sizes, by position.
enum Size : std::size_t { kNumNodes, kNumGroups, kNumRoots, kMaxGroup, kFirstListSize };

// Room for the batching policy "agenda".
struct Agenda {
  struct Kind {
    std::int32_t first = -1, ready = 0;  // of the nodes that are ready, as a chain, and their number
    std::int32_t next = 0;               // nodes that have not run, of the levels up to the present one
    std::int32_t level = 0, last = 0;    // the present level and the end of all, as places in `nodes_at`
  };
  using Four = std::array<std::int32_t, 4>;  // kinds
  std::vector<Kind> kinds;
  std::vector<Four> most;                            // per node and kind: the nodes of the kind on one way down
  std::vector<std::int32_t> nodes_at;                // per kind and level
  std::vector<std::int32_t> level, waits_for;        // per node
  std::vector<std::int32_t> first_above, next_ready;  // per node: an edge that leads to it; the next of its chain
  std::vector<std::int32_t> next_above, parent;      // per edge: another that leads to the same node; whose it is
};

// The order of the linear form; see lower/linear_form.py for what it promises.
struct Numbering {
  std::vector<std::int32_t> id_of, node_of;
  std::vector<std::int32_t> group_start, group_len, group_kind, kind_start;
  // num_nodes, num_groups, num_roots, max_group, then two for each list; then num_parts where the spec asks for parts,
  // num_windows and max_window where it asks for windows, and num_user_nodes where `dedup` is on.
  std::vector<std::int64_t> sizes;
  std::vector<std::int32_t> rank;  // per node: groups of a lower rank run first; unused where that is the height
  std::vector<std::int32_t> group_kind_of;            // per node; unused where that is the node's own kind
  std::int64_t num_parts = 1;
  std::vector<std::int32_t> part;        // per node; empty where there is one part at most
  std::vector<std::int32_t> part_group;  // per part its first group, and the number of groups
  std::vector<std::int32_t> windows;     // per window its first group and, for each kind the spec asks for, where its
                                         // nodes begin in kind_node; then the same for one more, which is empty
  std::vector<std::int32_t> count, sorted, by_group;  // room for sorting
  Agenda agenda;
};

// Nodes that were merged, and the fields as they were read to compare them.
struct Duplicates {
  std::vector<std::int32_t> unique_of;  // per node of the user, the node of the graph that stands for it
  std::vector<std::int32_t> first;      // per node of the graph, the first node of the user that it stands for
  std::vector<std::int32_t> ints;       // the integer fields, one after the other, in the user's order
  std::vector<float> floats;            // the float fields, likewise, without padding
};

// Where the linear form goes. Index arrays stand in the order of `index_arrays`, float fields in the spec's order.
struct Destination {
  std::vector<std::int32_t*> index;
  std::vector<float*> floats;
  bool padded;  // rows of float fields have the stride of the spec, or none between them
};

// Where an integer field stands among the index arrays: before `root` and `order`.
std::int32_t* int_array(const Destination& to, const Spec& spec, std::size_t field);

// Copy the value of one node from memory without padding.
void copy_rows(const FloatField& field, const float* from, float* to, bool padded);

// Tell the user that an integer field of a node has a value that does not fit.
[[noreturn]] void refuse_int(const IntField& field, std::int64_t value, const std::string& node);

// The number of rows of an array: one of the sizes (or none), plus a constant.
struct Extent {
  int size;
  std::int64_t plus;
  std::int64_t rows(const std::vector<std::int64_t>& sizes) const {
    return plus + (size < 0 ? 0 : sizes[static_cast<std::size_t>(size)]);
  }
  bool operator==(const Extent&) const = default;
};

struct IndexArray {
  std::string name;
  Extent extent;
};

// Names of the sizes and of the index arrays of a spec's linear form, in order.
std::vector<std::string> size_names(const Spec& spec);
std::vector<IndexArray> index_arrays(const Spec& spec);

class Request {
 public:
  explicit Request(const Spec& spec) : spec_(spec), calls_(spec.calls, spec.max_nodes) {}
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;
  ~Request() { clear(); }

  // Read a list of node objects or a Forest, and number its nodes, in so many parts if the spec asks for parts. Runs
  // the user's accessors. Equal nodes become one where the spec says so, unless fields are going to change (`merge`).
  void linearize(nb::handle structures, std::int64_t parts, bool merge = true);

  // Write the linear form and the fields. Runs the user's accessors.
  void emit(const Destination& to);

  // Does the code read this field of this node? Answered after `emit`, for requests whose nodes were not merged.
  bool is_read(FieldRef field, std::size_t node) const;

  // Forget the request and its objects; keep the memory.
  void clear();

  // The nodes in the user's order: objects of the user's or, where nodes are calls, (tag of the role, object) for each.
  nb::list visited();

  const Graph& graph() const { return graph_; }
  const Numbering& numbering() const { return numbering_; }
  std::size_t bytes() const;

 private:
  struct Frame {
    std::int32_t node;
    std::int32_t height;  // of the highest child so far
    std::int64_t next, end;
  };

  // walk.cpp
  void walk(nb::handle structures);
  void check_names();
  void check_unshared() const;
  void descend();
  void look_ahead(PyObject* node) const;
  std::int32_t number_at(std::int64_t edge, std::int32_t next);
  void add_node(PyObject* node);
  bool discover(PyObject* node);
  [[noreturn]] void refuse_plain(PyObject* node);
  bool expand_slot(const Accessor& slot, PyObject* node);
  std::int32_t expand_list(const Accessor& list, PyObject* node);
  std::int32_t expand_parts(const Accessor& list, PyObject* node);
  std::int32_t add_items(const Accessor& list, PyObject* held_by);
  std::int32_t iterate(const Accessor& list, nb::object collection);
  [[noreturn]] void none_in_list();
  void add_edge(PyObject* child);
  void put_all_in_table();
  [[noreturn]] void too_many_nodes();
  [[noreturn]] void too_many_children();
  [[noreturn]] void cycle(std::int64_t edge, std::int32_t from, std::int32_t to);

  // walk_calls.cpp
  bool discover_call(std::int32_t call);
  void expand_slots(std::int32_t call, const CallRole& role, bool asked, const std::vector<std::uint8_t>* needed);
  void expand_lists(std::int32_t call, const CallRole& role, const std::vector<std::uint8_t>* needed);
  nb::object call_object(std::int32_t node) const;

  // collected.cpp
  void walk_collected(std::int32_t head);
  std::int32_t gather(std::int32_t call, const CallRole& role, const Gather& what, std::vector<std::int32_t>& to);

  // arrays.cpp
  void read_forest(nb::handle forest);
  void copy_relations();

  // positions.cpp
  void make_room();
  void add_positions();
  std::int32_t add_items_of(std::int32_t routine, std::int32_t owner);
  void find_height(std::size_t node);

  // classify.cpp
  void classify();
  std::int32_t kind_of(std::int32_t node);
  std::int32_t decide_from(Branch branch, std::int32_t node);
  [[gnu::always_inline]] std::int32_t decide(std::int32_t node);
  bool has_child(std::size_t edge) const;
  bool all_checked() const;
  void check_lengths();
  [[gnu::always_inline]] Branch answer(const Test& test, std::int32_t node);
  [[gnu::always_inline]] Branch answer_at_hand(const Test& test, std::int32_t node) const;
  Branch answer_by_value(const Test& test, std::int32_t node, PyObject* value);
  std::int32_t follow(const Path& path, std::int32_t node) const;
  std::int32_t follow(const Hop& hop, std::int32_t node) const;
  std::pair<std::int64_t, std::int32_t> list_of_node(std::int32_t node, int list) const;
  PyObject* kept(std::int32_t node, int attribute);
  PyObject* keep(std::int32_t node, int attribute);

  // dedup.cpp
  void dedup();
  void stage_fields();
  std::vector<std::int32_t> first_equals();
  void merge(const std::vector<std::int32_t>& first_equal);
  void emit_staged(const Destination& to) const;
  // variants.cpp
  void choose_variants();

  // parts.cpp
  void divide(std::int64_t wanted);

  // number.cpp
  void number();
  const std::vector<std::int32_t>& group_kinds();
  void sort_nodes(const std::vector<std::int32_t>& rank, const std::vector<std::int32_t>& group_kind_of);
  void count_edges();
  void find_windows();

  // batching.cpp
  const std::vector<std::int32_t>& ranks();
  void sort_by_height();
  void rank_by_depth();

  // agenda.cpp
  void rank_by_agenda();
  bool link_parents();
  template <class NodeAt>
  void find_levels(const std::vector<std::int32_t>& kind, NodeAt node_at);

  // fields.cpp
  void check_needs();
  void collect_reads();
  template <class F>
  void reach(const Path& path, std::size_t hop, std::int32_t from, F found);
  void fill_fields(const Destination& to);
  bool fill_from_column(FieldRef field, const Destination& to);
  bool fill_from_rows(FieldRef field, const Destination& to, std::size_t first, std::size_t last);
  void fill(FieldRef field, std::int32_t node, const Destination& to);
  bool fill_small(const IntField& field, std::int32_t node, std::int32_t* to) const;
  [[noreturn]] void masked(const std::string& field, const std::string& accepted, std::int32_t node);
  [[noreturn]] void missing(const std::string& field, const std::string& accepted, std::int32_t node);
  std::int32_t int_value(const IntField& field, PyObject* value, std::int32_t node);
  std::int32_t checked(const IntField& field, std::int64_t value, std::int32_t node);
  void float_value(const FloatField& field, PyObject* value, std::int32_t node, float* row, bool padded);

  // Where values come from: the attribute of a node (a new reference), or null where it is absent.
  PyObject* value(std::int32_t node, int attribute);
  PyObject* value_at_hand(std::int32_t node, int attribute) const;

  // where.cpp
  struct WayDown {
    std::int32_t root;                                           // the number of a root
    std::vector<std::pair<std::int32_t, std::int64_t>> edges;  // from which node, and which edge
  };
  WayDown way_to(std::int32_t node) const;
  std::pair<const Accessor*, std::int32_t> relation_of(std::int32_t node, std::int64_t edge) const;
  std::string where(std::int32_t node) const;
  std::string step(std::int32_t node, std::int64_t edge) const;
  std::string describe(std::int32_t node) const;
  nb::object object_of(std::int32_t node) const;
  [[noreturn]] void absent(const Accessor& read, const Attribute& named, std::int32_t node) const;
  void note_place(nb::python_error& error, const std::string& name, std::int32_t node) const;

  // A node that stands for a position, or for what an owner computes for its positions.
  struct Added {
    std::int32_t owner;
    std::int32_t routine;  // or -1
    std::int32_t item;
    PyObject* value;  // the item itself where it is a number, owned; else null
  };

  const Spec& spec_;
  std::size_t num_user_ = 0;   // nodes of the user's, which come first
  std::vector<Added> added_;   // the others
  bool merges_ = false;
  bool of_objects_ = false;  // nodes are objects of the user's, rather than rows of a forest or calls
  Graph graph_;
  Numbering numbering_;
  Duplicates duplicates_;

  std::vector<PyObject*> objects_;       // per node, borrowed from the two below
  std::vector<PyObject*> root_objects_;  // owned
  std::vector<PyObject*> edge_objects_;  // owned; null where there is no child
  Calls calls_;                          // in place of the three above, where nodes are calls
  std::vector<std::int32_t> node_calls_, edge_calls_;  // per node, and per edge; -1 where there is no child
  int walked_first_ = -1;                // the slot of a head whose call is being walked before the head
  std::vector<std::int32_t> reached_;    // room for one
  std::vector<PyObject*> kept_;          // owned; per node and column, null until read; empty until one is
  std::vector<Frame> frames_;
  NodeTable table_;
  bool all_in_table_ = false;            // or only those nodes that several places may refer to?

  nb::object forest_;                // set when the request came as arrays
  std::vector<nb::object> columns_;  // of the forest, per attribute; not valid where it has none

  std::vector<std::uint8_t> demand_;  // per node and field: read by a node further up
};

// Add a node, whose edges follow.
[[gnu::always_inline]] inline void Request::add_node(PyObject* node) {
  const std::size_t number = objects_.size();
  if (number >= static_cast<std::size_t>(spec_.max_nodes)) too_many_nodes();
  look_for_signals(number);
  objects_.push_back(node);
  graph_.edge_start.push_back(static_cast<std::int64_t>(graph_.edge_child.size()));
  graph_.height.push_back(-1);
}

// The value of an attribute that tests ask about, None where it is absent; read once and kept. Borrowed.
inline PyObject* Request::kept(std::int32_t node, int attribute) {
  const auto column = static_cast<std::size_t>(spec_.attributes[static_cast<std::size_t>(attribute)].column);
  const auto columns = static_cast<std::size_t>(spec_.num_columns), at = static_cast<std::size_t>(node) * columns + column;
  if (at >= kept_.size()) kept_.resize(graph_.num_nodes() * columns, nullptr);
  if (!kept_[at]) kept_[at] = keep(node, attribute);
  return kept_[at];
}

// The value of an attribute (borrowed) where it takes no more than a look at a node's slot; else null.
inline PyObject* Request::value_at_hand(std::int32_t node, int attribute) const {
  if (!of_objects_ || static_cast<std::size_t>(node) >= objects_.size()) return nullptr;
  return spec_.attributes[static_cast<std::size_t>(attribute)].accessor.at_hand(objects_[static_cast<std::size_t>(node)]);
}

}  // namespace cortex
