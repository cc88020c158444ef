"""What is shown about trials of chances to end and of running jobs: against the reference."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference_trial_fields as reference
from engines import workload_of
from env_cases import busy_workload, episodes_of
from hpcgym.core.observation_fields import (
    ClusterField,
    ControlsField,
    JobField,
    JobTrialField,
    RunningField,
    TrialField,
)
from hpcgym.core.predictor import luck_of
from hpcgym.env.observation import fields_of
from hpcgym.env.scheduling import SchedulingEnv
from strategies import busy_workloads, one_of

MAY_BE_LENT = JobTrialField.MAY_BE_LENT


def past_of(workload, user):
    """Return the run times of a user's jobs that ended before the episode, oldest first."""
    row = workload.user_index[np.flatnonzero(workload.user == user)[0]]
    n = int(workload.history.completed[row])
    ring = workload.history.run_time[row]
    return [int(ring[at % len(ring)]) for at in range(max(n - len(ring), 0), n)]


def check_shown(env, shown):
    """Compare an observation with what is known of the jobs that ended, and of those that run."""
    state, jobs, now, M = env._state, env.workload, env.now, env.workload.machine_processors
    n, trial = len(jobs), env.settings.backfill.trial
    executed = np.minimum(jobs.run_time, jobs.requested_time)
    started, useful = state.start_time[0, :n], np.arange(n)
    running = state.ending_job[0, : state.n_running[0]].tolist()
    on_trial = set(state.job_on_trial[0, : state.n_trials[0]].tolist())
    ended = [j for j in useful if started[j] >= 0 and j not in running]
    ended.sort(key=lambda j: (started[j] + executed[j], j))
    every = executed[ended].tolist()
    parameter = env._sim.fields.backfill_parameter
    limit, kills = int(parameter[9]), int(parameter[10])
    numbers = reference.Trial(*parameter[[11, 12, 13, 14, 16]].tolist())
    may_go = jobs.requeue if jobs.requeue is not None else np.ones(n, dtype=bool)
    overdue = useful < state.next_overdue[0]
    listed = [
        reference.Running(
            j,
            now - int(started[j]),
            *(int(column[j]) for column in (jobs.processors, jobs.requested_time)),
            int(jobs.requested_time[j]),
            int(state.n_gave_way[0, j]),
            bool(may_go[j]),
            bool(overdue[j]),
        )
        for j in running
        if j not in on_trial
    ]
    waiting = [j for j in useful if jobs.submit_time[j] <= now and started[j] < 0]
    idle = int(state.free[0] - state.on_trial[0] - state.kept[0])
    given_up = 0
    if not any(overdue[j] and j not in on_trial for j in waiting):
        given_up = reference.given_up(listed, numbers, idle, int(state.guaranteed[0]), M)
    rows = shown["jobs"].reshape(env.n_slots, -1)[:, len(JobField) :]
    for slot, job in enumerate(env._slot[env._slot >= 0].tolist()):
        user = int(jobs.user[job])
        own = past_of(jobs, user) + [int(executed[j]) for j in ended if jobs.user[j] == user]
        age = now - int(state.since[0, job]) if job in on_trial else 0
        ran = max(int(state.ran[0, job]), age)
        tried, gave_way = int(state.n_tried[0, job]), int(state.n_gave_way[0, job])
        one = reference.Waiting(
            int(jobs.processors[job]),
            job in on_trial,
            tried,
            int(state.ran[0, job]),
            state.killed_at[0, job] == now,
            bool(may_go[job]),
        )
        expected = {
            JobTrialField.IS_ON_TRIAL: job in on_trial,
            JobTrialField.TRIED: tried / 9,
            JobTrialField.GAVE_WAY: gave_way / 9,
            JobTrialField.LOG_RAN: reference.log_time(ran),
            JobTrialField.MAY_BE_LENT: reference.may_be_lent(one, limit, kills, idle, given_up),
            JobTrialField.CHANCE_TO_END: reference.chance(own, every, ran, limit),
        }
        for field, value in expected.items():
            assert rows[slot, field] == pytest.approx(float(value), abs=1e-6), (
                job,
                field.field_name,
            )
    first = len(ClusterField) + len(TrialField)
    first += len(ControlsField) if env._config.controls else 0
    got = shown["cluster"][first:].reshape(-1, len(RunningField))
    np.testing.assert_allclose(got, reference.rows(listed, M), atol=1e-6)
    assert trial is not None
    return bool(listed), len(every)


