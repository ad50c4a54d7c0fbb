"""A C program for any exported model: it reads requests from a file, runs them, and writes statuses and states.

Both files are numbers in the machine's order. An array is its length (int64; -1 for NULL) and its elements; arrays are
allocated at their exact lengths, so that whoever reads past one is found out.
"""

from __future__ import annotations

import struct
import subprocess
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from cortex.package.classes import without_classes
from cortex.package.columns import columns
from cortex.package.interface import Interface
from cortex.ra.ir import Model, answer_key
from cortex.runtime.forest import Forest

WARNINGS = ("-std=c11", "-pedantic", "-Wall", "-Wextra", "-Werror")
SANITIZERS = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")

_START = """#include <stdio.h>
#include <stdlib.h>
#include "@P@.h"

static void must(int good, const char *what) {
  if (good) return;
  fprintf(stderr, "%s\\n", what);
  exit(3);
}

static int64_t read_integer(FILE *from) {
  int64_t value;
  must(fread(&value, sizeof value, 1, from) == 1, "the requests end too soon");
  return value;
}

static void *read_array(FILE *from, size_t each) {
  const int64_t count = read_integer(from);
  if (count < 0) return NULL;
  void *array = malloc((size_t)count * each + (count == 0));
  must(array && (count == 0 || fread(array, each, (size_t)count, from) == (size_t)count), "the requests end too soon");
  return array;
}

static void write_array(FILE *to, float *array, int64_t count) {
  must(count == 0 || fwrite(array, sizeof(float), (size_t)count, to) == (size_t)count, "cannot write");
  free(array);
}

int main(int argc, char **argv) {
  must(argc == 5, "weights requests results threads");
  cortex_error error = {0, 0, ""};
  cortex_model *model = NULL;
  cortex_session *session = NULL;
  int status = @P@_load(argv[1], &model, &error);
  if (!status) status = @P@_open(model, atoi(argv[4]), &session, &error);
  if (status) {
    printf("%s: %s\\n", cortex_status_name(status), error.message);
    cortex_unload(model);
    return 2;
  }
  FILE *from = fopen(argv[2], "rb"), *to = fopen(argv[3], "wb");
  must(from && to, "cannot open");
  for (int64_t requests = read_integer(from); requests > 0; --requests) {
    @P@_forest f;
    @P@_results r;
    f.num_nodes = read_integer(from);
"""
_RUN = """    status = @P@_run(session, &f, &r, &error);
    const int64_t answer[] = {status, r.num_roots};
    must(fwrite(answer, sizeof answer, 1, to) == 1, "cannot write");
    if (status) printf("%s: %s\\n", cortex_status_name(status), error.message);
"""
_END = """  }
  cortex_close(session);
  cortex_unload(model);
  fclose(from);
  return fclose(to);
}
"""


def program_text(m: Model, prefix: str) -> str:
    """The source of the program for the model `m`."""
    face = Interface.of(m, prefix)
    arrays = [f"f.{member} = read_array(from, sizeof(int32_t));" for _, member in face.slots]
    freed = [f"f.{member}" for _, member in face.slots]
    for r in face.lists:
        arrays += [f"f.{name} = read_array(from, sizeof(int32_t));" for name in (r.pointer, r.index)]
        arrays.append(f"f.{r.edges} = read_integer(from);")
        freed += [f"f.{r.pointer}", f"f.{r.index}"]
    for c in face.columns:
        if c.values:
            kind = "float" if c.column.is_float else "int64_t"
            arrays.append(f"f.{c.values} = read_array(from, sizeof({kind}));")
            freed.append(f"f.{c.values}")
        if c.present:
            arrays.append(f"f.{c.present} = read_array(from, 1);")
            freed.append(f"f.{c.present}")
    arrays += ["f.num_roots = read_integer(from);", "f.roots = read_array(from, sizeof(int32_t));"]
    arrays.append("r.room = read_integer(from);")
    freed.append("f.roots")
    written = []
    for s in face.states:
        size = prod(s.type.shape)
        for member, rows, made in ((s.roots, "r.room", "r.num_roots"), (s.nodes, "f.num_nodes", "f.num_nodes")):
            arrays.append(f"r.{member} = {rows} < 0 ? NULL : malloc((size_t)({rows} * {size}) * sizeof(float) + 1);")
            written.append(f"write_array(to, r.{member}, status || !r.{member} ? 0 : {made} * {size});")
    body = [*arrays, _RUN, *written, *(f"free((void *){name});" for name in freed)]
    lines = "".join(line if line.startswith("    ") else f"    {line}\n" for line in body)
    return (_START + lines + _END).replace("@P@", prefix)


def request_bytes(m: Model, forest: Any, prefix: str = "m") -> bytes:
    """A forest, or anything with its attributes, as the program reads it."""
    face = Interface.of(m, prefix)
    out = [struct.pack("<q", forest.num_nodes)]
    out += [_array(forest.slots[name], np.int32) for name, _ in face.slots]
    for r in face.lists:
        pointer, index = forest.lists[r.name]
        out += [_array(pointer, np.int32), _array(index, np.int32), struct.pack("<q", len(index))]
    for c in face.columns:
        given = forest.fields.get(c.column.name)
        values = None if given is None else list(given)
        if c.values:
            kind = np.float32 if c.column.is_float else np.int64
            out.append(_array(None if values is None else _numbers(values, c.column), kind))
        if c.present:
            out.append(_array(None if values is None else [x is not None for x in values], np.uint8))
    out += [struct.pack("<q", len(forest.roots)), _array(forest.roots, np.int32)]
    return b"".join([*out, struct.pack("<q", getattr(forest, "room", len(forest.roots)))])


