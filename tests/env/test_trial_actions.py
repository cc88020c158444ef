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
from gymnasium.vector import SyncVectorEnv
from gymnasium.wrappers import TimeLimit
from hypothesis import given
from hypothesis import strategies as st

import hpcgym
import reference
import reference_capped
import reference_index
from engines import history_of_users, jobs_of, records_of_users, workload_of
from env_cases import busy_workload, env_with, episodes_of, starts_under
from hpcgym.agent.sb3_model import keywords_of as keywords_of_model
from hpcgym.agent.shelf import load_agent
from hpcgym.core.actions.trials import LENT, NUMBERS
from hpcgym.core.constants import GAVE_WAY, TRIAL_OVER
from hpcgym.core.observation_fields import ClusterField, JobField, JobTrialField
from hpcgym.core.workload import Workload
from hpcgym.env.observation import flat_places
from hpcgym.env.scheduling import SchedulingEnv
from hpcgym.errors import ActionError, ScenarioError
from reference_controls import Lender, TrialsDecided
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


# --- Action `trials` ------------------------------------------------------------------------------


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
    env = SchedulingEnv(action="trials")
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
    assert str(SchedulingEnv("tiny", action="trials").settings.backfill) == LENT


@pytest.mark.parametrize("backfill", ["easy", "cost-benefit:cap=0.97", "depth:k=2"])
def test_modes_without_trials_are_refused(backfill):
    with pytest.raises(ScenarioError, match=r"knows none; choose 'cost-benefit:cap=0\.97.*'"):
        SchedulingEnv("tiny", action="trials", backfill=backfill)


# --- Action `lend` --------------------------------------------------------------------------------


def column(shown: Any, env: SchedulingEnv, field: JobTrialField) -> np.ndarray:
    """Return a field about trials of the jobs in all slots."""
    return shown["jobs"].reshape(env.n_slots, -1)[:, len(JobField) + field]


def by_the_rule(env: SchedulingEnv, shown: Any) -> int:
    """Return what the rule would do next: the slot of its next candidate, or to stop."""
    slot, jobs = env._slot, env.workload
    q, M = jobs.processors[slot], jobs.machine_processors
    never_tried = [column(shown, env, JobTrialField[name]) == 0 for name in ("TRIED", "LOG_RAN")]
    idle, _, guaranteed, _ = np.rint(shown["cluster"][len(ClusterField) :][:4] * M)
    share = env.settings.backfill.trial.share * M
    may_go = np.flatnonzero(env.action_masks()[:-1])
    area = np.maximum(env._episode.table.estimate[slot], 10) * q
    in_turn = may_go[np.lexsort((slot[may_go], area[may_go]))]
    chosen = [k for k in in_turn if q[k] <= idle]
    if not chosen or env._state.some_gave_way[0]:
        chosen = [
            k for k in in_turn if np.all(never_tried, axis=0)[k] and q[k] + guaranteed <= share
        ]
    return int(chosen[0]) if chosen else env.n_slots


@given(
    workload=busy_workloads(),
    mode=modes(),
    threshold=st.sampled_from((None, 30, 100, 400)),
    policy=st.sampled_from(("SAF", "FCFS", "SMITH-URGENT", "SMITH-REG")),
)
def test_the_choices_of_the_rule_make_its_schedule(workload, mode, threshold, policy):
    episodes = episodes_of(workload, threshold=threshold, policy=policy)
    env = SchedulingEnv(episodes, action="lend", backfill=mode)
    shown, info = env.reset()
    over = env.schedule().start_time.min() >= 0
    while not over:
        shown, _, over, _, info = env.step(by_the_rule(env, shown))
    schedule = hpcgym.simulate(workload, policy, backfill=mode, threshold=threshold)
    made = env.schedule()
    for name in ("start_time", "backfilled", "thresholded"):
        assert getattr(made, name).tolist() == getattr(schedule, name).tolist(), name
    vain, n = schedule.attempts, len(workload)
    lives = lives_of(env)
    for name, ended in (
        ("n_tried", vain.reason != GAVE_WAY),
        ("n_gave_way", vain.reason == GAVE_WAY),
    ):
        assert lives[name] == np.bincount(vain.job[ended], minlength=n).tolist(), name
    cleared = (vain.reason == TRIAL_OVER) * env.settings.backfill.trial.overhead
    wasted = np.bincount(vain.job, weights=vain.end - vain.taken + cleared, minlength=n)
    assert lives["wasted"] == wasted.tolist()
    assert info.get("invalid_actions", 0) == 0


