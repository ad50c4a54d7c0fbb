"""cortex.conv2d computes what torch.nn.functional.conv2d computes."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from random_convolutions import SHAPES, Case, deviation, random_case  # noqa: E402
from torch.nn import functional  # noqa: E402

import cortex  # noqa: E402
from cortex.codegen.target import Target  # noqa: E402
from cortex.primitives.choose import Ranking  # noqa: E402
from cortex.primitives.compiled import machine_of  # noqa: E402
from cortex.primitives.convolution import lower  # noqa: E402
from cortex.runtime.kernel import Kernel  # noqa: E402
from cortex.schedule.stream import Stream  # noqa: E402

TOLERANCE = 5e-6
ONE, NO = (1, 1), (0, 0)

EDGES = {
    "one_point": Case(1, (1, 1), 1, 3, 5, (3, 3), ONE, (1, 1), ONE),
    "padding_larger_than_the_filter": Case(1, (3, 4), 1, 2, 17, (2, 2), ONE, (5, 4), ONE),
    "only_padding_is_seen": Case(1, (1, 1), 1, 2, 3, (1, 1), (3, 3), (4, 4), ONE),
    "filter_as_large_as_the_image": Case(2, (6, 5), 1, 4, 16, (6, 5), ONE, NO, ONE),
    "dilated_beyond_the_image": Case(1, (4, 4), 1, 3, 16, (3, 3), ONE, (6, 6), (4, 4)),
    "stride_leaves_a_rest": Case(1, (10, 11), 1, 5, 33, (3, 3), (3, 4), (1, 1), ONE),
    "depthwise": Case(2, (9, 9), 20, 1, 1, (3, 3), ONE, (1, 1), ONE, activation="relu"),
    "depthwise_many_filters": Case(1, (5, 5), 6, 1, 3, (3, 3), (2, 2), (1, 1), ONE),
    "groups": Case(2, (7, 7), 4, 8, 16, (3, 3), ONE, (1, 1), ONE, residual=True),
    "one_by_seven": Case(1, (17, 17), 1, 8, 32, (1, 7), ONE, (0, 3), ONE),
    "seven_by_one": Case(1, (17, 17), 1, 8, 32, (7, 1), ONE, (3, 0), ONE),
    "default_format": Case(2, (9, 8), 1, 19, 35, (3, 3), (2, 1), (1, 2), ONE, residual=True, channels_last=False),
    "pointwise_default_format": Case(1, (7, 7), 1, 32, 64, (1, 1), ONE, NO, ONE, channels_last=False),
    "image_fills_vectors": Case(2, (9, 7), 1, 20, 35, (1, 1), ONE, NO, ONE, residual=True, channels_last=False),
    "threads": Case(1, (14, 14), 1, 32, 96, (3, 3), ONE, (1, 1), ONE, threads=2),
    "blocks": Case(2, (9, 8), 1, 48, 64, (3, 3), ONE, (1, 1), ONE, residual=True, activation="relu", block=16),
    "blocks_dilated": Case(1, (11, 9), 1, 32, 32, (3, 3), (2, 1), (2, 2), (2, 2), threads=2, block=16),
    "blocks_pointwise": Case(2, (7, 7), 1, 64, 32, (1, 1), ONE, NO, ONE, residual=True, block=16),
    "blocks_groups": Case(1, (8, 9), 2, 32, 16, (3, 3), ONE, (1, 1), ONE, threads=2, block=16),
    "blocks_depthwise": Case(1, (9, 9), 32, 1, 1, (3, 3), ONE, (1, 1), ONE, residual=True, block=16),
    "blocks_smaller_than_a_vector": Case(1, (9, 9), 1, 12, 20, (3, 3), ONE, (1, 1), ONE, residual=True, block=4),
    "blocks_over_groups": Case(1, (6, 7), 4, 4, 12, (3, 3), ONE, (1, 1), ONE, block=8),
}


@pytest.mark.parametrize("name", EDGES)
def test_edges(name: str) -> None:
    assert deviation(EDGES[name]) < TOLERANCE


def test_random_shapes() -> None:
    for seed in range(SHAPES):
        case = random_case(seed)
        assert deviation(case, seed) < TOLERANCE, (seed, case)


@pytest.mark.parametrize("level", ["avx2", "sse2"])
@pytest.mark.parametrize(
    "name", ["groups", "one_by_seven", "depthwise", "default_format", "blocks", "blocks_groups", "blocks_depthwise"]
)
def test_other_instruction_sets(name: str, level: str) -> None:
    assert deviation(EDGES[name], target=Target.x86(level)) < TOLERANCE  # type: ignore[arg-type]


def test_numbers_without_pytorch() -> None:
    x, w = np.arange(2 * 3 * 4, dtype=np.float32).reshape(1, 2, 3, 4), np.ones((1, 2, 1, 1))
    found = cortex.conv2d(w, [0.5])(x)
    assert isinstance(found, np.ndarray)
    np.testing.assert_array_equal(found, x.sum(axis=1, keepdims=True) + 0.5)


def test_empty_batch_and_a_single_image() -> None:
    conv = cortex.conv2d(np.ones((4, 3, 3, 3)), padding=1)
    assert conv(np.zeros((0, 3, 8, 9), np.float32)).shape == (0, 4, 8, 9)
    x = np.random.default_rng(0).standard_normal((3, 8, 9), np.float32)
    np.testing.assert_array_equal(conv(x), conv(x[None])[0])


def test_memory_format_of_the_result_is_the_input_s() -> None:
    conv = cortex.conv2d(np.ones((16, 3, 3, 3)), padding=1)
    x = torch.randn(2, 3, 8, 9)
    assert conv(x).is_contiguous()
    assert conv(x.contiguous(memory_format=torch.channels_last)).is_contiguous(memory_format=torch.channels_last)
    strided = torch.randn(2, 3, 8, 18)[..., ::2]
    torch.testing.assert_close(conv(strided), conv(strided.contiguous()))


def test_channels_last_axes() -> None:
    x, w = torch.randn(2, 5, 6, 7), torch.randn(8, 5, 3, 3)
    found = cortex.conv2d(w, layout="NHWC", padding=(0, 1))(x.permute(0, 2, 3, 1).numpy())
    torch.testing.assert_close(torch.from_numpy(found).permute(0, 3, 1, 2), functional.conv2d(x, w, padding=(0, 1)))


def test_nothing_is_copied_and_out_is_written() -> None:
    conv = cortex.conv2d(np.ones((4, 3, 1, 1)))
    x = torch.randn(1, 3, 5, 5).contiguous(memory_format=torch.channels_last)
    out = torch.empty(1, 4, 5, 5).contiguous(memory_format=torch.channels_last)
    assert conv(x, out=out) is out
    torch.testing.assert_close(out, conv(x))


@pytest.mark.parametrize("kind", ["numpy", "torch"])
@pytest.mark.parametrize(
    ("layout", "shape"), [("NHWC", (2, 5, 6, 32)), ("NCHW", (2, 32, 5, 6)), ("NCHW16c", (2, 2, 5, 6, 16))]
)
def test_kernels_are_given_the_callers_own_memory(
    layout: str, shape: tuple[int, ...], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, int]] = []
    run = Kernel.run

    def recorded(self: Kernel, inputs: tuple[np.ndarray, ...], out: np.ndarray, *rest: object) -> np.ndarray:
        seen.append((inputs[0].ctypes.data, out.ctypes.data))
        return run(self, inputs, out, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Kernel, "run", recorded)
    conv = cortex.conv2d(torch.randn(32, 32, 3, 3), padding=1, layout=layout)
    x = torch.randn(shape)
    out = torch.full(shape, torch.nan)
    if kind == "torch":
        assert conv(x, out=out) is out
    else:
        conv(x.numpy(), out=out.numpy())
    assert seen == [(x.data_ptr(), out.data_ptr())]
    assert not out.isnan().any()


def test_modules_of_pytorch() -> None:
    module = torch.nn.Conv2d(6, 8, (3, 2), stride=(2, 1), padding="valid", dilation=(1, 2), groups=2).eval()
    x = torch.randn(2, 6, 11, 12)
    torch.testing.assert_close(cortex.conv2d(module)(x), module(x).detach())
    same = torch.nn.Conv2d(6, 4, 4, padding="same").eval()
    padded = functional.pad(x, (1, 2, 1, 2))
    wanted = torch.relu(functional.conv2d(padded, same.weight, same.bias)).detach()
    torch.testing.assert_close(cortex.conv2d(same, activation="relu")(x), wanted)


def test_same_bits_on_any_number_of_threads_and_from_many_callers() -> None:
    conv = cortex.conv2d(torch.randn(48, 16, 3, 3), torch.randn(48), padding=1)
    x = torch.randn(3, 16, 15, 14).contiguous(memory_format=torch.channels_last)
    wanted = conv(x)
    assert all(torch.equal(conv(x, threads=count), wanted) for count in (1, 2, 3))
    different: list[int] = []

    def call(number: int) -> None:
        if not all(torch.equal(conv(x, threads=1 + number % 2), wanted) for _ in range(20)):
            different.append(number)

    callers = [threading.Thread(target=call, args=(number,)) for number in range(4)]
    for each in callers:
        each.start()
    for each in callers:
        each.join()
    assert not different


def test_tuning_changes_the_way_and_not_the_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    w, x = torch.randn(32, 8, 3, 3), torch.randn(1, 8, 14, 14)
    machine = machine_of(Target.host())
    monkeypatch.setattr("cortex.primitives.compiled.machine_of", lambda _: machine)
    monkeypatch.setenv("CORTEX_CACHE", str(tmp_path))
    tuned, chosen = cortex.conv2d(w, padding=1, tune=3), cortex.conv2d(w, padding=1)
    assert torch.equal(tuned(x), chosen(x))
    c = tuned.shape_of(x.numpy())
    best = Ranking(lower(c), machine).choices[:3]
    assert tuned.compiled(c).variant in {choice.variant for choice in best}
    assert chosen.compiled(c).variant == best[0].variant


def test_the_published_cost_can_be_asked_for() -> None:
    w, x = torch.randn(64, 32, 3, 3), torch.randn(1, 32, 28, 28)
    default, published = cortex.conv2d(w, padding=1), cortex.conv2d(w, padding=1, cost="working sets")
    assert torch.equal(default(x), published(x))
    c = default.shape_of(x.numpy())
    ranking = Ranking(lower(c), machine_of(Target.host()), "working sets")
    assert published.compiled(c).variant == ranking.choices[0].variant != default.compiled(c).variant


def test_tuning_is_done_once_per_shape_instruction_set_and_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine, runs = machine_of(Target.host()), list[int]()
    monkeypatch.setattr("cortex.primitives.compiled.machine_of", lambda _: machine)
    monkeypatch.setenv("CORTEX_CACHE", str(tmp_path))

    def times(f: object, built: list[object], threads: int) -> list[float]:
        runs.append(threads)
        return [float(len(built) - i) for i in range(len(built))]  # the last is the fastest

    monkeypatch.setattr("cortex.primitives.compiled._times", times)
    w, x = torch.randn(32, 8, 3, 3), torch.randn(1, 8, 14, 14)

    def variant(size: int = 14, tune: int = 3, threads: int = 1, target: Target | None = None) -> object:
        conv = cortex.conv2d(w, padding=1, tune=tune, target=target)
        return conv.compiled(conv.shape_of(x[:, :, :size].numpy()), threads).variant

    third = variant()
    assert third == Ranking(lower(cortex.conv2d(w, padding=1).shape_of(x.numpy())), machine).choices[2].variant
    assert variant() == variant(tune=2) == third
    assert runs == [1]
    for changed in ({"size": 12}, {"threads": 2}, {"target": Target.x86("avx2")}, {"tune": 4}):
        variant(**changed)  # type: ignore[arg-type]
        variant(**changed)  # type: ignore[arg-type]
    assert runs == [1, 1, 2, 1, 1]
    for file in (tmp_path / "tuned").iterdir():
        file.write_text(file.read_text().replace('"height": ', '"height": 1'))  # no such tile
    variant()
    assert runs == [1, 1, 2, 1, 1, 1]


@pytest.mark.parametrize("name", ["groups", "threads", "blocks", "blocks_pointwise", "default_format", "depthwise"])
def test_streamed_results(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cortex.primitives.compiled.streaming_pays", lambda size, machine: True)
    assert deviation(EDGES[name]) < TOLERANCE


def test_only_results_larger_than_the_caches_are_streamed() -> None:
    conv = cortex.conv2d(torch.randn(64, 1, 1, 1))

    def streams(rows: int) -> bool:
        return Stream("y") in conv.compiled(conv.shape_of(np.broadcast_to(np.float32(0), (1, 1, rows, 1024)))).schedule

    assert streams(4096) and not streams(4)


def test_nan_goes_through_relu() -> None:
    x = np.full((1, 1, 2, 2), np.nan, np.float32)
    assert np.isnan(cortex.conv2d(np.ones((1, 1, 1, 1)), activation="relu")(x)).all()
