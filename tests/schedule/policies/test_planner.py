"""The planner against its reference, and what must hold: causality, copies, pickles, refusals."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hpcgym
import reference_planner
from engines import check_copies_go_on_alike, jobs_of
from hpcgym.base.errors import PolicyError
from hpcgym.core.history import RING_JOBS
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.simulator import Simulator
from hpcgym.schedule.policies.planner import Planner
from reference_prediction import CORRECTIONS
from strategies import THRESHOLDS_S, workloads

CANDIDATES = (*reference_planner.CANDIDATES, "LPF", "LQF")


def policy_of(**stated):
    """Return a planner as a policy."""
    return hpcgym.as_policy(Planner(**stated))


def ended_of_users(workload):
    """Return what is known of each user at time 0, oldest job first."""
    known, history = {}, workload.history
    for user, row in dict(zip(workload.user.tolist(), workload.user_index, strict=True)).items():
        completed = int(history.completed[row])
        cells = [k % RING_JOBS for k in range(max(0, completed - RING_JOBS), completed)]
        columns = (history.run_time, history.requested_time, history.processors)
        known[user] = list(zip(*(c[row, cells].tolist() for c in columns), strict=True))
    return known


def first_difference(workload, planner, **settings):
    """Return the first job that the package starts at another second than the reference."""
    ours = hpcgym.simulate(workload, policy_of(**planner), **settings)
    theirs, moves = reference_planner.simulate(
        jobs_of(workload),
        workload.machine_processors,
        history=ended_of_users(workload),
        **planner,
        **settings,
    )
    for job, start in enumerate(theirs):
        if (ours.start_time[job], ours.backfilled[job]) != start[:2]:
            return [(job, ours.start_time[job], ours.backfilled[job], start)], moves
    return [], moves


@given(data=st.data())
def test_the_planner_starts_every_drawn_job_as_its_reference_does(data):
    workload = data.draw(workloads(max_jobs=20))
    settings = {
        "threshold": data.draw(st.sampled_from(THRESHOLDS_S)),
        "kill_at_limit": data.draw(st.booleans()),
        "backfill": data.draw(st.sampled_from(("easy", "easy", "none"))),
        "estimates": data.draw(st.sampled_from(("requested", "recent"))),
        "correction": data.draw(st.sampled_from(CORRECTIONS)),
    }
    if settings["backfill"] == "easy":
        settings["backfill_order"] = data.draw(st.sampled_from((None, None, "SPF", "LQF")))
    is_corrected = settings["correction"] != "none"  # ties of ends then draw in another order
    chosen = st.lists(st.sampled_from(CANDIDATES), min_size=1, max_size=4, unique=True)
    planner = {
        "candidates": tuple(data.draw(chosen)),
        "rollouts": data.draw(st.sampled_from((1, 5, 32))),
        "samples": 0 if is_corrected else data.draw(st.sampled_from((0, 0, 1, 3))),
        "horizon": data.draw(st.sampled_from((1, 20, 1_000))),
        "seed": data.draw(st.sampled_from((0, 7))),
    }
    assert not first_difference(workload, planner, **settings)[0]


@pytest.mark.long
@pytest.mark.parametrize(
    ("samples", "n_jobs"), [(0, 500), (2, 200), pytest.param(2, 500, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("log", ["KTH-SP2-1996-2.1-cln", "SDSC-SP2-1998-4.2-cln"])
def test_the_first_jobs_of_real_logs_start_as_the_reference_says(real_log, log, samples, n_jobs):
    part = hpcgym.load_workload(real_log(log)).select(np.arange(n_jobs))
    planner = {"rollouts": 16, "samples": samples}
    difference, moves = first_difference(part, planner, threshold=200_000)
    assert not difference and (moves > 5 or samples > 0)


@pytest.mark.long
@pytest.mark.parametrize("correction", CORRECTIONS)
def test_where_run_times_are_predicted_jobs_start_as_the_reference_says(correction):
    part = hpcgym.load_workload("synthetic-256").select(np.arange(700))
    settings = {"estimates": "recent", "correction": correction, "threshold": 200_000}
    assert not first_difference(part, {"rollouts": 8}, **settings)[0]


@pytest.mark.long
@pytest.mark.parametrize("policy", ["SAF", "FCFS", "SMITH-HISTORY", "SPF-HISTORY"])
def test_a_single_candidate_without_moves_gives_the_schedule_of_that_policy(policy):
    log = hpcgym.load_workload("synthetic-256")
    ours = hpcgym.simulate(log, policy_of(candidates=(policy,), rollouts=1), threshold=100_000)
    alone = hpcgym.simulate(log, policy, threshold=100_000)
    np.testing.assert_array_equal(ours.start_time, alone.start_time)


@pytest.mark.parametrize(("one", "same"), [("depth:k=1", "easy"), ("conservative", "depth:k=inf")])
def test_modes_that_are_the_same_are_planned_alike(one, same):
    log = hpcgym.load_workload("synthetic-256").select(np.arange(400))
    policy = policy_of(rollouts=8, samples=1)
    ours, theirs = (hpcgym.simulate(log, policy, backfill=mode) for mode in (one, same))
    np.testing.assert_array_equal(ours.start_time, theirs.start_time)


@pytest.mark.long
@pytest.mark.parametrize("samples", [0, 2])
def test_copies_and_pickles_choose_as_their_original(samples):
    log = hpcgym.load_workload("synthetic-256").select(np.arange(2_000))
    settings = SchedulerSettings(policy=policy_of(rollouts=16, samples=samples))
    check_copies_go_on_alike(Simulator(log, settings))


@pytest.mark.long
def test_another_seed_draws_other_jobs_to_come():
    log = hpcgym.load_workload("synthetic-256").select(np.arange(2_000))
    starts = [
        hpcgym.simulate(log, policy_of(rollouts=12, samples=2, seed=seed)).start_time
        for seed in (0, 1)
    ]
    assert (starts[0] != starts[1]).any()


@pytest.mark.long
@pytest.mark.parametrize("samples", [0, 2])
def test_nothing_is_known_of_what_has_not_happened(samples):
    log = hpcgym.load_workload("synthetic-256").select(np.arange(1_500))
    policy = policy_of(rollouts=12, samples=samples)
    made = hpcgym.simulate(log, policy)
    now = int(log.submit_time[1_000])
    ended = made.start_time + np.minimum(log.run_time, log.requested_time) <= now
    longer = replace(log, run_time=np.where(ended, log.run_time, log.requested_time))
    known = longer.select(np.flatnonzero(log.submit_time <= now))
    again = hpcgym.simulate(known, policy)
    before = made.start_time[: len(known)] <= now
    np.testing.assert_array_equal(again.start_time[before], made.start_time[: len(known)][before])
    assert (again.start_time[~before] > now).all() and (~ended[: len(known)]).sum() > 5


@pytest.mark.long
def test_no_move_is_tried_once_the_time_is_spent():
    log = hpcgym.load_workload("synthetic-256").select(np.arange(1_500))
    at_once = hpcgym.simulate(log, policy_of(rollouts=500, milliseconds=1e-6))
    none = hpcgym.simulate(log, policy_of(rollouts=1))
    moved = hpcgym.simulate(log, policy_of(rollouts=500))
    np.testing.assert_array_equal(at_once.start_time, none.start_time)
    assert (moved.start_time != none.start_time).any()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Planner(()), "at least one candidate"),
        (lambda: Planner(("WFP3",)), "cannot be planned with"),
        (lambda: Planner(("DYNP",)), "cannot be planned with"),
        (lambda: Planner(("SAFE",)), "SAF"),
        (lambda: Planner(rollouts=0), "rollouts must be at least 1"),
        (lambda: Planner(samples=-1), "samples must be at least 0"),
        (lambda: Planner(horizon=0), "horizon must be at least 1"),
        (lambda: Planner(milliseconds=0), "milliseconds must be above 0"),
        (lambda: SchedulerSettings("PLANNER", backfill_order="SMITH-HISTORY"), "users' records"),
        (lambda: SchedulerSettings("PLANNER", backfill_order="SMITH"), "users' records"),
        (lambda: SchedulerSettings("DYNP", backfill_order="SMITH-HISTORY"), "users' records"),
        (lambda: SchedulerSettings("PLANNER", event_semantics="pyss"), "event_semantics 'batch'"),
        (lambda: SchedulerSettings("PLANNER", backfill="conservative:compress=shift"), "plans"),
    ],
)
def test_what_cannot_be_planned_with_is_refused(make, message):
    with pytest.raises(PolicyError, match=message):
        make()
