// Hash-consing: nodes of one kind with equal fields and equal children become one node.
//
// Nodes are taken from the leaves up, so that equal children have become one already and subtrees are compared by
// looking at one node. Equal hashes only say where to look: two nodes are merged after everything has been compared,
// float fields by their bytes.
#include <algorithm>
#include <cstring>

#include "counting_sort.hpp"
#include "request.hpp"

namespace cortex {

namespace {

class Hash {
 public:
  void add(std::uint64_t x) {
    state_ = (state_ ^ x) * 0x9E3779B97F4A7C15u;
    state_ ^= state_ >> 32;
  }

  void add(const float* values, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      std::uint32_t bits;
      std::memcpy(&bits, values + i, sizeof bits);
      add(bits);
    }
  }

  std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0x243F6A8885A308D3u;
};

}  // namespace

void Request::dedup() {
  stage_fields();
  merge(first_equals());
}

// Read all fields in the user's order. What the user may have done wrong is found here, while nodes are the user's.
void Request::stage_fields() {
  const std::size_t n = graph_.num_nodes(), ints = spec_.int_fields.size();
  numbering_.id_of.resize(n);
  for (std::size_t v = 0; v < n; ++v) numbering_.id_of[v] = static_cast<std::int32_t>(v);
  std::size_t elements = 0;
  for (const FloatField& field : spec_.float_fields) elements += static_cast<std::size_t>(field.elements());
  duplicates_.ints.resize(n * ints);
  duplicates_.floats.resize(n * elements);

  Destination to{std::vector<std::int32_t*>(ints + 2, nullptr), {}, false};
  for (std::size_t f = 0; f < ints; ++f) to.index[f] = duplicates_.ints.data() + f * n;
  float* next = duplicates_.floats.data();
  for (const FloatField& field : spec_.float_fields) {
    to.floats.push_back(next);
    next += n * static_cast<std::size_t>(field.elements());
  }
  fill_fields(to);
}

// For every node the first node, in the user's order, that equals it. Edges are led to those as well.
std::vector<std::int32_t> Request::first_equals() {
  const std::size_t n = graph_.num_nodes(), lists = spec_.lists.size(), ints = spec_.int_fields.size();
  auto edges = [&](std::size_t v) { return graph_.edge_child.data() + graph_.edge_start[v]; };
  auto num_edges = [&](std::size_t v) { return static_cast<std::size_t>(graph_.edge_start[v + 1] - graph_.edge_start[v]); };
  auto list_len = [&](std::size_t v, std::size_t l) { return std::max(graph_.list_len[v * lists + l], 0); };
  auto each_float_field = [&](auto visit) {
    const float* values = duplicates_.floats.data();
    for (const FloatField& field : spec_.float_fields) {
      const auto elements = static_cast<std::size_t>(field.elements());
      visit(values, elements);
      values += n * elements;
    }
  };
  auto hash = [&](std::size_t v) {
    Hash h;
    h.add(static_cast<std::uint64_t>(graph_.kind[v]));
    for (std::size_t l = 0; l < lists; ++l) h.add(static_cast<std::uint64_t>(list_len(v, l)));
    for (std::size_t e = 0; e < num_edges(v); ++e) h.add(static_cast<std::uint32_t>(edges(v)[e]));
    for (std::size_t f = 0; f < ints; ++f) h.add(static_cast<std::uint32_t>(duplicates_.ints[f * n + v]));
    each_float_field([&](const float* values, std::size_t elements) { h.add(values + v * elements, elements); });
    return h.value();
  };
  auto equal = [&](std::size_t u, std::size_t v) {
    bool same = graph_.kind[u] == graph_.kind[v] && num_edges(u) == num_edges(v) &&
                std::equal(edges(u), edges(u) + num_edges(u), edges(v));
    for (std::size_t l = 0; l < lists && same; ++l) same = list_len(u, l) == list_len(v, l);
    for (std::size_t f = 0; f < ints && same; ++f) same = duplicates_.ints[f * n + u] == duplicates_.ints[f * n + v];
    each_float_field([&](const float* values, std::size_t elements) {
      same = same && std::memcmp(values + u * elements, values + v * elements, elements * sizeof(float)) == 0;
    });
    return same;
  };

  Numbering& room = numbering_;
  room.by_group.resize(n);
  for (std::size_t v = 0; v < n; ++v) room.by_group[v] = static_cast<std::int32_t>(v);
  std::int32_t highest = -1;
  for (const std::int32_t h : graph_.height) highest = std::max(highest, h);
  counting_sort(graph_.height, static_cast<std::size_t>(highest + 1), room.by_group, room.sorted, room.count);

  std::size_t size = 16;
  while (size < 2 * n) size *= 2;
  std::vector<std::pair<std::uint64_t, std::int32_t>> table(size, {0, -1});
  std::vector<std::int32_t> first(n);
  for (const std::int32_t node : room.sorted) {
    const auto v = static_cast<std::size_t>(node);
    for (std::size_t e = 0; e < num_edges(v); ++e)
      if (std::int32_t& child = edges(v)[e]; child >= 0) child = first[static_cast<std::size_t>(child)];
    const std::uint64_t h = hash(v);
    for (std::size_t i = h & (size - 1);; i = (i + 1) & (size - 1)) {
      auto& [its_hash, u] = table[i];
      if (u < 0) {
        its_hash = h;
        u = node;
      } else if (its_hash != h || !equal(static_cast<std::size_t>(u), v)) {
        continue;
      }
      first[v] = u;
      break;
    }
  }
  return first;
}

