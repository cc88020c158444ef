"""Actions about trial runs: against the reference in plain Python, and beside the rules."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given
from hypothesis import strategies as st

import hpcgym
import reference
import reference_capped
import reference_index
from engines import history_of_users, jobs_of, records_of_users
from env_cases import assert_vector_plays_alike, busy_workload, env_with, episodes_of, starts_under
from hpcgym.agent.sb3_model import keywords_of as keywords_of_model
from hpcgym.agent.shelf import load_agent
from hpcgym.base.errors import ActionError, ScenarioError
from hpcgym.core.actions.trials import NUMBERS, USUAL_MODE
from hpcgym.core.observation_fields import JobField
from hpcgym.core.workload import Workload
from hpcgym.env.observation import flat_places
from hpcgym.env.scheduling import SchedulingEnv
from reference_controls import TrialsDecided
from strategies import busy_workloads, one_of

ZEROS = np.zeros(len(NUMBERS), dtype=np.float32)
VALUES = (-1.0, -0.5, -0.1, 0.0, 0.0, 0.3, 0.7, 1.0)
COUNTS = ("n_tried", "n_gave_way", "ran", "wasted")
"""What a simulation keeps of each job's attempts."""


@st.composite
def modes(draw):
    """Draw a mode with trials, in times like those of the drawn jobs."""
    cap = draw(one_of(("", "", "cap=0.5,long=30,widest=0.5", "cap=0.6,by=request,long=30")))
    name = draw(one_of(("easy", "cost-benefit")))
    limit, young = draw(one_of((5, 10, 20, 40))), draw(one_of((0, 20, 60, 200)))
    victim, overhead = draw(one_of(("", "victim=0.25,", "victim=0.5,"))), draw(one_of((0, 0, 5)))
    share = draw(one_of((0.25, 0.5, 1)))
    trial = f"limit={limit},young={young},request=10,share={share},guarantee=15,{victim}"
    trial += f"overhead={overhead}"
    return f"{name}{':' if cap else ''}{cap}+trial:{trial}"


def lives_of(env: SchedulingEnv) -> dict[str, list[int]]:
    """Return what the simulation has kept of attempts."""
    n = len(env.workload)
    return {name: getattr(env._state, name)[0, :n].tolist() for name in COUNTS}


def by_reference(
    workload: Workload, kind: type[Any], policy: Any, mode: str, threshold: int | None, **notes: Any
) -> tuple[list[reference.Start], Any]:
    """Schedule by a machine of a kind with attributes; return all starts, and the machine."""
    made: list[Any] = []

    class Noting(kind):
        def run(self, event_semantics):
            made.append(self)
            return super().run(event_semantics)

    for name, value in notes.items():
        setattr(Noting, name, value)
    start = workload.time_offset if workload.unix_start is None else workload.unix_start
    starts = reference.simulate(
        jobs_of(workload),
        workload.machine_processors,
        policy,
        backfill=mode,
        threshold=threshold,
        history=history_of_users(workload),
        kind=reference_index.reader(
            records_of_users(workload), start, Noting, reference_capped.UrgentReader
        ),
    )
    return starts, made[0]


def check_lives(env: SchedulingEnv, machine: Any) -> None:
    """Compare what is known of each job's attempts."""
    lives = lives_of(env)
    assert lives["n_tried"] == machine.tried
    assert lives["n_gave_way"] == machine.gave_way
    assert lives["ran"] == machine.ran
    wasted = [0] * len(machine.jobs)
    for one in machine.attempts:
        if one.reason != "completed":
            cleared = machine.overhead * (one.reason == "trial over")
            wasted[one.job] += one.end - one.taken + cleared
    assert lives["wasted"] == wasted


def check_starts(env: SchedulingEnv, starts: list[reference.Start]) -> None:
    """Compare all starts and their kinds."""
    made = env.schedule()
    columns = made.start_time, made.backfilled, made.thresholded
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == starts


