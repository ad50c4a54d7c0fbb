// Running a program: from structures to states.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <iterator>
#include <utility>

#include "errors.hpp"
#include "interruptible.hpp"
#include "program.hpp"
#include "running.hpp"
#include "signals.hpp"
#include "without_gil.hpp"

namespace cortex {

namespace {

using Clock = std::chrono::steady_clock;

constexpr double kTooShort = 3000;  // nanoseconds; handing the GIL to another thread and taking it back takes as long

}  // namespace

Run::Run(nb::object program, bool single, std::int64_t threads, nb::handle out)
    : program_object_(std::move(program)),
      program_(nb::cast<Program*>(program_object_)),
      single_(single),
      threads_(threads),
      roots_(program_->layout().states.size()) {
  if (threads < 1 || threads > kMaxThreads)
    python_error(PyExc_ValueError, "threads=" + std::to_string(threads) + ": a call runs on 1 to " +
                                       std::to_string(kMaxThreads) + " threads");
  if (out.is_none()) return;
  const nb::list given = list_of(out);
  if (given.size() != roots_.size())
    python_error(PyExc_ValueError, "`out` has " + std::to_string(given.size()) + " entries for " +
                                       std::to_string(roots_.size()) + " states");
  for (std::size_t s = 0; s < roots_.size(); ++s)
    if (!given[s].is_none()) roots_[s] = given[s];
}

Run::~Run() {
  if (workspace_) program_->pool().give(std::move(workspace_));
}

void Run::discard() noexcept {
  if (workspace_) program_->pool().give_at_once(std::move(workspace_));
}

void Run::prepare(Request& request, nb::handle structures, bool merge) {
  const ProgramLayout& layout = program_->layout();
  request.linearize(structures, threads_, merge);
  const std::vector<std::int64_t>& sizes = request.numbering().sizes;
  if (single_ && sizes[kNumRoots] != 1)
    structure_error("one structure was asked for, and there are " + std::to_string(sizes[kNumRoots]));

  workspace_ = program_->pool().take(layout.blocks, sizes, threads_);
  Workspace& workspace = *workspace_;
  for (std::size_t s = 0; s < roots_.size(); ++s) check_out(s);
  Destination& to = workspace.to;
  to.padded = true;
  to.index.resize(layout.order_block + 1);
  to.floats.resize(program_->linearizer().spec().float_fields.size());
  for (std::size_t i = 0; i < to.index.size(); ++i) to.index[i] = workspace.ints(i);
  for (std::size_t i = 0; i < to.floats.size(); ++i) to.floats[i] = workspace.floats(to.index.size() + i);
  request.emit(to);

  place_arguments();
  workspace.given_sizes.clear();
  for (const std::size_t i : layout.sizes) workspace.given_sizes.push_back(workspace.sizes[i]);
  workspace.given_sizes.push_back(0);
}

void Run::place_arguments() const {
  const ProgramLayout& layout = program_->layout();
  workspace_->arguments.clear();
  for (const ProgramLayout::Argument& a : layout.arguments) {
    auto* weight = a.is_weight ? reinterpret_cast<PyArrayObject*>(layout.weights[a.number].ptr()) : nullptr;
    workspace_->arguments.push_back(weight ? PyArray_DATA(weight) : workspace_->at(a.number));
  }
}

void Run::use(nb::object program) {
  auto* const other = nb::cast<Program*>(program);
  other->linearizer();  // or it has been collected
  if (!other->layout().is_like(program_->layout()))
    python_error(PyExc_ValueError, "a request can be given to another program only if that takes the same arrays");
  std::swap(program_object_, program);
  program_ = other;
  place_arguments();
}

// Have the rows of tables computed that this request is the first to look up. Nodes that do not look anything up have
// the value 0. Another thread may be computing the same rows, and writes the same bits.
void Run::fill_tables() const {
  const std::int64_t nodes = workspace_->sizes[kNumNodes];
  for (const ProgramLayout::Table& table : program_->layout().tables) {
    const std::int32_t* values = workspace_->ints(table.block);
    const auto* filled = data_of<const std::uint8_t>(table.filled);
    const auto is_missing = [&](std::int32_t v) { return v >= 0 && v < table.rows && !filled[v]; };
    if (std::none_of(values, values + nodes, is_missing)) continue;
    std::vector<std::int32_t> missing;
    std::copy_if(values, values + nodes, std::back_inserter(missing), is_missing);
    std::sort(missing.begin(), missing.end());
    missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
    const nb::object rows = new_array(NPY_INT64, {static_cast<npy_intp>(missing.size())});
    std::copy(missing.begin(), missing.end(), data_of<std::int64_t>(rows));
    const nb::object fill = table.fill;
    fill(rows);
  }
}

void Run::execute(Announcement* announced) {
  Workspace& workspace = *workspace_;
  is_whole_ = false;
  if (workspace.sizes[kNumNodes] == 0) return;
  fill_tables();
  const Job job = workspace.job(program_->layout().entry);
  const std::int64_t nodes = workspace.sizes[kNumNodes];
  const auto timed = [&](auto run) {
    const auto start = Clock::now();
    const bool on_team = run();
    const std::chrono::duration<double, std::nano> taken = Clock::now() - start;
    return std::pair(on_team, taken.count() / static_cast<double>(nodes));
  };
  Ways& ways = program_->ways;
  const std::int64_t threads = threads_ > 1 && ways.prefers_team(nodes) ? threads_ : 1;
  program_->uses_team = threads > 1;
  if (announced && threads == 1) announced->call_off();
  std::pair<bool, double> found;
  if (ways.pace(nodes).expected(threads > 1) * static_cast<double>(nodes) < kTooShort) {
    found = timed([&] { return run_call(job, threads); });
  } else if (may_delay_signals(ways.longest(nodes, threads > 1))) {
    found = timed([&] { return run_interruptibly(job, threads, run_call); });
  } else {
    const WithoutGil without_gil;
    found = timed([&] { return run_call(job, threads); });
  }
  ways.see(nodes, found.first, found.second);
}

std::vector<npy_intp> Run::shape_of(std::size_t number, std::int64_t count, bool leading_axis) const {
  const std::vector<npy_intp>& row = program_->layout().states[number].shape;
  std::vector<npy_intp> shape;
  shape.reserve(row.size() + 1);
  if (leading_axis) shape.push_back(static_cast<npy_intp>(count));
  shape.insert(shape.end(), row.begin(), row.end());
  return shape;
}

// The rows of a state at these nodes, without padding; gives where they end.
float* Run::copy_rows(std::size_t number, const std::int32_t* first, const std::int32_t* last, float* to) const {
  const StateLayout& state = program_->layout().states[number];
  const float* base = workspace_->floats(state.block);
  const bool dense = state.pitch == state.columns;
  const std::int64_t rows = dense ? 1 : state.rows, columns = dense ? state.stride : state.columns;
  for (; first != last; ++first) {
    const float* row = base + *first * state.stride;
    for (std::int64_t r = 0; r < rows; ++r, to += columns, row += state.pitch)
      std::memcpy(to, row, static_cast<std::size_t>(columns) * sizeof(float));
  }
  return to;
}

// The rows of a state at the nodes that an index array names from `first` to `last`, without padding; `to` is the place
// of row 0.
void Run::gather(std::size_t number, std::size_t index_block, std::int64_t first, std::int64_t last, float* to) const {
  const StateLayout& state = program_->layout().states[number];
  const std::int32_t* index = workspace_->ints(index_block);
  copy_rows(number, index + first, index + last, to + first * state.rows * state.columns);
}

// All rows. Handlers of signals run in between, so `to` is asked for the array's memory anew after them.
template <class To>
void Run::gather_all(std::size_t state, std::size_t index_block, std::int64_t count, To to) const {
  constexpr std::int64_t kAtOnce = 1 << 14;
  for (std::int64_t first = 0; first < count; first += kAtOnce) {
    if (first > 0) run_signal_handlers();
    gather(state, index_block, first, std::min(count, first + kAtOnce), to());
  }
}

// The Python side has told the user what is wrong with an array; this keeps memory safe whatever is given.
void Run::check_out(std::size_t state) const {
  if (!roots_[state].is_valid()) return;
  auto* array = reinterpret_cast<PyArrayObject*>(roots_[state].ptr());
  const std::vector<npy_intp> shape = shape_of(state, workspace_->sizes[kNumRoots], !single_);
  if (!PyArray_Check(roots_[state].ptr()) || PyArray_TYPE(array) != NPY_FLOAT32 || !PyArray_ISBEHAVED(array) ||
      static_cast<std::size_t>(PyArray_NDIM(array)) != shape.size() ||
      !std::equal(shape.begin(), shape.end(), PyArray_DIMS(array)))
    python_error(PyExc_ValueError, "the array that was given for state " + std::to_string(state) +
                                       " is not a writable float32 array of its shape");
}

nb::object Run::roots_of(std::size_t state) const {
  const std::int64_t count = workspace_->sizes[kNumRoots];
  nb::object array = new_array(NPY_FLOAT32, shape_of(state, count, !single_));
  gather_all(state, program_->layout().root_block, count, [&] { return data_of<float>(array); });
  return array;
}

void Run::write_roots() {
  has_run_ = is_whole_ = true;
  for (std::size_t s = 0; s < roots_.size(); ++s) {
    if (!has_root(s)) continue;  // made when somebody asks for it
    const auto as_array = [&] { return reinterpret_cast<PyArrayObject*>(roots_[s].ptr()); };
    const auto memory = [&] {
      check_out(s);  // again: other code may have run since
      if (!PyArray_ISCARRAY(as_array())) python_error(PyExc_ValueError, "an array was changed while it was written");
      return data_of<float>(roots_[s]);
    };
    check_out(s);
    if (PyArray_ISCARRAY(as_array())) {
      gather_all(s, program_->layout().root_block, workspace_->sizes[kNumRoots], memory);
      continue;
    }
    const nb::object rows = roots_of(s);
    check_out(s);
    if (PyArray_CopyInto(as_array(), reinterpret_cast<PyArrayObject*>(rows.ptr())) < 0) throw nb::python_error();
  }
}

void Run::check(std::size_t state) const {
  const std::size_t count = program_->layout().states.size();
  if (state >= count)
    python_error(PyExc_IndexError, "the program has states 0 to " + std::to_string(count) + " (not included), not " +
                                       std::to_string(state));
  if (!has_run_) python_error(PyExc_RuntimeError, "the request has not been run");
}

void Run::check_whole() const {
  if (!is_whole_) python_error(PyExc_RuntimeError, "the last run of the request was interrupted; run it again");
}

nb::object Run::root(std::size_t state) {
  check(state);
  if (!has_root(state)) {
    check_whole();
    roots_[state] = roots_of(state);
  }
  return roots_[state];
}

nb::object Run::nodes(std::size_t state) const {
  check(state);
  check_whole();
  const std::int64_t count = num_user_nodes();
  nb::object array = new_array(NPY_FLOAT32, shape_of(state, count, true));
  gather_all(state, program_->layout().order_block, count, [&] { return data_of<float>(array); });
  return array;
}

std::pair<nb::object, nb::object> Run::rows(const std::vector<RowsOfList>& parts) const {
  for (const RowsOfList& part : parts) check(part.state);
  check_whole();
  if (parts.empty()) python_error(PyExc_ValueError, "rows are those of one list at least");
  const std::vector<npy_intp>& shape = program_->layout().states[parts[0].state].shape;
  for (const RowsOfList& part : parts)
    if (program_->layout().states[part.state].shape != shape)
      python_error(PyExc_ValueError, "rows of one array are of states of one shape");
  const std::int32_t* roots = workspace_->ints(program_->layout().root_block);
  const std::int64_t count = workspace_->sizes[kNumRoots];
  const auto each = [&](std::int64_t root, auto seen) {
    for (const RowsOfList& part : parts) {
      const std::int32_t* start = workspace_->ints(part.starts) + roots[root];
      const std::int32_t* nodes = workspace_->ints(part.nodes);
      if (part.how == RowsOfList::How::kSlot)
        seen(part.state, start, start + (*start >= 0));
      else if (part.how == RowsOfList::How::kList)
        seen(part.state, nodes + start[0], nodes + start[1]);
      else
        for (std::int32_t i = start[1]; i-- > start[0];) seen(part.state, nodes + i, nodes + i + 1);
    }
  };
  const nb::object ends = new_array(NPY_INT64, {static_cast<npy_intp>(count)});
  std::int64_t total = 0;
  for (std::int64_t r = 0; r < count; ++r) {
    each(r, [&](std::size_t, const std::int32_t* first, const std::int32_t* last) { total += last - first; });
    data_of<std::int64_t>(ends)[r] = total;
  }
  const nb::object array = new_array(NPY_FLOAT32, shape_of(parts[0].state, total, true));
  float* to = data_of<float>(array);
  for (std::int64_t r = 0; r < count; ++r)
    each(r, [&](std::size_t state, const std::int32_t* first, const std::int32_t* last) {
      to = copy_rows(state, first, last, to);
    });
  return {array, ends};
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
  for (const nb::object& array : roots_) Py_VISIT(array.ptr());
  return 0;
}

Run run_program(nb::object program, nb::handle structures, bool single, std::int64_t threads, nb::handle out) {
  const RunningCall call;
  Run made(std::move(program), single, threads, out);
  Announcement soon(made.expected_threads());
  try {
    {
      Linearizer::Lease request(made.program().linearizer());
      made.prepare(*request, structures);
    }
    made.execute(&soon);
    made.write_roots();
  } catch (...) {
    made.discard();
    throw;
  }
  return made;
}

}  // namespace cortex
