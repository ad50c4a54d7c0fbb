// Structures that come as arrays.
#pragma once

#include <cstdint>

#include "python.hpp"

namespace cortex {

// Refuse relations that are no forest: slots are arrays, lists are (pointers, indices, name).
void check_forest(nb::list slots, nb::list lists, std::int64_t num_nodes);

// Nested tuples and lists as (pointers, indices, items): an item that is no sequence is a leaf, and its own value.
nb::tuple flatten_nested(nb::handle data, std::int64_t max_nodes);

}  // namespace cortex
