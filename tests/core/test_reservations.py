"""Backfilling with several reservations: against the plain-Python reference, and what must hold."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import hpcgym
from engines import by_package
from hpcgym.core import constants as s
from hpcgym.core.parts.conservative import UNPLANNED
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.simulator import Simulator
from strategies import policies, settings_for, workloads

SHIFT = "conservative:compress=shift"
# --- One reservation, and infinitely many ---------------------------------------------------------


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
