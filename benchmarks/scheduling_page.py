"""Write docs/scheduling.md, docs/scheduling_threads.md or docs/scheduling_gpu.md from the docstrings of the steps.

python benchmarks/scheduling_page.py docs/scheduling.md
python benchmarks/scheduling_page.py docs/scheduling_threads.md
python benchmarks/scheduling_page.py docs/scheduling_gpu.md
"""

from __future__ import annotations

import inspect
import sys
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from cortex.ir.step import Step
from cortex.schedule.schedule import GPU_STEPS, LOOP_STEPS, RECURSION_STEPS, THREAD_STEPS

INTRODUCTION = """# Scheduling

<!-- written by benchmarks/scheduling_page.py from the docstrings of the steps -->

A schedule is a tuple of steps. A step is a value: it prints as the Python that rebuilds it, equal steps are equal, and
it can be part of a key. `step.apply(program)` asks first whether the step is legal there; if not, it raises
`ScheduleError`, which says what was asked, what is wrong and shows the place, and the program stays as it was.

```python
from cortex.schedule.schedule import Schedule

Schedule.load("plan.py")  # parsed, never executed: known steps with literal arguments
schedule.save("plan.py")
eval(repr(schedule), namespace()) == schedule
schedule.on_recursion  # the steps on the model, which come first
schedule.on_loops  # the steps on its loops
```

Loops are named by their variables, which are unique in a program; a step that makes loops names them after the one
they come from (`n` split gives `n_o`, `n_i`, and `n_t` for the tail), with a number where that name is taken. Whether
the order of a program may be changed, steps ask `poly/legal.py`: accesses of one element are ordered only if one of
them writes, and what a step may not turn around it shows when it refuses, as the two accesses and their distance in
iterations. "Not proven" is never "yes". No step reassociates a sum but `VectorReduce`, whose order is fixed by the
extent, `Narrow`, which adds narrow products in pairs, and `TabulateLeafProducts`, which multiplies before it adds.

Steps [for threads](scheduling_threads.md) and [for GPUs](scheduling_gpu.md) have pages of their own.
"""

THREADS_INTRODUCTION = """# Scheduling for threads

<!-- written by benchmarks/scheduling_page.py from the docstrings of the steps -->

These steps follow those of [scheduling](scheduling.md). What a parallel loop and a barrier mean is said by
[ILIR](ilir.md); why work is shared out like this, and what it gave, by
[decision 4](decisions/0004-threads.md). `schedule/parallel_default.py` writes a schedule for any program.

A schedule that shares work among threads (`Parallel`, `Alone`) ends in `Alone()` and `PlaceBarriers()`, but for
`Persist`: barriers are right for the program they were placed in. Any other is refused.
"""

GPU_INTRODUCTION = """# Scheduling for GPUs

<!-- written by benchmarks/scheduling_page.py from the docstrings of the steps -->

These steps follow those of [scheduling](scheduling.md). A thread of the team is a work-group; what its items do is said
by loops of items, item barriers and local memory ([ILIR](ilir.md)). A schedule with `Items` ends in `Alone()`,
`AloneItem()`, `PlaceBarriers()` and `PlaceItemBarriers()`. `schedule/gpu_default.py` writes one for any program:

| nest | work-groups | items x | items y |
|---|---|---|---|
| with a block of columns for each work-group | blocks of columns | columns of the block | nodes |
| with an outer column loop long enough | its iterations | the last column | nodes |
| else, and where nodes are asked for their kind | nodes | the last column | the outer column |
| a sum for each node, without columns | nodes | parts of the sum | one |

Weights are packed by blocks of columns. Of those that the recursion reads, a persistent kernel keeps in local memory
as many as fit, the largest first; a work-group reads them from there in every group of nodes.
"""


def section(step: type[Step[Any]]) -> str:
    """One step: its arguments, then its docstring with before, after and legal."""
    summary, _, rest = inspect.cleandoc(step.__doc__ or "").partition("\n\n")
    lines = [f"### {signature(step)}", *summary.split("\n")]
    for paragraph in rest.split("\n\n") if rest else []:
        figure = paragraph.startswith(("before:", "after:"))
        lines += ["```", *paragraph.split("\n"), "```"] if figure else ["", *paragraph.split("\n")]
    return "\n".join(lines)


def signature(step: type[Step[Any]]) -> str:
    """The step as it is written, with its defaults."""
    arguments = [f.name if f.default is MISSING else f"{f.name}={f.default!r}" for f in fields(step)]  # type: ignore[arg-type]
    return f"`{step.__name__}({', '.join(arguments)})`"


Sections = tuple[tuple[str, tuple[type[Step[Any]], ...]], ...]
ELSEWHERE = (*THREAD_STEPS, *GPU_STEPS)
PAGES: dict[str, tuple[str, Sections]] = {
    "scheduling": (
        INTRODUCTION,
        (
            ("Steps on the recursion", RECURSION_STEPS),
            ("Steps on loops", tuple(s for s in LOOP_STEPS if s not in ELSEWHERE)),
        ),
    ),
    "scheduling_threads": (THREADS_INTRODUCTION, (("Steps", THREAD_STEPS),)),
    "scheduling_gpu": (GPU_INTRODUCTION, (("Steps", GPU_STEPS),)),
}


def page(name: str) -> str:
    """The page of that name."""
    introduction, sections = PAGES[name]
    parts = [introduction.rstrip()]
    for title, steps in sections:
        parts += [f"## {title}", *(section(s) for s in steps)]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.write_text(page(target.stem), encoding="utf-8")
