"""The vector environment beside Gymnasium's own of the scalar one: equal to the bit."""

from __future__ import annotations

import copy
import pickle
import tracemalloc
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, VectorEnv

from env_cases import (
    ACCRUING,
    ACTIONS,
    BUSY,
    REWARDS,
    assert_same,
    assert_same_schedules,
    busy_workload,
    episodes_of,
    pair,
    plain_env,
    plain_vector,
    play_in_lockstep,
)
from hpcgym.base.errors import ActionError, HpcgymError
from hpcgym.core.workload import Workload
from hpcgym.env.observation import CLUSTER_FIELDS, FIELDS
from hpcgym.env.vector import SchedulingVectorEnv

MODES = list(AutoresetMode)
MODE_IDS = [mode.name for mode in MODES]

LASTING = ("index", "weights", "policy")
KINDS = [
    {"action": action, "decide": decide, "reward": reward}
    for action in ("index", *ACTIONS)
    for decide in ("contested", "event", 300)
    for reward in REWARDS
    if decide != 300 or action in LASTING
]
"""Every kind of action, decision and reward."""

EVERYDAY = [
    kind
    for place, kind in enumerate(KINDS)
    if kind["reward"] == "ratio" or place // len(REWARDS) % len(REWARDS) == place % len(REWARDS)
]
"""Each action and decision with one reward at least, each reward with one of these at least."""


def kind_id(kind: dict[str, Any]) -> str:
    """Name a kind as test reports show it."""
    return "-".join(str(value) for value in kind.values())


def longest(env: VectorEnv) -> int:
    """Return enough steps for every environment to play an episode to its end, and go on."""
    env.action_space.seed(5)
    env.reset(seed=5)
    for step in range(10_000):
        if env.step(env.action_space.sample())[2].any():
            return 2 * step + 10
    raise AssertionError("no episode ended")


@pytest.mark.long
@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=() if kind in EVERYDAY else pytest.mark.slow) for kind in KINDS],
    ids=kind_id,
)
def test_every_kind_equals_the_scalar_environment_to_the_bit(kind: dict[str, Any]) -> None:
    """For 3 and 64 environments, and for 7 on two threads; the next test has other numbers.

    Of 64 the scalar ones play the first steps only, and two threads play whole episodes of one
    kind: where other processes keep the processors busy, threads wait for each other at every step.
    """
    steps = longest(pair(7, **kind)[1])
    for num_envs in (3, 64):
        theirs, ours = pair(num_envs, **kind)
        enough = 12 if num_envs == 64 else steps
        assert play_in_lockstep(theirs, ours, enough) >= num_envs * (enough == steps)
    one, two = (pair(7, threads=threads, **kind)[1] for threads in (1, 2))
    enough = steps if kind == EVERYDAY[0] else 30
    assert play_in_lockstep(one, two, enough) >= 7 * (enough == steps)


MANY = AutoresetMode.SAME_STEP, 2
"""How 64 environments are reset and how many threads step them every day; all under `slow`."""


@pytest.mark.long
@pytest.mark.parametrize(
    ("num_envs", "mode", "threads"),
    [
        pytest.param(
            *(num_envs, mode, threads),
            marks=() if num_envs < 64 or (mode, threads) == MANY else pytest.mark.slow,
            id=f"{num_envs}-{mode.name}-{threads}",
        )
        for num_envs in (1, 2, 7, 64)
        for mode in MODES
        for threads in ((1, 2) if num_envs == 64 else (1,))
    ],
)
def test_any_number_of_environments_equals_as_many_scalar_ones(
    num_envs: int, mode: AutoresetMode, threads: int
) -> None:
    """Over whole episodes of a week each, drawn anew by each environment."""
    theirs, ours = pair(
        num_envs, "synthetic-256-weeks", mode, threads, n_slots=16, baseline="SAF", decide=14_400
    )
    assert play_in_lockstep(theirs, ours, 130) >= num_envs


@pytest.mark.parametrize("mode", MODES, ids=MODE_IDS)
@pytest.mark.parametrize("max_episode_steps", [1, 9, 40])
def test_time_limit_cuts_short_as_around_the_scalar_environment(
    mode: AutoresetMode, max_episode_steps: int
) -> None:
    for reward, action in zip(ACCRUING, ACTIONS, strict=True):
        theirs, ours = pair(
            3, mode=mode, reward=reward, action=action, max_episode_steps=max_episode_steps
        )
        assert play_in_lockstep(theirs, ours, 3 * max_episode_steps) >= 3


