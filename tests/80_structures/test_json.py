"""Nested dictionaries and PostgreSQL's plans, walked as they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from models_of_packages import VOCAB, WEIGHTS, close, labelled, labelled_by, words_everywhere, words_everywhere_by

import cortex
from cortex.errors import ModelError, StructureError
from cortex.structures import hashed, json_trees, postgres_plans, read_explain

# What PostgreSQL 16 prints for a join of two tables, one of them aggregated (EXPLAIN (FORMAT JSON)), shortened.
EXPLAIN = """[{"Plan": {
  "Node Type": "Hash Join", "Parallel Aware": false, "Join Type": "Inner", "Startup Cost": 37.0, "Total Cost": 97.88,
  "Plan Rows": 200, "Plan Width": 16, "Hash Cond": "(a.id = b.id)", "Plans": [
    {"Node Type": "Seq Scan", "Parent Relationship": "Outer", "Relation Name": "a", "Alias": "a",
     "Startup Cost": 0.0, "Total Cost": 32.6, "Plan Rows": 2260, "Plan Width": 8},
    {"Node Type": "Hash", "Parent Relationship": "Inner", "Startup Cost": 34.5, "Total Cost": 34.5, "Plan Rows": 200,
     "Plan Width": 8, "Plans": [
       {"Node Type": "Aggregate", "Strategy": "Hashed", "Parent Relationship": "Outer", "Startup Cost": 30.5,
        "Total Cost": 32.5, "Plan Rows": 200, "Plan Width": 8, "Plans": [
          {"Node Type": "Seq Scan", "Parent Relationship": "Outer", "Relation Name": "b", "Alias": "b",
           "Startup Cost": 0.0, "Total Cost": 25.0, "Plan Rows": 1100, "Plan Width": 8}]}]}]},
  "Settings": {}}]"""
OPS = {"Hash Join": 1, "Seq Scan": 2, "Hash": 3, "Aggregate": 4}
word_id = hashed(VOCAB)


def plans_below(plan: Any) -> list[Any]:
    return list(plan.get("Plans", []))


def test_plans() -> None:
    (plan,) = read_explain(EXPLAIN)
    meaning = postgres_plans(
        fields={"label": lambda p: OPS[p["Node Type"]], "word": lambda p: word_id(p["Relation Name"])}
    )
    out = cortex.compile(labelled, WEIGHTS, **meaning)(plan)
    close(
        out.out,
        labelled_by(plans_below, lambda p: OPS[p["Node Type"]], lambda p: word_id(p["Relation Name"]))(plan),
    )
    assert out.nodes.out.shape[0] == 5


def test_operators_told_apart_and_estimates_by_name() -> None:
    @cortex.model
    def rows_scanned(plan: Any, w: Any) -> Any:
        below = cortex.sum(rows_scanned(k, w) for k in plan.children)
        return w.one * plan.rows + below if plan.op == "Seq Scan" else below

    fast = cortex.compile(rows_scanned, {"one": np.ones(1, np.float32)}, **postgres_plans())
    assert fast(read_explain(EXPLAIN)).out == [[3360]]


def test_a_key_of_the_users_that_a_node_lacks() -> None:
    @cortex.model
    def actual(plan: Any, w: Any) -> Any:
        return w.one * plan.actual + cortex.sum(actual(k, w) for k in plan.children)

    meaning = postgres_plans(fields={"actual": cortex.field((), "Actual Rows")})
    fast = cortex.compile(actual, {"one": np.ones(1, np.float32)}, **meaning)
    with pytest.raises(StructureError, match=r"root \(dict\): field 'actual' is missing or None"):
        fast(read_explain(EXPLAIN)[0])


def test_reading_explain(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(EXPLAIN, encoding="utf-8")
    parsed = json.loads(EXPLAIN)
    assert read_explain(path) == read_explain(EXPLAIN) == read_explain(parsed) == read_explain(parsed[0])
    with pytest.raises(StructureError, match="text: Expecting value: line 1 column 1"):
        read_explain("Seq Scan on a")
    with pytest.raises(StructureError, match="statement 1 is 'nothing', which has no 'Plan'"):
        read_explain([*parsed, "nothing"])


def test_what_explain_wraps_around_a_plan_is_no_node() -> None:
    fast = cortex.compile(words_everywhere, WEIGHTS, **postgres_plans(fields={"word": lambda p: 0}))
    with pytest.raises(StructureError, match="is no node of a plan, which has a 'Node Type'; give plans as read_expl"):
        fast(json.loads(EXPLAIN))


def test_nested_dictionaries_by_their_keys() -> None:
    tree = {"id": 3, "kids": [{"id": 4, "kids": None}, {"id": 5, "kids": {"id": 6}}, {"id": 7, "kids": []}]}
    fast = cortex.compile(words_everywhere, WEIGHTS, **json_trees("kids", fields={"word": "id"}))

    def below(node: Any) -> list[Any]:
        kids = node.get("kids") or []
        return kids if isinstance(kids, list) else [kids]

    close(fast(tree).out, words_everywhere_by(below, lambda n: n["id"])(tree))
    assert fast([tree, tree]).out.shape[0] == 2


def test_children_under_several_keys_and_slots_by_name() -> None:
    tree = {"op": 1, "left": {"op": 2}, "right": {"op": 3, "left": {"op": 4}, "args": [{"op": 5}, {"op": 6}]}}
    keys = ("left", "right", "args")
    fast = cortex.compile(words_everywhere, WEIGHTS, **json_trees(keys, fields={"word": "op"}))

    def below(node: Any) -> list[Any]:
        return [*(node[k] for k in ("left", "right") if k in node), *node.get("args", [])]

    close(fast(tree).out, words_everywhere_by(below, lambda n: n["op"])(tree))

    @cortex.model
    def left_spine(node: Any, w: Any) -> Any:
        x = w.emb[node.word]
        return x if node.left is None else x + left_spine(node.left, w)

    fields = {"word": "op", "left": "left"}
    out = cortex.compile(left_spine, WEIGHTS, **json_trees(keys, fields=fields))(tree)
    close(out.out, WEIGHTS["emb"][1] + WEIGHTS["emb"][2])


@pytest.mark.parametrize(
    ("tree", "message", "place"),
    [
        ({"id": 1, "kids": [7]}, "a node is 7 (a int); nodes of a JSON tree are dictionaries", "root.children[0]"),
        ({"id": 1, "kids": "ab"}, "'kids' is 'ab'; under it belongs a list of dictionaries, one, or null", "root"),
    ],
)
def test_what_is_wrong_says_where(tree: Any, message: str, place: str) -> None:
    fast = cortex.compile(words_everywhere, WEIGHTS, **json_trees("kids", fields={"word": "id"}))
    with pytest.raises(StructureError) as caught:
        fast(tree)
    assert str(caught.value) == f"at {place}, {message}"


def test_a_misspelt_field_and_a_cycle() -> None:
    with pytest.raises(ModelError, match=r"never reads node\.wrod"):
        cortex.compile(words_everywhere, WEIGHTS, **json_trees("kids", fields={"word": "id", "wrod": "id"}))
    tree: dict[str, Any] = {"id": 1}
    tree["kids"] = [{"id": 2, "kids": [tree]}]
    with pytest.raises(StructureError, match=r"but root\.children\[0\]\.children\[0\] is root again"):
        cortex.compile(words_everywhere, WEIGHTS, **json_trees("kids", fields={"word": "id"}))(tree)
