"""A compiled model: linearize, run, return, in one native call."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from threading import Lock
from typing import Any, TypeVar

from cortex import _native
from cortex.codegen.gpu.device_code import DeviceCode
from cortex.cost.choose import considered_text
from cortex.cost.predict import Predictor
from cortex.cost.typical import typical
from cortex.errors import ModelError, StructureError
from cortex.frontend.weights import Source, Weights
from cortex.ilir.ir import NARROW
from cortex.lower.linear_form import LinearForm
from cortex.ra import interp
from cortex.ra import ir as ra
from cortex.runtime.batch import batch_of, root_nodes
from cortex.runtime.bound import Bound, retired
from cortex.runtime.by_file import ByFile
from cortex.runtime.compiled import Compiled as Compiled
from cortex.runtime.deviation import deviation_text, worst_difference
from cortex.runtime.device_program import DeviceProgram
from cortex.runtime.device_report import DeviceReport, device_explanation, device_report
from cortex.runtime.forest import Forest
from cortex.runtime.known_kinds import Kinds
from cortex.runtime.linearize import Checked
from cortex.runtime.loaded import Loaded, UsualCall, Version
from cortex.runtime.output import Output
from cortex.runtime.part import BuildLike, Built, Made, Part, Save, Sink
from cortex.runtime.report import Report, best_us, explanation, make_report
from cortex.runtime.storage import Array
from cortex.runtime.threads import checked_threads
from cortex.runtime.variants import variants
from cortex.runtime.vjp import Pullback, Trainings
from cortex.schedule.schedule import Schedule

T = TypeVar("T")
Known = tuple[int, int]

FEW_ATTEMPTS = 2
MAX_ATTEMPTS = 8
"""How often a request may show kinds of nodes that nobody has seen, before its nodes are taken to be inconsistent."""


class Executable(ByFile):
    """A compiled model. Call it with a structure, a list of structures, or a `Forest` of arrays.

    Kinds of nodes that were not known at compile time are traced and compiled when a request first has them;
    `compilations` counts how often that happened. Calls may run in several threads at once. A kind of any number of
    children is checked for each number when a request first has it, which takes milliseconds; nothing is compiled for
    a number that the model treats like the others.

    A call runs on `threads` threads of its own, by default as many as the model was compiled for; on one if another
    call is using the team of the process, or one has been faster for requests of this size; results are the same to the
    bit. A model compiled for one thread is compiled once more when a call first asks for several.
    """

    def __init__(
        self,
        trace: Kinds,
        build: Callable[[ra.Model, int], Compiled],
        threads: int = 1,
        build_in_f32: Callable[[ra.Model], Compiled] | None = None,
        save: Save | None = None,
        made: Made | None = None,
        build_for_training: Callable[[ra.Model, int], Compiled] | None = None,
        build_like: BuildLike | None = None,
    ) -> None:
        """`made` is what was compiled earlier; `build_like` compiles for other machines and numbers of threads."""
        self._trace = trace
        self._build = build
        self._build_in_f32 = build_in_f32
        self._save = save
        self.trainings = Trainings(build_for_training)
        self._threads = checked_threads(threads)
        self._built_for = self._threads if made is None else made.threads
        self._build_like, self._made = build_like, made
        self._lock = Lock()
        self.in_memory: Loaded | None = None  # the program in use
        self._node_class: type | None = None  # of the last structure that was given alone
        self._is_retired, self.updates = False, 0
        if made is not None:
            self.in_memory = self._load(made.compiled, trace.version, trace.checked_lengths())
        self.compilations = 0
        if made is None and trace.known_kinds and not trace.is_partial:
            self._compile()
        trace.weights.own()

    def __call__(self, structures: Any, *, out: Any = None, threads: int | None = None) -> Output:
        """States of the model at the root of each structure, computed by `threads` threads.

        They are written into the arrays of `out`, where given: a dictionary by name of the state, a tuple in the
        model's order, or the array itself where there is one state; float32, with a row for each structure of a list.
        """
        given = type(structures)
        if given is list:
            batch, single = structures, False
        elif given is self._node_class:
            batch, single = [structures], True
        else:
            batch = batch_of(structures)
            single = batch is not structures
            if single:
                self._node_class = given
        loaded = self.in_memory
        if loaded is not None and loaded.usual is not None and out is None:
            team = loaded.usual.threads if threads is None else loaded.most(self._team(threads))
            try:  # no detours: they take as long as small requests
                return loaded.usual.answer(batch, single, team)
            except _native.UnknownKind:
                pass
        return self._learning(batch, single, self._team(threads), out)

    def _learning(self, batch: Any, single: bool, team: int, out: Any) -> Output:
        """A call that may meet kinds of nodes, or numbers of children, that are new."""

        def run(loaded: Loaded) -> Output:
            given = loaded.given(out, batch, single)
            return loaded.output(loaded.program.run(self._nodes(batch), single, loaded.most(team), given))

        found = self._with_kinds(batch, run)
        self._expect_more()
        return found

    def bind(self, structures: Any, *, out: Any = None, threads: int | None = None) -> Bound:
        """`structures` made ready to be run many times: `run = fast.bind(trees)`, then `run()`.

        Calls do not look at the structures again. `run.fields` has the fields of all nodes as arrays, to be changed
        between calls. `out` and `threads` are those of a call; results go to the same arrays every time.
        """
        batch = batch_of(structures)
        single = batch is not structures
        team = self._team(threads)

        def bind(loaded: Loaded) -> Bound:
            given = loaded.given(out, batch, single)
            native = _native.Bound(loaded.native_program, self._nodes(batch), single, loaded.most(team), given)
            return Bound(loaded.output(native), native, loaded, self)

        return self._with_kinds(batch, bind)

    def vjp(
        self, structures: Any, *, of: Sequence[str] | None = None, threads: int | None = None
    ) -> tuple[Output, Pullback]:
        """What a call returns, and a function from adjoints to gradients: `out, pullback = fast.vjp(trees)`.

        `pullback(h=x)` gives a dictionary like the weights, with the gradient of the sum of `x * out.h`; `x` has the
        shape of `out.h`. Adjoints at every node are given as `pullback(nodes={"h": x})`, like `out.nodes.h`. They may
        be given for the states named in `of`, by default all. The passes are compiled at the first call.
        """
        batch = batch_of(structures)
        single = batch is not structures
        return self.passes(
            batch, threads, lambda kinds, nodes, team: self.trainings.vjp(kinds, nodes, single, of, team)
        )

    def passes(self, batch: Any, threads: int | None, run: Callable[[Kinds, Any, int], T]) -> T:
        """`run` with kinds, nodes and number of threads of a call, again whenever it has met new kinds of nodes."""
        team = self._team(threads)
        return self._with_kinds(batch, lambda _: run(self._trace, self._nodes(batch), team))

    def __repr__(self) -> str:
        return f"<compiled model {self._trace.name}, {self._trace.known_kinds} kinds of nodes>"

    @property
    def compiled(self) -> Compiled:
        """The program in use."""
        return self._require().compiled

    @property
    def traced(self) -> ra.Model:
        """The model as it was traced, before any transformation."""
        return self._trace.model()

    @property
    def weights(self) -> Mapping[str, Array]:
        """The parameters in use, derived ones included, as they were given; narrow weights are rounded copies."""
        return self._require().params

    @property
    def schedule(self) -> Schedule:
        """The steps in use."""
        return self.compiled.schedule

    @property
    def tables(self) -> dict[str, int]:
        """The tables that `Tabulate` made, and how many bytes each takes."""
        loaded = self._require()
        names = [name for t in loaded.compiled.model.tables for name in t.params]
        return {name: loaded.bytes_of(name) for name in names}

    @property
    def source(self) -> str:
        """The program as text: kernels in OpenCL C or CUDA C; of a program for processors, LLVM's module."""
        return self.compiled.code.text

    def report(self, structures: Any) -> Report | DeviceReport:
        """What a request is made of and where its time goes; `print(fast.report(trees))`.

        On a device, that is how many kernels are launched and what is copied. Else, the request is run many times, by
        this program and by a build of it that reads the clock around each phase; with narrow weights also, once, by a
        build with weights in f32, to say how far from it the results are.
        """
        from cortex.runtime.measure_machine import here
        from cortex.runtime.timeline import timeline

        form = self.linearize(structures)
        loaded = self._require()
        if isinstance(loaded.program, DeviceProgram):
            return device_report(loaded.program, self._nodes(batch_of(structures)), form)
        compiled, machine, program = loaded.compiled, here(), loaded.program
        batch, threads = batch_of(structures), self._threads if loaded.shared_out else 1
        return make_report(
            compiled.model.name,
            tuple(k.name for k in compiled.model.kinds),
            compiled.schedule,
            form,
            Predictor(compiled.func, machine)(form, threads),
            timeline(compiled.func, compiled.object_code.target, form, loaded.params, threads),
            machine,
            best_us(lambda: self(structures)[0]),
            best_us(lambda: program.prepare(self._nodes(batch))),
            self.deviation(structures),
        )

    def explain(self, structures: Any = None) -> str:
        """The predicted time of each phase and why, for a request or, without one, for typical ones.

        For a device, what is counted: launches, barriers, bytes.
        Then the steps that the automatic scheduler considered, and what it made of each, and why kinds of node are for
        one number of children each. For a request and narrow weights, also the deviation, which is measured: both
        programs are run.
        """
        from cortex.runtime.measure_machine import here

        forms = None if structures is None else [self.linearize(structures)]
        compiled, threads = self.compiled, self._threads
        kinds = tuple(k.name for k in compiled.model.kinds)
        forms = forms or typical(compiled.model, threads)
        if isinstance(compiled.code, DeviceCode):
            return device_explanation(compiled.model.name, compiled.func, compiled.code.target, forms)
        phases = explanation(compiled.model.name, kinds, compiled.func, forms, here(), threads)
        deviation = {} if structures is None else self.deviation(structures)
        measured = ["", deviation_text(deviation)] if deviation else []
        why = self._trace.per_arity()
        return "\n".join([phases, *measured, *considered_text(compiled.considered), *(["", *why] if why else [])])

    def deviation(self, structures: Any) -> dict[str, float]:
        """How far each state is at worst, at any node, from the same program with weights in f32.

        Without narrow weights, nothing. The program with weights in f32 is compiled for this.
        """
        batch = batch_of(structures)
        got = self(batch).nodes
        if self._build_in_f32 is None or not any(b.dtype in NARROW for b in self.compiled.func.buffers):
            return {}
        m = self._trace.model()
        weights = self._trace.weights
        arrays = weights.arrays(p.name for p in m.params)
        exact = Loaded(self._build_in_f32(m), arrays, self._trace.accessors, placed=dict(weights.placed))
        want = exact.output(exact.program.run(self._nodes(batch), False, 1)).nodes
        return {name: worst_difference(got[name], want[name]) for name in exact.names}

    def linearize(self, structures: Any) -> LinearForm:
        """The linear form of a request, as it is for a call on the default number of threads."""
        batch = batch_of(structures)
        return self._with_kinds(batch, lambda loaded: loaded.linear_form(self._nodes(batch), self._threads))

    def visited(self, structures: Any) -> list[Any]:
        """The nodes of a request in the order of `out.nodes`: your objects, or the numbers of a forest's nodes."""
        batch = batch_of(structures)
        if isinstance(batch, Forest):
            return list(range(batch.num_nodes))
        return self._with_kinds(batch, lambda loaded: loaded.linearizer.visited(self._nodes(batch)))

    def interpret(self, structures: Any) -> dict[str, Array]:
        """States at every node in the user's order, computed by the reference interpreter in float64.

        From the weights as they were given, so that it shows what narrow weights, too, are to be compared with.
        """
        form = self.linearize(structures)
        loaded = self._require()
        states = interp.run(loaded.compiled.model, loaded.params, form)
        return {s.name: states[s.name][form.arrays["order"]] for s in loaded.compiled.model.outputs}

    def update(self, weights: Source, *, optional: Collection[str] = ()) -> None:
        """Use other weights of the same names and shapes from now on, with the values that they have now.

        Nothing is compiled, unless finite weights become infinite or NaN. Calls that are running finish with the
        weights that they began with; requests that were bound before have the new ones from their next call on. Where
        anything is wrong with the new weights, all stay as they were. Names that the model was not compiled with are
        ignored; those that are `optional` may be missing.
        """
        own = self._trace.weights
        with self._lock:
            before, count = own.taken(), self.updates
            try:
                own.replace(weights, optional)
                self.updates, self._made = count + 1, None
                if self.in_memory is not None and own.breaks_promise(self.in_memory.compiled.model):
                    self._compile()
                elif self.in_memory is not None:
                    self.in_memory = self._load(self.in_memory.compiled, self.in_memory.version, self.in_memory.checked)
            except BaseException:
                own.take_back(before)
                self.updates = count
                raise
            own.own()

    def updated(self, loaded: Loaded) -> Loaded:
        """The program of a bound request with the weights of now; requests that were bound to it share it."""
        with self._lock:
            self._refuse_if_retired()
            if self.in_memory is not None and self.in_memory.compiled is loaded.compiled:
                return self.in_memory
            if loaded.successor is None or loaded.successor.updates != self.updates:
                names = self._trace.weights.names
                if self._trace.weights.breaks_promise(loaded.compiled.model):
                    raise ModelError("this request was bound to a program for finite weights: bind it again.")
                loaded.successor = self._load(loaded.compiled, loaded.version, loaded.checked, names)
            return loaded.successor

    def retire(self) -> None:
        """Refuse all calls from now on, of bound requests too: the module has another program."""
        with self._lock:
            self._is_retired, self.in_memory = True, None
            self.updates += 1

    def _refuse_if_retired(self) -> None:
        if self._is_retired:
            raise retired(self._trace.name)

    @property
    def given_weights(self) -> Weights:
        """The weights in use, for others to share."""
        with self._lock:
            return Weights(self._trace.weights)

    def save(
        self, file: Sink, *, cpus: Sequence[str] | str | None = None, threads: Sequence[int] | int | None = None
    ) -> None:
        """Write the compiled model and its weights to a file, for `cortex.load`: a path, or a file that is open.

        It knows the kinds of nodes that are known now; no others can be learnt once it is loaded. Code is for the
        machine and the number of threads in use, or for all of `cpus` ("x86-64-v3", "native"; `cortex targets` lists
        them) and `threads`. Whoever loads the file gets the best that his machine can run.
        """
        assert self._save is not None
        self._save(file, [self.part(cpus, threads)], None)

    def part(self, cpus: Sequence[str] | str | None = None, threads: Sequence[int] | int | None = None) -> Part:
        """What there is to save, with code for these machines and numbers of threads."""
        if self._trace.is_partial:
            raise ModelError(
                f"model '{self._trace.name}' is saved before any structure has shown how its inner nodes are treated. "
                "Pass examples=[tree, ...] to cortex.compile, or call the compiled model first."
            )
        self._require()
        with self._lock:
            assert self.in_memory is not None
            self._trace.check_ahead()
            if self.in_memory.version != self._trace.version:
                self._compile()
            m = self._trace.model()
            weights = self._trace.weights.arrays(p.name for p in m.params)
            loaded, checked = self.in_memory, self._trace.checked_lengths()
            built = variants(m, Built(loaded.compiled, self._built_for), self._build_like, cpus, threads)
            return Part(m, weights, self._trace.accessors, built, checked, self._threads)

    def _nodes(self, batch: Any) -> Any:
        """The request as nodes to walk."""
        return batch if isinstance(batch, Forest) else self._trace.roots(batch)

    def _team(self, threads: int | None) -> int:
        """How many threads a call runs on, once the program is one for several where that is so."""
        team = self._threads if threads is None else checked_threads(threads)
        if team > 1 and self.in_memory is not None and isinstance(self.in_memory.compiled.code, DeviceCode):
            raise ModelError(f"threads={threads}: {self._trace.name} runs on a device; leave it out.")
        if team > 1 and self._built_for == 1:
            self._build_for(team)
        return team

    def _expect_more(self) -> None:
        """A call has succeeded: have all ready for the next ones."""
        loaded = self.in_memory
        if loaded is None or loaded.usual is not None or self._trace.is_partial:
            return
        program, output, roots = loaded.program, loaded.output, self._trace.roots

        def answer_from_roots(batch: Any, single: bool, threads: int) -> Output:
            return output(program.run(batch if isinstance(batch, Forest) else roots(batch), single, threads))

        answer: Callable[[Any, bool, int], Output] = answer_from_roots
        if self._trace.starts_from_nodes and isinstance(program, _native.Program):
            answer = partial(program.answer, output)
        loaded.usual = UsualCall(answer, loaded.most(self._threads))

    def _require(self) -> Loaded:
        self._refuse_if_retired()
        if self.in_memory is None:
            self._compile()
        assert self.in_memory is not None
        return self.in_memory

    def _with_kinds(self, batch: Any, call: Callable[[Loaded], T]) -> T:
        """`call`, after compiling whatever kinds of node the request has and the program has not.

        A node of a new kind is looked at with those below it; if that does not settle it, all nodes are.
        """
        known, loaded = self._known, self.in_memory
        if loaded is None or self._trace.is_partial:
            known, loaded, _ = self._learn(known, lambda: self._trace.see(root_nodes(batch)))
        attempts = 0
        while attempts < MAX_ATTEMPTS:
            try:
                return call(loaded)
            except _native.UnknownKind as error:
                unknown = error.with_traceback(None)  # which would hold the request until the next garbage collection
            where = unknown.where
            try:
                look = partial(self._look_at, unknown, batch, attempts < FEW_ATTEMPTS)
                learned, loaded, looked = self._learn(known, look)
            except StructureError as error:
                if error.says_where:
                    raise
                raise StructureError(f"at {where} or below it, {error}") from None
            attempts += looked
            if learned == known:
                break
            known = learned
        raise StructureError(
            f"the node at {where} answers the model's questions differently each time it is asked. Fields that the "
            "model's control flow reads must be equal to themselves (NaN is not) and must not change."
        )

    def _learn(self, known: Known, look: Callable[[], object]) -> tuple[Known, Loaded, bool]:
        """Look at nodes, unless other threads have learned more than `known`, and compile again if kinds are new.

        Gives what is known then, and whether this call has looked.
        """
        with self._lock:
            self._refuse_if_retired()
            looks = self._known == known
            if looks:
                look()
            if self.in_memory is None or self.in_memory.version != self._trace.version:
                self._compile()
            assert self.in_memory is not None
            return self._known, self.in_memory, looks

    @property
    def _known(self) -> Known:
        """Grows with all that requests have shown and calls can use."""
        return self.compilations, self._trace.checks

    def _look_at(self, unknown: _native.UnknownKind, batch: Any, is_first: bool) -> None:
        """Check the numbers of children that are new; trace the kinds that are, at first of the node and below it."""
        left = self._trace.check(unknown.unchecked)
        if unknown.unchecked and not left:
            return
        if is_first and self._trace.explores and left in ([], [unknown.node]):
            self._trace.see([unknown.node], [unknown.where])
        else:
            self._trace.see(root_nodes(batch))

    def _build_for(self, threads: int) -> None:
        """Compile for several threads, unless that has been done."""
        with self._lock:
            if self._built_for == 1:
                self._built_for = threads
                if self.in_memory is not None:
                    self._compile()

    def _compile(self) -> None:
        with self._trace.in_time("compiling"):
            compiled = self._build(self._trace.model(), self._built_for)
        self.in_memory = self._load(compiled, self._trace.version, self._trace.checked_lengths())
        self.compilations += 1

    def _load(
        self, compiled: Compiled, version: Version, checked: Sequence[Checked], wanted: Sequence[str] | None = None
    ) -> Loaded:
        """A program with the weights that are `wanted`: those of the model, unless it is one from before."""
        weights = self._trace.weights
        names = [p.name for p in self._trace.model().params] if wanted is None else wanted
        made = self._made
        ready = made.ready if made is not None and made.compiled is compiled and not self.updates else None
        accessors = self._trace.accessors
        loaded = Loaded(compiled, weights.arrays(names), accessors, version, checked, weights.placed, ready)
        loaded.updates = self.updates
        weights.keep(loaded.in_place)
        weights.own()
        loaded.hold(weights.arrays(names))
        return loaded