@pytest.mark.parametrize("mode", MODES, ids=MODE_IDS)
@pytest.mark.parametrize(
    ("keywords", "steps"),
    [
        ({"observation": "flat", "action": "order", "max_episode_steps": 9}, 30),
        ({"action": "job", "invalid": "first"}, 300),
        ({"action": "job", "invalid": "penalty"}, 300),
    ],
    ids=str,
)
def test_flat_observations_and_invalid_actions_are_those_of_scalar_environments(
    mode: AutoresetMode, keywords: dict[str, Any], steps: int
) -> None:
    theirs, ours = pair(3, mode=mode, n_slots=8, baseline="SAF", **keywords)
    assert ours.autoreset_mode is theirs.autoreset_mode is mode
    assert play_in_lockstep(theirs, ours, steps) >= 6


@pytest.mark.parametrize("is_mixed", [False, True], ids=["one scenario", "mixed"])
def test_scenarios_of_other_logs_and_machines_share_a_vector(is_mixed: bool) -> None:
    """Each environment is the scalar one of its scenario, whatever stands beside it."""
    scenarios = ["tiny", BUSY, "synthetic-256-weeks"] if is_mixed else [BUSY]
    ours = plain_vector(scenarios, num_envs=7, n_slots=8, copy=False, decide="event")
    alone = [plain_env(scenarios[i % len(scenarios)], n_slots=8, decide="event") for i in range(7)]
    ours.action_space.seed(1)
    shown, info = ours.reset(seed=2)
    resting = np.zeros(7, dtype=bool)
    for env, one in enumerate(alone):
        mine, own = one.reset(seed=2 + env)
        assert_same({key: shown[key][env] for key in shown}, mine)
        assert info["episode_number"][env] == own["episode_number"]
    for _ in range(60):
        actions = ours.action_space.sample()
        shown, reward, terminated, _, info = ours.step(actions)
        for env, one in enumerate(alone):
            if resting[env]:
                mine, own = one.reset()
            else:
                mine, paid, over, _, own = one.step(actions[env])
                assert (reward[env], terminated[env]) == (paid, over)
            told = {key for key in own if info[f"_{key}"][env]}
            assert {key: info[key][env] for key in told} == own
            assert (ours.labels[env], ours.envs[env].now) == (one.label, one.now)
            assert_same({key: shown[key][env] for key in shown}, mine)
        resting = terminated.copy()


def test_a_scenario_named_twice_has_twice_the_share() -> None:
    envs = plain_vector(["tiny", "tiny", "synthetic-256-weeks"], num_envs=6)
    envs.reset(seed=1)
    machines = [workload.machine_processors for workload in envs.call("workload")]
    assert machines == [4, 4, 256, 4, 4, 256]


# --- Episodes -------------------------------------------------------------------------------------


def test_seeds_alone_decide_what_comes() -> None:
    labels = []
    for seed in (4, 4, [4, 5, 6], [4, None, 4]):
        envs = plain_vector("synthetic-256-weeks", num_envs=3)
        envs.reset(seed=1)
        labels.append(envs.reset(seed=seed)[1]["episode_number"].tolist())
    assert labels[0] == labels[1] == labels[2]
    assert labels[3][0] == labels[3][2] == labels[0][0]
    assert envs.np_random_seed == (4, 2, 4)
    unseeded = plain_vector("tiny", num_envs=2)
    drawn = unseeded.np_random_seed
    assert [type(seed) for seed in drawn] == [int, int]
    assert unseeded.np_random[0].integers(9) in range(9)
    unseeded.reset()
    assert unseeded.np_random_seed == drawn == unseeded.call("np_random_seed")


def test_options_pin_episodes_for_one_or_for_all() -> None:
    envs = plain_vector("synthetic-256-weeks", num_envs=3)
    _, info = envs.reset(options={"episode": 7})
    assert (info["episode_number"].tolist(), envs.labels.tolist()) == ([7] * 3, ["week 7"] * 3)
    _, info = envs.reset(options={"episode": [1, "week 2", 3]})
    assert info["episode_number"].tolist() == [1, 2, 3]
    assert envs.labels.tolist() == ["week 1", "week 2", "week 3"]
    jobs = envs.envs[0].episodes.workload(4)
    _, info = envs.reset(options={"workload": jobs})
    assert envs.call("workload") == (jobs, jobs, jobs)
    assert (info["episode_number"].tolist(), envs.labels.tolist()) == ([-1] * 3, [jobs.name] * 3)


