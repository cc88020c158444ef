"""The vector environment under Stable-Baselines3: what its own vector gives, and learners learn."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.error import NameNotFound

from env_cases import busy_workload, episodes_of, play
from hpcgym.base.errors import HpcgymError
from hpcgym.env.scheduling import SchedulingEnv

sb3 = pytest.importorskip("stable_baselines3")
env_util = pytest.importorskip("stable_baselines3.common.env_util")
vec_env = pytest.importorskip("stable_baselines3.common.vec_env")
contrib = pytest.importorskip("sb3_contrib")
masking = pytest.importorskip("sb3_contrib.common.maskable.utils")
HPCBatchVecEnv = pytest.importorskip("hpcgym.agent.sb3").HPCBatchVecEnv
progress = pytest.importorskip("hpcgym.agent.sb3").Progress

torch = pytest.importorskip("torch")

BUSY = episodes_of(busy_workload(3, n=90), threshold=1_800)


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Let torch work on one thread: sums come out the same everywhere, and tests side by side."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def pair(num_envs: int, horizon: int | None = None, **keywords: Any) -> tuple[Any, Any]:
    """Make SB3's vector of the scalar environment, unmonitored, and ours."""
    theirs = env_util.make_vec_env(
        "HPCBatch-v0",
        num_envs,
        env_kwargs={"scenario": BUSY, "max_episode_steps": horizon, **keywords},
        monitor_dir=None,
    )
    ours = HPCBatchVecEnv(BUSY, num_envs=num_envs, max_episode_steps=horizon, **keywords)
    return theirs, ours


def without_monitor(info: dict[str, Any]) -> dict[str, Any]:
    """Leave out what SB3's Monitor adds to an info."""
    return {key: value for key, value in info.items() if key != "episode"}


def assert_same_infos(theirs: dict[str, Any], ours: dict[str, Any]) -> None:
    """Compare two infos of one environment, key by key."""
    assert theirs.keys() == ours.keys()
    for key, value in theirs.items():
        if key == "terminal_observation":
            assert all(np.array_equal(value[part], ours[key][part]) for part in value)
        elif isinstance(value, np.ndarray):
            assert value.dtype == ours[key].dtype
            assert np.array_equal(value, ours[key])
        else:
            assert (value, type(value)) == (ours[key], type(ours[key]))


@pytest.mark.long
@pytest.mark.parametrize("action", ["index", "weights", "job"])
@pytest.mark.parametrize("horizon", [None, 9])
def test_everything_equals_the_vector_of_stable_baselines(action: str, horizon: int | None) -> None:
    theirs, ours = pair(3, horizon, action=action, n_slots=8, baseline="FCFS")
    for env in (theirs, ours):
        env.action_space.seed(0)
        assert env.seed(7) == [7, 8, 9]
    shown, mine = theirs.reset(), ours.reset()
    ended = 0
    for _ in range(150):
        for info, my_info in zip(theirs.reset_infos, ours.reset_infos, strict=True):
            assert_same_infos(info, my_info)
        assert all(np.array_equal(shown[key], mine[key]) for key in shown)
        masks = theirs.env_method("action_masks"), ours.env_method("action_masks")
        assert np.array_equal(*map(np.stack, masks))
        actions = np.stack([theirs.action_space.sample() for _ in range(3)])
        shown, reward, done, infos = theirs.step(actions)
        mine, my_reward, my_done, my_infos = ours.step(actions)
        assert (reward.dtype, done.dtype) == (my_reward.dtype, my_done.dtype)
        assert reward.tobytes() == my_reward.tobytes()
        assert done.tolist() == my_done.tolist()
        for info, my_info in zip(infos, my_infos, strict=True):
            assert_same_infos(without_monitor(info), my_info)
        ended += int(done.sum())
    assert ended >= 3


def test_seeds_are_kept_until_the_next_reset_and_no_longer() -> None:
    env = HPCBatchVecEnv("synthetic-256-weeks", num_envs=4)
    numbers = []
    for seeded in (True, False, True):
        if seeded:
            env.seed(3)
        env.reset()
        numbers.append([info["episode_number"] for info in env.reset_infos])
    assert numbers[0] == numbers[2] != numbers[1]
    assert env.get_attr("np_random_seed") == [3, 4, 5, 6]


