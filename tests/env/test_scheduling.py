"""Episodes of the environment: whose schedule a constant choice makes, replays, copies, errors."""

import copy
import inspect
import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor
from dataclasses import fields, replace
from typing import Any

import gymnasium
import numpy as np
import pytest
from hypothesis import given

import hpcgym
import reference
from env_cases import (
    ACTIONS,
    Case,
    busy_workload,
    cases,
    env_of,
    episodes_of,
    plain_env,
    play,
    random_action,
    replay,
    rules_for,
)
from hpcgym.base.errors import ActionError, HpcgymError, PolicyError, ScenarioError
from hpcgym.env.config import EnvConfig, Keywords
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.env.scheduling import SchedulingEnv

FACE_ONLY = ("scenario", "render_mode")
EPOCHS = ("contested", "event", 3_600)
BUSY = busy_workload()
THRESHOLD_S = 20_000


def assert_made_by(env: SchedulingEnv, policy: Any, **settings: Any) -> None:
    """Compare the schedule made with that of `simulate`, to the second."""
    made = env.schedule()
    expected = hpcgym.simulate(BUSY, policy, **settings)
    assert np.array_equal(made.start_time, expected.start_time)
    assert np.array_equal(made.backfilled, expected.backfilled)
    assert np.array_equal(made.thresholded, expected.thresholded)


# --- A constant choice makes the schedule of simulate ---------------------------------------------


@pytest.mark.parametrize("decide", EPOCHS)
@pytest.mark.parametrize("backfill_order", [None, "SPF"])
def test_constant_policy_makes_the_schedule_of_simulate(
    decide: str | int, backfill_order: str | None
) -> None:
    names = reference.POLICIES
    env = plain_env(
        episodes_of(BUSY, threshold=THRESHOLD_S),
        action="policy",
        policies=names,
        decide=decide,
        backfill_order=backfill_order,
    )
    for index, name in enumerate(names):
        play(env, index)
        assert_made_by(env, name, threshold=THRESHOLD_S, backfill_order=backfill_order)


@pytest.mark.parametrize("decide", EPOCHS)
@pytest.mark.parametrize("threshold", [None, THRESHOLD_S])
def test_each_vertex_of_the_weights_is_its_pure_policy(
    decide: str | int, threshold: int | None
) -> None:
    episodes = episodes_of(BUSY, threshold=threshold)
    env = plain_env(episodes, action="weights", decide=decide)
    for name, weights in reference.PURE_WEIGHTS.items():
        for length in (1.0, 0.25):
            play(env, length * np.array(weights, dtype=np.float32))
            assert_made_by(env, name, threshold=threshold)
    play(env, np.zeros(6, dtype=np.float32))
    assert_made_by(env, "FCFS", threshold=threshold)


def test_scenario_without_backfilling_or_the_keyword_does_the_same() -> None:
    env = plain_env(episodes_of(BUSY, backfill="none"), action="policy", policies=["SPF"])
    play(env, 0)
    assert_made_by(env, "SPF", backfill="none")
    env = plain_env(episodes_of(BUSY), action="policy", policies=["SPF"], backfill="none")
    play(env, 0)
    assert_made_by(env, "SPF", backfill="none")


# --- Replays and copies ---------------------------------------------------------------------------


def assert_in_step(one: Any, other: Any, rules: Any, seed: int) -> None:
    """Play on in both to the end with the same actions; all they give must be the same bits."""
    generator = np.random.default_rng(seed)
    terminated = False
    while not terminated:
        action = random_action(rules, generator)
        shown, reward, terminated, truncated, info = one.step(action)
        again = other.step(action)
        assert all(np.array_equal(shown[key], again[0][key]) for key in shown)
        assert (reward, terminated, truncated, repr(info)) == (*again[1:4], repr(again[4]))


@given(cases())
def test_two_environments_stay_in_step(case: Case) -> None:
    one, other = env_of(case.workload, case.rules), env_of(case.workload, case.rules)
    one.reset(seed=1)
    other.reset(seed=2)
    assert_in_step(one, other, case.rules, case.seed)


