"""Weights in 16 and 8 bits: the models of the zoo compute what they do with weights that were rounded before.

Where inputs of products are rounded too, they do so up to a deviation that is tested, and exactly so if they are not.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product
from random import Random
from typing import Any, Literal

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from assembly_kernels import kernels, spills  # noqa: E402
from breadth import LONG, pairs, some  # noqa: E402
from zoo_structures import VOCAB, batch  # noqa: E402

import cortex  # noqa: E402
from cortex import zoo  # noqa: E402
from cortex.codegen.target import Target  # noqa: E402
from cortex.errors import ModelError, ScheduleError  # noqa: E402
from cortex.ilir import interp as ilir_interp  # noqa: E402
from cortex.ilir.ir import NARROW, Func, Scope  # noqa: E402
from cortex.ilir.pack import pack  # noqa: E402
from cortex.ra import interp as ra_interp  # noqa: E402
from cortex.schedule.in_f32 import in_f32  # noqa: E402
from cortex.schedule.narrow import Narrow  # noqa: E402
from cortex.schedule.schedule import Schedule  # noqa: E402

TYPES = ("bf16", "fp16", "int16", "int8")
EXACT = 1e-5
WITH_ROUNDED_INPUTS = {"bf16": 2e-2, "int16": 1e-3, "int8": 1e-3, "fp16": EXACT}
"""How far results may be from those with the same weights and inputs in f32; inputs for fp16 are in f32."""
SOME = ("tree_lstm", "mv_rnn", "rntn", "dag_rnn", "gru")
SHAPES = ("stanford", "grids", "single")
Level = Literal["avx512", "avx2", "sse2"]
LEVELS: tuple[Level, ...] = ("avx512", "avx2", "sse2")


@cache
def compiled(name: str, hidden: int, dtype: str, level: Level | None = None) -> Any:
    entry = zoo.load(name)
    weights = entry.weights(hidden, VOCAB, seed=3)
    examples = [root for shape in SHAPES for root in batch(name, shape)]
    target = None if level is None else runnable(level)
    return cortex.compile(entry.model, weights, examples=examples, weights_dtype=dtype, target=target)


@cache
def with_inputs_in_f32(name: str, hidden: int, dtype: str, level: Level | None = None) -> Any:
    """The same schedule but for the steps that round inputs."""
    fast = compiled(name, hidden, dtype, level)
    narrow = tuple(s for s in fast.schedule if isinstance(s, Narrow))
    schedule = Schedule((*in_f32(fast.schedule), *narrow))
    entry = zoo.load(name)
    examples = [root for shape in SHAPES for root in batch(name, shape)]
    target = None if level is None else runnable(level)
    return cortex.compile(
        entry.model, entry.weights(hidden, VOCAB, seed=3), examples=examples, schedule=schedule, target=target
    )


def runnable(level: Level) -> Target:
    host, target = Target.host(), Target.x86(level)
    if not all(host.has(f.removeprefix("+")) for f in target.features.split(",")):
        pytest.skip(f"this machine cannot run {level}")
    return target


def rounded(f: Func, params: dict[str, Any], dtype: str) -> dict[str, Any]:
    """The params with what `f` packs rounded, by PyTorch's arithmetic."""
    found = {name: np.array(value, np.float64) for name, value in params.items()}
    for p in f.packings:
        if p.part != "weights":
            continue
        for gate in p.gates:
            plain, shape = replace(p, gates=(gate,), steps=1), found[gate.param].shape
            number = pack(plain, {gate.param: np.arange(np.prod(shape)).reshape(shape)})
            is_there = pack(plain, {gate.param: np.ones(shape, bool)})
            values = torch.from_numpy(pack(plain, {gate.param: np.asarray(params[gate.param], np.float32)}))
            found[gate.param].flat[number[is_there]] = as_stored(values, dtype).double().numpy()[is_there]
    return found


def as_stored(values: Any, dtype: str) -> Any:
    if dtype in ("bf16", "fp16"):
        return values.to(torch.bfloat16 if dtype == "bf16" else torch.float16)
    scale = values.double().abs().amax(dim=-3, keepdim=True) / (127 if dtype == "int8" else 32767)
    if dtype == "int16":
        longest = (65534 - values.shape[-3] ** 0.5 / 2) * (1 - 2.0**-12)
        scale = torch.maximum(scale, torch.linalg.vector_norm(values.double(), dim=-3, keepdim=True) / longest)
    scale = scale.float().double()
    return torch.where(scale > 0, torch.round(values.double() / scale) * scale, 0.0)


