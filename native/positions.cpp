// Positions: a node for each item of a list, where steps over the items are nodes of the model; see `Positions` in
// ra/ir.py. They are added behind the user's nodes once the kinds of those are known.
#include <algorithm>

#include "errors.hpp"
#include "request.hpp"

namespace cortex {

namespace {

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

}  // namespace

// Give all nodes of a forest room for the relations that lead from and to positions.
void Request::make_room() {
  const std::size_t n = graph_.num_nodes(), slots = spec_.slots.size(), lists = spec_.lists.size();
  std::vector<std::int64_t> start;
  std::vector<std::int32_t> child, length;
  for (std::size_t v = 0; v < n; ++v) {
    start.push_back(static_cast<std::int64_t>(child.size()));
    const auto first = graph_.edge_child.begin() + graph_.edge_start[v], end = graph_.edge_child.begin() + graph_.edge_start[v + 1];
    const auto first_list = first + static_cast<std::ptrdiff_t>(spec_.own_slots);
    child.insert(child.end(), first, first_list);
    child.resize(child.size() + slots - spec_.own_slots, -1);
    child.insert(child.end(), first_list, end);
    const auto own = graph_.list_len.begin() + static_cast<std::ptrdiff_t>(v * spec_.own_lists);
    length.insert(length.end(), own, own + static_cast<std::ptrdiff_t>(spec_.own_lists));
    length.resize(length.size() + lists - spec_.own_lists, -1);
  }
  start.push_back(static_cast<std::int64_t>(child.size()));
  graph_.edge_start.swap(start);
  graph_.edge_child.swap(child);
  graph_.list_len.swap(length);
}

// Add what stands for the items that a routine has positions for; gives their number. Where they are numbers, runs the
// user's accessors.
std::int32_t Request::add_items_of(std::int32_t number, std::int32_t owner) {
  const PositionSpec& routine = spec_.positions[at(number)];
  std::int32_t count = 0;
  auto add = [&](PyObject* value) {
    if (num_user_ + added_.size() >= static_cast<std::size_t>(spec_.max_nodes)) too_many_nodes();
    look_for_signals(added_.size());
    added_.push_back({owner, number, count++, value});
  };
  if (routine.list >= 0) {
    const std::int32_t length = graph_.list_len[at(owner) * spec_.lists.size() + at(routine.list)];
    for (std::int32_t i = 0; i < length; ++i) add(nullptr);
    return count;
  }
  const nb::object found = nb::steal(value(owner, routine.attribute));
  if (!found.is_valid() || found.is_none()) return 0;
  const nb::object items = own(PySequence_Fast(found.ptr(), "a list of numbers"));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.ptr()); ++i)
    add(Py_NewRef(PySequence_Fast_GET_ITEM(items.ptr(), i)));
  return count;
}

void Request::find_height(std::size_t node) {
  std::int32_t height = -1;
  for (std::int64_t e = graph_.edge_start[node]; e < graph_.edge_start[node + 1]; ++e)
    if (const std::int32_t child = graph_.edge_child[static_cast<std::size_t>(e)]; child >= 0)
      height = std::max(height, graph_.height[at(child)]);
  graph_.height[node] = height + 1;
}