@given(cases())
def test_second_episode_is_not_touched_by_the_first(case: Case) -> None:
    used, fresh = env_of(case.workload, case.rules), env_of(case.workload, case.rules)
    used.reset()
    generator = np.random.default_rng(case.seed + 1)
    for _ in range(case.seed % 7):
        if used.step(random_action(case.rules, generator))[2]:
            break
    used.reset()
    fresh.reset()
    assert_in_step(used, fresh, case.rules, case.seed)


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
@pytest.mark.parametrize("action", ACTIONS)
def test_copy_made_in_mid_episode_goes_on_the_same(duplicate: Any, action: str) -> None:
    rules = rules_for(BUSY, action=action, policies=("SPF", "SMITH"), n_slots=12, baseline="FCFS")
    if action != "policy":
        rules = rules_for(BUSY, action=action, n_slots=12, baseline="FCFS")
    env = env_of(BUSY, rules)
    generator = np.random.default_rng(3)
    env.reset(seed=5)
    for _ in range(40):
        env.step(random_action(rules, generator))
    twin = duplicate(env)
    bystander = duplicate(env)
    before = [array.tobytes() for array in bystander._state.arrays.values()]
    assert_in_step(env, twin, rules, seed=4)
    assert before == [array.tobytes() for array in bystander._state.arrays.values()]
    assert env.np_random.integers(2**60) == twin.np_random.integers(2**60)
    twin.reset()
    play(twin, twin.action_space.sample())


def test_environment_that_has_not_begun_can_be_copied() -> None:
    env = pickle.loads(pickle.dumps(copy.deepcopy(plain_env("tiny", action="job"))))
    assert sum(play(env, 0)) < -1


@pytest.mark.long
def test_spawned_process_sees_and_earns_the_same() -> None:
    """Also without having imported hpcgym: the name alone finds it."""
    plans = [
        ({"scenario": "tiny", "action": "order"}, 1, 30),
        ({"scenario": "synthetic-256-weeks", "action": "job", "baseline": "SAF"}, 7, 200),
    ]
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        seen = list(pool.map(replay, *zip(*plans, strict=True)))
    assert seen == [replay(*plan) for plan in plans]


def test_seed_draws_the_same_weeks_again_and_other_seeds_others() -> None:
    env = plain_env("synthetic-256-weeks")

    def labels(seed: int) -> list[int]:
        first = env.reset(seed=seed)[1]["episode_number"]
        return [first, *(env.reset()[1]["episode_number"] for _ in range(20))]

    assert labels(3) == labels(3)
    assert labels(3) != labels(4)
    assert len(set(labels(3))) > 2


# --- Episodes -------------------------------------------------------------------------------------


def test_options_name_the_episode_by_number_or_label() -> None:
    env = plain_env("synthetic-256-weeks")
    by_number = env.reset(options={"episode": 2})
    by_label = env.reset(options={"episode": "week 2"})
    assert by_number[1] == by_label[1]
    assert (by_number[1], env.label) == ({"episode_number": 2}, "week 2")
    assert env.workload is env.episodes.workload(env.episodes.position(2))


def test_options_hand_jobs_in() -> None:
    env = plain_env(episodes_of(busy_workload(1)), action="policy", policies=["SAF"])
    env.reset(options={"workload": BUSY})
    assert env.workload is BUSY
    play(env, 0, options={"workload": BUSY})
    assert_made_by(env, "SAF")


AT_THE_END = {
    "episode_number": int,
    **dict.fromkeys(
        (
            *("ratio", "complete", "n_jobs", "n_backfilled", "n_thresholded", "makespan"),
            *("mean_wait_time", "max_wait_time", "mean_bsld", "max_bsld", "mean_pp_bsld"),
            *("max_pp_bsld", "utilisation"),
        ),
        float,
    ),
}
"""What an info of the last step holds, whatever the keywords are."""


def types_of(info: dict[str, Any]) -> dict[str, type]:
    """Return the type of each value of an info."""
    return {key: type(value) for key, value in info.items()}


def test_episode_ends_with_metrics_and_schedule() -> None:
    env = plain_env("tiny", action="policy", policies=["FCFS"])
    assert env.label is None
    _, first = env.reset()
    terminated = False
    while not terminated:
        assert not env.schedule().complete
        _, _, terminated, truncated, info = env.step(0)
        assert not truncated
        assert types_of(info) == (AT_THE_END if terminated else {})
    assert (first, env.label) == ({"episode_number": 1}, "whole")
    assert (info["complete"], info["episode_number"]) == (1, 1)
    assert info["mean_bsld"] == pytest.approx(4.6771, abs=5e-5)
    expected = hpcgym.simulate(env.workload, "FCFS").metrics()
    metrics = {key: value for key, value in info.items() if key in expected}
    assert len(metrics) == 12
    saf = hpcgym.simulate(env.workload, "SAF").bsld().mean()
    assert info["ratio"] == pytest.approx(info["mean_bsld"] / saf, rel=1e-12)
    assert metrics == pytest.approx({key: float(expected[key]) for key in metrics})
    assert env.schedule().complete
    with pytest.raises(ActionError, match="reset"):
        env.step(0)


