"""The cap, cost-benefit backfilling and urgency: against the reference, and what must hold."""

import math
import pickle
from dataclasses import replace

import hypothesis
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hpcgym
from engines import (
    by_package,
    first_difference,
    whole,
    workload_of,
)
from hpcgym.base.errors import PolicyError
from hpcgym.core import constants as s
from hpcgym.core.backfill import Easy, as_backfill
from hpcgym.core.index_policy import urgent_policy
from hpcgym.core.parts.cost_benefit import CostBenefit
from hpcgym.core.settings import SchedulerSettings
from research.benchmark import saturated
from strategies import busy_workloads, policies

KTH, CTC = "KTH-SP2-1996-2.1-cln", "CTC-SP2-1996-3.1-cln"
H = "cost-benefit:cap=0.97"
POLICIES = ("FCFS", "SAF", "SMITH", "WFP3", "SMITH-HISTORY", "SMITH-REG", "SMITH-URGENT")
SHORT_URGENCY = urgent_policy(3, after=30, within=60, widest=0.8, crowding=0.4, name="SHORT")
"""Urgency within waits as they are drawn."""

orders = st.sampled_from((*POLICIES, SHORT_URGENCY, SHORT_URGENCY)) | policies
caps = st.sampled_from((0, 0.2, 0.5, 0.7, 0.97, math.inf))


@st.composite
def modes(draw):
    """Draw a mode with a cap, costs and benefits, or both."""
    cap = draw(caps)
    long = draw(st.sampled_from((0, 8, 30, 60, 120.5))) if cap < math.inf else 7200
    about = {"overdue": draw(st.sampled_from(("guarded", "open")))}
    if cap < math.inf:
        about["by"] = draw(st.sampled_from(("expectation", "request")))
        about["widest"] = draw(st.sampled_from((math.inf, math.inf, 0.5)))
        about["pressed"] = draw(st.sampled_from((0, 0, 0.5)))
        if draw(st.booleans()):
            return Easy(cap, long, **about)
    return CostBenefit(cap, long, **about, kappa=draw(st.sampled_from((0, 0.05, 0.25, 1, 4))))


@st.composite
def settings(draw):
    """Draw settings without policy and mode."""
    return {
        "policy": draw(orders),
        "backfill_order": draw(st.none() | st.none() | orders),
        "threshold": draw(st.sampled_from((None, 0, 30, 100, 400))),
        "kill_at_limit": draw(st.booleans()),
        "estimates": draw(st.sampled_from(("requested", "requested", "exact"))),
    }


# --- The reference --------------------------------------------------------------------------------


@given(workload=busy_workloads(), mode=modes(), given=settings())
def test_every_job_starts_as_the_reference_says(workload, mode, given):
    assert not first_difference(workload, backfill=str(mode), **given)


@given(workload=busy_workloads(), given=settings(), policy=st.sampled_from(POLICIES[-2:]))
def test_urgency_under_easy_starts_every_job_as_the_reference_says(workload, given, policy):
    order = SHORT_URGENCY if given["policy"] == "FCFS" else policy
    assert not first_difference(workload, **(given | {"policy": order}))


@pytest.mark.long
@pytest.mark.parametrize("policy", ["SAF", "SMITH-URGENT"])
@pytest.mark.parametrize("mode", ["easy:cap=0.5,long=600", "cost-benefit:kappa=1,cap=0.7,long=600"])
def test_long_queues_start_as_the_reference_says(mode, policy):
    many = saturated(150, 100)
    assert not first_difference(many, policy=policy, backfill=mode, threshold=20_000)


@pytest.mark.long
@pytest.mark.parametrize("mode", ["easy:cap=0.97", H, f"{H},overdue=open"])
def test_the_first_jobs_of_a_log_start_as_the_reference_says(real_log, mode):
    workload = whole(real_log(KTH))
    first = workload.select(np.arange(len(workload)) < 2_000)
    assert not first_difference(first, policy="SMITH-URGENT", backfill=mode, threshold=200_000)


