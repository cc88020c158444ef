"""The cap, cost-benefit backfilling and urgency: against the reference, and what must hold."""

import math
from dataclasses import replace

import hypothesis
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hpcgym
from engines import first_difference, whole, workload_of
from hpcgym.base.errors import PolicyError
from hpcgym.core.index_policy import urgent_policy
from hpcgym.core.parts.cost_benefit import CostBenefit
from strategies import busy_workloads

KTH, CTC = "KTH-SP2-1996-2.1-cln", "CTC-SP2-1996-3.1-cln"
H = "cost-benefit:cap=0.97"


@st.composite
def sweeps(draw):
    """Draw jobs that come at once behind a head; one that ends by the shadow time takes room."""
    free = draw(st.integers(4, 8))
    first = draw(st.integers(1, free - 2))
    rows = [(0, 600, 600, 10 - free), (1, 5_000, 5_000, 10), (1, 60, 60, first)]
    for _ in range(draw(st.integers(2, 5))):
        request = draw(st.sampled_from((700, 1_000, 2_000)))
        rows.append((1, request, request, draw(st.integers(1, free))))
    return workload_of([(*row, -1) for row in rows], 10)


@hypothesis.settings(max_examples=20)
@given(workload=sweeps(), order=st.sampled_from((None, "SAF")))
def test_wide_jobs_are_those_that_do_not_fit_before_the_sweep(workload, order):
    """Under many weights, so that for some of them one job more or less among these decides."""
    for power in range(-8, 5):
        mode = f"cost-benefit:kappa={2.0**power}"
        assert not first_difference(workload, backfill=mode, backfill_order=order)


# --- What must hold -------------------------------------------------------------------------------


@given(workload=busy_workloads(), policy=st.sampled_from(("FCFS", "SAF")))
def test_without_benefit_jobs_that_outlast_the_shadow_time_take_no_more_than_the_extra(
    workload, policy
):
    """Without a cap, since jobs that start ahead of a blocked one count as backfilled, too."""
    # Without jobs of zero seconds an instant has one pass.
    workload = replace(workload, run_time=np.maximum(workload.run_time, 1))
    schedule = hpcgym.simulate(workload, policy, backfill=CostBenefit(kappa=0))
    start, q = schedule.start_time, workload.processors
    end = start + workload.requested_time
    true_end = start + np.minimum(workload.run_time, workload.requested_time)
    for now in np.unique(start[schedule.backfilled]):
        behind = (start == now) & schedule.backfilled
        held = ((start < now) & (true_end > now)) | ((start == now) & ~schedule.backfilled)
        free_now = workload.machine_processors - q[held].sum()
        waits = (workload.submit_time <= now) & (start > now) & (q > free_now)
        left = []
        for head in np.flatnonzero(waits):  # one of these is the head
            ends = np.unique(end[held])
            free = np.array([free_now + q[held & (end <= instant)].sum() for instant in ends])
            first = np.flatnonzero(free >= q[head])[0]
            late = q[behind & (end > ends[first])].sum()
            left.append(free[first] - q[head] - late)
        assert max(left) >= 0


def test_a_capped_job_waits_though_all_jobs_fit():
    table = [(0, 9_000, 9_000, 2, 0), (1, 9_000, 9_000, 2, 1), (2, 60, 60, 1, 2)]
    jobs = workload_of(table, 5)
    starts = hpcgym.simulate(jobs, backfill="easy:cap=0.5,long=7200").start_time
    assert starts.tolist() == [0, 9_000, 2]
    overdue = hpcgym.simulate(jobs, backfill="easy:cap=0.5", threshold=0).start_time
    assert overdue.tolist() == [0, 2, 2]  # beyond the threshold at the next event
    held = hpcgym.simulate(jobs, backfill="easy:cap=0.5,overdue=open", threshold=0).start_time
    assert held.tolist() == [0, 9_000, 2]


@pytest.mark.parametrize(("policy", "backfilled"), [("FCFS", True), ("LCFS", False)])
def test_a_job_that_starts_ahead_of_a_blocked_one_counts_as_backfilled(policy, backfilled):
    """The second long job is blocked; in order of submission it is before the short one."""
    table = [(0, 9_000, 9_000, 2, 0), (1, 9_000, 9_000, 2, 1), (2, 60, 60, 1, 2)]
    schedule = hpcgym.simulate(workload_of(table, 5), policy, backfill="easy:cap=0.5")
    assert schedule.start_time.tolist() == [0, 9_000, 2]
    assert schedule.backfilled.tolist() == [False, False, backfilled]
    assert schedule.metrics()["n_backfilled"] == backfilled


def test_a_start_behind_the_head_blocks_the_next_long_job():
    table = [(0, 60, 60, 4), (1, 50, 50, 9), (1, 70, 70, 2), (1, 70, 70, 1), (1, 50, 50, 1)]
    jobs = workload_of([(*row, user) for user, row in enumerate(table)], 12)
    assert hpcgym.simulate(jobs).start_time[2:].tolist() == [1, 1, 1]
    starts = hpcgym.simulate(jobs, backfill="easy:cap=0.2,long=60").start_time
    assert starts[2] == 1 and starts[3] > 1 and starts[4] == 1


def test_with_a_threshold_of_0_nothing_delays_a_head_that_has_waited():
    """At 2 the head has waited for a second. The last job ends at 7, beyond its shadow time of 5.

    ::

        AAAAAHHHHHHHHHHHHHHHHHHHH.....    A 2p x 5 at 0, H 3p x 20 at 1, B 1p x 5 at 2
        AAAAAHHHHHHHHHHHHHHHHHHHH.....
        .....HHHHHHHHHHHHHHHHHHHHBBBBB
    """
    jobs = workload_of([(0, 5, 5, 2), (1, 20, 20, 3), (2, 5, 5, 1)], 3)
    mode = "cost-benefit:kappa=1"
    assert hpcgym.simulate(jobs, backfill=mode, threshold=0).start_time.tolist() == [0, 5, 25]
    assert hpcgym.simulate(jobs, backfill=mode).start_time.tolist() == [0, 7, 2]


def test_a_job_wider_than_the_cap_starts_when_no_other_counts():
    jobs = workload_of([(0, 9_000, 9_000, 5), (0, 9_000, 9_000, 5)], 5)
    assert hpcgym.simulate(jobs, backfill="easy:cap=0").start_time.tolist() == [0, 9_000]


# --- Texts and refusals ---------------------------------------------------------------------------


def test_urgency_by_its_numbers():
    assert urgent_policy() is hpcgym.as_policy("smith-urgent")
    assert urgent_policy(0).name == "urgent:urgency=0"
    assert urgent_policy(2, name="MINE").name == "MINE"
    for wrong in ({"urgency": -1}, {"within": 0}, {"widest": math.nan}, {"after": 1e13}):
        with pytest.raises(PolicyError, match="must be a number from 0 to 1e"):
            urgent_policy(**wrong)


def test_without_urgency_and_crowding_the_order_is_that_of_the_regression(real_log):
    log = whole(real_log(KTH))
    plain, none = (
        hpcgym.simulate(log, order, backfill=H)
        for order in ("SMITH-REG", urgent_policy(0, crowding=0))
    )
    np.testing.assert_array_equal(plain.start_time, none.start_time)
