// Structures that come as arrays.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "python.hpp"

namespace cortex {

struct Graph;

constexpr std::size_t kAnyLength = std::numeric_limits<std::size_t>::max();

// Refuse pointers that do not rise from 0 to the number of edges.
void check_list(const std::vector<std::int32_t>& ptr, std::size_t edges, const std::string& name);

// Compute the heights of a graph whose edges are complete; refuse children out of range and cycles.
void find_heights(Graph& graph);

// Refuse relations that are no forest: slots are arrays, lists are (pointers, indices, name).
void check_forest(nb::list slots, nb::list lists, std::int64_t num_nodes);

// Nested tuples and lists as (pointers, indices, items): an item that is no sequence is a leaf, and its own value.
nb::tuple flatten_nested(nb::handle data, std::int64_t max_nodes);

}  // namespace cortex
