"""Random recursive models from a seed, as data that prints as Python source.

One source text serves both sides: executed with the real `cortex` it is a model to compile, executed with
`torch_functions` it is a recursive PyTorch function.

    model = random_model(17)
    print(source(model))
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Literal

import numpy as np
from random_operators import field_of_node, grow, lookup, squash, table_row
from random_programs import Instruction, Let, Over, Program, Reduction, Shape, Value, Weight, Weights, Writer

import cortex

HIDDEN = {1: 2, 2: 3, 3: 5, 7: 5, 8: 4, 16: 3, 17: 3, 20: 1, 33: 1, 48: 1}
"""Hidden sizes, and how often each is drawn."""
Family = Literal["children", "arity", "slots", "binary", "previous", "mixed"]
FAMILIES: dict[Family, int] = {"children": 3, "arity": 1, "slots": 2, "binary": 1, "previous": 1, "mixed": 1}
TAGS = ("a", "b", "c")


@dataclass(frozen=True)
class Branch:
    """What the model does where `condition` holds (and no earlier branch's does); "" holds always."""

    condition: str
    program: Program


@dataclass(frozen=True)
class RandomModel:
    """A model: its states, its branches, its weights, and the family of structures it is for."""

    seed: int
    family: Family
    form: Literal["named", "tuple", "bare"]
    states: tuple[tuple[str, Shape], ...]
    branches: tuple[Branch, ...]
    weights: tuple[Weight, ...]
    closure: bool
    vector: int

    def arrays(self, gain: float = 1.0) -> dict[str, Any]:
        """The weights' values; `gain` scales matrices, which makes a model better conditioned."""
        rng = np.random.default_rng(self.seed)
        values = {}
        for w in self.weights:
            bound = np.sqrt(3) * w.scale * (gain if w.scale < 1 else 1)
            values[w.name] = rng.uniform(-bound, bound, w.shape).astype(np.float32)
        return values


@dataclass(frozen=True)
class _Case:
    """A branch to be written: which child states it may read, and whether it may reduce over children."""

    condition: str
    children: tuple[str, ...] = ()
    over: bool = False


def random_model(seed: int, sizes: Mapping[int, int] = HIDDEN) -> RandomModel:
    """The model that `seed` stands for, at one of the hidden sizes given with their frequencies."""
    rng = Random(f"model {seed}")
    hidden = rng.choices(list(sizes), list(sizes.values()))[0]
    dims = (hidden, hidden, hidden, rng.choice((1, 2, 3, 5, 8)), rng.choice((1, 3, 4)))
    family = rng.choices(list(FAMILIES), list(FAMILIES.values()))[0]
    cases = _cases(rng, family)
    grounded = any(not case.children and not case.over for case in cases)
    names = "hcm"[: rng.choice((1, 1, 2, 2, 3))]
    states = tuple((name, _state_shape(rng, dims, name == "h") if grounded else dims[:1]) for name in names)
    form: Any = rng.choice(("named", "named", "tuple") if len(states) > 1 else ("named", "bare", "tuple"))
    if form == "tuple" and len(states) == 1 and not grounded:
        form = "bare"  # that a state is a tuple of one cannot be known before it is known
    closure = rng.random() < 0.2
    weights = Weights(rng, "" if closure else "w.")
    count = [0]
    call = "f({})" if closure else "f({}, w)"
    branches = tuple(
        Branch(case.condition, _program(rng, case, states, form, call, weights, dims, count, grounded))
        for case in cases
    )
    return RandomModel(seed, family, form, states, branches, tuple(weights.made), closure, dims[-1])


def _state_shape(rng: Random, dims: tuple[int, ...], first: bool) -> Shape:
    rank = 1 if first and rng.random() < 0.8 else rng.choice((0, 1, 1, 2))
    if rank == 2:
        a, b = rng.choice(dims), rng.choice(dims)
        return (a, b) if a * b <= 300 else (min(a, 7), min(b, 8))
    return tuple(rng.choice(dims[:4]) for _ in range(rank))


def _cases(rng: Random, family: Family) -> list[_Case]:
    """The branches of a model over a family of structures."""
    tags = [f'node.op == "{tag}"' for tag in TAGS[: rng.choice((1, 2))]]
    each = _Case("", (), over=True)
    left, right = "node.left", "node.right"
    match family:
        case "children":
            shape = rng.choice(("leaf", "leaf", "sum", "tags", "leaf tags"))
            if shape == "sum":
                return [each]
            leaf = [_Case(rng.choice(("node.is_leaf", "not node.children")))] if "leaf" in shape else []
            tagged = [_Case(tag, (), True) for tag in tags] if "tags" in shape else []
            return [*leaf, *tagged, each]
        case "arity":
            items = [tuple(f"node.children[{i}]" for i in range(n)) for n in range(4)]
            by_length = [_Case(f"len(node.children) == {n}", items[n]) for n in range(3)]
            return [*by_length, _Case("", (*items[2], "node.children[-1]"), over=rng.random() < 0.5)]
        case "slots":
            cases = [_Case("node.left is None and node.right is None"), _Case("node.right is None", (left,))]
            if rng.random() < 0.5:
                cases = [_Case("node.is_leaf"), _Case("node.right is None", (left,))]
            return [*cases, _Case("node.left is None", (right,)), _Case("", (left, right))]
        case "binary":
            tagged = [_Case(tag, (left, right)) for tag in tags] if rng.random() < 0.6 else []
            return [_Case(rng.choice(("node.is_leaf", "node.left is None"))), *tagged, _Case("", (left, right))]
        case "previous":
            return [_Case("node.prev is None"), _Case("", ("node.prev",))]
        case "mixed":
            leaf = [_Case("node.is_leaf")] if rng.random() < 0.7 else []
            return [*leaf, _Case("node.prev is None", (), True), _Case("", ("node.prev",), True)]


def _program(
    rng: Random,
    case: _Case,
    states: Any,
    form: str,
    call: str,
    weights: Weights,
    dims: tuple[int, ...],
    count: list[int],
    grounded: bool,
) -> Program:
    """A body for one branch that ends in values of the states' shapes.

    In a model that is not `grounded` every branch reads children, so the shapes have to follow from the weights.
    """

    def read(child: str, i: int) -> str:
        whole = call.format(child)
        return {"named": f"{whole}.{states[i][0]}", "tuple": f"{whole}[{i}]", "bare": whole}[form]

    w = Writer(rng, weights, dims, [], count)
    for child in case.children:
        for i, (_, shape) in enumerate(states):
            if i == 0 or rng.random() < 0.8:
                w.several((read(child, i),), [shape], 1.0)
        if rng.random() < 0.2:
            lookup_of = table_row(w, child, (dims[0],))
            w.let(lookup_of, (dims[0],), 2.0)
    if not w.pool or rng.random() < 0.5:
        lookup(w)
    if rng.random() < 0.4:
        field_of_node(w)
    if case.over:
        for _ in range(rng.choice((1, 1, 2, 3))):
            _reduce_children(w, states, read)
    grow(w, rng.choice((1, 2, 3, 4, 5, 7)))
    start = len(w.pool)
    results: list[str] = []
    for _, shape in states:
        text = " + ".join(coerce(w, v, shape, always=not grounded) for v in _operands(w, results))
        copied = [v for v in w.pool[:start] if v.shape == shape and v.size <= 1]
        if copied and results and grounded and rng.random() < 0.1:
            # A child's state, or a row of a table, passed on as it is.
            text = rng.choice(copied).text
        else:
            text = squash(rng, text, shape)
        results.append(w.several((text,), [shape], 1.0)[0].text)
    return _reading_all(w, case, Program(tuple(w.lets), tuple(results)).without_unused(), states[0][1])


def _operands(w: Writer, results: list[str]) -> list[Value]:
    """What a state is computed from: late values, which depend on much; the state before it, now and then."""
    late = w.pool[-6:] if len(w.pool) > 6 else w.pool
    chosen = w.rng.sample(late, min(len(late), w.rng.choice((1, 2, 2, 3))))
    return [v for v in chosen if v.text not in results or w.rng.random() < 0.5] or chosen[:1]


def _reading_all(w: Writer, case: _Case, program: Program, shape: Shape) -> Program:
    """`program`, with terms added to its first state so that it recurses into every child it may recurse into.

    A child the model never recurses into is no relation of the model, and `node.is_leaf` would not see it.
    """
    text = "\n".join(line for each in program.body for line in each.lines(False))
    unread = [f"f({child}" for child in case.children if f"f({child}" not in text]
    missing = [i for i in w.lets if any(call in "\n".join(i.lines(False)) for call in unread)]
    if case.over and "f(k" not in text:
        missing += [i for i in w.lets if isinstance(i, Over)][:1]
    if not missing:
        return program
    terms = [coerce(w, Value(i.names[0], i.shapes[0]), shape) for i in missing]
    name = w.fresh()
    body = (*w.lets, Let((name,), f"cortex.tanh({' + '.join([program.results[0], *terms])})", (shape,)))
    return Program(body, (name, *program.results[1:])).without_unused()


def _reduce_children(w: Writer, states: Any, read: Callable[[str, int], str]) -> None:
    """One reduction over the children: of a state, or of something computed per edge."""
    rng = w.rng
    body, result = _per_child(w, states, read)
    fn: Reduction = rng.choice(("sum", "sum", "sum", "mean", "max", "min", "softmax"))
    scores: tuple[Let, ...] = ()
    score = ""
    shape = result.shape
    if fn == "softmax":
        scores, value = _per_child(w, states, read)
        if value.shape not in ((), shape):
            extra = Let((w.fresh(),), f"cortex.mean({value.text})", ((),))
            scores, value = (*scores, extra), Value(extra.names[0], ())
        score = value.text
    name = w.fresh()
    size = result.size * (4 if fn == "sum" else 1)
    w.lets.append(Over(name, fn, body, result.text, shape, scores, score))
    w.pool.append(Value(name, shape, size))
    if size > 4:
        w.let(f"cortex.tanh({name})", shape, 1)


def _per_child(w: Writer, states: Any, read: Callable[[str, int], str]) -> tuple[tuple[Let, ...], Value]:
    """A program per child, and its result; often just one of the child's states."""
    rng = w.rng
    at = [Value(read("k", i), shape) for i, (_, shape) in enumerate(states)]
    if rng.random() < 0.35:
        return (), rng.choice(at)
    if rng.random() < 0.3:
        at.append(Value(table_row(w, "k", (w.dims[0],)), (w.dims[0],)))
    outer = [v for v in w.pool if rng.random() < 0.3]
    inner = Writer(rng, w.weights, w.dims, [], w.count)
    for v in at:
        if rng.random() < 0.8 or not inner.pool:
            inner.several((v.text,), [v.shape], v.size)
    inner.pool = outer + inner.pool
    before = len(inner.lets)
    grow(inner, rng.choice((1, 1, 2, 3)), leave_out=(lookup, field_of_node))
    lets = tuple(x for x in inner.lets if isinstance(x, Let))
    if len(lets) == before:
        return lets, Value(lets[-1].names[-1], lets[-1].shapes[-1])
    kept = Program(lets, (lets[-1].names[-1],)).without_unused()
    return tuple(x for x in kept.body if isinstance(x, Let)), Value(lets[-1].names[-1], lets[-1].shapes[-1], 2.0)


def coerce(w: Writer, x: Value, shape: Shape, always: bool = False) -> str:
    """An expression of the given shape computed from `x`; with `always`, a weight takes part whatever its shape."""
    if x.shape == shape and not always:
        return x.text
    draw = w.weights.draw
    match len(x.shape), len(shape):
        case 0, _:
            return f"{x.text} * {draw(shape)}"
        case 1, 0:
            return f"cortex.dot({draw(x.shape, x.shape[0])}, {x.text})"
        case 1, 1:
            return f"{draw((*shape, *x.shape), x.shape[0])} @ {x.text}"
        case 1, _:
            a, b = shape
            return f"cortex.outer({draw((a, x.shape[0]), x.shape[0])} @ {x.text}, {draw((b,))})"
        case 2, 0:
            return f"cortex.mean({x.text})"
        case 2, 1:
            row = draw((shape[0], x.shape[1]), x.shape[1])
            return f"{row} @ ({draw((x.shape[0],), x.shape[0])} @ {x.text})"
        case _:
            left, right = draw((shape[0], x.shape[0]), x.shape[0]), draw((x.shape[1], shape[1]), x.shape[1])
            return f"{left} @ {x.text} @ {right}"


def source(m: RandomModel, *, over_none: bool = False) -> str:
    """The model as Python; with `over_none`, reductions over children say what they give over none (for PyTorch)."""
    lines = ["@cortex.model", f"def f(node{'' if m.closure else ', w'}):"]
    for i, branch in enumerate(m.branches):
        keyword = "if" if i == 0 else "elif"
        indent = "    "
        if branch.condition:
            lines.append(f"    {keyword} {branch.condition}:")
            indent = "        "
        elif i:
            lines.append("    else:")
            indent = "        "
        lines += [indent + line for each in branch.program.body for line in each.lines(over_none)]
        lines.append(f"{indent}return {_returned(m, branch.program.results)}")
    return "\n".join(lines) + "\n"


def compilable(m: RandomModel) -> Any:
    """The model for `cortex.compile`; arrays it closes over have the names of the weights."""
    return execute(m, source(m), {"cortex": cortex}, m.arrays(1.0) if m.closure else {})


def execute(m: RandomModel, text: str, names: dict[str, Any], weights: dict[str, Any]) -> Any:
    """The function `f` of a source text; the text is kept where tracebacks look for it."""
    file = f"<random model {m.seed}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    namespace: dict[str, Any] = {**names, **weights}
    exec(compile(text, file, "exec"), namespace)
    return namespace["f"]


def _returned(m: RandomModel, results: tuple[str, ...]) -> str:
    match m.form:
        case "named":
            return f"cortex.state({', '.join(f'{s}={r}' for (s, _), r in zip(m.states, results, strict=True))})"
        case "tuple":
            return f"({', '.join(results)},)"
        case "bare":
            return results[0]


def shrink(m: RandomModel, fails: Callable[[RandomModel], bool]) -> RandomModel:
    """A smaller model that still fails: instructions become constants wherever that keeps failure and relations."""
    relations = _relations(m)
    changed = True
    while changed:
        changed = False
        for b, branch in enumerate(m.branches):
            for i, each in enumerate(branch.program.body):
                if isinstance(each, Let) and re.fullmatch(r"cortex.full\([^)]*\), 0.3\)", each.text):
                    continue
                smaller = _with_constant(m, b, i, each)
                if _relations(smaller) == relations and fails(smaller):
                    m, changed = smaller, True
                    break
            if changed:
                break
    return m


def _relations(m: RandomModel) -> set[str]:
    return set(re.findall(r"\bf\((node\.\w+|k)", source(m)))


def _with_constant(m: RandomModel, b: int, i: int, each: Instruction) -> RandomModel:
    branch = m.branches[b]
    constants = tuple(Let((n,), f"cortex.full({s}, 0.3)", (s,)) for n, s in zip(each.names, each.shapes, strict=True))
    body = (*branch.program.body[:i], *constants, *branch.program.body[i + 1 :])
    program = Program(body, branch.program.results).without_unused()
    return replace(m, branches=(*m.branches[:b], Branch(branch.condition, program), *m.branches[b + 1 :]))
