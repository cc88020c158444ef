"""What an agent sees: by hand, within bounds, and nothing of the run times of unfinished jobs."""

import copy
import math
import pickle
import re
from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hpcgym
from env_cases import (
    Case,
    busy_workload,
    cases,
    env_of,
    episodes_of,
    plain_env,
    plain_vector,
    play,
    random_action,
    rules_for,
)
from hpcgym.core.history import history_of
from hpcgym.core.kernels import entry_points
from hpcgym.core.observation_fields import (
    ClusterField,
    ControlsField,
    JobField,
    JobTrialField,
    NodesField,
    PriceField,
    RunningField,
    SmallField,
    TrialField,
)
from hpcgym.env.observation import (
    CLUSTER_FIELDS,
    CONTROLS_FIELDS,
    FIELDS,
    NODES_FIELDS,
    flat_places,
    flat_space,
)
from hpcgym.env.scenario.load import load_scenario
from hpcgym.env.scheduling import Observation, SchedulingEnv

BUSY = busy_workload(6, n=400)
TRIAL_FIELDS = [field.field_name for field in (*JobTrialField, *TrialField, *RunningField)]


def look(env: SchedulingEnv) -> Observation:
    """See the state of an environment as it is, without a step."""
    shown, parts = env._empty()
    jobs, sim = env._jobs.address, env._sim.address
    entry_points.observe(jobs, sim, env._slot.copy(), *parts)
    return shown


def same(one: Observation, other: Observation) -> bool:
    """Compare bit by bit."""
    return all(
        one[key].tobytes() == other[key].tobytes() for key in ("jobs", "cluster", "action_mask")
    )


# --- In one array ---------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("scenario", ["synthetic-256-weeks", "hetero-64-weeks"])
@pytest.mark.parametrize("num_envs", [None, 2])
def test_flat_observation_is_the_parts_of_the_dict_in_order(
    scenario: str, num_envs: int | None
) -> None:
    keywords: dict[str, Any] = {"scenario": scenario, "n_slots": 8, "expectations": "records"}
    if num_envs is None:
        split, flat = (plain_env(**keywords, observation=kind) for kind in ("dict", "flat"))
        theirs: Any = gymnasium.wrappers.FlattenObservation(split)
        flatten = theirs.observation
    else:
        keywords["num_envs"] = num_envs
        split, flat = (plain_vector(**keywords, observation=kind) for kind in ("dict", "flat"))
        theirs = gymnasium.wrappers.vector.FlattenObservation(split)
        flatten = theirs.observations
    space = flat.observation_space
    assert theirs.observation_space.shape == space.shape
    assert space.dtype == np.float32
    parts, shown = split.reset(seed=1)[0], flat.reset(seed=1)[0]
    split.action_space.seed(1)
    places = flat_places(8, load_scenario(scenario).machine.nodes)
    assert places.keys() == parts.keys()
    for _ in range(40):
        assert space.contains(shown)
        rows = {key: part.reshape((*shown.shape[:-1], -1)) for key, part in parts.items()}
        assert shown.tobytes() == np.concatenate([rows[key] for key in places], axis=-1).tobytes()
        assert all(shown[..., places[key]].tobytes() == parts[key].tobytes() for key in parts)
        assert flatten(parts).tobytes() == shown.tobytes()
        action = split.action_space.sample()
        parts, shown = split.step(action)[0], flat.step(action)[0]


def test_flat_observation_has_the_bounds_of_each_field() -> None:
    space = flat_space(3)
    low = [field.low for field in JobField] * 3 + [field.low for field in ClusterField] + [0] * 3
    high = [field.high for field in JobField] * 3 + [field.high for field in ClusterField] + [1] * 3
    assert (space.low.tolist(), space.high.tolist()) == (low, high)
    assert -1 in low


# --- Nothing of what has not happened yet ---------------------------------------------------------


def change_the_future(env: SchedulingEnv, generator: np.random.Generator) -> int:
    """Give every job that has not ended another run time, and say how many those are.

    Jobs that run go on running beyond now, and their ends are put in order again.
    """
    table, state, now = env._episode.table, env._state, env.now
    n = len(table.run_time)
    start = state.start_time[0, :n]
    runs = state.ending_job[0, : state.n_running[0]].copy()
    waits = np.flatnonzero(start < 0)
    least = {int(j): now - int(start[j]) + 1 for j in runs} | {int(j): 0 for j in waits}
    for j, shortest in least.items():
        longest = max(int(table.estimate[j]), shortest)
        table.run_time[j] = generator.integers(shortest, longest + 1)
        env.workload.run_time[j] = table.run_time[j]
    ends = start[runs] + table.run_time[runs]
    order = np.lexsort((-runs, -ends))
    state.ending_job[0, : len(runs)] = runs[order]
    state.ending_time[0, : len(runs)] = ends[order]
    return len(least)


