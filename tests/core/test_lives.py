"""Outages beside caps, costs and trials: against the reference, and what holds of schedules."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import engines
import hpcgym
from drawn_lives import modes, orders, outages
from engines import by_reference
from hpcgym.core.backfill import as_mode
from reference_lives import LivesWithOutages
from reference_outages import Outage as Down
from strategies import busy_workloads, one_of


@st.composite
def cases(draw):
    """Draw a workload, its outages, and settings with a mode that has a cap, costs or trials."""
    workload = draw(busy_workloads())
    if draw(st.booleans()):
        flags = draw(st.integers(0, 2 ** len(workload) - 1))
        workload = replace(workload, requeue=(flags >> np.arange(len(workload)) & 1) == 1)
    drawn = {
        "policy": draw(orders),
        "backfill": str(draw(modes(overhead=False))),
        "backfill_order": draw(st.none() | st.none() | orders),
        "threshold": draw(one_of((None, 0, 30, 100, 400))),
        "kill_at_limit": draw(st.booleans()),
        "estimates": draw(one_of(("requested", "requested", "exact"))),
    }
    return workload, draw(outages(workload.machine_processors)), drawn


def reference_of(workload, events, **given):
    """Return starts and attempts by the reference."""
    made, offset = [], workload.time_offset
    again = None if workload.requeue is None else np.flatnonzero(workload.requeue).tolist()
    mode = as_mode(given["backfill"])
    may_be_killed = mode.requeueable(workload)

    class Listed(LivesWithOutages):
        requeue = np.flatnonzero(may_be_killed).tolist() if len(may_be_killed) else None
        outages = tuple(
            Down(one.from_ - offset, one.to - offset, one.processors, one.announced - offset)
            for one in events
        )

        def run(self, event_semantics):
            made.append(self)
            return super().run(event_semantics)

    Listed.again = again
    kept = dict(engines.KINDS)
    engines.KINDS.update({"trial": Listed, "cost-benefit": Listed})
    try:
        starts = by_reference(workload, **given)
    finally:
        engines.KINDS.update(kept)
    return starts, sorted((*one[:4], one.reason) for one in made[0].attempts)


def attempts_of(schedule):
    """Return the attempts of a schedule as the reference has them."""
    frame = schedule.attempts_frame()
    row = {job: at for at, job in enumerate(schedule.workload.job_id.tolist())}
    times = (frame[key].tolist() for key in ("taken_time", "start_time", "end_time"))
    ends = frame["reason"].replace("killed at its request", "completed").tolist()
    return sorted(zip([row[job] for job in frame["job_id"]], *times, ends, strict=True))


@given(case=cases())
def test_every_start_and_every_attempt_is_as_the_reference_says(case):
    workload, events, given = case
    starts, attempts = reference_of(workload, events, **given)
    schedule = hpcgym.simulate(workload, events=events, **given)
    assert attempts_of(schedule) == attempts
    assert schedule.start_time.tolist() == [start.start_time for start in starts]
    assert schedule.backfilled.tolist() == [start.backfilled for start in starts]
    assert schedule.thresholded.tolist() == [start.thresholded for start in starts]
