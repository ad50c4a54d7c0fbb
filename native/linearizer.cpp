#include "linearizer.hpp"

#include <algorithm>

namespace cortex {

namespace {

constexpr std::size_t kMaxIdle = 4;
constexpr std::size_t kMaxIdleRequestBytes = std::size_t{64} << 20;
constexpr std::size_t kSmall = std::size_t{1} << 20;

}  // namespace

nb::object new_array(int numpy_type, const std::vector<npy_intp>& shape) {
  return own(PyArray_SimpleNew(static_cast<int>(shape.size()), shape.data(), numpy_type));
}

Linearizer::Linearizer(nb::dict spec)
    : spec_(std::move(spec)), size_names_(size_names(spec_)), index_arrays_(index_arrays(spec_)) {}

Linearizer::Lease::Lease(Linearizer& owner) : owner_(owner) {
  std::vector<Idle>& idle = owner.idle_;
  const auto mine = [](const Idle& i) { return i.user == std::this_thread::get_id(); };
  auto chosen = std::find_if(idle.begin(), idle.end(), mine);
  // Memory that is small is made once more rather than taken from another thread.
  if (chosen == idle.end() && (idle.size() == kMaxIdle || (!idle.empty() && idle.back().request->bytes() > kSmall)))
    --chosen;
  if (chosen == idle.end()) {
    request_ = std::make_unique<Request>(owner.spec_);
  } else {
    request_ = std::move(chosen->request);
    idle.erase(chosen);
  }
}

Linearizer::Lease::~Lease() {
  request_->clear();
  if (owner_.idle_.size() < kMaxIdle && request_->bytes() <= kMaxIdleRequestBytes)
    owner_.idle_.push_back({std::move(request_), std::this_thread::get_id()});
}

nb::dict Linearizer::linearize(nb::handle structures, std::int64_t parts) {
  Lease request(*this);
  request->linearize(structures, parts);
  return as_arrays(request->numbering().sizes, [&](const Destination& to) { request->emit(to); });
}

nb::list Linearizer::visited(nb::handle structures) {
  Lease request(*this);
  request->linearize(structures, 1, false);
  return request->visited();
}

}  // namespace cortex
