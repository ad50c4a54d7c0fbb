#include "calls.hpp"

#include <algorithm>
#include <bit>

#include "errors.hpp"
#include "signals.hpp"

namespace cortex {

namespace {

std::uint64_t mixed(std::uint64_t hash, std::uint64_t with) { return (hash ^ with) * 0x9E3779B97F4A7C15u; }

std::uint64_t pair(std::int32_t a, std::int32_t b) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(a)) << 32 | static_cast<std::uint32_t>(b);
}

constexpr std::size_t kItemNumbers = 3;  // the item of a list, its position, and the length

// Are two numbers or texts the same to all code? Of those of other classes than Python's own, only one that is itself.
bool is_same(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (!a || !b || Py_TYPE(a) != Py_TYPE(b)) return false;
  if (PyFloat_CheckExact(a)) return std::bit_cast<std::uint64_t>(PyFloat_AS_DOUBLE(a)) == std::bit_cast<std::uint64_t>(PyFloat_AS_DOUBLE(b));
  if (PyLong_CheckExact(a)) return PyObject_RichCompareBool(a, b, Py_EQ) == 1;
  return PyUnicode_CheckExact(a) && PyUnicode_Compare(a, b) == 0;
}

std::uint64_t hash_of(PyObject* x) {
  if (PyFloat_CheckExact(x)) return std::bit_cast<std::uint64_t>(PyFloat_AS_DOUBLE(x));
  if (PyLong_CheckExact(x) || PyUnicode_CheckExact(x)) return static_cast<std::uint64_t>(PyObject_Hash(x));
  return reinterpret_cast<std::uintptr_t>(x);
}

template <class T>
std::size_t bytes_of(const std::vector<T>& v) {
  return v.capacity() * sizeof(T);
}

}  // namespace

void CallIndex::clear() {
  if (++generation_ == 0) {
    for (Entry& entry : entries_) entry.generation = 0;
    generation_ = 1;
  }
  mask_ = kSmallest - 1;
  count_ = 0;
  if (entries_.empty()) entries_.resize(kSmallest);
}

void CallIndex::grow() {
  std::vector<Entry> present;
  for (std::size_t i = 0; i <= mask_; ++i)
    if (entries_[i].generation == generation_) present.push_back(entries_[i]);
  const std::size_t mask = 2 * mask_ + 1;
  clear();
  mask_ = mask;
  if (entries_.size() < mask_ + 1) entries_.resize(mask_ + 1);
  for (const Entry& entry : present) {
    place_of(entry.hash, [](std::int32_t) { return false; }) = {entry.hash, entry.call, generation_};
    ++count_;
  }
}

std::int32_t Calls::start(PyObject* request) {
  if (request_ < 0) {
    index_.clear();
    last_.clear();
    number_index_.clear();
  }
  ++request_;
  first_ = calls_.size();
  first_given_ = given_.size();
  const nb::object tensors = nb::handle(request).attr("tensors");
  Tensors given;
  for (const nb::object& name : spec_.tensors) {
    PyObject* const found = PyDict_GetItemWithError(tensors.ptr(), name.ptr());
    if (!found && PyErr_Occurred()) throw nb::python_error();
    given.push_back(found);
    if (found) tensors_.push_back(nb::borrow(found));
  }
  given_.push_back(std::move(given));
  const std::int32_t head = call(0, request, -1, -1, 0, static_cast<std::int32_t>(given_.size()) - 1, -1);
  if (spec_.follows) make_all(head);
  return head;
}