def test_groups_seeded_through_the_vector_outlast_the_reset_of_a_learner() -> None:
    env = HPCBatchVecEnv("synthetic-256-weeks", num_envs=6)
    env.envs.reset(seed=[1, 1, 1, 2, 2, 2])
    labels = []
    for _ in range(3):
        env.reset()
        labels.append(env.get_attr("label"))
    assert all(set(row[:3]) == {row[0]} and set(row[3:]) == {row[3]} for row in labels)
    assert [row[0] for row in labels] != [row[3] for row in labels]


def test_the_id_of_a_problem_stands_in_place_of_a_scenario() -> None:
    envs = HPCBatchVecEnv("hpcgym:hpcgym/Price-train-v0", num_envs=2)
    assert envs.reset().shape == (2, 38) and envs.action_space.shape == (2,)
    assert envs.envs.configs[0].episodes.scenario.name == "price-weeks"
    with pytest.raises(HpcgymError, match="Price-train-v0 fixes action"):
        HPCBatchVecEnv("hpcgym/Price-train-v0", action="job")
    with pytest.raises(NameNotFound, match="Did you mean: `Price-train`"):
        HPCBatchVecEnv("hpcgym/Price-tran-v0")
    with pytest.raises(HpcgymError, match=r"hpcgym/mine\.toml"):
        HPCBatchVecEnv("hpcgym/mine.toml")


def test_options_are_for_one_reset() -> None:
    env = HPCBatchVecEnv("synthetic-256-weeks", num_envs=2)
    env.set_options([{"episode": "week 2"}, {"episode": "week 5"}])
    env.reset()
    assert env.get_attr("label") == ["week 2", "week 5"]
    env.set_options({"common_random_numbers": True})
    env.reset()
    first, second = env.get_attr("label")
    assert first == second
    env.set_options([{"episode": 2}, {}])
    with pytest.raises(HpcgymError, match="same keys for every environment"):
        env.reset()


def test_attributes_and_methods_answer_for_each_environment() -> None:
    env = HPCBatchVecEnv(["tiny", "synthetic-256-weeks"], num_envs=4, action="job")
    env.reset()
    assert [w.machine_processors for w in env.get_attr("workload")] == [4, 256, 4, 256]
    assert len(env.env_method("schedule", indices=[1, 3])) == 2
    assert env.get_attr("label", indices=0) == ["whole"]
    assert env.env_is_wrapped(sb3.common.monitor.Monitor) == [False] * 4
    assert env.has_attr("action_masks")
    assert not env.has_attr("no_such_thing")
    with pytest.raises(AttributeError, match="make new ones"):
        env.set_attr("n_slots", 3)


def test_masks_of_sb3_contrib_name_the_slots_that_hold_a_job() -> None:
    env = HPCBatchVecEnv("tiny", num_envs=3, action="job", n_slots=8)
    shown = env.reset()
    assert masking.is_masking_supported(env)
    masks = masking.get_action_masks(env)
    assert masks.shape == (3, 8)
    assert np.array_equal(masks, shown["action_mask"].astype(bool))


def test_pictures_are_tiled() -> None:
    pytest.importorskip("pygame")
    env = HPCBatchVecEnv("tiny", num_envs=2, render_mode="rgb_array")
    env.reset()
    first, second = env.get_images()
    assert first.shape == second.shape
    assert env.render().shape[2] == 3


@pytest.mark.long
@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("learner", [sb3.PPO, sb3.A2C], ids=["PPO", "A2C"])
def test_learners_run_under_normalisation_and_monitor(learner: Any) -> None:
    keywords = {"action": "weights", "reward": "bsld", "n_slots": 8}
    env = HPCBatchVecEnv(BUSY, num_envs=4, **keywords)
    monitored = vec_env.VecMonitor(env)
    normalised = vec_env.VecNormalize(monitored, norm_obs_keys=["jobs", "cluster"], gamma=1.0)
    model = learner("MultiInputPolicy", normalised, n_steps=64, seed=0, device="cpu")
    model.learn(512)
    assert model.num_timesteps == 512
    returns = [episode["r"] for episode in model.ep_info_buffer]
    assert len(returns) >= 4
    plain = SchedulingEnv(BUSY, **keywords)
    assert all(-3 * worst_of(plain) < paid < 0 for paid in returns)


def best_return(env: SchedulingEnv, n_actions: int) -> float:
    """Return the largest sum of rewards that any actions from here on can bring, by trying all."""
    best = -np.inf
    for action in range(n_actions):
        branch = copy.deepcopy(env)
        _, reward, terminated, *_ = branch.step(action)
        best = max(best, reward if terminated else reward + best_return(branch, n_actions))
    return best


