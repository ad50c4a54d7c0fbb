"""The package as others install it: what its metadata says, types, `python -m cortex`."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib.resources import files
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_metadata_names_files_that_are_there() -> None:
    assert PROJECT["license"] == "Apache-2.0"
    for name in (PROJECT["readme"], *PROJECT["license-files"], "CHANGELOG.md", "CONTRIBUTING.md"):
        assert (ROOT / name).read_text(encoding="utf-8").strip()
    assert "Apache License" in (ROOT / "LICENSE").read_text(encoding="utf-8")


def test_classifiers_name_the_versions_of_python() -> None:
    from packaging.specifiers import SpecifierSet

    said = {
        c.rpartition(" ")[2] for c in PROJECT["classifiers"] if c.startswith("Programming Language :: Python :: 3.")
    }
    takes = SpecifierSet(PROJECT["requires-python"])
    assert said == {version for version in (f"3.{minor}" for minor in range(8, 20)) if f"{version}.1" in takes}


def test_torch_is_a_range_that_has_the_tested_version() -> None:
    from packaging.requirements import Requirement

    extras = PROJECT["optional-dependencies"]
    (wanted,) = map(Requirement, extras["torch"])
    (tested,) = (r for r in map(Requirement, extras["dev"]) if r.name == "torch")
    (version,) = tested.specifier
    assert version.operator == "==" and version.version in wanted.specifier
    assert len(wanted.specifier) == 2


def test_types_are_for_users_too() -> None:
    assert files("cortex").joinpath("py.typed").is_file()


def test_the_command_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "cortex", "--help"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("Usage: cortex ")


def test_the_typed_options_are_those_of_compile() -> None:
    import inspect

    from cortex.compiler import CompileOptions, compile

    taken = [p.name for p in inspect.signature(compile).parameters.values() if p.kind is p.KEYWORD_ONLY]
    assert taken == list(CompileOptions.__annotations__)
