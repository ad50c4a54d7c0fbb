#include "program.hpp"

#include <algorithm>

#include "errors.hpp"

namespace cortex {

namespace {

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
  root_block = blocks.size() - 2;
  order_block = blocks.size() - 1;
  for (const FloatField& field : linearizer->spec().float_fields) add_block({kNumNodes, 0}, field.stride);
  for (nb::handle e : list_of(layout["arrays"])) read_argument(e);
  if (layout.contains("tables"))
    for (nb::handle e : list_of(layout["tables"])) read_table(e);
}

bool ProgramLayout::is_like(const ProgramLayout& other) const {
  const auto same_bytes = [](const nb::object& a, const nb::object& b) {
    return PyArray_NBYTES(reinterpret_cast<PyArrayObject*>(a.ptr())) ==
           PyArray_NBYTES(reinterpret_cast<PyArrayObject*>(b.ptr()));
  };
  const auto same_table = [](const Table& a, const Table& b) { return a.block == b.block && a.rows == b.rows; };
  return linearizer && other.linearizer && sizes == other.sizes && arguments == other.arguments &&
         blocks == other.blocks && root_block == other.root_block && order_block == other.order_block &&
         states == other.states && linearizer->sizes() == other.linearizer->sizes() &&
         std::equal(weights.begin(), weights.end(), other.weights.begin(), other.weights.end(), same_bytes) &&
         std::equal(tables.begin(), tables.end(), other.tables.begin(), other.tables.end(), same_table) &&
         linearizer->spec().int_fields.size() == other.linearizer->spec().int_fields.size() &&
         linearizer->spec().float_fields.size() == other.linearizer->spec().float_fields.size();
}

std::vector<RowsOfList> Program::rows_of(nb::handle runs) const {
  std::vector<std::string> names;
  for (const IndexArray& a : linearizer().arrays()) names.push_back(a.name);
  std::vector<RowsOfList> found;
  for (nb::handle run : list_of(runs)) {
    const auto state = nb::cast<std::size_t>(nb::object(run[0]));
    const auto relation = nb::cast<std::string>(nb::object(run[1])), how = nb::cast<std::string>(nb::object(run[2]));
    if (how == "slot") {
      const std::size_t block = position(names, "child_" + relation, "slot");
      found.push_back({state, RowsOfList::How::kSlot, block, block});
    } else {
      found.push_back({state, how == "reversed" ? RowsOfList::How::kReversed : RowsOfList::How::kList,
                       position(names, relation + "_ptr", "list"), position(names, relation + "_child", "list")});
    }
  }
  return found;
}

void ProgramLayout::read_table(nb::handle source) {
  std::vector<std::string> names;
  for (const IndexArray& a : linearizer->arrays()) names.push_back(a.name);
  const nb::object filled = source[1];
  auto* array = reinterpret_cast<PyArrayObject*>(filled.ptr());
  if (!PyArray_Check(filled.ptr()) || PyArray_TYPE(array) != NPY_UINT8 || !PyArray_ISCARRAY_RO(array))
    python_error(PyExc_TypeError, "which rows of a table are filled must be said by a contiguous array of bytes");
  const std::size_t block = position(names, "field_" + nb::cast<std::string>(source[0]), "field");
  tables.push_back({block, PyArray_SIZE(array), filled, nb::object(source[2])});
}

void ProgramLayout::add_block(Extent extent, std::int64_t elements, bool per_thread, int copies) {
  if (elements < 0) python_error(PyExc_ValueError, "the rows of an array must not have a negative number of elements");
  blocks.push_back({extent, elements, per_thread, copies});
}

void ProgramLayout::read_argument(nb::handle source) {
  const auto what = nb::cast<std::string>(source[0]);
  const Spec& spec = linearizer->spec();
  std::vector<std::string> index_names, float_names;
  for (const IndexArray& a : linearizer->arrays()) index_names.push_back(a.name);
  for (const FloatField& field : spec.float_fields) float_names.push_back("field_" + field.name);

  auto size = [&](nb::handle name) {
    return static_cast<int>(position(linearizer->sizes(), nb::cast<std::string>(name), "size"));
  };

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
    const nb::object rows = source[1];
    const Extent extent = rows.is_none() ? Extent{-1, 1} : Extent{size(rows), 0};
    const int copies = nb::len(source) > 3 ? size(nb::object(source[3])) : -1;
    arguments.push_back({false, blocks.size()});
    add_block(extent, nb::cast<std::int64_t>(nb::object(source[2])), false, copies);
  } else if (what == "private") {
    const Extent extent = nb::len(source) > 2 ? Extent{size(nb::object(source[2])), 0} : Extent{-1, 1};
    arguments.push_back({false, blocks.size()});
    add_block(extent, nb::cast<std::int64_t>(nb::object(source[1])), true);
  } else {
    python_error(PyExc_ValueError, "the layout of a program has the unknown array kind '" + what + "'");
  }
}

Linearizer& Program::linearizer() const {
  if (!layout_.linearizer) python_error(PyExc_RuntimeError, "the program has been collected");
  return *layout_.linearizer;
}

int Program::traverse(visitproc visit, void* arg) const {
  Py_VISIT(layout_.keepalive.ptr());
  Py_VISIT(layout_.linearizer_object.ptr());
  for (const nb::object& weight : layout_.weights) Py_VISIT(weight.ptr());
  for (const ProgramLayout::Table& table : layout_.tables) Py_VISIT(table.fill.ptr());
  return 0;
}

void Program::drop_references() {
  layout_.linearizer = nullptr;
  layout_.linearizer_object.reset();
  layout_.keepalive.reset();
  layout_.weights.clear();
  layout_.tables.clear();
}

}  // namespace cortex