def test_common_random_numbers_give_all_the_same_episodes_from_then_on() -> None:
    envs = plain_vector(num_envs=5, max_episode_steps=2)
    envs.reset(seed=3, options={"common_random_numbers": True})
    seen = [envs.labels[0]]
    assert set(envs.labels) == {seen[0]}
    for _ in range(12):
        envs.step(np.zeros((5, 6), dtype=np.float32))
        assert len(set(envs.labels)) == 1
        seen.append(envs.labels[0])
    assert len(set(seen)) > 2
    theirs = plain_env()
    theirs.reset(seed=3)
    assert theirs.label == seen[0]
    assert envs.np_random_seed == (3,) * 5
    mixed = plain_vector(["tiny", BUSY], num_envs=2)
    with pytest.raises(HpcgymError, match="of one scenario"):
        mixed.reset(options={"common_random_numbers": True})


def test_reset_mask_resets_those_alone() -> None:
    envs = plain_vector("synthetic-256-weeks", num_envs=3, autoreset_mode="DISABLED")
    envs.reset(options={"episode": 1})
    for _ in range(4):
        envs.step(np.zeros((3, 6), dtype=np.float32))
    before = envs.call("now")
    options = {"reset_mask": np.array([False, True, False]), "episode": 2}
    _, info = envs.reset(options=options)
    assert "reset_mask" in options
    assert info["_episode_number"].tolist() == [False, True, False]
    assert info["episode_number"].tolist() == [0, 2, 0]
    assert envs.call("label") == ("week 1", "week 2", "week 1")
    assert (envs.envs[0].now, envs.envs[2].now) == (before[0], before[2])


@pytest.mark.parametrize("mode", MODES, ids=MODE_IDS)
def test_masked_resets_in_the_middle_are_those_of_gymnasium(mode: AutoresetMode) -> None:
    theirs, ours = pair(3, "synthetic-256-weeks", mode, n_slots=8, decide=14_400)
    theirs.action_space.seed(0)
    generator = np.random.default_rng(0)
    assert_same(theirs.reset(seed=0), ours.reset(seed=0))
    for step in range(120):
        actions = theirs.action_space.sample()
        gave, mine = theirs.step(actions), ours.step(actions)
        assert_same(gave, mine)
        mask = generator.random(3) < 0.1
        if mode is AutoresetMode.DISABLED:
            mask |= gave[2]
        if mask.any():
            seed = step if step % 2 else None
            one, other = ({"seed": seed, "options": {"reset_mask": mask.copy()}} for _ in range(2))
            assert_same(theirs.reset(**one), ours.reset(**other))


def test_steady_state_allocates_nothing() -> None:
    """Once each week has been seen, steps and resets keep to the arrays that there are."""
    envs = plain_vector("synthetic-256-weeks", num_envs=8, max_episode_steps=2, copy=False)
    actions = np.zeros((8, 6), dtype=np.float32)
    for _ in range(2):  # in the second round the states have the size that the largest week needs
        for week in envs.envs[0].episodes.numbers:
            envs.reset(seed=0, options={"episode": week})
    state = envs.buffers.state
    for _ in range(20):
        envs.step(actions)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(400):
        envs.step(actions)
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 20_000  # a workload of one week alone takes more
    assert envs.buffers.state is state


def test_longer_episodes_move_all_environments_to_a_larger_state() -> None:
    """One of them grows out of the state while the others are in the middle of theirs."""
    short, long = busy_workload(1, n=40), busy_workload(2, n=3_000)
    scenario = episodes_of(short)
    envs = plain_vector(scenario, num_envs=3, decide="event", autoreset_mode="DISABLED")
    alone = plain_env(scenario, decide="event")
    shown, _ = envs.reset()
    mine, _ = alone.reset()
    actions = np.random.default_rng(0).uniform(-1, 1, (30, 6)).astype(np.float32)
    for step, action in enumerate(actions):
        if step == 10:
            mask = np.array([False, True, False])
            shown, _ = envs.reset(options={"reset_mask": mask, "workload": long})
        assert_same({key: shown[key][2] for key in shown}, mine)
        shown, reward, *_ = envs.step(np.stack([action] * 3))
        mine, paid, *_ = alone.step(action)
        assert reward[2] == paid
    assert len(envs.envs[1].workload) == 3_000
    rest = np.stack([actions[0]] * 3)
    while not envs.step(rest)[2].any():
        alone.step(actions[0])
    alone.step(actions[0])
    one, other = envs.envs[2].schedule(), alone.schedule()
    assert one.start_time.tobytes() == other.start_time.tobytes()


