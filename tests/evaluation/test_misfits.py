"""Agents that cannot schedule a machine of nodes are left out of its evaluations, and named."""

import pytest
from rich.console import Console

from hpcgym.agent.base import NamedAgent
from hpcgym.agent.rule import RuleAgent
from hpcgym.agent.shelf import agent_names, load_agent
from hpcgym.base.errors import EvaluationError
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.evaluation import cross_validate, evaluate
from hpcgym.evaluation.runner import misfits

SCENARIO = "hetero-64-weeks"
COUNT_PROCESSORS = {
    *("DYNP", "PLANNER", "GANG", "LOOK-AHEAD", "RELAXED", "SLACK", "MULTI-QUEUE", "MULTI-DELAY"),
    "PPO-TRIALS",
}
OF_THE_PRICE = {"PRICE-KAPPA", "PRICE-CAP", "PRICE-RANK", "PRICE-NET"}


def text_of(table):
    """Return what a terminal shows of a table, in one line."""
    console = Console(width=80)
    with console.capture() as shown:
        console.print(table)
    return " ".join(shown.get().split())


def test_agents_of_the_shelf_that_count_processors_are_misfits_and_no_others():
    agents = [load_agent(name) for name in agent_names()]
    assert set(misfits(agents, Episodes(SCENARIO))) == COUNT_PROCESSORS | OF_THE_PRICE
    without = misfits(agents, Episodes("synthetic-256-weeks"))
    assert set(without) == OF_THE_PRICE
    assert "needs the event 'price'" in without["PRICE-NET"]


def test_an_agent_that_states_another_mode_to_its_environment_is_a_misfit():
    saf = RuleAgent("SAF", policies=["SAF"])
    keywords = {"action": "policy", "policies": ("SAF",)}
    fits = NamedAgent("fits", saf, keywords)
    slack = NamedAgent("slack", saf, keywords | {"backfill": "slack:c=1"})
    (left_out,) = misfits([fits, slack], Episodes(SCENARIO)).items()
    assert left_out[0] == "slack"
    assert "counts processors (none, easy, cost-benefit, depth," in left_out[1]


def test_an_evaluation_leaves_misfits_out_and_names_them():
    found = evaluate(["PLANNER", "FCFS", "SLACK"], SCENARIO, weeks="4", progress=False)
    assert found.agents == ("FCFS", "SAF")
    assert set(found.left_out) == {"PLANNER", "SLACK"}
    assert "left out PLANNER: policy 'PLANNER' plans with counts" in text_of(found.table())


def test_an_evaluation_of_misfits_alone_is_refused():
    match = "no agent can schedule hetero-64-weeks: policy 'PLANNER' plans with counts"
    with pytest.raises(EvaluationError, match=match):
        evaluate(["PLANNER"], SCENARIO, weeks="4", progress=False)


def test_networks_and_weights_trained_without_nodes_run_unchanged():
    names = ["PPO-ORDER", "SMITH-NET", "TUNED-NET"]
    assert evaluate(names, SCENARIO, weeks="4", progress=False).agents == (*names, "SAF")


def test_a_cross_validation_leaves_baselines_out_that_count_processors():
    weeks = Episodes(SCENARIO).select("3-4")
    plain = {"jitter": 0, "replicas": 0, "progress": False}
    found = cross_validate("SPF", weeks, baselines=["SAF", "DYNP"], **plain)
    assert found.evaluation.agents == ("SPF", "SAF")
    assert set(found.evaluation.left_out) == {"DYNP"}
