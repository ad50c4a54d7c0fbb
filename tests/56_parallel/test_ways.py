"""Which requests run on the team, and how seldom the slower way is tried once it is known to be that."""

from __future__ import annotations

from itertools import pairwise

import pytest

from cortex import _native

US, MS = 1e3, 1e6


def ways(*phases: tuple[int, float, float]) -> list[bool]:
    """For so many requests each, how long they take on the team and alone: which run on the team?"""
    on_team = [team for count, team, _ in phases for _ in range(count)]
    alone = [alone for count, _, alone in phases for _ in range(count)]
    return _native.ways_taken(on_team, alone)


@pytest.mark.parametrize(("team", "alone"), [(50 * US, 100 * US), (90 * US, 40 * US), (5 * MS, 10 * MS)])
def test_the_faster_way_is_taken_and_the_other_one_hardly_ever_tried(team: float, alone: float) -> None:
    taken = ways((10_000, team, alone))
    slower = [i for i, on_team in enumerate(taken) if on_team != (team < alone)]
    assert len(slower) < 50
    assert len([i for i in slower if i >= 5000]) <= 12
    assert slower  # it was tried


def test_long_requests_that_are_faster_alone_try_the_team_several_times_a_second() -> None:
    taken = ways((1000, 12 * MS, 10 * MS))
    assert 20 < sum(taken[200:]) < 80


def test_a_team_that_gets_slow_is_left_and_found_again() -> None:
    taken = ways((2000, 50 * US, 100 * US), (3000, 300 * US, 100 * US), (4000, 50 * US, 100 * US))
    assert sum(taken[2000:5000]) < 300
    assert all(taken[8500:])


def test_alone_is_tried_with_one_request_and_the_team_with_several() -> None:
    alone, team = ways((1000, 50 * US, 100 * US)), ways((1000, 90 * US, 40 * US))
    tries = [i for i in range(16, 1000) if not alone[i]]
    assert all(b - a > 100 for a, b in pairwise(tries))
    first = team.index(True, 16)
    assert team[first : first + 5] == [True, True, True, True, False]
