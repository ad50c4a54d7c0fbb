// Structures that come as arrays.
#pragma once

#include <cstdint>
#include <string>

#include "python.hpp"

namespace cortex {

// Refuse relations that are no forest: slots are arrays, lists are (pointers, indices, name). `names`, None or a
// sequence, is what errors call the nodes.
void check_forest(nb::list slots, nb::list lists, std::int64_t num_nodes, nb::handle names);

// What an error calls a node of a forest: its number, where `names` is None.
std::string name_of_node(nb::handle names, std::int32_t node);

// Nested tuples and lists as (pointers, indices, items): an item that is no sequence is a leaf, and its own value.
nb::tuple flatten_nested(nb::handle data, std::int64_t max_nodes);

}  // namespace cortex