@pytest.mark.long
@pytest.mark.parametrize("mode", [H, f"{H},overdue=open", "easy:cap=0.8,by=request,overdue=open"])
def test_jobs_that_wait_for_half_the_threshold_start_as_the_reference_says(mode):
    first = hpcgym.load_workload("synthetic-busy-weeks").select(np.arange(1_000))
    assert not first_difference(first, policy="SMITH-URGENT", backfill=mode, threshold=20_000)


@pytest.mark.slow
@pytest.mark.parametrize("log", [KTH, CTC])
@pytest.mark.parametrize(
    ("policy", "mode"),
    [
        ("SMITH-URGENT", H),
        ("SMITH-URGENT", f"{H},overdue=open"),
        ("SMITH-REG", f"{H},overdue=open"),
        ("SAF", "easy:cap=0.9,long=3600"),
        ("FCFS", "cost-benefit:kappa=1"),
    ],
)
def test_whole_logs_start_as_the_reference_says(real_log, log, policy, mode):
    workload = whole(real_log(log))
    assert not first_difference(workload, policy=policy, backfill=mode, threshold=200_000)


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


@given(workload=busy_workloads(), given=settings(), overdue=st.sampled_from(("guarded", "open")))
def test_without_benefit_and_cap_every_start_is_that_of_easy(workload, given, overdue):
    plain = by_package(workload, **given)
    assert by_package(workload, backfill=CostBenefit(kappa=0, overdue=overdue), **given) == plain


@given(workload=busy_workloads(), given=settings())
def test_a_cap_that_nothing_reaches_changes_nothing(workload, given):
    plain = by_package(workload, **given)
    assert by_package(workload, backfill=Easy(cap=3, long=0), **given) == plain


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


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("easy:cap=0.97", Easy(cap=0.97, long=7200)),
        ("easy:cap=0.5,long=60,overdue=open", Easy(0.5, 60, "open")),
        ("cost-benefit", CostBenefit()),
        ("cost-benefit:kappa=0", CostBenefit(kappa=0)),
        ("cost-benefit:cap=0.97,long=3600,kappa=0.5", CostBenefit(0.97, 3600, kappa=0.5)),
    ],
)
def test_text_and_object_say_the_same(text, mode):
    assert as_backfill(text) == mode and str(mode) == text
    assert pickle.loads(pickle.dumps(mode)) == mode
    assert str(SchedulerSettings(backfill=mode).backfill) == text


def test_texts_may_state_what_is_the_default():
    assert as_backfill("easy:cap=0.97,long=7200") == Easy(0.97)
    assert as_backfill("cost-benefit:kappa=0.25,cap=0.97,long=7200") == CostBenefit(0.97)
    assert as_backfill("easy").number == s.BACKFILL_EASY
    assert as_backfill("easy").parameters == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("easy:cap=-1", "cap must be a share of the machine >= 0 or inf, got -1"),
        ("easy:cap=most", "got 'most'"),
        ("easy:cap=nan", "got nan"),
        ("easy:long=60", "long is about a cap; it needs cap too, as in cap=0.97"),
        ("easy:overdue=open", "overdue is about a cap"),
        ("easy:cap=1,long=-1", "long must be seconds >= 0, got -1"),
        ("easy:cap=1,overdue=opne", "unknown overdue 'opne'; did you mean 'open'"),
        ("cost-benefit:kapa=1", "did you mean 'kappa'"),
        ("cost-benefit:kappa=-1", "kappa must be >= 0, got -1"),
        ("cost-benefit:kappa=inf", "got inf"),
        ("cost-benefit:long=60", "it needs cap too"),
        ("cost-benefits", "did you mean 'cost-benefit'"),
    ],
)
def test_what_makes_no_sense_is_refused(text, message):
    with pytest.raises(PolicyError) as refused:
        as_backfill(text)
    assert message in str(refused.value)


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
