"""The C source of an exported model: tables that tell the runtime about it, and its functions."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from cortex.lower.linear_form import WINDOW_KIND
from cortex.package.decisions import Decisions
from cortex.package.interface import Interface
from cortex.package.literals import array, comment, path_text, string, table
from cortex.package.weights import Weight
from cortex.ra.ir import Model
from cortex.runtime.signature import Signature

_BATCHING = {"height": "CORTEX_HEIGHT", "depth": "CORTEX_DEPTH", "agenda": "CORTEX_AGENDA", "none": "CORTEX_ALONE"}


def source_text(
    m: Model,
    face: Interface,
    f: Signature,
    spec: dict[str, Any],
    arguments: list[tuple[Any, ...]],
    weights: list[Weight],
    fingerprint: str,
) -> str:
    """The file `PREFIX.c`; `spec` is that of the linearizer, `arguments` are those of the object code."""
    p = face.prefix
    numbers = {c.column.name: i for i, c in enumerate(face.columns)}
    decisions = Decisions(spec["tree"], spec["slots"], spec["lists"], tuple(c.column for c in face.columns))
    floats = [name for name, _, _ in spec["float_fields"]]
    states = [s.name for s in m.outputs]
    strides = {a[1]: a[3] for a in arguments if a[0] == "state"}
    tables = [
        table("cortex_test", "tests", decisions.tests),
        table(
            "cortex_int_field",
            "ints",
            [f"{{{string(n)}, {numbers[n]}, {int(k is not None)}, {k or 0}}}" for n, k in spec["int_fields"]],
        ),
        table(
            "cortex_float_field",
            "floats",
            [f"{{{string(n)}, {numbers[n]}, {_rows(shape)}, {stride}}}" for n, shape, stride in spec["float_fields"]],
        ),
        table("cortex_kind", "kinds", _kinds(spec)),
        table(
            "cortex_state",
            "states",
            [f"{{{string(s.name)}, {_rows(s.type.shape)}, {strides[s.name]}}}" for s in m.outputs],
        ),
        table(
            "cortex_weight", "weights", [f"{{{string(w.name)}, {string(w.dtype)}, {w.array.nbytes}}}" for w in weights]
        ),
        table(
            "cortex_argument", "arguments", _arguments(arguments, index_names(spec), size_names(spec), floats, states)
        ),
        f"static const int32_t sizes[] = {{{', '.join(str(size_names(spec).index(s)) for s in f.sizes) or '0'}}};\n",
    ]
    facts = {
        "name": string(m.name),
        "fingerprint": string(fingerprint),
        "entry": entry_name(p),
        "num_slots": len(m.slots),
        "num_lists": len(m.lists),
        "num_columns": len(face.columns),
        "num_kinds": len(m.kinds),
        "num_ints": len(spec["int_fields"]),
        "num_floats": len(floats),
        "num_states": len(states),
        "num_weights": len(weights),
        "num_sizes": len(f.sizes),
        "num_arguments": len(arguments),
        "batching": _BATCHING[spec["batching"]],
        "shares_groups": int(not all(spec["own_group"])),
        "dedup": int(spec["dedup"]),
        "parts": int(spec["parts"]),
        "num_windows": len(spec["windows"]),
        "window_nodes": spec["window_nodes"],
        "windows": array("int32_t", spec["windows"]),
        "unrolled": spec["variants"]["depth"] if "variants" in spec else 1,
        "has_reads": int(any(spec["reads"])),
        "for_team": int(f.shared_out),
        "tree": decisions.tree,
    } | {n: n for n in ("tests", "ints", "floats", "kinds", "states", "weights", "sizes", "arguments")}
    members = "\n".join(f"    .{name} = {value}," for name, value in facts.items())
    return "\n".join([
        f"/* {comment(m.name)}: what the runtime must know of it, and the functions of {p}.h. */",
        "#include <math.h>",
        "",
        f'#include "{p}.h"',
        '#include "cortex_description.h"',
        "",
        f"void {entry_name(p)}(void **arrays, const int64_t *sizes, int64_t thread, int64_t threads, void *team);",
        "",
        *tables,
        f"static const cortex_description description = {{\n{members}\n}};",
        "",
        _functions(face),
    ])  # fmt: skip


def entry_name(prefix: str) -> str:
    """The name of the compiled function."""
    return f"cortex_entry_{prefix}"


def size_names(spec: dict[str, Any]) -> list[str]:
    """The sizes of the linear form, in the order of the C runtime."""
    names = ["num_nodes", "num_groups", "num_roots", "max_group"]
    names += [f"{which}_{r}_edges" for r in spec["lists"] for which in ("num", "max")]
    names += ["num_parts"] * spec["parts"] + ["num_windows", "max_window"] * bool(spec["windows"])
    return names + ["num_user_nodes"] * spec["dedup"]


def index_names(spec: dict[str, Any]) -> list[str]:
    """The index arrays of the linear form, in the order of the C runtime."""
    names = ["group_start", "group_len", "group_kind", "kind_start", "kind_node"]
    names += ["node_kind"] * (not all(spec["own_group"])) + ["part_group"] * spec["parts"]
    names += ["window_group"] * bool(spec["windows"]) + [f"{WINDOW_KIND}{k}" for k in spec["windows"]]
    names += [f"child_{s}" for s in spec["slots"]]
    names += [f"{r}_{which}" for r in spec["lists"] for which in ("ptr", "child", "parent")]
    return [*names, *(f"field_{n}" for n, _ in spec["int_fields"]), "root", "order"]


def _rows(shape: tuple[int, ...]) -> str:
    """A value as rows of its last dimension."""
    return f"{prod(shape[:-1])}, {shape[-1]}" if shape else "1, 1"


def _kinds(spec: dict[str, Any]) -> list[str]:
    slots, lists = spec["slots"], spec["lists"]
    fields = [n for n, _ in spec["int_fields"]] + [n for n, _, _ in spec["float_fields"]]
    shared = next((k for k, own in enumerate(spec["own_group"]) if not own), 0)
    variants = spec.get("variants", {"within": {}, "inlining": []})
    inlining = {kind: (hops, chosen) for kind, hops, chosen in variants["inlining"]}
    found = []
    for k in range(spec["num_kinds"]):
        uses = [fields.index(n) for n in spec["uses"][k]]
        reads = [f"{{{fields.index(n)}, {path_text(path, slots, lists)}}}" for n, path in spec["reads"][k]]
        needs = [path_text(path, slots, lists) for path in spec["needs"][k]]
        hops, chosen = inlining.get(k, ([], {}))
        rows = [n for below, variant in chosen.items() for n in (*(-1 if b is None else b for b in below), variant)]
        parts = [
            f"{len(uses)}, {array('int32_t', uses)}",
            f"{len(reads)}, {array('cortex_read', reads)}",
            f"{len(needs)}, {array('cortex_path', needs)}",
            f"{k if spec['own_group'][k] else shared}, {variants['within'].get(k, -1)}",
            f"{len(hops)}, {array('cortex_path', [path_text(h, slots, lists) for h in hops])}",
            f"{len(chosen)}, {array('int32_t', rows)}",
            _lengths(spec["lengths"][k] if "lengths" in spec else None, lists),
        ]
        found.append(f"{{{', '.join(parts)}}}")
    return found


def _lengths(checked: tuple[tuple[str, ...], int, Any] | None, lists: list[str]) -> str:
    """The lists of which a kind takes any number of children, and which numbers it has been checked for."""
    if checked is None:
        return "0, NULL, 0, 0, NULL"
    names, most, entries = checked
    numbers = [lists.index(name) for name in names]
    ends = np.flatnonzero(np.diff(entries.ravel().astype(bool), prepend=False, append=False)).reshape(-1, 2).tolist()
    ranges = [f"{{{first}, {last}}}" for first, last in ends]
    return f"{len(names)}, {array('int32_t', numbers)}, {most}, {len(ranges)}, {array('cortex_range', ranges)}"


def _arguments(
    arguments: list[tuple[Any, ...]], index: list[str], sizes: list[str], floats: list[str], states: list[str]
) -> list[str]:
    found, weights = [], 0
    for argument in arguments:
        match argument:
            case ("index", name):
                found.append(f"{{CORTEX_INDEX, {index.index(name)}, -1, -1, 0}}")
            case ("field", name):
                found.append(f"{{CORTEX_FIELD, {floats.index(name)}, -1, -1, 0}}")
            case ("weight", _):
                found.append(f"{{CORTEX_WEIGHT, {weights}, -1, -1, 0}}")
                weights += 1
            case ("state", name, _, _):
                found.append(f"{{CORTEX_STATE, {states.index(name)}, -1, -1, 0}}")
            case ("private", elements, *rows):
                found.append(f"{{CORTEX_PRIVATE, 0, {sizes.index(rows[0]) if rows else -1}, -1, {elements}}}")
            case ("scratch", rows, elements, *copies):
                times = sizes.index(copies[0]) if copies else -1
                found.append(f"{{CORTEX_SCRATCH, 0, {-1 if rows is None else sizes.index(rows)}, {times}, {elements}}}")
            case _:
                raise AssertionError(argument)
    return found


def _functions(face: Interface) -> str:
    p = face.prefix
    slots = array("int32_t *const", [f"forest->{member}" for _, member in face.slots])
    lists = [f"{{forest->{r.pointer}, forest->{r.index}, forest->{r.edges}}}" for r in face.lists]
    columns = []
    for c in face.columns:
        present = f"forest->{c.present}" if c.present else "NULL"
        columns.append(f"{{forest->{c.values}, {present}}}" if c.values else f"{{{present}, {present}}}")
    of = {"roots": [s.roots for s in face.states], "nodes": [s.nodes for s in face.states]}
    results = {
        k: array("float *", [f"results->{n}" for n in v]).replace("(const float *", "(float *const ")
        for k, v in of.items()
    }
    return f"""int {p}_load(const char *file, cortex_model **model, cortex_error *error) {{
  return cortex_load(&description, file, model, error);
}}

int {p}_open(const cortex_model *model, int threads, cortex_session **session, cortex_error *error) {{
  return cortex_open(&description, model, threads, session, error);
}}

int {p}_run(cortex_session *session, const {p}_forest *forest, {p}_results *results, cortex_error *error) {{
  if (!forest || !results) return cortex_run(&description, NULL, NULL, NULL, error);
  const cortex_request request = {{
      .num_nodes = forest->num_nodes,
      .slots = {slots},
      .lists = {array("cortex_list", lists)},
      .columns = {array("cortex_column", columns)},
      .num_roots = forest->num_roots,
      .roots = forest->roots,
  }};
  cortex_results found = {{
      .room = results->room,
      .roots = {results["roots"]},
      .nodes = {results["nodes"]},
  }};
  const int status = cortex_run(&description, session, &request, &found, error);
  results->num_roots = found.num_roots;
  return status;
}}
"""