@pytest.mark.long
@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
@pytest.mark.parametrize("decide", ["contested", "event", 900])
def test_run_times_of_unfinished_jobs_changed_in_a_copy_change_nothing_seen(
    duplicate: Any, decide: str | int
) -> None:
    rules = rules_for(
        BUSY, action="weights", decide=decide, n_slots=24, threshold=30_000, expectations="records"
    )
    env = env_of(BUSY, rules)
    env.render_mode = "ansi"
    generator = np.random.default_rng(8)
    shown, _ = env.reset()
    terminated, compared, unfinished = False, 0, 0
    while not terminated and compared < 12:
        for _ in range(20):
            shown, _, terminated, _, _ = env.step(random_action(rules, generator))
            if terminated:
                break
        other = duplicate(env)
        assert same(shown, look(other))
        unfinished += change_the_future(other, generator)
        assert same(shown, look(other))
        as_it_was = duplicate(env)
        assert other.render() == as_it_was.render()
        if not terminated:  # the change does reach what happens next
            assert sum(play_on(other)) != sum(play_on(as_it_was))
        compared += 1
    assert compared > 3
    assert unfinished > 100


def play_on(env: SchedulingEnv) -> list[float]:
    """Play on as FCFS."""
    rewards, terminated = [], False
    while not terminated:
        _, reward, terminated, _, _ = env.step(np.zeros(6, dtype=np.float32))
        rewards.append(reward)
    return rewards


@given(case=cases(estimates="requested", reward="bsld", baseline=None), data=st.data())
def test_all_that_was_seen_is_the_same_in_any_other_future(case: Case, data: st.DataObject) -> None:
    """Played again with the same actions on jobs that run otherwise from some decision on."""
    rules = case.rules
    env = env_of(case.workload, rules)
    generator = np.random.default_rng(case.seed)
    seen, actions = [env.reset()[0]], []
    clock, past = [env.now], [env.schedule()]
    while not env.schedule().complete:
        actions.append(random_action(rules, generator))
        seen.append(env.step(actions[-1])[0])
        clock.append(env.now)
        past.append(env.schedule())
    turn = data.draw(st.integers(0, len(seen) - 1))
    now, made = clock[turn], past[turn]
    run_time = case.workload.run_time.copy()
    unfinished = (made.start_time < 0) | (made.start_time + made.run_time > now)
    for j in np.flatnonzero(unfinished):
        passed = now - made.start_time[j] + 1 if made.start_time[j] >= 0 else 0
        run_time[j] = passed + data.draw(st.integers(0, 100))
    other = env_of(replace(case.workload, run_time=run_time), rules)
    again = [other.reset()[0]]
    for action in actions[:turn]:
        again.append(other.step(action)[0])
    assert all(same(a, b) for a, b in zip(seen, again, strict=False))
    assert (other.now, len(again)) == (now, turn + 1)


def test_image_tells_nothing_of_run_times_either() -> None:
    pytest.importorskip("pygame")
    env = plain_env(episodes_of(BUSY), render_mode="rgb_array")
    env.reset()
    for _ in range(60):
        env.step(np.zeros(6, dtype=np.float32))
    other = copy.deepcopy(env)
    assert change_the_future(other, np.random.default_rng(0)) > 10
    assert np.array_equal(env.render(), other.render())


# --- By hand --------------------------------------------------------------------------------------


def by_hand(
    request: int = 600,
) -> tuple[SchedulingEnv, dict[str, dict[int, float]], dict[str, float]]:
    """Eight processors, E = 7,200 s; at 1,000 s of a Thursday, 00:16:40 UTC.

    R holds 6 from 0 s on and asks for 3,600 s. A (8 for 7,200 s) waits since 100 s, B (1 for 60 s)
    since 400 s; C (2 for `request` s) has just come. User 3 of B has two jobs behind him: 50 s
    of 100 s that ended 10,000 s ago, 20 s of 100 s that ended 400 s before time 0.
    """
    workload = hpcgym.Workload.from_arrays(
        [0, 100, 400, 1_000],
        [3_000, 10, 10, 10],
        [3_600, 7_200, 60, request],
        [6, 8, 1, 2],
        user=[1, 2, 3, 2],
        machine_processors=8,
        unix_start=7 * 86_400,
    )
    past = [np.array(column) for column in ([3, 3], [50, 20], [100, 100], [1, 1], [-10_000, -400])]
    workload = replace(workload, history=history_of(np.array([1, 2, 3]), *past))
    env = plain_env(
        episodes_of(workload, threshold=850),
        action="order",
        decide="event",
        n_slots=4,
        expectations="records",
    )
    env.reset()
    hold = np.array([-1, 1, 1, 1], dtype=np.float32)
    shown: Any = None
    while env.now < 1_000:
        shown, _, _, _, _ = env.step(hold)
    rows = shown["jobs"].reshape(4, len(FIELDS))
    slots = {env._slot[k]: dict(zip(FIELDS, rows[k].tolist(), strict=True)) for k in range(4)}
    return env, slots, dict(zip(CLUSTER_FIELDS, shown["cluster"].tolist(), strict=True))


