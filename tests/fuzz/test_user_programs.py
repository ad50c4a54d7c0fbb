"""Random user programs, of both front ends: compiled, they give what they give uncompiled, or are refused with a line.

`python -m pytest tests/fuzz/test_user_programs.py -s` tries those of `make test`; `--programs 10000` is the long run,
`--first-program 300` begins elsewhere, and `--program 17` tries one and prints a smaller one if it fails.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import pytest

pytest.importorskip("torch")

from breadth import LONG
from judged_programs import BAD, Outcome, judged
from shrunk_source import shrunk
from user_code import Program, program


def smaller(found: Program, outcome: Outcome) -> Program:
    """The program without statements that the same verdict does not need."""
    seconds = 15 if outcome.verdict == "slow" else 10

    def is_alike(text: str) -> bool:
        try:
            other = judged(Program(found.seed, found.front_end, text, found.shares), seconds)
        except Exception:  # without a statement that it needs, it cannot even be loaded
            return False
        return other.verdict == outcome.verdict and other.text[:60] == outcome.text[:60]

    return Program(found.seed, found.front_end, shrunk(found.text, is_alike), found.shares)


def seeds_of(first: int, count: int) -> list[int]:
    """Seeds of `count` programs; one module to five functions where there is a minute, for modules take longer."""
    if LONG:
        return list(range(first, first + count))
    modules = count // 6
    return [*range(first + 1, first + 1 + 2 * (count - modules), 2), *range(first, first + 2 * modules, 2)]


@pytest.mark.filterwarnings("ignore")
def test_programs_mean_what_python_means(program_options: dict[str, Any]) -> None:
    count, first, chosen, deepest = program_options.values()
    seeds = [chosen] if chosen is not None else seeds_of(first, count)
    verdicts: Counter[str] = Counter()
    failures: list[str] = []
    start = time.process_time()
    for number, seed in enumerate(seeds, 1):
        given = program(seed, deepest)
        outcome = judged(given)
        verdicts[outcome.verdict] += 1
        if outcome.verdict in BAD:
            shown = given if chosen is None else smaller(given, outcome)
            failures.append(
                f"program {seed} is {outcome.verdict}: {outcome.text}\nagain with: python -m pytest "
                f"tests/fuzz/test_user_programs.py --program {seed} --nested {deepest}\n\n{shown.text}"
            )
            print(failures[-1], flush=True)
        if number % 50 == 0:
            print(f"{number} programs, {time.process_time() - start:.0f} s: {dict(verdicts)}", flush=True)
    assert not failures, f"{len(failures)} of {len(seeds)} programs failed\n\n" + "\n\n".join(failures[:5])
    assert verdicts["refused"] <= 0.2 * len(seeds) + 1, f"too many programs are refused: {verdicts}"


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_programs_are_those_of_their_seeds() -> None:
    assert all(program(seed) == program(seed) for seed in range(20))


def test_a_program_shrinks_to_what_matters() -> None:
    text = "import math\n\ndef f(x):\n    y = 1\n    if x:\n        z = 2\n        bad()\n    return y\n"
    assert shrunk(text, lambda other: "bad()" in other) == "def f(x):\n    bad()\n"
