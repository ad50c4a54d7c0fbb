"""Whatever a C program gives it, a package answers with a status: nothing is read or written out of bounds.

Everything runs under AddressSanitizer and UndefinedBehaviorSanitizer, which end the program at the first mistake.
"""

from __future__ import annotations

import json
import struct
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c_program import Package
from package_models import curious, curious_forest, looping, star_forest
from sums_and_products import cell, cell_forest, weights

import cortex
from cortex.cost.choose import ALWAYS
from cortex.recursion.dedup import Dedup

Exported = Callable[..., tuple[Package, Path]]
OK, BAD_ARGUMENT, NO_FILE, BAD_WEIGHTS, OTHER_WEIGHTS, TOO_LARGE, NO_SUCH_NODE, CYCLE = 0, 2, 3, 4, 5, 6, 7, 8
UNKNOWN_KIND, NO_FIELD, FIELD_RANGE = 9, 11, 12


@dataclass(frozen=True)
class Given:
    """What a C program may give: like a Forest, and checked by nobody."""

    num_nodes: int
    lists: dict[str, Any]
    fields: dict[str, Any]
    roots: Any
    room: int
    slots: dict[str, Any] = field(default_factory=dict)

    @staticmethod
    def of(forest: Any) -> Given:
        slots = {name: np.array(array) for name, array in forest.slots.items()}
        lists = {name: tuple(map(np.array, pair)) for name, pair in forest.lists.items()}
        return Given(forest.num_nodes, lists, dict(forest.fields), forest.roots, len(forest.roots), slots)


def broken(forest: Any, **changes: Any) -> Given:
    return replace(Given.of(forest), **changes)


def test_every_mistake_has_its_status(exported: Exported) -> None:
    good = cell_forest(1, 12, False)
    n, (pointer, index), words = good.num_nodes, good.lists["children"], good.fields["word"]
    falls, cycle, outside, negative = pointer.copy(), index.copy(), index.copy(), index.copy()
    falls[3], falls[-1] = 7, len(index) + 1
    cycle[pointer[:-1][np.diff(pointer) > 0][-1]], outside[2], negative[1] = 0, n, -1
    unordered = pointer.copy()
    unordered[1:-1] = unordered[1:-1][::-1]
    leaf = int(np.flatnonzero(np.diff(pointer) == 0)[0])
    large, small = words.copy(), words.copy()
    large[leaf], small[leaf] = 9, -(2**40)
    other = ["neither" if i == 0 else op for i, op in enumerate(good.fields["op"])]
    requests = [
        (good, OK),
        (broken(good, lists={"children": (falls, index)}), NO_SUCH_NODE),
        (broken(good, lists={"children": (unordered, index)}), NO_SUCH_NODE),
        (broken(good, lists={"children": (pointer, cycle)}), CYCLE),
        (broken(good, lists={"children": (pointer, outside)}), NO_SUCH_NODE),
        (broken(good, lists={"children": (pointer, negative)}), NO_SUCH_NODE),
        (broken(good, lists={"children": (None, index)}), BAD_ARGUMENT),
        (broken(good, roots=np.array([n])), NO_SUCH_NODE),
        (broken(good, roots=np.array([-1])), NO_SUCH_NODE),
        (broken(good, room=0), BAD_ARGUMENT),
        (broken(good, num_nodes=-1), BAD_ARGUMENT),
        (broken(good, fields={"op": good.fields["op"]}), NO_FIELD),
        (broken(good, fields={"op": good.fields["op"], "word": large}), FIELD_RANGE),
        (broken(good, fields={"op": good.fields["op"], "word": small}), FIELD_RANGE),
        (broken(good, fields={"op": other, "word": words}), OK),  # what is neither is a product
        (good, OK),
    ]
    fast = cortex.compile(cell, weights(), examples=good.root_nodes())
    package, program = exported(fast, "cell", sanitize=True)
    answers, printed = package.run(program, [request for request, _ in requests])
    assert [a.status for a in answers] == [status for _, status in requests], printed
    assert all(line.startswith("CORTEX_") and len(line) > 30 for line in printed.splitlines())
    assert answers[-1].nodes["h"].tobytes() == fast(good).nodes["h"].tobytes()


def test_unknown_kinds(exported: Exported) -> None:
    forest = curious_forest(3, 30)
    leaves = [forest.node(i) for i in np.flatnonzero(forest.slots["left"] < 0).tolist()]
    known = cortex.compile(curious, weights(), fields={"x": cortex.field((19,))}, examples=leaves)
    package, program = exported(known, "curious", sanitize=True)
    answers, printed = package.run(program, [forest])
    assert [a.status for a in answers] == [UNKNOWN_KIND]
    assert "export the model with examples" in printed