def test_the_last_processor_of_the_share_is_for_a_guaranteed_trial_once_a_job_has_given_way():
    """A and V hold 4 processors, half of which may be guaranteed; B, C and D wait from 10 on.

    V gives way to B and leaves 2 idle. C takes one, guaranteed. D takes the last as a plain trial.
    """
    rows = [(0, 40, 40, 1), (0, 100, 100, 3), *[(10, 30, 60, 1)] * 3]
    mode = "easy+trial:young=60,request=50,share=0.5"
    env = env_with(workload_of(rows, 4), "lend", backfill=mode)
    env.reset()
    found = []
    for job in (2, 3):
        shown = env.step(env._slot.tolist().index(job))[0]
        assert env.now == 10
        found.append((shown["cluster"][len(ClusterField) :][:3] * 4).tolist())
    assert found == [[2, 1, 1], [1, 2, 2]]


@given(
    workload=busy_workloads(),
    mode=modes(),
    threshold=st.sampled_from((None, 30, 100, 400)),
    n_slots=st.sampled_from((4, 8, 128)),
    seed=st.integers(0, 2**16),
)
def test_random_choices_make_the_schedule_of_the_reference(
    workload, mode, threshold, n_slots, seed
):
    episodes = episodes_of(workload, threshold=threshold, policy="SMITH-URGENT")
    env = SchedulingEnv(episodes, action="lend", backfill=mode, n_slots=n_slots)
    generator = np.random.default_rng(seed)
    _, info = env.reset()
    chosen, seen, wrong = [], [], 0
    over = env.schedule().start_time.min() >= 0
    while not over:
        masks = env.action_masks()
        assert masks[-1] and len(masks) == n_slots + 1
        visible = set(env._slot[env._slot >= 0].tolist())
        may_go = set(env._slot[np.flatnonzero(masks[:-1])].tolist())
        seen.append((env.now, may_go, visible))
        among = np.flatnonzero(masks)[: -1 if len(may_go) and generator.random() < 0.8 else None]
        if generator.random() < 0.1:
            among = np.arange(n_slots + 1)
        choice = int(generator.choice(among))
        wrong += choice < n_slots and not masks[choice]
        chosen.append(None if choice == n_slots or env._slot[choice] < 0 else env._slot[choice])
        _, _, over, _, info = env.step(choice)
    starts, machine = by_reference(
        workload,
        Lender,
        reference_capped.SMITH_URGENT,
        mode,
        threshold,
        chosen=list(chosen),
        noted=[],
    )
    check_starts(env, starts)
    check_lives(env, machine)
    assert [
        (now, set(jobs) & visible)
        for (now, jobs), (_, _, visible) in zip(machine.noted, seen, strict=True)
    ] == [(now, may_go) for now, may_go, _ in seen]
    assert info.get("invalid_actions", 0) == wrong


# --- Both kinds -----------------------------------------------------------------------------------

BUSY = busy_workload(4, n=150, processors=64)
MODE = (
    "easy:cap=0.5,long=600,by=request+trial:limit=200,kills=9,young=3000,request=200,times=9,"
    "share=0.5,victim=0.5,overhead=10"
)
KINDS = ("trials", "lend")


def keywords_of(action: str, **others: Any) -> dict[str, Any]:
    """Return the keywords of an environment whose trials are many."""
    episodes = episodes_of(BUSY, threshold=10_000)
    return {"scenario": episodes, "action": action, "backfill": MODE, "n_slots": 8} | others


def drawn(generator: np.random.Generator, masks: np.ndarray) -> Any:
    """Draw an action for each environment, now and then one that the masks forbid."""
    if masks.shape[1] == len(NUMBERS):
        return generator.choice(VALUES, masks.shape).astype(np.float32)
    allowed = [generator.choice(np.flatnonzero(mask)) for mask in masks]
    wrong = generator.random(len(masks)) < 0.05
    return np.where(wrong, generator.integers(masks.shape[1], size=len(masks)), allowed)