@given(
    workload=busy_workloads(),
    mode=modes(),
    threshold=st.sampled_from((None, 30, 100, 400)),
    decide=st.sampled_from(("contested", "contested", "event", 7)),
    seed=st.integers(0, 2**16),
)
def test_numbers_that_change_at_decisions_start_as_the_reference_says(
    workload, mode, threshold, decide, seed
):
    env = env_with(workload, "trials", threshold, backfill=mode, decide=decide)
    generator = np.random.default_rng(seed)
    shown, _ = env.reset()
    decided, seen, over = [], [], False
    while not over:
        numbers = generator.choice(VALUES, len(NUMBERS)).tolist()
        if env.schedule().start_time.min() < 0:  # else it was over before any decision
            decided.append((env.now, numbers))
            seen.append(shown["cluster"][19:29])
        shown, _, over, _, _ = env.step(np.array(numbers, dtype=np.float32))
    instants = [instant for instant, _ in decided]
    policy = reference_capped.SMITH_URGENT
    notes = {"epochs": decide, "decided": decided, "noted": []}
    starts, machine = by_reference(workload, TrialsDecided, policy, mode, threshold, **notes)
    check_starts(env, starts)
    check_lives(env, machine)
    if not isinstance(decide, int):
        assert [instant for instant, _ in machine.noted] == instants
        for fields, (_, expected) in zip(seen, machine.noted, strict=True):
            np.testing.assert_allclose(fields, expected, rtol=2e-6, atol=2e-7)


@given(
    workload=busy_workloads(),
    mode=modes(),
    threshold=st.sampled_from((None, 30, 400)),
    decide=st.sampled_from(("contested", "event", 7)),
)
def test_zeros_are_the_mode_itself(workload, mode, threshold, decide):
    env = env_with(workload, "trials", threshold, backfill=mode, decide=decide)
    schedule = hpcgym.simulate(workload, "SMITH-URGENT", backfill=mode, threshold=threshold)
    made = starts_under(env, ZEROS)
    assert made == schedule.start_time.tolist()


@pytest.mark.parametrize("episode", [1, 2])
def test_zeros_are_the_agent_on_the_shelf(episode):
    env = SchedulingEnv("synthetic-256-weeks", action="trials")
    env.reset(options={"episode": episode})
    over = False
    while not over:
        over = env.step(ZEROS)[2]
    settings = load_agent("URGENT-YOUNG").settings(env.settings)
    schedule = hpcgym.simulate(env.workload, **vars(settings))
    assert env.schedule().start_time.tolist() == schedule.start_time.tolist()
    wasted = schedule.attempts.wasted_time.sum()
    assert sum(lives_of(env)["wasted"]) == wasted > 0
    assert env.schedule().attempts_frame().equals(schedule.attempts_frame())
    assert env.schedule().metrics() == schedule.metrics()


def test_every_number_moves_an_attempt():
    workload = busy_workload(4, n=150)
    mode = "easy:cap=0.6,long=600+trial:young=1800,request=600,victim=0.25"
    env = env_with(workload, "trials", 40_000, backfill=mode)
    middle = starts_under(env, ZEROS), lives_of(env)
    for place in range(4, len(NUMBERS)):
        action = np.zeros(len(NUMBERS), dtype=np.float32)
        for value in (-1, 1) if NUMBERS[place] != "kept" else (1,):
            action[place] = value
            assert middle != (starts_under(env, action), lives_of(env)), (NUMBERS[place], value)


def test_minus_one_switches_off_what_has_a_limit_and_an_age():
    workload = busy_workload(4, n=150)
    mode = "easy+trial:young=1800,request=600"
    env = env_with(workload, "trials", 40_000, backfill=mode, decide="event")  # from the first pass
    off = np.array([0, 0, 0, 0, -1, 0, -1, 0], dtype=np.float32)
    schedule = hpcgym.simulate(workload, "SMITH-URGENT", backfill="easy", threshold=40_000)
    assert starts_under(env, off) == schedule.start_time.tolist()
    assert sum(lives_of(env)["wasted"]) == 0


def test_the_scenario_may_name_the_mode():
    named = episodes_of(busy_workload(), backfill="easy+trial:kills=1", threshold=None)
    assert str(SchedulingEnv(named, action="trials").settings.backfill) == "easy+trial:kills=1"
    assert str(SchedulingEnv("tiny", action="trials").settings.backfill) == USUAL_MODE


