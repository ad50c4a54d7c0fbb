#include "program.hpp"

#include <algorithm>
#include <cstring>

#include "errors.hpp"

namespace cortex {

namespace {

constexpr int kNumNodes = 0, kNumRoots = 2;

std::size_t position(const std::vector<std::string>& names, const std::string& name, const char* what) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end())
    python_error(PyExc_ValueError, std::string("the layout of a program uses the unknown ") + what + " '" + name + "'");
  return static_cast<std::size_t>(found - names.begin());
}

}  // namespace

ProgramLayout::ProgramLayout(nb::object linearizer_source, nb::dict layout)
    : linearizer_object(std::move(linearizer_source)), linearizer(nb::cast<Linearizer*>(linearizer_object)) {
  entry = reinterpret_cast<Entry>(nb::cast<std::uintptr_t>(layout["entry"]));
  if (!entry) python_error(PyExc_ValueError, "the entry of a program must be the address of a function, not 0");
  keepalive = layout.contains("keepalive") ? nb::object(layout["keepalive"]) : nb::none();
  for (nb::handle name : list_of(layout["sizes"]))
    sizes.push_back(position(linearizer->sizes(), nb::cast<std::string>(name), "size"));
  for (const IndexArray& a : linearizer->arrays()) add_block(a.extent, 1);
  for (const FloatField& field : linearizer->spec().float_fields) add_block({kNumNodes, 0}, field.stride);
  for (nb::handle e : list_of(layout["arrays"])) read_argument(e);
}

void ProgramLayout::add_block(Extent extent, std::int64_t elements) {
  if (elements < 0) python_error(PyExc_ValueError, "the rows of an array must not have a negative number of elements");
  blocks.push_back({extent, elements});
}

void ProgramLayout::read_argument(nb::handle source) {
  const auto what = nb::cast<std::string>(source[0]);
  const Spec& spec = linearizer->spec();
  std::vector<std::string> index_names, float_names;
  for (const IndexArray& a : linearizer->arrays()) index_names.push_back(a.name);
  for (const FloatField& field : spec.float_fields) float_names.push_back("field_" + field.name);

  if (what == "index") {
    arguments.push_back({false, position(index_names, nb::cast<std::string>(source[1]), "index array")});
  } else if (what == "field") {
    // A field may be called by its own name or by that of its buffer.
    const auto given = nb::cast<std::string>(source[1]);
    auto known = [&](const std::string& n) {
      return std::find(index_names.begin(), index_names.end(), n) != index_names.end() ||
             std::find(float_names.begin(), float_names.end(), n) != float_names.end();
    };
    const std::string name = known("field_" + given) ? "field_" + given : given;
    const auto as_float = std::find(float_names.begin(), float_names.end(), name);
    if (as_float != float_names.end()) {
      arguments.push_back({false, index_names.size() + static_cast<std::size_t>(as_float - float_names.begin())});
    } else {
      arguments.push_back({false, position(index_names, name, "field")});
    }
  } else if (what == "weight") {
    const nb::object weight = source[1];
    if (!PyArray_Check(weight.ptr()) || !PyArray_ISCARRAY_RO(reinterpret_cast<PyArrayObject*>(weight.ptr())))
      python_error(PyExc_TypeError, "a weight of a program must be a contiguous, aligned NumPy array");
    arguments.push_back({true, weights.size()});
    weights.push_back(weight);
  } else if (what == "state") {
    StateLayout state{{}, 1, 1, 1, nb::cast<std::int64_t>(nb::object(source[3])), blocks.size()};
    for (nb::handle extent : list_of(source[2])) {
      state.shape.push_back(nb::cast<npy_intp>(extent));
      state.rows *= state.columns;
      state.columns = state.shape.back();
    }
    state.pitch = state.rows > 0 ? state.stride / state.rows : 0;
    if (state.pitch < state.columns || state.pitch * state.rows != state.stride)
      python_error(PyExc_ValueError, "the padded row of a state is not a padding of its shape");
    arguments.push_back({false, blocks.size()});
    add_block({kNumNodes, 0}, state.stride);
    states.push_back(std::move(state));
  } else if (what == "scratch") {
    const nb::object size = source[1];
    Extent extent{-1, 1};
    if (!size.is_none())
      extent = {static_cast<int>(position(linearizer->sizes(), nb::cast<std::string>(size), "size")), 0};
    arguments.push_back({false, blocks.size()});
    add_block(extent, nb::cast<std::int64_t>(nb::object(source[2])));
  } else {
    python_error(PyExc_ValueError, "the layout of a program has the unknown array kind '" + what + "'");
  }
}