void Request::add_positions() {
  const std::size_t slots = spec_.slots.size(), lists = spec_.lists.size(), routines = spec_.positions.size();
  sort_by_height();  // children first, while heights are those of the user's nodes
  const std::vector<std::int32_t> order(numbering_.sorted);
  struct Owner {
    std::int32_t node, before;
    std::vector<std::pair<std::int32_t, std::int32_t>> items;  // per routine: the first position, and how many
  };
  std::vector<Owner> owners;
  std::vector<std::int32_t> owner_of(num_user_, -1);
  for (std::size_t v = 0; v < num_user_; ++v) {
    const auto node = static_cast<std::int32_t>(v), kind = graph_.kind[v];
    for (std::size_t r = 0; r < routines; ++r) {
      if (!spec_.positions[r].owners[at(kind)]) continue;
      if (owner_of[v] < 0) {
        owner_of[v] = static_cast<std::int32_t>(owners.size());
        owners.push_back({node, -1, std::vector<std::pair<std::int32_t, std::int32_t>>(routines, {-1, 0})});
      }
      Owner& owner = owners.back();
      if (spec_.positions[r].before != kUnknown && owner.before < 0) {
        owner.before = static_cast<std::int32_t>(num_user_ + added_.size());
        added_.push_back({node, -1, 0, nullptr});
      }
      const auto first = static_cast<std::int32_t>(num_user_ + added_.size());
      owner.items[r] = {first, add_items_of(static_cast<std::int32_t>(r), node)};
    }
  }

  std::vector<std::int64_t> start;
  std::vector<std::int32_t> child;
  std::vector<std::int32_t>& length = graph_.list_len;
  auto copy_edges = [&](std::size_t v) {
    const auto from = graph_.edge_child.begin() + graph_.edge_start[v];
    child.insert(child.end(), from, graph_.edge_child.begin() + graph_.edge_start[v + 1]);
  };
  start.reserve(num_user_ + added_.size() + 1);
  for (std::size_t v = 0; v < num_user_; ++v) {
    start.push_back(static_cast<std::int64_t>(child.size()));
    copy_edges(v);
    if (owner_of[v] < 0) continue;
    const Owner& owner = owners[at(owner_of[v])];
    const auto first_slot = static_cast<std::size_t>(start.back());
    for (std::size_t r = 0; r < routines; ++r) {
      const PositionSpec& routine = spec_.positions[r];
      const auto [first, count] = owner.items[r];
      if (count == 0) continue;
      if (routine.first >= 0) child[first_slot + at(routine.first)] = first;
      if (routine.last >= 0) child[first_slot + at(routine.last)] = first + count - 1;
      if (routine.all < 0) continue;
      for (std::int32_t i = 0; i < count; ++i) child.push_back(first + i);
      length[v * lists + at(routine.all)] = count;
    }
  }
  length.resize((num_user_ + added_.size()) * lists, -1);
  for (std::size_t a = 0; a < added_.size(); ++a) {
    const Added& added = added_[a];
    const Owner& owner = owners[at(owner_of[at(added.owner)])];
    const auto own_first = static_cast<std::size_t>(graph_.edge_start[at(added.owner)]);
    start.push_back(static_cast<std::int64_t>(child.size()));
    if (added.routine < 0) {
      copy_edges(at(added.owner));
      std::copy_n(length.begin() + static_cast<std::ptrdiff_t>(at(added.owner) * lists), spec_.own_lists,
                  length.begin() + static_cast<std::ptrdiff_t>((num_user_ + a) * lists));
      continue;
    }
    const PositionSpec& routine = spec_.positions[at(added.routine)];
    const auto [first, count] = owner.items[at(added.routine)];
    const std::size_t first_slot = child.size();
    child.resize(first_slot + slots, -1);
    const std::int32_t prev = routine.forward ? added.item - 1 : added.item + 1;
    if (routine.prev >= 0 && prev >= 0 && prev < count) child[first_slot + at(routine.prev)] = first + prev;
    if (routine.owner >= 0) child[first_slot + at(routine.owner)] = owner.before;
    for (const auto& [slot, source] : routine.at) {
      if (source >= 0) {
        child[first_slot + at(slot)] = owner.items[at(source)].first + added.item;
        continue;
      }
      std::size_t edge = own_first + slots + at(added.item);
      for (int l = 0; l < routine.list; ++l) edge += at(std::max(length[at(added.owner) * lists + at(l)], 0));
      child[first_slot + at(slot)] = graph_.edge_child[edge];
    }
  }
  start.push_back(static_cast<std::int64_t>(child.size()));
  graph_.edge_start.swap(start);
  graph_.edge_child.swap(child);

  graph_.height.resize(num_user_ + added_.size(), 0);
  graph_.kind.resize(num_user_ + added_.size(), 0);
  for (const std::int32_t node : order) {
    if (const std::int32_t number = owner_of[at(node)]; number >= 0) {
      const Owner& owner = owners[at(number)];
      if (owner.before >= 0) find_height(at(owner.before));
      for (std::size_t r = 0; r < routines; ++r) {
        const auto [first, count] = owner.items[r];
        if (first < 0) continue;  // a routine of owners of other kinds
        const bool forward = spec_.positions[r].forward;
        for (std::int32_t i = 0; i < count; ++i) find_height(at(forward ? first + i : first + count - 1 - i));
        for (std::int32_t i = 0; i < count; ++i)
          graph_.kind[at(first + i)] = decide_from(spec_.positions[r].tree, first + i);
        if (spec_.positions[r].before != kUnknown)
          graph_.kind[at(owner.before)] = decide_from(spec_.positions[r].before, owner.before);
      }
    }
    find_height(at(node));
  }
}

}  // namespace cortex
