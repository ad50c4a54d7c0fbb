// Walking the calls that a request makes, where those are its nodes.
#include <algorithm>

#include "errors.hpp"
#include "request.hpp"

namespace cortex {

// Add a call and the edges to those that it depends on; says whether there are any.
bool Request::discover_call(std::int32_t call) {
  calls_[call].number = static_cast<std::int32_t>(objects_.size());
  add_node(calls_[call].node);
  node_calls_.push_back(call);
  const CallRole& role = spec_.calls.roles[static_cast<std::size_t>(calls_[call].role)];
  const std::size_t first = edge_calls_.size();
  const Accessor* reading = nullptr;
  try {
    for (std::size_t s = 0; s < spec_.slots.size(); ++s) {
      reading = &spec_.slots[s];
      const std::int32_t relation = role.slots[s];
      if (relation == kCaller) edge_calls_.push_back(calls_[call].caller);
      if (relation == kNoRelation || (relation >= 0 && calls_.follow(call, relation, edge_calls_) < 0))
        edge_calls_.push_back(-1);
    }
    for (std::size_t l = 0; l < spec_.lists.size(); ++l) {
      reading = &spec_.lists[l];
      const std::size_t begin = edge_calls_.size();
      graph_.list_len.push_back(role.lists[l] < 0 ? -1 : calls_.follow(call, role.lists[l], edge_calls_));
      const auto items = edge_calls_.begin() + static_cast<std::ptrdiff_t>(begin);
      if (std::find(items, edge_calls_.end(), -1) != edge_calls_.end()) {
        const auto node = static_cast<std::int32_t>(objects_.size()) - 1;
        graph_.edge_child.resize(edge_calls_.size(), -1);
        unknown_kind(object_of(node), where(node), nb::list());
      }
    }
  } catch (nb::python_error& error) {
    note_place(error, reading->name(), static_cast<std::int32_t>(objects_.size()) - 1);
    throw;
  }
  graph_.edge_child.resize(edge_calls_.size(), -1);
  const auto edges = edge_calls_.begin() + static_cast<std::ptrdiff_t>(first);
  const bool has_child = std::any_of(edges, edge_calls_.end(), [](std::int32_t c) { return c >= 0; });
  if (!has_child) graph_.height.back() = 0;
  return has_child;
}

// The call as an object of Python's, for tracing and messages: the request makes it by the way that leads to it.
nb::object Request::call_object(std::int32_t node) const {
  const WayDown way = way_to(node);
  nb::list steps;
  for (const auto& [from, edge] : way.edges) {
    const auto [relation, item] = relation_of(from, edge);
    steps.append(nb::make_tuple(relation->name(), item));
  }
  return nb::handle(root_objects_[static_cast<std::size_t>(way.root)]).attr("call")(steps);
}

}  // namespace cortex
