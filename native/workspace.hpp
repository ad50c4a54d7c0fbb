// Memory for one call of a compiled program, used again by later calls.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include "request.hpp"
#include "team.hpp"

namespace cortex {

// An array in a workspace: rows of 4-byte elements. One that is `per_thread` has as many copies as threads, others as
// many as the size `copies` says, if that is one.
struct Block {
  Extent extent;
  std::int64_t elements;
  bool per_thread = false;
  int copies = -1;
  bool operator==(const Block&) const = default;
};

// All arrays of one call in one piece of memory, each on a cache line of its own.
//
// Code may read a vector's width past the last element of an array, so each is followed by some slack.
class Workspace {
 public:
  // Where each of `blocks` goes for a request of these sizes, and how much memory they take in all; a total that no
  // machine has is a MemoryError.
  static std::size_t offsets(const std::vector<Block>& blocks, const std::vector<std::int64_t>& sizes,
                             std::int64_t threads, std::vector<std::size_t>& found);

  // Have arrays at these offsets in so many bytes, growing the memory if need be. Contents are undefined.
  void place(const std::vector<std::size_t>& offsets, std::size_t bytes, const std::vector<std::int64_t>& sizes);

  std::size_t capacity() const { return capacity_; }
  std::int32_t* ints(std::size_t block) const { return static_cast<std::int32_t*>(at_[block]); }
  float* floats(std::size_t block) const { return static_cast<float*>(at_[block]); }
  void* at(std::size_t block) const { return at_[block]; }

  Destination to;                         // views of the arrays that the linearizer fills
  std::vector<void*> arguments;           // of the compiled function
  std::vector<std::int64_t> sizes;        // of the request, in the linearizer's order
  std::vector<std::int64_t> given_sizes;  // of the request, those that the compiled function takes, and a word more

  // What the compiled function is given. The word behind its sizes is 0 now; Job says what it is for.
  Job job(Entry entry);

 private:
  static constexpr std::align_val_t kAlign{64};
  struct Free {
    void operator()(char* p) const { ::operator delete(p, kAlign); }
  };
  std::unique_ptr<char, Free> memory_;
  std::size_t capacity_ = 0;
  std::vector<void*> at_;
};

// A few idle workspaces; a thread is given the one that it used last, whose lines are in the cache of its processor, if
// there is such a one. The GIL is held wherever a pool is touched and never released there: that is its lock,
// and a fork, which needs the GIL too, always sees a pool in order.
class WorkspacePool {
 public:
  WorkspacePool();

  // A workspace with a place for each of `blocks`, for a request of these sizes.
  std::unique_ptr<Workspace> take(const std::vector<Block>& blocks, const std::vector<std::int64_t>& sizes,
                                  std::int64_t threads);
  void give(std::unique_ptr<Workspace> workspace) noexcept;
  // The same without waiting until memory is freed: for gigabytes that takes longer than a signal may wait.
  void give_at_once(std::unique_ptr<Workspace> workspace) noexcept;

 private:
  struct Idle {
    std::unique_ptr<Workspace> workspace;
    std::thread::id user;
  };
  std::unique_ptr<Workspace> idle(std::size_t bytes);

  std::vector<Idle> idle_;
  std::vector<std::size_t> offsets_;  // of the last workspace taken
};

}  // namespace cortex
