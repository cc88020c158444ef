"""Agents of action `price`: what rules and networks choose."""

from itertools import pairwise

import gymnasium
import numpy as np
import pytest

import hpcgym
from hpcgym.agent.base import NamedAgent
from hpcgym.agent.price import PriceNet, PriceRule
from hpcgym.core.observation_fields import N_PRICE_FIELDS, PriceField
from hpcgym.env.scheduling import SchedulingEnv
from hpcgym.errors import CardError


def shown(rank, work):
    """Return observations of hours with so many cheaper ones ahead, and so much work."""
    rows = np.zeros((len(rank), N_PRICE_FIELDS), dtype=np.float32)
    rows[:, PriceField.RANK] = np.array(rank) / 12 - 1
    rows[:, PriceField.WORK] = np.log1p(work) / 2
    return rows


def test_a_rule_sets_kappa_by_what_waits_and_the_cap_by_the_rank():
    rule = PriceRule(kappa=200, power=0.5, cap=0.95, cheap=0.5, dear=0.65)
    chosen = rule.choose(shown([0, 12, 13, 23], [0, 0, 15, 15]))
    # 2 is 10^(1.5 x); with 16 the powers .5 and .25 differ by a factor of 2.
    assert 10 ** (1.5 * chosen[:, 0]) == pytest.approx([2, 2, 4, 4], rel=1e-5)
    assert chosen[:, 1] == pytest.approx([0, 0, -0.5, -0.5], abs=1e-6)
    one, state = rule.predict({"cluster": shown([0], [0])[0]})
    assert one == pytest.approx(chosen[0])
    assert state is None


def test_the_usual_rule_makes_the_starts_of_the_event():
    env = SchedulingEnv("price-weeks", action="price", observation="flat", reward="priced")
    observation, _ = env.reset(options={"episode": 3})
    over, rule = False, PriceRule(100, 0.25, 0.95)
    while not over:
        action, _ = rule.predict(observation)
        observation, _, over, _, _ = env.step(action)
    event = "price:seed=1,kappa=100,power=0.25,cap=0.95"
    alone = hpcgym.simulate(env.workload, "SAF", events=event)
    assert env.schedule().start_time.tolist() == alone.start_time.tolist()


def test_a_rule_is_evaluated_beside_others():
    rule = NamedAgent("HALF", PriceRule(100, 0, 0.5), {"action": "price"})
    result = hpcgym.evaluate([rule, "SAF"], "price-weeks", weeks="1-2")
    assert set(result.frame["agent"]) == {"HALF", "SAF"}


def arrays(generator, width=4):
    """Draw a network."""
    sizes = (N_PRICE_FIELDS, width, width, 2)
    made = {f"w{k}": generator.normal(size=(a, b)) for k, (a, b) in enumerate(pairwise(sizes))}
    made |= {f"b{k}": generator.normal(size=size) for k, size in enumerate(sizes[1:])}
    return made | {
        "mean": generator.normal(size=N_PRICE_FIELDS),
        "deviation": generator.uniform(1, 2, size=N_PRICE_FIELDS),
        "limit": np.array(1.5),
    }


def test_a_network_is_two_layers_of_tanh_on_what_is_shown_in_units():
    generator = np.random.default_rng(0)
    net, rows = arrays(generator), generator.normal(size=(3, N_PRICE_FIELDS)).astype(np.float32)
    chosen = PriceNet(net).choose(rows)
    for row, action in zip(rows, chosen, strict=True):
        inputs = np.clip((row - net["mean"]) / net["deviation"], -1.5, 1.5)
        first = np.tanh(net["w0"].T @ inputs + net["b0"])
        second = np.tanh(net["w1"].T @ first + net["b1"])
        wanted = np.clip(net["w2"].T @ second + net["b2"], -1, 1)
        assert action == pytest.approx(wanted, abs=1e-5)


def test_arrays_that_make_no_network_are_refused():
    net = arrays(np.random.default_rng(1))
    with pytest.raises(CardError, match=r"needs b2 of shape \(2,\)"):
        PriceNet({name: array for name, array in net.items() if name != "b2"})


def test_what_is_no_network_is_named(tmp_path):
    (tmp_path / "broken.npz").write_bytes(b"no archive")
    with pytest.raises(CardError, match=r"broken\.npz: no network"):
        PriceNet.read(tmp_path / "broken.npz")
    with pytest.raises(CardError, match="no such file"):
        PriceNet.read(tmp_path / "nowhere.npz")


def test_the_network_that_ships_is_better_than_saf_on_weeks_it_never_saw():
    total, net = [], PriceNet.read()
    env = gymnasium.make("hpcgym/Price-test-v0")
    for week in range(20_001, 20_031):
        observation, _ = env.reset(options={"episode": week})
        reward, over = 0.0, False
        while not over:
            observation, paid, over, _, _ = env.step(net.predict(observation)[0])
            reward += paid
        total.append(reward)
    assert np.mean(total) > 0.2
