"""Files that are damaged, foreign or not to be trusted are ignored and replaced; the folder stays bounded."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cortex.cache import files
from cortex.cache.encoding import decode, encode
from cortex.cache.entry import MAGIC, Entry
from cortex.ilir.ir import Buffer, Scope
from cortex.ir.node import Node
from cortex.ir.source import Span
from cortex.ra import ir as ra


def sealed(rest: bytes) -> bytes:
    """A file whose digest is right, whatever it holds."""
    return MAGIC + hashlib.sha256(rest).digest() + rest


def described(description: Any) -> bytes:
    text = json.dumps(description).encode()
    return sealed(len(text).to_bytes(8, "little") + text)


def with_bit_flipped(content: bytes, at: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "foreign": lambda _: b"\x7fELF and so on",
    "of another version": lambda c: c.replace(MAGIC, b"cortex object code 0\n"),
    "cut short": lambda c: c[:-1],
    "half": lambda c: c[: len(c) // 2],
    "only its head": lambda c: c[: len(MAGIC) + 32],
    "longer": lambda c: c + b"\0",
    "damaged code": lambda c: with_bit_flipped(c, len(c) - 100),
    "damaged description": lambda c: with_bit_flipped(c, len(MAGIC) + 60),
    "damaged digest": lambda c: with_bit_flipped(c, len(MAGIC)),
    "a length beyond the end": lambda _: sealed((1 << 40).to_bytes(8, "little") + b"[]"),
    "a length of nothing": lambda _: sealed(b"\1"),
    "no JSON": lambda _: sealed((2).to_bytes(8, "little") + b"[["),
    "deep JSON": lambda _: sealed((1 << 20).to_bytes(8, "little") + b"[" * (1 << 20)),
    "no UTF-8": lambda _: sealed((2).to_bytes(8, "little") + b"\xff\xfe"),
    "another key's": lambda c: c[: len(MAGIC)] and sealed(c[len(MAGIC) + 32 :].replace(b'["', b'["0', 1)),
    "of other parts": lambda _: described(["key", "name", 1, [], [], {}]),
    "of too few parts": lambda _: described([]),
    "no list": lambda _: described(3),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_replaced(damage: str, kept: Any, make: Any, trees: Any) -> None:
    expected = make()(trees()).h.tobytes()
    [file] = kept.files
    whole = file.read_bytes()
    file.write_bytes(DAMAGE[damage](whole))
    assert Entry.from_bytes(file.read_bytes(), file.stem) is None
    assert make()(trees()).h.tobytes() == expected
    assert kept.compiled == 2
    assert file.read_bytes() == whole


def test_only_the_users_own_files_are_read(kept: Any, make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    make()
    [file] = kept.files
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(kept.folder.stat().st_mode) == 0o700
    for others in (0o620, 0o602):
        file.chmod(others)
        assert files.read(kept.folder, file.stem) is None
    make()
    assert kept.compiled == 2
    assert stat.S_IMODE(file.stat().st_mode) == 0o600, "replaced by one that can be trusted"
    assert files.read(kept.folder, file.stem) is not None
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    assert files.read(kept.folder, file.stem) is None


def test_what_is_no_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "folder.code").mkdir()
    os.mkfifo(tmp_path / "pipe.code", 0o600)
    (tmp_path / "elsewhere").write_bytes(b"content")
    (tmp_path / "link.code").symlink_to(tmp_path / "elsewhere")
    assert [files.read(tmp_path, name) for name in ("folder", "pipe", "link", "nothing")] == [None] * 4


def test_large_files_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files.write(tmp_path, "one", b"12345")
    monkeypatch.setattr(files, "LARGEST_FILE", 4)
    assert files.read(tmp_path, "one") is None
    files.write(tmp_path, "two", b"12345")
    assert not (tmp_path / "two.code").exists()


def test_what_was_read_longest_ago_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_BYTES", 300)
    for number, name in enumerate("abc"):
        files.write(tmp_path, name, bytes(100))
        os.utime(tmp_path / f"{name}.code", ns=(number, number))
    assert files.read(tmp_path, "a") == bytes(100)
    files.write(tmp_path, "d", bytes(100))
    assert sorted(f.stem for f in tmp_path.iterdir()) == ["a", "c", "d"]


def test_what_others_left_unfinished_goes(tmp_path: Path) -> None:
    old, new = tmp_path / "a.1.1.partial", tmp_path / "b.1.1.partial"
    old.write_bytes(b"")
    new.write_bytes(b"")
    os.utime(old, (0, time.time() - 2 * files.ABANDONED_SECONDS))
    files.write(tmp_path, "c", b"content")
    assert sorted(f.name for f in tmp_path.iterdir()) == [new.name, "c.code"]


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.code").mkdir()
    (tmp_path / "a.code" / "inside").write_text("a folder that no file can replace")
    files.write(tmp_path, "a", b"content")
    assert [f.name for f in tmp_path.iterdir()] == ["a.code"]


def test_nodes_come_back_as_they_were() -> None:
    type_ = ra.TensorType((3, 4))
    let = ra.Let("x", ra.Fill(-0.0, (3, 4)), type_, span=Span("file", 1, 2, 3, "text"))
    answers = (True, 1, 1.0, float("inf"), "\ud800é", None, -(1 << 70))
    value = (let, Scope.PARAM, *(ra.Fact(ra.Value("op"), answer) for answer in answers), ((), (1,)))
    again = decode(json.loads(json.dumps(encode(value))))
    assert repr(again) == repr(value) and again == value
    assert again[0].span is None


def test_every_node_of_the_grammar_has_a_name() -> None:
    """Wherever its class is defined: a model that holds one that has none can neither be saved nor kept."""
    nodes = [cls for cls in vars(ra).values() if isinstance(cls, type) and issubclass(cls, Node)]
    nodes = [cls for cls in nodes if cls not in (Node, Span)]  # places in the source are left out
    assert ra.Positions in nodes
    for cls in nodes:
        blank = object.__new__(cls)
        for field in dataclasses.fields(cls):
            object.__setattr__(blank, field.name, None)
        assert encode(blank).keys() == {f"ra.{cls.__name__}"}


def test_what_was_written_before_a_field_was_known_has_its_default() -> None:
    b = Buffer("x", "f32", (), Scope.STATE)
    data = encode(b)
    assert decode({"ilir.Buffer": data["ilir.Buffer"][:-1]}) == b
    with pytest.raises(TypeError):
        decode({"ilir.Buffer": ["x"]})


@pytest.mark.parametrize(
    "data",
    [
        {"os.system": ["true"]},
        {"ra.Node": []},
        {"ra.Let": []},
        {"ra.Param": "name"},
        {"ra.Param": ["x"], "ra.Field": ["y", []]},
        {"ilir.Scope": "anywhere"},
        {"ilir.Scope": [[1]]},
        {"step.Step": []},
        {},
    ],
)
def test_only_known_nodes_are_read(data: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        decode(data)


def test_only_known_values_are_written() -> None:
    for value in (object(), [1], {"a": 1}, (1, object()), ra.Param):
        with pytest.raises(ValueError, match="cannot be written"):
            encode(value)
