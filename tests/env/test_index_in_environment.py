"""Index policies through the environment: the schedules of simulate(), whatever else is offered."""

from dataclasses import replace

import numpy as np
import pytest

import hpcgym
from env_cases import busy_workload, episodes_of, plain_env, plain_vector
from hpcgym.agent import RuleAgent
from hpcgym.base.errors import PolicyError
from hpcgym.core.history import history_of
from hpcgym.core.index_policy import index_policy
from hpcgym.evaluation import play
from strategies import network_of

BUSY = busy_workload(3, n=90)
RULES = {"threshold": 1_800}


LEARNED = index_policy([1, 2, 0, 0, 1, -1], network_of(1), name="LEARNED")
OTHER = index_policy([1, 2, 0, 0, 1, -1], network_of(2), name="OTHER")
OFFERED = ["SMITH-HISTORY", "SAF", LEARNED, "SMITH", "SPF-HISTORY", "WFP3"]


@pytest.mark.parametrize("order", ["SMITH-HISTORY", "SAF-HISTORY"])
def test_an_index_orders_the_backfill_behind_any_choice(order: str) -> None:
    for rule in ("SAF", LEARNED):
        agent = RuleAgent(rule, policies=["SAF", LEARNED])
        env = plain_env(episodes_of(BUSY, backfill_order=order, **RULES), **agent.env_keywords)
        expected = hpcgym.simulate(BUSY, rule, backfill_order=order, **RULES)
        assert np.array_equal(play(agent, env, BUSY).start_time, expected.start_time)


def test_what_ended_before_the_episode_is_known_to_it() -> None:
    users = np.unique(BUSY.user)
    columns = (BUSY.user, BUSY.run_time // 2 + 1, BUSY.requested_time, BUSY.processors)
    warm = replace(BUSY, history=history_of(users, *columns, np.zeros(len(BUSY), dtype=np.int64)))
    agent = RuleAgent(LEARNED, policies=OFFERED)
    env = plain_env(episodes_of(warm, **RULES), **agent.env_keywords)
    expected = hpcgym.simulate(warm, LEARNED, **RULES).start_time
    assert np.array_equal(play(agent, env, warm).start_time, expected)
    assert not np.array_equal(hpcgym.simulate(BUSY, LEARNED, **RULES).start_time, expected)


@pytest.mark.long
@pytest.mark.parametrize("threads", [1, 2])
def test_every_copy_of_a_vector_makes_the_schedule_of_its_own_choice(threads: int) -> None:
    """Those that choose by a network stand beside those that read no records at all."""
    choices = np.array([2, 0, 1, 2, 4, 5])
    envs = plain_vector(
        episodes_of(BUSY, **RULES),
        num_envs=len(choices),
        action="policy",
        policies=OFFERED,
        autoreset_mode="Disabled",
        threads=threads,
    )
    envs.reset(seed=1)
    over = np.zeros(len(choices), dtype=bool)
    while not over.any():
        _, _, ended, cut, _ = envs.step(choices)
        over = ended | cut
    for choice, schedule in zip(choices, envs.call("schedule"), strict=True):
        expected = hpcgym.simulate(BUSY, OFFERED[choice], **RULES).start_time
        done = schedule.start_time >= 0
        assert done.any()
        assert np.array_equal(schedule.start_time[done], expected[done])


def test_two_networks_in_one_environment_are_refused() -> None:
    with pytest.raises(PolicyError, match="share a network"):
        plain_env(episodes_of(BUSY, **RULES), action="policy", policies=[LEARNED, OTHER])
