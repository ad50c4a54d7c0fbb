// A line of the cache: what one look at memory fetches, and what aligned blocks start at.
#pragma once

#include <cstddef>

namespace cortex {

inline constexpr std::size_t kLine = 64;

}  // namespace cortex
