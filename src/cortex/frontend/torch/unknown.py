"""What other calls leave behind: nothing can be computed from it.

Each call is traced by itself. Where calls change something that outlives them (an attribute of a module, a global name,
a collection that they pass along), a trace finds an `Unknown` there, or a collection that holds one. It may be changed
further and never looked at, as a counter for a log is; whatever looks at it is refused.
"""

from __future__ import annotations

from typing import Any, NoReturn

from cortex.frontend.spans import fail
from cortex.frontend.torch.collections_passed import FRESH
from cortex.frontend.torch.counts import counted
from cortex.frontend.torch.identity import NodeId
from cortex.frontend.torch.keyed import is_node_of_call
from cortex.frontend.torch.node_lists import NodeList, NodeTuple
from cortex.frontend.torch.standins import is_stand_in

QUIET = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "radd", "rsub", "rmul", "rtruediv", "rfloordiv", "rmod",
    "rpow", "iadd", "isub", "imul", "itruediv", "neg", "pos", "abs",
)  # fmt: skip
"""What counters are changed by: the result is as unknown."""
LOUD = (
    "bool", "int", "float", "index", "len", "iter", "getitem", "setitem", "contains", "call", "eq", "ne", "lt", "le",
    "gt", "ge", "matmul", "rmatmul", "round", "next", "enter", "str", "format",
)  # fmt: skip


class Unknown:
    """The content of `where` once other calls may have changed it."""

    def __init__(self, where: str) -> None:
        self._cortex_where = where

    def _cortex_refuse(self) -> NoReturn:
        raise fail(
            f"{self._cortex_where} is read here, and calls on other nodes or earlier requests change it. Each call is "
            "computed by itself, so what they leave there is not known. Return it, store it on the node (node.h = h) "
            "and read it from there, or pass it as an argument."
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        self._cortex_refuse()

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"<unknown {self._cortex_where}>"

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Refuse, whichever function of torch it is."""
        refuse_unknown((args, kwargs))


def _quiet(self: Unknown, *others: object) -> Any:
    if any(hasattr(type(x), "__torch_function__") and not isinstance(x, Unknown) for x in others):
        self._cortex_refuse()
    return Unknown(self._cortex_where)  # another one: it has been changed


def _loud(self: Unknown, *_: object) -> Any:
    self._cortex_refuse()


for _name in QUIET:
    setattr(Unknown, f"__{_name}__", _quiet)
for _name in LOUD:
    setattr(Unknown, f"__{_name}__", _loud)


def refuse_unknown(x: Any) -> None:
    """Refuse an `Unknown` anywhere in arguments."""
    if type(x) is Unknown:
        x._cortex_refuse()
    if type(x) in (list, tuple, dict):
        for part in x.values() if isinstance(x, dict) else x:
            refuse_unknown(part)


class Memo(dict[Any, Any]):
    """A dictionary that other calls have put their results in; knows what it was asked for.

    What they put there for their own nodes is not looked for here. Under any other key, theirs could be found.
    """

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[Any] = []

    def _ask(self, key: object) -> None:
        self.asked.append(key)
        _refuse_other_keys(self, key)

    def __contains__(self, key: object) -> bool:
        self._ask(key)
        return super().__contains__(key)

    def __getitem__(self, key: Any) -> Any:
        if dict.__contains__(self, key):
            _refuse_other_keys(self, key)
        else:
            self._ask(key)
        return super().__getitem__(key)

    def get(self, key: Any, default: Any = None) -> Any:
        """As of a dictionary."""
        self._ask(key)
        return super().get(key, default)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """As of a dictionary."""
        self._ask(key)
        return super().setdefault(key, default)

    def pop(self, key: Any, *default: Any) -> Any:
        """As of a dictionary."""
        self._ask(key)
        return super().pop(key, *default)


class Visited(set[Any]):
    """A set that other calls have put their nodes in; knows what it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[Any] = []

    def __contains__(self, key: object) -> bool:
        self.asked.append(key)
        _refuse_other_keys(self, key)
        return super().__contains__(key)


def _refuse_other_keys(collection: Memo | Visited, key: object) -> None:
    """Refuse to look for anything but a node, its `id`, or a tuple with one of these."""
    if type(key) is Unknown or any(map(is_key_of_node, key if isinstance(key, tuple) else (key,))):
        return
    where = next((x._cortex_where for x in set(collection) if type(x) is Unknown), "a collection")
    raise fail(
        f"{where} is looked into for something else than a node, and calls on other nodes or earlier requests put "
        "things there. Each call is computed by itself, so what they leave there is not known. Look for the node, or "
        "for id(node), or store what is to be found on the node (node.h = h)."
    )


def is_key_of_node(key: object) -> bool:
    """Is this what stands for a node that the trace has reached, or its `id`?"""
    return isinstance(key, NodeId) or is_stand_in(key) or is_node_of_call(key)


def blurred(kind: type, where: str) -> Any:
    """A collection of which nothing is known."""
    made: Any = Memo() if kind is dict else Visited() if kind is set else kind()
    blur(made, where)
    return made


def blur(collection: Any, where: str) -> None:
    """Others may have added to the collection."""
    if any(type(x) is Unknown for x in collection):
        return
    unknown = Unknown(where)
    match collection:
        case dict():
            collection[unknown] = unknown
        case list():
            collection.append(unknown)
        case _:
            collection.add(unknown)


def is_added_to(x: Any) -> bool:
    """Is this a list of which nothing was known, to whose end something has been added since?"""
    return type(x) is list and len(x) > 1 and type(x[0]) is Unknown and all(type(item) is not Unknown for item in x[1:])


def known_length(x: Any) -> int:
    """What `len` means in the user's code: the length of a collection that others have added to is not known."""
    if isinstance(x, FRESH):
        for item in x:
            if isinstance(item, Unknown):
                item._cortex_refuse()
    return counted(x) if isinstance(x, NodeList | NodeTuple) else len(x)
