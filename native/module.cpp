// The Python module cortex._native.
#define CORTEX_IMPORTS_NUMPY
#include "python.hpp"

#include <memory>

#include "arrays.hpp"
#include "bound.hpp"
#include "direct.hpp"
#include "errors.hpp"
#include "kernel.hpp"
#include "linearizer.hpp"
#include "program.hpp"
#include "running.hpp"

namespace {

namespace nb = nanobind;
using cortex::Bound;
using cortex::DirectCall;
using cortex::Kernel;
using cortex::Linearizer;
using cortex::Program;
using cortex::Run;

// Accessors are closures that may well refer to the compiled model, so the collector must see through our objects.
template <class T>
int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  return nb::inst_ready(self) ? nb::inst_ptr<T>(self)->traverse(visit, arg) : 0;
}

template <class T>
int drop_references(PyObject* self) {
  if (nb::inst_ready(self)) nb::inst_ptr<T>(self)->drop_references();
  return 0;
}

template <class T>
PyType_Slot collected[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(traverse<T>)},
    {Py_tp_clear, reinterpret_cast<void*>(drop_references<T>)},
    {0, nullptr},
};

Run run(nb::handle_t<Program> program, nb::handle structures, bool single, std::int64_t threads, nb::handle out) {
  return cortex::run_program(nb::borrow(program), structures, single, threads, out);
}

// The same for most calls, as an object of the class `output`, which keeps its run in `_run`. (To call the class would take
// as long as ten nodes do.)
nb::object answer(nb::handle_t<Program> program, nb::handle output, nb::handle structures, bool single,
                  std::int64_t threads) {
  static PyObject* const kept_in = PyUnicode_InternFromString("_run");
  if (!PyType_Check(output.ptr())) cortex::python_error(PyExc_TypeError, "an answer is wrapped in a class");
  const nb::object made = nb::cast(run(program, structures, single, threads, nb::none()));
  auto* type = reinterpret_cast<PyTypeObject*>(output.ptr());
  nb::object answered = cortex::own(type->tp_alloc(type, 0));
  if (PyObject_SetAttr(answered.ptr(), kept_in, made.ptr()) < 0) throw nb::python_error();
  return answered;
}

nb::tuple rows(const Run& run, nb::handle runs) {
  const auto [array, ends] = run.rows(run.program().rows_of(runs));
  return nb::make_tuple(array, ends);
}

void prepare(nb::handle_t<Program> program, nb::handle structures) {
  const cortex::RunningCall call;
  Run made(nb::borrow(program), false, 1, nb::none());
  Linearizer::Lease request(made.program().linearizer());
  made.prepare(*request, structures);
}

nb::dict linearize(Linearizer& linearizer, nb::handle structures, std::int64_t parts) {
  const cortex::RunningCall call;
  return linearizer.linearize(structures, parts);
}

nb::list visited(Linearizer& linearizer, nb::handle structures) {
  const cortex::RunningCall call;
  return linearizer.visited(structures);
}

// For measurements: everything is given by address, and the caller answers for it.
void run_entry(std::uintptr_t entry, nb::list tables, std::uintptr_t sizes) {
  const cortex::RunningCall call;
  std::vector<void**> each;
  for (nb::handle table : tables) each.push_back(reinterpret_cast<void**>(nb::cast<std::uintptr_t>(table)));
  if (each.empty() || each.size() > static_cast<std::size_t>(cortex::kMaxThreads))
    cortex::python_error(PyExc_ValueError, "a function runs on 1 to " + std::to_string(cortex::kMaxThreads) + " threads");
  nb::gil_scoped_release without_gil;
  cortex::run_with_tables(reinterpret_cast<cortex::Entry>(entry), each.data(),
                          reinterpret_cast<const std::int64_t*>(sizes), static_cast<std::int64_t>(each.size()));
}

// For tests: which of some requests of 100 nodes run on the team, if each takes as long as is said, there or alone.
nb::list ways_taken(nb::list on_team, nb::list alone) {
  constexpr std::int64_t kNodes = 100;
  const auto ways = std::make_unique<cortex::Ways>();
  nb::list taken;
  for (std::size_t i = 0; i < on_team.size(); ++i) {
    const bool team = ways->prefers_team(kNodes);
    ways->see(kNodes, team, nb::cast<double>(team ? on_team[i] : alone[i]) / kNodes);
    taken.append(team);
  }
  return taken;
}

bool import_numpy() { return _import_array() >= 0; }

}  // namespace

