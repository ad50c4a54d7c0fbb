"""Binary AIGER circuits."""

from pathlib import Path

import numpy as np
import pytest
from extreme_structures import with_list_of_children

from cortex.errors import StructureError
from cortex.structures.aiger import GATE, Circuit, read_aiger

# Inputs 1, 2; gate 3 = 2 and not 1 (literals 4, 3: differences 2, 1); gate 4 = not 3 and 1 (7, 2: 1, 5); output not 4.
SMALL = b"aig 4 2 0 1 2\n9\n\x02\x01\x01\x05c\ncomment"


def levels(c: Circuit) -> int:
    height = np.zeros(len(c.left), dtype=np.int64)
    for i in np.flatnonzero(c.left >= 0):
        height[i] = 1 + max(height[c.left[i]], height[c.right[i]])
    return int(height.max())


def evaluate(c: Circuit, inputs: list[bool]) -> list[bool]:
    values = [False, *inputs]
    for i in range(len(values), len(c.left)):
        inversion = int(c.word[i]) - GATE
        values.append((values[c.left[i]] ^ bool(inversion & 2)) and (values[c.right[i]] ^ bool(inversion & 1)))
    return [values[o] ^ bool(inv) for o, inv in zip(c.outputs, c.inverted, strict=True)]


def test_a_small_circuit() -> None:
    c = read_aiger(SMALL)
    assert c.left.tolist() == [-1, -1, -1, 2, 3]
    assert c.right.tolist() == [-1, -1, -1, 1, 1]
    assert c.word.tolist() == [0, 1, 1, GATE + 1, GATE + 2]
    assert (c.outputs.tolist(), c.inverted.tolist()) == ([4], [1])
    for a in (False, True):
        for b in (False, True):
            assert evaluate(c, [a, b]) == [not (not (b and not a) and a)]


def test_latches_are_nodes_without_operands() -> None:
    c = read_aiger(b"aig 3 1 1 1 1\n6\n6\n\x02\x02")
    assert c.word.tolist() == [0, 1, 2, GATE]
    assert (c.left.tolist(), c.right.tolist()) == ([-1, -1, -1, 2], [-1, -1, -1, 1])


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "the first line is not 'aig M I L O A'"),
        (b"aag 4 2 0 1 2\n", "the first line is not 'aig M I L O A'"),
        (b"aig 4 2 0 1 -2\n", "the first line is not 'aig M I L O A'"),
        (b"aig 5 2 0 1 2\n9\n\x02\x01\x01\x05", "M = 5, but I + L + A = 4"),
        (b"aig 9999 2 0 1 9997\n9\n", "the header promises more than fits in 22 bytes"),
        (b"aig 99999999999 99999999999 0 0 0\n", "up to 67108864 variables are read"),
        (b"aig " + b"9" * 5000 + b" 2 0 1 2\n", "the first line is not 'aig M I L O A'"),
        (b"aig 4 2 0 1 2\n10\n\x02\x01\x01\x05", "output literal 10 is beyond the highest, 9"),
        (b"aig 4 2 0 1 2\nx\n\x02\x01\x01\x05", "expected a line with one output literal"),
        (b"aig 4 2 0 1 2\n9\n\x02\x01\x01", "gate 4 is cut short"),
        (b"aig 4 2 0 1 2\n9\n\x00\x01\x01\x05", "gate 3 has an operand that is not an earlier literal"),
        (b"aig 4 2 0 1 2\n9\n\x02\x7f\x01\x05", "gate 3 has an operand that is not an earlier literal"),
        (b"aig 4 2 0 1 2\n9\n" + b"\xff" * 9, "its number is too long"),
    ],
)
def test_malformed(data: bytes, problem: str) -> None:
    with pytest.raises(StructureError) as error:
        read_aiger(data)
    assert problem in str(error.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StructureError, match="No such file"):
        read_aiger(tmp_path / "none.aig")


def test_every_truncation_and_byte_flip_is_read_or_refused() -> None:
    for cut in range(len(SMALL)):
        for flip in (0x00, 0x01, 0x80, 0xFF):
            broken = SMALL[:cut] + bytes([SMALL[cut] ^ flip]) + (SMALL[cut + 1 :] if flip else b"")
            try:
                c = read_aiger(broken)
            except StructureError:
                continue
            gates = np.flatnonzero(c.left >= 0)
            assert (
                (c.left[gates] < gates).all()
                and (c.right[gates] <= c.left[gates]).all()
                and (c.outputs < len(c.left)).all()
            )


def test_the_adder_adds(data: Path) -> None:
    c = read_aiger(data / "aig" / "adder.aig")
    rng = np.random.default_rng(0)
    for _ in range(3):
        a, b = (int.from_bytes(rng.bytes(16), "little") for _ in range(2))
        bits = evaluate(c, [bool(x >> i & 1) for x in (a, b) for i in range(128)])
        assert sum(bit << i for i, bit in enumerate(bits)) == a + b


def test_the_published_circuits(data: Path) -> None:
    gates = {path.stem: int((read_aiger(path).left >= 0).sum()) for path in sorted((data / "aig").glob("*.aig"))}
    assert len(gates) == 20
    assert (gates["hyp"], gates["ctrl"], gates["voter"]) == (214_335, 174, 13_758)
    assert levels(read_aiger(data / "aig" / "hyp.aig")) == 24_801


def test_as_a_forest_with_slots_or_with_a_list() -> None:
    slots = read_aiger(SMALL).forest()
    top = slots.node(int(slots.roots[0]))
    assert (top.word, top.left.word, top.left.left.word, top.left.left.left) == (GATE + 2, GATE + 1, 1, None)
    lists = with_list_of_children(read_aiger(SMALL))
    assert [child.word for child in lists.node(4).children] == [GATE + 1, 1]
    assert lists.node(1).children == ()
