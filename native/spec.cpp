#include "spec.hpp"

#include <algorithm>
#include <limits>

#include "errors.hpp"

namespace cortex {

namespace {

std::string text_of(nb::handle value) {
  const char* text = PyUnicode_Check(value.ptr()) ? PyUnicode_AsUTF8(value.ptr()) : nullptr;
  if (!text) {
    if (PyErr_Occurred()) throw nb::python_error();
    python_error(PyExc_TypeError, "a name in a linearizer's spec must be a str, not " + brief_repr(value.ptr()));
  }
  return text;
}

std::int64_t int_of(nb::handle value) {
  const long long number = PyLong_AsLongLong(value.ptr());
  if (number == -1 && PyErr_Occurred()) throw nb::python_error();
  return number;
}

bool truth_of(nb::handle value) {
  const int truth = PyObject_IsTrue(value.ptr());
  if (truth < 0) throw nb::python_error();
  return truth != 0;
}

// The key of an answer that is a value: Python takes 1, 1.0 and True for the same key, and a model need not.
// Where a spec has to tell them apart it gives the key itself (see `Fact.key` of ra/ir.py).
nb::object typed_answer(nb::handle answer) {
  if (PyTuple_Check(answer.ptr())) return nb::borrow(answer);
  return nb::make_tuple(nb::borrow(reinterpret_cast<PyObject*>(Py_TYPE(answer.ptr()))), answer);
}

nb::object interned(nb::handle text) {
  PyObject* found = Py_NewRef(text.ptr());
  PyUnicode_InternInPlace(&found);
  return nb::steal(found);
}

// Turns the nested tuples of a spec into the flat tables of `Spec`.
class Reader {
 public:
  Reader(Spec& spec, nb::dict source) : spec_(spec), source_(std::move(source)) {}

  void read() {
    if (source_.contains("accessors")) accessors_ = nb::cast<nb::dict>(source_["accessors"]);
    for (nb::handle name : items("slots")) spec_.slots.push_back(accessor(text_of(name)));
    for (nb::handle name : items("lists")) spec_.lists.push_back(accessor(text_of(name)));
    for (const Accessor& slot : spec_.slots)
      if (slot.is_parts())
        python_error(PyExc_TypeError, "the child '" + slot.name() + "' cannot mean several attributes");

    spec_.num_kinds = static_cast<int>(int_of(source_["num_kinds"]));
    spec_.kinds.resize(static_cast<std::size_t>(spec_.num_kinds));
    spec_.tree = branch(source_["tree"]);
    spec_.own_slots = spec_.slots.size();
    spec_.own_lists = spec_.lists.size();
    if (source_.contains("positions")) read_positions(source_["positions"]);
    for (nb::handle field : items("int_fields")) read_int_field(field);
    for (nb::handle field : items("float_fields")) read_float_field(field);
    read_uses();
    read_lengths();
    read_groups();
    if (source_.contains("variants")) read_variants(nb::cast<nb::dict>(source_["variants"]));
    for (NodeAttribute& a : spec_.attributes)
      if (a.accessor.is_parts()) {
        python_error(PyExc_TypeError, "the field '" + a.accessor.name() + "' cannot mean several attributes");
      }
    for (const Accessor& a : spec_.slots) spec_.has_functions |= a.is_call();
    for (const Accessor& a : spec_.lists) spec_.has_functions |= a.is_call();
    for (const NodeAttribute& a : spec_.attributes) spec_.has_functions |= a.accessor.is_call();
    if (source_.contains("calls")) spec_.calls = CallSpec(source_["calls"], names(spec_.slots), names(spec_.lists), names());
    if (source_.contains("unshared")) {
      bool any = false;
      for (nb::handle each : items("unshared")) {
        spec_.unshared.push_back(nb::cast<bool>(nb::borrow(each)));
        any |= spec_.unshared.back() != 0;
      }
      if (!any) spec_.unshared.clear();
    }
    constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
    spec_.max_nodes = source_.contains("max_nodes") ? std::min(most, int_of(source_["max_nodes"])) : most;
  }

 private:
  nb::list items(const char* key) { return list_of(source_[key]); }

  Accessor accessor(const std::string& name) {
    nb::handle meaning;
    if (accessors_.is_valid()) meaning = PyDict_GetItemString(accessors_.ptr(), name.c_str());
    return Accessor(name, meaning);
  }

