"""Weights searched on training weeks, and the agents that play them."""

import numpy as np
import pytest

from hpcgym.agent import NamedAgent, RuleAgent
from hpcgym.agent.weight_search import WeightsTrainer, cost, search_weights, weighing
from hpcgym.evaluation import evaluate
from hpcgym.scenario.episodes import Episodes

SCENARIO = "synthetic-256-weeks"


@pytest.fixture(scope="module")
def weeks() -> Episodes:
    """Three weeks set apart."""
    return Episodes(SCENARIO).set_apart([2, 3, 4])


def test_cost_is_what_the_weeks_sum_to_under_the_vertices(weeks: Episodes) -> None:
    found = evaluate(["SPF", "SAF"], weeks, progress=False)
    sums = [found.values(name).sum() for name in ("SPF", "SAF")]
    assert cost([weeks], np.eye(6)[[1, 5]]) == pytest.approx(sums)
    both = cost([weeks, weeks.select("3")], np.eye(6)[[1, 5]], [sums[1], 1.0])
    third = [found.values(name)[1].sum() for name in ("SPF", "SAF")]
    assert both == pytest.approx([(sums[0] / sums[1] + third[0]) / 2, (1 + third[1]) / 2])


def test_search_beats_saf_on_what_it_is_shown_and_depends_on_the_seed_alone(
    weeks: Episodes,
) -> None:
    found = [
        search_weights([weeks], np.random.default_rng(seed), evaluations=100) for seed in (0, 0, 1)
    ]
    assert np.array_equal(found[0], found[1])
    assert not np.array_equal(found[0], found[2])
    assert np.abs(found[0]).sum() == pytest.approx(1)
    assert cost([weeks], found[0][np.newaxis])[0] < cost([weeks], np.eye(6)[5:])[0]


def test_trained_agent_is_a_rule_whose_runs_come_to_the_cost(weeks: Episodes) -> None:
    trainer = WeightsTrainer(evaluations=36)
    agent = trainer.train([weeks], seed=1)
    assert isinstance(agent, RuleAgent)
    assert agent.name == "w*train"
    weights = search_weights([weeks], np.random.default_rng(1), evaluations=36)
    found = evaluate([agent], weeks, progress=False)
    assert found.values("w*train").sum() == pytest.approx(cost([weeks], weights[np.newaxis])[0])


def test_weights_for_logs_of_several_scales_are_played_through_the_environment(
    weeks: Episodes,
) -> None:
    """What an environment makes of the action is what a rule makes of it at that log's scale."""
    several = [weeks, Episodes("tiny")]
    agent = WeightsTrainer(evaluations=24).train(several, seed=0)
    assert isinstance(agent, NamedAgent)
    weights = search_weights(several, np.random.default_rng(0), evaluations=24)
    rule = weighing(weights, [weeks], name="rule")
    assert isinstance(rule, RuleAgent)
    found = evaluate([agent, rule], weeks, progress=False)
    assert np.array_equal(found.values("w*train"), found.values("rule"))
    batch = agent.predict({"cluster": np.zeros((3, 5))})[0]
    assert batch.shape == (3, 6)
