// Walking the calls that a request makes, where those are its nodes.
#include <algorithm>

#include "errors.hpp"
#include "request.hpp"

namespace cortex {

// Add a call and the edges to those that it depends on; says whether there are any.
//
// Which calls a role can make is known before the kind of a call is; where that has a kind by then, the others of them
// are not made.
bool Request::discover_call(std::int32_t call) {
  const auto node = static_cast<std::int32_t>(objects_.size());
  calls_[call].number = node;
  add_node(calls_[call].node);
  node_calls_.push_back(call);
  const CallSpec& spec = spec_.calls;
  const CallRole& role = spec.roles[static_cast<std::size_t>(calls_[call].role)];
  const std::size_t first = edge_calls_.size();
  edge_calls_.resize(first + spec_.slots.size(), -1);
  if (spec.needed_slots.empty()) {
    expand_slots(call, role, true, nullptr);
    expand_slots(call, role, false, nullptr);
    expand_lists(call, role, nullptr);
  } else {
    expand_slots(call, role, true, nullptr);
    if (spec.asks_lists) expand_lists(call, role, nullptr);
    const std::int32_t kind = kind_of(node);
    graph_.kind.push_back(kind);
    expand_slots(call, role, false, &spec.needed_slots[static_cast<std::size_t>(kind)]);
    if (!spec.asks_lists) expand_lists(call, role, &spec.needed_lists[static_cast<std::size_t>(kind)]);
  }
  graph_.edge_child.resize(edge_calls_.size(), -1);
  const auto edges = edge_calls_.begin() + static_cast<std::ptrdiff_t>(first);
  const bool has_child = std::any_of(edges, edge_calls_.end(), [](std::int32_t c) { return c >= 0; });
  if (!has_child) graph_.height.back() = 0;
  return has_child;
}

// Follow the relations that are slots of the model: those that tell kinds apart, or of the others the `needed` ones.
void Request::expand_slots(std::int32_t call, const CallRole& role, bool asked, const std::vector<std::uint8_t>* needed) {
  const auto start = static_cast<std::size_t>(graph_.edge_start.back());
  for (std::size_t s = 0; s < spec_.slots.size(); ++s) {
    if ((spec_.calls.asked_slots[s] != 0) != asked || (needed && !(*needed)[s])) continue;
    const std::int32_t relation = role.slots[s];
    if (relation == kNoRelation) continue;
    if (relation == kCaller) {
      edge_calls_[start + s] = calls_[call].caller;
      continue;
    }
    reached_.clear();
    try {
      if (calls_.follow(call, relation, reached_) > 0) edge_calls_[start + s] = reached_[0];
    } catch (nb::python_error& error) {
      note_place(error, spec_.slots[s].name(), static_cast<std::int32_t>(objects_.size()) - 1);
      throw;
    }
  }
}

// Follow the relations that are lists of the model, all or the `needed` ones.
void Request::expand_lists(std::int32_t call, const CallRole& role, const std::vector<std::uint8_t>* needed) {
  const auto node = static_cast<std::int32_t>(objects_.size()) - 1;
  for (std::size_t l = 0; l < spec_.lists.size(); ++l) {
    const std::size_t begin = edge_calls_.size();
    const bool follows = role.lists[l] >= 0 && (!needed || (*needed)[l]);
    try {
      const auto& gathers = spec_.calls.gathers;
      const auto what = std::find_if(gathers.begin(), gathers.end(), [&](const Gather& g) { return g.list == l; });
      graph_.list_len.push_back(!follows                ? -1
                                : what != gathers.end() ? gather(call, role, *what, edge_calls_)
                                                        : calls_.follow(call, role.lists[l], edge_calls_));
    } catch (nb::python_error& error) {
      note_place(error, spec_.lists[l].name(), node);
      throw;
    }
    const auto items = edge_calls_.begin() + static_cast<std::ptrdiff_t>(begin);
    if (std::find(items, edge_calls_.end(), -1) != edge_calls_.end())
      unknown_kind(object_of(node), where(node), nb::list());
  }
}

// The call as an object of Python's, for tracing and messages: the request makes it by the way that leads to it.
nb::object Request::call_object(std::int32_t node) const {
  const WayDown way = way_to(node);
  nb::list steps;
  if (walked_first_ >= 0 && way.root + 1 == static_cast<std::int32_t>(graph_.roots.size()))
    steps.append(nb::make_tuple(spec_.slots[static_cast<std::size_t>(walked_first_)].name(), -1));
  for (const auto& [from, edge] : way.edges) {
    const auto [relation, item] = relation_of(from, edge);
    steps.append(nb::make_tuple(relation->name(), item));
  }
  return nb::handle(root_objects_[static_cast<std::size_t>(way.root)]).attr("call")(steps);
}

}  // namespace cortex