  static std::vector<std::string> names(const std::vector<Accessor>& relations) {
    std::vector<std::string> found;
    for (const Accessor& relation : relations) found.push_back(relation.name());
    return found;
  }

  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const NodeAttribute& a : spec_.attributes) found.push_back(a.accessor.name());
    return found;
  }

  static int find(const std::vector<Accessor>& relations, const std::string& name) {
    for (std::size_t i = 0; i < relations.size(); ++i)
      if (relations[i].name() == name) return static_cast<int>(i);
    return -1;
  }

  int attribute(const std::string& name) {
    for (std::size_t i = 0; i < spec_.attributes.size(); ++i)
      if (spec_.attributes[i].accessor.name() == name) return static_cast<int>(i);
    spec_.attributes.push_back({accessor(name)});
    return static_cast<int>(spec_.attributes.size()) - 1;
  }

  Path path(nb::handle hops) {
    Path result;
    for (nb::handle h : list_of(hops)) {
      const std::string what = text_of(h[0]), name = text_of(h[1]);
      Hop hop{};
      hop.kind = what == "slot" ? Hop::Kind::kSlot : what == "item" ? Hop::Kind::kItem : Hop::Kind::kEach;
      hop.relation = find(hop.kind == Hop::Kind::kSlot ? spec_.slots : spec_.lists, name);
      if (hop.kind == Hop::Kind::kItem) hop.index = static_cast<int>(int_of(h[2]));
      if (hop.relation < 0 || hop.index < 0 || (hop.kind == Hop::Kind::kEach && what != "each"))
        python_error(PyExc_ValueError, "a path of a linearizer's spec has the unknown step " + brief_repr(h.ptr()));
      result.push_back(hop);
    }
    return result;
  }

  void set_subject(Test& test, const std::string& name) {
    if ((test.number = find(spec_.slots, name)) >= 0) {
      test.subject = Test::Subject::kSlot;
    } else if ((test.number = find(spec_.lists, name)) >= 0) {
      test.subject = Test::Subject::kList;
    } else {
      test.subject = Test::Subject::kAttribute;
      test.number = kept_attribute(name);
    }
  }

  // The number of an attribute whose value is kept for every node.
  int kept_attribute(const std::string& name) {
    const int number = attribute(name);
    int& column = spec_.attributes[static_cast<std::size_t>(number)].column;
    if (column < 0) column = spec_.num_columns++;
    return number;
  }

  static int order_of(const std::string& name) {
    constexpr std::pair<const char*, int> kOrders[] = {{"lt", Py_LT}, {"le", Py_LE}, {"gt", Py_GT}, {"ge", Py_GE}};
    for (const auto& [known, order] : kOrders)
      if (name == known) return order;
    python_error(PyExc_ValueError, "a linearizer's spec has the unknown order '" + name + "'");
  }

  Test question(nb::handle source) {
    const std::string op = text_of(source[0]);
    Test test{};
    std::size_t path_at = 2;
    if (op == "is_leaf" || op == "is_above_leaves") {
      test.op = op == "is_leaf" ? Test::Op::kIsLeaf : Test::Op::kIsAboveLeaves;
      test.subject = Test::Subject::kNode;
      path_at = 1;
    } else {
      set_subject(test, text_of(source[1]));
      if (op == "is_none") {
        test.op = Test::Op::kIsNone;
      } else if (op == "length") {
        test.op = Test::Op::kLength;
      } else if (op == "has_length") {
        test.op = Test::Op::kHasLength;
        test.count = int_of(source[2]);
        path_at = 3;
      } else if (op == "counts") {
        test.op = Test::Op::kCounts;
        const std::string counted = text_of(source[2]);
        test.list = find(spec_.lists, counted);
        if (test.list < 0) test.counted = kept_attribute(counted);
        path_at = 3;
      } else if (op == "value") {
        test.op = Test::Op::kValue;
      } else if (op == "compares") {
        test.op = Test::Op::kCompares;
        test.order = order_of(text_of(source[2]));
        test.value = nb::object(source[3]);
        path_at = 4;
      } else if (op == "equals") {
        test.op = Test::Op::kEquals;
        test.value = nb::object(source[2]);
        if (PyUnicode_CheckExact(test.value.ptr())) test.value = interned(test.value);
        path_at = 3;
      } else {
        python_error(PyExc_ValueError, "a linearizer's spec has the unknown test '" + op + "'");
      }
    }
    test.path = path(source[path_at]);
    return test;
  }

