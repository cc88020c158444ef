"""A rule as an agent: a constant choice for every observation."""

import pickle

import numpy as np
import pytest

from hpcgym.agent import NamedAgent, RuleAgent
from hpcgym.base.errors import CardError, PolicyError
from hpcgym.core.policy import as_policy
from hpcgym.core.settings import SchedulerSettings

ONE = {"jobs": np.zeros((4, 3), dtype=np.float32), "cluster": np.zeros(3, dtype=np.float32)}
BATCH = {key: np.stack([value] * 5) for key, value in ONE.items()}


def test_rule_chooses_the_place_of_its_policy_among_those_offered() -> None:
    agent = RuleAgent("SAF", policies=["FCFS", "SPF", "SAF"])
    action, state = agent.predict(ONE)
    assert (int(action), action.shape, state) == (2, (), None)


def test_rule_chooses_once_for_every_observation_of_a_batch() -> None:
    action, _ = RuleAgent("SAF", policies=["FCFS", "SAF"]).predict(BATCH)
    assert np.array_equal(action, np.ones(5, dtype=np.int64))
    flat, _ = RuleAgent("SAF").predict(np.zeros((4, 7)))
    assert np.array_equal(flat, np.zeros(4, dtype=np.int64))


def test_rule_names_the_keywords_its_action_means_something_under() -> None:
    assert RuleAgent("SPF").env_keywords == {"action": "policy", "policies": (as_policy("SPF"),)}
    stated = RuleAgent("FCFS", backfill="easy", backfill_order="SPF").env_keywords
    assert stated["backfill"] == "easy"
    assert stated["backfill_order"] is as_policy("SPF")


def test_scenario_settings_hold_except_what_the_rule_states() -> None:
    scenario = SchedulerSettings("SAF", backfill="none", threshold=72_000, estimates="exact")
    plain = RuleAgent("LQF").settings(scenario)
    assert plain.policy is as_policy("LQF")
    assert (str(plain.backfill), plain.threshold, plain.estimates) == ("none", 72_000, "exact")
    stated = RuleAgent("FCFS", backfill="easy", backfill_order="SPF").settings(scenario)
    assert (str(stated.backfill), stated.backfill_order) == ("easy", as_policy("SPF"))
    assert stated.threshold == 72_000


def test_rule_goes_by_any_policy_and_by_a_name_of_its_own() -> None:
    assert RuleAgent("e=1,wait=-1").name == "e=0.5,wait=-0.5"
    assert RuleAgent([0, 0, 0, 0, 0, 1], name="mine").name == "mine"


def test_policy_that_is_not_offered_is_refused() -> None:
    with pytest.raises(CardError, match="'SAF'; did you mean 'LAF'"):
        RuleAgent("SAF", policies=["FCFS", "LAF"])
    with pytest.raises(PolicyError, match="did you mean 'SMITH'"):
        RuleAgent("SMIHT")
    with pytest.raises(PolicyError, match="did you mean 'easy'"):
        RuleAgent("SAF", backfill="eesy")


def test_rule_survives_pickling() -> None:
    agent = pickle.loads(pickle.dumps(RuleAgent("SAF", policies=["FCFS", "SAF"])))
    assert int(agent.predict(ONE)[0]) == 1


def test_named_agent_chooses_as_the_agent_it_wraps() -> None:
    inner = RuleAgent("SAF", policies=["FCFS", "SAF"])
    action, state = NamedAgent("mine", inner).predict(BATCH, state=(np.ones(1),))
    assert np.array_equal(action, np.ones(5, dtype=np.int64))
    assert state is not None