# --- What is handed out ---------------------------------------------------------------------------


@pytest.mark.parametrize("is_copy", [True, False])
def test_buffers_are_handed_out_only_if_asked_for(is_copy: bool) -> None:
    envs = plain_vector("tiny", num_envs=2, copy=is_copy)
    first, _ = envs.reset()
    before = {key: array.copy() for key, array in first.items()}
    second, reward, *_ = envs.step(np.ones((2, 6), dtype=np.float32))
    assert (first["jobs"] is second["jobs"]) is not is_copy
    assert all(np.array_equal(first[key], before[key]) for key in first) is is_copy
    paid = reward.copy()
    envs.step(np.ones((2, 6), dtype=np.float32))
    assert np.array_equal(reward, paid)


@pytest.mark.parametrize("mode", MODES, ids=MODE_IDS)
def test_what_was_handed_out_stays_as_it_was(mode: AutoresetMode) -> None:
    envs = plain_vector(BUSY, num_envs=3, autoreset_mode=mode, n_slots=8)
    kept = [envs.reset(seed=0)]
    copies = [copy.deepcopy(kept[0])]
    for _ in range(120):
        kept.append(envs.step(envs.action_space.sample()))
        copies.append(copy.deepcopy(kept[-1]))
        if mode is AutoresetMode.DISABLED and kept[-1][2].any():
            kept.append(envs.reset(options={"reset_mask": kept[-1][2]}))
            copies.append(copy.deepcopy(kept[-1]))
    for one, other in zip(kept, copies, strict=True):
        assert_same(one, other)


def test_infos_hold_what_some_environment_tells_and_say_which() -> None:
    """The limit cuts each episode at its seventh step, and the eighth begins the next."""
    envs = plain_vector(BUSY, num_envs=3, baseline="SAF", max_episode_steps=7)
    first = envs.reset(seed=0)[1]
    infos = [envs.step(np.zeros((3, 6)))[-1] for _ in range(20)]
    terms = {"agent_term", "baseline_term"}
    terms |= {f"_{key}" for key in terms}
    number = {"episode_number", "_episode_number"}
    assert first.keys() == terms | number
    for step, info in enumerate(infos, start=1):
        if step % 8 == 0:
            assert info.keys() == terms | number
        elif step % 8 == 7:
            assert info.keys() > terms | number | {"mean_bsld", "ratio", "complete", "_complete"}
            assert info["complete"].tolist() == [0.0] * 3
        else:
            assert info.keys() == terms
        assert all(info[key].all() for key in info if key.startswith("_"))
    apart = plain_vector(["tiny", BUSY], num_envs=2)
    apart.reset(seed=0)
    while not (ended := apart.step(np.zeros((2, 6))))[2].any():
        assert ended[-1] == {}
    info = ended[-1]
    assert ended[2].tolist() == [True, False] == info["_ratio"].tolist()
    assert info["ratio"][0] > 0 == info["ratio"][1]
    assert (info["episode_number"].tolist(), info["n_jobs"].tolist()) == ([1, 0], [8.0, 0.0])


def test_final_observations_outlive_the_buffers() -> None:
    envs = plain_vector(BUSY, num_envs=2, copy=False, autoreset_mode="SAME_STEP", n_slots=8)
    envs.reset(seed=0)
    actions = np.zeros((2, 6), dtype=np.float32)
    while "final_obs" not in (info := envs.step(actions)[-1]):
        pass
    final = copy.deepcopy(info["final_obs"])
    for _ in range(5):
        envs.step(actions)
    assert_same(final, info["final_obs"])


def test_buffers_cannot_be_written_to() -> None:
    shown, _ = plain_vector("tiny", num_envs=2, copy=False).reset()
    with pytest.raises(ValueError, match="read-only"):
        shown["jobs"][0, 0] = 1.0


