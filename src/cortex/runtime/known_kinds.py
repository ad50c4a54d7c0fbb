"""Where an executable has its kinds of nodes from: a model that is traced, or one that was and cannot be any more."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from cortex.errors import StructureError
from cortex.frontend.arity.lengths import CheckedLengths
from cortex.frontend.beyond import Beyond
from cortex.frontend.fields import Accessors
from cortex.frontend.torch.calls import Arguments, CallNode
from cortex.frontend.unseen import ABSENT, attribute_of, refuse_unseen_children
from cortex.frontend.weights import Weights
from cortex.ra.ir import Fact, Model
from cortex.runtime.unknown_kind import missing_in_dictionary, why_unknown

if TYPE_CHECKING:
    from cortex.frontend.trace import Trace

Kinds: TypeAlias = "Trace | KnownKinds"


class KnownKinds:
    """The kinds that were known when a model was saved. There is no code of the model that others could come from."""

    explores = True
    is_partial = False
    version = (0, 0)
    checks = 0

    def __init__(
        self,
        m: Model,
        checked: Sequence[CheckedLengths | None],
        weights: Weights,
        accessors: Accessors,
        roots: Callable[[Iterable[Any]], list[Any]] = list,
    ) -> None:
        self.weights = weights
        self.accessors = accessors
        self._model = m
        self._checked = tuple(checked)
        self._roots = roots
        self.starts_from_nodes = roots is list

    @property
    def name(self) -> str:
        """The name of the model."""
        return self._model.name

    @property
    def known_kinds(self) -> int:
        """How many kinds there are."""
        return len(self._model.kinds)

    def model(self) -> Model:
        """The model as it was traced."""
        return self.weights.with_promises(self._model)

    def in_time(self, work: str) -> AbstractContextManager[None]:
        """Take as long as it takes: no kinds are added."""
        return nullcontext()

    def per_arity(self) -> list[str]:
        """Nothing: why kinds are for one number of children is known where the model was traced."""
        return []

    def checked_lengths(self) -> list[tuple[tuple[Fact, ...], CheckedLengths | None]]:
        """For each kind its guard, and the numbers of children that it is for if it is of any arity."""
        return [(kind.guard, checked) for kind, checked in zip(self._model.kinds, self._checked, strict=True)]

    def check(self, nodes: Sequence[Any]) -> list[Any]:
        """Nothing can be checked any more: all of the nodes are left for `see`."""
        return list(nodes)

    def check_ahead(self) -> None:
        """Nothing can be checked any more."""

    def roots(self, requests: Iterable[Any]) -> list[Any]:
        """The nodes that requests start from."""
        return self._roots(requests)

    def see(self, roots: Iterable[Any], names: Sequence[str] | None = None) -> NoReturn:
        """Refuse the first of the nodes, which is of no known kind."""
        node = next(iter(roots))
        self._refuse_unseen(node)
        place = names[0] if names else "root"
        seen = node.node if isinstance(node, CallNode) else node
        what = "the call" if isinstance(seen, Arguments) else f"a {type(seen).__name__}"
        missing = missing_in_dictionary(self._model, node, self.accessors)
        if missing:
            raise _located(f"at {place}, {missing}.")
        why = ""
        with suppress(Exception):  # of the user's objects; the kind is unknown whatever they raise
            try:
                why = why_unknown(self._model, self._checked, node, self.accessors)
            except Beyond as has_none:
                why = has_none.message.partition(",")[0]
        raise _located(
            f"at {place}, {what} is of a kind of node that the saved model has no code for"
            f"{f' ({why})' if why else ''}, and the Python code that it could be traced from is not in the file. "
            "Compile the model with examples that have such nodes, examples=[tree, ...], and save it again."
        )

    def _refuse_unseen(self, node: Any) -> None:
        """Refuse a node whose children have other names than the model's; a better error than that of its kind."""
        m = self._model
        relations = self.accessors.relations([*m.slots, *m.lists])
        known = [a for _, a, _ in relations if attribute_of(node, a) is not ABSENT]
        unknown = [relation for relation in relations if relation[1] not in known]
        refuse_unseen_children([node], unknown, known, [f.name for f in m.fields])


def _located(message: str) -> StructureError:
    error = StructureError(message)
    error.says_where = True
    return error
