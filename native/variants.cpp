// Choosing variants: which nodes compute nodes below them too. lower/linear_form.py states the rule.
#include <algorithm>
#include <numeric>

#include "counting_sort.hpp"
#include "request.hpp"

namespace cortex {

void Request::choose_variants() {
  if (spec_.inlining.empty()) return;
  const std::size_t n = graph_.num_nodes();
  std::vector<std::int32_t> parents(n, 0);
  for (const std::int32_t child : graph_.edge_child)
    if (child >= 0) ++parents[static_cast<std::size_t>(child)];

  // Children first: a node's variant is chosen by those of the children it inlines.
  std::vector<std::int32_t> every(n), rising, count;
  std::iota(every.begin(), every.end(), 0);
  const std::int32_t highest = n == 0 ? 0 : *std::max_element(graph_.height.begin(), graph_.height.end());
  counting_sort(graph_.height, static_cast<std::size_t>(highest) + 1, every, rising, count);

  std::vector<std::int32_t> chosen = graph_.kind;
  std::vector<bool> inlined(n, false);
  std::vector<std::int32_t> nodes, kinds;
  for (const std::int32_t v : rising) {
    const auto at = static_cast<std::size_t>(v);
    const Inlining& inlining = spec_.inlining[static_cast<std::size_t>(graph_.kind[at])];
    if (inlining.hops.empty() || (graph_.height[at] - 1) % spec_.unrolled == 0) continue;
    nodes.clear();
    kinds.clear();
    for (const Path& hop : inlining.hops) {
      const std::int32_t child = follow(hop, v);
      const auto c = static_cast<std::size_t>(child);
      const bool fits = child >= 0 && parents[c] == 1 && graph_.height[c] + 1 == graph_.height[at] &&
                        spec_.within[static_cast<std::size_t>(graph_.kind[c])] >= 0;
      kinds.push_back(fits ? chosen[c] : -1);
      if (fits) nodes.push_back(child);
    }
    const auto found = std::find_if(inlining.variants.begin(), inlining.variants.end(),
                                    [&](const auto& variant) { return variant.first == kinds; });
    if (found == inlining.variants.end()) continue;
    chosen[at] = found->second;
    for (const std::int32_t child : nodes) inlined[static_cast<std::size_t>(child)] = true;
  }
  for (std::size_t v = 0; v < n; ++v)
    graph_.kind[v] = inlined[v] ? spec_.within[static_cast<std::size_t>(graph_.kind[v])] : chosen[v];
}

}  // namespace cortex
