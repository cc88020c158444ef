"""Weeks set apart from their log: what training may see."""

import pickle

import numpy as np
import pytest

import hpcgym
from hpcgym.base.errors import ScenarioError, TraceError
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.env.scheduling import SchedulingEnv
from hpcgym.env.vector import SchedulingVectorEnv

SCENARIO = "synthetic-256-weeks"


def test_weeks_set_apart_are_those_of_the_scenario_without_their_source() -> None:
    every = Episodes(SCENARIO)
    apart = every.set_apart([7, 2, 3], held_out=[5])
    assert apart.numbers == (2, 3, 7)
    assert apart.labels == ("week 2", "week 3", "week 7")
    assert (apart.settings, apart.largest_request) == (every.settings, every.largest_request)
    for index, number in enumerate(apart.numbers):
        own, theirs = apart.workload(index), every.workload(every.position(number))
        assert np.array_equal(own.job_id, theirs.job_id)
        assert np.array_equal(own.submit_time, theirs.submit_time)
        assert own.source is None and own.source_row is None


def test_no_other_week_can_be_had_from_them_nor_the_log_from_their_scenario() -> None:
    apart = Episodes(SCENARIO).set_apart([2, 3, 7])
    for other in (apart, pickle.loads(pickle.dumps(apart))):
        with pytest.raises(ScenarioError, match="there is no 4; allowed are 2-3,7"):
            other.select("4")
        with pytest.raises(ScenarioError, match="unknown episode 'week 4'"):
            other.position("week 4")
        with pytest.raises(TraceError):
            Episodes(other.scenario)
        with pytest.raises(ScenarioError, match="set apart already"):
            other.set_apart([2])


def test_pickling_and_selecting_carry_the_jobs_that_remain_and_no_others() -> None:
    apart = Episodes(SCENARIO).set_apart([2, 3, 7])
    again = pickle.loads(pickle.dumps(apart))
    assert np.array_equal(again.workload(2).run_time, apart.workload(2).run_time)
    one = apart.select("3")
    assert one.numbers == (3,)
    assert len(pickle.dumps(one)) < len(pickle.dumps(apart)) / 2
    assert one.workload(0) is apart.workload(1)


def test_environments_draw_from_them_alone() -> None:
    apart = Episodes(SCENARIO).set_apart([2, 3, 7])
    env = SchedulingEnv(scenario=apart)
    drawn = {(env.reset(seed=seed)[1]["episode_number"], env.label) for seed in range(20)}
    assert drawn == {(2, "week 2"), (3, "week 3"), (7, "week 7")}
    with pytest.raises(ScenarioError, match="unknown episode"):
        env.reset(options={"episode": "week 4"})
    vector = SchedulingVectorEnv(num_envs=3, scenario=apart)
    numbers = vector.reset(seed=0)[1]["episode_number"]
    assert set(zip(numbers, vector.labels, strict=True)) <= drawn


@pytest.mark.parametrize(
    ("numbers", "held_out"), [([], [1]), ([1, 2], [2]), ([40], []), ([1], [40])]
)
def test_what_cannot_be_set_apart_is_refused(numbers: list[int], held_out: list[int]) -> None:
    with pytest.raises(ScenarioError, match="cannot be set apart"):
        Episodes(SCENARIO).set_apart(numbers, held_out=held_out)


def test_only_weeks_are_set_apart() -> None:
    with pytest.raises(ScenarioError, match="these episodes are whole"):
        Episodes("tiny").set_apart([1])


def test_policies_schedule_weeks_set_apart_as_they_do_others() -> None:
    every = Episodes(SCENARIO)
    apart = every.set_apart([4])
    one = hpcgym.simulate(apart.workload(0), "SAF")
    assert np.array_equal(one.start_time, hpcgym.simulate(every.workload(3), "SAF").start_time)