def check(name: str, fast: Any, dtype: str, allowed: float = EXACT) -> None:
    """The compiled code and the interpreter of RA with rounded weights agree."""
    f, m = fast.compiled.func, fast.compiled.model
    weights = rounded(f, dict(fast.weights), dtype)
    for shape in SHAPES:
        roots = batch(name, shape)
        form = fast.linearize(roots)
        exact = ra_interp.run(m, weights, form)
        got = fast(roots).nodes
        for s in m.outputs:
            np.testing.assert_allclose(got[s.name], exact[s.name][form.arrays["order"]], rtol=allowed, atol=allowed)


@pytest.mark.parametrize(("name", "dtype"), pairs(zoo.ENTRIES, TYPES, whole=["gru"]))
def test_agrees_with_rounded_weights(name: str, dtype: str) -> None:
    odd = 17 if name in ("mv_rnn", "rntn") else 33
    for hidden in (odd - 1, odd) if LONG or name == "gru" else (odd,):
        fast = compiled(name, hidden, dtype)
        assert name == "tree_rnn" or any(b.dtype in NARROW for b in fast.compiled.func.buffers)
        check(name, fast, dtype, WITH_ROUNDED_INPUTS[dtype])
        check(name, with_inputs_in_f32(name, hidden, dtype), dtype)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", TYPES)
def test_other_instruction_sets(dtype: str, level: Level) -> None:
    name = SOME[(TYPES.index(dtype) + LEVELS.index(level)) % len(SOME)]
    check(name, compiled(name, 17, dtype, level), dtype, EXACT if dtype == "bf16" else WITH_ROUNDED_INPUTS[dtype])
    check(name, with_inputs_in_f32(name, 17, dtype, level), dtype)


@pytest.mark.parametrize(("dtype", "name"), pairs(TYPES, ["tree_lstm", "gru"]))
def test_the_interpreter_computes_with_weights_as_stored(name: str, dtype: str) -> None:
    fast = with_inputs_in_f32(name, 5, dtype)
    f = fast.compiled.func
    form = fast.linearize(batch(name, "single"))
    states = interpreted(fast, form)
    exact = ra_interp.run(fast.compiled.model, rounded(f, dict(fast.weights), dtype), form)
    for s in fast.compiled.model.outputs:
        np.testing.assert_allclose(states[f"state_{s.name}"], exact[s.name], rtol=1e-6, atol=1e-6)


def interpreted(fast: Any, form: Any) -> dict[str, Any]:
    f = fast.compiled.func
    params = {b.name: np.asarray(fast.weights[b.name]) for b in f.buffers if b.scope is Scope.PARAM}
    return ilir_interp.run(f, form.sizes, form.arrays, params).buffers


@pytest.mark.parametrize("level", [None, "avx2", "sse2"])
@pytest.mark.parametrize("dtype", ["bf16", "int16", "int8"])
def test_the_interpreter_rounds_inputs_as_compiled_code_does(dtype: str, level: Level | None) -> None:
    for name in some(("tree_lstm", "gru"), ["gru" if level is None else "tree_lstm"]):
        fast = compiled(name, 6, dtype, level)
        form = fast.linearize(batch(name, "single"))
        states, got = interpreted(fast, form), fast(batch(name, "single")).nodes
        for s in fast.compiled.model.outputs:
            want = states[f"state_{s.name}"][form.arrays["order"]]
            np.testing.assert_allclose(got[s.name], want, rtol=EXACT, atol=EXACT)


@pytest.mark.parametrize(("dtype", "instruction"), [("bf16", "vdpbf16ps"), ("int16", "vpdpwssd"), ("int8", "vpdpwssd")])
def test_products_of_narrow_numbers_have_their_instruction(dtype: str, instruction: str) -> None:
    if not (Target.host().has("avx512bf16") and Target.host().has("avx512vnni")):
        pytest.skip("this machine has no such instructions")
    for name in ("tree_lstm", "lstm"):
        for k in kernels(compiled(name, 32, dtype).compiled.code.assembly()):
            products = [i for i in k.instructions if i.startswith(instruction)]
            lengths = [i for i in k.instructions if i.startswith("vfmadd")]
            assert len(products) == k.multiply_adds or len(lengths) == k.multiply_adds == 1


