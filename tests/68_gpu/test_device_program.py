"""Requests on an OpenCL device: PoCL, where there is no other."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from toy_device_program import expected, on_device, toy_program, tree

from cortex.errors import InternalError, ModelError, StructureError
from cortex.runtime.opencl import OpenClDevice, find_device

STEP = [1.0, 0.5, 2.0]


@pytest.fixture(params=["persistent", "per level"])
def program(request: pytest.FixtureRequest) -> Any:
    return on_device(find_device(), toy_program(request.param == "persistent"), STEP)


def test_one_structure(program: Any) -> None:
    run = program.run([tree(4)], True)
    np.testing.assert_array_equal(run.root(0), expected(4, STEP))
    assert run.num_nodes == 9


def test_launches(program: Any) -> None:
    run = program.run([tree(6)], True)
    assert run.launches == (1 if program.program.persistent else 7)


def test_a_list_and_its_nodes(program: Any) -> None:
    run = program.run([tree(2, 1.0), tree(5, 1.0), tree(0, 1.0)], False)
    np.testing.assert_array_equal(run.root(0), [expected(h, STEP, 1.0) for h in (2, 5, 0)])
    first = [expected(h, STEP, 1.0) for h in (2, 1, 0, 0, 0)]  # preorder: left before right
    np.testing.assert_array_equal(run.nodes(0)[:5], first)
    assert run.nodes(0).shape == (17, 3)


def test_an_empty_list(program: Any) -> None:
    run = program.run([], False)
    assert run.root(0).shape == (0, 3) and run.nodes(0).shape == (0, 3) and run.launches == 0


def test_one_structure_is_one(program: Any) -> None:
    with pytest.raises(StructureError, match="one structure was asked for, and there are 2"):
        program.run([tree(1), tree(1)], True)


def test_requests_that_grow_and_shrink(program: Any) -> None:
    kept = [program.run([tree(h, 0.5)], True) for h in (3, 40, 2, 200, 2)]
    for run, h in zip(kept, (3, 40, 2, 200, 2), strict=True):
        np.testing.assert_array_equal(run.root(0), expected(h, STEP, 0.5))
        np.testing.assert_array_equal(run.nodes(0)[0], expected(h, STEP, 0.5))  # its memory is still its own


def test_memory_is_used_again(program: Any) -> None:
    device = program.device
    program.run([tree(50)], True)
    allocated: list[int] = []
    allocate = device.allocate
    try:
        device.allocate = lambda size: allocated.append(size) or allocate(size)
        for h in (50, 3, 49):
            program.run([tree(h)], True)
    finally:
        del device.allocate
    assert allocated == []


def test_given_arrays(program: Any) -> None:
    out = np.zeros((2, 3), np.float32)
    run = program.run([tree(1), tree(2)], False, 1, [out])
    assert run.root(0) is out
    np.testing.assert_array_equal(out, [expected(1, STEP), expected(2, STEP)])


def test_several_callers(program: Any) -> None:
    def call(h: int) -> Any:
        return program.run([tree(h, 0.25)], True).root(0)

    with ThreadPoolExecutor(4) as pool:
        got = list(pool.map(call, [1 + n % 17 for n in range(60)]))
    np.testing.assert_array_equal(got, [expected(1 + n % 17, STEP, 0.25) for n in range(60)])


def test_work_groups_that_wait_for_each_other() -> None:
    device = find_device()
    groups = device.compute_units if device.is_processor else 1
    program = on_device(device, toy_program(True, groups), STEP)
    for h in (3, 12, 5):  # the barrier is fit for the next launch
        np.testing.assert_array_equal(program.run([tree(h)], True).root(0), expected(h, STEP))


def test_groups_that_are_not_resident_are_refused() -> None:
    device = find_device()
    if device.is_processor:
        with pytest.raises(InternalError, match=r"waits for 1000 work-groups, and .* runs \d+ at once"):
            device.build(toy_program(True, 1000))


def test_bad_source_shows_the_log_of_the_build() -> None:
    with pytest.raises(InternalError, match=r"(?s)refuses the kernels of heights.*undeclared identifier 'nonsense'"):
        find_device().build(toy_program(False, source="__kernel void heights() { nonsense; }"))


def test_kernels_are_built_once(monkeypatch: pytest.MonkeyPatch) -> None:
    device = find_device()
    device.build(toy_program(False))
    monkeypatch.setattr(OpenClDevice, "_compile", lambda *_: pytest.fail("built again"))
    device.build(toy_program(False))


def test_a_device_that_is_not_there() -> None:
    with pytest.raises(ModelError, match=r"an OpenCL device called 'abacus' was asked for; there are '.+'"):
        find_device("abacus")


def test_memory_that_is_not_there() -> None:
    with pytest.raises(MemoryError, match=r"has no \d+ bytes for a request"):
        find_device().allocate(1 << 62)


def test_buffers_of_too_many_elements(program: Any) -> None:
    from cortex.runtime.device_layout import work_layout

    with pytest.raises(StructureError, match="split it into smaller batches"):
        work_layout(program.program, {"num_nodes": 2**30, "num_groups": 3}, 64)
