"""Exceptions that a model raises for a node while it is traced, as users are told of them."""

from __future__ import annotations

from collections.abc import Iterable

from cortex.errors import ModelError, StructureError, excerpt
from cortex.frontend.beyond import Beyond, beyond_at
from cortex.frontend.facts import is_plain
from cortex.frontend.handled import is_of_stand_in, without_stand_ins
from cortex.frontend.knowledge import Knowledge
from cortex.frontend.missing_entry import MissingEntry
from cortex.frontend.signals import MissingAttribute
from cortex.frontend.spans import span_of_error
from cortex.frontend.unseen import no_such_attribute


def raised(k: Knowledge, error: Exception, node: object) -> ModelError | StructureError:
    """The model itself raised an exception."""
    if isinstance(error, MissingEntry):
        return StructureError(error.said)
    said, remedy = said_of(error)
    if isinstance(error, AttributeError) and " has no ." in str(error):
        remedy = " Set it on every node (to None where there is none), or ask before: hasattr(node, ...)."
    return ModelError(
        f"model '{k.model.name}' raised {type(error).__name__} for a {type(node).__name__}: {said}.{remedy}",
        span_of_error(error) or k.definition,
    )


def said_of(error: Exception) -> tuple[str, str]:
    """What an error of Python's says, as users can read it, and what to do about it."""
    said = str(error)
    if isinstance(error, TypeError) and "attribute name must be string" in said:
        return said, " Write the field as a text: getattr(self, str(node.op))."
    if is_of_stand_in(error):
        remedy = " Python's own functions take real values only: write str(node.word), int(node.size) or float(node.x)."
        return without_stand_ins(said), remedy
    return said, ""


def missing(k: Knowledge, error: MissingAttribute) -> StructureError | Beyond:
    """The structure lacks an attribute that the model reads; a number or a list was taken for a node."""
    if is_plain(error.owner) or isinstance(error.owner, list | tuple | dict):
        what = f"a {type(error.owner).__name__} is read as a node is"
        return beyond_at(f"{what}: node.{error.attribute} seemed to lead to nodes.", span_of_error(error))
    source = k.accessors.source(error.attribute)
    if isinstance(source, str) and source != error.attribute:
        return StructureError(no_such_attribute(error.owner, error.attribute, source))
    span = span_of_error(error)
    place = "" if span is None else f"\n\n{excerpt(span)}"
    return StructureError(
        f"the model reads '{error.attribute}' of a {type(error.owner).__name__} that has no such attribute. Set it "
        "(to None where there is none), or say with fields= which attribute or which function of the node it "
        f"is.{place}"
    )


def needs_structure(k: Knowledge, questions: Iterable[str], dropped: Exception | None) -> ModelError:
    """No kind can be traced before there is a structure: because of these questions, or of what was raised."""
    asked = ", ".join(questions)
    reason, span = f" It needs to know {asked}." if asked else "", k.definition
    if not asked and dropped is not None:
        reason = f" It failed with {type(dropped).__name__}: {dropped}."
        span = span_of_error(dropped) or span
    return ModelError(
        f"model '{k.model.name}' cannot be traced without a structure.{reason} Pass examples=[tree, ...] to "
        "cortex.compile, or call the compiled model, which traces it for the first structure it gets.",
        span,
    )
