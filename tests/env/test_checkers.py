"""The ecosystem's own checkers, with every warning an error, and its learners."""

import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from env_cases import ACTIONS as OLDER
from env_cases import check_with_stable_baselines, plain_env

ACTIONS = ("index", *OLDER)
BUNDLED = ("tiny", "synthetic-256-weeks")
REAL = {"kth-sp2-weeks": "KTH-SP2-1996-2.1-cln", "rr9212-sdsc-sp2": "SDSC-SP2-1998-4.2-cln"}


@pytest.fixture
def strict() -> Iterator[None]:
    """Make every warning an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def make(**keywords: Any) -> gymnasium.Env:
    return gymnasium.make("HPCBatch-v0", **keywords)


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize("scenario", BUNDLED)
@pytest.mark.parametrize("action", ACTIONS)
def test_gymnasium_has_nothing_to_say(scenario: str, action: str) -> None:
    check_env(make(scenario=scenario, action=action).unwrapped, skip_render_check=True)


@pytest.mark.parametrize("scenario", BUNDLED)
@pytest.mark.parametrize("action", ACTIONS)
def test_stable_baselines_has_nothing_to_say(scenario: str, action: str) -> None:
    check_with_stable_baselines(make(scenario=scenario, action=action))


@pytest.mark.parametrize("form", ["dict", "flat"])
def test_everything_becomes_tensors(form: str) -> None:
    pytest.importorskip("array_api_compat")
    torch = pytest.importorskip("torch")
    from gymnasium.wrappers import NumpyToTorch
    from gymnasium.wrappers.vector import NumpyToTorch as NumpyToTorchVector

    keywords = {"scenario": "tiny", "action": "job", "observation": form, "max_episode_steps": 3}
    one = NumpyToTorch(make(**keywords))
    many = NumpyToTorchVector(gymnasium.make_vec("HPCBatch-v0", num_envs=2, **keywords))
    for env, action in ((one, torch.tensor(0)), (many, torch.zeros(2, dtype=torch.int64))):
        shown, info = env.reset(seed=0)
        for _ in range(3):
            parts = [shown] if form == "flat" else shown.values()
            assert all(isinstance(part, torch.Tensor) for part in parts)
            assert isinstance(info["action_mask"], torch.Tensor)
            shown, *_, info = env.step(action)
        assert float(info["ratio"].max() if env is many else info["ratio"]) > 0


@pytest.mark.parametrize("scenario", REAL)
@pytest.mark.parametrize("action", ["index", "job"])
def test_checkers_have_nothing_to_say_on_real_logs(
    scenario: str, action: str, real_log: Callable[[str], Path]
) -> None:
    real_log(REAL[scenario])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(make(scenario=scenario, action=action).unwrapped, skip_render_check=True)
    check_with_stable_baselines(make(scenario=scenario, action=action))


@pytest.mark.parametrize(
    "keywords",
    [
        {"decide": "event", "reward": "bsld_start"},
        {"decide": 3_600, "reward": "wait"},
        {"action": "policy", "decide": 600, "policies": ["SAF", "SPF"], "baseline": "SAF"},
        {"action": "order", "n_slots": 7, "reward": "log_ratio", "baseline": "FCFS"},
        {"action": "job", "n_slots": 1, "reward": "pp_bsld", "backfill_order": "SPF"},
        {"action": "job", "decide": "event", "backfill": "none", "max_episode_steps": 5},
    ],
)
def test_checkers_have_nothing_to_say_of_other_keywords(keywords: dict[str, Any]) -> None:
    env = make(scenario="tiny", **keywords)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped, skip_render_check=True)
    check_with_stable_baselines(env)


@pytest.mark.usefixtures("strict")
def test_gymnasium_has_nothing_to_say_of_images(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    check_env(make(scenario="tiny", render_mode="ansi").unwrapped)


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize("action", ACTIONS)
def test_wrappers_of_gymnasium_take_the_environment(action: str) -> None:
    env = make(scenario="tiny", action=action)
    wrapped = gymnasium.wrappers.FlattenObservation(gymnasium.wrappers.RecordEpisodeStatistics(env))
    wrapped.action_space.seed(0)
    shown, _ = wrapped.reset(seed=0)
    assert shown.shape == (env.unwrapped.n_slots * (18 + 1) + 19,)
    terminated = False
    while not terminated:
        shown, _, terminated, _, info = wrapped.step(wrapped.action_space.sample())
    assert info["episode"]["r"] == pytest.approx(-info["ratio"])


@pytest.mark.long
@pytest.mark.usefixtures("strict")
def test_vectors_of_gymnasium_run_environments_in_their_own_processes() -> None:
    """Each as it would run alone."""
    envs = gymnasium.make_vec(
        "HPCBatch-v0",
        num_envs=2,
        vectorization_mode="async",
        vector_kwargs={"context": "spawn"},
        scenario="synthetic-256-weeks",
        n_slots=16,
        action="weights",
    )
    alone = [plain_env(n_slots=16) for _ in range(2)]
    try:
        together, _ = envs.reset(seed=[3, 4])
        apart = [env.reset(seed=seed)[0] for env, seed in zip(alone, (3, 4), strict=True)]
        for _ in range(5):
            for k in range(2):
                assert all(np.array_equal(together[key][k], apart[k][key]) for key in apart[k])
            together = envs.step(np.zeros((2, 6), dtype=np.float32))[0]
            apart = [env.step(np.zeros(6, dtype=np.float32))[0] for env in alone]
    finally:
        envs.close()


@pytest.mark.long
def test_name_works_without_importing_hpcgym_first() -> None:
    code = (
        "import sys, gymnasium\n"
        "env = gymnasium.make('hpcgym:HPCBatch-v0', scenario='tiny')\n"
        "env.reset(seed=0)\n"
        "heavy = {'torch', 'stable_baselines3', 'matplotlib', 'pygame'} & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)\n"
    )
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr


# --- Learners -------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("action", ACTIONS)
def test_ppo_learns_a_few_steps(action: str) -> None:
    sb3 = pytest.importorskip("stable_baselines3")
    env = make(scenario="tiny", action=action, n_slots=8)
    model = sb3.PPO("MultiInputPolicy", env, n_steps=32, batch_size=16, n_epochs=1, seed=0)
    model.learn(64)
    shown, _ = env.reset(seed=0)
    chosen, _ = model.predict(shown, deterministic=True)
    assert env.action_space.contains(np.int64(chosen) if np.ndim(chosen) == 0 else chosen)


@pytest.mark.long
def test_maskable_ppo_never_picks_an_empty_slot() -> None:
    contrib = pytest.importorskip("sb3_contrib")
    from sb3_contrib.common.maskable.evaluation import evaluate_policy
    from stable_baselines3.common.callbacks import BaseCallback

    class Count(BaseCallback):
        """Remember the largest count of invalid actions."""

        most, n_ends = 0, 0

        def _on_step(self) -> bool:
            for info in self.locals["infos"]:
                self.most = max(self.most, info.get("invalid_actions", 0))
                self.n_ends += "invalid_actions" in info
            return True

    env = make(scenario="tiny", action="job", n_slots=16, reward="bsld")
    model = contrib.MaskablePPO(
        "MultiInputPolicy", env, n_steps=64, batch_size=32, n_epochs=1, seed=0
    )
    count = Count()
    model.learn(128, callback=count)
    assert (model.num_timesteps, count.most) == (128, 0)
    assert count.n_ends > 1
    mean, _ = evaluate_policy(model, env, n_eval_episodes=2, warn=False)
    assert -8 < mean < -1


@pytest.mark.long
def test_maskable_ppo_learns_which_policy_to_choose() -> None:
    contrib = pytest.importorskip("sb3_contrib")
    env = make(scenario="tiny", action="policy", policies=["SAF", "SPF", "LCFS"], n_slots=8)
    model = contrib.MaskablePPO(
        "MultiInputPolicy", env, n_steps=32, batch_size=32, n_epochs=1, seed=0
    )
    assert model.learn(64).num_timesteps == 64
