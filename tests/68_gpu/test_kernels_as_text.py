"""Kernels as text: one small model in both dialects and both forms, and what the pieces of the printer do."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scheduled_for_gpu import of_zoo

from cortex.codegen.gpu.dialect import OPENCL
from cortex.codegen.gpu.expressions import ExpressionPrinter
from cortex.codegen.gpu.generate import Form, generate
from cortex.codegen.gpu.lift_barriers import lift_barriers
from cortex.codegen.gpu.names import Identifiers
from cortex.codegen.gpu.program import DialectName, HostFor, HostIf, Launch
from cortex.codegen.gpu.stretches import stretches
from cortex.codegen.gpu.walk_host import launches
from cortex.ilir.ir import Barrier, Buffer, Case, For, Func, If, Let, LoopKind, Scope, Stmt, Store, Switch
from cortex.ilir.show import show_stmts
from cortex.ilir.verify import verify
from cortex.ir.node import walk
from cortex.ir.scalar import Binary, Cast, Expr, Float, Fma, Index, Int, Load, Select, Unary, Var
from cortex.ir.step import apply
from cortex.passes.pipeline import PASSES, run
from cortex.schedule.alternate import Alternate
from cortex.schedule.gpu_default import Grid
from cortex.schedule.locate import find_loop
from cortex.schedule.parallel import Alone

Golden = Callable[[str, str], None]
N, X = Var("n"), Load("x", (Var("n"),))


@pytest.mark.parametrize("dialect", ["opencl", "cuda"])
@pytest.mark.parametrize("form", ["persistent", "per level"])
def test_a_small_model(dialect: DialectName, form: Form, golden: Golden) -> None:
    grid = Grid(2, (8, 4), 1 << 16 if form == "persistent" else 0)
    program = generate(of_zoo("tree_fc", grid, 8).func, dialect, 2, (8, 4), form)
    golden(f"gpu/tree_fc_{dialect}_{form.replace(' ', '_')}", program.source)
    assert program.persistent is (form == "persistent")
    assert len(program.kernels) == (1 if form == "persistent" else 2)
    # Two panels of 4 columns, one in each work-group: 2*8*4 weights of both children.
    assert [k.local_bytes for k in program.kernels][-1] == (256 if form == "persistent" else 0)


@pytest.mark.parametrize("form", ["persistent", "per level"])
def test_kernels_run_turned_loops_in_one_direction(form: Form) -> None:
    """Their iterations are independent, and nothing is gained where work-groups run them in any order."""
    model = of_zoo("tree_fc", Grid(2, (8, 4)), 8)
    groups = find_loop(model.func, "g", "this test")
    shared = [n.var for n in walk(groups) if isinstance(n, For) and n.kind is LoopKind.PARALLEL]
    at = model.steps.index(Alone())
    turned = apply(model.lowered, (*model.steps[:at], *(Alternate(var, "g") for var in shared), *model.steps[at:]))
    verify(turned)
    assert shared and turned != apply(model.lowered, model.steps)
    texts = {generate(run(PASSES, f), "opencl", 2, (8, 4), form).source for f in (turned, model.func)}
    assert len(texts) == 1


@pytest.mark.parametrize(
    ("e", "text"),
    [
        (Binary("mul", Binary("add", N, Int(1)), Int(-3)), "(n + 1) * -3"),
        (Binary("sub", N, Binary("sub", N, Int(1))), "n - (n - 1)"),
        (Binary("mod", Binary("floordiv", N, Int(3)), Int(4)), "n / 3 % 4"),
        (Unary("neg", Unary("neg", X)), "-(-x[n])"),
        (Unary("neg", Float(-0.5)), "-(-0.5f)"),
        (Float(1e-8), "1e-08f"),
        (Float(float("-inf")), "as_float(0xff800000u)"),
        (Binary("min", X, Float(1.0)), "minimum(x[n], 1.0f)"),
        (Binary("min", N, Int(2)), "min(n, 2)"),
        (Fma(X, X, Unary("round", X)), "fma(x[n], x[n], rint(x[n]))"),
        (Select(Binary("lt", N, Int(2)), X, Float(0.0)), "n < 2 ? x[n] : 0.0f"),
        (Cast(Index("word", (N,)), "f32"), "(float)word[n]"),
        (Cast(Binary("mul", Index("word", (N,)), Int(1000)), "f32"), "(float)((long)word[n] * 1000)"),
        (Cast(Binary("eq", N, Int(2)), "f32"), "(float)(n == 2)"),
        (Unary("not", Binary("and", Binary("ge", N, Int(0)), Binary("eq", N, N))), "!(n >= 0 && n == n)"),
        (Binary("ldexp", X, X), "scale(x[n], x[n])"),
    ],
)  # fmt: skip
def test_expressions(e: Expr, text: str) -> None:
    printer = ExpressionPrinter(OPENCL, Identifiers(), lambda buffer, index: f"{buffer}[n]")
    assert printer(e) == text


def test_names_are_identifiers_of_their_own() -> None:
    name = Identifiers()
    assert name.variable("g") == "g" and name.array("g") == "g_1" and name.variable("g") == "g"
    assert name.array("cell.W") == "cell_W" and name.array("cell_W") == "cell_W_1"
    assert name.array("kernel") == "kernel_1" and name.array("größe") == "gr__e" and name.array("1") == "v1"


def _store(value: int) -> Store:
    return Store("h", (Int(value),), Float(float(value)))


def _kind(kind: int) -> Expr:
    return Binary("eq", Index("kind", (Var("g"),)), Int(kind))


WAIT, ITEMS = Barrier(), Barrier("items")
ARMS: tuple[Stmt, ...] = (
    If(_kind(1), (_store(1), ITEMS, _store(2))),
    If(_kind(2), (_store(3), WAIT, _store(4), ITEMS, _store(5)), ()),
)


def _meaning(body: tuple[Stmt, ...], kinds: dict[int, int]) -> list[int]:
    """The values that are stored, in order."""
    done: list[int] = []

    def value(e: Expr, env: dict[str, int]) -> int:
        match e:
            case Int(number):
                return number
            case Var(name):
                return env[name]
            case Index(_, (argument,)):
                return kinds[value(argument, env)]
            case Binary("eq", x, y):
                return value(x, env) == value(y, env)
            case Unary("not", x):
                return not value(x, env)
            case Select(c, x, y):
                return value(x if value(c, env) else y, env)
            case _:
                raise AssertionError(e)

    def run(body: tuple[Stmt, ...], env: dict[str, int]) -> None:
        for s in body:
            match s:
                case For(var, lo, hi, inner):
                    for i in range(value(lo, env), value(hi, env)):
                        run(inner, {**env, var: i})
                case If(cond, then, orelse):
                    run(then if value(cond, env) else orelse, env)
                case Switch(e, cases):
                    for c in cases:
                        if c.value == value(e, env):
                            run(c.body, env)
                case Let(var, e):
                    env = {**env, var.name: value(e, env)}
                case Store(_, (place,)):
                    done.append(value(place, env))
                case _:
                    pass

    run(body, {})
    return done


LOOP = For("p", Int(0), Var("n2"), (_store(7), ITEMS, Store("h", (Var("p"),), Float(0.0))), LoopKind.PARALLEL)
WITH_LETS = (
    Let(Var("n1"), Int(2)), _store(6), WAIT, Let(Var("n2"), Var("n1")), LOOP, Store("h", (Var("n2"),), Float(0.0)),
)  # fmt: skip


@pytest.mark.parametrize(
    "inner",
    [
        ARMS,
        (*ARMS, _store(6), *ARMS[::-1]),
        (If(_kind(1), ARMS, (_store(9), WAIT, _store(8))),),
        (Switch(Index("kind", (Var("g"),)), (Case(1, (WAIT, _store(1))), Case(2, (_store(2), WAIT, _store(3))))),),
        (If(_kind(2), WITH_LETS),),
    ],
)
def test_no_barrier_is_left_in_a_condition(inner: tuple[Stmt, ...]) -> None:
    body: tuple[Stmt, ...] = (For("g", Int(0), Int(4), inner),)
    lifted = lift_barriers(body)
    held = [n for s in lifted for n in walk(s) if isinstance(n, If | Switch)]
    assert held and not any(isinstance(n, Barrier) for s in held for n in walk(s)), show_stmts(lifted)
    for kinds in ([1, 2, 0, 1], [2, 2, 1, 0]):
        assert _meaning(lifted, dict(enumerate(kinds))) == _meaning(body, dict(enumerate(kinds)))


def test_arms_of_which_one_runs_meet_at_the_same_barriers() -> None:
    assert [s.among for s in lift_barriers(ARMS) if isinstance(s, Barrier)] == ["team", "items"]
    assert sum(isinstance(s, Barrier) for s in lift_barriers((ARMS[0], _store(6), ARMS[1]))) == 3


def test_stretches_between_barriers() -> None:
    let = Let(Var("k"), Index("kind", (Var("g"),)))
    inner = (WAIT, let, _store(1), WAIT, Store("h", (Var("k"),), Float(0.0)))
    groups = For("g", Int(0), Var("num_groups"), (If(_kind(1), inner),))
    f = Func("f", ("num_groups",), (), (Buffer("h", "f32", (Int(9),), Scope.STATE),), (_store(0), groups))
    parts, host = stretches(f, "f")
    assert [p.name for p in parts] == ["f_1", "f_2", "f_3"]
    assert [p.loops for p in parts] == [(), ("g",), ("g",)]
    assert parts[2].body == (let, inner[-1])
    match host:
        case (Launch("f_1"), HostFor("g", Int(0), Var("num_groups"), (HostIf(cond, (Launch("f_2"), Launch("f_3"))),))):
            assert cond == _kind(1)
        case _:
            raise AssertionError(host)


def test_the_host_launches_a_kernel_for_each_level() -> None:
    s = of_zoo("tree_fc", Grid(2, (2, 2)), 8)
    program = generate(s.func, "opencl", 2, (2, 2), "per level")
    called = [(c.kernel.name, dict(c.loops)) for c in launches(program, s.form.sizes, s.form.arrays)]
    inner = np.flatnonzero(s.form.arrays["group_kind"] == 1)
    assert called == [("tree_fc_1", {}), *(("tree_fc_2", {"g": int(g)}) for g in inner)]
