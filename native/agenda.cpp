// The batching policy "agenda": again and again, all ready nodes of the kind that has least to wait for.
#include <algorithm>

#include "request.hpp"

namespace cortex {

namespace {

// Levels take room for so many kinds per node; with more kinds, all nodes of a kind are of one level.
constexpr std::size_t kMostKinds = 32;

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

}  // namespace

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

// The level of every node, and the last one of every kind; `node_at` lists the nodes, children first.
template <class NodeAt>
void Request::find_levels(const std::vector<std::int32_t>& kind, NodeAt node_at) {
  const std::size_t n = graph_.num_nodes(), kinds = at(spec_.num_kinds);
  const std::size_t vectors = kinds > kMostKinds ? 0 : (kinds + 3) / 4;
  Agenda& a = numbering_.agenda;
  a.kinds.assign(kinds, {});
  a.level.resize(n);
  a.most.resize(n * vectors);
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t v = node_at(i);
    Agenda::Four* const most = a.most.data() + v * vectors;
    std::fill_n(most, vectors, Agenda::Four{});
    for (std::int64_t e = graph_.edge_start[v]; e < graph_.edge_start[v + 1]; ++e) {
      const std::int32_t child = graph_.edge_child[static_cast<std::size_t>(e)];
      if (child < 0) continue;
      const Agenda::Four* const below = a.most.data() + at(child) * vectors;
      for (std::size_t j = 0; j < vectors; ++j)
        for (std::size_t k = 0; k < 4; ++k) most[j][k] = std::max(most[j][k], below[j][k]);
    }
    const std::int32_t level = vectors ? ++most[kind[v] / 4][at(kind[v] % 4)] : 1;
    a.level[v] = level;
    std::int32_t& last = a.kinds[at(kind[v])].last;
    last = std::max(last, level);
  }
}

// The level of a node is the greatest number of nodes of its kind on a way down from it, itself included: in so many
// turns of its kind, or more, all of these can have run. A ready node's level is thus at most one more than the turns
// its kind has had; the nodes of which that is true and that have not run are the kind's next ones. The kind whose turn
// it is has the greatest share of its next nodes ready: if that is all of them, nothing is lost by not waiting.
void Request::rank_by_agenda() {
  const std::size_t n = graph_.num_nodes();
  Agenda& a = numbering_.agenda;
  const std::vector<std::int32_t>& kind = group_kinds();
  if (link_parents()) {
    find_levels(kind, [n](std::size_t i) { return n - 1 - i; });
  } else {
    sort_by_height();
    find_levels(kind, [this](std::size_t i) { return at(numbering_.sorted[i]); });
  }
  std::int32_t room = 0;
  for (Agenda::Kind& k : a.kinds) {
    k.level = room;
    k.last += room;
    room = k.last;
  }
  a.nodes_at.assign(at(room), 0);
  a.next_ready.resize(n);
  auto enter = [&](std::size_t v) {
    Agenda::Kind& k = a.kinds[at(kind[v])];
    a.next_ready[v] = k.first;
    k.first = static_cast<std::int32_t>(v);
    ++k.ready;
  };
  for (std::size_t v = 0; v < n; ++v) {
    ++a.nodes_at[at(a.kinds[at(kind[v])].level + a.level[v] - 1)];
    if (a.waits_for[v] == 0) enter(v);
  }
  for (Agenda::Kind& k : a.kinds)
    if (k.level < k.last) k.next = a.nodes_at[at(k.level)];

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

}  // namespace cortex
