"""Models that Stable-Baselines3 has saved, as agents: they act as the model does."""

from __future__ import annotations

import importlib
import sys
import zipfile
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import FlattenObservation

from hpcgym.agent.base import NamedAgent
from hpcgym.agent.shelf import load_agent
from hpcgym.base.errors import CardError
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.env.scheduling import SchedulingEnv
from hpcgym.evaluation import evaluate

sb3 = pytest.importorskip("stable_baselines3")
contrib = pytest.importorskip("sb3_contrib")
make_vec_env = pytest.importorskip("stable_baselines3.common.env_util").make_vec_env
VecNormalize = pytest.importorskip("stable_baselines3.common.vec_env").VecNormalize
HPCBatchVecEnv = pytest.importorskip("hpcgym.agent.sb3").HPCBatchVecEnv
Progress = pytest.importorskip("hpcgym.agent.sb3").Progress

POLICIES = ("SAF", "FCFS", "SPF")
OFF_POLICY = {"buffer_size": 10}
FLAT = {"observation": "flat"}


def small(learner: Any, policy: str, env: Any, **options: Any) -> Any:
    """Make a model with a small network."""
    return learner(policy, env, policy_kwargs={"net_arch": [8]}, seed=1, device="cpu", **options)


@pytest.mark.long
@pytest.mark.parametrize(
    ("learner", "policy", "options", "keywords"),
    [
        (sb3.PPO, "MultiInputPolicy", {}, {"action": "index", "n_slots": 12}),
        (sb3.SAC, "MlpPolicy", OFF_POLICY, {"action": "index", "n_slots": 32} | FLAT),
        (sb3.PPO, "MultiInputPolicy", {}, {"action": "weights", "n_slots": 12}),
        (sb3.A2C, "MultiInputPolicy", {"use_sde": True}, {"action": "order", "n_slots": 8}),
        (sb3.DQN, "MultiInputPolicy", OFF_POLICY, {"action": "job", "n_slots": 8}),
        (sb3.SAC, "MultiInputPolicy", OFF_POLICY, {"action": "weights", "n_slots": 8}),
        (contrib.MaskablePPO, "MultiInputPolicy", {}, {"action": "job", "n_slots": 9}),
        (sb3.PPO, "MlpPolicy", {}, {"action": "order", "n_slots": 9} | FLAT),
        (contrib.RecurrentPPO, "MultiInputLstmPolicy", {}, {"action": "policy", "n_slots": 9}),
        (contrib.QRDQN, "MultiInputPolicy", OFF_POLICY, {"action": "job", "n_slots": 7}),
        (sb3.PPO, "MultiInputPolicy", {}, {"action": "weights", "n_slots": 6, "decide": 3600}),
        (sb3.PPO, "MultiInputPolicy", {}, {"action": "policy", "policies": POLICIES}),
        (sb3.PPO, "MlpPolicy", {}, {"action": "job", "backfill": "none"} | FLAT),
    ],
)
def test_a_saved_model_acts_as_it_did_and_states_its_keywords(
    learner: Any, policy: str, options: dict[str, Any], keywords: dict[str, Any], tmp_path: Path
) -> None:
    model = small(learner, policy, HPCBatchVecEnv("tiny", num_envs=1, **keywords), **options)
    model.save(tmp_path / "mine.zip")
    agent = load_agent(str(tmp_path / "mine.zip"))
    assert (agent.name, agent.env_keywords) == ("mine", keywords)
    env = SchedulingEnv("tiny", **agent.env_keywords)
    observation, _ = env.reset(seed=3)
    states: list[Any] = [None, None]
    for step in range(3):
        start = np.array([step == 0])
        one, states[0] = agent.predict(observation, states[0], start, True)
        other, states[1] = model.predict(observation, states[1], start, True)
        assert np.array_equal(one, other)
        observation, _, done, _, _ = env.step(one)
        if done:
            break


def test_a_saved_index_is_set_every_four_hours_as_while_it_learned(tmp_path: Path) -> None:
    scenario = "synthetic-256-weeks"
    envs = HPCBatchVecEnv(scenario, num_envs=1)
    small(sb3.PPO, "MultiInputPolicy", envs).save(tmp_path / "mine.zip")
    agent = load_agent(str(tmp_path / "mine.zip"))
    env = SchedulingEnv(scenario, **agent.env_keywords)
    shown, _ = env.reset(seed=3)
    times = []
    for _ in range(8):
        times.append(env.now)
        shown, *_ = env.step(agent.predict(shown)[0])
    assert [now % 14_400 for now in times] == [0] * 8
    assert times == sorted(set(times))


@pytest.mark.parametrize(
    ("policy", "observation"), [("MultiInputPolicy", "dict"), ("MlpPolicy", "flat")]
)
def test_a_saved_model_is_evaluated_by_its_file(
    policy: str, observation: Any, tmp_path: Path
) -> None:
    envs = HPCBatchVecEnv("tiny", num_envs=1, observation=observation)
    model = small(sb3.PPO, policy, envs)
    model.save(tmp_path / "mine.zip")
    result = evaluate([str(tmp_path / "mine.zip")], "tiny", progress=False)
    assert result.frame.agent.tolist() == ["mine", "SAF"]