@pytest.mark.parametrize("form", ["dict", "flat"])
@pytest.mark.parametrize("action", KINDS)
def test_vectors_are_equal_to_scalars_to_the_bit(action, form):
    keywords = keywords_of(action, observation=form, reward="bsld")
    theirs = SyncVectorEnv([lambda: TimeLimit(SchedulingEnv(**keywords), 60) for _ in range(3)])
    ours = gymnasium.make_vec(
        "HPCBatch-v0", num_envs=3, threads=2, max_episode_steps=60, **keywords
    )
    generator = np.random.default_rng(1)
    one, other = theirs.reset(seed=2), ours.reset(seed=2)
    n_over = 0
    for _ in range(200):
        for part in [...] if form == "flat" else one[0]:
            assert one[0][part].tobytes() == other[0][part].tobytes()
        masks = ours.unwrapped.action_masks()
        assert np.array_equal(masks, np.stack(theirs.call("action_masks")))
        assert np.array_equal(masks, np.stack(ours.unwrapped.call("action_masks")))
        chosen = drawn(generator, masks)
        one, other = theirs.step(chosen), ours.step(chosen)
        for place in (1, 2, 3):
            assert one[place].tobytes() == other[place].tobytes()
        n_over += int(one[2].sum() + one[3].sum())
    assert n_over > 3


@pytest.mark.parametrize("action", KINDS)
@pytest.mark.parametrize(
    ("reward", "metric"),
    [("bsld", "mean_bsld"), ("bsld_start", "mean_bsld"), ("wait", "mean_wait_time")],
)
def test_rewards_add_up_to_the_metric(action, reward, metric):
    env = SchedulingEnv(**keywords_of(action, reward=reward))
    generator, over, total = np.random.default_rng(4), False, 0.0
    env.reset()
    n_between = 0
    while not over:
        before = env.now
        _, paid, over, _, info = env.step(drawn(generator, env.action_masks()[np.newaxis])[0])
        total += paid
        n_between += env.now == before
    assert total == pytest.approx(-info[metric], rel=1e-9)
    assert n_between > 5 or action == "trials"


def test_time_stands_still_between_choices_and_costs_nothing():
    env = SchedulingEnv(**keywords_of("lend", backfill="easy+trial:limit=60"))
    env.reset()
    over, n_between = False, 0
    while not over:
        before = env.now
        choice = int(np.flatnonzero(env.action_masks())[0])
        _, paid, over, _, _ = env.step(choice)
        if env.now == before and not over:
            n_between += 1
            assert paid == 0
    assert n_between > 5


@pytest.mark.parametrize("action", KINDS)
def test_copies_go_on_alike(action):
    env = SchedulingEnv(**keywords_of(action))
    generator = np.random.default_rng(5)
    env.reset()
    for _ in range(40):
        env.step(drawn(generator, env.action_masks()[np.newaxis])[0])
    copied, pickled = copy.deepcopy(env), pickle.loads(pickle.dumps(env))
    over = False
    while not over:
        masks = env.action_masks()
        chosen = drawn(generator, masks[np.newaxis])[0]
        for other in (copied, pickled):
            assert np.array_equal(other.action_masks(), masks)
        shown, paid, over, *_ = env.step(chosen)
        for other in (copied, pickled):
            seen, reward, ended, *_ = other.step(chosen)
            assert (reward, ended) == (paid, over)
            assert all(seen[key].tobytes() == shown[key].tobytes() for key in shown)


@pytest.mark.parametrize("action", KINDS)
def test_a_refused_action_changes_nothing(action):
    env = SchedulingEnv(**keywords_of(action))
    env.reset()
    masks, now = env.action_masks(), env.now
    for wrong in (np.full(len(NUMBERS), 1.5), 99, np.nan, "one"):
        with pytest.raises(ActionError, match=f"action '{action}' must"):
            env.step(wrong)  # a number is no vector, and a vector no number
    assert np.array_equal(env.action_masks(), masks) and env.now == now


@pytest.mark.parametrize("form", ["dict", "flat"])
@pytest.mark.parametrize("action", KINDS)
def test_observations_have_the_places_of_their_fields(action, form):
    env = gymnasium.make("HPCBatch-v0", scenario="tiny", action=action, observation=form)
    check_env(env.unwrapped, skip_render_check=True)
    places = flat_places(env.unwrapped.n_slots, controls=action == "trials", trials=True)
    shown, _ = env.reset(seed=0)
    if form == "flat":
        assert shown.shape == (places["action_mask"].stop,)
    else:
        assert shown["cluster"].shape == (places["cluster"].stop - places["cluster"].start,)


