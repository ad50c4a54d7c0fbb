#include "linearizer.hpp"

namespace cortex {

namespace {

constexpr std::size_t kMaxIdle = 4;
constexpr std::size_t kMaxIdleBytes = std::size_t{64} << 20;

}  // namespace

nb::object new_array(int numpy_type, const std::vector<npy_intp>& shape) {
  return own(PyArray_SimpleNew(static_cast<int>(shape.size()), shape.data(), numpy_type));
}

Linearizer::Linearizer(nb::dict spec)
    : spec_(std::move(spec)), size_names_(size_names(spec_)), index_arrays_(index_arrays(spec_)) {}

Linearizer::Lease::Lease(Linearizer& owner) : owner_(owner) {
  if (owner.idle_.empty()) {
    request_ = std::make_unique<Request>(owner.spec_);
  } else {
    request_ = std::move(owner.idle_.back());
    owner.idle_.pop_back();
  }
}

Linearizer::Lease::~Lease() {
  request_->clear();
  if (owner_.idle_.size() < kMaxIdle && request_->bytes() <= kMaxIdleBytes) owner_.idle_.push_back(std::move(request_));
}

nb::dict Linearizer::linearize(nb::handle structures, std::int64_t parts) {
  Lease request(*this);
  request->linearize(structures, parts);
  return as_arrays(request->numbering().sizes, [&](const Destination& to) { request->emit(to); });
}

}  // namespace cortex
