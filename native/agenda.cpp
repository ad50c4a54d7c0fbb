// The batching policy "agenda": again and again, all ready nodes of the kind that has least to wait for.
#include <algorithm>

#include "request.hpp"

namespace cortex {

namespace {

// Levels take room for so many kinds per node; with more kinds, all nodes of a kind are of one level.
constexpr std::size_t kMostKinds = 32;

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

}  // namespace

// The level of a node is the greatest number of nodes of its kind on a way down from it, itself included: in so many
// turns of its kind, or more, all of these can have run. A ready node's level is thus at most one more than the turns
// its kind has had; the nodes of which that is true and that have not run are the kind's next ones. The kind whose turn
// it is has the greatest share of its next nodes ready: if that is all of them, nothing is lost by not waiting.
void Request::rank_by_agenda() {
  const std::size_t n = graph_.num_nodes();
  Agenda& a = numbering_.agenda;
  const std::vector<std::int32_t>& kind = group_kinds();
  const bool children_follow = link_parents();
  find_levels(kind, children_follow);

  a.kinds.assign(at(spec_.num_kinds), {});
  for (std::size_t v = 0; v < n; ++v) {
    std::int32_t& last = a.kinds[at(kind[v])].last;
    last = std::max(last, a.level[v]);
  }
  std::int32_t room = 0;
  for (Agenda::Kind& k : a.kinds) {
    k.level = room;
    k.last += room;
    room = k.last;
  }
  a.nodes_at.assign(at(room), 0);
  for (std::size_t v = 0; v < n; ++v) ++a.nodes_at[at(a.kinds[at(kind[v])].level + a.level[v] - 1)];
  for (Agenda::Kind& k : a.kinds)
    if (k.level < k.last) k.next = a.nodes_at[at(k.level)];

  a.next_ready.resize(n);
  auto enter = [&](std::size_t v) {
    Agenda::Kind& k = a.kinds[at(kind[v])];
    a.next_ready[v] = k.first;
    k.first = static_cast<std::int32_t>(v);
    ++k.ready;
  };
  for (std::size_t v = 0; v < n; ++v)
    if (a.waits_for[v] == 0) enter(v);

  std::vector<std::int32_t>& rank = numbering_.rank;
  rank.resize(n);
  for (std::int32_t turn = 0;; ++turn) {
    Agenda::Kind* best = nullptr;
    for (Agenda::Kind& k : a.kinds) {
      if (k.ready == 0) continue;
      if (best) {
        const std::int64_t mine = std::int64_t{k.ready} * best->next, other = std::int64_t{best->ready} * k.next;
        if (mine < other || (mine == other && k.ready <= best->ready)) continue;
      }
      best = &k;
    }
    if (!best) return;
    best->next -= best->ready;
    if (++best->level < best->last) best->next += a.nodes_at[at(best->level)];
    std::int32_t v = best->first;
    best->first = -1;
    best->ready = 0;
    for (; v >= 0; v = a.next_ready[at(v)]) {
      rank[at(v)] = turn;
      for (std::int32_t e = a.first_above[at(v)]; e >= 0; e = a.next_above[at(e)]) {
        const auto above = at(a.parent[at(e)]);
        if (--a.waits_for[above] == 0) enter(above);
      }
    }
  }
}

// Chain up the edges above every node, and count those below. Do all children stand after their parents?
bool Request::link_parents() {
  const std::size_t n = graph_.num_nodes();
  Agenda& a = numbering_.agenda;
  a.first_above.assign(n, -1);
  a.next_above.resize(graph_.edge_child.size());
  a.parent.resize(graph_.edge_child.size());
  a.waits_for.resize(n);
  bool follow = true;
  for (std::size_t v = 0; v < n; ++v) {
    std::int32_t waits_for = 0;
    for (std::int64_t e = graph_.edge_start[v]; e < graph_.edge_start[v + 1]; ++e) {
      const auto edge = static_cast<std::size_t>(e);
      const std::int32_t child = graph_.edge_child[edge];
      if (child < 0) continue;
      ++waits_for;
      follow &= at(child) > v;
      a.parent[edge] = static_cast<std::int32_t>(v);
      a.next_above[edge] = a.first_above[at(child)];
      a.first_above[at(child)] = static_cast<std::int32_t>(edge);
    }
    a.waits_for[v] = waits_for;
  }
  return follow;
}

void Request::find_levels(const std::vector<std::int32_t>& kind, bool children_follow) {
  const std::size_t n = graph_.num_nodes(), kinds = at(spec_.num_kinds);
  const std::size_t vectors = (kinds + 3) / 4;
  Agenda& a = numbering_.agenda;
  if (kinds > kMostKinds) {
    a.level.assign(n, 1);
    return;
  }
  a.level.resize(n);
  a.most.resize(n * vectors);
  auto find = [&](std::size_t v) {
    Agenda::Four* const most = &a.most[v * vectors];
    std::fill_n(most, vectors, Agenda::Four{});
    for (std::int64_t e = graph_.edge_start[v]; e < graph_.edge_start[v + 1]; ++e) {
      const std::int32_t child = graph_.edge_child[static_cast<std::size_t>(e)];
      if (child < 0) continue;
      const Agenda::Four* const below = &a.most[at(child) * vectors];
      for (std::size_t i = 0; i < vectors; ++i)
        for (std::size_t k = 0; k < 4; ++k) most[i][k] = std::max(most[i][k], below[i][k]);
    }
    a.level[v] = ++most[kind[v] / 4][at(kind[v] % 4)];
  };
  if (children_follow) {
    for (std::size_t v = n; v-- > 0;) find(v);
    return;
  }
  sort_by_height();
  for (const std::int32_t v : numbering_.sorted) find(at(v));
}

}  // namespace cortex
