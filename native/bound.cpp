#include "bound.hpp"

#include <algorithm>

#include "errors.hpp"
#include "running.hpp"

namespace cortex {

namespace {

// Does control flow depend on more than whether the attribute is there?
bool is_tested(const Spec& spec, int attribute) {
  return std::any_of(spec.tests.begin(), spec.tests.end(), [&](const Test& test) {
    return test.subject == Test::Subject::kAttribute && test.op != Test::Op::kIsNone && test.number == attribute;
  });
}

PyArrayObject* as_array(const nb::object& array) { return reinterpret_cast<PyArrayObject*>(array.ptr()); }

// Whoever holds an array may reshape it in place, so its memory is looked at anew in every call.
void check_array(const nb::object& array, const std::string& name, int type, std::int64_t elements) {
  if (PyArray_TYPE(as_array(array)) != type || !PyArray_ISCARRAY_RO(as_array(array)) ||
      PyArray_SIZE(as_array(array)) != static_cast<npy_intp>(elements))
    structure_error("the array of field '" + name + "' is no longer as it was when the request was bound; change its "
                    "values only");
}

}  // namespace

Bound::Bound(nb::handle_t<Program> program, nb::handle structures, bool single, std::int64_t threads, nb::handle out)
    : run_(nb::borrow(program), single, threads, out) {
  const RunningCall call;
  const Linearizer& linearizer = run_.program().linearizer();
  Linearizer::Lease request(run_.program().linearizer());
  run_.prepare(*request, structures, /*merge=*/false);
  const Spec& spec = linearizer.spec();
  for (std::size_t f = 0; f < spec.int_fields.size(); ++f)
    add({true, static_cast<int>(f)}, spec.int_fields[f].name, {}, is_tested(spec, spec.int_fields[f].attribute), *request);
  for (std::size_t f = 0; f < spec.float_fields.size(); ++f) {
    const FloatField& field = spec.float_fields[f];
    add({false, static_cast<int>(f)}, field.name, field.shape, is_tested(spec, field.attribute), *request);
  }
}

// Make the array of a field, with the values that the structures have.
void Bound::add(FieldRef ref, const std::string& name, const std::vector<npy_intp>& shape, bool is_fixed,
                const Request& request) {
  const std::int64_t n = num_nodes();
  const Spec& spec = run_.program().linearizer().spec();
  const Workspace& workspace = run_.workspace();
  const std::int32_t* order = workspace.ints(run_.program().layout().order_block);
  std::vector<npy_intp> extents{static_cast<npy_intp>(n)};
  extents.insert(extents.end(), shape.begin(), shape.end());
  Column column{ref, new_array(ref.is_int ? NPY_INT64 : NPY_FLOAT32, extents), is_fixed, {}};
  const auto number = static_cast<std::size_t>(ref.number);
  for (std::int64_t v = 0; v < n; ++v) {
    if (request.is_read(ref, static_cast<std::size_t>(v))) column.nodes.push_back(static_cast<std::int32_t>(v));
    if (ref.is_int) {
      data_of<std::int64_t>(column.array)[v] = int_array(workspace.to, spec, number)[order[v]];
    } else {
      const FloatField& field = spec.float_fields[number];
      const std::int64_t pitch = field.rows > 0 ? field.stride / field.rows : 0;
      for (std::int64_t r = 0; r < field.rows; ++r)
        std::copy_n(workspace.to.floats[number] + order[v] * field.stride + r * pitch, field.columns,
                    data_of<float>(column.array) + v * field.elements() + r * field.columns);
    }
  }
  if (is_fixed) PyArray_CLEARFLAGS(as_array(column.array), NPY_ARRAY_WRITEABLE);
  columns_.emplace_back(name, std::move(column));
}

void Bound::read(const Column& column) {
  const Spec& spec = run_.program().linearizer().spec();
  const Workspace& workspace = run_.workspace();
  const std::int32_t* order = workspace.ints(run_.program().layout().order_block);
  const auto number = static_cast<std::size_t>(column.field.number);
  if (column.field.is_int) {
    const IntField& field = spec.int_fields[number];
    check_array(column.array, field.name, NPY_INT64, num_nodes());
    const auto* from = data_of<const std::int64_t>(column.array);
    std::int32_t* to = int_array(workspace.to, spec, number);
    for (const std::int32_t v : column.nodes) {
      if (!field.fits(from[v])) refuse_int(field, from[v], "node " + std::to_string(v));
      to[order[v]] = static_cast<std::int32_t>(from[v]);
    }
    return;
  }
  const FloatField& field = spec.float_fields[number];
  check_array(column.array, field.name, NPY_FLOAT32, num_nodes() * field.elements());
  const auto* from = data_of<const float>(column.array);
  for (const std::int32_t v : column.nodes)
    copy_rows(field, from + v * field.elements(), workspace.to.floats[number] + order[v] * field.stride, true);
}

void Bound::run() {
  const RunningCall call;
  run_.program().linearizer();  // the code is gone where the collector has taken the program apart
  refuse_if_busy();
  struct Busy {
    bool& flag;
    explicit Busy(bool& f) : flag(f) { flag = true; }
    ~Busy() { flag = false; }
  } busy(is_busy_);
  for (const auto& [name, column] : columns_)
    if (!column.is_fixed) read(column);
  run_.execute();
  run_.write_roots();
}

void Bound::use(nb::handle_t<Program> program) {
  refuse_if_busy();
  run_.use(nb::borrow(program));
}

void Bound::refuse_if_busy() const {
  if (is_busy_)
    python_error(PyExc_RuntimeError, "a bound request is used by two threads at once, and it has one set of arrays; "
                                     "bind the structures once for each thread");
}

nb::dict Bound::fields() const {
  nb::dict named;
  for (const auto& [name, column] : columns_) named[name.c_str()] = column.array;
  return named;
}

nb::object Bound::root(std::size_t state) {
  if (!run_.has_root(state)) refuse_if_busy();  // it would be made from arrays that are being written
  return run_.root(state);
}

nb::object Bound::nodes(std::size_t state) const {
  refuse_if_busy();
  return run_.nodes(state);
}

int Bound::traverse(visitproc visit, void* arg) const {
  for (const auto& [name, column] : columns_) Py_VISIT(column.array.ptr());
  return run_.traverse(visit, arg);
}

}  // namespace cortex
