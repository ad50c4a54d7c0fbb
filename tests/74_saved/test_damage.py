"""A file that was cut short, changed, or written by another version is refused in words, and never read wrongly."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

import cortex
from cortex import ModelError
from cortex.saved.container import MAGIC, VERSION, pack, unpack
from cortex.saved.read import read

START = len(MAGIC) + 4 + 32


@pytest.fixture
def content(make: Any, trees: Any, file: Path) -> bytes:
    make("tree_lstm", examples=trees("tree_lstm"), choices=None, recursion=None).save(file)
    return file.read_bytes()


def signed(rest: bytes) -> bytes:
    """A file with a right checksum."""
    return MAGIC + VERSION.to_bytes(4, "little") + hashlib.sha256(rest).digest() + rest


def test_sections_of_any_size() -> None:
    sections = [b"", b"x" * 63, b"y" * 64, b"", b"z" * 65]
    contents, found = unpack(b"".join(pack({"a": [1, "\ud800"]}, sections)), "it")
    assert contents == {"a": [1, "\ud800"]} and [bytes(f) for f in found] == sections


def test_any_byte_that_changed(content: bytes, file: Path) -> None:
    random = Random(0)
    places = [*range(START + 16), *(random.randrange(len(content)) for _ in range(300))]
    for place in places:
        changed = bytearray(content)
        changed[place] ^= 1 << random.randrange(8)
        file.write_bytes(changed)
        with pytest.raises(ModelError, match=r"is damaged or incomplete|is no saved model|has format \d+"):
            cortex.load(file)


def test_any_length(content: bytes, file: Path) -> None:
    random = Random(1)
    for length in [*range(START + 16), *(random.randrange(len(content)) for _ in range(100)), len(content) - 1]:
        file.write_bytes(content[:length])
        with pytest.raises(ModelError, match=r"is damaged or incomplete|is no saved model"):
            cortex.load(file)
    file.write_bytes(content + b"\0")
    with pytest.raises(ModelError, match="its checksum is wrong"):
        cortex.load(file)


def test_sizes_are_not_believed(content: bytes) -> None:
    rest = content[START:]
    for length in (0, 1, len(rest), 1 << 40, (1 << 64) - 1):
        with pytest.raises(ModelError, match="is damaged or incomplete"):
            unpack(signed(length.to_bytes(8, "little") + rest[8:]), "it")
    contents, sections = unpack(content, "it")
    for sizes in ([-1], [1 << 62], ["1"], None, [len(s) for s in sections][:-1], [0, *map(len, sections)]):
        about = json.dumps({"sections": sizes, "contents": contents}).encode()
        with pytest.raises(ModelError, match="is damaged or incomplete"):
            unpack(signed(len(about).to_bytes(8, "little") + about + rest[8 + len(about) :]), "it")


def test_descriptions_that_make_no_sense(content: bytes, file: Path) -> None:
    """Whatever is put anywhere into the description, with a right checksum: it is refused in words, or can be read."""
    contents, sections = unpack(content, "it")
    raw = [bytes(section) for section in sections]
    random = Random(2)
    others: list[Any] = [None, -1, 1 << 70, "x", [], {}, {"ra.Let": []}, {"nothing": 1}, [[]], True, 0.5]
    refused = 0
    for _ in range(300):
        changed = json.loads(json.dumps(contents))
        at: Any = changed
        while True:
            keys = list(at) if isinstance(at, dict) else list(range(len(at)))
            key = random.choice(keys)
            inner = at[key]
            if not isinstance(inner, dict | list) or not inner or random.random() < 0.15:
                break
            at = inner
        at[key] = random.choice(others)
        file.write_bytes(b"".join(pack(changed, raw)))
        try:
            for part in read(file).parts:
                part.program()
        except ModelError as error:
            refused += 1
            assert "does not understand its description" in str(error)
    assert refused > 100


def test_a_newer_file(content: bytes, file: Path) -> None:
    newer = bytearray(content)
    newer[len(MAGIC)] = VERSION + 1
    file.write_bytes(newer)
    with pytest.raises(ModelError, match=rf"has format {VERSION + 1}, and this Cortex reads formats up to {VERSION}"):
        cortex.load(file)


def test_what_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="cannot be read: No such file"):
        cortex.load(tmp_path / "missing.cortex")
    with pytest.raises(ModelError, match="cannot be read: Is a directory"):
        cortex.load(tmp_path)
    for path, what in (
        (tmp_path / "missing" / "model.cortex", "No such file or directory"),
        (tmp_path, "Is a directory"),
    ):
        with pytest.raises(OSError, match=what) as caught:
            cortex.compile(lambda_free(), {}).save(path)
        assert caught.value.filename == str(path)
        assert str(caught.value).endswith(f"{what}: {str(path)!r}")


def lambda_free() -> Any:
    @cortex.model
    def count(node: Any) -> Any:
        return cortex.ones(1) + cortex.sum(count(k) for k in node.children)

    return count


def test_a_failed_save_leaves_the_old_file(
    content: bytes, file: Path, make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", fails)
    with pytest.raises(OSError, match="disk full"):
        make().save(file)
    assert file.read_bytes() == content
    assert [path.name for path in file.parent.iterdir()] == [file.name]
