"""RA as text: one line per let, the way a paper would write it.

    kind inner: the node is not a leaf
      for k in children:
        h_k: f32[256] = k.h
      s: f32[256] = sum(h_k over children)
      i: f32[256] = sigmoid(w.U[0:256, :] @ s + w.b)

Parameters, fields and constants, and views of parameters, are written where they are used instead of getting a
line; everything else is one let per line. Lets that are computed per edge stand under a `for`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import assert_never

from cortex.ra import ir
from cortex.ra.shapes import terms

INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "eq": "==", "ne": "!=", "and": "and", "or": "or",
}  # fmt: skip
_REDUCE = {"add": "sum", "max": "max", "min": "min"}


def show(m: ir.Model) -> str:
    """The whole model as text."""
    lines = [f"model {m.name}"]
    lines += [f"  param {p.name}: {show_type(p.type)}{'' if p.is_finite else ', not finite'}" for p in m.params]
    for f in m.fields:
        limit = "" if f.limit is None else f" < {f.limit}"
        lines.append(f"  field {f.name}: {show_type(f.type)}{limit}")
    lines += [f"  child {s}" for s in m.slots]
    lines += [f"  children {r}" for r in m.lists]
    lines += [f"  state {s.name}: {show_type(s.type)}" for s in m.states]
    for p in m.positions:
        lines.append(f"  positions {p.name}: the items of {p.relation}{'' if p.is_forward else ', from the last'}")
    if m.batching != "height":
        lines.append(f"  batching {m.batching}")
    if m.dedup:
        lines.append("  dedup")
    if not m.inputs_first:
        lines.append("  inputs inside")
    for d in m.derived:
        lines += ["", f"derived {d.name}", *_body(d.lets, (d.result,)), f"  return {d.result}"]
    for t in m.tables:
        lines += ["", f"tables {', '.join(t.params)}: every {t.field}", show_kind(t.kind, t.params)]
    for kind in m.kinds:
        lines += ["", show_kind(kind, tuple(s.name for s in m.states))]
    if m.finish is not None:
        lines += ["", "finish: every node, after the recursion", *_body(m.finish.lets, m.finish.results)]
        lines.append(_returned(tuple(s.name for s in m.finish.states), m.finish.results))
    return "\n".join(lines) + "\n"


def show_kind(kind: ir.Kind, states: tuple[str, ...]) -> str:
    """One kind as text; `states` names its results."""
    if kind.is_within:
        return f"kind {kind.name}: {kind.variant_of}, computed by a node above"
    shared = "" if kind.own_group else ", shares groups"
    of = f"{kind.variant_of}, " if kind.variant_of else ""
    names = [*states, *(f"{_path(child.path)}.{s}" for child in kind.inlined for s in states)]
    results = (*kind.results, *(r for child in kind.inlined for r in child.results))
    body = _body(kind.lets, results)
    head = f"kind {kind.name}: {of}{show_guard(kind.guard)}{shared}"
    return "\n".join([head, *body, _returned(tuple(names), results)])


def show_guard(guard: tuple[ir.Fact, ...]) -> str:
    """A guard in words."""
    return ", ".join(_fact(fact) for fact in guard) or "any node"


def show_type(t: ir.TensorType) -> str:
    """A type, as in f32[3, 4]; a scalar has no brackets."""
    return f"{t.dtype}[{', '.join(map(str, t.shape))}]" if t.shape else t.dtype


def _returned(states: tuple[str, ...], results: tuple[str, ...]) -> str:
    return "  return " + ", ".join(f"{s} = {r}" for s, r in zip(states, results, strict=False))


def _body(lets: tuple[ir.Let, ...], results: tuple[str, ...]) -> list[str]:
    texts: dict[str, str] = {}
    shapes = {let.name: let.type.shape for let in lets}
    leaves: set[str] = set()
    lines = []
    over: str | None = None
    for let in lets:
        text = _op(let.op, texts, shapes)
        if let.name not in results and _is_inline(let.op, leaves):
            texts[let.name] = text
            leaves.add(let.name)
            continue
        texts[let.name] = let.name
        if let.over is not None and let.over != over:
            lines.append(f"  for k in {let.over}:")
        over = let.over
        indent = "  " if over is None else "    "
        lines.append(f"{indent}{let.name}: {show_type(let.type)} = {text}")
    return lines


def _is_inline(op: ir.Op, leaves: set[str]) -> bool:
    match op:
        case ir.Param() | ir.Fill():
            return True
        case ir.Field(_, path):
            return not path
        case ir.Slice(x) | ir.Transpose(x):
            return x in leaves
        case _:
            return False


def _op(op: ir.Op, names: Mapping[str, str], shapes: Mapping[str, tuple[int, ...]]) -> str:
    # A name that is not defined is shown as it is: broken IR must print too.
    def of(x: str) -> str:
        return names.get(x, x)

    match op:
        case ir.Param(name):
            return f"w.{name}"
        case ir.Field(name, path) | ir.State(name, path):
            return f"{_path(path)}.{name}"
        case ir.Arity(name):
            return f"len(node.{name})"
        case ir.Fill(value, shape):
            return f"{value!r}" if not shape else f"full({_tuple(shape)}, {value!r})"
        case ir.Unary("neg", x):
            return f"-{of(x)}"
        case ir.Unary(fn, x):
            return f"{fn}({of(x)})"
        case ir.Binary(fn, x, y):
            return f"{of(x)} {INFIX[fn]} {of(y)}" if fn in INFIX else f"{fn}({of(x)}, {of(y)})"
        case ir.Where(cond, x, y):
            return f"where({of(cond)}, {of(x)}, {of(y)})"
        case ir.Cast(x, dtype):
            return f"{dtype}({of(x)})"
        case ir.Contract(spec, x, y):
            tx, ty, out = terms(spec)
            matmul = (tx[-1:], out) == (ty[:1], tx[:-1] + ty[1:]) and len(tx) <= 2 and len(ty) <= 2 and tx
            return f"{of(x)} @ {of(y)}" if matmul else f'einsum("{spec}", {of(x)}, {of(y)})'
        case ir.Reduce(fn, x, axes):
            return f"{_REDUCE[fn]}({of(x)}, axis={_tuple(axes)})"
        case ir.OverChildren(fn, x, name):
            return f"{_REDUCE[fn]}({of(x)} over {name})"
        case ir.Concat(xs, axis):
            return f"concat({', '.join(of(x) for x in xs)}, axis={axis})"
        case ir.Slice(x, ranges):
            return f"{of(x)}[{', '.join(_ranges(ranges, shapes.get(x, ())))}]"
        case ir.Reshape(x, shape):
            return f"reshape({of(x)}, {_tuple(shape)})"
        case ir.Transpose(x, perm):
            return f"{of(x)}.T" if perm == (1, 0) else f"transpose({of(x)}, {_tuple(perm)})"
        case ir.Broadcast(x, shape):
            return f"broadcast({of(x)}, {_tuple(shape)})"
        case ir.Lookup(table, index):
            return f"{of(table)}[{of(index)}]"
        case _:
            assert_never(op)


def _ranges(ranges: tuple[tuple[int, int, int], ...], shape: tuple[int, ...]) -> Iterable[str]:
    for axis, (start, stop, step) in enumerate(ranges):
        if shape[axis : axis + 1] == (stop,) and (start, step) == (0, 1):
            yield ":"
        else:
            yield f"{start}:{stop}" + (f":{step}" if step != 1 else "")


def _path(path: tuple[ir.Hop, ...]) -> str:
    text = "node"
    for hop in path:
        match hop:
            case ir.Slot(name):
                text += f".{name}"
            case ir.Item(name, index):
                text += f".{name}[{index}]"
            case ir.Each():
                text = "k"
            case _:
                assert_never(hop)
    return text


def _fact(fact: ir.Fact) -> str:
    answer = fact.answer
    match fact.test:
        case ir.IsLeaf(path):
            subject = _path(path) if path else "the node"
            return f"{subject} is a leaf" if answer else f"{subject} is not a leaf"
        case ir.IsAboveLeaves(path):
            return f"{'all' if answer else 'not all'} children of {_path(path) if path else 'the node'} are leaves"
        case ir.IsNone(name, path):
            return f"{_path(path)}.{name} is {'None' if answer else 'not None'}"
        case ir.Length(name, path):
            return f"len({_path(path)}.{name}) is {answer}"
        case ir.HasLength(name, count, path):
            return f"len({_path(path)}.{name}) {'==' if answer else '!='} {count}"
        case ir.Counts(name, relation, path):
            return f"{_path(path)}.{name} {'==' if answer else '!='} len({_path(path)}.{relation})"
        case ir.Equals(name, value, path):
            return f"{_path(path)}.{name} {'==' if answer else '!='} {value!r}"
        case ir.Compares(name, fn, bound, path):
            question = f"{_path(path)}.{name} {INFIX[fn]} {bound!r}"
            return question if answer else f"not {question}"
        case ir.Value(name, path):
            return f"{_path(path)}.{name} is {answer!r}"
        case _:
            assert_never(fact.test)


def _tuple(xs: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, xs))}{',' if len(xs) == 1 else ''})"