  Branch branch(nb::handle source) {
    if (source.is_none()) return kUnknown;
    const std::string what = text_of(source[0]);
    if (what == "kind") {
      return branch_to_kind(kind_number(source[1]));
    }
    const auto number = spec_.tests.size();
    spec_.tests.push_back(question(source[1]));
    nb::dict branches;
    for (auto [answer, subtree] : nb::cast<nb::dict>(nb::object(source[2]))) {
      // Reading a subtree may move the table of tests, so the test is looked up again for each answer.
      const Branch target = branch(subtree);
      Test& test = spec_.tests[number];
      if (test.op == Test::Op::kLength) {
        test.lengths.emplace_back(int_of(answer), target);
      } else if (test.op == Test::Op::kValue) {
        branches[typed_answer(answer)] = target;
        if (PyUnicode_CheckExact(answer.ptr())) test.texts.emplace_back(interned(answer), target);
      } else {
        (truth_of(answer) ? test.yes : test.no) = target;
      }
    }
    spec_.tests[number].branches = branches;
    return static_cast<Branch>(number);
  }

  // What errors call a field: the expression that computes it, or its name.
  std::string said(const std::string& name) {
    const nb::object shown = source_.contains("said") ? source_["said"].attr("get")(name) : nb::none();
    return shown.is_none() ? "field '" + name + "'" : text_of(shown);
  }

  void read_int_field(nb::handle source) {
    const std::string name = text_of(source[0]);
    const nb::object limit = source[1];
    const bool limited = !limit.is_none();
    spec_.int_fields.push_back({name, attribute(name), limited, limited ? int_of(limit) : 0, true, said(name)});
  }

  void read_float_field(nb::handle source) {
    FloatField field{};
    field.name = text_of(source[0]);
    field.attribute = attribute(field.name);
    field.rows = field.columns = 1;
    for (nb::handle extent : list_of(source[1])) {
      field.shape.push_back(static_cast<npy_intp>(int_of(extent)));
      field.rows *= field.columns;
      field.columns = field.shape.back();
    }
    field.stride = int_of(source[2]);
    field.everywhere = true;
    field.said = said(field.name);
    if (field.stride < field.elements() || (field.rows > 0 && field.stride % field.rows != 0))
      python_error(PyExc_ValueError, "the padded row of field '" + field.name + "' is too short");
    spec_.float_fields.push_back(std::move(field));
  }

  FieldRef field(const std::string& name) {
    for (std::size_t i = 0; i < spec_.int_fields.size(); ++i)
      if (spec_.int_fields[i].name == name) return {true, static_cast<int>(i)};
    for (std::size_t i = 0; i < spec_.float_fields.size(); ++i)
      if (spec_.float_fields[i].name == name) return {false, static_cast<int>(i)};
    python_error(PyExc_ValueError, "a linearizer's spec uses the undeclared field '" + name + "'");
  }

  // Call `f(kind, entry)` for the entries under `key`, which is absent or has one list per kind.
  template <class F>
  void per_kind(const char* key, F f) {
    if (!source_.contains(key)) return;
    const nb::list lists = items(key);
    if (static_cast<int>(lists.size()) != spec_.num_kinds)
      python_error(PyExc_ValueError, std::string("a linearizer's spec needs one entry per kind in '") + key + "'");
    for (std::size_t k = 0; k < lists.size(); ++k)
      for (nb::handle entry : list_of(lists[k])) f(spec_.kinds[k], entry);
  }

