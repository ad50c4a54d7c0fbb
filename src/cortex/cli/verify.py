"""`cortex verify`: prove that a model's program stays within its arrays, whatever the structure."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cortex.cli.explain import subject_of, traced
from cortex.cli.output import console, print_table, write_json

if TYPE_CHECKING:
    from cortex.poly.bounds import Finding
    from cortex.schedule.parallel_default import Sharing

MAPPINGS = ("columns", "nodes", "trees")
STAGES = ("lowered", "scheduled", "passes")


@dataclass(frozen=True)
class Verified:
    """The accesses of a program at one stage, with what was found of each."""

    stage: str
    findings: list[Finding]
    questions: int
    seconds: float

    @property
    def proven(self) -> int:
        """How many accesses are within bounds for sure."""
        return len(self.findings) - len(self.unproven)

    @property
    def unproven(self) -> list[Finding]:
        """What is not proven: wrong, or beyond the declared facts."""
        return [x for x in self.findings if not x.proven]


@click.command()
@click.argument("model")
@click.option("--weights", type=click.Path(path_type=Path), help="Weights of FILE.py:FUNCTION (.npz, .safetensors).")
@click.option("--examples", metavar="NAME", help="List of structures in FILE.py, to find the kinds of nodes from.")
@click.option("--hidden", type=click.IntRange(min=1), default=32, show_default=True, help="Hidden size, zoo models.")
@click.option("--stage", "wanted", multiple=True, type=click.Choice(STAGES), help="This stage only; repeatable.")
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True, help="Threads a call runs on.")
@click.option(
    "--parallel", type=click.Choice(MAPPINGS), help="What threads share out; by default what is predicted best."
)
@click.option("--json", "json_file", metavar="FILE", help="Write the results as JSON; - for standard output.")
@click.pass_context
def command(
    ctx: click.Context,
    model: str,
    weights: Path | None,
    examples: str | None,
    hidden: int,
    wanted: tuple[str, ...],
    threads: int,
    parallel: Sharing | None,
    json_file: str | None,
) -> None:
    """Prove that every memory access of MODEL is within bounds, for all structures.

    The program is the one that `cortex.compile` makes with these examples. MODEL is the name of a model of the zoo or
    FILE.py:FUNCTION. An access that is not proven is printed with values under which it fails, and makes the exit code
    1.
    """
    results = _verify(*subject_of(model, weights, examples, hidden), wanted or STAGES, threads, parallel)
    to = console(json_file)
    rows = [(r.stage, *map(str, (len(r.findings), r.proven, len(r.unproven))), f"{r.seconds:.2f}") for r in results]
    subject = model if ":" in model else f"{model}, hidden size {hidden}"
    print_table(to, subject, ("stage", "accesses", "proven", "not proven", "seconds"), rows)
    for r in results:
        for finding in r.unproven:
            to.print(f"\n{r.stage}: {finding}", highlight=False, markup=False, soft_wrap=True)
    size = {} if ":" in model else {"hidden": hidden}
    write_json(json_file, {"model": model, **size, "stages": [_as_json(r) for r in results]})
    if any(r.unproven for r in results):
        ctx.exit(1)


def _verify(
    model: Any, weights: Any, examples: list[Any], wanted: tuple[str, ...], threads: int, parallel: Sharing | None
) -> list[Verified]:
    from cortex.codegen.target import Target
    from cortex.compiler import stages
    from cortex.plan import Plan, Wishes
    from cortex.poly.bounds import in_bounds
    from cortex.poly.prove import PATIENT, Prover
    from cortex.schedule.default import Choices

    trace = traced(model, weights, examples)
    results: list[Verified] = []
    prover: Prover | None = None
    choices = Choices(parallel=parallel) if parallel else None
    plan = Plan(
        Target.host(), None, choices, wishes=Wishes(trace, examples), threads=max(threads, 2 if parallel else 1)
    )
    for stage in stages(trace.model(), plan):
        if stage.name in wanted:
            start = time.perf_counter()
            prover = prover if prover and prover.knows(stage.func) else Prover(stage.func, milliseconds=PATIENT)
            before = prover.asked
            # A lowered program has no business in the padding of rows; a scheduled one may compute there.
            findings = in_bounds(stage.func, padding=stage.name != "lowered", prover=prover)
            results.append(Verified(stage.name, findings, prover.asked - before, time.perf_counter() - start))
    return results


def _as_json(r: Verified) -> dict[str, Any]:
    return {
        "stage": r.stage,
        "accesses": len(r.findings),
        "proven": r.proven,
        "questions": r.questions,
        "seconds": r.seconds,
        "not_proven": [
            {"access": str(x).splitlines()[0], "loops": x.site.loops, "fails_at": dict(x.counterexample)}
            for x in r.unproven
        ],
    }