@pytest.mark.parametrize("observation", ["dict", "flat"])
def test_observations_and_actions_lie_in_their_spaces(observation: Any) -> None:
    choices = {"weights": 6, "policy": 3, "order": 8, "job": 8}
    for action in ACTIONS:
        envs = plain_vector(
            BUSY,
            num_envs=3,
            action=action,
            n_slots=8,
            observation=observation,
            policies=["SAF", "SPF", "LCFS"] if action == "policy" else None,
        )
        shown, _ = envs.reset(seed=0)
        for _ in range(40):
            assert envs.observation_space.contains(shown)
            actions = envs.action_space.sample()
            assert envs.action_space.contains(actions)
            shown, *_ = envs.step(actions)
            masks = envs.action_masks()
            assert masks.shape == (3, choices[action])
            assert masks.any(axis=1).all()
            assert masks.all() or action in ("job", "order")
            assert np.array_equal(masks, np.stack(envs.call("action_masks")))


def test_sub_environments_show_one_environment_each() -> None:
    envs = plain_vector("tiny", num_envs=2, render_mode="ansi")
    envs.reset(seed=0)
    envs.step(np.zeros((2, 6), dtype=np.float32))
    one = envs.envs[1]
    assert (one.now, one.label, len(one.workload)) == (envs.call("now")[1], "whole", 8)
    assert one.metrics()["n_jobs"] <= 8
    assert "tiny, whole" in one.render()
    assert len(envs.render()) == 2
    assert envs.get_attr("n_slots") == (32, 32)
    with pytest.raises(AttributeError, match="no_such_thing"):
        envs.get_attr("no_such_thing")


def test_vectors_without_a_render_mode_warn_as_gymnasiums_do() -> None:
    envs = plain_vector("tiny", num_envs=2)
    envs.reset(seed=0)
    with pytest.warns(UserWarning, match="no render_mode was given"):
        assert envs.call("render") == (None, None)


# --- Gymnasium's wrappers and forms ---------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES[:2], ids=MODE_IDS[:2])
def test_episode_statistics_of_gymnasium_are_those_of_the_episodes(mode: AutoresetMode) -> None:
    from gymnasium.wrappers.vector import RecordEpisodeStatistics

    envs = RecordEpisodeStatistics(plain_vector(BUSY, num_envs=3, autoreset_mode=mode))
    envs.reset(seed=0)
    seen = 0
    for _ in range(150):
        *_, terminated, _, info = envs.step(np.zeros((3, 6), dtype=np.float32))
        if terminated.any():
            seen += 1
            final = info.get("final_info", info)
            bsld = final["mean_bsld"][terminated]
            assert info["episode"]["r"][terminated] == pytest.approx(-bsld)
    assert seen > 1


def test_wrappers_of_gymnasium_take_the_vector() -> None:
    from gymnasium.wrappers import vector as wrappers

    envs: Any = plain_vector(BUSY, num_envs=3, max_episode_steps=5)
    envs = wrappers.FlattenObservation(wrappers.NormalizeReward(wrappers.ClipReward(envs, -5, 0)))
    envs = wrappers.DictInfoToList(wrappers.NormalizeObservation(envs))
    shown, infos = envs.reset(seed=0)
    assert shown.shape == (3, 32 * (len(FIELDS) + 1) + len(CLUSTER_FIELDS))
    assert [info["episode_number"] for info in infos] == [1, 1, 1]
    for _ in range(7):
        shown, reward, *_, infos = envs.step(envs.action_space.sample())
    assert np.isfinite(shown).all()
    assert np.isfinite(reward).all()


def test_pickled_vector_goes_on_as_if_nothing_had_been() -> None:
    envs = plain_vector(["tiny", BUSY], num_envs=3, baseline="SAF")
    envs.action_space.seed(0)
    envs.reset(seed=0)
    for _ in range(7):
        envs.step(envs.action_space.sample())
    copied = pickle.loads(pickle.dumps(envs))
    for _ in range(60):
        actions = envs.action_space.sample()
        assert_same(envs.step(actions), copied.step(actions))