  void read_uses() {
    per_kind("uses", [&](KindUse& kind, nb::handle e) { kind.fields.push_back(field(text_of(e))); });
    per_kind("reads", [&](KindUse& kind, nb::handle e) {
      kind.reads.push_back({field(text_of(e[0])), path(e[1])});
      spec_.has_reads = true;
    });
    per_kind("needs", [&](KindUse& kind, nb::handle e) {
      const bool slot = PyUnicode_Check(e.ptr());
      Path way = path(slot ? nb::make_tuple(nb::make_tuple("slot", e)) : nb::borrow(e));
      if (way.size() == 1 && way[0].kind == Hop::Kind::kSlot) {
        kind.needed_slots.push_back(way[0].relation);
      } else {
        kind.needs.push_back(std::move(way));
      }
      spec_.has_needs = true;
    });
    auto used_everywhere = [&](bool is_int, std::size_t number) {
      for (const KindUse& kind : spec_.kinds) {
        bool used = false;
        for (const FieldRef& f : kind.fields) used |= f.is_int == is_int && f.number == static_cast<int>(number);
        if (!used) return false;
      }
      return true;
    };
    for (std::size_t i = 0; i < spec_.int_fields.size(); ++i) spec_.int_fields[i].everywhere = used_everywhere(true, i);
    for (std::size_t i = 0; i < spec_.float_fields.size(); ++i)
      spec_.float_fields[i].everywhere = used_everywhere(false, i);
  }

  void read_lengths() {
    if (!source_.contains("lengths")) return;
    const nb::list lengths = items("lengths");
    if (static_cast<int>(lengths.size()) != spec_.num_kinds)
      python_error(PyExc_ValueError, "a linearizer's spec needs one entry per kind in 'lengths'");
    for (std::size_t k = 0; k < lengths.size(); ++k) {
      if (lengths[k].is_none()) continue;
      Lengths& own = spec_.kinds[k].lengths;
      std::int64_t entries = 1;
      own.most = int_of(lengths[k][1]);
      for (nb::handle name : list_of(lengths[k][0])) {
        const int list = find(spec_.lists, text_of(name));
        own.lists.push_back(list < 0 ? -1 - kept_attribute(text_of(name)) : list);
        entries *= own.most + 1;
      }
      own.array = nb::object(lengths[k][2]);
      auto* array = reinterpret_cast<PyArrayObject*>(own.array.ptr());
      if (!PyArray_Check(own.array.ptr()) || PyArray_TYPE(array) != NPY_UINT8 || !PyArray_IS_C_CONTIGUOUS(array) ||
          PyArray_SIZE(array) != entries)
        python_error(PyExc_ValueError, "a linearizer's spec needs a byte for each number of children in 'lengths'");
      own.table = static_cast<const std::uint8_t*>(PyArray_DATA(array));
      spec_.has_lengths = true;
    }
    spec_.one_list_each = spec_.has_lengths;
    for (const KindUse& kind : spec_.kinds) {
      const Lengths& own = kind.lengths;
      spec_.one_list_each &= own.lists.empty() || (own.lists.size() == 1 && own.lists[0] >= 0);
      if (own.lists.empty()) {
        spec_.list_lengths.push_back({&kAlwaysChecked, 0, 0});
      } else {
        spec_.list_lengths.push_back({own.table, own.lists[0], static_cast<std::int32_t>(own.most)});
      }
    }
  }

  void read_groups() {
    const std::string policy = source_.contains("batching") ? text_of(source_["batching"]) : "height";
    if (policy == "height") {
      spec_.batching = Batching::kHeight;
    } else if (policy == "depth") {
      spec_.batching = Batching::kDepth;
    } else if (policy == "agenda") {
      spec_.batching = Batching::kAgenda;
    } else if (policy == "none") {
      spec_.batching = Batching::kNone;
    } else {
      python_error(PyExc_ValueError, "a linearizer's spec has the unknown batching '" + policy + "'");
    }
    spec_.dedup = source_.contains("dedup") && truth_of(source_["dedup"]);
    spec_.parts = source_.contains("parts") && truth_of(source_["parts"]);
    if (source_.contains("windows")) {
      for (nb::handle kind : items("windows")) {
        spec_.windows.push_back(nb::cast<std::int32_t>(kind));
        if (spec_.windows.back() < 0 || spec_.windows.back() >= spec_.num_kinds)
          python_error(PyExc_ValueError, "a linearizer's spec has windows of a kind that there is not");
      }
      spec_.window_nodes = nb::cast<std::int32_t>(source_["window_nodes"]);
    }

    for (std::int32_t k = 0; k < spec_.num_kinds; ++k) spec_.group_kind.push_back(k);
    if (!source_.contains("own_group")) return;
    const nb::list own = items("own_group");
    if (static_cast<int>(own.size()) != spec_.num_kinds)
      python_error(PyExc_ValueError, "a linearizer's spec needs one entry per kind in 'own_group'");
    std::int32_t first = -1;
    for (std::size_t k = 0; k < own.size(); ++k) {
      if (truth_of(own[k])) continue;
      if (first < 0) first = static_cast<std::int32_t>(k);
      spec_.group_kind[k] = first;
    }
    spec_.shared = first >= 0;
  }