@pytest.mark.parametrize(
    ("keywords", "always"),
    [
        ({"action": "index"}, {}),
        ({"action": "weights", "baseline": "SPF"}, {"agent_term": float, "baseline_term": float}),
        ({"action": "order", "reward": "relative", "baseline": "SPF"}, {"compared_term": float}),
        ({"action": "job"}, {"action_mask": np.ndarray}),
    ],
)
def test_infos_are_empty_but_for_masks_and_terms_until_the_end(
    keywords: dict[str, Any], always: dict[str, type]
) -> None:
    env = SchedulingEnv("synthetic-256-weeks", **keywords)
    env.action_space.seed(0)
    _, info = env.reset(seed=0)
    assert types_of(info) == always | {"episode_number": int}
    terminated, steps = False, 0
    while not terminated:
        if "action_mask" in always:
            mask = info["action_mask"]
            assert mask.dtype == np.int8 and np.array_equal(mask, env.action_masks())
            action = env.action_space.sample(mask)
        else:
            action = env.action_space.sample()
        _, reward, terminated, _, info = env.step(action)
        if not terminated:
            assert types_of(info) == always
        terms = [info[key] for key in always if key.endswith("_term")]
        assert not terms or sum(terms) == reward
        steps += 1
    counted = {"invalid_actions": int} if "action_mask" in always else {}
    assert types_of(info) == always | AT_THE_END | counted
    assert steps > 10


def test_the_number_of_an_episode_names_it_again() -> None:
    env = SchedulingEnv("synthetic-busy-weeks", weeks="2-4,9")
    numbers = set()
    for seed in range(12):
        number = env.reset(seed=seed)[1]["episode_number"]
        jobs, label = env.workload, env.label
        _, again = env.reset(options={"episode": number})
        assert (env.workload, env.label, again) == (jobs, label, {"episode_number": number})
        assert label == f"week {number}"
        numbers.add(number)
    assert numbers == {2, 3, 4, 9}
    _, info = env.reset(options={"workload": jobs})
    assert info == {"episode_number": -1}


@pytest.mark.parametrize(
    ("policy", "mean_bsld"),
    [("FCFS", 4.6771), ("LCFS", 7.2813), ("SPF", 3.3854), ("SQF", 4.1875), ("LAF", 6.2813)],
)
def test_tiny_has_the_figures_its_entry_was_drawn_with(policy: str, mean_bsld: float) -> None:
    env = plain_env("tiny", action="policy", policies=[policy])
    assert sum(play(env, 0)) == pytest.approx(-mean_bsld, abs=5e-5)


def test_episode_in_which_no_order_matters_ends_in_its_first_step() -> None:
    alone = hpcgym.Workload.from_arrays([5, 5], [20, 20], [20, 20], [1, 1], machine_processors=2)
    env = plain_env(episodes_of(alone), action="job", n_slots=4)
    shown, _ = env.reset()
    assert shown["action_mask"].sum() == 0
    assert env.action_masks().tolist() == [1, 0, 0, 0]
    _, reward, terminated, _, info = env.step(0)
    assert (reward, terminated) == (-1.0, True)
    assert info["complete"] == 1


# --- What cannot be made --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"scenario": "tinny"}, "did you mean 'tiny'"),
        ({"scenario": "synthetic-256-week"}, "did you mean 'synthetic-256-weeks'"),
        ({"action": "weight"}, "did you mean 'weights'"),
        ({"action": "jobs"}, "did you mean 'job'"),
        ({"decide": "contest"}, "did you mean 'contested'"),
        ({"reward": "bslds"}, "did you mean 'bsld'"),
        ({"action": "job", "invalid": "eror"}, "did you mean 'error'"),
        ({"render_mode": "rgb"}, "Allowed: ansi, rgb_array, human"),
        ({"baseline": "SFA"}, "did you mean 'SAF'"),
        ({"action": "policy", "policies": ["SMIHT"]}, "did you mean 'SMITH'"),
        ({"backfill": "esay"}, "did you mean 'easy'"),
        ({"backfill_order": "SFP"}, "did you mean 'SPF'"),
    ],
)
def test_unknown_name_is_answered_with_the_nearest(keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(HpcgymError, match=message):
        SchedulingEnv(**{"scenario": "tiny", **keywords})


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"action": "lend"}, "'trials' decides about trial runs"),
        ({"policies": ["SAF"]}, "belongs to action 'policy'"),
        ({"action": "policy", "policies": []}, "at least one policy"),
        ({"invalid": "error"}, "belongs to action 'job', not to 'index'"),
        ({"action": "order", "invalid": "penalty"}, "belongs to action 'job'"),
        ({"action": "order", "decide": 60}, "lasts one pass only"),
        ({"action": "job", "decide": 3_600}, "lasts one pass only"),
        ({"reward": "log_ratio"}, "name one, say 'SAF'"),
        ({"reward": "relative"}, "name one, say 'SAF'"),
        ({"backfill": "none", "backfill_order": "SPF"}, "which takes none"),
        ({"decide": 0}, "in s, must be a whole number from 1"),
        ({"decide": 1.5}, "in s, must be a whole number from 1"),
        ({"decide": float("nan")}, "in s, must be a whole number from 1"),
        ({"decide": True}, "in s, must be a whole number from 1"),
        ({"n_slots": 0}, "n_slots must be a whole number from 1 to"),
        ({"n_slots": 2.0}, "n_slots must be a whole number from 1 to"),
        ({"n_slots": True}, "n_slots must be a whole number from 1 to"),
    ],
)
def test_keywords_that_contradict_each_other_are_refused(
    keywords: dict[str, Any], message: str
) -> None:
    with pytest.raises(HpcgymError, match=message):
        SchedulingEnv("tiny", **keywords)