def test_numbers_of_children_that_nobody_checked(exported: Exported) -> None:
    """Up to 64 are checked when the model is compiled, and what examples have; 7, which the code knows, has a kind."""
    arities = {1: OK, 2: OK, 6: OK, 7: OK, 8: OK, 64: OK, 65: UNKNOWN_KIND, 90: OK, 300: UNKNOWN_KIND}
    fast = cortex.compile(looping, weights(), examples=[star_forest(n).root_nodes()[0] for n in (2, 90)])
    package, program = exported(fast, "looping", sanitize=True)
    answers, printed = package.run(program, [star_forest(n) for n in arities])
    assert [a.status for a in answers] == list(arities.values()), printed
    assert "node 0 has a number of children that the model was not checked for" in printed
    for n, answer in zip(arities, answers, strict=True):
        if answer.status == OK:
            (state,) = answer.nodes
            assert answer.nodes[state].tobytes() == fast(star_forest(n)).nodes[state].tobytes()


@pytest.mark.parametrize("steps", [(), (Dedup(),)], ids=repr)
def test_random_mistakes(steps: tuple[Any, ...], exported: Exported) -> None:
    """Numbers anywhere in the structure are replaced; what is not refused computes."""
    rng = np.random.default_rng(0)
    good = [cell_forest(seed, 30, True) for seed in range(4)]
    fast = cortex.compile(cell, weights(), examples=good[0].root_nodes(), recursion=(*ALWAYS, *steps))
    requests = []
    for i in range(300):
        given = Given.of(good[i % 4])
        pointer, index = given.lists["children"]
        words = np.array(given.fields["word"])
        target = (pointer, index, words)[rng.integers(3)]
        for _ in range(int(rng.integers(1, 4))):
            target[rng.integers(len(target))] = rng.choice([-(2**31), -2, -1, 0, 5, 29, 30, 31, 2**31 - 1])
        requests.append(replace(given, fields={**given.fields, "word": words}))
    package, program = exported(fast, "cell", sanitize=True)
    statuses = [a.status for a in package.run(program, requests)[0]]
    assert set(statuses) <= {OK, NO_SUCH_NODE, CYCLE, FIELD_RANGE}
    assert len(set(statuses)) >= 3


def test_sanitizers_find_nothing_on_several_threads(exported: Exported) -> None:
    forest = curious_forest(5, 80)
    fast = cortex.compile(curious, weights(), fields={"x": cortex.field((19,))}, threads=2)
    want = fast(forest)
    package, program = exported(fast, "curious", sanitize=True)
    for threads in (1, 3):
        for answer in package.run(program, [forest] * 3, threads)[0]:
            assert answer.status == OK
            assert answer.nodes["out"].tobytes() == want.nodes["out"].tobytes()


def test_damaged_weights(exported: Exported) -> None:
    good = cell_forest(1, 6, False)
    fast = cortex.compile(cell, weights(), examples=good.root_nodes())
    package, program = exported(fast, "cell", sanitize=True)
    file = package.directory / "cell.safetensors"
    whole = file.read_bytes()
    (length,) = struct.unpack("<Q", whole[:8])
    header = json.loads(whole[8 : 8 + length])
    data = whole[8 + length :]
    name = next(n for n in header if n != "__metadata__")

    def rewritten(change: Callable[[dict[str, Any]], None]) -> bytes:
        copy = json.loads(json.dumps(header))
        change(copy)
        text = json.dumps(copy).encode()
        return struct.pack("<Q", len(text)) + text + data

    rng = np.random.default_rng(0)
    noise = []
    for _ in range(60):
        damaged = bytearray(whole[: 8 + length])
        for _ in range(3):
            damaged[rng.integers(len(damaged))] = rng.integers(256)
        noise.append(bytes(damaged) + data)
    cases = {
        b"": BAD_WEIGHTS,
        whole[:5]: BAD_WEIGHTS,
        whole[:100]: BAD_WEIGHTS,
        whole[:-4]: BAD_WEIGHTS,
        struct.pack("<Q", 2**63) + whole[8:]: BAD_WEIGHTS,
        struct.pack("<Q", 5) + whole[8:]: BAD_WEIGHTS,
        rewritten(lambda h: h.pop(name)): OTHER_WEIGHTS,
        rewritten(lambda h: h[name].update(dtype="F64")): OTHER_WEIGHTS,
        rewritten(lambda h: h[name].update(data_offsets=[0, 4])): OTHER_WEIGHTS,
        rewritten(lambda h: h[name].update(data_offsets=[8, 4])): BAD_WEIGHTS,
        rewritten(lambda h: h[name].update(data_offsets=[2**64, 2**65])): BAD_WEIGHTS,
        rewritten(lambda h: h.pop("__metadata__")): OTHER_WEIGHTS,
        rewritten(lambda h: h["__metadata__"].update(fingerprint="0" * 64)): OTHER_WEIGHTS,
    }
    for content, status in [*cases.items(), *((n, None) for n in noise)]:
        file.write_bytes(content)
        command = [str(program), str(file), str(package.directory / "missing"), str(package.directory / "results"), "1"]
        done = subprocess.run(command, capture_output=True, text=True)  # also: what it prints is text
        assert done.returncode in (2, 3), done.stderr  # refused; or loaded, and then there were no requests
        if status is not None:
            names = {BAD_WEIGHTS: "CORTEX_BAD_WEIGHTS: ", OTHER_WEIGHTS: "CORTEX_OTHER_WEIGHTS: "}
            assert done.stdout.startswith(names[status]), (status, done.stdout)
