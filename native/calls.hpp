// The calls that a request makes: one for each routine, node, caller that computes arguments, and tensors and numbers
// passed on.
#pragma once

#include <cstdint>
#include <vector>

#include "call_spec.hpp"
#include "python.hpp"

namespace cortex {

struct Call {
  PyObject* node;  // what it is made on; owned
  std::int32_t role;
  std::int32_t caller;        // the call that computes its arguments, or -1
  std::int32_t way;           // by which that one reaches it, and the position in a list
  std::int32_t item;
  std::int32_t given;         // the tensors that it is given
  std::int32_t numbers;       // the numbers and texts that it is given, or -1
  std::int32_t request;       // calls of different requests are different ones
  std::int32_t number = -1;   // as a node, once it is reached
  std::int64_t made = -1;     // where the calls that it makes stand, once they are made
};

// Hash to call: open addressing, emptied in constant time.
class CallIndex {
 public:
  void clear();

  // The place of the call that `same` accepts: a call, or -1 to be set if there is none.
  template <class Same>
  std::int32_t& find_or_add(std::uint64_t hash, Same same) {
    if (2 * (count_ + 1) > mask_ + 1) grow();
    Entry& entry = place_of(hash, same);
    if (entry.generation != generation_) {
      entry = {hash, -1, generation_};
      ++count_;
    }
    return entry.call;
  }

  // The call that `same` accepts, or -1.
  template <class Same>
  std::int32_t find(std::uint64_t hash, Same same) {
    if (count_ == 0) return -1;
    const Entry& entry = place_of(hash, same);
    return entry.generation == generation_ ? entry.call : -1;
  }

  std::size_t bytes() const { return entries_.capacity() * sizeof(Entry); }

 private:
  struct Entry {
    std::uint64_t hash = 0;
    std::int32_t call = -1;
    std::uint32_t generation = 0;
  };
  static constexpr std::size_t kSmallest = 128;

  template <class Same>
  Entry& place_of(std::uint64_t hash, Same same) {
    for (std::size_t i = (hash >> 32) & mask_;; i = (i + 1) & mask_) {
      Entry& entry = entries_[i];
      if (entry.generation != generation_ || (entry.hash == hash && same(entry.call))) return entry;
    }
  }
  void grow();

  std::vector<Entry> entries_;
  std::size_t mask_ = kSmallest - 1;
  std::size_t count_ = 0;
  std::uint32_t generation_ = 0;
};

class Calls {
 public:
  Calls(const CallSpec& spec, std::int64_t most) : spec_(spec), most_(most) {}

  // The call that a request starts with. Where somebody asks who made calls, all are made. Runs the user's accessors,
  // as `follow` and `value` do.
  std::int32_t start(PyObject* request);

  // Append the calls to which a relation leads from a call, -1 where there is None. Says how many, or -1 where the
  // relation leads nowhere.
  std::int32_t follow(std::int32_t call, std::int32_t relation, std::vector<std::int32_t>& to);

  // The value of an attribute of the model (a new reference).
  PyObject* value(std::int32_t call, std::size_t attribute);

  Call& operator[](std::int32_t call) { return calls_[static_cast<std::size_t>(call)]; }

  void clear();
  std::size_t bytes() const;

 private:
  using Tensors = std::vector<PyObject*>;  // by number, null where one is not given; `tensors_` keeps them

  struct Made {
    std::size_t first;
    std::int32_t count;  // as `follow` says
  };

  std::int32_t call(std::int32_t role, PyObject* node, std::int32_t caller, std::int32_t way, std::int32_t item,
                    std::int32_t given, std::int32_t numbers);
  std::int32_t last(std::int32_t request, std::int32_t role, PyObject* node);
  Given numbers_of(const Call& call) const;
  std::int32_t numbers(const CallRelation& relation, const Call& caller, PyObject* item, std::int32_t position,
                       Py_ssize_t length);
  std::int32_t inherited(const CallRelation& relation, std::int32_t given);
  std::int32_t read(std::int32_t from, const CallRelation& relation, std::vector<std::int32_t>& to);
  void make_all(std::int32_t head);
  nb::object row(const CallAttribute& attribute, std::int32_t call);

  const CallSpec& spec_;
  std::int64_t most_;
  std::vector<Call> calls_;
  std::int32_t request_ = -1;    // the present one
  std::size_t first_ = 0;        // its first call
  std::size_t first_given_ = 0;  // its first tensors
  CallIndex index_, last_;
  std::vector<Tensors> given_;
  std::vector<PyObject*> numbers_;  // of all calls that are given some, as many places for each; owned
  CallIndex number_index_;          // where the same ones stand
  std::vector<nb::object> tensors_;
  std::vector<Made> made_;                // per call and relation by which its role makes calls
  std::vector<std::int32_t> made_calls_;  // what they lead to
  std::vector<std::int32_t> todo_;
};

}  // namespace cortex
