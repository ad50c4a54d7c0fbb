// Saying where in the user's structures a node is. Only errors come here, so nothing is kept for it beforehand.
#include <algorithm>
#include <string_view>

#include "arrays.hpp"
#include "errors.hpp"
#include "request.hpp"

namespace cortex {

namespace {

constexpr std::size_t kFirstSteps = 6, kLastSteps = 4;

}  // namespace

// The relation that an edge of `node` belongs to, and the position in a list, or -1.
std::pair<const Accessor*, std::int32_t> Request::relation_of(std::int32_t node, std::int64_t edge) const {
  auto offset = static_cast<std::size_t>(edge - graph_.edge_start[static_cast<std::size_t>(node)]);
  if (offset < spec_.slots.size()) return {&spec_.slots[offset], -1};
  offset -= spec_.slots.size();
  for (std::size_t l = 0; l < spec_.lists.size(); ++l) {
    const std::int32_t length = graph_.list_len[static_cast<std::size_t>(node) * spec_.lists.size() + l];
    const auto here = static_cast<std::size_t>(std::max(length, 0));
    if (offset < here) return {&spec_.lists[l], static_cast<std::int32_t>(offset)};
    offset -= here;
  }
  return {nullptr, -1};
}

// The step from `node` along `edge`: ".left" or ".children[2]".
std::string Request::step(std::int32_t node, std::int64_t edge) const {
  const auto [relation, item] = relation_of(node, edge);
  if (!relation) return ".?";
  constexpr std::string_view kArgument = "cortex_argument_";  // of the module, an attribute of its request
  const std::string& name = relation->name();
  std::string text = "." + (name.starts_with(kArgument) ? name.substr(kArgument.size()) : name);
  if (item >= 0) text.append("[").append(std::to_string(item)).append("]");
  return text;
}

// Refuse nodes that several edges lead to, where a model says that there are none.
void Request::check_unshared() const {
  const std::size_t n = graph_.num_nodes();
  std::vector<std::int64_t> edge_to(n, -1);
  std::vector<std::int32_t> parent_of(n, -1);
  for (std::size_t u = 0; u < n; ++u) {
    const auto from = static_cast<std::int32_t>(u);
    for (std::int64_t e = graph_.edge_start[u]; e < graph_.edge_start[u + 1]; ++e) {
      const std::int32_t child = graph_.edge_child[static_cast<std::size_t>(e)];
      if (child < 0) continue;
      const auto [relation, item] = relation_of(from, e);
      const auto place = item < 0 ? static_cast<std::size_t>(relation - spec_.slots.data())
                                  : spec_.slots.size() + static_cast<std::size_t>(relation - spec_.lists.data());
      if (!spec_.unshared[place]) continue;
      const auto c = static_cast<std::size_t>(child);
      if (edge_to[c] >= 0) {
        structure_error("a node may be below one other node only, as the model changes in place what is stored there, "
                        "but " + where(parent_of[c]) + step(parent_of[c], edge_to[c]) + " and " + where(from) +
                        step(from, e) + " are one node; copy it, or change copies: x = x.clone()");
      }
      edge_to[c] = e;
      parent_of[c] = from;
    }
  }
}

// The edges that lead from a root to a node.
Request::WayDown Request::way_to(std::int32_t node) const {
  // In preorder a node comes after the one it was first reached from, so one pass finds every node's way up. Calls
  // that were walked before the head of their request are the exception.
  const std::size_t n = graph_.height.size();
  std::vector<std::int64_t> edge_to(n, -1);
  std::vector<std::int32_t> parent_of(n, -1);
  for (std::size_t u = 0; u < n; ++u) {
    const bool last = u + 1 == graph_.edge_start.size();
    const std::int64_t end = last ? static_cast<std::int64_t>(graph_.edge_child.size()) : graph_.edge_start[u + 1];
    for (std::int64_t e = graph_.edge_start[u]; e < end; ++e) {
      const std::int32_t child = graph_.edge_child[static_cast<std::size_t>(e)];
      if (child > static_cast<std::int32_t>(u) && parent_of[static_cast<std::size_t>(child)] < 0) {
        parent_of[static_cast<std::size_t>(child)] = static_cast<std::int32_t>(u);
        edge_to[static_cast<std::size_t>(child)] = e;
      }
    }
  }
  std::vector<std::int32_t> root_of(n, -1);
  for (std::size_t r = graph_.roots.size(); r-- > 0;)
    root_of[static_cast<std::size_t>(graph_.roots[r])] = static_cast<std::int32_t>(r);

  for (const std::int32_t r : graph_.roots) {
    const auto u = static_cast<std::size_t>(r);
    const std::int64_t end = u + 1 == graph_.edge_start.size() ? static_cast<std::int64_t>(graph_.edge_child.size()) : graph_.edge_start[u + 1];
    for (std::int64_t e = graph_.edge_start[u]; e < end; ++e) {
      const std::int32_t child = graph_.edge_child[static_cast<std::size_t>(e)];
      if (child < 0 || child >= r || parent_of[static_cast<std::size_t>(child)] >= 0 || root_of[static_cast<std::size_t>(child)] >= 0) continue;
      parent_of[static_cast<std::size_t>(child)] = r;
      edge_to[static_cast<std::size_t>(child)] = e;
    }
  }

  WayDown way{-1, {}};
  std::int32_t at = node;
  for (; root_of[static_cast<std::size_t>(at)] < 0; at = parent_of[static_cast<std::size_t>(at)]) {
    if (parent_of[static_cast<std::size_t>(at)] < 0) return {0, {}};  // nothing leads to it; better than no answer
    way.edges.emplace_back(parent_of[static_cast<std::size_t>(at)], edge_to[static_cast<std::size_t>(at)]);
  }
  way.root = root_of[static_cast<std::size_t>(at)];
  std::reverse(way.edges.begin(), way.edges.end());
  return way;
}

// The path from a root ("root.children[1].left"), or the index in a forest ("node 17").
std::string Request::where(std::int32_t node) const {
  if (static_cast<std::size_t>(node) >= num_user_) {
    const Added& added = added_[static_cast<std::size_t>(node) - num_user_];
    if (added.routine < 0) return where(added.owner);
    const PositionSpec& routine = spec_.positions[static_cast<std::size_t>(added.routine)];
    const std::string list = routine.list < 0 ? spec_.attributes[static_cast<std::size_t>(routine.attribute)].accessor.name()
                                              : spec_.lists[static_cast<std::size_t>(routine.list)].name();
    return where(added.owner) + "." + list + "[" + std::to_string(added.item) + "]";
  }
  if (forest_.is_valid()) return "node " + name_of_node(forest_.attr("names"), node);
  const WayDown way = way_to(node);
  std::string text = "root";
  if (root_objects_.size() > 1) text = "structures[" + std::to_string(way.root) + "]";
  const std::size_t length = way.edges.size();
  for (std::size_t i = 0; i < length; ++i) {
    if (length > kFirstSteps + kLastSteps && i == kFirstSteps) {
      text += ".(" + std::to_string(length - kFirstSteps - kLastSteps) + " steps)";
      i = length - kLastSteps;
    }
    text += step(way.edges[i].first, way.edges[i].second);
  }
  return text;
}

// A node for the start of a message: "node at root.left (Node)", or "node 17" of a forest.
std::string Request::describe(std::int32_t node) const {
  if (forest_.is_valid()) return where(node);
  if (static_cast<std::size_t>(node) >= num_user_) return "item at " + where(node);
  return "node at " + where(node) + " (" + type_name(objects_[static_cast<std::size_t>(node)]) + ")";
}

// The user said which attribute it is, and the node has none of that name.
void Request::absent(const Accessor& read, const Attribute& named, std::int32_t node) const {
  const nb::object text = nb::module_::import_("cortex.frontend.unseen")
                              .attr("no_such_attribute")(object_of(node), read.name(), named.name());
  structure_error("at " + where(node) + ", " + nb::cast<std::string>(text));
}

// Say where with what Python code raised: in front of what an adapter says, and in a note to the user's own errors.
// Errors raised here, which have no traceback, say where already.
void Request::note_place(nb::python_error& error, const std::string& name, std::int32_t node) const {
  if (is_own_error(error)) {
    PyObject* cause = PyException_GetCause(error.value().ptr());
    if (cause) {
      structure_error_from(nb::steal(cause), "at " + where(node) + ", `" + name + "` of the node leads nowhere: " +
                                                 nb::cast<std::string>(nb::str(error.value())));
    }
    if (!error.traceback().is_valid()) return;
    structure_error("at " + where(node) + ", " + nb::cast<std::string>(nb::str(error.value())));
  }
  const std::string note = "while reading `" + name + "` of " + where(node) +
                           (forest_.is_valid() ? "" : " (a " + type_name(objects_[static_cast<std::size_t>(node)]) + ")");
  error.value().attr("add_note")(note);
}

nb::object Request::object_of(std::int32_t node) const {
  if (static_cast<std::size_t>(node) >= num_user_) node = added_[static_cast<std::size_t>(node) - num_user_].owner;
  if (forest_.is_valid()) return forest_.attr("node")(node);
  return spec_.of_calls() ? call_object(node) : nb::borrow(objects_[static_cast<std::size_t>(node)]);
}

nb::list Request::visited() {
  nb::list found;
  if (!spec_.of_calls()) {
    for (PyObject* node : objects_) found.append(nb::handle(node));
    return found;
  }
  for (const std::int32_t call : node_calls_) {
    const Call& made = calls_[call];
    found.append(nb::make_tuple(spec_.calls.roles[static_cast<std::size_t>(made.role)].tag, nb::handle(made.node)));
  }
  return found;
}

}  // namespace cortex