std::int32_t Calls::call(std::int32_t role, PyObject* node, std::int32_t caller, std::int32_t way, std::int32_t item,
                         std::int32_t given, std::int32_t numbers) {
  std::uint64_t hash = mixed(mixed(reinterpret_cast<std::uintptr_t>(node), pair(role, given)), pair(request_, numbers));
  if (caller >= 0) hash = mixed(mixed(hash, pair(caller, way)), static_cast<std::uint32_t>(item));
  std::int32_t& found = index_.find_or_add(hash, [&](std::int32_t c) {
    const Call& known = calls_[static_cast<std::size_t>(c)];
    return known.node == node && known.role == role && known.caller == caller && known.way == way &&
           known.item == item && known.given == given && known.numbers == numbers && known.request == request_;
  });
  if (found >= 0) return found;
  if (calls_.size() - first_ >= static_cast<std::size_t>(most_)) {
    structure_error("the module makes more than " + std::to_string(most_) +
                    " calls for one request; is there a cycle below the node?");
  }
  calls_.push_back({node, role, caller, way, item, given, numbers, request_});
  Py_INCREF(node);
  found = static_cast<std::int32_t>(calls_.size()) - 1;
  look_for_signals(calls_.size());
  return static_cast<std::int32_t>(calls_.size()) - 1;
}

// The last call of a role on a node, or -1.
std::int32_t Calls::last(std::int32_t request, std::int32_t role, PyObject* node) {
  return last_.find(mixed(reinterpret_cast<std::uintptr_t>(node), pair(role, request)), [&](std::int32_t c) {
    const Call& known = calls_[static_cast<std::size_t>(c)];
    return known.node == node && known.role == role && known.request == request;
  });
}

// What is given to calls by a relation whose caller is given `given`.
std::int32_t Calls::inherited(const CallRelation& relation, std::int32_t given) {
  Tensors own(spec_.tensors.size(), nullptr);
  if (!relation.inherits.empty()) {
    const Tensors& theirs = given_[static_cast<std::size_t>(given)];
    for (const auto& [to, from] : relation.inherits) own[to] = theirs[from];
  }
  const auto found = std::find(given_.begin() + static_cast<std::ptrdiff_t>(first_given_), given_.end(), own);
  if (found != given_.end()) return static_cast<std::int32_t>(found - given_.begin());
  given_.push_back(std::move(own));
  return static_cast<std::int32_t>(given_.size()) - 1;
}

// The numbers and texts that a call is given. They move when others are given some.
Given Calls::numbers_of(const Call& call) const {
  if (call.numbers < 0) return {};
  return Given(numbers_).subspan(static_cast<std::size_t>(call.numbers), spec_.numbers);
}

// Where the numbers and texts stand that a relation gives to the call on what it leads to; -1 where there are none. Runs
// Python's operators on the user's objects.
std::int32_t Calls::numbers(const CallRelation& relation, const Call& caller, PyObject* item, std::int32_t position,
                            Py_ssize_t length) {
  if (relation.numbers.empty()) return -1;
  std::vector<PyObject*> known(spec_.numbers + kItemNumbers, nullptr);
  std::ranges::copy(numbers_of(caller), known.begin());
  nb::object at, count;
  if (relation.is_list && relation.numbers_by_item) {
    at = own(PyLong_FromLong(position));
    count = own(PyLong_FromSsize_t(length));
    known[spec_.numbers] = item;
    known[spec_.numbers + 1] = at.ptr();
    known[spec_.numbers + 2] = count.ptr();
  }
  std::vector<nb::object> made(spec_.numbers);
  std::uint64_t hash = 0;
  for (const auto& [place, steps] : relation.numbers) {
    made[place] = nb::steal(steps.follow(caller.node, known));
    hash = mixed(hash ^ place, hash_of(made[place].ptr()));
  }
  std::int32_t& found = number_index_.find_or_add(hash, [&](std::int32_t first) {
    for (std::size_t i = 0; i < made.size(); ++i)
      if (!is_same(made[i].ptr(), numbers_[static_cast<std::size_t>(first) + i])) return false;
    return true;
  });
  if (found >= 0) return found;
  found = static_cast<std::int32_t>(numbers_.size());
  for (nb::object& each : made) numbers_.push_back(each.release().ptr());
  return static_cast<std::int32_t>(numbers_.size() - made.size());
}