@pytest.mark.parametrize(("request_s", "shown"), [(2_599, 1.0), (2_600, 1.0), (2_601, 0.0)])
def test_job_that_would_end_at_the_shadow_time_is_shown_so(request_s: int, shown: float) -> None:
    """R's processors are A's at 3,600 s."""
    assert by_hand(request_s)[1][3]["ends_before_shadow"] == shown


def test_observation_by_hand() -> None:
    """B was started at 400 s, so A and C wait; A is beyond the threshold and the head."""
    env, slots, cluster = by_hand()
    log_e = math.log(7_200)
    assert env._slot.tolist() == [1, 3, -1, -1]
    assert slots[1] == pytest.approx(
        {
            "log_estimate": 1.0,
            "log_predicted_time": 1.0,
            "processors": 1.0,
            "log_area": 1.0,
            "log_wait_time": math.log(1 + 15) / math.log(43_201),
            "log_wait_by_estimate": math.log(900 / 7_200) / math.log(10_000),
            "fits_now": 0.0,
            "ends_before_shadow": 0.0,
            "is_thresholded": 1.0,
            "user_log_completed": 0.0,
            "user_log_last_run_time": -1.0,
            "user_log_last_but_one_run_time": -1.0,
            "user_mean_run_by_request": -1.0,
            "user_log_expected_bound": 1.0,
            "user_log_recency": -1.0,
            "log_expected_run_time_ratio": 0.0,
            "log_expected_speed": 0.0,
            "log_expected_index": 1.0,
        },
        abs=1e-6,
    )
    assert slots[3] == pytest.approx(
        {
            "log_estimate": math.log(600) / log_e,
            "log_predicted_time": math.log(600) / log_e,
            "processors": 0.25,
            "log_area": math.log(1_200) / math.log(57_600),
            "log_wait_time": 0.0,
            "log_wait_by_estimate": -1.0,
            "fits_now": 1.0,
            "ends_before_shadow": 1.0,
            "is_thresholded": 0.0,
            "user_log_completed": 0.0,
            "user_log_last_run_time": -1.0,
            "user_log_last_but_one_run_time": -1.0,
            "user_mean_run_by_request": -1.0,
            "user_log_expected_bound": math.log(600) / log_e,
            "user_log_recency": -1.0,
            "log_expected_run_time_ratio": 0.0,
            "log_expected_speed": 0.0,
            "log_expected_index": math.log(2 * 600**2) / math.log(8 * 7_200**2),
        },
        abs=1e-6,
    )
    angle = 2 * math.pi * 1_000 / 604_800
    assert cluster == pytest.approx(
        {
            "free_processors": 0.25,
            **{f"free_processors_in_{horizon}_s": 0.25 for horizon in (300, 900, 1_800)},
            **{f"free_processors_in_{h}_s": 1.0 for h in (3_600, 10_800, 21_600, 43_200, 86_400)},
            "queued_processors": 10 / 18,
            "queued_area": (57_600 + 1_200) / (57_600 + 1_200 + 3_600 * 8),
            "submitted_last_hour": 4 / 14,
            "submitted_last_day": 4 / 104,
            "hour_of_week_sin": math.sin(angle),
            "hour_of_week_cos": math.cos(angle),
            "hidden_jobs": 0.0,
            "hidden_area": 0.0,
            "hidden_least_area": 0.0,
            "hidden_largest_area": 0.0,
        },
        abs=1e-6,
    )


