#include "kernel.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "errors.hpp"
#include "interruptible.hpp"
#include "line.hpp"
#include "linearizer.hpp"
#include "running.hpp"

namespace cortex {

namespace {

PyArrayObject* checked(PyObject* array, std::int64_t elements, bool is_written) {
  auto* found = reinterpret_cast<PyArrayObject*>(array);
  if (!PyArray_Check(array) || PyArray_TYPE(found) != NPY_FLOAT32 || !PyArray_ISCARRAY_RO(found) ||
      PyArray_SIZE(found) != static_cast<npy_intp>(elements))
    python_error(PyExc_ValueError, "a kernel was given something else than a contiguous float32 array of " +
                                       std::to_string(elements) + " elements");
  if (is_written && !PyArray_ISWRITEABLE(found)) structure_error("the array for the result is read-only");
  return found;
}

// Do two arrays whose elements lie one after the other have memory in common?
bool overlap(PyArrayObject* a, PyArrayObject* b) {
  const char* const first = PyArray_BYTES(a);
  const char* const second = PyArray_BYTES(b);
  return first < second + PyArray_NBYTES(b) && second < first + PyArray_NBYTES(a);
}

// A new array that begins at a cache line, so that no vector of the result lies in two.
nb::object aligned_array(nb::tuple shape) {
  std::vector<npy_intp> extents;
  std::size_t bytes = sizeof(float);
  for (nb::handle extent : shape) {
    extents.push_back(nb::cast<npy_intp>(extent));
    bytes *= static_cast<std::size_t>(extents.back());
  }
  std::unique_ptr<void, void (*)(void*)> memory(std::aligned_alloc(kLine, (bytes + kLine) / kLine * kLine), std::free);
  if (!memory) python_error(PyExc_MemoryError, "cannot allocate " + std::to_string(bytes) + " bytes for a result");
  nb::capsule owner(memory.get(), [](void* p) noexcept { std::free(p); });
  nb::object array =
      own(PyArray_SimpleNewFromData(static_cast<int>(extents.size()), extents.data(), NPY_FLOAT32, memory.release()));
  if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(array.ptr()), owner.release().ptr()) < 0)
    throw nb::python_error();
  return array;
}

}  // namespace

Kernel::Kernel(std::uintptr_t entry, nb::list arrays, nb::object keepalive)
    : entry_(reinterpret_cast<Entry>(entry)), keepalive_(std::move(keepalive)) {
  if (!entry_) python_error(PyExc_ValueError, "the entry of a kernel must be the address of a function, not 0");
  for (nb::handle each : arrays) {
    const auto what = nb::cast<std::string>(each[0]);
    if (what == "weight") {
      const nb::object weight = each[1];
      if (!PyArray_Check(weight.ptr()) || !PyArray_ISCARRAY_RO(reinterpret_cast<PyArrayObject*>(weight.ptr())))
        python_error(PyExc_TypeError, "a weight of a kernel must be a contiguous, aligned NumPy array");
      arguments_.push_back({Source::kWeight, weights_.size(), 0});
      weights_.push_back(weight);
      continue;
    }
    const auto elements = nb::cast<std::int64_t>(nb::object(each[1]));
    if (what == "input") {
      arguments_.push_back({Source::kInput, inputs_++, elements});
    } else if (what == "output") {
      arguments_.push_back({Source::kOutput, 0, elements});
    } else if (what == "scratch" || what == "private") {
      arguments_.push_back({Source::kTemporary, temporaries_.size(), elements});
      temporaries_.push_back({{-1, 1}, elements, what == "private", -1});
    } else {
      python_error(PyExc_ValueError, "the arrays of a kernel have the unknown kind '" + what + "'");
    }
  }
}

nb::object Kernel::run(nb::tuple inputs, nb::handle out, nb::tuple shape, std::int64_t threads) {
  const RunningCall call;
  if (threads < 1 || threads > kMaxThreads)
    python_error(PyExc_ValueError, "threads=" + std::to_string(threads) + ": a call runs on 1 to " +
                                       std::to_string(kMaxThreads) + " threads");
  if (inputs.size() != inputs_)
    python_error(PyExc_ValueError, "a kernel takes " + std::to_string(inputs_) + " inputs, not " +
                                       std::to_string(inputs.size()));
  const Announcement soon(threads);
  const nb::object result = out.is_none() || overlaps_inputs(out, inputs) ? aligned_array(shape) : nb::borrow(out);
  static const std::vector<std::int64_t> no_sizes{1};
  std::unique_ptr<Workspace> workspace = pool_.take(temporaries_, no_sizes, threads);
  workspace->arguments.clear();
  for (const Argument& a : arguments_) {
    switch (a.source) {
      case Source::kWeight:
        workspace->arguments.push_back(PyArray_DATA(reinterpret_cast<PyArrayObject*>(weights_[a.number].ptr())));
        break;
      case Source::kInput:
        workspace->arguments.push_back(PyArray_DATA(checked(nb::handle(inputs[a.number]).ptr(), a.elements, false)));
        break;
      case Source::kOutput:
        workspace->arguments.push_back(PyArray_DATA(checked(result.ptr(), a.elements, true)));
        break;
      case Source::kTemporary:
        workspace->arguments.push_back(workspace->at(a.number));
        break;
    }
  }
  workspace->given_sizes.assign(1, 0);
  const Job job = workspace->job(entry_);
  const auto start = std::chrono::steady_clock::now();
  if (may_delay_signals(longest_)) {
    run_interruptibly(job, threads, run_on_team);
  } else {
    nb::gil_scoped_release without_gil;
    run_on_team(job, threads);
  }
  longest_ = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
  pool_.give(std::move(workspace));
  if (out.is_none() || result.is(out)) return result;
  auto* const written = checked(out.ptr(), PyArray_SIZE(reinterpret_cast<PyArrayObject*>(result.ptr())), true);
  std::memcpy(PyArray_DATA(written), data_of<float>(result), static_cast<std::size_t>(PyArray_NBYTES(written)));
  return nb::borrow(out);
}

// Would the function write what it has still to read?
bool Kernel::overlaps_inputs(nb::handle out, nb::tuple inputs) const {
  PyArrayObject* written = nullptr;
  for (const Argument& a : arguments_)
    if (a.source == Source::kOutput) written = checked(out.ptr(), a.elements, true);
  return std::any_of(arguments_.begin(), arguments_.end(), [&](const Argument& a) {
    return a.source == Source::kInput && written &&
           overlap(written, checked(nb::handle(inputs[a.number]).ptr(), a.elements, false));
  });
}

int Kernel::traverse(visitproc visit, void* arg) const {
  Py_VISIT(keepalive_.ptr());
  for (const nb::object& weight : weights_) Py_VISIT(weight.ptr());
  return 0;
}

void Kernel::drop_references() {
  keepalive_.reset();
  weights_.clear();
}

}  // namespace cortex