def test_what_a_learner_kept_of_modules_that_are_absent_is_not_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = small(sb3.PPO, "MultiInputPolicy", HPCBatchVecEnv("tiny", num_envs=1))
    (module := tmp_path / "elsewhere.py").write_text("class Part:\n    pass\n")
    with monkeypatch.context() as context:
        context.syspath_prepend(tmp_path)
        model.part = importlib.import_module("elsewhere").Part()
        model.save(path := tmp_path / "mine.zip")
    module.unlink()
    monkeypatch.delitem(sys.modules, "elsewhere")
    assert load_agent(str(path)).env_keywords == {"action": "index"}


@pytest.mark.long
def test_a_model_of_another_kind_of_machine_is_refused(tmp_path: Path) -> None:
    envs = HPCBatchVecEnv("hetero-64-weeks", num_envs=1)
    small(sb3.PPO, "MultiInputPolicy", envs).save(tmp_path / "mine.zip")
    with pytest.raises(CardError, match=r"mine.zip: was trained on observations .* 'machine'"):
        evaluate([str(tmp_path / "mine.zip")], "tiny", progress=False)
    envs = HPCBatchVecEnv("tiny", num_envs=1, action="weights", n_slots=128, **FLAT)
    small(sb3.PPO, "MlpPolicy", envs).save(tmp_path / "flat.zip")
    agent = load_agent(str(tmp_path / "flat.zip"))
    shown, _ = SchedulingEnv("hetero-64-weeks", **agent.env_keywords).reset()
    with pytest.raises(CardError, match=r"of shapes \(2451,\), and these are \(2972,\)"):
        agent.predict(shown)


@pytest.mark.parametrize(("problem", "scenario"), [("Price", "price-weeks"), ("Windows-pick", "")])
def test_a_model_plays_the_problem_that_it_learned(
    problem: str, scenario: str, tmp_path: Path
) -> None:
    scenario, weeks = scenario or "windows-256", f"hpcgym/{problem}-train-v0"
    envs = VecNormalize(make_vec_env(weeks, n_envs=2))
    model = small(sb3.PPO, "MlpPolicy", envs, n_steps=8, batch_size=8)
    model.learn(16, callback=Progress("1", best=tmp_path / "best" / "best.zip"))
    model.save(path := tmp_path / "mine.zip")
    assert load_agent(str(tmp_path / "best" / "best.zip")).agent.normal is not None
    with pytest.raises(CardError, match=r"through VecNormalize; .*envs.save\(.*vecnormalize.pkl"):
        load_agent(str(path))
    envs.save(tmp_path / "vecnormalize.pkl")
    env = gymnasium.make(weeks.replace("train", "test"))
    shown, _ = env.reset(
        options={"episode": (number := Episodes(scenario).select("test").numbers[0])}
    )
    over = False
    while not over:
        action, _ = model.predict(envs.normalize_obs(shown), deterministic=True)
        shown, _, over, _, info = env.step(action)
    found = evaluate([str(path)], scenario, weeks=str(number), progress=False)
    bsld = found.frame.set_index("agent").mean_bsld
    assert bsld["mine"] == pytest.approx(info["mean_bsld"])


def test_statistics_are_those_of_the_model(tmp_path: Path) -> None:
    through: Any = None
    for name in ("plain", "through"):
        plain = HPCBatchVecEnv("tiny", num_envs=2, action="weights", **FLAT)
        through = VecNormalize(plain)
        envs = plain if name == "plain" else through
        model = small(sb3.SAC, "MlpPolicy", envs, learning_starts=4, buffer_size=10)
        model.learn(12)
        model.save(tmp_path / f"{name}.zip")
    with pytest.raises(CardError, match="agent SAC learned through VecNormalize"):
        NamedAgent("SAC", model)
    with pytest.raises(CardError, match=r"through\.zip: was trained through VecNormalize"):
        load_agent(str(tmp_path / "through.zip"))
    through.save(tmp_path / "vecnormalize.pkl")
    assert load_agent(str(tmp_path / "plain.zip")).agent.normal is None
    assert load_agent(str(tmp_path / "through.zip")).agent.normal is not None


def test_what_is_done_with_slots_that_hold_no_job_is_of_the_training() -> None:
    envs = HPCBatchVecEnv("tiny", num_envs=1, action="job", invalid="error")
    model = small(contrib.MaskablePPO, "MultiInputPolicy", envs)
    assert NamedAgent("MASKED", model).env_keywords == {"action": "job"}
    wrapped = small(
        sb3.PPO, "MlpPolicy", make_vec_env("HPCBatch-v0", wrapper_class=FlattenObservation)
    )
    assert NamedAgent("WRAPPED", wrapped).env_keywords == {}


def test_a_model_whose_keywords_are_not_stated_is_refused(tmp_path: Path) -> None:
    envs = make_vec_env("HPCBatch-v0", wrapper_class=FlattenObservation)
    small(sb3.PPO, "MlpPolicy", envs).save(path := tmp_path / "mine.zip")
    with pytest.raises(CardError, match=r"its spaces are none .* or a wrapper has replaced"):
        load_agent(str(path))


def test_what_is_no_model_of_this_environment_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.zip"
    with pytest.raises(CardError, match=r"mine\.zip: no such file"):
        load_agent(str(path))
    path.write_text("no archive")
    with pytest.raises(CardError, match="no model that Stable-Baselines3 has saved"):
        load_agent(str(path))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data", "{}")
    with pytest.raises(CardError, match="no model that Stable-Baselines3 has saved"):
        load_agent(str(path))
    small(sb3.PPO, "MlpPolicy", "CartPole-v1").save(path)
    with pytest.raises(CardError, match="its spaces are none of HPCBatch"):
        load_agent(str(path))