# --- Errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"num_envs": 0}, r"num_envs must be a whole number from 1 to .*, got 0"),
        ({"num_envs": True}, "num_envs must be"),
        ({"max_episode_steps": 0}, "max_episode_steps must be"),
        ({"threads": 0}, "threads must be a whole number >= 1, at most 4096, or None"),
        ({"autoreset_mode": "NEXT"}, "NEXT_STEP"),
        ({"render_mode": "human"}, "render_mode"),
        ({"action": "weight"}, "weights"),
        ({"actions": "weights"}, "action"),
        ({"horizon": 9}, "horizon"),
        ({"scale": "raw"}, "scale"),
        ({"scenario": []}, "0 scenarios cannot be dealt out to 2"),
        ({"scenario": ["tiny"] * 3}, "3 scenarios cannot be dealt out to 2"),
    ],
)
def test_keywords_that_cannot_be_met_are_refused(keywords: dict[str, Any], words: str) -> None:
    with pytest.raises(HpcgymError, match=words):
        plain_vector(**{"scenario": "tiny", "num_envs": 2, **keywords})


def test_a_vector_that_was_refused_can_be_closed() -> None:
    """Gymnasium 1.2 does so when it is garbage, and prints any error as a traceback."""
    envs = SchedulingVectorEnv.__new__(SchedulingVectorEnv)
    with pytest.raises(HpcgymError, match="num_envs"):
        envs.__init__(num_envs=0)
    envs.close()


@pytest.mark.parametrize(
    ("reset", "words"),
    [
        ({"seed": [1, 2]}, "seed must be a whole number or one for each of 3 environments"),
        ({"seed": "x"}, "seed must be"),
        ({"options": {"reset_mask": [True, False, False]}}, "array of bools of shape"),
        ({"options": {"reset_mask": np.zeros(3, dtype=bool)}}, "resets no environment"),
        ({"options": {"episode": [1, 2]}}, "one for each of 3 environments, got 2"),
        ({"options": {"episode": [1, 2, "weak 3"]}}, "week 3"),
        ({"options": {"episodes": 1}}, "episode"),
        ({"options": {"common_random_numbers": 1}}, "must be a bool"),
        ({"seed": 9, "options": {"episode": "weak 3"}}, "week 3"),
        ({"seed": [5, 6, -1]}, "seed must be a whole number >= 0, got -1"),
        ({"seed": [1.5, 2, 3]}, "seed must be"),
        ({"seed": [True, 2, 3]}, "seed must be"),
        ({"seed": "abc"}, "seed must be"),
        ({"options": {"episode": "nope", "common_random_numbers": True}}, "episode"),
        (
            {
                "options": {
                    "common_random_numbers": True,
                    "reset_mask": np.array([False, True, True]),
                }
            },
            "no reset_mask goes with it",
        ),
    ],
)
def test_resets_that_cannot_be_met_change_nothing(reset: dict[str, Any], words: str) -> None:
    envs, twin = (plain_vector("synthetic-256-weeks", num_envs=3) for _ in range(2))
    for env in (envs, twin):
        env.reset(seed=0)
    with pytest.raises(HpcgymError, match=words):
        envs.reset(**reset)
    assert envs.call("label") == twin.call("label")
    assert envs.np_random_seed == twin.np_random_seed
    actions = np.zeros((3, 6), dtype=np.float32)
    assert_same(envs.step(actions), twin.step(actions))
    assert_same(envs.reset(), twin.reset())


BAD_ROW = np.array([[0.0] * 6, [0.0] * 6, [0.0] * 5 + [np.nan]], dtype=np.float32)


@pytest.mark.parametrize(
    ("action", "actions", "env", "words"),
    [
        ("weights", BAD_ROW, 2, r"environment 2: .* no NaN"),
        ("weights", BAD_ROW[:2], None, r"shape \(3, 6\), got \(2, 6\)"),
        ("weights", np.array([[0.0] * 6, [1e300] * 6, [0.0] * 6]), 1, "environment 1"),
        ("weights", [[0.0] * 6, [0.0] * 5, [0.0] * 6], None, "numbers of shape"),
        ("weights", None, None, "numbers of shape"),
        ("job", np.array([0, 32, 0]), 1, "environment 1: .* 0 to 31, got 32"),
        ("job", np.array([0, 0, -1]), 2, "environment 2"),
        ("job", np.array([0.0, 0.0, 0.0]), None, "whole numbers"),
        ("job", np.array([True, False, True]), None, "whole numbers"),
    ],
)
def test_refused_actions_do_nothing(action: str, actions: Any, env: int | None, words: str) -> None:
    """Also where other environments are about to be reset, whose actions nobody looks at."""
    scenarios = ["tiny", BUSY, BUSY]
    envs, twin = (plain_vector(scenarios, num_envs=3, action=action) for _ in range(2))
    assert_same(envs.reset(seed=0), twin.reset(seed=0))
    over, refusals_at_ends, ended = np.zeros(3, dtype=bool), 0, 0
    while ended < 12:
        if env is None or not over[env]:
            with pytest.raises(ActionError, match=words):
                envs.step(actions)
            refusals_at_ends += int(over.any())
        good = twin.action_space.sample()
        mine, yours = envs.step(good), twin.step(good)
        assert_same(mine, yours)
        over = mine[2]
        ended += int(over.sum())
    assert refusals_at_ends > 0
    assert_same(envs.reset(), twin.reset())
    assert_same(envs.step(good), twin.step(good))