  void read_positions(nb::handle source) {
    spec_.own_slots = static_cast<std::size_t>(int_of(source[0]));
    spec_.own_lists = static_cast<std::size_t>(int_of(source[1]));
    const auto slot = [&](nb::handle name) { return find(spec_.slots, text_of(name)); };
    for (nb::handle p : list_of(source[2])) {
      PositionSpec made{find(spec_.lists, text_of(p[0])), -1, truth_of(p[1]), slot(p[2]), slot(p[3]), slot(p[4]),
                        slot(p[5]), find(spec_.lists, text_of(p[6])), {}, {}, kUnknown, kUnknown};
      if (made.list < 0) made.attribute = attribute(text_of(p[0]));
      for (nb::handle at : list_of(p[7])) made.at.emplace_back(slot(at[0]), static_cast<int>(int_of(at[1])));
      made.owners.assign(static_cast<std::size_t>(spec_.num_kinds), 0);
      for (nb::handle kind : list_of(p[8])) made.owners[static_cast<std::size_t>(kind_number(kind))] = 1;
      made.tree = branch(p[9]);
      made.before = branch(p[10]);
      spec_.positions.push_back(std::move(made));
    }
  }

  std::int32_t kind_number(nb::handle value) {
    const std::int64_t kind = int_of(value);
    if (kind < 0 || kind >= spec_.num_kinds)
      python_error(PyExc_ValueError, "a linearizer's spec names the unknown kind " + std::to_string(kind));
    return static_cast<std::int32_t>(kind);
  }

  void read_variants(nb::dict source) {
    const std::int64_t depth = int_of(source["depth"]);
    if (depth < 1 || depth > spec_.num_kinds + 1)
      python_error(PyExc_ValueError, "a linearizer's spec unrolls " + std::to_string(depth) + " levels");
    spec_.unrolled = static_cast<std::int32_t>(depth);
    spec_.within.assign(static_cast<std::size_t>(spec_.num_kinds), -1);
    spec_.inlining.resize(static_cast<std::size_t>(spec_.num_kinds));
    for (auto [kind, variant] : nb::cast<nb::dict>(nb::object(source["within"])))
      spec_.within[static_cast<std::size_t>(kind_number(kind))] = kind_number(variant);
    for (nb::handle entry : list_of(source["inlining"])) {
      Inlining& inlining = spec_.inlining[static_cast<std::size_t>(kind_number(entry[0]))];
      for (nb::handle hop : list_of(entry[1])) inlining.hops.push_back(path(hop));
      for (auto [children, variant] : nb::cast<nb::dict>(nb::object(entry[2]))) {
        std::vector<std::int32_t> kinds;
        for (nb::handle child : list_of(children)) kinds.push_back(child.is_none() ? -1 : kind_number(child));
        inlining.variants.emplace_back(std::move(kinds), kind_number(variant));
      }
    }
  }

  Spec& spec_;
  nb::dict source_;
  nb::object accessors_;
};

}  // namespace

Spec::Spec(nb::dict spec) { Reader(*this, std::move(spec)).read(); }

int Spec::traverse(visitproc visit, void* arg) const {
  for (const Accessor& a : slots)
    if (int r = a.traverse(visit, arg)) return r;
  for (const Accessor& a : lists)
    if (int r = a.traverse(visit, arg)) return r;
  for (const NodeAttribute& a : attributes)
    if (int r = a.accessor.traverse(visit, arg)) return r;
  return calls.traverse(visit, arg);
}

void Spec::drop_references() {
  for (Accessor& a : slots) a.drop_references();
  for (Accessor& a : lists) a.drop_references();
  for (NodeAttribute& a : attributes) a.accessor.drop_references();
  calls.drop_references();
}

}  // namespace cortex
