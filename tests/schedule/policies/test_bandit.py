"""Bandits: what they play, what they learn from, and that it is causal."""

import numpy as np
import pytest

import hpcgym
from hpcgym.base.errors import PolicyError
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.simulator import Simulator
from hpcgym.schedule.policies.bandit import Bandit

ARMS = ("FCFS", "SAF", "LAF")
WEEK_S = 604_800


@pytest.fixture(scope="module")
def log():
    return hpcgym.load_workload("synthetic-256")


def played(log, bandit):
    """Return the rule in force after each decision, and the schedule."""
    simulator = Simulator(log, SchedulerSettings(bandit, threshold=200_000))
    chosen, choose = [], simulator._chooser_run.choose

    def noted(at):
        chosen.append((at.now, choose(at).name))
        return hpcgym.as_policy(chosen[-1][1])

    simulator._chooser_run.choose = noted
    simulator.run()
    return chosen, simulator


def test_a_bandit_of_one_arm_is_that_policy(log):
    ours = hpcgym.simulate(log, Bandit(("SAF",)), threshold=200_000)
    alone = hpcgym.simulate(log, "SAF", threshold=200_000)
    np.testing.assert_array_equal(ours.start_time, alone.start_time)


def test_rules_change_at_the_start_of_a_period_only(log):
    chosen, _ = played(log, Bandit(ARMS, "ucb", period=WEEK_S))
    assert [now for now, _ in chosen] == [week * WEEK_S for week in range(len(chosen))]
    assert {rule for _, rule in chosen[:3]} == set(ARMS)  # each is tried once, first


def reward_by_hand(log, start_time, arm_now):
    """Return one over the mean bounded slowdown of the jobs that ended in the week before."""
    run_time = np.minimum(log.run_time, log.requested_time)
    total = n = 0
    for r, s, p in zip(log.submit_time, start_time, run_time, strict=True):
        if s >= 0 and arm_now - WEEK_S < s + p <= arm_now:
            total += max((s + p - r) / max(p, 10), 1.0)
            n += 1
    return n / total


def test_ucb_plays_what_its_formula_says(log):
    chosen, simulator = played(log, Bandit(ARMS, "ucb", period=WEEK_S))
    start_time = simulator.start_time
    n, mean = np.zeros(3), np.zeros(3)
    for week, (now, rule) in enumerate(chosen):
        if week > 0:
            arm = ARMS.index(chosen[week - 1][1])
            reward = reward_by_hand(log, start_time, now)
            n[arm] += 1
            mean[arm] += (reward - mean[arm]) / n[arm]
        if n.min() == 0:
            assert rule == ARMS[int(np.argmin(n))]
        else:
            assert rule == ARMS[int(np.argmax(mean + np.sqrt(2 * np.log(n.sum()) / n)))]
    assert len(chosen) > 6


@pytest.mark.parametrize("algorithm", ["epsilon-greedy", "ucb", "exp3"])
@pytest.mark.parametrize("information", ["bandit", "full"])
def test_jobs_to_come_change_no_choice_before(log, algorithm, information):
    bandit = Bandit(ARMS, algorithm, information, period=WEEK_S, seed=3)
    half = log.select(np.flatnonzero(log.submit_time < 4 * WEEK_S))
    whole, part = played(log, bandit)[0], played(half, bandit)[0]
    n = sum(now <= 4 * WEEK_S for now, _ in part)
    assert n >= 4 and whole[:n] == part[:n]


def test_full_information_finds_the_better_arm_at_once(log):
    chosen, _ = played(log, Bandit(("LAF", "SAF"), "epsilon-greedy", "full", WEEK_S, 1e-9))
    assert [rule for _, rule in chosen[:2]] == ["LAF", "SAF"]
    assert sum(rule == "SAF" for _, rule in chosen[1:]) > 0.8 * len(chosen[1:])


@pytest.mark.long
def test_exp3_with_full_information_leans_towards_the_better_arm(log):
    _, simulator = played(log, Bandit(("LAF", "SAF"), "exp3", "full", exploration=0.3))
    weight = simulator._chooser_run.log_weight
    assert weight[1] > weight[0] > 0


def test_exp3_weighs_a_reward_by_how_unlikely_its_arm_was(log):
    bandit = Bandit(ARMS, "exp3", period=WEEK_S, exploration=0.3, seed=5)
    chosen, simulator = played(log, bandit)
    log_weight = np.zeros(3)
    for week, (now, rule) in enumerate(chosen):
        chance = 0.7 * np.exp(log_weight) / np.exp(log_weight).sum() + 0.1
        if week + 1 < len(chosen):
            reward = reward_by_hand(log, simulator.start_time, now + WEEK_S)
            log_weight[ARMS.index(rule)] += 0.1 * reward / chance[ARMS.index(rule)]
    np.testing.assert_allclose(simulator._chooser_run.log_weight, log_weight, rtol=1e-9)
    assert len({rule for _, rule in chosen}) > 1


def test_chance_has_a_seed_and_copies_share_it(log):
    starts = []
    for seed in (1, 1, 2):
        bandit = Bandit(ARMS, "exp3", period=86_400, seed=seed)
        starts.append(hpcgym.simulate(log, bandit).start_time)
    assert np.array_equal(starts[0], starts[1]) and not np.array_equal(starts[0], starts[2])


@pytest.mark.parametrize("name", ["bandit-ucb", "bandit-exp3", "bandit-epsilon"])
def test_bandits_go_by_name_and_under_other_settings(log, name):
    made = hpcgym.simulate(log, name, event_semantics="pyss", backfill_order="SPF")
    assert made.complete and made.settings.policy == name


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"arms": ()}, "at least one arm"),
        ({"arms": ("SAFE",)}, "SAF"),
        ({"arms": ("DYNP",)}, "cannot be an arm"),
        ({"algorithm": "ucb1"}, "ucb"),
        ({"information": "none"}, "full"),
        ({"period": 0}, "period"),
        ({"exploration": 0.0}, "exploration"),
    ],
)
def test_what_cannot_be_played_is_refused(keywords, message):
    with pytest.raises(PolicyError, match=message):
        Bandit(**keywords)
