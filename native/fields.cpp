// Reading the fields that the model's code reads, and only those.
//
// A node must have a field if the code of its own kind reads it (`uses`), or if the code of a node further up reads
// it along a path (`reads`). The latter are collected node by node, so a field is asked of no node that is not read.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "errors.hpp"
#include "request.hpp"

namespace cortex {

namespace {

std::string text_of_shape(const npy_intp* shape, std::size_t rank) {
  std::string text = "(";
  for (std::size_t i = 0; i < rank; ++i) text += std::to_string(shape[i]) + (i + 1 < rank || rank == 1 ? "," : "");
  return text + ")";
}

std::string accepted_int(const IntField& field) {
  if (!field.limited) return "an integer";
  if (field.limit == 0) return "an integer, and no integer will do because the table it indexes has no rows";
  return "an integer from 0 to " + std::to_string(field.limit - 1);
}

std::string accepted_float(const FloatField& field) {
  if (field.shape.empty()) return "a number";
  return "an array of numbers of shape " + text_of_shape(field.shape.data(), field.shape.size());
}

bool has_shape(PyArrayObject* array, const FloatField& field, int first_axis) {
  const auto rank = static_cast<std::size_t>(PyArray_NDIM(array) - first_axis);
  return rank == field.shape.size() &&
         std::equal(field.shape.begin(), field.shape.end(), PyArray_DIMS(array) + first_axis);
}

bool is_plain_float32(PyArrayObject* array) {
  return PyArray_TYPE(array) == NPY_FLOAT32 && PyArray_ISCARRAY_RO(array);
}

bool is_too_large(double number) { return std::isinf(static_cast<float>(number)) && std::isfinite(number); }

// A number as Python and NumPy have them, in single precision by way of double as all others are; says whether it is one
// that is not too large.
bool is_plain_number(PyObject* value, float& number) {
  if (PyFloat_CheckExact(value) || PyArray_IsScalar(value, Double)) {
    number = static_cast<float>(PyFloat_AS_DOUBLE(value));
    return !std::isinf(number) || std::isinf(PyFloat_AS_DOUBLE(value));
  }
  if (!PyLong_CheckExact(value)) return false;
  int overflow = 0;
  const long long whole = PyLong_AsLongLongAndOverflow(value, &overflow);
  number = static_cast<float>(static_cast<double>(whole));
  return overflow == 0;
}

// Is it an int of one digit, as nearly all are? Reads it without a call.
bool is_small(PyObject* value, std::int64_t& number) {
  if (!PyLong_CheckExact(value)) return false;
#if PY_VERSION_HEX >= 0x030C0000
  const auto* const found = reinterpret_cast<const PyLongObject*>(value);
  if (!PyUnstable_Long_IsCompact(found)) return false;
  number = PyUnstable_Long_CompactValue(found);
#else
  const Py_ssize_t size = Py_SIZE(value);  // the number of digits, with the sign
  if (size < -1 || size > 1) return false;
  number = size * static_cast<std::int64_t>(reinterpret_cast<const PyLongObject*>(value)->ob_digit[0]);
#endif
  return true;
}

// Is some element of an array masked (numpy.ma)? The numbers below a mask mean nothing.
bool is_masked(PyObject* value) {
  if (!PyArray_Check(value) || PyArray_CheckExact(value)) return false;
  return nb::cast<bool>(nb::module_::import_("numpy.ma").attr("is_masked")(nb::handle(value)));
}

// Any array of real numbers in single precision; `lost` is one that is too large for that, if there is any.
nb::object as_float32(PyArrayObject* array, std::optional<double>& lost) {
  const nb::object wide =
      own(PyArray_FromArray(array, PyArray_DescrFromType(NPY_FLOAT64), NPY_ARRAY_CARRAY_RO | NPY_ARRAY_FORCECAST));
  auto* from = reinterpret_cast<PyArrayObject*>(wide.ptr());
  nb::object narrow = own(PyArray_SimpleNew(PyArray_NDIM(from), PyArray_DIMS(from), NPY_FLOAT32));
  const auto* source = static_cast<const double*>(PyArray_DATA(from));
  auto* target = static_cast<float*>(PyArray_DATA(reinterpret_cast<PyArrayObject*>(narrow.ptr())));
  const double* const end = source + PyArray_SIZE(from);
  std::transform(source, end, target, [](double x) { return static_cast<float>(x); });
  const double* const found = std::find_if(source, end, is_too_large);
  if (found != end) lost = *found;
  return narrow;
}

}  // namespace

void copy_rows(const FloatField& field, const float* from, float* to, bool padded) {
  const std::int64_t pitch = padded && field.rows > 0 ? field.stride / field.rows : field.columns;
  const auto bytes = static_cast<std::size_t>(field.columns) * sizeof(float);
  if (pitch == field.columns) {
    std::memcpy(to, from, bytes * static_cast<std::size_t>(field.rows));
    return;
  }
  for (std::int64_t r = 0; r < field.rows; ++r) std::memcpy(to + r * pitch, from + r * field.columns, bytes);
}

void refuse_int(const IntField& field, std::int64_t value, const std::string& node) {
  structure_error(node + ": " + field.said + " is " + std::to_string(value) +
                  (field.limited ? "" : ", which does not fit in 32 bits") + "; it must be " + accepted_int(field) +
                  (field.limited ? "" : " that does: the model uses it as one, not as a float"));
}

std::int32_t* int_array(const Destination& to, const Spec& spec, std::size_t field) {
  return to.index[to.index.size() - 2 - spec.int_fields.size() + field];
}

void Request::fill_fields(const Destination& to) {
  const std::size_t n = graph_.num_nodes();
  if (spec_.has_needs) check_needs();
  if (spec_.has_reads) collect_reads();

  for (std::size_t f = 0; f < spec_.int_fields.size(); ++f)
    if (!spec_.int_fields[f].everywhere) std::memset(int_array(to, spec_, f), 0, n * sizeof(std::int32_t));
  for (std::size_t f = 0; f < spec_.float_fields.size(); ++f) {
    const FloatField& field = spec_.float_fields[f];
    const auto row = static_cast<std::size_t>(to.padded ? field.stride : field.elements());
    if (!field.everywhere) std::memset(to.floats[f], 0, n * row * sizeof(float));
  }

  const std::size_t ints = spec_.int_fields.size(), all = ints + spec_.float_fields.size();
  auto field_at = [ints](std::size_t f) { return FieldRef{f < ints, static_cast<int>(f < ints ? f : f - ints)}; };
  std::vector<std::uint8_t> done;  // of a forest: the fields that are filled from its arrays
  if (forest_.is_valid())
    for (std::size_t f = 0; f < all; ++f) done.push_back(fill_from_column(field_at(f), to));
  auto is_done = [&](FieldRef f, std::size_t v) {
    return !done.empty() && v < num_user_ && done[static_cast<std::size_t>(f.number) + (f.is_int ? 0 : ints)];
  };
  const KindUse* const kinds = spec_.kinds.data();
  const std::uint8_t* demanded = demand_.data();
  std::int32_t* const* const ints_to = to.index.data() + to.index.size() - 2 - ints;
  auto fill_in = [&](FieldRef f, std::size_t v) {
    const auto node = static_cast<std::int32_t>(v);
    if (!is_done(f, v) && !(f.is_int && fill_small(spec_.int_fields[static_cast<std::size_t>(f.number)], node, ints_to[f.number])))
      fill(f, node, to);
  };
  for (std::size_t v = 0; v < n; ++v) {
    look_for_signals(v);
    for (const FieldRef f : kinds[graph_.kind[v]].fields) fill_in(f, v);
    if (!demanded) continue;
    for (std::size_t f = 0; f < all; ++f)
      if (*demanded++) fill_in(field_at(f), v);
  }
}

// Fill an integer field whose value is an int of one digit in a slot of the node; says whether it is.
inline bool Request::fill_small(const IntField& field, std::int32_t node, std::int32_t* to) const {
  PyObject* const found = value_at_hand(node, field.attribute);
  std::int64_t number = 0;
  if (!found || !is_small(found, number) || !field.fits(number)) return false;
  to[numbering_.id_of[static_cast<std::size_t>(node)]] = static_cast<std::int32_t>(number);
  return true;
}

void Request::fill(FieldRef ref, std::int32_t node, const Destination& to) {
  const auto number = static_cast<std::size_t>(ref.number);
  const int attribute = ref.is_int ? spec_.int_fields[number].attribute : spec_.float_fields[number].attribute;
  const bool is_kept = spec_.attributes[static_cast<std::size_t>(attribute)].column >= 0;
  PyObject* const found = is_kept ? kept(node, attribute) : value(node, attribute);
  const nb::object holder = nb::steal(is_kept ? nullptr : found);
  const auto id = numbering_.id_of[static_cast<std::size_t>(node)];
  if (ref.is_int) {
    const IntField& field = spec_.int_fields[number];
    if (!found || found == Py_None) missing(field.said, accepted_int(field), node);
    int_array(to, spec_, number)[id] = int_value(field, found, node);
  } else {
    const FloatField& field = spec_.float_fields[number];
    if (!found || found == Py_None) missing(field.said, accepted_float(field), node);
    float_value(field, found, node, to.floats[number] + id * (to.padded ? field.stride : field.elements()), to.padded);
  }
}

bool Request::is_read(FieldRef ref, std::size_t node) const {
  const std::size_t ints = spec_.int_fields.size(), all = ints + spec_.float_fields.size();
  if (!demand_.empty() && demand_[node * all + static_cast<std::size_t>(ref.number) + (ref.is_int ? 0 : ints)])
    return true;
  for (const FieldRef f : spec_.kinds[static_cast<std::size_t>(graph_.kind[node])].fields)
    if (f.is_int == ref.is_int && f.number == ref.number) return true;
  return false;
}

// Fill a field from a forest's array at once, if the array has the right type; says whether it has. Handlers of signals
// run in between, so the array is looked at again after them.
bool Request::fill_from_column(FieldRef ref, const Destination& to) {
  constexpr std::size_t kAtOnce = std::size_t{1} << 14;
  const std::size_t n = num_user_;
  for (std::size_t first = 0; first < n; first += kAtOnce) {
    if (first > 0) run_signal_handlers();
    if (!fill_from_rows(ref, to, first, std::min(n, first + kAtOnce))) return false;
  }
  return true;
}

// The same for the nodes from `first` to `last`, without it.
bool Request::fill_from_rows(FieldRef ref, const Destination& to, std::size_t first, std::size_t last) {
  const auto number = static_cast<std::size_t>(ref.number);
  const int attribute = ref.is_int ? spec_.int_fields[number].attribute : spec_.float_fields[number].attribute;
  const nb::object& column = columns_[static_cast<std::size_t>(attribute)];
  if (!column.is_valid() || !PyArray_Check(column.ptr())) return false;
  auto* array = reinterpret_cast<PyArrayObject*>(column.ptr());
  const std::size_t n = num_user_;
  if (PyArray_NDIM(array) < 1 || PyArray_DIM(array, 0) != static_cast<npy_intp>(n)) return false;

  if (ref.is_int) {
    if (PyArray_TYPE(array) != NPY_INT64 || PyArray_NDIM(array) != 1 || !PyArray_ISCARRAY_RO(array)) return false;
    const auto* from = static_cast<const std::int64_t*>(PyArray_DATA(array));
    const IntField& field = spec_.int_fields[number];
    std::int32_t* ints_to = int_array(to, spec_, number);
    for (std::size_t v = first; v < last; ++v)
      if (is_read(ref, v)) ints_to[numbering_.id_of[v]] = checked(field, from[v], static_cast<std::int32_t>(v));
    return true;
  }
  const FloatField& field = spec_.float_fields[number];
  if (!is_plain_float32(array) || !has_shape(array, field, 1)) return false;
  const auto* from = static_cast<const float*>(PyArray_DATA(array));
  const std::int64_t stride = to.padded ? field.stride : field.elements();
  for (std::size_t v = first; v < last; ++v)
    if (is_read(ref, v))
      copy_rows(field, from + static_cast<std::int64_t>(v) * field.elements(),
                to.floats[number] + numbering_.id_of[v] * stride, to.padded);
  return true;
}

std::int32_t Request::int_value(const IntField& field, PyObject* value, std::int32_t node) {
  nb::object index;
  if (PyArray_IsScalar(value, Bool)) return checked(field, PyObject_IsTrue(value), node);
  if (!PyLong_Check(value)) {
    if (is_masked(value)) masked(field.said, accepted_int(field), node);
    if (!PyIndex_Check(value)) {
      structure_error(describe(node) + ": " + field.said + " is " + value_and_type(value) +
                      "; it must be " + accepted_int(field));
    }
    PyObject* number = PyNumber_Index(value);
    if (!number) {
      // An array has __index__ but only a whole number has a meaning for it.
      if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw nb::python_error();
      PyErr_Clear();
      structure_error(describe(node) + ": " + field.said + " is " + value_and_type(value) +
                      "; it must be " + accepted_int(field));
    }
    index = nb::steal(number);
    value = number;
  }
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
  if (number == -1 && PyErr_Occurred()) throw nb::python_error();
  if (overflow) {
    structure_error(describe(node) + ": " + field.said + " is " + brief_repr(value) +
                    ", which does not fit in 32 bits; it must be " + accepted_int(field));
  }
  return checked(field, number, node);
}

std::int32_t Request::checked(const IntField& field, std::int64_t value, std::int32_t node) {
  if (!field.fits(value)) refuse_int(field, value, describe(node));
  return static_cast<std::int32_t>(value);
}

void Request::float_value(const FloatField& field, PyObject* value, std::int32_t node, float* row, bool padded) {
  if (field.shape.empty() && is_plain_number(value, *row)) return;
  nb::object whole, converted;
  std::optional<double> lost;
  auto too_large = [&](const std::string& is_what) {
    structure_error(describe(node) + ": " + field.said + " " + is_what +
                    ", which is too large for float32 (up to 3.4e38); it must be " + accepted_float(field));
  };
  if (PyLong_Check(value)) {  // of any size
    const double number = PyLong_AsDouble(value);
    if (number == -1 && PyErr_Occurred()) {
      PyErr_Clear();
      too_large("is an integer beyond 10**308");
    }
    whole = own(PyFloat_FromDouble(number));
    value = whole.ptr();
  }
  if (is_masked(value)) masked(field.said, accepted_float(field), node);
  if (!PyArray_CheckExact(value) || !is_plain_float32(reinterpret_cast<PyArrayObject*>(value))) {
    PyObject* any = PyArray_FromAny(value, nullptr, 0, 0, 0, nullptr);
    if (!any && !PyErr_ExceptionMatches(PyExc_ValueError) && !PyErr_ExceptionMatches(PyExc_TypeError))
      throw nb::python_error();
    PyErr_Clear();
    nb::object found = nb::steal(any);
    auto* array = reinterpret_cast<PyArrayObject*>(any);
    const int type = any ? PyArray_TYPE(array) : NPY_OBJECT;
    if (!PyTypeNum_ISINTEGER(type) && !PyTypeNum_ISFLOAT(type) && !PyTypeNum_ISBOOL(type)) {
      structure_error(describe(node) + ": " + field.said + " is " + value_and_type(value) +
                      "; it must be " + accepted_float(field));
    }
    converted = as_float32(array, lost);
    value = converted.ptr();
  }
  auto* array = reinterpret_cast<PyArrayObject*>(value);
  if (!has_shape(array, field, 0)) {
    structure_error(describe(node) + ": " + field.said + " has shape " +
                    text_of_shape(PyArray_DIMS(array), static_cast<std::size_t>(PyArray_NDIM(array))) +
                    "; it must be " + accepted_float(field) +
                    ", as in other nodes of its kind. Give them all the same shape, or let the model tell them apart by "
                    "another field before it reads this one");
  }
  if (lost) too_large((field.shape.empty() ? "is " : "holds ") + brief_repr(own(PyFloat_FromDouble(*lost)).ptr()));
  copy_rows(field, static_cast<const float*>(PyArray_DATA(array)), row, padded);
}

void Request::masked(const std::string& field, const std::string& accepted, std::int32_t node) {
  structure_error(describe(node) + ": " + field + " is a masked array, and what is masked has no value; it must be " +
                  accepted);
}

void Request::missing(const std::string& field, const std::string& accepted, std::int32_t node) {
  structure_error(describe(node) + ": " + field +
                  " is missing or None, and the model reads it there; it must be " + accepted);
}

// Call `found(node)` for every node that `path` reaches; a step that leads nowhere is the user's error.
template <class F>
void Request::reach(const Path& path, std::size_t at, std::int32_t from, F found) {
  if (at == path.size()) return found(from);
  const Hop& hop = path[at];
  if (hop.kind == Hop::Kind::kEach) {
    const auto [first, length] = list_of_node(from, hop.relation);
    for (std::int32_t i = 0; i < length; ++i) {
      const std::int32_t child = graph_.edge_child[static_cast<std::size_t>(first + i)];
      if (at + 1 == path.size()) {
        found(child);
      } else {
        reach(path, at + 1, child, found);
      }
    }
    return;
  }
  const std::int32_t next = follow(hop, from);
  if (next < 0) {
    const bool slot = hop.kind == Hop::Kind::kSlot;
    const auto relation = static_cast<std::size_t>(hop.relation);
    const std::string child =
        slot ? spec_.slots[relation].name() : spec_.lists[relation].name() + "[" + std::to_string(hop.index) + "]";
    structure_error(describe(from) + " has no child '" + child +
                    "', and the model recurses into it there; give it that child, or let the model test for it");
  }
  reach(path, at + 1, next, found);
}

void Request::check_needs() {
  const KindUse* const kinds = spec_.kinds.data();
  const std::int64_t* const first = graph_.edge_start.data();
  const std::int32_t* const child = graph_.edge_child.data();
  const auto must_reach = [this](const Path& path, std::size_t v) {
    reach(path, 0, static_cast<std::int32_t>(v), [](std::int32_t) {});
  };
  for (std::size_t v = 0; v < graph_.num_nodes(); ++v) {
    const KindUse& kind = kinds[graph_.kind[v]];
    for (const int slot : kind.needed_slots)
      if (child[first[v] + slot] < 0) must_reach({{Hop::Kind::kSlot, slot, 0}}, v);
    for (const Path& path : kind.needs) must_reach(path, v);
  }
}

void Request::collect_reads() {
  const std::size_t ints = spec_.int_fields.size(), all = ints + spec_.float_fields.size();
  demand_.assign(graph_.num_nodes() * all, 0);
  for (std::size_t v = 0; v < graph_.num_nodes(); ++v)
    for (const Demand& read : spec_.kinds[static_cast<std::size_t>(graph_.kind[v])].reads) {
      std::uint8_t* const column = demand_.data() + read.field.number + (read.field.is_int ? 0 : ints);
      reach(read.path, 0, static_cast<std::int32_t>(v),
            [&](std::int32_t node) { column[static_cast<std::size_t>(node) * all] = 1; });
    }
}

}  // namespace cortex
