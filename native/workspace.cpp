#include "workspace.hpp"

#include <algorithm>
#include <exception>

#include "blocked_signals.hpp"
#include "errors.hpp"
#include "line.hpp"

namespace cortex {

namespace {

constexpr std::size_t kMaxIdle = 4;
constexpr std::size_t kMaxIdleBytes = std::size_t{256} << 20;

constexpr std::int64_t kMostElements = std::int64_t{1} << 46;  // of a block; thousands of such blocks can be counted

std::int64_t copies_of(const Block& block, const std::vector<std::int64_t>& sizes, std::int64_t threads) {
  if (block.per_thread) return threads;
  return block.copies < 0 ? 1 : sizes[static_cast<std::size_t>(block.copies)];
}

// With its slack, a multiple of a cache line.
template <class Wide>
Wide bytes_of_block(Wide elements) {
  return (elements * 4 + kLine + kLine - 1) / kLine * kLine;
}

std::string text_of(unsigned __int128 value) {
  std::string digits;
  do digits.push_back(static_cast<char>('0' + static_cast<int>(value % 10)));
  while (value /= 10);
  return {digits.rbegin(), digits.rend()};
}

// What all blocks take, whatever it is.
unsigned __int128 wide_total(const std::vector<Block>& blocks, const std::vector<std::int64_t>& sizes,
                             std::int64_t threads) {
  using Wide = unsigned __int128;
  Wide total = 0;
  for (const Block& block : blocks)
    total += bytes_of_block(static_cast<Wide>(block.extent.rows(sizes)) * static_cast<Wide>(block.elements) *
                            static_cast<Wide>(copies_of(block, sizes, threads)));
  return total;
}

[[noreturn]] void out_of_memory(const std::string& bytes, const std::vector<std::int64_t>& sizes) {
  python_error(PyExc_MemoryError, "cannot allocate " + bytes + " bytes for a request of " + std::to_string(sizes[0]) +
                                      " nodes; split it into smaller batches");
}

}  // namespace

std::size_t Workspace::offsets(const std::vector<Block>& blocks, const std::vector<std::int64_t>& sizes,
                               std::int64_t threads, std::vector<std::size_t>& found) {
  found.resize(blocks.size());
  std::size_t total = 0, *next = found.data();
  bool too_many = false;
  for (const Block& block : blocks) {
    *next++ = total;
    std::int64_t elements = 0;
    too_many |= __builtin_mul_overflow(block.extent.rows(sizes), block.elements, &elements);
    if (block.per_thread || block.copies >= 0)
      too_many |= __builtin_mul_overflow(elements, copies_of(block, sizes, threads), &elements);
    too_many |= elements > kMostElements;
    total += bytes_of_block(static_cast<std::size_t>(elements));
  }
  if (too_many) out_of_memory(text_of(wide_total(blocks, sizes, threads)), sizes);
  return total;
}

void Workspace::place(const std::vector<std::size_t>& offsets, std::size_t bytes,
                      const std::vector<std::int64_t>& request_sizes) {
  sizes = request_sizes;
  if (bytes > capacity_) {
    const std::size_t wanted = std::max(bytes, capacity_ + capacity_ / 2);
    capacity_ = 0;
    memory_.reset();
    for (const std::size_t attempt : {wanted, bytes}) {
      memory_.reset(static_cast<char*>(::operator new(attempt, kAlign, std::nothrow)));
      if (memory_) {
        capacity_ = attempt;
        break;
      }
    }
    if (!memory_) out_of_memory(std::to_string(bytes), sizes);
  }
  at_.resize(offsets.size());
  for (std::size_t i = 0; i < offsets.size(); ++i) at_[i] = memory_.get() + offsets[i];
}

Job Workspace::job(Entry entry) {
  given_sizes.back() = 0;
  static_assert(sizeof(std::atomic<std::int64_t>) == sizeof(std::int64_t));
  return {entry, arguments.data(), given_sizes.data(), reinterpret_cast<std::atomic<std::int64_t>*>(&given_sizes.back())};
}

std::unique_ptr<Workspace> WorkspacePool::take(const std::vector<Block>& blocks,
                                               const std::vector<std::int64_t>& sizes, std::int64_t threads) {
  const std::size_t bytes = Workspace::offsets(blocks, sizes, threads, offsets_);
  std::unique_ptr<Workspace> workspace = idle(bytes);
  workspace->place(offsets_, bytes, sizes);
  return workspace;
}

WorkspacePool::WorkspacePool() { idle_.reserve(kMaxIdle); }

std::unique_ptr<Workspace> WorkspacePool::idle(std::size_t bytes) {
  if (idle_.empty()) return std::make_unique<Workspace>();
  const auto large = [&](const Idle& i) { return i.workspace->capacity() >= bytes; };
  const auto mine = [&](const Idle& i) { return i.user == std::this_thread::get_id() && large(i); };
  auto chosen = std::find_if(idle_.begin(), idle_.end(), mine);
  if (chosen == idle_.end()) chosen = std::find_if(idle_.begin(), idle_.end(), large);
  if (chosen == idle_.end()) --chosen;
  std::unique_ptr<Workspace> workspace = std::move(chosen->workspace);
  idle_.erase(chosen);
  return workspace;
}

void WorkspacePool::give(std::unique_ptr<Workspace> workspace) noexcept {
  if (idle_.size() < kMaxIdle && workspace->capacity() <= kMaxIdleBytes)
    idle_.push_back({std::move(workspace), std::this_thread::get_id()});
}

void WorkspacePool::give_at_once(std::unique_ptr<Workspace> workspace) noexcept {
  if (workspace->capacity() <= kMaxIdleBytes) return give(std::move(workspace));
  const BlockedSignals blocked;
  try {
    std::thread([large = std::move(workspace)] {}).detach();
  } catch (const std::exception&) {  // no thread for it: it is freed here
  }
}

}  // namespace cortex
