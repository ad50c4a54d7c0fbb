// Numbering: nodes sorted by the rank of their group and by kind, in linear time, and the groups that result.
#include <algorithm>

#include "counting_sort.hpp"
#include "request.hpp"

namespace cortex {

void Request::number() {
  Numbering& out = numbering_;
  const std::size_t n = graph_.num_nodes();
  const std::vector<std::int32_t>& group_kind_of = group_kinds();
  const std::vector<std::int32_t>& rank = ranks();
  sort_nodes(rank, group_kind_of);
  const bool alone = spec_.batching == Batching::kNone, divided = !out.part.empty();
  auto part_of = [&](std::size_t v) { return divided ? out.part[v] : 0; };

  out.group_start.clear();
  out.group_len.clear();
  out.group_kind.clear();
  out.part_group.clear();
  out.id_of.resize(n);
  out.node_of.resize(n);
  std::int32_t max_group = 0;
  auto start = static_cast<std::int32_t>(n);
  for (std::size_t first = 0, last = 0; first < n; first = last) {
    const auto v = static_cast<std::size_t>(out.sorted[first]);
    const std::int32_t kind = group_kind_of[v];
    if (spec_.parts && (first == 0 || part_of(v) != part_of(static_cast<std::size_t>(out.sorted[first - 1]))))
      out.part_group.push_back(static_cast<std::int32_t>(out.group_start.size()));
    for (last = first + 1; last < n && !alone; ++last) {
      const auto u = static_cast<std::size_t>(out.sorted[last]);
      if (rank[u] != rank[v] || group_kind_of[u] != kind || part_of(u) != part_of(v)) break;
    }
    const auto length = static_cast<std::int32_t>(last - first);
    start -= length;
    for (std::size_t i = first; i < last; ++i) {
      const auto id = static_cast<std::size_t>(start) + (i - first);
      out.id_of[static_cast<std::size_t>(out.sorted[i])] = static_cast<std::int32_t>(id);
      out.node_of[id] = out.sorted[i];
    }
    out.group_start.push_back(start);
    out.group_len.push_back(length);
    out.group_kind.push_back(kind);
    max_group = std::max(max_group, length);
  }
  if (spec_.parts) out.part_group.push_back(static_cast<std::int32_t>(out.group_start.size()));

  out.sizes.assign(kFirstListSize + 2 * spec_.lists.size(), 0);
  if (spec_.parts) out.sizes.push_back(out.num_parts);
  if (!spec_.windows.empty()) find_windows();
  if (spec_.tells_user_nodes())
    out.sizes.push_back(static_cast<std::int64_t>(merges_ ? duplicates_.unique_of.size() : num_user_));
  out.sizes[kNumNodes] = static_cast<std::int64_t>(n);
  out.sizes[kNumGroups] = static_cast<std::int64_t>(out.group_start.size());
  out.sizes[kNumRoots] = static_cast<std::int64_t>(graph_.roots.size());
  out.sizes[kMaxGroup] = max_group;
  count_edges();
}

// The kind of the group of every node: that of the node, except where kinds share groups.
const std::vector<std::int32_t>& Request::group_kinds() {
  if (!spec_.shared) return graph_.kind;
  std::vector<std::int32_t>& kinds = numbering_.group_kind_of;
  kinds.resize(graph_.num_nodes());
  for (std::size_t v = 0; v < kinds.size(); ++v)
    kinds[v] = spec_.group_kind[static_cast<std::size_t>(graph_.kind[v])];
  return kinds;
}

// Order the nodes by part, within a part by rank, within a rank by the kind of their group, within a group as the user
// has them.
void Request::sort_nodes(const std::vector<std::int32_t>& rank, const std::vector<std::int32_t>& group_kind_of) {
  Numbering& out = numbering_;
  const std::size_t n = graph_.num_nodes();
  const auto kinds = static_cast<std::size_t>(spec_.num_kinds);
  out.by_group.resize(n);
  for (std::size_t v = 0; v < n; ++v) out.by_group[v] = static_cast<std::int32_t>(v);
  if (kinds > 1) {
    counting_sort(group_kind_of, kinds, out.by_group, out.sorted, out.count);
    out.by_group.swap(out.sorted);
    if (spec_.shared) {
      out.count.assign(kinds + 1, 0);
      for (const std::int32_t k : graph_.kind) ++out.count[static_cast<std::size_t>(k) + 1];
      for (std::size_t k = 1; k <= kinds; ++k) out.count[k] += out.count[k - 1];
    }
    out.kind_start.assign(out.count.begin(), out.count.begin() + 1 + spec_.num_kinds);
  } else {
    out.kind_start.assign({0, static_cast<std::int32_t>(n)});
    out.kind_start.resize(kinds + 1);
  }
  std::int32_t last = -1;
  for (const std::int32_t r : rank) last = std::max(last, r);
  counting_sort(rank, static_cast<std::size_t>(last + 1), out.by_group, out.sorted, out.count);
  if (!out.part.empty()) {
    out.by_group.swap(out.sorted);
    counting_sort(out.part, static_cast<std::size_t>(out.num_parts), out.by_group, out.sorted, out.count);
  }
}

// The sizes of each list relation: all edges, and the edges of the group that has most.
void Request::count_edges() {
  Numbering& out = numbering_;
  const std::size_t lists = spec_.lists.size();
  for (std::size_t l = 0; l < lists; ++l) {
    std::int64_t total = 0, most = 0;
    for (std::size_t g = 0; g < out.group_start.size(); ++g) {
      std::int64_t edges = 0;
      for (std::int32_t i = 0; i < out.group_len[g]; ++i) {
        const auto v = static_cast<std::size_t>(out.node_of[static_cast<std::size_t>(out.group_start[g] + i)]);
        edges += std::max(graph_.list_len[v * lists + l], 0);
      }
      total += edges;
      most = std::max(most, edges);
    }
    out.sizes[kFirstListSize + 2 * l] = total;
    out.sizes[kFirstListSize + 2 * l + 1] = most;
  }
}

// Divide the groups into windows, and add the sizes of that.
void Request::find_windows() {
  Numbering& out = numbering_;
  std::vector<std::int32_t>& place = out.count;  // per kind, where its next node stands in kind_node
  place.assign(out.kind_start.begin(), out.kind_start.end());
  out.windows.clear();
  std::int64_t windows = 0;
  std::int32_t nodes = 0, most = 0;
  auto begin_window = [&](std::size_t group) {
    out.windows.push_back(static_cast<std::int32_t>(group));
    for (const std::int32_t k : spec_.windows) out.windows.push_back(place[static_cast<std::size_t>(k)]);
    most = std::max(most, nodes);
    nodes = 0;
  };
  for (std::size_t g = 0; g < out.group_start.size(); ++g) {
    const std::int32_t length = out.group_len[g];
    if (g == 0 || nodes + length > spec_.window_nodes) {
      begin_window(g);
      ++windows;
    }
    nodes += length;
    if (!spec_.shared) {
      place[static_cast<std::size_t>(out.group_kind[g])] += length;
      continue;
    }
    for (std::int32_t i = 0; i < length; ++i) {
      const auto v = static_cast<std::size_t>(out.node_of[static_cast<std::size_t>(out.group_start[g] + i)]);
      ++place[static_cast<std::size_t>(graph_.kind[v])];
    }
  }
  begin_window(out.group_start.size());
  out.sizes.push_back(windows);
  out.sizes.push_back(most);
}

std::vector<std::string> size_names(const Spec& spec) {
  std::vector<std::string> names{"num_nodes", "num_groups", "num_roots", "max_group"};
  for (const Accessor& list : spec.lists) {
    names.push_back("num_" + list.name() + "_edges");
    names.push_back("max_" + list.name() + "_edges");
  }
  if (spec.parts) names.push_back("num_parts");
  if (!spec.windows.empty()) names.insert(names.end(), {"num_windows", "max_window"});
  if (spec.tells_user_nodes()) names.push_back("num_user_nodes");
  return names;
}

std::vector<IndexArray> index_arrays(const Spec& spec) {
  std::vector<IndexArray> arrays{
      {"group_start", {kNumGroups, 0}}, {"group_len", {kNumGroups, 0}}, {"group_kind", {kNumGroups, 0}},
      {"kind_start", {-1, spec.num_kinds + 1}}, {"kind_node", {kNumNodes, 0}},
  };
  const auto after_lists = static_cast<int>(kFirstListSize + 2 * spec.lists.size());
  if (spec.shared) arrays.push_back({"node_kind", {kNumNodes, 0}});
  if (spec.parts) arrays.push_back({"part_group", {after_lists, 1}});
  const int num_windows = after_lists + (spec.parts ? 1 : 0);
  if (!spec.windows.empty()) arrays.push_back({"window_group", {num_windows, 1}});
  for (const std::int32_t k : spec.windows) arrays.push_back({"window_kind_" + std::to_string(k), {num_windows, 1}});
  for (const Accessor& slot : spec.slots) arrays.push_back({"child_" + slot.name(), {kNumNodes, 0}});
  for (std::size_t l = 0; l < spec.lists.size(); ++l) {
    const std::string& name = spec.lists[l].name();
    const int edges = static_cast<int>(kFirstListSize + 2 * l);
    arrays.push_back({name + "_ptr", {kNumNodes, 1}});
    arrays.push_back({name + "_child", {edges, 0}});
    arrays.push_back({name + "_parent", {edges, 0}});
  }
  for (const IntField& field : spec.int_fields) arrays.push_back({"field_" + field.name, {kNumNodes, 0}});
  arrays.push_back({"root", {kNumRoots, 0}});
  const int num_user_nodes = num_windows + (spec.windows.empty() ? 0 : 2);
  arrays.push_back({"order", {spec.tells_user_nodes() ? num_user_nodes : static_cast<int>(kNumNodes), 0}});
  return arrays;
}

}  // namespace cortex
