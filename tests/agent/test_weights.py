"""Weights searched on training weeks, and the agents that play them."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from hpcgym.agent import NamedAgent, RuleAgent
from hpcgym.agent.objective import Objective
from hpcgym.agent.search import W_TRAIN, SearchTrainer
from hpcgym.agent.weights import weights_agent
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.evaluation import evaluate

SCENARIO = "synthetic-256-weeks"


@pytest.fixture(scope="module")
def weeks() -> Episodes:
    """Three weeks set apart."""
    return Episodes(SCENARIO).set_apart([2, 3, 4])


def w_train(evaluations: int) -> SearchTrainer:
    """The trainer of w*train, with fewer evaluations."""
    return replace(W_TRAIN, evaluations=evaluations)


def cost(episodes: Episodes, weights: NDArray[np.float64]) -> float:
    """What weights in unit scale are worth on weeks, as a ratio to SAF's sum."""
    return float(Objective([episodes], "sum-ratio").of_weights(weights[np.newaxis])[0])


def test_cost_is_what_the_weeks_sum_to_under_the_vertices(weeks: Episodes) -> None:
    found = evaluate(["SPF", "SAF"], weeks, progress=False)
    sums = [found.values(name).sum() for name in ("SPF", "SAF")]
    vertices = np.eye(6)[[1, 5]]
    alone = Objective([weeks], "sum-ratio").of_weights(vertices)
    assert alone == pytest.approx([sums[0] / sums[1], 1.0])
    both = Objective([weeks, weeks.select("3")], "sum-ratio").of_weights(vertices)
    third = [found.values(name)[1].sum() for name in ("SPF", "SAF")]
    assert both == pytest.approx([(sums[0] / sums[1] + third[0] / third[1]) / 2, 1.0])


@pytest.mark.long
def test_search_beats_saf_on_what_it_is_shown_and_depends_on_the_seed_alone(
    weeks: Episodes,
) -> None:
    found = [w_train(100).search([weeks], np.random.default_rng(seed)) for seed in (0, 0, 1)]
    assert np.array_equal(found[0], found[1])
    assert not np.array_equal(found[0], found[2])
    assert np.abs(found[0]).sum() == pytest.approx(1)
    assert cost(weeks, found[0]) < cost(weeks, np.eye(6)[5]) == 1.0


@pytest.mark.long
def test_search_is_never_worse_than_the_best_pure_policy(weeks: Episodes) -> None:
    found = w_train(1).search([weeks], np.random.default_rng(0))
    pure = [cost(weeks, sign * vertex) for vertex in np.eye(6) for sign in (1, -1)]
    assert cost(weeks, found) == min(pure)
    assert cost(weeks, w_train(60).search([weeks], np.random.default_rng(0))) <= min(pure)


def test_trained_agent_is_a_rule_whose_runs_come_to_the_cost(weeks: Episodes) -> None:
    agent = w_train(36).train([weeks], seed=1)
    assert isinstance(agent, RuleAgent)
    assert agent.name == "w*train"
    weights = w_train(36).search([weeks], np.random.default_rng(1))
    found = evaluate([agent, "SAF"], weeks, progress=False)
    ratio = found.values("w*train").sum() / found.values("SAF").sum()
    assert ratio == pytest.approx(cost(weeks, weights))


@pytest.mark.long
def test_weights_for_logs_of_several_scales_are_played_through_the_environment(
    weeks: Episodes,
) -> None:
    """What an environment makes of the action is what a rule makes of it at that log's scale."""
    several = [weeks, Episodes("tiny")]
    agent = w_train(24).train(several, seed=0)
    assert isinstance(agent, NamedAgent)
    weights = w_train(24).search(several, np.random.default_rng(0))
    rule = weights_agent(weights, [weeks], name="rule")
    assert isinstance(rule, RuleAgent)
    found = evaluate([agent, rule], weeks, progress=False)
    assert np.array_equal(found.values("w*train"), found.values("rule"))
    batch = agent.predict({"cluster": np.zeros((3, 5))})[0]
    assert batch.shape == (3, 6)
