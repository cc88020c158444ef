"""Agents of action `price`: what rules and networks choose."""

import re
from itertools import pairwise

import gymnasium
import numpy as np
import pytest

import hpcgym
from hpcgym.agent.price import PriceNet, PriceRule
from hpcgym.agent.shelf import load_agent, load_card
from hpcgym.base.errors import CardError
from hpcgym.core.observation_fields import N_PRICE_FIELDS, PriceField
from hpcgym.env.scheduling import SchedulingEnv


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


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("PRICE-KAPPA", PriceRule(60, 0.25, 1.0)),
        ("PRICE-CAP", PriceRule(240, 0, 0.95)),
        ("PRICE-RANK", PriceRule(240, 0, 1.0, 0.4, 0.85)),
    ],
)
def test_the_best_rule_of_each_family_is_on_the_shelf(name, rule):
    agent = load_agent(name)
    assert agent.agent == rule
    assert agent.training.weeks == {"price-weeks": tuple(range(1, 401))}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("kappa = 60.0", "kapa = 60.0", "unknown key 'kapa'"),
        ("kappa = 60.0", "kappa = 60", "parameters.kappa must be a number"),
        ("kappa = 60.0", "kappa = 0.0", "kappa is above 0"),
        ("power = 0.25", "cap = 1.5", "cap is a share from 0 to 1, got 1.5"),
        ('action = "price"', 'action = "index"', 'environment.action of price must be "price"'),
    ],
)
def test_a_card_that_states_no_rule_of_the_price_is_refused(tmp_path, old, new, words):
    text = load_card("PRICE-KAPPA").path.read_text()
    path = tmp_path / "price-kappa.toml"
    path.write_text(text.replace(old, new))
    with pytest.raises(CardError, match=re.escape(words)):
        load_card(str(path))


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


@pytest.mark.long
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
