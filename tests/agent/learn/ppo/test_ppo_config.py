"""Hyper-parameters: presets, overrides by text, and refusals with the nearest name."""

from __future__ import annotations

import inspect
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from hpcgym.agent.learn.ppo.config import augmentation_of
from hpcgym.base.errors import CardError, HpcgymError
from hpcgym.env.scenario.augment import Augmentation

ppo = pytest.importorskip("hpcgym.agent.learn.ppo")
config = pytest.importorskip("hpcgym.agent.learn.ppo.config")


def test_every_hyper_parameter_is_described() -> None:
    lines = inspect.getsource(ppo.PPOConfig).splitlines()
    for one in fields(ppo.PPOConfig):
        [at] = [at for at, line in enumerate(lines) if line.startswith(f"    {one.name}: ")]
        assert "  # " in lines[at] or lines[at - 1].startswith("    # "), one.name


@pytest.mark.parametrize(
    ("assignment", "value"),
    [
        ("hidden=16", 16),
        ("gamma=0.5", 0.5),
        ("residual=False", False),
        ("policies=SAF, SPF", ("SAF", "SPF")),
        ("decide=3600", 3600),
        ("decide=event", "event"),
        ("start=smith-history", "smith-history"),
        ("start=smith-history, saf", ("smith-history", "saf")),
    ],
)
def test_values_are_read_as_the_type_they_have(assignment: str, value: Any) -> None:
    key = assignment.partition("=")[0]
    found = getattr(ppo.overridden(ppo.preset("policy"), [assignment]), key)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("learning_rte=1", "did you mean 'learning_rate'"),
        ("hidden", "write key=value"),
        ("hidden=1.5", "hidden must be a whole number, got '1.5'"),
        ("gamma=high", "gamma must be a number, got 'high'"),
        ("residual=1", "residual must be true or false, got '1'"),
        ("gamma=1.5", "gamma, gae_lambda and falls_to lie in 0 to 1"),
        ("falls_to=1.5", "lie in 0 to 1, got 1.0, 0.97 and 1.5"),
        ("n_steps=0", "n_steps must be at least 1, got 0"),
        ("temperature=0", "temperature must be at least"),
        ("group_size=7", "group_size must divide n_envs, got 7 and 120"),
        ("reward=ration", "did you mean 'ratio'"),
        ("policies=SAF", "policies belong to action 'policy'"),
        ("start=smith-histroy", "did you mean 'smith-history'"),
        ("start=smith-reg,smith-histroy", "did you mean 'smith-history'"),
        ("start=,", "start of action 'order' must name one policy or more, got none"),
        ("learning_rate=nan", "learning_rate must be a finite number, got nan"),
        ("learning_rate=inf", "learning_rate must be a finite number, got inf"),
        ("log_std=nan", "log_std must be a finite number, got nan"),
        ("log_std=1000", "log_std must be at most 2, got 1000"),
        ("device=gpu", "unknown device 'gpu'.* Allowed: auto, cpu, cuda"),
        ("averaging=1", "validation_share and averaging lie in 0 to below 1"),
    ],
)
def test_a_value_that_cannot_be_is_refused(assignment: str, message: str) -> None:
    with pytest.raises(HpcgymError, match=message):
        ppo.overridden(ppo.preset("order"), [assignment])


def test_a_reward_is_paired_with_the_start_unless_it_names_another_policy() -> None:
    said = {
        ("order", "start=saf"): "SAF",
        ("job", "start=smith-history,saf"): "SMITH-HISTORY",
        ("job", "baseline=FCFS"): "FCFS",
        ("order", "baseline="): None,
        ("policy", "n_slots=64"): "SAF",
        ("controls", "n_slots=64"): "SMITH-URGENT",
    }
    for (action, change), baseline in said.items():
        assert ppo.overridden(ppo.preset(action), [change]).paired_with == baseline


