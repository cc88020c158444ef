"""Drawn jobs that are tried, give way or meet outages, and what the references say of them."""

import math
from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

import engines
import hpcgym
from hpcgym.core.backfill import Easy, as_mode
from hpcgym.core.parts.cost_benefit import CostBenefit
from hpcgym.core.parts.outages import Outage
from hpcgym.core.parts.trials import Trial
from hpcgym.schedule.attempts import COMPLETED, KILLED
from reference_lives import LivesWithOutages
from reference_outages import Outage as Down
from reference_outages import WithOutages
from reference_trials import Lives
from strategies import busy_workloads, one_of, policies, workloads

POLICIES = ("FCFS", "SAF", "SMITH", "WFP3", "SMITH-HISTORY", "SMITH-REG", "SMITH-URGENT")
orders = st.sampled_from(POLICIES) | policies


@st.composite
def trials(draw, *, overhead=True, restart=False):
    """Draw how jobs are tried, in times like those of the drawn jobs."""
    return Trial(
        limit=draw(one_of((1, 5, 10, 20, 40, 100))),
        kills=draw(one_of((1, 2, 3))),
        young=draw(one_of((0, 1, 10, 60, 200, 1000))),
        request=draw(one_of((0, 10, 60))),
        times=draw(one_of((1, 2))),
        share=draw(one_of((0.25, 0.5, 1))),
        guarantee=draw(one_of((1, 5, 10, 20, 100))),
        victim=draw(one_of((0.25, 0.5, math.inf))),
        overhead=draw(one_of((0, 0, 1, 5, 10))) if overhead else 0,
        restart=draw(one_of((0, 1, 7, 30, 121))) if restart else 0,
    )


@st.composite
def modes(draw, *, overhead=True, restart=False):
    """Draw a mode with trials or with a cap by request."""
    cap = {}
    if draw(st.booleans()):
        cap = {
            "cap": draw(one_of((0, 0.2, 0.5, 0.7, 0.97))),
            "long": draw(one_of((0, 8, 30, 60, 120))),
            "overdue": draw(one_of(("guarded", "open"))),
            "by": draw(one_of(("expectation", "request"))),
            "widest": draw(one_of((0.2, 0.5, math.inf))),
            "pressed": draw(one_of((0, 0.25, 0.9))),
        }
    trial = draw(trials(overhead=overhead, restart=restart))
    if draw(st.booleans()):
        return CostBenefit(**cap, kappa=draw(one_of((0, 0.25, 1, 4))), trial=trial)
    return Easy(**cap, trial=trial)


@st.composite
def outages(draw, processors):
    """Draw outages that overlap, tie and follow each other, in times like those of the jobs."""
    drawn = []
    for _ in range(draw(st.integers(1, 4))):
        begin = draw(one_of((0, 5, 10, 20, 20, 40, 60, 61, 120, 300, 600)))
        end = begin + draw(one_of((1, 5, 10, 20, 40, 60, 300)))
        most = processors - sum(one.processors for one in drawn if one.to > begin)
        if most > 0:
            number = draw(st.integers(1, most) | st.just(most))
            announced = draw(one_of((0, 0, begin // 2, begin)))
            drawn.append(Outage(begin, end, number, announced))
    return drawn


@st.composite
def cases(draw, kinds=("trials", "outages", "both")):
    """Draw jobs, outages, and settings with trials, a cap or costs; or one of both alone.

    Outages may lose some of the jobs, which trials may not kill.
    """
    kind = draw(one_of(kinds))
    workload = draw(busy_workloads() | workloads() if kind == "outages" else busy_workloads())
    if draw(st.booleans()):
        flags = draw(st.integers(0, 2 ** len(workload) - 1))
        workload = replace(workload, requeue=(flags >> np.arange(len(workload)) & 1) == 1)
    mode = one_of(("easy", "easy", "none")) if kind == "outages" else modes(overhead=kind != "both")
    drawn = {
        "policy": draw(orders),
        "backfill": str(draw(mode)),
        "threshold": draw(one_of((None, 0, 30, 100, 400))),
        "kill_at_limit": draw(st.booleans()),
        "estimates": draw(one_of(("requested", "requested", "exact"))),
    }
    if drawn["backfill"] != "none":
        drawn["backfill_order"] = draw(st.none() | st.none() | orders)
    return workload, draw(outages(workload.machine_processors)) if kind != "trials" else [], drawn


def reference_of(workload, events=(), **given):
    """Return starts and attempts, sorted, by the reference."""
    made, offset = [], workload.time_offset
    mode = given.get("backfill", "easy")
    again = None if workload.requeue is None else np.flatnonzero(workload.requeue).tolist()
    is_plain = mode in ("none", "easy")
    kind = WithOutages if is_plain else LivesWithOutages if events else Lives

    class Noting(kind):
        outages = tuple(
            Down(one.from_ - offset, one.to - offset, one.processors, one.announced - offset)
            for one in events
        )

        def run(self, event_semantics):
            made.append(self)
            return super().run(event_semantics)

    Noting.requeue = Noting.again = again
    if not is_plain:
        may_be_killed = as_mode(mode).requeueable(workload)
        Noting.requeue = np.flatnonzero(may_be_killed).tolist() if len(may_be_killed) else None
    kept = dict(engines.KINDS)
    engines.KINDS.update({"trial": Noting, "cost-benefit": Noting})
    try:
        starts = engines.by_reference(workload, kind=Noting, **given)
    finally:
        engines.KINDS.update(kept)
    rows = made[0].attempts  # without trials an attempt runs usefully from the first
    if is_plain:
        rows = [(j, begin, begin, end, reason) for j, begin, end, reason in rows]
    return starts, sorted((*row[:4], row[-1]) for row in rows)


def attempts_in(schedule):
    """Return the attempts of a schedule as the references have them, sorted."""
    frame = schedule.attempts_frame()
    row = {job: at for at, job in enumerate(schedule.workload.job_id.tolist())}
    offset = schedule.workload.time_offset
    times = ((frame[key] - offset).tolist() for key in ("taken_time", "start_time", "end_time"))
    ends = frame["reason"].replace(KILLED, COMPLETED).tolist()
    return sorted(zip([row[job] for job in frame["job_id"]], *times, ends, strict=True))


def assert_lives(workload, events=(), **given):
    """Compare every start, its flags and every attempt with the reference; return the schedule."""
    starts, attempts = reference_of(workload, events, **given)
    schedule = hpcgym.simulate(workload, events=list(events), **given)
    assert attempts_in(schedule) == attempts
    flags = (schedule.start_time, schedule.backfilled, schedule.thresholded)
    made = zip(*(column.tolist() for column in flags), strict=True)
    assert [tuple(start) for start in starts] == list(made)
    return schedule


def assert_attempts(jobs, mode, *expected, policy="FCFS"):
    """Compare attempts on 4 processors, (job, taken, useful start, end, reason), with both."""
    jobs = engines.workload_of(jobs, 4)
    made = assert_lives(jobs, backfill=f"easy+trial:{mode}", policy=policy)
    assert attempts_in(made) == list(expected)