@pytest.mark.parametrize(("dtype", "name"), pairs(TYPES, ["tree_lstm", "gru", "dag_rnn"]))
def test_bits_do_not_depend_on_threads_or_batch(name: str, dtype: str) -> None:
    entry = zoo.load(name)
    trees = entry.structures(Random(4), 8, VOCAB)
    weights = entry.weights(72, VOCAB, seed=3)
    alone = cortex.compile(entry.model, weights, examples=trees, weights_dtype=dtype)
    team = cortex.compile(entry.model, weights, examples=trees, weights_dtype=dtype, threads=2)
    together = alone(trees)
    for threads in (1, 2):
        assert team(trees, threads=threads).nodes.h.tobytes() == together.nodes.h.tobytes()
    for i, tree in enumerate(trees):
        assert alone(tree).h.tobytes() == together.h[i].tobytes()


@pytest.mark.parametrize(
    ("name", "dtype", "level"),
    [
        (name, dtype, level)
        for name, levels in (("tree_fc", [None]), ("tree_lstm", ["avx512"]), ("lstm", ["avx2"]), ("tree_gru", [None]))
        for dtype, level in product(TYPES, some((None, "avx512", "avx2"), levels))
    ],
)
def test_no_spills_in_the_loops_over_k(name: str, dtype: str, level: Level | None) -> None:
    entry = zoo.load(name)
    weights, trees = entry.weights(256, VOCAB), entry.structures(Random(0), 1, VOCAB)
    target = None if level is None else runnable(level)
    fast = cortex.compile(entry.model, weights, examples=trees, weights_dtype=dtype, target=target)
    assembly = fast.compiled.code.assembly()
    assert kernels(assembly)
    assert spills(assembly) == ()


def small(dtype: str | None, **changed: Any) -> Any:
    entry = zoo.load("tree_lstm")
    weights = dict(entry.weights(16, VOCAB)) | changed
    return cortex.compile(entry.model, weights, weights_dtype=dtype, examples=batch("tree_lstm", "single"))


@pytest.mark.parametrize("dtype", [None, "f32"])
def test_weights_are_not_narrow_by_default(dtype: str | None) -> None:
    fast = small(dtype)
    assert not any(isinstance(s, Narrow) for s in fast.schedule)
    assert fast.deviation(batch("tree_lstm", "stanford")) == {}


def test_a_report_states_the_deviation() -> None:
    trees = batch("tree_lstm", "stanford")
    for dtype, limit in (("bf16", 1e-2), ("fp16", 1e-3), ("int16", 1e-3), ("int8", 3e-2)):
        fast, exact = small(dtype), small(None)
        worst = {s: float(np.abs(fast(trees).nodes[s] - exact(trees).nodes[s]).max()) for s in ("h", "c")}
        assert all(0 < each < limit for each in worst.values())
        report = fast.report(trees)
        assert report.deviation == pytest.approx(worst, rel=0.2)
        assert f"worst deviation from weights in f32, at any node: h {report.deviation['h']:.1e}" in str(report)
        assert "worst deviation" in fast.explain(trees)
        assert "worst deviation" not in fast.explain()


def test_a_schedule_may_say_it_too() -> None:
    fast = small("bf16")
    trees = batch("tree_lstm", "stanford")
    entry = zoo.load("tree_lstm")
    again = Schedule.parse(repr(fast.schedule))
    same = cortex.compile(entry.model, entry.weights(16, VOCAB), schedule=again, examples=trees)
    assert same(trees).h.tobytes() == fast(trees).h.tobytes()
    assert same.deviation(trees) == fast.deviation(trees)
    plain = Schedule(tuple(s for s in again if not isinstance(s, Narrow)))  # inputs stay rounded
    added = cortex.compile(entry.model, entry.weights(16, VOCAB), schedule=plain, weights_dtype="bf16", examples=trees)
    assert added.schedule == again


@pytest.mark.parametrize("dtype", ["fp32", "float16", "", 16, ("bf16",)])
def test_unknown_types_are_refused(dtype: Any) -> None:
    with pytest.raises(ScheduleError, match="weights are stored as 'f32', 'bf16', 'fp16', 'int16' or 'int8'"):
        small(dtype)


def test_weights_beyond_half_precision_are_refused_by_name() -> None:
    entry = zoo.load("tree_lstm")
    name, value = next((n, v) for n, v in entry.weights(16, VOCAB).items() if n.startswith("U"))
    with pytest.raises(ModelError, match=rf"weights_dtype='fp16': the weight '{name}' has an element of size 1e\+06"):
        small("fp16", **{name: np.where(np.arange(value.size).reshape(value.shape) == 3, np.float32(1e6), value)})