def test_steps_without_an_episode_are_refused() -> None:
    actions = np.zeros((2, 6), dtype=np.float32)
    envs = plain_vector("tiny", num_envs=2, autoreset_mode=AutoresetMode.DISABLED)
    with pytest.raises(ActionError, match="reset"):
        envs.step(actions)
    with pytest.raises(ActionError, match="reset"):
        envs.envs[0].schedule()
    with pytest.raises(HpcgymError, match="first reset must be of all"):
        envs.reset(options={"reset_mask": np.array([True, False])})
    envs.reset(seed=0)
    while not envs.step(actions)[2].any():
        pass
    with pytest.raises(ActionError, match=r"environments \[0, 1\] are over .*reset_mask"):
        envs.step(actions)


# --- What fails in the middle ---------------------------------------------------------------------


def test_baseline_that_fails_leaves_the_episodes_going_on(monkeypatch: pytest.MonkeyPatch) -> None:
    envs, twin = (plain_vector(BUSY, num_envs=2, baseline="SAF", n_slots=8) for _ in range(2))
    actions = np.zeros((2, 6), dtype=np.float32)
    for env in (envs, twin):
        env.reset(seed=0)
        env.step(actions)

    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("a policy of the user's")

    with monkeypatch.context() as patched:
        patched.setattr("hpcgym.env.episode.Simulator", fail)
        with pytest.raises(RuntimeError, match="of the user's"):
            envs.reset(options={"workload": busy_workload(1, n=6)})
    for _ in range(100):
        assert_same(envs.step(actions), twin.step(actions))


def test_growth_that_fails_can_be_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    envs = plain_vector(episodes_of(busy_workload(1, n=40)), num_envs=2, decide="event")
    envs.reset()
    actions = np.zeros((2, 6), dtype=np.float32)
    long = {"workload": busy_workload(2, n=3_000)}

    def fail(*_: Any, **__: Any) -> None:
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr("hpcgym.env.buffers.allocate", fail)
        with pytest.raises(MemoryError):
            envs.reset(options=long)
    with pytest.raises(ActionError, match="call reset"):
        envs.step(actions)
    envs.reset(options=long)
    assert envs.buffers.state.start_time.shape[1] >= 3_000
    alone = plain_env(envs.envs[0].episodes, decide="event")
    alone.reset(options=long)
    for _ in range(300):
        assert envs.step(actions)[1][1] == alone.step(actions[0])[1]


