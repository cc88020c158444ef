"""Rewards of your own, as rates: what they sum to, and what is refused."""

import numpy as np
import pytest
from hypothesis import given

from env_cases import Case, cases, env_of, plain_env, plain_vector, play_at_random
from hpcgym.base.errors import ScenarioError
from hpcgym.env.reward import as_reward

WEEKS = "synthetic-256-weeks"


def at_least_a_minute(job):
    """Cost by processors, from one minute after the submission on."""
    return job.processors / 3600, job.submit_time + 60


def played(env, episode=4):
    """Play an episode by area; return the sum of the rewards and the environment."""
    env.reset(options={"episode": episode})
    done, total = False, 0.0
    while not done:
        _, reward, done, _, _ = env.step([0, 0, 0, 0, 0, 1])
        total += reward
    return total


@given(cases(reward="bsld", baseline=None, event_semantics="batch"))
def test_rewards_sum_to_minus_the_mean_cost(case: Case) -> None:
    env = env_of(case.workload, case.rules)
    env._config._reward = as_reward(lambda job: (job.processors / 10, job.submit_time + 2))
    total = sum(play_at_random(env, case))
    waited = np.maximum(env.schedule().wait_time - 2, 0)
    assert total == pytest.approx(-(case.workload.processors / 10 * waited).mean(), rel=1e-9)


def test_known_rewards_written_as_rates_pay_the_same():
    def bsld(job):
        bound = max(job.run_time, 10)
        return 1 / bound, job.submit_time + bound - job.run_time

    for own, known, first in ((bsld, "bsld", 1), (lambda job: 1, "wait", 0)):
        total = played(plain_env(WEEKS, reward=own))
        assert total == pytest.approx(played(plain_env(WEEKS, reward=known)) + first, rel=1e-9)


def test_arrays_pay_as_the_function_that_makes_them():
    env = plain_env(WEEKS, reward=at_least_a_minute)
    total = played(env)
    jobs = env.workload
    arrays = (jobs.processors / 3600, jobs.submit_time + 60)
    assert played(plain_env(WEEKS, reward=arrays)) == total < 0


def test_a_pair_compares_with_the_baseline_by_the_same_rate():
    env = plain_env(WEEKS, reward=at_least_a_minute, baseline="SAF")
    assert played(env) == pytest.approx(0.0, abs=1e-9)


def test_vectors_pay_rates_of_ones_own_as_single_environments_do():
    vector = plain_vector(WEEKS, num_envs=2, reward=at_least_a_minute)
    single = plain_env(WEEKS, reward=at_least_a_minute)
    vector.reset(options={"episode": 4})
    single.reset(options={"episode": 4})
    actions = np.array([[0, 0, 0, 0, 0, 1]] * 2, dtype=np.float32)
    assert vector.step(actions)[1].tolist() == [single.step(actions[0])[1]] * 2


@pytest.mark.parametrize(
    ("reward", "message"),
    [
        ("bsl", "unknown reward 'bsl'; did you mean 'bsld'"),
        (3, "a name, a function of a job that returns a rate, or two arrays"),
        (lambda job: "much", "for job 1 it returned 'much'"),
        (lambda job: (1, 2, 3), r"for job 1 it returned \(1, 2, 3\)"),
        (lambda job: -1, "rate of job 1 of tiny is -1; it must be >= 0 per s"),
        (lambda job: float("nan"), "rate of job 1 of tiny is nan"),
        (lambda job: (1, job.submit_time - 1), "an instant not before its submission"),
        (([1.0], [0]), r"rate must have shape \(8,\) for tiny, got \(1,\)"),
    ],
)
def test_what_is_no_rate_is_refused_with_what_is_allowed(reward, message):
    with pytest.raises(ScenarioError, match=message):
        plain_env("tiny", reward=reward).reset()