NB_MODULE(_native, m) {
  using nb::literals::operator""_a;
  m.doc() = "Walking structures into the linear form, and calling compiled programs.";
  // A compiled model in a global variable lives until the interpreter ends; that is no leak.
  nb::set_leak_warnings(false);
  if (!import_numpy()) throw nb::python_error();
  cortex::define_errors(m);
  cortex::wait_for_calls_at_exit(m);

  nb::class_<Linearizer>(m, "Linearizer", nb::type_slots(collected<Linearizer>),
                         "Turns structures into the linear form that a spec describes.")
      .def(nb::init<nb::dict>(), "spec"_a)
      .def("linearize", linearize, "structures"_a.none(), "parts"_a = 1,
           "The linear form of a list of structures or a Forest: {'sizes': ..., 'arrays': ..., 'fields': ...}.")
      .def("visited", visited, "structures"_a,
           "The nodes of a list of structures in the order of results; where they are calls, (tag, object) for each.");

  nb::class_<Program>(m, "Program", nb::type_slots(collected<Program>),
                      "A compiled function together with everything it takes.")
      .def(nb::init<nb::object, nb::dict>(), "linearizer"_a, "layout"_a)
      .def("run", run, "structures"_a.none(), "single"_a, "threads"_a = 1, "out"_a.none() = nb::none(),
           "Linearize a list of structures or a Forest and run the program on it, on so many threads. `out` has an "
           "array for the roots of each state, or None.")
      .def("answer", answer, "What `run` gives without `out`, wrapped in a class: (class, structures, single, threads).")
      .def("prepare", prepare, "structures"_a.none(), "Do what `run` does before the compiled function is called.");

  nb::class_<Run>(m, "Run", nb::type_slots(collected<Run>), "The result of one call of a program.")
      .def("root", &Run::root, "state"_a, "State number `state` at the roots.")
      .def("nodes", &Run::nodes, "state"_a, "State number `state` at every node, in the user's order.")
      .def("rows", rows, "runs"_a,
           "States at children of the roots, those of a root one after the other, and where the rows of each root end. A "
           "run is (state, relation, how), how being \"list\", \"reversed\" or \"slot\".")
      .def("linear_form", &Run::linear_form, "The linear form that the program ran on, copied.")
      .def_prop_ro("num_nodes", &Run::num_nodes, "The number of nodes that were computed.")
      .def_prop_ro("num_user_nodes", &Run::num_user_nodes, "The number of nodes of the request, duplicates included.");

  nb::class_<Bound>(m, "Bound", nb::type_slots(collected<Bound>), "A request that is run again and again.")
      .def(nb::init<nb::handle_t<Program>, nb::handle, bool, std::int64_t, nb::handle>(), "program"_a,
           "structures"_a.none(), "single"_a, "threads"_a = 1, "out"_a.none() = nb::none())
      .def("run", &Bound::run, "Read the fields from their arrays, run the program, write the states at the roots.")
      .def("use", &Bound::use, "program"_a, "Run this program from now on: the same code with other weights.")
      .def("fields", &Bound::fields, "The array of each field by name, in the user's order.")
      .def("root", &Bound::root, "state"_a, "State number `state` at the roots.")
      .def("nodes", &Bound::nodes, "state"_a, "State number `state` at every node, in the user's order.")
      .def_prop_ro("num_nodes", &Bound::num_nodes, "The number of nodes.");

  nb::class_<DirectCall>(m, "DirectCall", nb::type_slots(collected<DirectCall>),
                         "Calls of a compiled module by position: from a tuple of arguments to the module's result.")
      .def(nb::init<nb::dict>(), "spec"_a)
      .def("__call__", &DirectCall::operator(), "args"_a,
           "The result, or NotImplemented where the arguments are unlike those of the calls that it is for.");

  nb::class_<Kernel>(m, "Kernel", nb::type_slots(collected<Kernel>), "A compiled function on arrays of fixed sizes.")
      .def(nb::init<std::uintptr_t, nb::list, nb::object>(), "entry"_a, "arrays"_a, "keepalive"_a)
      .def("run", &Kernel::run, "inputs"_a, "out"_a.none(), "shape"_a, "threads"_a = 1,
           "Run it on contiguous float32 arrays; the result is `out`, or a new array of `shape`.");

  m.def("barrier_nanoseconds", &cortex::barrier_nanoseconds, "threads"_a, nb::call_guard<nb::gil_scoped_release>(),
        "Nanoseconds of one barrier among so many threads.");
  m.def("run_entry", run_entry, "entry"_a, "tables"_a, "sizes"_a,
        "Run a compiled function on as many threads as there are tables of array addresses, each with its own.");
  m.def("ways_taken", ways_taken, "on_team"_a, "alone"_a,
        "Which of several requests run on the team, if they take so many nanoseconds on it or alone.");
  m.def("set_team_spin", &cortex::set_team_spin, "microseconds"_a,
        "How long worker threads look for the next call before they park.");
  m.def("check_forest", &cortex::check_forest, "slots"_a, "lists"_a, "num_nodes"_a, "names"_a.none(),
        "Raise StructureError unless the relations are those of a forest.");
  m.def("flatten_nested", &cortex::flatten_nested, "data"_a, "max_nodes"_a,
        "Nested tuples and lists as (pointers, indices, items).");
}
