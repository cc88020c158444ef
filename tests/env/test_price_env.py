"""Action `price`: its starts, what it shows, and rewards that sum to what they should."""

from dataclasses import replace

import numpy as np
import pytest

import hpcgym
from env_cases import assert_vector_plays_alike
from hpcgym.base.errors import ScenarioError
from hpcgym.core.observation_fields import PriceField
from hpcgym.core.price import Price
from hpcgym.env.scenario.load import parse_scenario
from hpcgym.env.scheduling import SchedulingEnv
from hpcgym.env.vector import SchedulingVectorEnv
from hpcgym.trace.split import months

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
    rewards, _, info = played(env, at_random(seed))
    assert info["priced"] == pytest.approx(21 - sum(rewards), abs=1e-9)
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


def test_what_is_shown_of_prices_to_come_is_the_forecast():
    noisy = parse_scenario(SCENARIO.replace("weight=20", "weight=20,noise=0.5"), name="noisy")
    env = SchedulingEnv(noisy, **KEYWORDS)
    _, seen, info = played(env, zeros)
    _, price = PRICE.calendar(env.workload)
    error = replace(PRICE, noise=0.5).errors(env.workload, price)
    for hour in (0, 7, 100):
        at = np.arange(hour, hour + 24)
        foreseen = price[at] + (at - hour) * error[at]
        mean = foreseen.mean()
        shown = seen[hour]
        assert shown[PriceField.PRICE] == pytest.approx(price[hour] / mean - 1, abs=1e-6)
        rank = (foreseen[1:] < price[hour]).sum()
        assert shown[PriceField.RANK] == pytest.approx(rank / 12 - 1, abs=1e-6)
        pair = foreseen[4:6].mean()
        assert shown[PriceField.PRICE_FROM_4_H] == pytest.approx(pair / mean - 1, abs=1e-6)
        assert abs(pair - price[at[4:6]].mean()) > 1000
    saf = hpcgym.simulate(env.workload, "SAF", events=[PRICE]).metrics()  # charged by prices
    made = env.metrics()
    j = made["mean_bsld"] / saf["mean_bsld"] + 20 * made["energy_cost"] / saf["energy_cost"]
    assert info["priced"] == pytest.approx(j, rel=1e-12)


def test_weeks_in_a_row_are_a_longer_episode_and_the_queue_stays():
    month = months(hpcgym.load_workload("synthetic-256"))[0]
    scenario = SCENARIO.replace("synthetic-busy-weeks", "synthetic-256").replace("128", "256")
    scenario = scenario.replace("64800", "172800")
    env = SchedulingEnv(parse_scenario(scenario, name="priced"), **KEYWORDS)
    shown, _ = env.reset(options={"workload": month})
    seen, over, info = [shown], False, {}
    while not over:
        shown, _, over, _, info = env.step(zeros(shown))
        seen.append(shown)
    event = "price:seed=4,kappa=100,power=0.25,cap=0.95"
    alone = hpcgym.simulate(month, "SAF", events=event)
    assert env.schedule().start_time.tolist() == alone.start_time.tolist()
    assert len(PRICE.calendar(month)[1]) > PRICE.calendar(month)[0] == 30 * 24
    progress = np.array(seen)[: 30 * 24 - 1, PriceField.PROGRESS]
    assert progress == pytest.approx(np.arange(30 * 24 - 1) / (30 * 24) - 0.5, abs=1e-6)
    week = 7 * 86_400
    assert (month.submit_time // week < env.schedule().start_time // week).sum() > 0
    assert 15 < info["priced"] < 30


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
    scenario = parse_scenario(SCENARIO, name="priced")
    keywords = KEYWORDS | {"baseline": "SAF", "observation": observation}
    assert_vector_plays_alike(scenario=scenario, **keywords)


def test_infos_of_a_vector_say_j_of_the_weeks_that_end():
    scenario = parse_scenario(SCENARIO, name="priced")
    vector = SchedulingVectorEnv(
        scenario, num_envs=2, threads=1, autoreset_mode="SAME_STEP", **KEYWORDS
    )
    vector.reset(options={"episode": [2, 3]})
    said = {}
    while len(said) < 2:
        *_, info = vector.step(np.zeros((2, 2), dtype=np.float32))
        for env in np.flatnonzero(info.get("_final_info", [])).tolist():
            said.setdefault(env, info["final_info"]["priced"][env])
    for env in range(2):
        alone = env_of()
        alone.reset(options={"episode": 2 + env})
        over, told = False, {}
        while not over:
            *_, over, _, told = alone.step(zeros(None))
        assert said[env] == told["priced"]


def test_without_a_price_there_is_neither_the_action_nor_the_reward():
    with pytest.raises(ScenarioError, match="action 'price' needs the event 'price'"):
        SchedulingEnv("synthetic-busy-weeks", action="price")
    plain = SchedulingEnv("tiny")
    plain.reset(seed=0)
    over, info = False, {}
    while not over:
        *_, over, _, info = plain.step(np.zeros(plain.action_space.shape, dtype=np.float32))
    assert "priced" not in info
    with pytest.raises(ScenarioError, match="reward 'priced' needs the event 'price'"):
        SchedulingEnv("synthetic-busy-weeks", reward="priced")
    with pytest.raises(ScenarioError, match="shows fields of its own"):
        env_of(fields=["user_share"])
