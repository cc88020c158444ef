"""The ids of problems: all that makes results comparable is fixed, scalar and vector alike."""

from __future__ import annotations

import copy
import pickle
import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env

import hpcgym
from env_cases import check_with_stable_baselines
from hpcgym.base.errors import ScenarioError
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.env.scheduling import SchedulingEnv
from hpcgym.env.vector import SchedulingVectorEnv

SHAPE_OF = {"index": (5,), "trials": (8,), "order": (32,), "job": ()}
"""Shape of an action of each kind on `many-weeks` that had ids."""

PICK = [f"hpcgym/Windows-pick-{part}-v0" for part in ("train", "validation", "test")]
NO_PART = ["hpcgym/Price-v0", "hpcgym/Windows-pick-v0"]
PRICE = [f"hpcgym/Price-{part}-v0" for part in ("train", "validation", "test")]

NUMBERS = {
    "train": range(1, 401),
    "validation": range(10_001, 10_101),
    "test": range(20_001, 20_301),
}
"""Weeks of `many-weeks` in each part."""

OF_WEEKS = [f"{action}-{weeks}" for action in SHAPE_OF for weeks in (*NUMBERS, "short")]
GONE = [f"hpcgym/{log}Weeks-{name}-v0" for log in ("Many", "Busy") for name in OF_WEEKS]


@pytest.mark.long
@pytest.mark.parametrize("name", GONE)
def test_an_id_that_is_gone_answers_with_what_makes_the_same(name: str) -> None:
    log, action, weeks, _ = name.split("-")
    scenario = "many-weeks" if log == "hpcgym/ManyWeeks" else "synthetic-busy-weeks"
    for make in (gymnasium.make, gymnasium.make_vec):
        with pytest.raises(gymnasium.error.NameNotFound, match=f"{name} is gone") as found:
            make(name)
    env = eval(str(found.value).partition("The same: ")[2])
    assert env.action_space.shape == SHAPE_OF[action]
    assert isinstance(env.observation_space, gymnasium.spaces.Box)
    is_small = (scenario, action) == ("many-weeks", "index")
    assert (env.observation_space.shape == (24,)) == is_small
    base = env.unwrapped
    assert isinstance(base, SchedulingEnv)
    assert (base.action, base.episodes.scenario.name) == (action, scenario)
    assert base._config.decide == (14_400 if action == "index" else "contested")
    if weeks in NUMBERS:
        numbers = NUMBERS[weeks] if "many" in scenario else Episodes(scenario).select(weeks).numbers
        assert base.episodes.numbers == tuple(numbers)
        assert env.reset(seed=0)[1]["episode_number"] in numbers
    else:
        assert env.reset(seed=0)[1]["episode_number"] == -1  # days are no episodes of the scenario
        assert base.workload.submit_time[-1] < 86_400


