"""What becomes of a random user program when it is compiled, by comparison with running it uncompiled."""

from __future__ import annotations

import importlib.util
import signal
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Literal

import numpy as np
from breadth import LONG
from interpreted import interpreting
from user_code import Program
from user_nodes import WORDS, H, Node, structures

import cortex
from cortex.errors import CortexError, InternalError
from cortex.schedule.schedule import Schedule

Verdict = Literal["same", "refused", "raises", "different", "no error", "crash", "slow", "no line"]
BAD: tuple[Verdict, ...] = ("different", "no error", "crash", "slow", "no line")
MOST_SECONDS = 10 if LONG else 20  # tests run two by two, on what may be one core
SAVED = 10
"""One program of so many is compiled to code, saved and loaded; the others are interpreted."""


@dataclass(frozen=True)
class Outcome:
    """A verdict, and what was seen."""

    verdict: Verdict
    text: str = ""


class TooLong(BaseException):
    """A program has taken more than `MOST_SECONDS` of the processor's time."""


class Judged(Exception):
    """The verdict is known."""

    def __init__(self, verdict: Verdict, text: str) -> None:
        super().__init__(verdict, text)
        self.outcome = Outcome(verdict, text)


def judged(program: Program, seconds: float = MOST_SECONDS) -> Outcome:
    """The outcome of a program."""
    with tempfile.TemporaryDirectory(prefix="cortex-program-") as folder:
        path = Path(folder) / f"program_{program.seed}.py"
        path.write_text(program.text)
        try:
            case = Case(program, path)
            with _at_most(seconds), interpreting() if case.is_interpreted else nullcontext():
                return case.outcome()
        except Judged as found:
            return found.outcome
        except TooLong:
            return Outcome("slow")


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise TooLong

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


class Case:
    """A program in memory."""

    def __init__(self, program: Program, path: Path) -> None:
        self.program, self.path = program, path
        self.rng = Random(f"case {program.seed}")
        self.is_interpreted = self.rng.randrange(SAVED) > 0
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None
        self.code = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.code)

    def outcome(self) -> Outcome:
        """Compile, call on structures unlike the examples, as a batch, and after loading; compare each result."""
        wanted = [self._uncompiled(i) for i in range(len(self.fresh()))]
        works = [i for i, want in enumerate(wanted) if not isinstance(want, Exception)]
        if not works:
            return Outcome("raises", str(wanted[0]))
        checks = self.rng.random() < 0.5
        examples = works[:3] if checks else works[:1]
        compile = partial(cortex.compile, schedule=None if self.rng.random() < 0.3 else Schedule(), check=checks)
        fast = self._tried(f"compiling with {examples}", lambda: self._compiled(compile, examples))
        order = self.rng.sample(range(len(wanted)), len(wanted))
        for i in order:
            self._compare(f"structure {i}", partial(self._call, fast, i), wanted[i])
        batch = self.rng.sample(works, len(works))
        self._compare_batch(f"batch {batch}", fast, batch, wanted)
        if not self.is_interpreted:
            file = self.path.with_suffix(".cortex")
            self._tried("saving", lambda: fast.save(file))
            loaded = self._tried("loading", lambda: cortex.load(file))
            self._compare_batch(f"batch {batch} after loading", loaded, batch, wanted)
        return Outcome("same" if len(works) == len(wanted) else "raises")

    def fresh(self) -> list[Node]:
        """The structures, as nobody has changed them."""
        if self.program.front_end == "function":
            return structures(self.program.seed, self.program.shares, lambda x: np.array(x, np.float32))
        import torch

        return structures(self.program.seed, self.program.shares, torch.tensor)

    def _weights(self) -> dict[str, Any]:
        draw = np.random.default_rng(self.program.seed)
        shapes = {"emb": (WORDS, H), "U": (H, H), "P": (H, 2 * H), "b": (H,), "q": (H,)}
        return {name: draw.normal(0, 0.5, shape).astype(np.float32) for name, shape in shapes.items()}

    def _module(self) -> Any:
        import torch

        torch.manual_seed(self.program.seed)
        return self.code.Module().eval().requires_grad_(False)

    def _uncompiled(self, i: int) -> list[Any] | Exception:
        """The numbers that a structure has to give, or the error that the program raises for it."""
        try:
            if self.program.front_end == "function":
                return leaves(self.code.f(self.fresh()[i], self._weights()))
            return leaves(self._module()(self.fresh()[i]))
        except CortexError as error:
            raise Judged(*_refusal("running uncompiled", error, self.path)) from error
        except Exception as error:
            return error

    def _compiled(self, compile: Any, examples: Sequence[int]) -> Any:
        given = self.fresh()
        if self.program.front_end == "function":
            return compile(self.code.f, self._weights(), examples=[given[i] for i in examples])
        return compile(self._module(), examples=[given[i] for i in examples])

    def _call(self, fast: Any, i: int) -> list[Any]:
        return leaves(fast(self.fresh()[i]))

    def _tried(self, what: str, act: Any) -> Any:
        try:
            return act()
        except InternalError as error:
            raise Judged("crash", f"{what}: {error!r}") from error
        except CortexError as error:
            raise Judged(*_refusal(what, error, self.path)) from error
        except Exception as error:
            raise Judged("crash", f"{what}: {error!r}") from error

    def _compare(self, what: str, call: Any, want: list[Any] | Exception) -> None:
        if not isinstance(want, Exception):
            self._same(what, self._tried(what, call), want)
            return
        try:
            got = call()
        except InternalError as error:
            raise Judged("crash", f"{what}: {error!r}") from error
        except (CortexError, type(want)):
            return
        except Exception as error:
            raise Judged("crash", f"{what}: {error!r} instead of {want!r}") from error
        raise Judged("no error", f"{what}: {got} instead of {want!r}")

    def _compare_batch(self, what: str, fast: Any, batch: Sequence[int], wanted: Sequence[Any]) -> None:
        given = self.fresh()
        rows = self._tried(what, lambda: leaves(fast([given[i] for i in batch])))
        for row, i in enumerate(batch):
            self._same(f"{what}, row {row}", [part[row] for part in rows], wanted[i])

    def _same(self, what: str, got: list[Any], want: list[Any]) -> None:
        shapes = [np.shape(x) for x in got], [np.shape(x) for x in want]
        if shapes[0] != shapes[1]:
            raise Judged("different", f"{what}: shapes {shapes[0]} instead of {shapes[1]}")
        for g, w in zip(got, want, strict=True):
            if not np.allclose(g, w, rtol=1e-3, atol=1e-4, equal_nan=True):
                raise Judged("different", f"{what}: {g} instead of {w}")


def _refusal(what: str, error: CortexError, path: Path) -> tuple[Verdict, str]:
    text = str(error)
    if "gives other numbers when it is compiled" in text:
        return "different", f"{what}: found by the self-check: {text}"
    has_line = path.name in text or isinstance(error, cortex.StructureError)
    return "refused" if has_line else "no line", f"{what}: {type(error).__name__}: {text}"


def leaves(result: Any) -> list[Any]:
    """The arrays of a result, in order."""
    if isinstance(result, dict):
        return [x for each in result.values() for x in leaves(each)]
    if is_dataclass(result):
        return [x for each in fields(result) for x in leaves(getattr(result, each.name))]
    if isinstance(result, tuple | list) or type(result).__name__ in ("Output", "StateRecord"):
        return [x for each in result for x in leaves(each)]
    return [np.asarray(result)]
