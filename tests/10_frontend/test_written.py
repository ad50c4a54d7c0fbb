"""What code says is read from its source, on every version of Python; without source, the safe answer is given."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any

import pytest

import cortex
from cortex.frontend.absence import has_default
from cortex.frontend.arity.mentions import Mentions, constants_of, mentions
from cortex.frontend.node_identity import first_is, functions_of, refuse_unseen_questions, tells_truth
from cortex.frontend.torch.nested import Nested
from cortex.frontend.torch.rewrite import NAME, rewrite
from cortex.frontend.written import codes, handles_errors, passes_on, running, with_inner, written


def unwritten(text: str) -> FunctionType:
    """A function without source."""
    names: dict[str, Any] = {}
    exec(compile(text, "<unwritten>", "exec"), names)
    found = names["f"]
    assert isinstance(found, FunctionType) and written(found.__code__) is None
    return found


def shown(function: Callable[..., Any]) -> str:
    found = written(function.__code__)
    assert found is not None
    return ast.unparse(found)


def test_functions_and_lambdas_of_one_line() -> None:
    one, two = (lambda x: x + 1), (lambda x: x + 2)
    outer = lambda x: lambda y: y + 3  # noqa: E731
    assert (shown(one), shown(two)) == ("lambda x: x + 1", "lambda x: x + 2")
    assert (shown(outer), shown(outer(0))) == ("lambda x: lambda y: y + 3", "lambda y: y + 3")
    assert shown(shown).startswith("def shown(")


class Seen:
    """Says what is running in its caller."""

    at: Any = None
    handled = False

    def see(self, *_: Any) -> Seen:
        frame = sys._getframe(1)
        Seen.at, Seen.handled = running(frame), handles_errors(frame)
        return self

    __getitem__ = __add__ = __radd__ = see  # type: ignore[assignment]

    @property
    def name(self) -> Any:
        frame = sys._getframe(1)
        Seen.at = running(frame)
        return 1


def test_what_is_running() -> None:
    x = Seen()
    x.see(1)
    assert isinstance(Seen.at, ast.Call) and ast.unparse(Seen.at) == "x.see(1)"
    (
        x.see(1)
        .see(2)
        .see(
            [3, 4],
        )
    )
    assert isinstance(Seen.at, ast.Call) and ast.unparse(Seen.at) == "x.see(1).see(2).see([3, 4])"
    assert x.name
    assert isinstance(Seen.at, ast.Attribute)
    [x[i] for i in range(2)]
    assert isinstance(Seen.at, ast.Subscript)
    list(x + i for i in range(2))  # noqa: C400
    assert isinstance(Seen.at, ast.BinOp)


def test_what_handles_errors() -> None:
    x = Seen()
    try:  # noqa: SIM105
        x.see()
    except AttributeError:
        pass
    assert Seen.handled
    with pytest.raises(ZeroDivisionError):
        x.see(1 / 0 if x.see() is None else x)
        assert not Seen.handled, "a context manager is no handler"
        raise ZeroDivisionError
    try:
        pass
    except AttributeError:
        x.see()
    else:
        x.see()
        assert not Seen.handled
    try:
        pass
    finally:
        x.see()
    assert not Seen.handled
    unwritten("def f(x):\n try:\n  pass\n except ValueError:\n  pass\n x.see()")(x)
    assert Seen.handled, "it may be"
    unwritten("def f(x): x.see()")(x)
    assert not Seen.handled


def test_names_that_are_passed_on() -> None:
    def calls(x: Any) -> Any:
        return float(x.a), [float(y) for y in x]

    def hands_on(x: Any) -> Any:
        return [list(map(float, y)) for y in x]

    def annotates(x: Any) -> Any:
        y: float = float(x)
        return y

    assert not passes_on(calls.__code__, "float") and not passes_on(annotates.__code__, "float")
    assert passes_on(hands_on.__code__, "float") and not passes_on(hands_on.__code__, "int")
    assert passes_on(unwritten("def f(x): return float(x)").__code__, "float")


def none_alone(node: Any) -> Any:
    return node.left is None or (node if node.right is not None else 1)


def two_nodes(node: Any) -> Any:
    return [k for k in node.children if k is not node]


def truth(node: Any) -> Any:
    return node.flag is True


def of_ids(node: Any) -> Any:
    return id(node.left)


def of_class(node: Any) -> Any:
    return any(type(k.left) is Seen for k in node.children)


@pytest.mark.parametrize(("function", "asks"), [(two_nodes, "is not node"), (of_ids, "id"), (of_class, "type(k.left)")])
def test_questions_that_stand_ins_are_not_asked(function: Any, asks: str) -> None:
    with pytest.raises(cortex.ModelError) as refused:
        refuse_unseen_questions(function, "node")
    span = refused.value.span
    assert span is not None and asks in span.text[span.column : span.end]


def test_questions_that_python_may_answer() -> None:
    for function in (none_alone, truth):
        refuse_unseen_questions(function, "node")
    assert list(functions_of(none_alone)) == [none_alone]
    assert first_is(none_alone.__code__) is None and rewrite(none_alone.__code__) is none_alone.__code__
    assert tells_truth(truth.__code__) and not tells_truth(two_nodes.__code__)
    assert any(NAME in inner.co_names for inner in codes(rewrite(two_nodes.__code__)))


def test_identity_without_source() -> None:
    harmless = unwritten("def f(x):\n y = x.a is None\n return y")
    assert first_is(harmless.__code__) is None and rewrite(harmless.__code__) is harmless.__code__
    asks = unwritten("def f(x): return x.left is x.right")
    with pytest.raises(cortex.ModelError, match="its source is not at hand"):
        rewrite(asks.__code__)


def test_numbers_and_operators() -> None:
    def folds(node: Any) -> Any:
        x: int | None = 3 * 700
        return len(node.children) > x

    def formats(node: Any) -> Any:
        return f"{len(node.children)}"

    def shifts(node: Any) -> Any:
        count = len(node.children)
        count >>= 1
        return count

    found = mentions([folds.__code__], [])
    assert found == Mentions((700, 2100)) and 3 in constants_of(folds.__code__)
    assert mentions([formats.__code__], []).periodic and not mentions([formats.__code__], []).divides
    assert mentions([shifts.__code__], []).divides
    assert mentions([unwritten("def f(x): return len(x)").__code__], []).periodic, "it may have any operator"


def test_inner_functions_that_call_themselves() -> None:
    def by_def(node: Any) -> Any:
        def encode(n: Any) -> Any:
            return n.h + encode(n.left)

        return encode(node)

    def by_lambda(node: Any) -> Any:
        encode = lambda n: n.h + encode(n.left)  # noqa: E731
        return encode(node)

    def rebinds(node: Any) -> Any:
        count = 0

        def encode(n: Any) -> Any:
            nonlocal count
            count += 1
            return n.h + encode(n.left)

        return encode(node), count

    nested = Nested()
    for function, is_seen in ((by_def, True), (by_lambda, True), (rebinds, False)):
        assert (nested.seen(function.__code__, {}) is not function.__code__) == is_seen, function.__name__


def test_annotations_and_defaults() -> None:
    def f(x: Any, y: Any = 77) -> int | None:
        z: int | str = x
        return lambda a=88: (a, z, y)

    outer = written(f.__code__)
    assert outer is not None
    values = {x.value for x in with_inner(outer) if isinstance(x, ast.Constant)}
    assert values == {88} and not has_default()
