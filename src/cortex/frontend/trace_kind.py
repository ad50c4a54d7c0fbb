"""Tracing one kind: one call of the model function with a stand-in node."""

from __future__ import annotations

from cortex.errors import ModelError
from cortex.frontend.arity.supposing import supposing
from cortex.frontend.beyond import Beyond
from cortex.frontend.builder import Builder, Value
from cortex.frontend.decision import Traced
from cortex.frontend.facts import Facts, Shapes
from cortex.frontend.field_shapes import check_shapes
from cortex.frontend.kind_names import kind_name
from cortex.frontend.knowledge import Knowledge
from cortex.frontend.model import Results
from cortex.frontend.signals import Impossible, MissingAttribute, NothingReduced
from cortex.frontend.state_form import StateForm
from cortex.ra.ir import Length

MOST_MORE = 8
"""A node is supposed to have so many more children, to see what a reduction gets that has nothing to reduce now."""


def trace_kind(k: Knowledge, facts: Facts) -> Traced:
    """The kind of the nodes for which `facts` gives its answers. Fixes the model's states if it is the first one."""
    form, values, b = run(k, facts)
    of_all = k.model.states()
    if of_all is not None:
        k.states = of_all
    elif k.states is None:
        k.states, k.first_kind = form, kind_name(facts.guard())
    else:
        values = _agree(k, k.states, form, values, facts)
    results = {name: values[name].name for name in k.states.names if name in values}
    every = (*results.values(), *(row for rows in b.rows.values() for row in rows))
    check_shapes(b, every)
    return Traced(facts.guard(), b.reachable(every), results, shapes=facts.shapes, collects=b.collects, rows=b.rows)


def run(k: Knowledge, facts: Facts) -> tuple[StateForm, Results, Builder]:
    """Call the model function. Where a reduction gets nothing, it is run for more children first, to see the shape."""
    try:
        return _run(k, facts)
    except NothingReduced:
        expected = _shapes_with_more(k, facts)
    facts.start_over(expected)
    try:
        return _run(k, facts)
    except NothingReduced as nothing:
        raise nothing.error from None


def _run(k: Knowledge, facts: Facts) -> tuple[StateForm, Results, Builder]:
    try:
        return k.model.run(k, facts)
    except ModelError as error:
        # A new error, raised here: its traceback does not lead through the front end.
        kind = type(error) if isinstance(error, Beyond) else ModelError
        raise kind(error.message, error.span or k.definition) from None


def _shapes_with_more(k: Knowledge, facts: Facts) -> Shapes:
    """What the reductions of the model get for a node like this with a few more children in its lists."""
    lengths, found = _lengths(facts), facts.expected
    for more in range(1, MOST_MORE + 1):
        oracle = supposing(facts.oracle, {name: n + more for name, n in lengths.items()}, imagined=True)
        other = Facts(oracle, expected=found)
        try:
            _run(k, other)
            return other.shapes
        except NothingReduced:
            continue
        except (Exception, Impossible, MissingAttribute):
            break
        finally:
            found = {**found, **other.shapes}
            lengths = {**_lengths(other), **lengths}
    return found


def _lengths(facts: Facts) -> dict[str, int]:
    """How many children there are in the lists of the node, as far as it was asked."""
    return {t.name: n for t, n in facts.known.items() if isinstance(t, Length) and not t.path and type(n) is int}


def _agree(
    k: Knowledge, expected: StateForm, form: StateForm, values: dict[str, Value], facts: Facts
) -> dict[str, Value]:
    """Check that the kind returns what the other kinds return."""
    types = dict(zip(form.names, form.types, strict=True))
    if form.form == expected.form and types == dict(zip(expected.names, expected.types, strict=True)):
        return values
    wanted = dict(zip(expected.names, expected.types, strict=True))
    different = [name for name in form.names if types[name] != wanted.get(name)]
    own = tuple(fact for fact in facts.guard() if not isinstance(fact.test, Length))
    span = values[different[0] if different else form.names[0]].let.span
    raise ModelError(
        f"kind '{kind_name(own)}' of model '{k.name}' returns {form.text()}, but kind '{k.first_kind}' "
        f"returns {expected.text()}. All kinds of node must return states of the same names and shapes.",
        span,
    )