def return_of(model: Any, env: SchedulingEnv, *, is_masked: bool) -> float:
    """Play an episode by a model's best picks; return the sum of rewards."""
    shown, _ = env.reset(seed=0)
    total, terminated = 0.0, False
    while not terminated:
        masks = {"action_masks": env.action_masks()} if is_masked else {}
        action, _ = model.predict(shown, deterministic=True, **masks)
        shown, reward, terminated, *_ = env.step(int(action))
        total += reward
    return total


PICKS = {"action": "job", "reward": "bsld", "n_slots": 2}
RULES = {"action": "policy", "reward": "bsld", "policies": ["FCFS", "LCFS", "SPF"]}
ROLLOUT = {"n_steps": 32, "batch_size": 512, "n_epochs": 4}


@pytest.mark.long
@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize(
    ("learner", "kind", "best", "keywords"),
    [
        pytest.param(*(sb3.PPO, PICKS, -2.0104, ROLLOUT), marks=pytest.mark.slow),
        (sb3.A2C, RULES, -2.1979, {"n_steps": 16, "normalize_advantage": True}),
        pytest.param(*(contrib.MaskablePPO, PICKS, -2.0104, ROLLOUT), marks=pytest.mark.slow),
    ],
    ids=["PPO", "A2C", "MaskablePPO"],
)
def test_learners_find_the_best_schedule_there_is(
    learner: Any, kind: dict[str, Any], best: float, keywords: dict[str, Any]
) -> None:
    """On `tiny`, where all that can be done is tried out; no constant choice comes as far."""
    alone = SchedulingEnv("tiny", **kind)
    alone.reset(seed=0)
    assert best_return(alone, int(alone.action_space.n)) == pytest.approx(best, abs=1e-4)
    for action in range(int(alone.action_space.n)):
        assert sum(play(alone, action, seed=0)) < best - 0.1
    model = learner(
        "MultiInputPolicy",
        HPCBatchVecEnv("tiny", num_envs=64, threads=1, **kind),
        learning_rate=1e-3,
        ent_coef=0.3 if kind is PICKS else 0.05,
        gamma=1.0,
        gae_lambda=1.0,
        seed=0,
        device="cpu",
        **keywords,
    )
    reached = -np.inf
    for _ in range(20):
        model.learn(16_384, reset_num_timesteps=False)
        reached = return_of(model, alone, is_masked=learner is contrib.MaskablePPO)
        if reached >= best - 1e-4:
            break
    assert reached == pytest.approx(best, abs=1e-4)


def worst_of(env: SchedulingEnv) -> float:
    """Return a mean bounded slowdown that random orders stay below threefold."""
    env.reset(seed=0)
    terminated = False
    while not terminated:
        *_, terminated, _, info = env.step(np.ones(6, dtype=np.float32))
    return float(info["mean_bsld"])


@pytest.mark.long
def test_progress_says_what_validation_weeks_show_and_keeps_the_best(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], one_thread: None
) -> None:
    ours = HPCBatchVecEnv("many-weeks", num_envs=4, weeks="1-2", observation="small")
    normal = vec_env.VecNormalize(ours)
    watch = progress(weeks="validation:2", best=tmp_path / "best.zip", share=1.0)
    model = sb3.PPO("MlpPolicy", normal, n_steps=16, batch_size=32, n_epochs=1, seed=0)
    model.learn(192, callback=watch)
    assert [steps for steps, _ in watch.history] == [0, 64, 128, 192]
    said = capsys.readouterr().err.splitlines()
    assert [line.partition(": ")[2] for line in said] == [str(score) for _, score in watch.history]
    assert "64 decisions, 0:" in said[1] and "of SAF, gap closed" in said[1]
    raw = np.ones((1, 24), dtype=np.float32)
    seen = model.predict(normal.normalize_obs(raw), deterministic=True)[0]
    assert np.array_equal(watch.predict(raw)[0], seen)
    best = min(score.mean_log_ratio for _, score in watch.history)
    first = next(steps for steps, score in watch.history if score.mean_log_ratio == best)
    assert sb3.PPO.load(tmp_path / "best.zip").num_timesteps == first


@pytest.mark.long
def test_progress_takes_no_more_than_its_share_of_the_time() -> None:
    theirs = env_util.make_vec_env("HPCBatch-v0", 4, env_kwargs={"scenario": "tiny"})
    watch = progress(weeks="1", share=0.0)
    sb3.PPO("MultiInputPolicy", theirs, n_steps=8, batch_size=32).learn(128, callback=watch)
    assert [steps for steps, _ in watch.history] == [0, 128]  # the first and the last