// Leave out all nodes but the first of equals. Arrays shrink in place: what is written was read before.
void Request::merge(const std::vector<std::int32_t>& first_equal) {
  const std::size_t n = graph_.num_nodes(), lists = spec_.lists.size();
  Duplicates& d = duplicates_;
  d.unique_of.resize(n);
  d.first.clear();
  for (std::size_t v = 0; v < n; ++v) {
    const auto first = static_cast<std::size_t>(first_equal[v]);  // never after v
    d.unique_of[v] = first == v ? static_cast<std::int32_t>(d.first.size()) : d.unique_of[first];
    if (first == v) d.first.push_back(static_cast<std::int32_t>(v));
  }

  std::int64_t end = 0;
  for (std::size_t u = 0; u < d.first.size(); ++u) {
    const auto v = static_cast<std::size_t>(d.first[u]);
    const std::int64_t from = graph_.edge_start[v], to = graph_.edge_start[v + 1];
    graph_.edge_start[u] = end;
    for (std::int64_t e = from; e < to; ++e, ++end) {
      const std::int32_t child = graph_.edge_child[static_cast<std::size_t>(e)];
      graph_.edge_child[static_cast<std::size_t>(end)] = child < 0 ? -1 : d.unique_of[static_cast<std::size_t>(child)];
    }
    for (std::size_t l = 0; l < lists; ++l) graph_.list_len[u * lists + l] = graph_.list_len[v * lists + l];
    graph_.height[u] = graph_.height[v];
    graph_.kind[u] = graph_.kind[v];
  }
  graph_.edge_start.resize(d.first.size() + 1);
  graph_.edge_start.back() = end;
  graph_.edge_child.resize(static_cast<std::size_t>(end));
  graph_.list_len.resize(d.first.size() * lists);
  graph_.height.resize(d.first.size());
  graph_.kind.resize(d.first.size());
  for (std::int32_t& root : graph_.roots) root = d.unique_of[static_cast<std::size_t>(root)];
}

// Write the fields of the nodes that are left.
void Request::emit_staged(const Destination& to) const {
  const std::size_t n = duplicates_.unique_of.size();
  for (std::size_t u = 0; u < duplicates_.first.size(); ++u) {
    const auto v = static_cast<std::size_t>(duplicates_.first[u]);
    const std::int32_t id = numbering_.id_of[u];
    for (std::size_t f = 0; f < spec_.int_fields.size(); ++f)
      int_array(to, spec_, f)[id] = duplicates_.ints[f * n + v];
    const float* values = duplicates_.floats.data();
    for (std::size_t f = 0; f < spec_.float_fields.size(); ++f) {
      const FloatField& field = spec_.float_fields[f];
      copy_rows(field, values + v * static_cast<std::size_t>(field.elements()),
                to.floats[f] + id * (to.padded ? field.stride : field.elements()), to.padded);
      values += n * static_cast<std::size_t>(field.elements());
    }
  }
}

}  // namespace cortex