@pytest.mark.parametrize(
    ("made", "error", "words"),
    [
        ({"id": "hpcgym/Price-v0"}, gymnasium.error.NameNotFound, "which weeks; .*Price-train-v0"),
        ({"id": "HPCBatch-v0", "weeks": "trian"}, ScenarioError, "many-weeks: .* mean 'train'"),
        ({"id": "HPCBatch-v0", "n_envs": 4}, ScenarioError, "'n_envs'; did you mean 'num_envs'"),
    ],
)
def test_a_slip_is_answered_with_what_was_meant(made: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        gymnasium.make_vec(**made)


@pytest.mark.parametrize("scenario", ["many-weeks", "price-weeks"])
def test_test_weeks_are_not_drawn_unless_they_are_asked_for(scenario: str) -> None:
    training, *_, judging = (tuple(numbers) for numbers in NUMBERS.values())
    bare = gymnasium.make("HPCBatch-v0", scenario=scenario).unwrapped
    vector = gymnasium.make_vec("HPCBatch-v0", num_envs=1, scenario=[scenario])
    assert isinstance(bare, SchedulingEnv)
    assert isinstance(vector, SchedulingVectorEnv)
    assert bare.episodes.numbers == vector.configs[0].episodes.numbers == training
    assert len(SchedulingEnv("synthetic-busy-weeks").episodes) == 17  # states no parts
    with pytest.raises(ScenarioError, match='20001 is not among 1-400, but in weeks="test"'):
        bare.reset(options={"episode": 20_001})
    with pytest.raises(ScenarioError, match="unknown episode 401;"):
        bare.reset(options={"episode": 401})
    every = Episodes(scenario)
    assert SchedulingEnv(every).episodes is every
    assert SchedulingEnv(scenario, weeks="test").episodes.numbers == judging


@pytest.mark.parametrize("name", PRICE)
def test_ids_with_a_price_draw_their_weeks_and_decide_by_the_hour(name: str) -> None:
    base = gymnasium.make(name).unwrapped
    assert isinstance(base, SchedulingEnv)
    assert (base.action_space.shape, base.observation_space.shape) == ((2,), (38,))
    assert (base.action, base.episodes.scenario.name) == ("price", "price-weeks")
    assert base.episodes.numbers == tuple(NUMBERS[name.split("-")[1]])
    base.reset(seed=1)
    base.step(np.zeros(2, dtype=np.float32))
    assert base.now == 3600


@pytest.mark.long
def test_windows_of_pick_are_apart_and_choose_one_job_at_a_time() -> None:
    envs = [gymnasium.make(name).unwrapped for name in PICK]
    numbers = [env.episodes.numbers for env in envs]
    assert [len(part) for part in numbers] == [900, 300, 1500]
    assert len({*numbers[0], *numbers[1], *numbers[2]}) == 2700
    first, last = (envs[2].episodes.workload(place) for place in (0, 1499))
    assert first.name == "windows-256 jobs 307201-307456"
    assert last.name == "windows-256 jobs 690945-691200"
    assert (envs[2].action, str(envs[2].settings.backfill)) == ("job", "none")
    assert envs[2].action_space == gymnasium.spaces.Discrete(32)
    assert len(first) == 256 and not first.history.completed.any()


def test_a_picked_job_that_does_not_fit_is_asked_for_again_at_the_next_event() -> None:
    """Nothing is backfilled: whatever is picked starts, or nothing does until something happens."""
    env = gymnasium.make(PICK[2]).unwrapped
    observation, info = env.reset(options={"episode": 1300})
    slots, fits = env.n_slots, 6
    waited = started = 0
    for _ in range(60):
        rows = observation[: slots * 18].reshape(slots, 18)
        shown = np.flatnonzero(info["action_mask"])
        others = shown[rows[shown, fits] == 0]
        picked = int(others[0] if len(others) else shown[0])
        now, before = env.now, (env.schedule().start_time >= 0).sum()
        observation, _, is_over, _, info = env.step(picked)
        if is_over:
            break
        after = (env.schedule().start_time >= 0).sum()
        assert env.now > now if len(others) else after > before  # others could have started
        waited, started = waited + (len(others) > 0), started + (len(others) == 0)
    assert waited > 5 and started > 5
    assert not env.schedule().backfilled.any()


def test_the_first_slot_is_saf_without_backfilling() -> None:
    env = gymnasium.make(PICK[2]).unwrapped
    for episode in (1211, 1400):
        _, is_over = env.reset(options={"episode": episode}), False
        while not is_over:
            _, _, is_over, _, info = env.step(0)
        jobs = env.episodes.workload(env.episodes.position(episode))
        alone = hpcgym.simulate(jobs, "SAF", backfill="none", threshold=200_000)
        assert env.schedule().start_time.tolist() == alone.start_time.tolist()
        easy = hpcgym.simulate(jobs, "SAF", threshold=200_000).metrics()["mean_bsld"]
        assert info["ratio"] == pytest.approx(alone.metrics()["mean_bsld"] / easy)


def test_no_other_id_is_registered() -> None:
    ours = [name for name in gymnasium.registry if name.startswith(("hpcgym/", "HPCBatch"))]
    assert sorted(ours) == sorted(["HPCBatch-v0", *PICK, *PRICE, *NO_PART, *GONE])
    for gone in ("HPCBatch-order-v0", "HPCBatch-weights-flat-v0"):
        with pytest.raises(gymnasium.error.NameNotFound):
            gymnasium.make(gone)


@pytest.mark.long
@pytest.mark.parametrize("name", [PICK[0], PRICE[0]])
def test_checkers_have_nothing_to_say(name: str) -> None:
    env = gymnasium.make(name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped, skip_render_check=True)
    check_with_stable_baselines(env)


@pytest.mark.parametrize("name", [PICK[1], PRICE[2]])
def test_vectors_of_a_problem_play_it_as_single_environments_do(name: str) -> None:
    envs, alone = gymnasium.make_vec(name, num_envs=2), gymnasium.make(name)
    assert isinstance(envs, SchedulingVectorEnv)
    assert envs.single_action_space == alone.action_space
    assert envs.single_observation_space == alone.observation_space
    envs.action_space.seed(0)
    shown, info = envs.reset(seed=[7, 3])
    mine, own = alone.reset(seed=3)
    for _ in range(20):
        assert shown[1].tobytes() == mine.tobytes()
        actions = envs.action_space.sample()
        shown, reward, *_ = envs.step(actions)
        mine, paid, *_ = alone.step(actions[1])
        assert reward[1] == paid
    assert info["episode_number"][1] == own["episode_number"]


@pytest.mark.parametrize(
    "fixed",
    [
        *({"scenario": "tiny"}, {"action": "job"}, {"decide": 60}, {"reward": "bsld"}),
        *({"baseline": "SAF"}, {"n_slots": 4}, {"observation": "dict"}, {"backfill": "easy"}),
        *({"weeks": "test"}, {"invalid": "error"}, {"expectations": "records"}),
    ],
    ids=lambda fixed: next(iter(fixed)),
)
@pytest.mark.parametrize("make", [gymnasium.make, gymnasium.make_vec])
def test_what_a_problem_fixes_is_refused(make: Any, fixed: dict[str, Any]) -> None:
    words = rf"Price-train-v0 fixes {next(iter(fixed))}, .* 'HPCBatch-v0' takes every"
    with pytest.raises(ScenarioError, match=words):
        make("hpcgym/Price-train-v0", **fixed)


@pytest.mark.parametrize("name", ["hpcgym/Price-train-v0", "HPCBatch-v0"])
def test_a_keyword_that_nobody_has_is_refused_as_python_does(name: str) -> None:
    """TorchRL tries `frameskip`, and drops it where it reads these words."""
    with pytest.raises(TypeError, match="unexpected keyword argument 'frameskip'"):
        gymnasium.make(name, frameskip=1)
    with pytest.raises(TypeError, match="did you mean 'n_slots'"):
        gymnasium.make(name, n_slot=3)


def test_what_is_for_the_eye_and_the_machine_is_free() -> None:
    name = "hpcgym/Price-train-v0"
    env = gymnasium.make(name, render_mode="ansi", max_episode_steps=2)
    env.reset(seed=0)
    assert [env.step(np.zeros(2, np.float32))[3] for _ in range(2)] == [False, True]
    assert "price-weeks" in env.render()
    envs = gymnasium.make_vec(
        name, num_envs=2, threads=1, autoreset_mode="SAME_STEP", copy=False, max_episode_steps=2
    )
    envs.reset(seed=0)
    cut = [envs.step(np.zeros((2, 2), np.float32))[3].tolist() for _ in range(2)]
    assert cut == [[False, False], [True, True]]


@pytest.mark.parametrize("name", ["hpcgym/Price-validation-v0", "HPCBatch-v0"])
def test_specs_go_through_json(name: str) -> None:
    keywords: dict[str, Any] = {}
    if name == "HPCBatch-v0":
        keywords = {"scenario": "synthetic-busy-weeks", "weeks": "short", "observation": "flat"}
    made = gymnasium.make(name, max_episode_steps=4, **keywords)
    made.action_space.seed(0)
    again = EnvSpec.from_json(made.spec.to_json())
    others = [gymnasium.make(again), copy.deepcopy(made), pickle.loads(pickle.dumps(made))]
    many = gymnasium.make_vec(again, num_envs=2)
    shown = [env.reset(seed=6)[0] for env in (made, *others)]
    seen = many.reset(seed=[1, 6])[0]
    for step in range(4):
        assert all(one.tobytes() == shown[0].tobytes() for one in (*shown, seen[1]))
        action = made.action_space.sample()
        steps = [env.step(action) for env in (made, *others)]
        shown = [one[0] for one in steps]
        assert [one[1:4] for one in steps] == [steps[0][1:4]] * 4
        seen, rewards, _, cut, _ = many.step(np.stack([action] * 2))
        assert rewards[1] == steps[0][1]
        assert (cut[1], steps[0][3]) == (step == 3, step == 3)
