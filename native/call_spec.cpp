#include "call_spec.hpp"

#include <algorithm>

#include "errors.hpp"

namespace cortex {

namespace {

constexpr std::size_t kMostNames = 64;  // of items of lists that are kept

std::string text(nb::handle value) { return nb::cast<std::string>(nb::borrow(value)); }
std::int32_t number(nb::handle value) { return nb::cast<std::int32_t>(nb::borrow(value)); }
bool truth(nb::handle value) { return nb::cast<bool>(nb::borrow(value)); }

nb::object interned(nb::handle text) {
  PyObject* found = Py_NewRef(text.ptr());
  PyUnicode_InternInPlace(&found);
  return nb::steal(found);
}

CallAttribute attribute(nb::handle source) {
  const std::string kind = text(source[0]);
  if (kind == "role") return {CallAttribute::Kind::kRole};
  if (kind == "way") return {CallAttribute::Kind::kWay};
  CallAttribute made{CallAttribute::Kind::kSteps, Steps(source[1])};
  if (kind == "row") {
    made.kind = CallAttribute::Kind::kRow;
    made.tensor = nb::cast<std::size_t>(nb::object(source[2]));
    if (!nb::object(source[3]).is_none()) made.number = source[3];
  } else if (kind == "stored") {
    made.kind = CallAttribute::Kind::kStored;
    for (nb::handle role : list_of(source[2])) made.roles.push_back(number(role));
  } else {
    made.careful = truth(source[2]);
  }
  return made;
}

std::size_t position(const std::vector<std::string>& all, nb::handle name) {
  const auto found = std::find(all.begin(), all.end(), nb::cast<std::string>(nb::borrow(name)));
  if (found == all.end()) python_error(PyExc_ValueError, "a linearizer's spec names a relation that the model does not have");
  return static_cast<std::size_t>(found - all.begin());
}

}  // namespace

nb::object CallWay::at(std::int32_t item) const {
  if (!is_list) return name;
  const auto i = static_cast<std::size_t>(item);
  if (i < names.size()) return names[i];
  const nb::object found = interned(name + nb::str(std::to_string(item).c_str()));
  if (i == names.size() && i < kMostNames) names.push_back(found);
  return found;
}

CallSpec::CallSpec(nb::handle source, const std::vector<std::string>& slots, const std::vector<std::string>& lists,
                   const std::vector<std::string>& attribute_names) {
  for (nb::handle name : list_of(source["tensors"])) tensors.push_back(nb::borrow(name));
  numbers = nb::cast<std::size_t>(nb::object(source["numbers"]));
  for (nb::handle way : list_of(source["ways"])) ways.push_back({nb::object(way[0]), truth(way[1])});
  for (nb::handle r : list_of(source["relations"])) {
    CallRelation made{text(r[0]), number(r[1]), Steps(r[2]), truth(r[3]), truth(r[4]), truth(r[5]), {}, number(r[7])};
    for (nb::handle pair : list_of(r[6]))
      made.inherits.emplace_back(nb::cast<std::size_t>(nb::object(pair[0])), nb::cast<std::size_t>(nb::object(pair[1])));
    for (nb::handle each : list_of(r[8])) made.numbers.emplace_back(nb::cast<std::size_t>(nb::object(each[0])), Steps(each[1]));
    made.numbers_by_item = truth(r[9]);
    follows |= made.looks_up;
    relations.push_back(std::move(made));
  }
  for (nb::handle r : list_of(source["roles"])) {
    CallRole made{interned(nb::object(r[0])), number(r[1]), {}, {}, {}};
    for (nb::handle each : list_of(r[3])) made.made.push_back(number(each));
    std::vector<std::int32_t> used;
    for (nb::handle each : list_of(r[2])) used.push_back(number(each));
    auto find = [&](const std::string& name) {
      const auto found = std::find_if(used.begin(), used.end(), [&](std::int32_t u) {
        return relations.at(static_cast<std::size_t>(u)).name == name;
      });
      return found == used.end() ? kNoRelation : *found;
    };
    for (const std::string& name : slots) made.slots.push_back(name == "call_from" ? kCaller : find(name));
    for (const std::string& name : lists) made.lists.push_back(find(name));
    roles.push_back(std::move(made));
  }
  auto mark = [](const std::vector<std::string>& all, const nb::object& some) {
    std::vector<std::uint8_t> found;
    for (const std::string& name : all) found.push_back(PySequence_Contains(some.ptr(), nb::str(name.c_str()).ptr()) > 0);
    return found;
  };
  for (nb::handle names : list_of(source["needed"])) {
    needed_slots.push_back(mark(slots, nb::borrow(names)));
    needed_lists.push_back(mark(lists, nb::borrow(names)));
  }
  asked_slots = mark(slots, source["asked"]);
  for (const std::uint8_t asked : mark(lists, source["asked"])) asks_lists |= asked != 0;
  for (nb::handle g : list_of(source["gathers"]))
    gathers.push_back({position(lists, g[0]), position(slots, g[1]), nb::cast<std::size_t>(nb::object(g[2]))});
  for (nb::handle kind : list_of(source["collects"])) {
    std::vector<std::vector<CollectEntry>> own;
    for (nb::handle entries : list_of(kind)) {
      own.emplace_back();
      for (nb::handle e : list_of(entries)) {
        const std::string what = text(e[0]);
        using Kind = CollectEntry::Kind;
        if (what == "own") {
          own.back().push_back({Kind::kOwn, 0, 0});
        } else if (what == "slot") {
          own.back().push_back({Kind::kSlot, position(slots, e[1]), 0});
        } else if (what == "each") {
          own.back().push_back({Kind::kList, position(lists, e[1]), 0});
        } else {
          own.back().push_back({Kind::kItem, position(lists, e[1]), number(e[2])});
        }
      }
    }
    collects.push_back(std::move(own));
  }
  for (const std::string& name : attribute_names) {
    const nb::object found = nb::borrow(source["attributes"]).attr("get")(name.c_str());
    if (found.is_none()) python_error(PyExc_ValueError, "a linearizer's spec does not say what '" + name + "' is");
    attributes.push_back(attribute(found));
    follows |= attributes.back().kind == CallAttribute::Kind::kStored;
  }
}

int CallSpec::traverse(visitproc visit, void* arg) const {
  for (const CallRelation& r : relations) {
    if (int found = r.steps.traverse(visit, arg)) return found;
    for (const auto& [_, steps] : r.numbers)
      if (int found = steps.traverse(visit, arg)) return found;
  }
  for (const CallAttribute& a : attributes)
    if (int found = a.steps.traverse(visit, arg)) return found;
  return 0;
}

void CallSpec::drop_references() {
  for (CallRelation& r : relations) {
    r.steps.drop_references();
    for (auto& [_, steps] : r.numbers) steps.drop_references();
  }
  for (CallAttribute& a : attributes) a.steps.drop_references();
}

}  // namespace cortex
