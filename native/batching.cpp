// Batching policies: the rank of every node, so that groups of a lower rank run first.
//
// Whatever the policy, a child's rank is lower than its parent's.
#include <algorithm>
#include <queue>
#include <utility>

#include "counting_sort.hpp"
#include "request.hpp"

namespace cortex {

const std::vector<std::int32_t>& Request::ranks() {
  switch (spec_.batching) {
    case Batching::kHeight:
    case Batching::kNone:
      break;
    case Batching::kDepth:
      rank_by_depth();
      return numbering_.rank;
    case Batching::kAgenda:
      rank_by_agenda();
      return numbering_.rank;
  }
  return graph_.height;
}

// Deepest first; the depth of a node is its longest distance from a node that is nobody's child.
void Request::rank_by_depth() {
  Numbering& out = numbering_;
  const std::size_t n = graph_.num_nodes();
  std::vector<std::int32_t>& depth = out.rank;
  depth.assign(n, 0);
  out.by_group.resize(n);
  for (std::size_t v = 0; v < n; ++v) out.by_group[v] = static_cast<std::int32_t>(v);
  std::int32_t highest = -1;
  for (const std::int32_t h : graph_.height) highest = std::max(highest, h);
  counting_sort(graph_.height, static_cast<std::size_t>(highest + 1), out.by_group, out.sorted, out.count);

  // Parents are higher than their children, so from the highest down all parents of a node come before it.
  std::int32_t deepest = 0;
  for (std::size_t i = n; i-- > 0;) {
    const auto v = static_cast<std::size_t>(out.sorted[i]);
    deepest = std::max(deepest, depth[v]);
    for (std::int64_t e = graph_.edge_start[v]; e < graph_.edge_start[v + 1]; ++e) {
      const std::int32_t child = graph_.edge_child[static_cast<std::size_t>(e)];
      if (child < 0) continue;
      std::int32_t& below = depth[static_cast<std::size_t>(child)];
      below = std::max(below, depth[v] + 1);
    }
  }
  for (std::int32_t& d : depth) d = deepest - d;
}

// Again and again, run all ready nodes of the kind that has most of them; of equals, the first of the model.
void Request::rank_by_agenda() {
  const std::size_t n = graph_.num_nodes();
  const std::vector<std::int32_t>& kind = group_kinds();
  std::vector<std::int32_t> parent_start(n + 1, 0), waits_for(n, 0);
  auto each_edge = [&](auto visit) {
    for (std::size_t v = 0; v < n; ++v)
      for (std::int64_t e = graph_.edge_start[v]; e < graph_.edge_start[v + 1]; ++e)
        if (const std::int32_t child = graph_.edge_child[static_cast<std::size_t>(e)]; child >= 0)
          visit(v, static_cast<std::size_t>(child));
  };
  each_edge([&](std::size_t v, std::size_t child) {
    ++parent_start[child + 1];
    ++waits_for[v];
  });
  for (std::size_t v = 0; v < n; ++v) parent_start[v + 1] += parent_start[v];
  std::vector<std::int32_t> parent(static_cast<std::size_t>(parent_start[n])), at(parent_start);
  each_edge([&](std::size_t v, std::size_t child) {
    parent[static_cast<std::size_t>(at[child]++)] = static_cast<std::int32_t>(v);
  });

  std::vector<std::vector<std::int32_t>> ready(static_cast<std::size_t>(spec_.num_kinds));
  using Entry = std::pair<std::size_t, std::int32_t>;  // ready nodes, and minus the kind
  std::priority_queue<Entry> agenda;  // an entry whose number is out of date does not count
  auto enter = [&](std::int32_t v) {
    const std::int32_t k = kind[static_cast<std::size_t>(v)];
    std::vector<std::int32_t>& nodes = ready[static_cast<std::size_t>(k)];
    nodes.push_back(v);
    agenda.emplace(nodes.size(), -k);
  };
  for (std::size_t v = 0; v < n; ++v)
    if (waits_for[v] == 0) enter(static_cast<std::int32_t>(v));

  std::vector<std::int32_t>& rank = numbering_.rank;
  rank.resize(n);
  std::vector<std::int32_t> group;
  for (std::int32_t turn = 0; !agenda.empty();) {
    const auto [size, minus_kind] = agenda.top();
    agenda.pop();
    std::vector<std::int32_t>& nodes = ready[static_cast<std::size_t>(-minus_kind)];
    if (nodes.size() != size) continue;
    group.clear();
    group.swap(nodes);
    for (const std::int32_t v : group) {
      const auto u = static_cast<std::size_t>(v);
      rank[u] = turn;
      for (std::int32_t p = parent_start[u]; p < parent_start[u + 1]; ++p) {
        const std::int32_t above = parent[static_cast<std::size_t>(p)];
        if (--waits_for[static_cast<std::size_t>(above)] == 0) enter(above);
      }
    }
    ++turn;
  }
}

}  // namespace cortex
