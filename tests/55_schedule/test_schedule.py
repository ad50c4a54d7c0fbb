"""Schedules as values: printing, rebuilding, keys, files; and files that are refused without being run."""

from __future__ import annotations

from pathlib import Path

import pytest

from cortex.errors import ScheduleError
from cortex.recursion.hoist import Hoist
from cortex.recursion.specialize_leaves import SpecializeLeaves
from cortex.schedule.dense import Dense
from cortex.schedule.fuse import Fuse
from cortex.schedule.schedule import STEPS, Schedule, namespace
from cortex.schedule.split import Split
from cortex.schedule.tile import Tile
from cortex.schedule.unroll import Unroll

SCHEDULE = Schedule(
    (
        SpecializeLeaves(),
        Hoist(),
        Fuse(("p_n", "b_n"), 2),
        Split("p_n", 8, "cases"),
        Tile("p_n", "p_j", None, 1, 2, 16, (4,)),
        Unroll("k"),
        Dense(("t", "u")),
    )
)


def test_prints_as_python_that_rebuilds_it() -> None:
    text = repr(SCHEDULE)
    assert text == (
        "Schedule((\n"
        "    SpecializeLeaves(),\n"
        "    Hoist(),\n"
        "    Fuse(loops=('p_n', 'b_n'), depth=2),\n"
        "    Split(loop='p_n', factor=8, tail='cases'),\n"
        "    Tile(nest='p_n', columns='p_j', rows=None, height=1, vectors=2, lanes=16, unroll=(4,)),\n"
        "    Unroll(loop='k', factor=None),\n"
        "    Dense(buffers=('t', 'u'), groups='g'),\n"
        "))"
    )
    assert eval(text, namespace()) == SCHEDULE
    assert eval(repr(Schedule()), namespace()) == Schedule()


def test_can_be_a_key() -> None:
    again = eval(repr(SCHEDULE), namespace())
    assert {SCHEDULE: 1}[again] == 1
    assert Schedule(SCHEDULE.steps[:-1]) != SCHEDULE


def test_knows_which_steps_are_for_the_recursion() -> None:
    assert SCHEDULE.on_recursion == SCHEDULE.steps[:2]
    assert SCHEDULE.on_loops == SCHEDULE.steps[2:]
    assert len(SCHEDULE) == len(list(SCHEDULE)) == 7
    assert set(namespace()) == {"Schedule", *(s.__name__ for s in STEPS)}


def test_survives_a_file(tmp_path: Path) -> None:
    SCHEDULE.save(tmp_path / "s.py")
    assert Schedule.load(tmp_path / "s.py") == SCHEDULE
    by_position = tmp_path / "short.py"
    by_position.write_text("# any comment\nSchedule([Split('n', 8), Unroll('k', factor=-1)])\n")
    assert Schedule.load(by_position) == Schedule((Split("n", 8), Unroll("k", -1)))


REFUSED = {
    "empty": "",
    "not_python": "Schedule((\n  Split('n' 8),\n))",
    "not_a_schedule": "Split('n', 8)",
    "two_arguments": "Schedule((), ())",
    "unknown_step": "Schedule((\n    Split('n', 8),\n    Squeeze('n'),\n))",
    "code": "Schedule((__import__('os').system('true'),))",
    "call_as_argument": "Schedule((\n    Split(open('x'), 8),))",
    "expression_as_argument": "Schedule((Split('n', 4 + 4),))",
    "attribute": "Schedule((Split.apply,))",
    "too_many_arguments": "Schedule((Inline('t', 'u'),))",
    "missing_argument": "Schedule((Split('n'),))",
    "unknown_argument": "Schedule((Split('n', 8, tails='peel'),))",
    "argument_twice": "Schedule((Split('n', 8, loop='m'),))",
    "unpacked_argument": "Schedule((Split(**{}),))",
    "wrong_type": "Schedule((\n    Split(\n        'n',\n        '8'),))",
    "wrong_type_in_tuple": "Schedule((Fuse(('a', 1)),))",
    "bool_for_integer": "Schedule((Split('n', True),))",
    "huge_integer": "Schedule((Split('n', 99999999999999),))",
    "recursion_step_late": "Schedule((\n    Split('n', 8),\n    Hoist(),\n))",
    "no_barriers": "Schedule((\n    Split('n', 8),\n    Parallel('n_o'),\n    Alone(),\n))",
    "outdated_barriers": "Schedule((\n    Alone(),\n    PlaceBarriers(),\n    Dense(('t',)),\n))",
    "deep": "Schedule((Fuse(" + "[" * 150 + "]" * 150 + "),))",
}


def test_refused_files(golden: object) -> None:
    messages = []
    for name, text in REFUSED.items():
        with pytest.raises(ScheduleError) as refusal:
            Schedule.parse(text, "plan.py")
            pytest.fail(name)
        messages.append(f"{name}: {refusal.value}")
    golden("schedule/refused_schedule_files", "\n".join(messages))  # type: ignore[operator]


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ScheduleError, match=r"cannot read the file: No such file"):
        Schedule.load(tmp_path / "missing.py")
    (tmp_path / "binary.py").write_bytes(b"\xff\xfe")
    with pytest.raises(ScheduleError, match="not UTF-8"):
        Schedule.load(tmp_path / "binary.py")
    (tmp_path / "large.py").write_text("Schedule(())" + " " * (1 << 20))
    with pytest.raises(ScheduleError, match="larger than"):
        Schedule.load(tmp_path / "large.py")


def test_only_steps_are_scheduled() -> None:
    with pytest.raises(ScheduleError, match=r"step 1, 'fuse', is no step"):
        Schedule(("fuse",))  # type: ignore[arg-type]
