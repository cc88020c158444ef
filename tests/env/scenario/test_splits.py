"""Parts of a scenario's episodes: which weeks they hold, and what is drawn of them."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec

import hpcgym
from conftest import FIRST_REQUEST, WEEK_S
from hpcgym.base.errors import ScenarioError
from hpcgym.env.scenario.augment import chosen_episodes
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.env.scenario.splits import SPLITS, split_of
from hpcgym.env.scheduling import SchedulingEnv
from hpcgym.env.vector import SchedulingVectorEnv

BUSY = "synthetic-busy-weeks"
DAY_S = 86_400


@pytest.mark.parametrize("n", [*range(6, 40), 100, 205])
def test_parts_are_in_time_order_with_one_episode_left_out(n):
    """By whole numbers: 6 and 8 tenths, rounded down."""
    numbers = [3 * k + 1 for k in range(n)]  # weeks without jobs leave gaps
    train, validation, test = (split_of(numbers, part) for part in SPLITS)
    assert train == tuple(numbers[: 6 * n // 10])
    assert validation == tuple(numbers[6 * n // 10 : 8 * n // 10])
    assert test == tuple(numbers[8 * n // 10 + 1 :])
    assert train and validation and test
    assert sorted({*numbers} - {*train, *validation, *test}) == [numbers[8 * n // 10]]


@pytest.mark.parametrize("part", SPLITS)
def test_too_few_episodes_are_not_split(part):
    for n in range(6):
        with pytest.raises(ScenarioError, match=f"{n} episodes are too few to split .* least 6"):
            split_of(range(n), part)
    with pytest.raises(ScenarioError, match="1 episodes are too few"):
        SchedulingEnv("tiny", weeks=part)


def test_short_days_of_too_few_weeks_are_refused():
    with pytest.raises(ScenarioError, match="too few"):
        SchedulingEnv("tiny", weeks="short")


@pytest.mark.parametrize(
    ("weeks", "numbers"),
    [
        (None, range(1, 18)),
        ("train", range(1, 11)),
        ("validation", range(11, 14)),
        ("test", range(15, 18)),
        ("2,5-7", (2, 5, 6, 7)),
    ],
)
def test_environments_draw_of_the_part_alone(weeks, numbers):
    env = SchedulingEnv(BUSY, weeks=weeks)
    assert env.episodes.numbers == tuple(numbers)
    drawn = {env.reset(seed=seed)[1]["episode_number"] for seed in range(150)}
    assert drawn == set(numbers)
    if 14 not in numbers:
        with pytest.raises(ScenarioError, match="14"):
            env.reset(options={"episode": 14})


def test_vectors_draw_of_the_part_alone():
    envs = SchedulingVectorEnv(BUSY, num_envs=4, weeks="validation", max_episode_steps=1)
    seen = {*envs.reset(seed=0)[1]["episode_number"].tolist()}
    for _ in range(20):
        info = envs.step(np.zeros((4, 5), np.float32))[-1]
        seen |= {*info["episode_number"].tolist()}
    assert seen == {11, 12, 13}


@pytest.mark.parametrize("weeks", ["tests", "18", "1-", "", "9-2"])
def test_what_is_no_part_and_no_numbers_is_refused(weeks):
    with pytest.raises(ScenarioError, match=BUSY):
        SchedulingEnv(BUSY, weeks=weeks)


@pytest.mark.parametrize("weeks", ["test", "3,9", "short"])
def test_specs_with_weeks_go_through_json(weeks):
    made = gymnasium.make("HPCBatch-v0", scenario=BUSY, weeks=weeks)
    again = gymnasium.make(EnvSpec.from_json(made.spec.to_json()))
    many = gymnasium.make_vec(made.spec, num_envs=2)
    assert again.unwrapped.episodes.numbers == made.unwrapped.episodes.numbers
    assert (weeks == "test") == (made.unwrapped.episodes.numbers == (15, 16, 17))
    for seed in range(3):
        jobs = [env.reset(seed=seed) and env.unwrapped.workload for env in (made, again)]
        many.reset(seed=seed)
        jobs.append(many.call("workload")[0])
        for one in jobs[1:]:
            assert one.submit_time.tolist() == jobs[0].submit_time.tolist()
            assert one.job_id.tolist() == jobs[0].job_id.tolist()


# --- Days of the training weeks -------------------------------------------------------------------


@pytest.mark.long
def test_days_hold_jobs_of_training_weeks_alone(marked_weeks, marked_log):
    """Each job asks for a number of seconds that tells where in the log it is."""
    env = SchedulingEnv(marked_weeks, weeks="short")
    train = set(marked_weeks.select("train").numbers)
    assert train == {1, 2, 3, 4}
    seen = set()
    for seed in range(60):
        _, info = env.reset(seed=seed)
        jobs = env.workload
        assert info == {"episode_number": -1}
        assert jobs.submit_time[0] == 0 <= jobs.submit_time[-1] < DAY_S
        instants = marked_log.submit_time[jobs.requested_time - FIRST_REQUEST]
        weeks = (instants - marked_log.submit_time[0]) // WEEK_S
        assert len(set(weeks)) == 1
        assert (instants - instants[0]).tolist() == jobs.submit_time.tolist()
        seen |= set(weeks.tolist())
    assert seen == train


@pytest.mark.long
def test_days_on_which_saf_waits_little_are_drawn_again():
    days = chosen_episodes(Episodes(BUSY), "short")
    settings = vars(days.scenario.scheduler.settings) | {"policy": "SAF"}
    for seed in range(25):
        _, jobs = days.draw(np.random.default_rng(seed))
        assert hpcgym.simulate(jobs, **settings).metrics()["mean_bsld"] > 1.5


def test_vectors_play_the_same_days_by_the_same_seeds():
    envs = SchedulingVectorEnv(BUSY, num_envs=3, weeks="short")
    envs.reset(seed=[4, 4, 9])
    one, other, third = envs.call("workload")
    assert one is other is not third
