"""What information is worth is measured on the passes where an order matters."""

import numpy as np
import pytest

from hpcgym.agent.base import NamedAgent
from hpcgym.agent.rule import RuleAgent
from hpcgym.agent.training_weeks import Training
from hpcgym.base.errors import CardError, EvaluationError
from hpcgym.core.constants import N_NETWORK
from hpcgym.core.index_policy import index_policy
from hpcgym.env.scenario.episodes import Episodes
from research import value_of_information
from research.value_of_information import (
    ORDERS,
    SOURCES,
    agreement,
    chain,
    orders_by,
    pairs_behind,
    prediction_quality,
)

NOTHING = np.zeros(N_NETWORK)  # A network that says that every job runs to its request


@pytest.fixture(scope="module")
def weeks():
    """Two weeks of the bundled log."""
    return Episodes("synthetic-256-weeks").select("4-5")


def by_name(table, agent):
    """Return one row of a chain."""
    return table.set_index("agent").loc[agent]


def test_network_that_knows_nothing_says_what_the_request_says(weeks):
    table = prediction_quality(weeks, NOTHING).set_index(["source", "order"])
    for order in ("area", "smith"):
        assert table.loc["network", order].equals(table.loc["request", order])


def agreeing(one, other):
    """Count the pairs of two scores."""
    return agreement(pairs_behind(np.array(one)), pairs_behind(np.array(other)))


def test_agreement_counts_pairs():
    assert agreeing(np.log([1000.0, 500.0]), np.log([50.0, 400.0])) == (0.0, 1.0)
    assert agreeing([3.0, 1.0, 2.0], [3.0, 2.0, 1.0]) == (2.0, 3.0)


def test_pairs_that_tie_are_left_out():
    known = [1.0, 2.0, 2.0, 3.0]
    assert agreeing([1.0, 1.0, 2.0, 3.0], known) == (4.0, 4.0)
    assert agreeing([-1.0, -2.0, -2.0, -3.0], known) == (0.0, 5.0)


def test_known_pairs_of_a_pass_are_formed_once_for_all_orders(weeks, monkeypatch):
    formed = []

    def counted(score):
        formed.append(len(score))
        return pairs_behind(score)

    monkeypatch.setattr(value_of_information, "pairs_behind", counted)
    passes = prediction_quality(weeks, NOTHING)["passes"].max()
    assert len(formed) == passes * (1 + len(SOURCES) * len(ORDERS))


def test_least_area_by_the_request_is_saf(weeks):
    agent = RuleAgent(index_policy([1, 2, 0, 0, 1, -1], NOTHING), name="MINE")
    table = chain(agent, weeks, progress=False)
    assert by_name(table, "area by request")["ratio"] == 1.0
    assert by_name(table, "area by network")["ratio"] == 1.0
    assert by_name(table, "KNOWS-SMITH")["ratio"] != 1.0
    for source in ("records", "regression"):
        assert 0.0 < by_name(table, f"area by {source}")["log_error"] < 3.0
    assert table["agreement"].dropna().between(0.5, 1.0).all()


def test_records_are_read_off_the_same_passes(weeks):
    table = prediction_quality(weeks, NOTHING)
    assert table["passes"].nunique() == 1
    assert table["passes"].iloc[0] > 100


def test_the_regression_learns_beside_the_records(weeks):
    table = prediction_quality(weeks, NOTHING).set_index(["source", "order"])
    errors = table["log_error"].xs("area", level="order")
    assert errors["regression"] < errors["request"]
    assert errors["regression"] != errors["records"]


@pytest.mark.long
def test_weeks_of_the_training_are_left_out():
    training = Training({"synthetic-256-weeks": tuple(range(1, 19))}, 0, 1.0, "", "")
    policy = index_policy([1, 2, 0, 0, 1, -1], NOTHING)
    agent = RuleAgent(policy, name="MINE", training=training)
    every = Episodes("synthetic-256-weeks")
    open_weeks = every.select("20-21")
    assert chain(agent, every, progress=False)["passes"].max() == (
        prediction_quality(open_weeks, NOTHING)["passes"].max()
    )


@pytest.mark.parametrize("agent", [RuleAgent("SAF"), NamedAgent("SAF", RuleAgent("SAF"))])
def test_agent_that_is_no_index_with_a_network_is_refused(weeks, agent):
    with pytest.raises(EvaluationError, match="SAF is no index with a network"):
        chain(agent, weeks, progress=False)


def test_agent_whose_training_leaves_no_week_open_is_refused(weeks):
    training = Training({"synthetic-256-weeks": (3, 4, 5)}, 0, 1.0, "", "")
    agent = RuleAgent(index_policy([1, 2, 0, 0, 1, -1], NOTHING), name="MINE", training=training)
    with pytest.raises(CardError, match="MINE was trained on weeks 3-5 of synthetic-256-weeks"):
        chain(agent, weeks, progress=False)


def test_every_source_makes_both_orders():
    for source in SOURCES:
        assert list(orders_by(source, NOTHING)) == [f"area by {source}", f"smith by {source}"]
