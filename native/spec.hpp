// What a model asks of a structure, read once from the dictionary that the Python side builds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "accessor.hpp"
#include "call_spec.hpp"
#include "python.hpp"

namespace cortex {

// One step down the structure. `relation` counts slots and lists separately.
struct Hop {
  enum class Kind { kSlot, kItem, kEach } kind;
  int relation;
  int index;
};
using Path = std::vector<Hop>;

// The branch of a decision tree: a test (>= 0), no answer (kUnknown), or a kind.
using Branch = std::int32_t;
constexpr Branch kUnknown = -1;
constexpr Branch kNotYet = std::numeric_limits<Branch>::min();  // a question that was not answered
constexpr Branch branch_to_kind(std::int32_t kind) { return -2 - kind; }
constexpr std::int32_t kind_of_branch(Branch branch) { return -2 - branch; }

// A question about the node at `path`, and where each answer leads.
struct Test {
  enum class Op { kIsLeaf, kIsAboveLeaves, kIsNone, kLength, kHasLength, kCounts, kEquals, kCompares, kValue } op;
  enum class Subject { kNode, kSlot, kList, kAttribute } subject;
  int number = 0;  // of the slot, list or attribute asked about
  Path path;
  nb::object value;                                     // kEquals, kCompares; interned if it is a text
  int order = 0;                                        // kCompares: Py_LT, Py_LE, Py_GT or Py_GE
  std::int64_t count = 0;                               // kHasLength
  int list = 0;                                         // kCounts: whose length; -1 if not a list of children, but
  int counted = 0;                                      // kCounts: this attribute
  Branch yes = kUnknown, no = kUnknown;                 // all but kLength and kValue
  std::vector<std::pair<std::int64_t, Branch>> lengths;  // kLength
  std::vector<std::pair<nb::object, Branch>> texts;     // kValue: answers that are texts, interned
  nb::object branches;                                  // kValue: dict from (type, answer) to Branch

  Branch choose(bool answer) const { return answer ? yes : no; }
  Branch choose_by_length(std::int64_t length) const {
    if (op == Op::kHasLength) return choose(length == count);
    for (const auto& [answer, branch] : lengths)
      if (answer == length) return branch;
    return kUnknown;
  }
};

// An attribute that is no relation: a field, or something a test asks about.
struct NodeAttribute {
  Accessor accessor;
  int column = -1;  // where its values are kept once read, or -1: only attributes of tests are kept
};

struct IntField {
  std::string name;
  int attribute;
  bool limited;
  std::int64_t limit;
  bool everywhere;  // every kind reads it, so that no element is left to fill with 0
  std::string said; // what errors call it

  bool fits(std::int64_t value) const {
    return limited ? value >= 0 && value < limit : value == static_cast<std::int32_t>(value);
  }
};

struct FloatField {
  std::string name;
  int attribute;
  std::vector<npy_intp> shape;
  std::int64_t rows, columns;  // the elements of one node as rows of the last dimension
  std::int64_t stride;         // of a node in a padded buffer, in elements
  bool everywhere;
  std::string said;

  std::int64_t elements() const { return rows * columns; }
};

// A field, integer or float.
struct FieldRef {
  bool is_int;
  int number;
};

struct Demand {
  FieldRef field;
  Path path;
};

// For which numbers of children a kind of any arity is known to be right; see frontend/arity/lengths.py.
//
// The Python side sets entries of the table while requests are linearized by other threads; both hold the GIL.
struct Lengths {
  std::vector<int> lists;  // empty for other kinds; below 0, -1 - a where it is the list of numbers in attribute a
  std::int64_t most = 0;   // longer lists are like those of this length
  nb::object array;        // what keeps the table
  const std::uint8_t* table = nullptr;

