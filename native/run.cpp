// Running a program: from structures to states.
#include <algorithm>
#include <cstring>

#include "errors.hpp"
#include "program.hpp"

namespace cortex {

namespace {

constexpr std::size_t kNumNodes = 0, kNumRoots = 2;

}  // namespace

Run::Run(nb::object program, nb::handle structures, bool single, std::int64_t threads, bool execute)
    : program_object_(std::move(program)), program_(nb::cast<Program*>(program_object_)) {
  const ProgramLayout& layout = program_->layout();
  if (threads > 1) wake_team(threads);
  Linearizer::Lease request(program_->linearizer());
  request->linearize(structures, threads);
  const std::vector<std::int64_t>& sizes = request->numbering().sizes;
  if (single && sizes[kNumRoots] != 1)
    structure_error("one structure was asked for, and there are " + std::to_string(sizes[kNumRoots]));

  workspace_ = program_->pool().take(Workspace::bytes_for(layout.blocks, sizes, threads));
  workspace_->place(layout.blocks, sizes, threads);
  call(*request, threads, execute);
  if (!execute) return;
  roots_.reserve(layout.states.size());
  for (std::size_t s = 0; s < layout.states.size(); ++s)
    roots_.push_back(gather(s, layout.root_block, sizes[kNumRoots], !single));
}

Run::~Run() {
  if (workspace_) program_->pool().give(std::move(workspace_));
}

// Fill the arrays of the workspace and run the compiled function on them.
void Run::call(Request& request, std::int64_t threads, bool execute) {
  const ProgramLayout& layout = program_->layout();
  Workspace& workspace = *workspace_;
  Destination& to = workspace.to;
  to.padded = true;
  to.index.resize(layout.order_block + 1);
  to.floats.resize(program_->linearizer().spec().float_fields.size());
  for (std::size_t i = 0; i < to.index.size(); ++i) to.index[i] = workspace.ints(i);
  for (std::size_t i = 0; i < to.floats.size(); ++i) to.floats[i] = workspace.floats(to.index.size() + i);
  request.emit(to);
  if (!execute || workspace.sizes[kNumNodes] == 0) return;

  workspace.arguments.clear();
  for (const ProgramLayout::Argument& a : layout.arguments) {
    auto* weight = a.is_weight ? reinterpret_cast<PyArrayObject*>(layout.weights[a.number].ptr()) : nullptr;
    workspace.arguments.push_back(weight ? PyArray_DATA(weight) : workspace.at(a.number));
  }
  workspace.given_sizes.clear();
  for (const std::size_t i : layout.sizes) workspace.given_sizes.push_back(workspace.sizes[i]);
  nb::gil_scoped_release without_gil;
  run_on_team({layout.entry, workspace.arguments.data(), workspace.given_sizes.data()}, threads);
}

// The rows of a state at the nodes that an index array names, as a NumPy array without padding.
nb::object Run::gather(std::size_t number, std::size_t index_block, std::int64_t count, bool leading_axis) const {
  const StateLayout& state = program_->layout().states[number];
  npy_intp shape[NPY_MAXDIMS];
  int rank = 0;
  if (leading_axis) shape[rank++] = static_cast<npy_intp>(count);
  for (const npy_intp extent : state.shape) shape[rank++] = extent;
  nb::object array = own(PyArray_SimpleNew(rank, shape, NPY_FLOAT32));

  float* to = data_of<float>(array);
  const float* base = workspace_->floats(state.block);
  const std::int32_t* index = workspace_->ints(index_block);
  const bool dense = state.pitch == state.columns;
  const std::int64_t rows = dense ? 1 : state.rows, columns = dense ? state.stride : state.columns;
  for (std::int64_t i = 0; i < count; ++i) {
    const float* row = base + index[i] * state.stride;
    for (std::int64_t r = 0; r < rows; ++r, to += columns, row += state.pitch)
      std::memcpy(to, row, static_cast<std::size_t>(columns) * sizeof(float));
  }
  return array;
}

void Run::check(std::size_t state) const {
  const std::size_t count = program_->layout().states.size();
  if (state >= count)
    python_error(PyExc_IndexError, "the program has states 0 to " + std::to_string(count) + " (not included), not " +
                                       std::to_string(state));
}

nb::object Run::root(std::size_t state) const {
  check(state);
  return roots_[state];
}

nb::object Run::nodes(std::size_t state) const {
  check(state);
  return gather(state, program_->layout().order_block, num_user_nodes(), true);
}

nb::dict Run::linear_form() const {
  const Linearizer& linearizer = program_->linearizer();
  const std::vector<std::int64_t>& sizes = workspace_->sizes;
  return linearizer.as_arrays(sizes, [&](const Destination& to) {
    const auto& arrays = linearizer.arrays();
    for (std::size_t i = 0; i < arrays.size(); ++i)
      std::copy_n(workspace_->ints(i), arrays[i].extent.rows(sizes), to.index[i]);
    const auto& fields = linearizer.spec().float_fields;
    for (std::size_t f = 0; f < fields.size(); ++f) {
      const FloatField& field = fields[f];
      const std::int64_t pitch = field.rows > 0 ? field.stride / field.rows : 0;
      for (std::int64_t r = 0; r < sizes[kNumNodes] * field.rows; ++r)
        std::copy_n(workspace_->floats(arrays.size() + f) + r * pitch, field.columns, to.floats[f] + r * field.columns);
    }
  });
}

int Run::traverse(visitproc visit, void* arg) const {
  Py_VISIT(program_object_.ptr());
  return 0;
}

}  // namespace cortex