std::int32_t Calls::follow(std::int32_t from, std::int32_t number, std::vector<std::int32_t>& to) {
  const CallRelation& relation = spec_.relations[static_cast<std::size_t>(number)];
  const Call& call = (*this)[from];
  if (call.made < 0 || relation.looks_up) return read(from, relation, to);
  const std::vector<std::int32_t>& made = spec_.roles[static_cast<std::size_t>(call.role)].made;
  const auto at = std::find(made.begin(), made.end(), number) - made.begin();
  if (at == static_cast<std::ptrdiff_t>(made.size())) return read(from, relation, to);
  const Made& known = made_[static_cast<std::size_t>(call.made + at)];
  for (std::int32_t i = 0; i < known.count; ++i) to.push_back(made_calls_[known.first + static_cast<std::size_t>(i)]);
  return known.count;
}

std::int32_t Calls::read(std::int32_t from, const CallRelation& relation, std::vector<std::int32_t>& to) {
  const Call caller = (*this)[from];  // a copy: more calls are made
  const nb::object found = nb::steal(relation.steps.find(caller.node, numbers_of(caller)));
  if (!found.is_valid() || found.is_none()) return -1;

  const std::int32_t given = relation.looks_up ? 0 : inherited(relation, caller.given);
  std::int32_t passing = -1;
  if (relation.is_top_down && !relation.looks_up) {
    const std::int32_t role = spec_.roles[static_cast<std::size_t>(caller.role)].passing;
    passing = role == caller.role ? from : call(role, caller.node, caller.caller, caller.way, caller.item, caller.given, caller.numbers);
  }
  const Py_ssize_t length = relation.numbers_by_item ? PyObject_Size(found.ptr()) : 0;
  if (length < 0) PyErr_Clear();
  const std::int32_t common = relation.numbers_by_item ? -1 : numbers(relation, caller, nullptr, 0, 0);
  auto reached = [&](PyObject* node, std::int32_t item) {
    if (relation.looks_up) return last(caller.request, relation.role, node);
    const std::int32_t its = relation.numbers_by_item ? numbers(relation, caller, node, item, length) : common;
    return passing < 0 ? call(relation.role, node, -1, -1, 0, given, its)
                       : call(relation.role, node, passing, relation.way, item, given, its);
  };
  if (!relation.is_list) {
    to.push_back(reached(found.ptr(), 0));
    return 1;
  }
  std::int32_t count = 0;
  auto add = [&](PyObject* node) {
    to.push_back(node == Py_None ? -1 : reached(node, count));
    ++count;
  };
  if (PyList_CheckExact(found.ptr()) || PyTuple_CheckExact(found.ptr())) {
    // Python code that computes numbers could change a list, so its size is read again, and items are kept.
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(found.ptr()); ++i)
      add(nb::borrow(PySequence_Fast_GET_ITEM(found.ptr(), i)).ptr());
  } else {
    const nb::object iterator = own(PyObject_GetIter(found.ptr()));
    while (PyObject* node = PyIter_Next(iterator.ptr())) {
      const nb::object holder = nb::steal(node);
      add(node);
    }
    if (PyErr_Occurred()) throw nb::python_error();
  }
  return count;
}

// Make all calls in the order in which the module makes them, to know the last one on each node.
void Calls::make_all(std::int32_t head) {
  todo_.assign(1, head);
  while (!todo_.empty()) {
    const std::int32_t c = todo_.back();
    todo_.pop_back();
    if ((*this)[c].made >= 0) continue;
    const std::int32_t role = (*this)[c].role;
    (*this)[c].made = static_cast<std::int64_t>(made_.size());
    PyObject* node = (*this)[c].node;
    last_.find_or_add(mixed(reinterpret_cast<std::uintptr_t>(node), pair(role, request_)), [&](std::int32_t other) {
      const Call& known = (*this)[other];
      return known.node == node && known.role == role && known.request == request_;
    }) = c;
    for (const std::int32_t number : spec_.roles[static_cast<std::size_t>(role)].made) {
      const std::size_t first = made_calls_.size();
      const std::int32_t count = read(c, spec_.relations[static_cast<std::size_t>(number)], made_calls_);
      made_.push_back({first, count});
    }
    for (std::size_t i = made_.size(); i-- > static_cast<std::size_t>((*this)[c].made);)
      for (std::int32_t k = made_[i].count; k-- > 0;)
        if (const std::int32_t next = made_calls_[made_[i].first + static_cast<std::size_t>(k)]; next >= 0)
          todo_.push_back(next);
  }
}

