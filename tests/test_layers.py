"""The rules the source tree keeps: layers, file sizes, heavy dependencies in their homes, nothing of this machine."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "cortex"
MAX_LINES = 500

# A folder imports from folders before it; everyone may import the grammars of the two IRs.
LAYERS = (
    ("errors", "options", "ir"),
    ("ra",),
    ("frontend",),
    ("recursion",),
    ("gradient",),
    ("lower",),
    ("ilir",),
    ("poly",),
    ("schedule",),
    ("cost",),
    ("passes",),
    ("codegen",),
    ("runtime",),
    ("cache",),
    ("saved",),
    ("package",),
    ("plan", "compiler", "device_compiler", "__init__"),
    ("restore",),
    ("loader",),
    ("exporter",),
    ("primitives",),
    ("structures",),
    ("zoo",),
    ("bench",),
    ("cli",),
    ("__main__",),
)
RANK = {name: i for i, layer in enumerate(LAYERS) for name in layer}
GRAMMARS = {"cortex.ra.ir", "cortex.ilir.ir"}
HOMES = {
    "llvmlite": ("codegen/llvm/",),
    "islpy": ("poly/",),
    "z3": ("poly/prove.py",),
    "safetensors": ("frontend/weights.py", "runtime/", "package/weights.py"),
    "torch": ("frontend/", "zoo/", "bench/", "cli/demo.py"),
    "pyopencl": ("runtime/opencl.py",),
    "cuda": ("runtime/cuda.py",),
    "click": ("cli/",),
    "rich": ("cli/",),
}


def python_files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def tracked_files() -> Iterator[Path]:
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
    )
    if listing.returncode:
        pytest.skip("not a git checkout")
    yield from (ROOT / name for name in listing.stdout.splitlines() if (ROOT / name).is_file())


def imports(path: Path) -> Iterator[str]:
    """Full names of the modules a file imports at run time, wherever in the file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    only_for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
        for statement in node.body
        for inner in ast.walk(statement)
    }
    for node in ast.walk(tree):
        if id(node) in only_for_types:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert node.module is not None
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield full if _is_module(full) else node.module


def _is_module(name: str) -> bool:
    path = ROOT / "src" / Path(*name.split("."))
    return name == "cortex._native" or path.is_dir() or path.with_suffix(".py").is_file()


def layer(module: str) -> str:
    """The folder or top-level file of a module of the package; the package itself is `__init__`."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in RANK else "__init__"


def test_every_folder_has_a_layer() -> None:
    top = {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in python_files()}
    assert top <= set(RANK)


def test_imports_go_to_earlier_layers() -> None:
    wrong = []
    for path in python_files():
        relative = path.relative_to(PACKAGE)
        own = relative.parts[0].removesuffix(".py")
        if own == "__init__":
            continue
        for module in imports(path):
            if module == "cortex._native":
                if own != "runtime":
                    wrong.append(f"{relative} imports {module}; its home is runtime/")
                continue
            if module.split(".")[0] != "cortex" or module in GRAMMARS:
                continue
            target = layer(module)
            if RANK[target] > RANK[own]:
                wrong.append(f"{relative} imports {module}")
    assert not wrong, "\n".join(wrong)


def test_heavy_dependencies_stay_in_their_homes() -> None:
    wrong = []
    for path in python_files():
        relative = path.relative_to(PACKAGE).as_posix()
        for module in imports(path):
            homes = HOMES.get(module.split(".")[0])
            if homes is not None and not relative.startswith(homes):
                wrong.append(f"{relative} imports {module}; its home is {', '.join(homes)}")
    assert not wrong, "\n".join(wrong)


def test_files_stay_short() -> None:
    suffixes = {".py", ".c", ".cpp", ".hpp", ".h", ".md", ".txt"}
    long = {
        path.relative_to(ROOT).as_posix(): lines
        for path in tracked_files()
        if path.suffix in suffixes
        and "golden" not in path.parts
        and (lines := path.read_text(encoding="utf-8").count("\n")) >= MAX_LINES
    }
    assert not long


def test_names_say_something() -> None:
    empty = {"utils", "util", "helpers", "helper", "core", "base", "misc", "common"}
    named = [path for path in tracked_files() if empty & set(path.with_suffix("").parts[len(ROOT.parts) :])]
    assert not named


def test_nothing_names_this_machine() -> None:
    # Places that exist on the author's machine only. A system's own files (/sys, /proc) are not among them.
    absolute = re.compile(r"(?<![\w./\"'}-])/(?:home|root|tmp|work|Users|opt|mnt|var/tmp)/\w")
    wrong = []
    for path in tracked_files():
        if path == Path(__file__):
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if absolute.search(line) or re.search(r"[\"']/(?:home|root|tmp|work|Users|opt|mnt)/", line):
                wrong.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
    assert not wrong, "\n".join(wrong)


def test_import_is_light() -> None:
    """It loads a few modules of Python's own and of this package, thirty in all, and no other package."""
    program = "import sys; before = set(sys.modules); import cortex; print(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert {name.split(".")[0] for name in loaded} - sys.stdlib_module_names == {"cortex"}
    assert len(loaded) < 60


FOR_BYTE_CODE = {"dis", "opcode"}
BYTE_CODE_AT_LAST = {"frontend/node_identity.py", "frontend/written.py"}
"""Files that look at one instruction where there is no source, and refuse what they do not know."""


def test_byte_code_gives_no_meaning() -> None:
    """What the front end reads from code is its source, its names and constants, which mean the same everywhere."""
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in python_files()
        if FOR_BYTE_CODE & set(imports(path)) or re.search(r"\bco_code\b", path.read_text(encoding="utf-8"))
    }
    assert found <= BYTE_CODE_AT_LAST