// The rows of a state at the nodes that an index array names, as a NumPy array without padding.
nb::object ProgramLayout::gather(const Workspace& from, std::size_t number, std::size_t index_block,
                                 std::int64_t count, bool leading_axis) const {
  const StateLayout& state = states[number];
  npy_intp shape[NPY_MAXDIMS];
  int rank = 0;
  if (leading_axis) shape[rank++] = static_cast<npy_intp>(count);
  for (const npy_intp extent : state.shape) shape[rank++] = extent;
  nb::object array = own(PyArray_SimpleNew(rank, shape, NPY_FLOAT32));

  float* to = data_of<float>(array);
  const float* base = from.floats(state.block);
  const std::int32_t* index = from.ints(index_block);
  const bool dense = state.pitch == state.columns;
  const std::int64_t rows = dense ? 1 : state.rows, columns = dense ? state.stride : state.columns;
  for (std::int64_t i = 0; i < count; ++i) {
    const float* row = base + index[i] * state.stride;
    for (std::int64_t r = 0; r < rows; ++r, to += columns, row += state.pitch)
      std::memcpy(to, row, static_cast<std::size_t>(columns) * sizeof(float));
  }
  return array;
}

int ProgramLayout::traverse(visitproc visit, void* arg) const {
  Py_VISIT(keepalive.ptr());
  Py_VISIT(linearizer_object.ptr());
  for (const nb::object& weight : weights) Py_VISIT(weight.ptr());
  return 0;
}

Run::Run(std::shared_ptr<ProgramLayout> layout, std::unique_ptr<Workspace> workspace)
    : layout_(std::move(layout)), workspace_(std::move(workspace)) {}

Run::~Run() {
  if (workspace_) layout_->pool.give(std::move(workspace_));
}

void Run::copy_roots(bool single) {
  const std::size_t root = layout_->linearizer->arrays().size() - 2;
  const std::int64_t count = workspace_->sizes[kNumRoots];
  roots_.reserve(layout_->states.size());
  for (std::size_t s = 0; s < layout_->states.size(); ++s)
    roots_.push_back(layout_->gather(*workspace_, s, root, count, !single));
}

const StateLayout& Run::state_layout(std::size_t state) const {
  if (state >= layout_->states.size())
    python_error(PyExc_IndexError, "the program has " + std::to_string(layout_->states.size()) + " states, not " +
                                       std::to_string(state + 1));
  return layout_->states[state];
}

nb::object Run::root(std::size_t state) const {
  state_layout(state);
  return roots_[state];
}

nb::object Run::nodes(std::size_t state) const {
  state_layout(state);
  return layout_->gather(*workspace_, state, layout_->linearizer->arrays().size() - 1, num_nodes(), true);
}

nb::dict Run::linear_form() const {
  const Linearizer& linearizer = *layout_->linearizer;
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

Run Program::run(nb::handle structures, bool single) {
  if (!layout_) python_error(PyExc_RuntimeError, "the program has been collected");
  const std::shared_ptr<ProgramLayout> layout = layout_;
  Linearizer& linearizer = *layout->linearizer;

  Linearizer::Lease request(linearizer);
  request->linearize(structures);
  const std::vector<std::int64_t>& sizes = request->numbering().sizes;
  if (single && sizes[kNumRoots] != 1)
    structure_error("one structure was asked for, and there are " + std::to_string(sizes[kNumRoots]));
  Run run(layout, layout->pool.take(Workspace::bytes_for(layout->blocks, sizes)));
  Workspace& workspace = *run.workspace_;
  workspace.place(layout->blocks, sizes);

  const std::size_t num_index = linearizer.arrays().size(), num_floats = linearizer.spec().float_fields.size();
  Destination& to = workspace.to;
  to.padded = true;
  to.index.resize(num_index);
  to.floats.resize(num_floats);
  for (std::size_t i = 0; i < num_index; ++i) to.index[i] = workspace.ints(i);
  for (std::size_t i = 0; i < num_floats; ++i) to.floats[i] = workspace.floats(num_index + i);
  request->emit(to);

  if (sizes[kNumNodes] > 0) {
    workspace.arguments.clear();
    for (const ProgramLayout::Argument& a : layout->arguments) {
      auto* weight = a.is_weight ? reinterpret_cast<PyArrayObject*>(layout->weights[a.number].ptr()) : nullptr;
      workspace.arguments.push_back(weight ? PyArray_DATA(weight) : workspace.at(a.number));
    }
    std::vector<std::int64_t>& given = workspace.given_sizes;
    given.clear();
    for (const std::size_t i : layout->sizes) given.push_back(sizes[i]);
    nb::gil_scoped_release without_gil;
    layout->entry(workspace.arguments.data(), given.data());
  }
  run.copy_roots(single);
  return run;
}

}  // namespace cortex
