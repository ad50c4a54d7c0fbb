// Lists that consist of what the calls below have added to a collection, in the order in which they did.
//
// What a call adds depends on its kind, so that those below are walked before the call that has such a list.
#include <algorithm>
#include <utility>

#include "errors.hpp"
#include "request.hpp"

namespace cortex {

// Walk the calls whose collections the head of a request has lists of.
void Request::walk_collected(std::int32_t head) {
  const CallRole& role = spec_.calls.roles[static_cast<std::size_t>(calls_[head].role)];
  for (const Gather& what : spec_.calls.gathers) {
    const std::int32_t relation = role.slots[what.slot];
    if (relation < 0 || role.lists[what.list] < 0) continue;
    reached_.clear();
    if (calls_.follow(head, relation, reached_) <= 0) continue;
    const std::int32_t call = reached_[0];
    if (call < 0 || calls_[call].number >= 0) continue;
    const auto node = static_cast<std::int32_t>(objects_.size());
    graph_.roots.push_back(node);  // for errors, until the head is there
    walked_first_ = static_cast<int>(what.slot);
    if (discover_call(call)) {
      frames_.push_back({node, 0, graph_.edge_start.back(), static_cast<std::int64_t>(graph_.edge_child.size())});
      descend();
    }
    walked_first_ = -1;
    graph_.roots.pop_back();
  }
}

// Append the calls that a list consists of, and say how many.
std::int32_t Request::gather(std::int32_t head, const CallRole& role, const Gather& what,
                             std::vector<std::int32_t>& to) {
  std::vector<std::int32_t> first;
  if (calls_.follow(head, role.slots[what.slot], first) <= 0 || first[0] < 0) return -1;
  const std::size_t begin = to.size();
  const std::int64_t most = 4 * spec_.max_nodes;
  std::vector<std::pair<std::int32_t, bool>> todo{{first[0], false}};  // calls; whether it is the call itself
  for (std::int64_t visits = 0; !todo.empty(); ++visits) {
    const auto [call, itself] = todo.back();
    todo.pop_back();
    look_for_signals(static_cast<std::size_t>(visits));
    if (itself) {
      to.push_back(call);
      continue;
    }
    if (visits > most || static_cast<std::int64_t>(to.size() - begin) > spec_.max_nodes)
      structure_error("the calls of one request add more than " + std::to_string(spec_.max_nodes) +
                      " entries to a collection; split it into smaller requests");
    const std::int32_t node = calls_[call].number;
    if (node < 0) continue;
    const auto at = static_cast<std::size_t>(node);
    const std::int32_t kind = at < graph_.kind.size() ? graph_.kind[at] : kind_of(node);
    const auto& entries = spec_.calls.collects[static_cast<std::size_t>(kind)][what.collection];
    auto edge = [&](std::size_t e) {
      const std::int32_t next = edge_calls_[static_cast<std::size_t>(graph_.edge_start[at]) + e];
      if (next >= 0) todo.emplace_back(next, false);
    };
    for (std::size_t i = entries.size(); i-- > 0;) {
      const CollectEntry& entry = entries[i];
      if (entry.kind == CollectEntry::Kind::kOwn) {
        todo.emplace_back(call, true);
      } else if (entry.kind == CollectEntry::Kind::kSlot) {
        edge(entry.relation);
      } else {
        std::size_t start = spec_.slots.size();
        const std::size_t lists = spec_.lists.size();
        for (std::size_t l = 0; l < entry.relation; ++l)
          start += static_cast<std::size_t>(std::max(graph_.list_len[at * lists + l], 0));
        const auto length = static_cast<std::size_t>(std::max(graph_.list_len[at * lists + entry.relation], 0));
        if (entry.kind == CollectEntry::Kind::kItem) {
          if (static_cast<std::size_t>(entry.item) < length) edge(start + static_cast<std::size_t>(entry.item));
        } else {
          for (std::size_t k = length; k-- > 0;) edge(start + k);
        }
      }
    }
  }
  return static_cast<std::int32_t>(to.size() - begin);
}

}  // namespace cortex