@pytest.mark.parametrize("mode", MODES[:2], ids=MODE_IDS[:2])
def test_draw_that_fails_can_be_tried_again(
    mode: AutoresetMode, monkeypatch: pytest.MonkeyPatch
) -> None:
    envs = plain_vector(BUSY, num_envs=2, autoreset_mode=mode, max_episode_steps=3)
    envs.reset(seed=0)
    actions = np.zeros((2, 6), dtype=np.float32)

    def fail(*_: Any) -> None:
        raise RuntimeError("no episode")

    for _ in range(2 if mode is AutoresetMode.SAME_STEP else 3):
        envs.step(actions)
    with monkeypatch.context() as patched:
        patched.setattr(envs.configs[0], "draw", fail)
        with pytest.raises(RuntimeError, match="no episode"):
            envs.step(actions)
    _, reward, terminated, truncated, info = envs.step(actions)  # this one resets
    assert reward.tolist() == [0.0, 0.0]
    assert not (terminated | truncated).any()
    assert info.keys() == {"episode_number", "_episode_number"}
    for step in range(3):
        assert envs.step(actions)[3].all() == (step == 2)


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_environments_that_need_more_room_get_it_in_the_middle(
    mode: AutoresetMode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where 3 jobs fill a state, results are those of a state with room for all."""
    wide = plain_vector(BUSY, num_envs=4, autoreset_mode=mode)
    monkeypatch.setattr("hpcgym.env.buffers.PRESENT_JOBS", 3)
    narrow = plain_vector(BUSY, num_envs=4, autoreset_mode=mode)
    assert_same(wide.reset(seed=2), narrow.reset(seed=2))
    generator = np.random.default_rng(0)
    for step in range(120):
        if step == 60:
            narrow = pickle.loads(pickle.dumps(narrow))
        actions = generator.uniform(-1, 1, (4, 6)).astype(np.float32)
        gave = wide.step(actions)
        assert_same(gave, narrow.step(actions))
        if mode is AutoresetMode.DISABLED and gave[2].any():
            again = {"reset_mask": gave[2]}
            assert_same(wide.reset(options=dict(again)), narrow.reset(options=dict(again)))
    assert narrow.buffers.place_of(0)[0] is not narrow.buffers.state
    assert wide.buffers.place_of(0)[0] is wide.buffers.state
    assert_same_schedules(wide, narrow)


@pytest.mark.parametrize("num_envs", [1, 16])
def test_environments_with_trials_get_more_room_again_and_again(
    monkeypatch: pytest.MonkeyPatch, num_envs: int
) -> None:
    """Rows of an environment's own are as those of many: with or without a log of attempts."""
    given: dict[str, Any] = {
        "num_envs": num_envs,
        "action": "trials",
        "backfill": "cost-benefit:cap=0.97+trial:young=1800",
    }
    wide = plain_vector("synthetic-busy-weeks", **given)
    monkeypatch.setattr("hpcgym.env.buffers.PRESENT_JOBS", 3)
    narrow = plain_vector("synthetic-busy-weeks", **given)
    assert_same(wide.reset(seed=2), narrow.reset(seed=2))
    zeros = np.zeros((num_envs, 8), dtype=np.float32)
    for _ in range(300):
        assert_same(wide.step(zeros), narrow.step(zeros))
    assert narrow.buffers.place_of(0)[0] is not narrow.buffers.state


def test_wider_room_goes_back_with_the_episode_that_needed_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The episode is remembered: played again, it begins with that room and is never full."""
    monkeypatch.setattr("hpcgym.env.buffers.PRESENT_JOBS", 3)
    envs = plain_vector(BUSY, num_envs=2, autoreset_mode="Disabled")
    buffers, actions = envs.buffers, np.zeros((2, 6), dtype=np.float32)
    envs.reset(seed=0, options={"episode": 1})
    n_steps = 1
    while not envs.step(actions)[2].all():
        n_steps += 1
    wide = {id(buffers.place_of(env)[0]) for env in range(2)}
    jobs = Workload.from_arrays(
        [0, 0],
        [10, 10],
        [1, 1],
        [10, 10],
        machine_processors=envs.envs[0].workload.machine_processors,
    )
    envs.reset(options={"workload": jobs})
    assert all(buffers.place_of(env) == (buffers.state, env) for env in range(2))
    with monkeypatch.context() as patched:
        patched.setattr(buffers, "_widen", None)
        envs.reset(options={"episode": 1})
        for _ in range(n_steps):
            envs.step(actions)
    assert {id(buffers.place_of(env)[0]) for env in range(2)} == wide != {id(buffers.state)}


@pytest.mark.parametrize("observation", ["dict", "flat"])
def test_observations_that_are_let_go_lend_their_memory_to_later_ones(observation: Any) -> None:
    """What a caller wrote into them is gone, and what a caller still has a part of is not used."""
    envs = plain_vector("tiny", num_envs=2, observation=observation)
    twin = plain_vector("tiny", num_envs=2, observation=observation)
    actions = np.zeros((2, 6), dtype=np.float32)
    envs.reset(seed=0), twin.reset(seed=0)
    kept, places = [], set()
    for step in range(12):
        shown, right = envs.step(actions)[0], twin.step(actions)[0]
        assert_same(shown, right)
        jobs = shown if observation == "flat" else shown["jobs"]
        places.add(jobs.__array_interface__["data"][0])
        jobs[:] = 7.0
        if step == 5:
            kept.append(jobs[1:, ::2])
    assert len(places) <= 3
    assert (kept[0] == 7.0).all()
