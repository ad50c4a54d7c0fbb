"""The header of an exported model."""

from __future__ import annotations

from math import prod

from cortex.frontend.torch.calls import ARGUMENT, HEAD
from cortex.package.interface import ColumnMember, Interface
from cortex.package.literals import comment
from cortex.ra.ir import Model


def header_text(m: Model, face: Interface, target: str, weights_file: str) -> str:
    """The C header of `m`, which C++ takes as well."""
    p, guard = face.prefix, f"CORTEX_MODEL_{face.prefix.upper()}_H"
    lines = [
        f"/* {comment(m.name)}: a recursive model, compiled for {comment(target)}.",
        " *",
        f" *     cc -std=c11 -O2 program.c {p}.c cortex_*.c {p}.o -pthread -lm",
        " *",
        f" * Load the weights once, open a session for each thread that calls, then call {p}_run. See cortex_runtime.h",
        " * for errors and what is shared. */",
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        '#include "cortex_runtime.h"',
        "",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
        *_constants(face),
        "/* Trees, or graphs without cycles, of any number of nodes: 0 to num_nodes - 1. All arrays are read while",
        f" * {p}_run runs, and only then. What no code reads of a node may hold anything.{_about_heads(face)} */",
        f"typedef struct {p}_forest {{",
        "  int64_t num_nodes;",
        *(
            f"  const int32_t *{member}; /* per node the child '{comment(s)}', -1 for none */"
            for s, member in face.slots
        ),
    ]
    for r in face.lists:
        lines += [
            f"  /* '{comment(r.name)}' of node i: {r.index}[{r.pointer}[i]] .. {r.index}[{r.pointer}[i + 1] - 1] */",
            f"  const int32_t *{r.pointer}; /* num_nodes + 1 */",
            f"  const int32_t *{r.index};",
            f"  int64_t {r.edges}; /* numbers in {r.index} */",
        ]
    for c in face.columns:
        lines += _column(m, c)
    lines += [
        "  int64_t num_roots;",
        "  const int32_t *roots; /* NULL: the nodes that are nobody's child, in order */",
        f"}} {p}_forest;",
        "",
        "/* Where the states go, row by row; NULL for what is not wanted. */",
        f"typedef struct {p}_results {{",
        "  int64_t room;      /* rows that the arrays for roots have */",
        "  int64_t num_roots; /* set: rows that were written */",
    ]
    for s in face.states:
        size = f"{prod(s.type.shape)} numbers" + (f", shape {s.type.shape}" if len(s.type.shape) != 1 else "")
        lines.append(f"  float *{s.roots}; /* state '{comment(s.name)}' at each root: {size} */")
        lines.append(f"  float *{s.nodes}; /* the same at each node */")
    lines += [
        f"}} {p}_results;",
        "",
        f"/* Read the weights, {comment(weights_file)}. */",
        f"int {p}_load(const char *file, cortex_model **model, cortex_error *error);",
        "",
        "/* Make ready to run on so many threads, the caller among them; results do not depend on their number. */",
        f"int {p}_open(const cortex_model *model, int threads, cortex_session **session, cortex_error *error);",
        "",
        f"int {p}_run(cortex_session *session, const {p}_forest *forest, {p}_results *results, cortex_error *error);",
        "",
        "#ifdef __cplusplus",
        "}",
        "#endif",
        "",
        "#endif",
    ]
    return "\n".join(lines) + "\n"


def _about_heads(face: Interface) -> str:
    """The nodes that stand for calls of a module, where it has such."""
    arguments = [member for slot, member in face.slots if slot.startswith(ARGUMENT)]
    if not arguments:
        return ""
    return (
        f"\n *\n * A request is one node more: a root of its own that alone has a '{HEAD}', and whose\n"
        f" * {', '.join(arguments)} leads to the structure. Results are its states."
    )


def _constants(face: Interface) -> list[str]:
    lines = []
    for c in face.columns:
        if c.codes:
            lines.append(f"/* Values of '{comment(c.column.name)}'; any other number stands for any other value. */")
            known = zip(c.codes, c.column.values, strict=True)
            items = [f"  {code} = {i}, /* {comment(repr(value))} */" for i, (code, value) in enumerate(known)]
            last = items.pop().replace(",", "", 1)
            lines += ["enum {", *items, last, "};", ""]
    return lines


def _column(m: Model, c: ColumnMember) -> list[str]:
    name = comment(c.column.name)
    lines = []
    if c.values is not None:
        kind = "float" if c.column.is_float else "int64_t"
        lines.append(f"  const {kind} *{c.values}; /* {_meaning(m, c)} */")
    if c.present is not None:
        without = "none" if c.values is None else "all, where there are values"
        lines.append(f"  const uint8_t *{c.present}; /* per node whether it has a '{name}'; NULL: {without} */")
    return lines


def _meaning(m: Model, c: ColumnMember) -> str:
    name = comment(c.column.name)
    field = next((f for f in m.fields if f.name == c.column.name), None)
    match c.column.what:
        case "codes":
            return f"per node its '{name}', one of the constants above"
        case "lengths":
            return f"per node the length of its '{name}'"
        case "numbers":
            shape = () if field is None else field.type.shape
            if not shape:
                return f"per node its '{name}', a number"
            return f"per node its '{name}': {prod(shape)} numbers" + (f", shape {shape}" if len(shape) != 1 else "")
        case _:
            limit = None if field is None else field.limit
            return f"per node its '{name}'" + ("" if limit is None else f": 0 to {limit - 1}")
