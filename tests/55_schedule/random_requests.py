"""Models with a request, drawn at random: what random schedules are tried on."""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from cortex import zoo
from cortex.codegen.target import Target
from cortex.compiler import build
from cortex.cost.count import Counter
from cortex.errors import ModelError
from cortex.frontend.trace import Trace
from cortex.frontend.weights import Weights
from cortex.ilir.ir import Func
from cortex.lower.linear_form import NUM_PARTS, LinearForm, kinds_in_windows
from cortex.lower.lower import lower
from cortex.plan import Plan
from cortex.ra import interp
from cortex.ra import ir as ra
from cortex.ra.simplify import simplify
from cortex.runtime.executable import Executable
from cortex.runtime.linearize import linearizer
from cortex.schedule.schedule import Schedule
from cortex.structures import generators
from cortex.structures.grid import grid
from cortex.structures.sequences import sequence
from cortex.structures.tree import with_children

sys.path.insert(0, str(Path(__file__).parents[1] / "fuzz"))
from random_models import HIDDEN, compilable, random_model, source
from random_structures import random_batch

VOCAB = 5
PARTS = 3
SIZES = {size: often for size, often in HIDDEN.items() if size <= 8}
TARGET = Target.host()
MOST_OPERATIONS = 20_000  # of a request: what the interpreter does in a fraction of a second


@dataclass(frozen=True)
class Case:
    """A traced model with a request."""

    name: str
    trace: Trace
    structures: list[Any]

    @cached_property
    def model(self) -> ra.Model:
        """The model before any step."""
        return simplify(self.trace.model())

    @property
    def weights(self) -> dict[str, Any]:
        """The parameters that the model was given."""
        return dict(self.trace.weights.arrays(p.name for p in self.trace.model().params))

    def form(self, m: ra.Model, f: Func | None = None) -> LinearForm:
        """The request as the linearizer of `m`, which is this model after any steps, numbers it for the program `f`."""
        parts = f is not None and NUM_PARTS.name in f.sizes
        windows = () if f is None else kinds_in_windows(i.name for i in f.index_functions)
        made = linearizer(m, self.trace.accessors, parts=parts, windows=windows)
        return LinearForm(**made.linearize(self.structures, PARTS if parts else 1))

    def meaning(self, m: ra.Model, form: LinearForm, dtype: Any = float) -> dict[str, Any]:
        """The states that users see at every node, in their order, by the interpreter of RA."""
        states = interp.run(m, self.weights, form, dtype)
        return {s.name: states[s.name][form.arrays["order"]] for s in m.outputs}

    def inputs(self, m: ra.Model, form: LinearForm) -> dict[str, Any]:
        """The buffers that a lowered program reads."""
        params = interp.tables(m, interp.derived(m, self.weights))
        return params | {f"field_{k}": v for k, v in form.fields.items()}

    def compiled(self, schedule: Schedule) -> Executable:
        """The model compiled by exactly the steps of a schedule, for any number of threads."""
        return Executable(self.trace, lambda m, _: build(m, Plan(TARGET, schedule=schedule)), threads=2)


def lowered(m: ra.Model) -> Func:
    """The program of a model as the compiler lowers it."""
    return lower(m, TARGET.lanes)


def random_case(rng: random.Random) -> Case:
    """A random model or one of the zoo, at a small hidden size, and a request that takes few operations."""
    while True:
        try:
            case = _random_model(rng) if rng.random() < 0.5 else _zoo_model(rng)
        except ModelError:  # these structures do not tell what the states are
            continue
        form = case.form(case.model)
        if sum(w.operations for w in Counter(lowered(case.model))(form).work()) <= MOST_OPERATIONS:
            return case


def _random_model(rng: random.Random) -> Case:
    seed = rng.randrange(1_000_000)
    m = random_model(seed, SIZES)
    trace = Trace(compilable(m), Weights(None if m.closure else m.arrays(0.5)))
    structures = random_batch(rng.randrange(1_000_000), m.family, m.vector)[:2]
    _see(trace, structures)
    return Case(f"random model {seed}:\n{source(m)}", trace, structures)


def _zoo_model(rng: random.Random) -> Case:
    entry = zoo.load(rng.choice(list(zoo.ENTRIES)))
    structures = [_structure(entry.name, rng) for _ in range(rng.randint(1, 2))]
    trace = Trace(entry.model, Weights(entry.weights(rng.randint(3, 6), VOCAB, seed=rng.randint(0, 99))))
    _see(trace, structures)
    return Case(entry.name, trace, structures)


def _see(trace: Trace, structures: list[Any]) -> None:
    """Trace the kinds of all nodes, until nothing that a kind reads leads to nodes of another."""
    while trace.see(structures):
        pass


def _structure(name: str, rng: random.Random) -> Any:
    if name in ("lstm", "gru"):
        return sequence([rng.randrange(VOCAB) for _ in range(rng.randint(1, 6))])
    if name == "dag_rnn":
        rows, columns = rng.randint(1, 2), rng.randint(1, 3)
        return grid(rows, columns, [rng.randrange(VOCAB) for _ in range(rows * columns)])
    if name in ("tree_lstm", "tree_lstm_words", "tree_gru", "tree_gru_words", "simple_tree_gru"):
        if name.endswith("_words") or rng.random() < 0.7:
            return generators.random_tree(rng, rng.randint(1, 6), VOCAB)
        return with_children(generators.perfect_tree(rng, rng.randint(1, 3), VOCAB))
    return generators.perfect_tree(rng, rng.randint(1, 3), VOCAB)