@given(workload=busy_workloads(), mode=modes(), seed=st.integers(0, 2**16))
@pytest.mark.parametrize("action", KINDS)
def test_nothing_is_seen_of_a_run_before_its_end(action, workload, mode, seed):
    """Play until some instant; jobs that have not ended by then may run as long as they like."""
    generator = np.random.default_rng(seed)
    until = int(generator.integers(workload.submit_time[-1] + 60))
    env = env_with(workload, action, 100, backfill=mode)
    seen, actions = [], []
    shown, _ = env.reset()
    over = env.schedule().start_time.min() >= 0
    while not over and env.now < until:
        seen.append(shown)
        actions.append(drawn(generator, env.action_masks()[np.newaxis])[0])
        shown, _, over, _, _ = env.step(actions[-1])
    state, n = env._state, len(workload)
    running = set(state.ending_job[0, : state.n_running[0]].tolist())
    has_ended = np.array([j not in running for j in range(n)])
    has_ended &= state.start_time[0, :n] >= 0
    # Whoever was killed ran on past the kill, and who runs ends behind this instant at the least.
    longer = np.where(has_ended, workload.run_time, workload.run_time + 7)
    other = env_with(replace(workload, run_time=longer), action, 100, backfill=mode)
    shown, _ = other.reset()
    for expected, chosen in zip(seen, actions, strict=True):
        for key in expected:
            np.testing.assert_array_equal(shown[key], expected[key])
        shown, _, _, _, _ = other.step(chosen)


def test_what_is_seen_of_trials_is_what_is_known():
    env = SchedulingEnv(**keywords_of("lend"))
    shown, _ = env.reset()
    over, seen = False, np.zeros(len(JobTrialField) - 1)
    while not over:
        state, M = env._state, BUSY.machine_processors
        slot = env._slot[env._slot >= 0]
        fields = [column(shown, env, field)[: len(slot)] for field in list(JobTrialField)[:5]]
        on_trial = np.isin(slot, state.job_on_trial[0, : state.n_trials[0]])
        age = np.where(on_trial, state.now[0] - state.since[0, slot], 0)
        longest = np.maximum(state.ran[0, slot], age)
        expected = [
            on_trial,
            state.n_tried[0, slot] / 9,
            state.n_gave_way[0, slot] / 9,
            np.minimum(np.log1p(np.maximum(longest, 0) / 60) / np.log1p(43_200), 1),
            env.action_masks()[: len(slot)],
        ]
        np.testing.assert_allclose(fields, expected, rtol=1e-6)
        seen += np.max(expected, axis=1)
        trial = BUSY.processors[state.job_on_trial[0, : state.n_trials[0]]].sum()
        running = BUSY.processors[state.ending_job[0, : state.n_running[0]]].sum()
        idle = M - running - state.busy[0]
        np.testing.assert_allclose(
            shown["cluster"][19:22] * M, [idle, trial, state.guaranteed[0]], atol=1e-5
        )
        chosen = np.flatnonzero(env.action_masks())
        shown, _, over, *_ = env.step(int(chosen[0]))
    assert (seen > 0).all()


def test_lending_takes_no_epochs_and_needs_trials():
    with pytest.raises(ScenarioError, match=r"decides after each pass.*it takes no decide"):
        SchedulingEnv("tiny", action="lend", decide="event")
    with pytest.raises(ScenarioError, match=r"decides after each pass.*it takes no decide"):
        SchedulingEnv("tiny", action="lend", decide=300)
    with pytest.raises(ScenarioError, match=r"'lend' decides about trial runs, .* 'easy' knows"):
        SchedulingEnv("tiny", action="lend", backfill="easy")
    assert str(SchedulingEnv("tiny", action="lend").settings.backfill) == LENT


@pytest.mark.parametrize("form", ["dict", "flat"])
@pytest.mark.parametrize("action", (*KINDS, "controls", "job"))
def test_a_saved_model_is_known_by_its_spaces(action, form):
    keywords = {"action": action, "n_slots": 8}
    env = SchedulingEnv("tiny", observation=form, **keywords)
    found = keywords_of_model(env, "model.zip")
    assert found == keywords | ({"observation": "flat"} if form == "flat" else {})
