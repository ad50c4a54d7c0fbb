// Batching policies: the rank of every node, so that groups of a lower rank run first.
//
// Whatever the policy, a child's rank is lower than its parent's.
#include <algorithm>

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

// All nodes, children before their parents, in `sorted`.
void Request::sort_by_height() {
  Numbering& out = numbering_;
  const std::size_t n = graph_.num_nodes();
  out.by_group.resize(n);
  for (std::size_t v = 0; v < n; ++v) out.by_group[v] = static_cast<std::int32_t>(v);
  std::int32_t highest = -1;
  for (const std::int32_t h : graph_.height) highest = std::max(highest, h);
  counting_sort(graph_.height, static_cast<std::size_t>(highest + 1), out.by_group, out.sorted, out.count);
}

// Deepest first; the depth of a node is its longest distance from a node that is nobody's child.
void Request::rank_by_depth() {
  std::vector<std::int32_t>& depth = numbering_.rank;
  depth.assign(graph_.num_nodes(), 0);
  sort_by_height();

  // Parents are higher than their children, so from the highest down all parents of a node come before it.
  std::int32_t deepest = 0;
  for (std::size_t i = depth.size(); i-- > 0;) {
    const auto v = static_cast<std::size_t>(numbering_.sorted[i]);
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

}  // namespace cortex