def test_keywords_are_the_same_wherever_they_stand() -> None:
    """In the signature, for type checkers, in the configuration, and in the data sheet."""
    shown = inspect.signature(SchedulingEnv).parameters
    keywords = {name: shown[name].default for name in shown if name not in FACE_ONLY}
    assert keywords == {field.name: field.default for field in fields(EnvConfig)}
    assert list(keywords) == list(Keywords.__annotations__)
    types = {name: shown[name].annotation for name in keywords}
    assert types == {field.name: field.type for field in fields(EnvConfig)}
    assert types == {name: hint.__forward_arg__ for name, hint in Keywords.__annotations__.items()}
    sheet = (SchedulingEnv.__doc__ or "").partition("Arguments:")[2]
    assert all(f"    {name}: " in sheet for name in shown)


def test_keyword_that_does_not_exist_is_refused() -> None:
    with pytest.raises(TypeError, match="slots"):
        gymnasium.make("HPCBatch-v0", scenario="tiny", slots=3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsiode": 1}, "did you mean 'episode'"),
        ({"episode": 2}, "Allowed: 1"),
        ({"episode": "hole"}, "did you mean 'whole'"),
        ({"episode": 1, "workload": BUSY}, "exclude each other"),
        ({"workload": BUSY}, "16 processors; the scenario's machine has 4"),
        ({"workload": "tiny"}, "must be a Workload"),
    ],
)
def test_episode_there_is_not_is_refused(options: dict[str, Any], message: str) -> None:
    env = plain_env("tiny")
    with pytest.raises(ScenarioError, match=message):
        env.reset(options=options)


def test_episode_under_way_survives_a_reset_that_is_refused() -> None:
    env, calm = plain_env("tiny"), plain_env("tiny")
    env.reset()
    calm.reset()
    with pytest.raises(ScenarioError):
        env.reset(options={"episode": 99})
    assert_in_step(env, calm, rules_for(BUSY), seed=0)


@pytest.mark.parametrize("call", ["render", "schedule", "metrics", "truncate"])
def test_nothing_can_be_asked_before_the_first_reset(call: str) -> None:
    env = plain_env("tiny", render_mode="ansi")
    with pytest.raises(ActionError, match="reset"):
        getattr(env, call)()
    with pytest.raises(ActionError, match="reset"):
        env.step(np.zeros(6, dtype=np.float32))


def test_policy_that_is_a_formula_is_refused_where_a_step_cannot_run_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from hpcgym.core import policy

    monkeypatch.setattr(policy, "_POLICIES", policy._POLICIES.copy())
    policy.register_policy("MINE", formula=lambda features: features.e)
    for keywords in ({"action": "policy", "policies": ["MINE"]}, {"backfill_order": "MINE"}):
        with pytest.raises(HpcgymError, match="orders in Python"):
            plain_env("tiny", **keywords)
    with pytest.raises(PolicyError, match="taken"):
        policy.register_policy("mine", formula=lambda features: features.e)


def test_doubled_requests_are_what_an_agent_sees_and_predictions_to_come_are_refused() -> None:
    workload = busy_workload(3, n=200)
    plain = plain_env(episodes_of(workload, largest_request=100 * workload.largest_request))
    doubled = plain_env(
        episodes_of(workload, largest_request=100 * workload.largest_request, estimates="doubled")
    )
    fields = [env.reset(seed=0)[0]["jobs"].reshape(env.n_slots, -1) for env in (plain, doubled)]
    first = [field[field[:, 2] > 0][:2] for field in fields]
    step = np.log(2) / np.log(100 * workload.largest_request)
    assert first[1][:, :2] == pytest.approx(first[0][:, :2] + step, abs=1e-6)
    scenario = episodes_of(workload).scenario
    for changes in ({"estimates": "recent"}, {"correction": "doubling"}):
        predicting = replace(scenario, scheduler=replace(scenario.scheduler, **changes))
        with pytest.raises(ScenarioError, match="allowed are 'requested', 'exact', 'doubled'"):
            plain_env(Episodes(predicting, workload=workload))
