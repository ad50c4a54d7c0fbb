// Tensors of torch, read without a call of Python: by DLPack's exchange API, where torch has it (2.10 and later).
#pragma once

#include <cstdint>
#include <span>

#include "python.hpp"

namespace cortex {

// A tensor as DLPack describes it (DLTensor); what it points to belongs to the tensor.
struct TensorView {
  void* data;
  std::int32_t device_type, device_id;
  std::int32_t rank;
  std::uint8_t code, bits;
  std::uint16_t lanes;
  std::int64_t* sizes;
  std::int64_t* strides;
  std::uint64_t byte_offset;

  bool is_on_processor() const { return device_type == 1; }
  bool is_float32() const { return code == 2 && bits == 32 && lanes == 1; }
  bool is_int64() const { return code == 0 && bits == 64 && lanes == 1; }
  std::span<const std::int64_t> shape() const { return {sizes, static_cast<std::size_t>(rank)}; }
  bool is_contiguous() const;
  const void* elements() const { return static_cast<const char*>(data) + byte_offset; }
};

// Do the elements in memory have the other sign, as those of `z.conj().imag` do? DLPack does not tell. Such a tensor has
// gaps between its elements, unless it has a single one.
bool is_negated(PyObject* x, const TensorView& view);

// Is `x` a tensor of torch itself, no subclass but Parameter? Then `view` is that of it. It is valid as long as nobody
// changes the tensor.
bool view_tensor(PyObject* x, TensorView& view);

}  // namespace cortex
