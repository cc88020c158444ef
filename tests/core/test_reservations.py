"""Backfilling with several reservations: against the plain-Python reference, and what must hold."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hpcgym
from engines import by_package, first_difference, first_jobs, part_or_whole, whole
from hpcgym.core import constants as s
from hpcgym.core.parts.conservative import UNPLANNED
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.simulator import Simulator
from research.benchmark import saturated
from strategies import policies, settings_for, workloads

KTH = "KTH-SP2-1996-2.1-cln"
SDSC = "SDSC-SP2-1998-4.2-cln"

SHIFT = "conservative:compress=shift"
MODES = ("conservative", SHIFT, "depth:k=1", "depth:k=2", "depth:k=5", "depth:k=inf")


@pytest.mark.long
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("policy", ["SAF", "WFP3"])
def test_long_queues_start_as_the_reference_says(mode, policy):
    order = "SQF" if mode.startswith("depth") else None
    settings = {"policy": policy, "backfill": mode, "backfill_order": order}
    assert not first_difference(saturated(120, 120), threshold=5_000, **settings)


@pytest.mark.parametrize("log", [KTH, pytest.param(SDSC, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "settings",
    [
        {"backfill": "depth:k=1"},
        {"backfill": "depth:k=3", "policy": "SAF", "threshold": 72_000},
        {"backfill": "depth:k=3", "policy": "FCFS", "backfill_order": "SPF"},
    ],
    ids=str,
)
@part_or_whole
def test_logs_start_as_the_reference_says(real_log, n, log, settings):
    assert not first_difference(first_jobs(real_log(log), n), **settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"backfill": "conservative", "policy": "SAF", "threshold": 200_000},
        {"backfill": "conservative", "event_semantics": "pyss"},
        {"backfill": "depth:k=2", "kill_at_limit": False, "backfill_order": "SMITH"},
        pytest.param({"backfill": "conservative"}, marks=pytest.mark.slow),
        pytest.param({"backfill": SHIFT}, marks=pytest.mark.slow),
        pytest.param(
            {"backfill": SHIFT, "kill_at_limit": False, "policy": "WFP3"}, marks=pytest.mark.slow
        ),
        pytest.param(
            {"backfill": SHIFT, "policy": "SAF", "threshold": 200_000}, marks=pytest.mark.slow
        ),
        pytest.param(
            {"backfill": SHIFT, "estimates": "exact", "event_semantics": "pyss"},
            marks=pytest.mark.slow,
        ),
        pytest.param(
            {"backfill": "conservative", "kill_at_limit": False, "policy": "LEXP"},
            marks=pytest.mark.slow,
        ),
    ],
    ids=str,
)
@part_or_whole
def test_kth_under_other_rules_starts_as_the_reference_says(real_log, n, settings):
    assert not first_difference(first_jobs(real_log(KTH), n), **settings)


def test_the_first_jobs_of_a_log_start_as_the_reference_says_where_reservations_move(real_log):
    settings = {"backfill": SHIFT, "kill_at_limit": False, "policy": "WFP3"}
    assert not first_difference(first_jobs(real_log(KTH), 3_000), **settings)


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {"backfill": "conservative"},
        {"backfill": "conservative", "policy": "SAF", "threshold": 200_000},
        {"backfill": "conservative", "kill_at_limit": False, "policy": "LEXP"},
        {"backfill": SHIFT},
        {"backfill": SHIFT, "policy": "SAF", "threshold": 200_000},
        {"backfill": SHIFT, "kill_at_limit": False, "policy": "WFP3"},
        {"backfill": "depth:k=8", "policy": "UNICEF", "backfill_order": "LEXP"},
    ],
    ids=str,
)
def test_sdsc_whole_starts_as_the_reference_says(real_log, settings):
    assert not first_difference(whole(real_log(SDSC)), **settings)


# --- One reservation, and infinitely many ---------------------------------------------------------


@given(data=st.data())
def test_one_reservation_is_easy(data):
    workload, policy = data.draw(workloads(max_jobs=30)), data.draw(policies)
    settings = data.draw(settings_for(workload, "depth:k=1"))
    easy = by_package(workload, policy=policy, **(settings | {"backfill": "easy"}))
    assert by_package(workload, policy=policy, **settings) == easy


@given(data=st.data())
def test_a_reservation_for_every_job_is_conservative_whatever_the_backfill_order(data):
    workload, policy = data.draw(workloads(max_jobs=30)), data.draw(policies)
    settings = data.draw(settings_for(workload, "conservative"))
    conservative = by_package(workload, policy=policy, **settings)
    settings |= {"backfill": "depth:k=inf", "backfill_order": data.draw(st.none() | policies)}
    assert by_package(workload, policy=policy, **settings) == conservative


# --- What must hold -------------------------------------------------------------------------------


def promises(simulator):
    """Run to the end; return each job's first reservation, or its start if it had none."""
    promised = {}
    while simulator.run():
        state = simulator.state
        for job in simulator.waiting.tolist():
            entry = s.FIRST_ENTRY - state.start_time[0, job]
            if state.planned_start[0, entry] != UNPLANNED:
                promised.setdefault(job, int(state.planned_start[0, entry]))
    return [promised.get(job, start) for job, start in enumerate(simulator.start_time.tolist())]


@given(data=st.data(), estimates=st.sampled_from(("exact", "requested")))
def test_no_job_starts_later_than_it_was_promised_at_its_submission(data, estimates):
    """Whatever the order, and with estimates that jobs undercut, as long as none outlives its own.

    Passes are those of events alone, so that a reservation that no event comes with would be late.
    """
    workload = data.draw(workloads(max_jobs=40))
    settings = SchedulerSettings(
        data.draw(st.sampled_from(("FCFS", "SAF", "LPF"))), backfill=SHIFT, estimates=estimates
    )
    simulator = Simulator(workload, settings, decide="event", check_invariants=True)
    promised = promises(simulator)
    assert (simulator.start_time <= promised).all()
    at_once = Simulator(workload, settings)
    at_once.run()
    assert simulator.start_time.tolist() == at_once.start_time.tolist()


@given(workload=workloads(max_jobs=40))
def test_first_come_first_served_keeps_its_promises_to_the_second_with_exact_estimates(workload):
    """Nothing ends early, so nothing moves: rebuilding makes the same schedule again and again."""
    run_time = np.maximum(workload.run_time, 1)  # a job of no second is estimated to take one
    workload = replace(workload, run_time=run_time)
    settings = SchedulerSettings(backfill=SHIFT, estimates="exact")
    simulator = Simulator(workload, settings, decide="event", check_invariants=True)
    assert promises(simulator) == simulator.start_time.tolist()
    rebuilt = hpcgym.simulate(workload, backfill="conservative", estimates="exact")
    assert simulator.start_time.tolist() == rebuilt.start_time.tolist()
