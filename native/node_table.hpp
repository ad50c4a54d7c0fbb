// Identity to number: an open-addressing hash table over object addresses that is emptied in constant time.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace cortex {

// Objects must stay alive while they are in the table, so that an address means one object.
//
// An entry counts only if it carries the current generation, so `clear` just starts a new one. The part of the
// table in use starts as small as the last request would have had it: a small tree after large ones stays in the cache.
class NodeTable {
 public:
  void clear() {
    next_generation();
    mask_ = std::bit_ceil(std::max(2 * count_, kSmallest)) - 1;
    count_ = 0;
    if (entries_.empty()) entries_.resize(kSmallest);
  }

  // The number of `object`; a new object gets the number `next`.
  [[gnu::always_inline]] std::int32_t find_or_add(const void* object, std::int32_t next) {
    if (2 * (count_ + 1) > mask_ + 1) grow();
    Entry& entry = place_of(object);
    if (entry.generation == generation_) return entry.number;
    entry = {object, next, generation_};
    ++count_;
    return next;
  }

  std::size_t bytes() const { return entries_.capacity() * sizeof(Entry); }

 private:
  struct Entry {
    const void* object = nullptr;
    std::int32_t number = 0;
    std::uint32_t generation = 0;
  };
  static constexpr std::size_t kSmallest = 128;

  // The entry that holds `object`, or the free entry where it belongs.
  Entry& place_of(const void* object) {
    // Addresses are multiples of 16 and often equally spaced; the product spreads them over the high bits.
    const std::uint64_t hash = reinterpret_cast<std::uintptr_t>(object) * 0x9E3779B97F4A7C15u;
    for (std::size_t i = (hash >> 32) & mask_;; i = (i + 1) & mask_) {
      Entry& entry = entries_[i];
      if (entry.generation != generation_ || entry.object == object) return entry;
    }
  }

  [[gnu::noinline]] void grow() {
    std::vector<Entry> present;
    present.reserve(count_);
    for (std::size_t i = 0; i <= mask_; ++i)
      if (entries_[i].generation == generation_) present.push_back(entries_[i]);
    mask_ = 2 * mask_ + 1;
    if (entries_.size() < mask_ + 1) entries_.resize(mask_ + 1);
    next_generation();
    for (const Entry& entry : present) place_of(entry.object) = {entry.object, entry.number, generation_};
  }

  void next_generation() {
    if (++generation_ == 0) {
      for (Entry& entry : entries_) entry.generation = 0;
      generation_ = 1;
    }
  }

  std::vector<Entry> entries_;
  std::size_t mask_ = kSmallest - 1;
  std::size_t count_ = 0;
  std::uint32_t generation_ = 0;
};

}  // namespace cortex