def test_history_by_hand() -> None:
    """B as it comes, at 400 s: 800 s after the last end of its user."""
    env, _, _ = by_hand()
    shown, _ = env.reset()
    while env.now < 400:
        shown, _, _, _, _ = env.step(np.zeros(4, dtype=np.float32))
    row = shown["jobs"].reshape(4, len(FIELDS))[env._slot.tolist().index(2)]
    expected = (1 / 50 + 1 / 20 + 1 / 60) / 3
    share = (1 + 20 / 60 + 0.75 * 50 / 60) / 2.75  # B asks for another time than both records
    speed = (1 + 60 / 20 + 0.75 * 60 / 50) / 2.75
    log_e = math.log(7_200)
    assert dict(zip(FIELDS[9:], row[9:].tolist(), strict=True)) == pytest.approx(
        {
            "user_log_completed": math.log(3) / math.log(1_001),
            "user_log_last_run_time": math.log(20) / log_e,
            "user_log_last_but_one_run_time": math.log(50) / log_e,
            "user_mean_run_by_request": (0.5 + 0.2) / 2,
            "user_log_expected_bound": -math.log(expected) / log_e,
            "user_log_recency": math.log(1 + 800 / 60) / math.log(43_201),
            "log_expected_run_time_ratio": math.log(share) / log_e,
            "log_expected_speed": math.log(speed) / log_e,
            "log_expected_index": math.log(60**2 * share / speed) / math.log(8 * 7_200**2),
        },
        abs=1e-6,
    )


# --- Bounds and slots -----------------------------------------------------------------------------


def assert_within_declared_bounds(shown: Observation) -> None:
    """Compare each field with its own bounds, which are narrower than those of the space."""
    for key, declared in (("jobs", JobField), ("cluster", ClusterField)):
        rows = shown[key].reshape(-1, len(declared))
        low, high = ([getattr(field, end) for field in declared] for end in ("low", "high"))
        assert (rows >= low).all() and (rows <= high).all()


@given(cases())
def test_every_observation_lies_in_its_space_and_is_an_array_of_its_own(case: Case) -> None:
    env = env_of(case.workload, case.rules)
    generator = np.random.default_rng(case.seed)
    kept = [env.reset()[0]]
    as_seen = [copy.deepcopy(kept[0])]
    terminated = False
    while not terminated:
        shown, _, terminated, _, _ = env.step(random_action(case.rules, generator))
        assert env.observation_space.contains(shown)
        assert_within_declared_bounds(shown)
        kept.append(shown)
        as_seen.append(copy.deepcopy(shown))
    assert all(same(a, b) for a, b in zip(kept, as_seen, strict=True))


def test_oldest_jobs_are_seen_however_long_the_queue() -> None:
    """Forty jobs wait and eight are seen: six by SAF, the two oldest of the rest after them."""
    n = 41
    workload = hpcgym.Workload.from_arrays(
        np.arange(n),
        np.full(n, 100),
        np.r_[1_000, 900 - 10 * np.arange(1, n)],
        np.full(n, 2),
        machine_processors=2,
    )
    env = plain_env(episodes_of(workload), action="order", decide="event", n_slots=8)
    shown, _ = env.reset()
    while env.now < n - 1:
        shown, _, _, _, _ = env.step(np.zeros(8, dtype=np.float32))
    assert env._slot.tolist() == [40, 39, 38, 37, 36, 35, 1, 2]
    hidden = np.arange(3, 35)
    areas = workload.requested_time[hidden] * 2
    scale = math.log(2 * workload.largest_request)
    assert shown["cluster"][-4:] == pytest.approx(
        [
            32 / 40,
            areas.sum() / (areas.sum() + 7_200),
            math.log(areas.min()) / scale,
            math.log(areas.max()) / scale,
        ],
        abs=1e-6,
    )


def test_data_sheet_repeats_the_declared_fields_row_by_row() -> None:
    rows = [line.strip() for line in (SchedulingEnv.__doc__ or "").splitlines()]
    shown = [row for row in rows if re.match(r"\| \d+ `", row)]
    assert shown == [
        f"| {field:d} `{name}` | {field.meaning} | {field.formula} | {field.low} | {field.high} |"
        for field, name in zip(
            (
                *(*JobField, *NodesField, *ClusterField, *ControlsField),
                *(*JobTrialField, *TrialField, *RunningField, *PriceField, *SmallField),
            ),
            (
                *(*FIELDS, *NODES_FIELDS, *CLUSTER_FIELDS, *CONTROLS_FIELDS, *TRIAL_FIELDS),
                *(field.field_name for field in (*PriceField, *SmallField)),
            ),
            strict=True,
        )
    ]
    assert [*map(int, JobField), *map(int, ClusterField)] == [*range(18), *range(19)]
    space = plain_env("tiny").observation_space
    assert space["jobs"].shape == (32, len(FIELDS))
    assert {(box.low.min(), box.high.max()) for box in (space["jobs"], space["cluster"])} == {
        (-1.0, 1.0)
    }
    play(plain_env("tiny", n_slots=1), np.zeros(6, dtype=np.float32))
