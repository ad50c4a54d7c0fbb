// Dividing a request into parts that share no node; lower/linear_form.py states the rule.
#include <algorithm>

#include "request.hpp"

namespace cortex {

// Nodes that edges connect stay together. The largest of these sets comes first, each to the part that has fewest
// nodes so far. Sets are known by their first node, which also decides between equals.
void Request::divide(std::int64_t wanted) {
  Numbering& out = numbering_;
  const std::size_t n = graph_.num_nodes();
  out.num_parts = n == 0 ? 0 : 1;
  out.part.clear();
  if (wanted < 2 || n < 2) return;

  std::vector<std::int32_t>& set = out.part;  // while sets are found: a node of the same set that is not after it
  set.resize(n);
  for (std::size_t v = 0; v < n; ++v) set[v] = static_cast<std::int32_t>(v);
  auto first_of = [&](std::int32_t v) {
    while (true) {
      std::int32_t& up = set[static_cast<std::size_t>(v)];
      if (up == v) return v;
      up = set[static_cast<std::size_t>(up)];  // halve the way for those who come later
      v = up;
    }
  };
  for (std::size_t v = 0; v < n; ++v) {
    for (std::int64_t e = graph_.edge_start[v]; e < graph_.edge_start[v + 1]; ++e) {
      const std::int32_t child = graph_.edge_child[static_cast<std::size_t>(e)];
      if (child < 0) continue;
      const std::int32_t a = first_of(static_cast<std::int32_t>(v)), b = first_of(child);
      set[static_cast<std::size_t>(std::max(a, b))] = std::min(a, b);
    }
  }

  std::vector<std::int32_t>& size = out.count;
  std::vector<std::int32_t>& sets = out.sorted;
  size.assign(n, 0);
  sets.clear();
  for (std::size_t v = 0; v < n; ++v) {
    set[v] = set[static_cast<std::size_t>(set[v])];  // what stands before v leads to the first of its set at once
    if (size[static_cast<std::size_t>(set[v])]++ == 0) sets.push_back(set[v]);
  }
  std::stable_sort(sets.begin(), sets.end(), [&](std::int32_t a, std::int32_t b) {
    return size[static_cast<std::size_t>(a)] > size[static_cast<std::size_t>(b)];
  });

  const auto parts = std::min(static_cast<std::size_t>(wanted), sets.size());
  out.num_parts = static_cast<std::int64_t>(parts);
  if (parts == 1) {
    out.part.clear();
    return;
  }
  std::vector<std::int64_t> nodes(parts, 0);
  for (const std::int32_t s : sets) {
    const auto least = std::min_element(nodes.begin(), nodes.end());
    std::int32_t& mine = size[static_cast<std::size_t>(s)];  // from here on: the part of the set
    *least += mine;
    mine = static_cast<std::int32_t>(least - nodes.begin());
  }
  for (std::size_t v = 0; v < n; ++v) out.part[v] = size[static_cast<std::size_t>(out.part[v])];
}

}  // namespace cortex
