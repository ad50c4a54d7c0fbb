"""What a C program sees: headers, names, the functions that all models share, and what the object code needs."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c_program import SANITIZERS, WARNINGS, checked
from c_tools import RUNTIME, found
from package_models import curious, curious_forest
from sums_and_products import cell, cell_forest, weights

import cortex
from cortex.codegen.target import CPUS, Target
from cortex.cost.choose import ALWAYS
from cortex.errors import ModelError
from cortex.package.columns import columns
from cortex.package.names import Names, identifier
from cortex.runtime.forest import Forest
from cortex.schedule.default import DEFAULT

Golden = Callable[[str, str], None]


def compiled(model: Any, examples: list[Any]) -> Any:
    """The model for a machine that is always the same one, with steps that do not depend on this one."""
    fixed = {"target": Target.x86("avx2"), "recursion": ALWAYS, "choices": DEFAULT}
    fields = {"x": cortex.field((19,))} if model is curious else None
    return cortex.compile(model, weights(), examples=examples, fields=fields, **fixed)


def curious_nodes() -> list[Any]:
    return curious_forest(1, 12).root_nodes()


@pytest.mark.parametrize(
    ("model", "examples"),
    [(cell, cell_forest(1, 12, False).root_nodes()), (curious, curious_nodes())],
    ids=["cell", "curious"],
)
def test_header_and_tables(model: Any, examples: list[Any], tmp_path: Path, golden: Golden) -> None:
    cortex.export(compiled(model, examples), tmp_path)
    name = model.name
    golden(f"package/{name}_header", (tmp_path / f"{name}.h").read_text())
    source = re.sub(r'"[0-9a-f]{64}"', '"..."', (tmp_path / f"{name}.c").read_text())
    golden(f"package/{name}_source", source)


def test_headers_are_cxx_too(tmp_path: Path) -> None:
    cortex.export(compiled(curious, curious_nodes()), tmp_path)
    program = tmp_path / "program.cpp"
    program.write_text(
        '#include "curious.h"\n'
        "int main() {\n"
        "  curious_forest forest{};\n  curious_results results{};\n  cortex_error error{};\n"
        "  return curious_run(nullptr, &forest, &results, &error) == CORTEX_BAD_ARGUMENT ? 0 : 1;\n}\n"
    )
    objects = []
    for source in sorted(tmp_path.glob("*.c")):
        objects.append(source.with_suffix(".obj"))
        checked([found("gcc"), *WARNINGS, "-c", source, "-o", objects[-1]])
    flags = ("-std=c++17", "-pedantic", "-Wall", "-Wextra", "-Werror")
    checked(
        [found("g++"), *flags, program, *objects, tmp_path / "curious.o", "-pthread", "-lm", "-o", tmp_path / "program"]
    )
    checked([tmp_path / "program"])


def test_two_models_in_one_program(tmp_path: Path) -> None:
    cortex.export(compiled(curious, curious_nodes()), tmp_path)
    cortex.export(compiled(cell, cell_forest(1, 12, False).root_nodes()), tmp_path)
    program = tmp_path / "program.c"
    program.write_text(
        '#include "cell.h"\n#include "curious.h"\n'
        "int main(int argc, char **argv) {\n"
        "  cortex_model *model = 0;\n  cortex_session *session = 0;\n  (void)argc;\n"
        "  if (cell_load(argv[1], &model, 0) || cell_open(model, 1, &session, 0)) return 1;\n"
        "  const int other = curious_open(model, 1, &session, 0);\n"
        "  cortex_unload(model);\n"
        "  if (other != CORTEX_BAD_ARGUMENT) return 2;\n"
        "  return curious_load(argv[1], &model, 0) == CORTEX_OTHER_WEIGHTS ? 0 : 3;\n}\n"
    )
    sources = [*sorted(tmp_path.glob("*.c")), tmp_path / "cell.o", tmp_path / "curious.o"]
    checked([found("gcc"), *WARNINGS, *sources, "-pthread", "-lm", "-o", tmp_path / "program"])
    checked([tmp_path / "program", tmp_path / "cell.safetensors"])


def test_children_of_parents(tmp_path: Path) -> None:
    """As `Forest.from_parents` has them."""
    rng = np.random.default_rng(0)
    parents = [int(rng.integers(-1, i)) for i in range(30)]
    program = tmp_path / "program.c"
    program.write_text(
        '#include <stdio.h>\n#include "cortex_runtime.h"\n'
        f"int main(void) {{\n  const int32_t parents[] = {{{', '.join(map(str, parents))}}};\n"
        "  int32_t pointer[31], index[30], wrong[] = {0, 7};\n"
        "  if (cortex_children_of_parents(30, parents, pointer, index, 0)) return 1;\n"
        "  if (cortex_children_of_parents(2, wrong, pointer, index, 0) != CORTEX_NO_SUCH_NODE) return 2;\n"
        "  if (cortex_children_of_parents(30, parents, pointer, index, 0)) return 1;\n"
        '  for (int i = 0; i <= 30; ++i) printf("%d ", (int)pointer[i]);\n'
        '  for (int i = 0; i < pointer[30]; ++i) printf("%d ", (int)index[i]);\n  return 0;\n}\n'
    )
    runtime = sorted(RUNTIME.glob("*.c"))
    checked(
        [
            found("gcc"),
            *WARNINGS,
            *SANITIZERS,
            f"-I{RUNTIME}",
            program,
            *runtime,
            "-pthread",
            "-lm",
            "-o",
            tmp_path / "program",
        ]
    )
    want = Forest.from_parents(parents).lists["children"]
    assert list(map(int, checked([tmp_path / "program"]).split())) == [*want[0].tolist(), *want[1].tolist()]


@pytest.mark.parametrize("name", CPUS)
def test_object_code_needs_nothing(name: str, tmp_path: Path) -> None:
    nm = {"x86-64-linux-gnu": "x86_64-linux-gnu-nm", "aarch64-linux-gnu": "aarch64-linux-gnu-nm"}[name]
    for cpu in CPUS[name]:
        fast = cortex.compile(cell, weights(), examples=cell_forest(1, 9, False).root_nodes(), target=name, cpu=cpu)
        cortex.export(fast, tmp_path)
        assert checked([found(nm), "-u", tmp_path / "cell.o"]).split() == []
        assert checked([found(nm), "-g", "--defined-only", tmp_path / "cell.o"]).split()[1:] == [
            "T",
            "cortex_entry_cell",
        ]


def test_names() -> None:
    assert [identifier(t) for t in ("left", "class", "3d", "größe", "a.b", "")] == [
        "left", "class_", "n3d", "gr__e", "a_b", "x",
    ]  # fmt: skip
    names = Names("roots")
    assert [names.fresh("roots"), names.fresh("x"), names.fresh("x"), names.fresh("x")] == [
        "roots_2",
        "x",
        "x_2",
        "x_3",
    ]


def test_columns() -> None:
    found_columns = {c.name: (c.what, c.nullable) for c in columns(compiled(curious, curious_nodes()).compiled.model)}
    assert found_columns == {
        "x": ("numbers", True),
        "word": ("integers", False),
        "label": ("presence", True),
        "flag": ("integers", False),
        "weight": ("integers", False),
    }


def test_models_are_compiled_for_their_export(tmp_path: Path) -> None:
    examples = cell_forest(1, 12, False).root_nodes()
    cortex.export(cortex.compile(cell, weights(), examples=examples), tmp_path / "compiled", "cell")
    written = cortex.export(cell, tmp_path / "here", "cell", weights=weights(), examples=examples)
    assert {file.name: file.read_bytes() for file in written} == {
        file.name: file.read_bytes() for file in (tmp_path / "compiled").iterdir()
    }


def test_other_things_are_not_exported(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"give a model, or what cortex.compile makes of one"):
        cortex.export(3, tmp_path)  # type: ignore[arg-type]
    fast = compiled(cell, cell_forest(1, 12, False).root_nodes())
    with pytest.raises(ModelError, match=r"is compiled already; give weights, threads to cortex.compile instead"):
        cortex.export(fast, tmp_path, weights=weights(), threads=2)
    assert not list(tmp_path.iterdir())


def test_names_of_the_runtime_and_files_are_refused(tmp_path: Path) -> None:
    fast = compiled(cell, cell_forest(1, 12, False).root_nodes())
    with pytest.raises(ModelError, match=r"export\(name='cortex_run'\): names that begin with 'cortex'"):
        cortex.export(fast, tmp_path, "cortex_run")
    (tmp_path / "file").touch()
    with pytest.raises(ModelError, match="File exists; give a directory that can be written to"):
        cortex.export(fast, tmp_path / "file")
