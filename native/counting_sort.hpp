// Sorting nodes by a small number, in linear time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cortex {

// Stable counting sort of the nodes in `from` by `key`, whose values are below `keys`. Leaves the start of each
// key's run in `count`, and the end of all in count[keys].
inline void counting_sort(const std::vector<std::int32_t>& key, std::size_t keys,
                          const std::vector<std::int32_t>& from, std::vector<std::int32_t>& to,
                          std::vector<std::int32_t>& count) {
  count.assign(keys + 2, 0);
  for (const std::int32_t k : key) ++count[static_cast<std::size_t>(k) + 2];
  for (std::size_t k = 2; k < keys + 2; ++k) count[k] += count[k - 1];
  to.resize(from.size());
  for (const std::int32_t v : from) {
    std::int32_t& place = count[static_cast<std::size_t>(key[static_cast<std::size_t>(v)]) + 1];
    to[static_cast<std::size_t>(place++)] = v;
  }
}

}  // namespace cortex
