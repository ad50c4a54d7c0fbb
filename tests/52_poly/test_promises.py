"""What `lower.promises` promises, the linearizer keeps: every promise is evaluated on real linear forms."""

from __future__ import annotations

import sys
from itertools import product
from pathlib import Path

import pytest

from cortex import zoo
from cortex.ilir.ir import Promise
from cortex.ir.node import walk
from cortex.ir.scalar import Index, Var
from cortex.lower.linear_form import LinearForm
from cortex.runtime import linearize

sys.path.insert(0, str(Path(__file__).parent))
from poly_evaluate import evaluate
from poly_programs import subject


def violations(p: Promise, form: LinearForm, extents: dict[str, int]) -> list[dict[str, int]]:
    """Values of its variables at which a promise does not hold."""
    ranges = []
    for name in p.over:
        uses = [n.fn for e in (*p.given, p.then) for n in walk(e) if isinstance(n, Index) and n.args == (Var(name),)]
        ranges.append(range(max(extents[fn] for fn in uses)))
    wrong = []
    for choice in product(*ranges):
        values = form.sizes | dict(zip(p.over, choice, strict=True))
        # In order and only as far as they hold: a later condition may read arrays where an earlier one fails.
        holds = all(evaluate(e, values, form.arrays) for e in p.given)
        if holds and not evaluate(p.then, values, form.arrays):
            wrong.append(values)
    return wrong


@pytest.mark.parametrize("name", zoo.ENTRIES)
def test_the_linearizer_keeps_every_promise(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linearize, "WINDOW_NODES", 8)
    it = subject(name)
    f, form = it.funcs["passes"], it.linear_form()
    extents = {i.name: evaluate(i.extent, form.sizes, {}) for i in f.index_functions}
    assert f.promises
    for p in f.promises:
        assert violations(p, form, extents) == [], p


def test_a_promise_that_is_not_kept_is_noticed() -> None:
    it = subject("tree_rnn")
    f, form = it.funcs["lowered"], it.linear_form()
    arrays = {name: values.copy() for name, values in form.arrays.items()}
    arrays["group_len"][0] += 1
    changed = LinearForm(form.sizes, arrays, form.fields)
    extents = {i.name: evaluate(i.extent, form.sizes, {}) for i in f.index_functions}
    assert any(violations(p, changed, extents) for p in f.promises)
