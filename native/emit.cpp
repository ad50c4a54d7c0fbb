// Writing the index arrays of the linear form, in the order of `index_arrays`.
#include <algorithm>
#include <limits>

#include "errors.hpp"
#include "request.hpp"

namespace cortex {

void Request::emit(const Destination& to) {
  const Numbering& from = numbering_;
  const std::size_t n = graph_.num_nodes();
  const std::size_t slots = spec_.slots.size(), lists = spec_.lists.size();
  if (graph_.edge_child.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
    structure_error("the structures have " + std::to_string(graph_.edge_child.size()) +
                    " edges, more than the limit of one request (2147483647)");
  }

  std::copy(from.group_start.begin(), from.group_start.end(), to.index[0]);
  std::copy(from.group_len.begin(), from.group_len.end(), to.index[1]);
  std::copy(from.group_kind.begin(), from.group_kind.end(), to.index[2]);
  std::copy(from.kind_start.begin(), from.kind_start.end(), to.index[3]);

  // Within a kind ids fall as groups run, so the groups in order give each kind's nodes from the last one down.
  std::vector<std::int32_t>& place = numbering_.count;
  place.assign(from.kind_start.begin(), from.kind_start.end());
  auto kind_of_id = [&](std::int32_t id) {
    return graph_.kind[static_cast<std::size_t>(from.node_of[static_cast<std::size_t>(id)])];
  };
  for (std::size_t g = 0; g < from.group_start.size(); ++g) {
    const std::int32_t start = from.group_start[g], length = from.group_len[g];
    if (!spec_.shared) {
      std::int32_t& at = place[static_cast<std::size_t>(from.group_kind[g])];
      for (std::int32_t i = 0; i < length; ++i) to.index[4][at + i] = start + length - 1 - i;
      at += length;
      continue;
    }
    for (std::int32_t i = length; i-- > 0;)
      to.index[4][place[static_cast<std::size_t>(kind_of_id(start + i))]++] = start + i;
  }
  if (spec_.shared)
    for (std::size_t id = 0; id < n; ++id) to.index[5][id] = kind_of_id(static_cast<std::int32_t>(id));

  std::int32_t* const* next = to.index.data() + (spec_.shared ? 6 : 5);
  if (spec_.parts) std::copy(from.part_group.begin(), from.part_group.end(), *next++);
  if (!spec_.windows.empty()) {
    const std::size_t columns = 1 + spec_.windows.size();
    for (std::size_t c = 0; c < columns; ++c, ++next)
      for (std::size_t i = c; i < from.windows.size(); i += columns) (*next)[i / columns] = from.windows[i];
  }
  std::int32_t* const* child = next;
  std::int32_t* const* list_arrays = child + slots;
  const std::int32_t* const edges = graph_.edge_child.data();
  const std::int32_t* const id_of = from.id_of.data();
  for (std::size_t s = 0; s < slots; ++s)
    for (std::size_t id = 0; id < n; ++id) {
      const std::int32_t below = edges[static_cast<std::size_t>(graph_.edge_start[static_cast<std::size_t>(from.node_of[id])]) + s];
      child[s][id] = below < 0 ? -1 : id_of[below];
    }
  std::vector<std::int32_t>& cursor = place;
  cursor.assign(lists, 0);
  for (std::size_t id = 0; id < n && lists > 0; ++id) {
    const auto v = static_cast<std::size_t>(from.node_of[id]);
    const std::int32_t* edge = edges + graph_.edge_start[v] + slots;
    for (std::size_t l = 0; l < lists; ++l) {
      std::int32_t at = cursor[l];
      list_arrays[3 * l][id] = at;
      const std::int32_t end = at + std::max(graph_.list_len[v * lists + l], 0);
      for (; at < end; ++at, ++edge) {
        list_arrays[3 * l + 1][at] = from.id_of[static_cast<std::size_t>(*edge)];
        list_arrays[3 * l + 2][at] = static_cast<std::int32_t>(id);
      }
      cursor[l] = end;
    }
  }
  for (std::size_t l = 0; l < lists; ++l) list_arrays[3 * l][n] = cursor[l];

  std::int32_t* const* last = to.index.data() + to.index.size() - 2;
  for (std::size_t r = 0; r < graph_.roots.size(); ++r)
    last[0][r] = from.id_of[static_cast<std::size_t>(graph_.roots[r])];
  if (merges_) {
    const std::vector<std::int32_t>& unique_of = duplicates_.unique_of;
    for (std::size_t v = 0; v < unique_of.size(); ++v)
      last[1][v] = from.id_of[static_cast<std::size_t>(unique_of[v])];
    emit_staged(to);
    return;
  }
  std::copy_n(from.id_of.begin(), num_user_, last[1]);
  fill_fields(to);
}

}  // namespace cortex
