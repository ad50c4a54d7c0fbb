// Choosing variants: which nodes compute their children too. lower/linear_form.py states the rule.
#include <algorithm>

#include "request.hpp"

namespace cortex {

void Request::choose_variants() {
  if (spec_.inlining.empty()) return;
  const std::size_t n = graph_.num_nodes();
  std::vector<std::int32_t> parents(n, 0);
  for (const std::int32_t child : graph_.edge_child)
    if (child >= 0) ++parents[static_cast<std::size_t>(child)];

  // Only nodes of even height inline, and only nodes of odd height are inlined, so kinds can change in place.
  std::vector<std::int32_t> nodes, kinds;
  for (std::size_t v = 0; v < n; ++v) {
    const Inlining& inlining = spec_.inlining[static_cast<std::size_t>(graph_.kind[v])];
    const std::int32_t height = graph_.height[v];
    if (inlining.hops.empty() || height == 0 || height % 2 != 0) continue;
    nodes.clear();
    kinds.clear();
    for (const Path& hop : inlining.hops) {
      const std::int32_t child = follow(hop, static_cast<std::int32_t>(v));
      const auto c = static_cast<std::size_t>(child);
      const bool fits = child >= 0 && parents[c] == 1 && graph_.height[c] + 1 == height &&
                        spec_.within[static_cast<std::size_t>(graph_.kind[c])] >= 0;
      kinds.push_back(fits ? graph_.kind[c] : -1);
      if (fits) nodes.push_back(child);
    }
    const auto found = std::find_if(inlining.variants.begin(), inlining.variants.end(),
                                    [&](const auto& variant) { return variant.first == kinds; });
    if (found == inlining.variants.end()) continue;
    graph_.kind[v] = found->second;
    for (const std::int32_t child : nodes) {
      std::int32_t& kind = graph_.kind[static_cast<std::size_t>(child)];
      kind = spec_.within[static_cast<std::size_t>(kind)];
    }
  }
}

}  // namespace cortex
