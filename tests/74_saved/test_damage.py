"""A file that was cut short, changed, or written by another version is refused in words, and never read wrongly."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any
from zlib import crc32

import pytest
import torch
from click.testing import CliRunner

import cortex
from cortex import ModelError
from cortex.cli.main import main
from cortex.saved.container import MAGIC, VERSION, pack, unpack
from cortex.saved.read import read
from cortex.saved.seal import SEAL, seal_of

START = len(MAGIC) + 4 + 32


@pytest.fixture
def content(make: Any, trees: Any, file: Path) -> bytes:
    make("tree_lstm", examples=trees("tree_lstm"), choices=None, recursion=None).save(file)
    return file.read_bytes()


def signed(head: bytes, rest: bytes) -> bytes:
    """A file with a right checksum."""
    return MAGIC + VERSION.to_bytes(4, "little") + hashlib.sha256(head).digest() + head + rest


def file_of(head: Any, sections: list[Any], is_sealed: bool = True) -> bytes:
    """A file with this head and sections, and right checksums; its seal is right too if it `is_sealed`."""
    if is_sealed and isinstance(head, dict):
        head = {**head, "checksums": [crc32(section) for section in sections]}
        head[SEAL] = seal_of(head)
    return b"".join(pack(head, sections))


def with_section(content: bytes, number: int, changed: Any, is_sealed: bool = True) -> bytes:
    """The file with another description or record."""
    head, sections, _ = unpack(content, "it")
    raw = [bytes(section) for section in sections]
    raw[number] = json.dumps(changed).encode("ascii")
    return file_of(head, raw, is_sealed)


def test_sections_of_any_size() -> None:
    sections = [b"", b"x" * 63, b"y" * 64, b"", b"z" * 65]
    contents, found, checksums = unpack(b"".join(pack({"a": [1, "\ud800"]}, sections)), "it")
    assert checksums == [crc32(section) for section in sections]
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
    with pytest.raises(ModelError, match="its sections are not where it says"):
        cortex.load(file)


def test_large_sections_are_checked_on_request(content: bytes, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, sections, _ = unpack(content, "it")
    largest = max(sections, key=len)
    at = content.rindex(bytes(largest))
    file.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
    monkeypatch.setattr("cortex.saved.container.LARGE", len(largest) - 1)
    cortex.load(file)
    with pytest.raises(ModelError, match="the checksum of a section is wrong"):
        cortex.load(file, verify=True)


def test_sizes_are_not_believed(content: bytes) -> None:
    rest = content[START:]
    for length in (0, 1, len(rest), 1 << 40, (1 << 64) - 1):
        with pytest.raises(ModelError, match="is damaged or incomplete"):
            unpack(signed(length.to_bytes(8, "little"), rest[8:]), "it")
    contents, sections, _ = unpack(content, "it")
    table = [[len(s), crc32(s)] for s in sections]
    for wrong in ([-1], [[-1, 0]], [[1 << 62, 0]], [["1", 0]], None, table[:-1], [[0, 0], *table], [*table, [0]]):
        about = json.dumps({"sections": wrong, "contents": contents}).encode()
        with pytest.raises(ModelError, match="is damaged or incomplete"):
            unpack(signed(len(about).to_bytes(8, "little") + about, rest[8 + len(about) :]), "it")


OTHERS: list[Any] = [
    *(
        None,
        -1,
        0,
        1 << 31,
        1 << 70,
        "x",
        "\x1b[31m",
        [],
        {},
        {"ra.Let": []},
        {"nothing": 1},
        [[]],
        True,
        0.5,
        "DELETED",
    ),
]


def changes(contents: Any, seed: int, number: int) -> Iterator[Any]:
    """The description with something else in one place, or nothing."""
    random = Random(seed)
    for _ in range(number):
        changed = json.loads(json.dumps(contents))
        at: Any = changed
        while True:
            keys = list(at) if isinstance(at, dict) else list(range(len(at)))
            key = random.choice(keys)
            inner = at[key]
            if not isinstance(inner, dict | list) or not inner or random.random() < 0.15:
                break
            at = inner
        at[key] = random.choice(OTHERS)
        if at[key] == "DELETED":
            del at[key]
        yield changed


def refused(file: Path, use: Callable[[], object]) -> bool:
    """Whatever is in the file: it is understood, or refused in words without control characters."""
    result = CliRunner().invoke(main, ["inspect", "--schedule", str(file)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "\x1b" not in result.output
    try:
        use()
    except ModelError as error:
        assert "\x1b" not in str(error)
        return True
    return False


@pytest.mark.parametrize("what", ["model", "module"])
def test_descriptions_that_make_no_sense(what: str, content: bytes, file: Path) -> None:
    """Whatever is put anywhere into the description, with a right checksum: it is refused in words, or can be read."""
    if what == "module":
        module = Module()
        cortex.compile(module, examples=[EXAMPLE]).save(file)
        content = file.read_bytes()
    head, sections, _ = unpack(content, "it")
    number = head["description"]
    description = json.loads(bytes(sections[number]))
    edited = resealed = of_head = 0
    for changed in changes(description, 2, 20):
        file.write_bytes(with_section(content, number, changed, is_sealed=False))
        edited += refused(file, lambda: cortex.load(file))
    assert edited > 17  # but for places where nothing changed
    for changed in changes(description, 3, 60):
        file.write_bytes(with_section(content, number, changed))
        resealed += refused(file, lambda: [p.program() for part in read(file).parts for p in part.programs])
    assert resealed > 30
    for changed in changes(head, 4, 40):
        file.write_bytes(file_of(changed, [bytes(section) for section in sections]))
        of_head += refused(file, lambda: read(file))
    assert of_head > 5


def test_the_code_of_an_edited_file_is_not_run(content: bytes, file: Path) -> None:
    """The record says how code is called: other sizes would have it read elsewhere."""
    head, sections, _ = unpack(content, "it")
    number = head["records"][0][-1]
    text = json.dumps(json.loads(bytes(sections[number])))
    for wrong in (text.replace("8", "80"), text.replace("num_nodes", "num_groups")):
        assert wrong != text
        file.write_bytes(with_section(content, number, json.loads(wrong), is_sealed=False))
        with pytest.raises(ModelError, match="does not understand its description"):
            cortex.load(file)


class Module(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.emb = torch.nn.Embedding(4, 4)

    def forward(self, node: Any, flag: bool = True) -> Any:
        x = self.emb(torch.tensor(node.word))
        if node.left is None:
            return x
        return torch.tanh(x + self.forward(node.left, flag) * self.forward(node.right, flag))


EXAMPLE = SimpleNamespace(word=1, left=SimpleNamespace(word=2, left=None), right=SimpleNamespace(word=3, left=None))


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

    monkeypatch.setattr(os, "replace", fails)
    with pytest.raises(OSError, match="disk full"):
        make().save(file)
    assert file.read_bytes() == content
    assert [path.name for path in file.parent.iterdir()] == [file.name]
