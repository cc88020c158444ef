"""Action `price`: its starts, what it shows, and rewards that sum to what they should."""

import numpy as np
import pytest

import hpcgym
from hpcgym.core.observation_fields import PriceField
from hpcgym.core.price import Price
from hpcgym.env.scheduling import SchedulingEnv
from hpcgym.env.vector import SchedulingVectorEnv
from hpcgym.errors import ScenarioError
from hpcgym.scenario.load import parse_scenario

SCENARIO = """
description = "Weeks with a price."
trace = { name = "synthetic-busy-weeks", missing_request = "drop" }
machine = { processors = 128, largest_request_s = 64800 }
episode = { kind = "week" }
scheduler = { policy = "SAF", events = "price:seed=4,weight=20" }
"""
PRICE = Price(seed=4)
KEYWORDS = {"action": "price", "reward": "priced", "observation": "flat"}


def env_of(**keywords):
    """Return an environment with a price."""
    return SchedulingEnv(parse_scenario(SCENARIO, name="priced"), **(KEYWORDS | keywords))


def played(env, choose):
    """Play an episode; return the rewards, observations and final info."""
    shown, _ = env.reset(options={"episode": 2})
    rewards, seen, over, info = [], [shown], False, {}
    while not over:
        shown, reward, over, _, info = env.step(choose(shown))
        rewards.append(reward)
        seen.append(shown)
    return rewards, np.array(seen), info


def zeros(_):
    """Choose the event's own numbers."""
    return np.zeros(2, dtype=np.float32)


def at_random(seed):
    """Choose at random."""
    generator = np.random.default_rng(seed)
    return lambda _: generator.uniform(-1, 1, 2).astype(np.float32)


def test_zeros_make_the_starts_of_the_event():
    env = env_of()
    played(env, zeros)
    event = "price:seed=4,kappa=100,power=0.25,cap=0.95"
    alone = hpcgym.simulate(env.workload, "SAF", events=event)
    assert env.schedule().start_time.tolist() == alone.start_time.tolist()
    assert env.metrics()["energy_cost"] == alone.metrics()["energy_cost"]


@pytest.mark.parametrize("seed", range(3))
def test_rewards_sum_to_what_saf_takes_more(seed):
    env = env_of(baseline="SAF")
    rewards, _, _ = played(env, at_random(seed))
    alone, _, _ = played(env_of(), at_random(seed))
    saf = hpcgym.simulate(env.workload, "SAF", events=[PRICE]).metrics()
    made = env.metrics()
    bsld, cost = (made[key] / saf[key] for key in ("mean_bsld", "energy_cost"))
    assert sum(rewards) == pytest.approx(21 - bsld - 20 * cost, abs=1e-9)
    # Alone they lack what no schedule changes: idle processors, and all work at the mean price.
    span, price = PRICE.calendar(env.workload)
    area = float((env.workload.processors * env.schedule().run_time).sum()) / 3600
    fixed = 0.3 * 128 * price[:span].sum() + 0.7 * area * price[:span].mean()
    fixed = 20 * fixed / 1e6 / saf["energy_cost"]
    assert sum(alone) == pytest.approx(fixed - bsld - 20 * cost, abs=1e-9)


def test_an_hour_is_a_step_and_what_is_shown_is_within_bounds():
    env = env_of()
    _, seen, _ = played(env, at_random(5))
    assert seen.shape[1:] == env.observation_space.shape == (38,)
    assert all(map(env.observation_space.contains, seen))
    hours = np.arange(len(seen) - 1)  # the last is of the instant of the last start
    assert seen[:-1, PriceField.PROGRESS] == pytest.approx(hours / 168 - 0.5, abs=1e-6)
    _, price = PRICE.calendar(env.workload)
    rank = [(price[h + 1 : h + 24] < price[h]).sum() for h in hours]
    assert seen[:-1, PriceField.RANK] == pytest.approx(np.array(rank) / 12 - 1, abs=1e-6)
    mean = np.array([price[h : h + 24].mean() for h in hours])
    pair = np.array([price[h + 4 : h + 6].mean() for h in hours])
    assert seen[:-1, PriceField.PRICE] == pytest.approx(price[hours] / mean - 1, abs=1e-6)
    assert seen[:-1, PriceField.PRICE_FROM_4_H] == pytest.approx(pair / mean - 1, abs=1e-6)


def test_what_waits_and_runs_is_shown_as_the_schedule_tells():
    env = env_of()
    env.reset(options={"episode": 3})
    shown = None
    for _ in range(40):
        shown = env.step(np.array([-1, 0], dtype=np.float32))[0]
    jobs, start, now = env.workload, env.schedule().start_time, env.now
    waits = (jobs.submit_time <= now) & (start < 0)
    runs = (start >= 0) & (start + jobs.run_time > now)
    request = jobs.requested_time / 3600
    assert waits.sum() > 5
    assert shown[PriceField.BUSY] == pytest.approx(jobs.processors[runs].sum() / 128)
    assert shown[PriceField.QUEUE] == pytest.approx(np.log1p(waits.sum()) / 3)
    area = jobs.processors * request / 128
    assert shown[PriceField.WORK] == pytest.approx(np.log1p(area[waits].sum()) / 2)
    of_class = waits & (request > 4) & (request <= 12)
    assert shown[PriceField.JOBS_TO_12_H] == pytest.approx(np.log1p(of_class.sum()) / 2)
    assert shown[PriceField.WORK_TO_12_H] == pytest.approx(np.log1p(area[of_class].sum()) / 2)
    soon = runs & (start + jobs.requested_time <= now + 4 * 3600)
    assert shown[PriceField.RELEASED_IN_4_H] == pytest.approx(jobs.processors[soon].sum() / 128)
    long = waits & (request > 1)
    waited = (now - jobs.submit_time[long]).mean() / 3600
    assert shown[PriceField.LONG_WAIT] == pytest.approx(waited / 12)


@pytest.mark.parametrize("observation", ["flat", "dict"])
def test_a_vector_steps_as_environments_do(observation):
    scenario, choose = parse_scenario(SCENARIO, name="priced"), at_random(1)
    keywords = KEYWORDS | {"baseline": "SAF", "observation": observation}
    vector = SchedulingVectorEnv(scenario, num_envs=2, threads=1, **keywords)
    shown, _ = vector.reset(options={"episode": [2, 3]})
    alone = [SchedulingEnv(scenario, **keywords) for _ in range(2)]
    own = [env.reset(options={"episode": 2 + k})[0] for k, env in enumerate(alone)]
    for _ in range(60):
        actions = np.stack([choose(None), choose(None)])
        for k in range(2):
            theirs, mine = (
                (shown[k], own[k])
                if observation == "flat"
                else (shown["cluster"][k], own[k]["cluster"])
            )
            assert theirs.tolist() == mine.tolist()
        shown, reward, *_ = vector.step(actions)
        steps = [env.step(action) for env, action in zip(alone, actions, strict=True)]
        own = [step[0] for step in steps]
        assert reward.tolist() == [step[1] for step in steps]


def test_without_a_price_there_is_neither_the_action_nor_the_reward():
    with pytest.raises(ScenarioError, match="action 'price' needs the event 'price'"):
        SchedulingEnv("synthetic-busy-weeks", action="price")
    with pytest.raises(ScenarioError, match="reward 'priced' needs the event 'price'"):
        SchedulingEnv("synthetic-busy-weeks", reward="priced")
    with pytest.raises(ScenarioError, match="shows fields of its own"):
        env_of(fields=["user_share"])