nb::object Calls::row(const CallAttribute& attribute, std::int32_t call) {
  PyObject* tensor = given_[static_cast<std::size_t>((*this)[call].given)][attribute.tensor];
  if (!tensor) {
    PyErr_SetObject(PyExc_KeyError, spec_.tensors[attribute.tensor].ptr());
    throw nb::python_error();
  }
  const nb::object at =
      attribute.number.is_valid() ? attribute.number : nb::steal(attribute.steps.follow((*this)[call].node, numbers_of((*this)[call])));
  if (PyArray_CheckExact(tensor) && PyLong_CheckExact(at.ptr())) {
    auto* array = reinterpret_cast<PyArrayObject*>(tensor);
    const Py_ssize_t i = PyLong_AsSsize_t(at.ptr());
    if (i == -1 && PyErr_Occurred()) PyErr_Clear();
    if (PyArray_NDIM(array) == 1 && i >= 0 && i < PyArray_DIM(array, 0))
      return own(PyArray_GETITEM(array, static_cast<const char*>(PyArray_GETPTR1(array, i))));
  }
  return own(PyObject_GetItem(tensor, at.ptr()));
}

PyObject* Calls::value(std::int32_t number, std::size_t attribute_number) {
  const CallAttribute& attribute = spec_.attributes[attribute_number];
  const Call call = (*this)[number];
  switch (attribute.kind) {
    case CallAttribute::Kind::kRole:
      return nb::object(spec_.roles[static_cast<std::size_t>(call.role)].tag).release().ptr();
    case CallAttribute::Kind::kWay:
      if (call.way < 0) return own(PyUnicode_FromString("")).release().ptr();
      return spec_.ways[static_cast<std::size_t>(call.way)].at(call.item).release().ptr();
    case CallAttribute::Kind::kRow:
      return row(attribute, number).release().ptr();
    case CallAttribute::Kind::kStored: {
      const nb::object node = nb::steal(attribute.steps.follow(call.node, numbers_of(call)));
      for (std::size_t i = attribute.roles.size(); i-- > 0;)
        if (last(call.request, attribute.roles[i], node.ptr()) >= 0)
          return nb::object(spec_.roles[static_cast<std::size_t>(attribute.roles[i])].tag).release().ptr();
      return own(PyUnicode_FromString("")).release().ptr();
    }
    case CallAttribute::Kind::kSteps:
      break;
  }
  if (!attribute.careful) return attribute.steps.follow(call.node, numbers_of(call));
  PyObject* found = attribute.steps.find(call.node, numbers_of(call));
  return found ? found : Py_NewRef(Py_None);
}

void Calls::clear() {
  if (request_ < 0) return;
  std::vector<Call> calls = std::move(calls_);  // what is freed may run code of the user's
  const std::vector<nb::object> tensors = std::move(tensors_);
  const std::vector<PyObject*> numbers = std::move(numbers_);
  calls_.clear();
  numbers_.clear();
  tensors_.clear();
  given_.clear();
  made_.clear();
  made_calls_.clear();
  request_ = -1;
  for (const Call& call : calls) Py_DECREF(call.node);
  for (PyObject* number : numbers) Py_XDECREF(number);
  calls.clear();
  if (calls_.empty()) calls_ = std::move(calls);  // keep the memory
}

std::size_t Calls::bytes() const {
  return bytes_of(calls_) + index_.bytes() + last_.bytes() + bytes_of(given_) + bytes_of(made_) +
         bytes_of(made_calls_) + bytes_of(todo_) + bytes_of(numbers_) + number_index_.bytes();
}

}  // namespace cortex