  // The entry of a node whose lists have the lengths that `length` gives; the first of `lists` counts most.
  template <class Length>
  std::int64_t entry(Length length) const {
    std::int64_t at = 0;
    for (const int list : lists) at = at * (most + 1) + std::min<std::int64_t>(length(list), most);
    return at;
  }
};

// The same where it is one list; for kinds that need no check, a table of one entry that says so.
struct ListLength {
  const std::uint8_t* table;
  std::int32_t list, most;
};
constexpr std::uint8_t kAlwaysChecked = 1;

// What the code of one kind reads.
struct KindUse {
  std::vector<FieldRef> fields;  // of the node itself
  std::vector<Demand> reads;     // of nodes further down
  std::vector<int> needed_slots;  // of the node itself, which must lead to a child
  std::vector<Path> needs;        // other nodes further down that must exist
  Lengths lengths;
};

// Which nodes run together; see lower/linear_form.py.
enum class Batching { kHeight, kDepth, kAgenda, kNone };

// The variants of one kind that compute states of nodes below: at which hops, and which for what is inlined there.
struct Inlining {
  std::vector<Path> hops;
  std::vector<std::pair<std::vector<std::int32_t>, std::int32_t>> variants;  // per hop the child's variant or -1; the variant
};

// A routine that has a node for each item of a list of its owners; see `Positions` of ra/ir.py. -1 where there is none.
struct PositionSpec {
  int list;                               // whose items they are, or -1: those of
  int attribute;                          // this attribute, which are numbers
  bool forward;                           // the position before is the one of the item before
  int prev, owner, first, last;           // slots: of positions, and the owner's
  int all;                                // the owner's list
  std::vector<std::pair<int, int>> at;    // slots, and the routine whose position at the same place they lead to, or -1
                                          // for the item
  std::vector<std::uint8_t> owners;       // per kind: has it such positions?
  Branch tree, before;                    // the kinds of positions, and of what their owner computes for them
};

struct Spec {
  explicit Spec(nb::dict spec);

  std::vector<Accessor> slots, lists;
  std::size_t own_slots = 0, own_lists = 0;  // those that lead from the user's nodes; the others, from positions
  std::vector<PositionSpec> positions;       // each after those that it reads
  std::vector<NodeAttribute> attributes;
  int num_columns = 0;
  int num_kinds = 0;
  Branch tree = kUnknown;
  std::vector<Test> tests;
  std::vector<IntField> int_fields;
  std::vector<FloatField> float_fields;
  std::vector<KindUse> kinds;
  bool has_reads = false, has_needs = false, has_lengths = false;
  std::vector<ListLength> list_lengths;  // per kind, where `one_list_each`
  bool one_list_each = false;            // each kind is checked for the length of one list at most
  Batching batching = Batching::kHeight;
  std::vector<std::int32_t> group_kind;  // per kind: the kind that its groups are said to have
  bool shared = false;                   // some kinds share groups, so that a node's kind must be told
  bool dedup = false;                    // equal subtrees become one
  bool parts = false;                    // the request is divided into parts, and the linear form says how
  std::vector<std::int32_t> windows;     // kinds of which nodes are listed by windows; none, no windows
  std::int32_t window_nodes = 0;         // the most that a window of several groups has
  std::vector<std::int32_t> within;   // per kind, the variant of its nodes that a parent inlines, or -1; may be empty
  std::vector<Inlining> inlining;     // per kind; empty as `within` is
  std::int32_t unrolled = 1;          // levels that one group computes where kinds inline
  std::int64_t max_nodes;
  bool has_functions = false;  // some attribute is a function of the node
  CallSpec calls;              // where the nodes of requests are calls
  std::vector<std::uint8_t> unshared;  // per slot, then per list: may it not lead to a node that another one leads to?
  mutable int name_checks = 8;  // how many more requests are checked for relations of other names

  // May there be another number of nodes in the linear form than the user has?
  bool tells_user_nodes() const { return dedup || !positions.empty(); }
  bool of_calls() const { return !calls.roles.empty(); }

  // Call `visit` with every Python object held, for the garbage collector; stops at a non-zero answer.
  int traverse(visitproc visit, void* arg) const;

  // Let go of the callables, the only objects that can be part of a reference cycle.
  void drop_references();
};

}  // namespace cortex