def _numbers(values: list[Any], column: Any) -> list[Any]:
    match column.what:
        case "codes":
            known = [answer_key(v) for v in column.values]
            return [known.index(answer_key(x)) if answer_key(x) in known else 1000 for x in values]
        case "lengths":
            return [0 if x is None else len(x) for x in values]
        case _:
            some = next((np.shape(x) for x in values if x is not None), ())
            return [np.zeros(some) if x is None else x for x in values]


def _array(values: Any, dtype: Any) -> bytes:
    if values is None:
        return struct.pack("<q", -1)
    data = np.ascontiguousarray(values, dtype).reshape(-1)
    return struct.pack("<q", len(data)) + data.tobytes()


@dataclass(frozen=True)
class Answer:
    """What came back for one request; `roots` and `nodes` by the name of the state."""

    status: int
    roots: dict[str, Any]
    nodes: dict[str, Any]


@dataclass(frozen=True)
class Package:
    """An exported model with its program."""

    model: Model
    name: str
    directory: Path

    def build(
        self, compiler: tuple[str, ...], flags: tuple[str, ...] = WARNINGS, objects: tuple[Path, ...] = ()
    ) -> Path:
        """Compile and link the program; `objects` are those of the runtime, where that is compiled already."""
        main, to = self.directory / "main.c", self.directory / "program"
        main.write_text(program_text(self.model, self.name))
        sources = objects or tuple(sorted(self.directory.glob("cortex_*.c")))
        own = (main, self.directory / f"{self.name}.c", self.directory / f"{self.name}.o")
        checked([*compiler, *flags, "-O1", "-o", to, *own, *sources, "-pthread", "-lm"])
        return to

    def run(
        self, program: Path, forests: list[Any], threads: int = 1, before: tuple[str, ...] = ()
    ) -> tuple[list[Answer], str]:
        """Run the requests in one process; also gives what it printed."""
        requests, results = self.directory / "requests.bin", self.directory / "results.bin"
        content = b"".join(request_bytes(self.model, f, self.name) for f in forests)
        requests.write_bytes(struct.pack("<q", len(forests)) + content)
        weights = self.directory / f"{self.name}.safetensors"
        done = checked([*before, program, weights, requests, results, threads])
        return self._answers(results.read_bytes(), forests), done

    def _answers(self, data: bytes, forests: list[Any]) -> list[Answer]:
        found, at = [], 0
        for forest in forests:
            status, num_roots = struct.unpack_from("<qq", data, at)
            at += 16
            roots: dict[str, Any] = {}
            nodes: dict[str, Any] = {}
            for s in self.model.outputs if status == 0 else ():
                for into, rows in ((roots, num_roots), (nodes, forest.num_nodes)):
                    shape = (rows, *s.type.shape)
                    into[s.name] = np.frombuffer(data, np.float32, prod(shape), at).reshape(shape)
                    at += 4 * prod(shape)
            found.append(Answer(status, roots, nodes))
        assert at == len(data)
        return found


def checked(command: list[Any]) -> str:
    """Run a command that must succeed; what it printed."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}"
    assert not done.stderr, done.stderr
    return done.stdout


def exported_model(fast: Any) -> Model:
    """The model that a package is of."""
    part = getattr(fast, "program", fast).part()
    return without_classes(part.built[0].compiled.model, (), part.accessors)[0]


def forest_of(fast: Any, structures: list[Any]) -> Forest:
    """Objects as arrays in the order of `out.nodes`, from their linear form."""
    form = fast.linearize(structures)
    m, order = fast.compiled.model, form.arrays["order"]
    user = np.empty(len(order), np.int32)
    user[order] = np.arange(len(order), dtype=np.int32)
    slots = {s: np.where((c := form.arrays[f"child_{s}"][order]) < 0, -1, user[c]) for s in m.slots}
    lists = {}
    for r in m.lists:
        ptr, child = form.arrays[f"{r}_ptr"], form.arrays[f"{r}_child"]
        below = [user[child[ptr[i] : ptr[i + 1]]] for i in order]
        lists[r] = (np.cumsum([0, *map(len, below)]), np.concatenate([np.empty(0, np.int32), *below]))
    fields = {
        f.name: (form.arrays[f"field_{f.name}"] if f.type.dtype == "i64" else form.fields[f.name])[order]
        for f in m.fields
    }
    asked = [c.name for c in columns(exported_model(fast)) if c.name not in fields or c.nullable]
    if asked:
        nodes = in_preorder(m, structures)
        assert len(nodes) == len(order)
        values = {name: [getattr(node, name, None) for node in nodes] for name in asked}
        fields |= {name: [x.item() if isinstance(x, np.generic) else x for x in own] for name, own in values.items()}
    return Forest(len(order), slots, lists, fields, user[form.arrays["root"]])


def in_preorder(m: Model, roots: list[Any]) -> list[Any]:
    """The nodes below `roots` in the order of their first visit."""
    seen: dict[int, Any] = {}
    stack = list(reversed(roots))
    while stack:
        node = stack.pop()
        if node is None or id(node) in seen:
            continue
        seen[id(node)] = node
        below = [getattr(node, s, None) for s in m.slots] + [c for r in m.lists for c in getattr(node, r, None) or ()]
        stack += reversed(below)
    return list(seen.values())