@pytest.mark.parametrize("backfill", ["easy", "cost-benefit:cap=0.97", "depth:k=2"])
def test_modes_without_trials_are_refused(backfill):
    with pytest.raises(ScenarioError, match=r"knows none; choose 'cost-benefit:cap=0\.97.*'"):
        SchedulingEnv("tiny", action="trials", backfill=backfill)


def test_a_choice_of_fcfs_has_a_killed_job_where_its_submission_put_it():
    """P goes on trial at 2, in vain, and may start again at 17. From 50 on it may run, or W.

    W came at 15. By itself FCFS has P as submitted at 17, behind W.

    ::

        AAAAAAAAAAHHHHHHHHHHHHHHHPPPPPPPPPPPPPPPPPPPPPPPPP    A 1p x 20, H 2p x 30
        .PPPPP....HHHHHHHHHHHHHHH.........................    P 1p x 50 of 60, W 2p x 30
        0         20             50                       100 W
    """
    columns = [0, 1, 2, 15], [20, 30, 50, 30], [20, 30, 60, 30], [1, 2, 1, 2]
    jobs = Workload.from_arrays(*columns, machine_processors=2)
    mode = "easy+trial:limit=10,restart=5"
    env = env_with(jobs, "policy", policies=["FCFS"], backfill=mode)
    assert starts_under(env, 0) == [0, 20, 50, 100]
    assert hpcgym.simulate(jobs, "FCFS", backfill=mode).start_time.tolist() == [0, 20, 80, 50]


BUSY = busy_workload(4, n=150, processors=64)
MODE = (
    "easy:cap=0.5,long=600,by=request+trial:limit=200,kills=9,young=3000,request=200,times=9,"
    "share=0.5,victim=0.5,overhead=10"
)


def keywords_of(**others: Any) -> dict[str, Any]:
    """Return the keywords of an environment whose trials are many."""
    episodes = episodes_of(BUSY, threshold=10_000)
    return {"scenario": episodes, "action": "trials", "backfill": MODE, "n_slots": 8} | others


def drawn(generator: np.random.Generator, *n_envs: int) -> Any:
    """Draw an action for each environment."""
    return generator.choice(VALUES, (*n_envs, len(NUMBERS))).astype(np.float32)


@pytest.mark.long
@pytest.mark.parametrize("form", ["dict", "flat"])
def test_vectors_play_as_single_environments_do(form):
    assert_vector_plays_alike(**keywords_of(observation=form, reward="bsld"))


@pytest.mark.parametrize(
    ("reward", "metric"),
    [("bsld", "mean_bsld"), ("bsld_start", "mean_bsld"), ("wait", "mean_wait_time")],
)
def test_rewards_add_up_to_the_metric(reward, metric):
    env = SchedulingEnv(**keywords_of(reward=reward))
    generator, over, total = np.random.default_rng(4), False, 0.0
    env.reset()
    while not over:
        _, paid, over, _, info = env.step(drawn(generator))
        total += paid
    assert total == pytest.approx(-info[metric], rel=1e-9)


def test_copies_go_on_alike():
    env = SchedulingEnv(**keywords_of())
    generator = np.random.default_rng(5)
    env.reset()
    for _ in range(40):
        env.step(drawn(generator))
    copied, pickled = copy.deepcopy(env), pickle.loads(pickle.dumps(env))
    over = False
    while not over:
        chosen = drawn(generator)
        shown, paid, over, *_ = env.step(chosen)
        for other in (copied, pickled):
            seen, reward, ended, *_ = other.step(chosen)
            assert (reward, ended) == (paid, over)
            assert all(seen[key].tobytes() == shown[key].tobytes() for key in shown)


def test_a_refused_action_changes_nothing():
    env = SchedulingEnv(**keywords_of())
    env.reset()
    before = [array.tobytes() for array in env._state.arrays.values()]
    for wrong in (np.full(len(NUMBERS), 1.5), 99, np.nan, "one"):
        with pytest.raises(ActionError, match="action 'trials' must"):
            env.step(wrong)
    assert [array.tobytes() for array in env._state.arrays.values()] == before


