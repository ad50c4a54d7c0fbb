// The object Python sees: a spec, and requests that are used again.
#pragma once

#include <memory>
#include <thread>
#include <vector>

#include "request.hpp"

namespace cortex {

// Fresh NumPy arrays.
nb::object new_array(int numpy_type, const std::vector<npy_intp>& shape);
template <class T>
T* data_of(const nb::object& array) {
  return static_cast<T*>(PyArray_DATA(reinterpret_cast<PyArrayObject*>(array.ptr())));
}

class Linearizer {
 public:
  explicit Linearizer(nb::dict spec);
  Linearizer(const Linearizer&) = delete;
  Linearizer& operator=(const Linearizer&) = delete;

  // A request taken for one call. Accessors may call back into the same linearizer, so every call has its own. Threads
  // take the one they used last, whose lines are in the cache of their processor.
  class Lease {
   public:
    explicit Lease(Linearizer& owner);
    ~Lease();
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    Request& operator*() { return *request_; }
    Request* operator->() { return request_.get(); }

   private:
    Linearizer& owner_;
    std::unique_ptr<Request> request_;
  };

  // The linear form of a list of structures or a Forest, in so many parts if the spec asks for parts:
  // {"sizes": ..., "arrays": ..., "fields": ...}.
  nb::dict linearize(nb::handle structures, std::int64_t parts);

  // The nodes of a list of structures, in the order in which results list them; see `Request::visited`.
  nb::list visited(nb::handle structures);

  // Build that dictionary; `fill` writes into arrays of the given sizes.
  template <class Fill>
  nb::dict as_arrays(const std::vector<std::int64_t>& sizes, Fill fill) const;

  const Spec& spec() const { return spec_; }
  const std::vector<std::string>& sizes() const { return size_names_; }
  const std::vector<IndexArray>& arrays() const { return index_arrays_; }

  int traverse(visitproc visit, void* arg) const { return spec_.traverse(visit, arg); }
  void drop_references() { spec_.drop_references(); }

 private:
  Spec spec_;
  std::vector<std::string> size_names_;
  std::vector<IndexArray> index_arrays_;
  struct Idle {
    std::unique_ptr<Request> request;
    std::thread::id user;
  };
  std::vector<Idle> idle_;  // guarded by the GIL, which is held wherever it is touched
};

template <class Fill>
nb::dict Linearizer::as_arrays(const std::vector<std::int64_t>& sizes, Fill fill) const {
  nb::dict named_sizes, arrays, fields, result;
  Destination to{{}, {}, false};
  for (std::size_t i = 0; i < size_names_.size(); ++i) named_sizes[size_names_[i].c_str()] = sizes[i];
  for (const IndexArray& a : index_arrays_) {
    const nb::object array = new_array(NPY_INT32, {static_cast<npy_intp>(a.extent.rows(sizes))});
    to.index.push_back(data_of<std::int32_t>(array));
    arrays[a.name.c_str()] = array;
  }
  for (const FloatField& field : spec_.float_fields) {
    std::vector<npy_intp> shape{static_cast<npy_intp>(sizes[0])};
    shape.insert(shape.end(), field.shape.begin(), field.shape.end());
    const nb::object array = new_array(NPY_FLOAT32, shape);
    to.floats.push_back(data_of<float>(array));
    fields[field.name.c_str()] = array;
  }
  fill(to);
  result["sizes"] = named_sizes;
  result["arrays"] = arrays;
  result["fields"] = fields;
  return result;
}

}  // namespace cortex