def test_an_action_whose_zeros_are_its_start_has_no_other() -> None:
    why = "start of action 'controls' must name one policy, since zeros are its start, got saf, smi"
    with pytest.raises(HpcgymError, match=why):
        ppo.preset("controls", start=("saf", "smith-reg"))
    with pytest.raises(HpcgymError, match="baseline must name a policy, since action 'index' star"):
        ppo.preset("index", baseline="start")
    with pytest.raises(CardError, match="weights of features start at 'saf', got 'smith-reg'"):
        ppo.preset("weights", start=("saf", "smith-reg"))


def test_a_reward_may_be_named_by_its_file(tmp_path: Path) -> None:
    file = tmp_path / "my_reward.py"
    file.write_text("def late(job):\n    return job.processors, job.submit_time + 60\n")
    assert ppo.PPOConfig(reward=str(file)).reward == str(file)
    with pytest.raises(HpcgymError, match="no such file"):
        ppo.PPOConfig(reward=str(tmp_path / "other_reward.py"))


def test_a_reward_that_compares_needs_a_baseline() -> None:
    assert ppo.overridden(ppo.preset("order"), ["baseline="]).reward == "ratio"
    for action, *changes in (("order", "baseline="), ("index",)):
        with pytest.raises(HpcgymError, match="reward 'log_ratio' compares with a baseline"):
            ppo.overridden(ppo.preset(action), ["reward=log_ratio", *changes])


def test_the_keywords_of_an_agent_say_when_it_decides_unless_passes_are_contested() -> None:
    said = {
        ("index", ""): 14_400,
        ("index", "decide=contested"): "contested",
        ("weights", ""): None,
        ("weights", "decide=contested"): None,
        ("weights", "decide=3600"): 3_600,
    }
    for (action, change), decide in said.items():
        found = ppo.overridden(ppo.preset(action), [change] if change else [])
        assert found.env_keywords.get("decide") == decide


def test_changes_of_episodes_are_read_by_text_and_written_back() -> None:
    texts = ["jitter=600", "load=0.8,1.25", "window=3600,86400", "growing=true", "resampled=0.5"]
    found = augmentation_of(texts)
    assert found == Augmentation(600, (0.8, 1.25), (3_600, 86_400), True, 0.5)
    assert augmentation_of(["generated=0.25", "easiest=2", "hardest=200"]) == Augmentation(
        generated=0.25, easiest=2.0, hardest=200.0
    )
    assert augmentation_of([]) is augmentation_of(["jitter=0"]) is None
    written = [f"{key}={text}" for key, text in config.texts_of(found).items()]
    assert augmentation_of(written) == found


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("jiter=600", "unknown augmentation 'jiter'; did you mean 'jitter'"),
        ("jitter", "write key=value"),
        ("jitter=1.5", "jitter must be a whole number, got '1.5'"),
        ("load=1", "load must be two numbers with a comma between, got '1'"),
        ("load=1.25,0.8", "load must be two factors > 0, the least first"),
        ("window=1,2,3", "window must be two whole numbers with a comma between"),
        ("growing=true", "growing is for windows"),
        ("hardest=-1", "easiest must lie below hardest"),
    ],
)
def test_a_change_of_episodes_that_cannot_be_is_refused(assignment: str, message: str) -> None:
    with pytest.raises(HpcgymError, match=message):
        augmentation_of([assignment])


def test_a_network_that_cannot_be_is_refused() -> None:
    with pytest.raises(CardError, match="layers must be at most 32"):
        ppo.preset("order", layers=33)
    with pytest.raises(HpcgymError, match="policies must name SAF, got FCFS"):
        ppo.preset("policy", policies=("FCFS",))
    with pytest.raises(HpcgymError, match="policies must name SMITH-HISTORY, got SAF"):
        ppo.preset("policy", policies=("SAF",), start="smith-history")
    with pytest.raises(CardError, match="weights of features start at 'saf', got 'smith-history'"):
        ppo.preset("weights", start="smith-history")
    with pytest.raises(HpcgymError, match="did you mean 'order'"):
        ppo.preset("ordre")