def play_checked(env, seed):
    """Play an episode at random, and check all that is shown."""
    generator = np.random.default_rng(seed)
    shown, _ = env.reset()
    over, seen = env.schedule().start_time.min() >= 0, []
    while not over:
        seen.append(check_shown(env, shown))
        action = generator.uniform(-1, 1, env.action_space.shape).astype(np.float32)
        action[generator.random(len(action)) < 0.1] = -1  # a limit of 0 s, for one
        shown, _, over, *_ = env.step(action)
    return seen


@given(
    workload=busy_workloads(),
    mode=one_of(("limit=5,young=60", "limit=20,young=200,request=10", "limit=40,overhead=5")),
    seed=st.integers(0, 99),
)
def test_chances_and_running_jobs_are_those_of_the_reference(workload, mode, seed):
    keywords = {"action": "trials", "backfill": f"easy+trial:{mode}", "n_slots": 8}
    play_checked(SchedulingEnv(episodes_of(workload), **keywords), seed)


def test_they_are_so_where_many_run_and_some_may_not_be_killed():
    workload = busy_workload(3, n=90, processors=64)
    flags = luck_of(workload.job_id, 1) < 0.8
    workload = replace(workload, requeue=flags)
    keywords = {"action": "trials", "n_slots": 8}
    keywords["backfill"] = "easy+trial:limit=300,young=1800,request=600"
    seen = play_checked(SchedulingEnv(episodes_of(workload), **keywords), 1)
    some_run, ended = zip(*seen, strict=True)
    assert any(some_run) and max(ended) > 20


@pytest.mark.parametrize(("share", "lent"), [(0.5, [1, 0]), (1, [1, 1])])
def test_what_may_go_on_trial_and_give_way_is_that_of_the_instant_before_its_pass(share, lent):
    """A runs on 2 of 4 processors and may give way; B needs one at 10, and C three.

    B fits what idles. C needs a processor of A, and guaranteed trials of a share of 3/4.
    """
    rows = [(0, 100, 100, 2), (10, 20, 20, 1), (10, 200, 200, 3)]
    env = SchedulingEnv(
        episodes_of(workload_of(rows, 4)),
        action="trials",
        backfill=f"easy+trial:young=60,request=50,share={share}",
        decide="event",
        n_slots=8,
    )
    env.reset()
    shown = env.step(np.zeros(8, dtype=np.float32))[0]
    assert env.now == 10
    jobs = shown["jobs"].reshape(8, -1)[:2]
    found = dict(zip(env._slot[:2].tolist(), jobs[:, len(JobField) + MAY_BE_LENT], strict=True))
    assert found == dict(zip([1, 2], lent, strict=True))
    of_trials = shown["cluster"][len(ClusterField) + len(ControlsField) :][: len(TrialField)]
    assert of_trials.tolist() == [0.5, 0, 0, 0.5]


def test_a_start_that_ends_a_trial_is_expected_to_end_later_by_the_overhead():
    """At 50 H ends the trial of P, and runs from 150 on, for 3,550 s; at 60 X is submitted.

    So H is expected to end at 3,700, 40 s after the horizon of an hour.
    """
    rows = [(0, 50, 50, 1, 1), (1, 3550, 3550, 2, 2), (2, 5000, 5000, 1, 3), (60, 9, 9, 1, 4)]
    env = SchedulingEnv(
        episodes_of(workload_of(rows, 2)),
        action="trials",
        backfill="easy+trial:limit=600,overhead=100",
        decide="event",
    )
    shown = env.reset()[0]
    while env.now < 60:
        shown = env.step(np.zeros(8, dtype=np.float32))[0]
    place = len(ClusterField) + ControlsField.EXPECTED_FREE_IN_3600_S
    assert shown["cluster"][place : place + 2].tolist() == [0, 1]


def test_a_user_counts_the_more_the_more_jobs_have_ended():
    """Nothing known: 1/2; four long jobs: 1/4; jobs that ran shorter than it say nothing."""
    assert reference.chance([], [], 0, 300) == 0.5
    assert reference.chance([900] * 4, [], 0, 300) == 0.25
    assert reference.chance([100] * 4, [], 200, 300) == 0.5
    assert reference.chance([100] * 4, [], 0, 300) == 0.75
    assert reference.chance([100] * 4, [], 300, 300) == 0


def test_only_actions_about_trials_show_them():
    for others in ({}, {"controls": True}):
        of_job, of_cluster = fields_of(**others)
        assert not {*JobTrialField} & {*of_job[len(JobField) :]}
        assert len(of_cluster) <= len(ClusterField) + len(ControlsField)
    of_job, of_cluster = fields_of(trials=True)
    assert len(of_job) == len(JobField) + 6
    assert len(of_cluster) == len(ClusterField) + 4 + 16 * 5
