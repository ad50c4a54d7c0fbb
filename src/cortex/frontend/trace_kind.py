"""Tracing one kind: one call of the model function with a stand-in node."""

from __future__ import annotations

from cortex.errors import ModelError
from cortex.frontend.builder import Builder, Value
from cortex.frontend.decision import Traced
from cortex.frontend.facts import Facts
from cortex.frontend.field_shapes import check_shapes
from cortex.frontend.kind_names import kind_name
from cortex.frontend.knowledge import Knowledge
from cortex.frontend.model import Results
from cortex.frontend.state_form import StateForm


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
    check_shapes(b, tuple(results.values()))
    return Traced(facts.guard(), b.reachable(tuple(results.values())), results)


def trace_form(k: Knowledge, facts: Facts) -> StateForm:
    """Only the form of the states that the kind returns."""
    return run(k, facts)[0]


def run(k: Knowledge, facts: Facts) -> tuple[StateForm, Results, Builder]:
    """Call the model function."""
    try:
        return k.model.run(k, facts)
    except ModelError as error:
        # A new error, raised here: its traceback does not lead through the front end.
        raise ModelError(error.message, error.span or k.definition) from None


def _agree(
    k: Knowledge, expected: StateForm, form: StateForm, values: dict[str, Value], facts: Facts
) -> dict[str, Value]:
    """Check that the kind returns what the other kinds return."""
    types = dict(zip(form.names, form.types, strict=True))
    if form.form == expected.form and types == dict(zip(expected.names, expected.types, strict=True)):
        return values
    wanted = dict(zip(expected.names, expected.types, strict=True))
    different = [name for name in form.names if types[name] != wanted.get(name)]
    span = values[different[0] if different else form.names[0]].let.span
    raise ModelError(
        f"kind '{kind_name(facts.guard())}' of model '{k.name}' returns {form.text()}, but kind '{k.first_kind}' "
        f"returns {expected.text()}. All kinds of node must return states of the same names and shapes.",
        span,
    )
