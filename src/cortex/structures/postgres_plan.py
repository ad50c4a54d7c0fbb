"""Query plans of PostgreSQL, as `EXPLAIN (FORMAT JSON)` prints them, walked as they are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cortex.errors import StructureError
from cortex.frontend.fields import Offered
from cortex.structures.json_tree import children_at, value_at
from cortex.structures.meaning import Given, Meaning, by_key
from cortex.structures.source import shown, text_of

OFFERED = {
    "op": "Node Type",
    "relation": "Relation Name",
    "relationship": "Parent Relationship",
    "join_type": "Join Type",
    "rows": "Plan Rows",
    "width": "Plan Width",
    "cost": "Total Cost",
    "startup_cost": "Startup Cost",
}
_plans = children_at("Plans")


def postgres_plans(*, fields: Mapping[str, Given] | None = None) -> Meaning:
    """What `node.children`, `node.op`, `node.rows`, ... are on a node of a plan; see `OFFERED`.

    `fields` are more: for each of the model's names the key ("Actual Rows"), or a function of the node's dictionary.
    """
    offered = by_key(OFFERED, value_at)
    return Meaning(children=_children, fields=Offered(offered, by_key(fields, value_at)))


def _children(node: Any) -> list[Any]:
    if isinstance(node, dict) and "Node Type" not in node:
        raise StructureError(
            f"a dictionary with the keys {shown(sorted(map(str, node)))} is no node of a plan, which has a 'Node "
            "Type'; give plans as read_explain(output) makes them"
        )
    return _plans(node)


def read_explain(source: str | Path | list[Any] | dict[str, Any]) -> list[dict[str, Any]]:
    """The root of each plan in the output of `EXPLAIN (FORMAT JSON)`: a text, a file (a Path), or parsed already."""
    statements = source
    if isinstance(source, str | Path):
        text, name = text_of(source, "read_explain")
        try:
            statements = json.loads(text)
        except ValueError as error:
            raise StructureError(f"read_explain: {name}: {error}; it must be JSON") from None
        except RecursionError:
            raise StructureError(
                f"read_explain: {name}: it is nested too deeply for Python's json; parse it by other means, and give "
                "what that makes: dictionaries of any depth are walked"
            ) from None
    found = []
    for i, statement in enumerate(statements if isinstance(statements, list) else [statements]):
        plan = statement.get("Plan") if isinstance(statement, dict) else None
        if not isinstance(plan, dict):
            raise StructureError(
                f"read_explain: statement {i} is {shown(statement)[:60]}, which has no 'Plan'; give what EXPLAIN "
                "(FORMAT JSON) prints"
            )
        found.append(plan)
    return found
