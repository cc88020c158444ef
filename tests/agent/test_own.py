"""Policies, agents and trainers of one's own files: what each may be, and what is refused."""

import re
import sys

import numpy as np
import pytest

from hpcgym.agent import NamedAgent, RuleAgent
from hpcgym.agent.own import agent_of, load_policy
from hpcgym.agent.shelf import load_agent
from hpcgym.agent.trainers import load_trainer
from hpcgym.base.errors import CardError, HpcgymError, PolicyError
from hpcgym.core.policy import policy_names, unregister_policy
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.evaluation.cross_validation import load_agent_or_trainer
from hpcgym.schedule.simulate import simulate

FORMULA = "def widest(jobs):\n    return -jobs.q\n"
CHOOSER = """
from hpcgym.core.policy import Chooser, ChooserRun, as_policy

class _Run(ChooserRun):
    def choose(self, simulator):
        return as_policy("LQF")

class Widest(Chooser):
    name = "by choice"
    def begin(self):
        return _Run()
"""
KEYS = """
import hpcgym

def _key(workload):
    return -workload.processors

WIDEST = hpcgym.register_policy("OWN-WIDEST", keys=_key)
"""
FACTORY = FORMULA + "def widest_first():\n    return widest\n"
AGENT = """
class Mine:
    env_keywords = {"action": "policy", "policies": ("LQF",)}
    def predict(self, observation, state=None, episode_start=None, deterministic=True):
        return 0, state
"""
TRAINER = """
from dataclasses import dataclass
from hpcgym.agent import RuleAgent

def _helper(x):
    return x

@dataclass(frozen=True)
class Best:
    name: str = "BEST"
    def train(self, episodes, seed):
        return RuleAgent("LQF")
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    """Return a function that writes a file and returns its path; its import is forgotten."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "own_part", raising=False)

    def write(code):
        (tmp_path / "own_part.py").write_text(code)
        return str(tmp_path / "own_part.py")

    yield write
    sys.modules.pop("own_part", None)
    if "OWN-WIDEST" in policy_names():
        unregister_policy("OWN-WIDEST")


@pytest.mark.parametrize(
    ("code", "end", "name"),
    [
        (FORMULA, "", "widest"),
        (FORMULA, ":widest", "widest"),
        (FACTORY, ":widest_first", "widest_first"),
        (CHOOSER, "", "Widest"),
        (KEYS, "", "WIDEST"),
    ],
)
def test_policy_of_a_file_orders_as_it_says(file, code, end, name):
    path = file(code)
    policy = load_policy(path + end)
    assert policy.name == name
    workload = Episodes("tiny").workload(0)
    wanted = simulate(workload, "LQF").start_time
    assert np.array_equal(simulate(workload, policy).start_time, wanted)
    agent = load_agent(path + end)
    assert isinstance(agent, RuleAgent)
    assert agent.name == name


def test_name_that_is_no_file_is_a_policy_as_ever():
    assert load_policy("saf") == "saf"
    with pytest.raises(PolicyError, match=r"model.zip is a model, hence an agent: `hpcgym eval"):
        load_policy("model.zip")


@pytest.mark.parametrize("own_name", [None, "NAMED"])
def test_agent_of_a_file_has_its_keywords_and_its_name(file, own_name):
    code = AGENT if own_name is None else AGENT.replace("Mine:", f"Mine:\n    name = {own_name!r}")
    found = load_agent(file(code))
    assert isinstance(found, NamedAgent)
    assert found.name == (own_name or "Mine")
    assert found.env_keywords == {"action": "policy", "policies": ("LQF",)}


def test_instance_is_preferred_to_its_class_and_an_agent_to_a_function(file):
    found = load_agent(file(FORMULA + AGENT + "MINE = Mine()\nMINE.name = 'made'\n"))
    assert found.name == "made"


def test_trainer_of_a_file_is_taken_before_other_parts(file):
    path = file(TRAINER)
    for found in (load_trainer(path), load_agent_or_trainer(path), load_trainer(f"{path}:Best")):
        assert (found.name, found.train([], 0).name) == ("BEST", "LQF")


def test_agent_of_a_file_is_cross_validated_where_there_is_no_trainer(file):
    assert load_agent_or_trainer(file(FORMULA)).name == "widest"


@pytest.mark.parametrize(
    ("load", "code", "message"),
    [
        (load_policy, AGENT, "defines no policy, which is a function of .*; it defines Mine"),
        (load_agent, TRAINER, r"defines no agent, which has predict\(\), .*; it defines Best"),
        (load_trainer, AGENT, r"defines no trainer, which has train\(.*; it defines Mine"),
        (load_agent, AGENT.replace('"action"', '"acton"'), "'acton'; did you mean 'action'"),
        (load_agent, AGENT.replace("{", "[{").replace("}", "}]"), "env_keywords must be a dict,"),
        (load_agent, FORMULA + "def other(jobs): pass", "more than one agent: other, widest;"),
        (load_trainer, TRAINER.replace("name:", "title:"), "has no name; a trainer's `name` is"),
    ],
)
def test_what_does_not_fit_is_refused_by_saying_what_would(file, load, code, message):
    with pytest.raises(HpcgymError, match=message):
        load(file(code))


def test_function_that_returns_no_agent_is_refused():
    with pytest.raises(PolicyError, match=re.escape("NINE is no policy: allowed are a function")):
        agent_of(lambda: 9, "NINE", "here")
    with pytest.raises(CardError, match=r"is no trainer, which has train\("):
        load_trainer("getpass:getuser")