@pytest.mark.parametrize("form", ["dict", "flat"])
def test_observations_have_the_places_of_their_fields(form):
    env = gymnasium.make("HPCBatch-v0", scenario="tiny", action="trials", observation=form)
    check_env(env.unwrapped, skip_render_check=True)
    places = flat_places(env.unwrapped.n_slots, controls=True, trials=True)
    shown, _ = env.reset(seed=0)
    if form == "flat":
        assert shown.shape == (places["action_mask"].stop,)
    else:
        assert shown["cluster"].shape == (places["cluster"].stop - places["cluster"].start,)


@given(workload=busy_workloads(), mode=modes(), seed=st.integers(0, 2**16))
def test_nothing_is_seen_of_a_run_before_its_end(workload, mode, seed):
    """Play until some instant; jobs that have not ended by then may run as long as they like."""
    generator = np.random.default_rng(seed)
    until = int(generator.integers(workload.submit_time[-1] + 60))
    env = env_with(workload, "trials", 100, backfill=mode)
    seen, actions = [], []
    shown, _ = env.reset()
    over = env.schedule().start_time.min() >= 0
    while not over and env.now < until:
        seen.append(shown)
        actions.append(drawn(generator))
        shown, _, over, _, _ = env.step(actions[-1])
    state, n = env._state, len(workload)
    running = set(state.ending_job[0, : state.n_running[0]].tolist())
    has_ended = np.array([j not in running for j in range(n)])
    has_ended &= state.start_time[0, :n] >= 0
    # Whoever was killed ran on past the kill, and who runs ends behind this instant at the least.
    longer = np.where(has_ended, workload.run_time, workload.run_time + 7)
    other = env_with(replace(workload, run_time=longer), "trials", 100, backfill=mode)
    shown, _ = other.reset()
    for expected, chosen in zip(seen, actions, strict=True):
        for key in expected:
            np.testing.assert_array_equal(shown[key], expected[key])
        shown, _, _, _, _ = other.step(chosen)


def test_what_is_seen_of_trials_is_what_is_known():
    env = SchedulingEnv(**keywords_of())
    generator = np.random.default_rng(6)
    shown, _ = env.reset()
    over, seen = False, np.zeros(4)
    while not over:
        state, M = env._state, BUSY.machine_processors
        slot = env._slot[env._slot >= 0]
        fields = shown["jobs"].reshape(env.n_slots, -1)[: len(slot), len(JobField) :][:, :4].T
        on_trial = np.isin(slot, state.job_on_trial[0, : state.n_trials[0]])
        age = np.where(on_trial, state.now[0] - state.since[0, slot], 0)
        longest = np.maximum(state.ran[0, slot], age)
        expected = [
            on_trial,
            state.n_tried[0, slot] / 9,
            state.n_gave_way[0, slot] / 9,
            np.minimum(np.log1p(np.maximum(longest, 0) / 60) / np.log1p(43_200), 1),
        ]
        np.testing.assert_allclose(fields, expected, rtol=1e-6)
        seen += np.max(expected, axis=1)
        trial = BUSY.processors[state.job_on_trial[0, : state.n_trials[0]]].sum()
        running = BUSY.processors[state.ending_job[0, : state.n_running[0]]].sum()
        idle = M - running - state.busy[0]
        np.testing.assert_allclose(
            shown["cluster"][29:32] * M, [idle, trial, state.guaranteed[0]], atol=1e-5
        )
        shown, _, over, *_ = env.step(drawn(generator))
    assert (seen > 0).all()


@pytest.mark.parametrize("form", ["dict", "flat"])
@pytest.mark.parametrize("action", ("trials", "controls", "job"))
def test_a_saved_model_is_known_by_its_spaces(action, form):
    keywords = {"action": action, "n_slots": 8}
    env = SchedulingEnv("tiny", observation=form, **keywords)
    found = keywords_of_model(env, "model.zip")
    assert found == keywords | ({"observation": "flat"} if form == "flat" else {})
