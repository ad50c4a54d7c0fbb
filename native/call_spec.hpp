// What calls the calls of a model's routines make, where those are the nodes of requests; see frontend/torch/calls.py.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "accessor.hpp"
#include "python.hpp"
#include "steps.hpp"

namespace cortex {

// Calls of `role` on what `steps` lead to from the node of the caller.
struct CallRelation {
  std::string name;
  std::int32_t role;
  Steps steps;
  bool is_list;
  bool is_top_down;  // the caller computes arguments of them
  bool looks_up;     // they are made by others
  std::vector<std::pair<std::size_t, std::size_t>> inherits;  // tensors of the request: the call's own, the caller's
  std::int32_t way;
  // Numbers and texts that calls are given: where they stand among those of a call, and what leads to them from the
  // caller's node. Steps find the item of a list, its position and the length behind what the caller is given.
  std::vector<std::pair<std::size_t, Steps>> numbers = {};
  bool numbers_by_item = false;  // they are not the same for all items of a list
};

// A name for the way by which calls are reached: what callers pass may depend on it.
struct CallWay {
  nb::object name;  // of a list: what stands in front of the position
  bool is_list;
  mutable std::vector<nb::object> names = {};  // of a list, by position

  nb::object at(std::int32_t item) const;
};

constexpr std::int32_t kNoRelation = -1, kCaller = -2;

struct CallRole {
  nb::object tag;
  std::int32_t passing;  // the role of the node that computes the arguments of calls that such a call makes
  std::vector<std::int32_t> slots, lists;  // the relation of each slot and list of the model, kNoRelation or kCaller
  std::vector<std::int32_t> made;          // the relations by which such a call makes others, in order
};

// What an attribute of the model is, for a call.
struct CallAttribute {
  enum class Kind { kSteps, kRole, kWay, kRow, kStored } kind;
  Steps steps = {};
  bool careful = false;
  std::size_t tensor = 0;                // kRow: of this tensor
  nb::object number = {};                // kRow: this one, rather than the one that the steps lead to
  std::vector<std::int32_t> roles = {};  // kStored: the last of them in which the node is called
};

// An entry of what a call adds to a collection: itself, or all that a call which it makes adds.
struct CollectEntry {
  enum class Kind { kOwn, kSlot, kList, kItem } kind;
  std::size_t relation;  // the slot or list of the model
  std::int32_t item;     // kItem: the position in the list
};

// A list of the model that consists of what the call in a slot adds to a collection.
struct Gather {
  std::size_t list, slot, collection;
};

struct CallSpec {
  CallSpec() = default;

  // `slots`, `lists` and `attributes` are the names of those of the model.
  CallSpec(nb::handle source, const std::vector<std::string>& slots, const std::vector<std::string>& lists,
           const std::vector<std::string>& attributes);

  std::vector<CallRole> roles;  // the first is the head's; empty where nodes are the user's own
  std::vector<CallRelation> relations;
  std::vector<CallWay> ways;
  std::vector<CallAttribute> attributes;
  std::vector<nb::object> tensors;  // names of the tensors of a request
  std::size_t numbers = 0;          // how many names there are of numbers and texts that calls are given
  // Where calls have a kind by what is known before those that they depend on: per kind, which slots and lists it needs
  // (empty otherwise); and which slots tell kinds apart, and whether lists do.
  std::vector<std::vector<std::uint8_t>> needed_slots, needed_lists;
  std::vector<std::uint8_t> asked_slots;
  bool asks_lists = false;
  std::vector<Gather> gathers;
  std::vector<std::vector<std::vector<CollectEntry>>> collects;  // per kind and collection
  bool follows = false;             // somebody asks who made calls, so that all have to be made in order first

  int traverse(visitproc visit, void* arg) const;
  void drop_references();
};

}  // namespace cortex
