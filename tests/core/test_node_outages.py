"""Outages of nodes, announced or not: against the reference, and what holds of every schedule.

After every pass it is checked that no node gives more than it has, and none that is down.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hpcgym
import reference_node_outages
from drawn_machines import Case, draw_case
from engines import check_copies_go_on_alike, simulator_of, starts_again
from hpcgym.attempts import COMPLETED, KILLED
from hpcgym.core.parts.outages import Outage
from hpcgym.core.workload import Workload
from nodes_of_kernels import first_difference, result_of, settings_of, workload_of
from reference_node_outages import Outage as Down
from strategies import REQUESTED_TIMES_S

draws = st.integers(0, 2**40).map(Random)
Rows = list[tuple[int, int, int, str]]


class Hit(NamedTuple):
    """A case, and what goes down."""

    case: Case
    outages: list[Down]
    estimates: list[int]
    requeue: list[bool] | None

    @property
    def workload(self) -> Workload:
        """The jobs as the package holds them."""
        jobs = workload_of(self.case.machine, self.case.jobs)
        return jobs if self.requeue is None else replace(jobs, requeue=np.array(self.requeue))

    @property
    def given(self) -> dict[str, Any]:
        """Keywords of `hpcgym.simulate`."""
        offset = self.workload.time_offset
        events = [
            Outage(*(at + offset for at in one[:2]), 0, one.announced + offset, sorted(one.nodes))
            for one in self.outages
        ]
        return settings_of(**self.case.settings) | {"events": events, "estimates": self.estimates}

    def by_reference(self) -> Any:
        """Return starts and nodes, and all attempts, by the reference."""
        again = None
        if self.requeue is not None:
            again = [j for j, may_be_started in enumerate(self.requeue) if may_be_started]
        return reference_node_outages.simulate(
            *self.case[:2],
            outages=self.outages,
            requeue=again,
            estimates=self.estimates,
            **self.case.settings,
        )


def draw_outages(random: Random, n: int) -> list[Down]:
    """Draw outages of n nodes that overlap, tie and follow each other."""
    drawn = []
    for _ in range(random.randint(1, 5)):
        begin = random.choice((0, 2, 5, 5, 10, 20, 20, 40, 61, 100))
        end = begin + random.choice((1, 3, 5, 10, 20, 60, 200))
        nodes = frozenset(random.sample(range(n), random.randint(1, n)))
        drawn.append(Down(begin, end, nodes, random.choice((0, 0, begin // 2, begin))))
    return drawn


def draw_hit(random: Random, *most: int) -> Hit:
    """Draw a case with a job, and its outages."""
    case = draw_case(random, *most)
    while not case.jobs:
        case = draw_case(random, *most)
    sooner = random.choice((1, 1, 4))
    jobs = [job._replace(submit_time=job.submit_time // sooner) for job in case.jobs]
    estimates = [job.requested_time for job in jobs]
    if random.random() < 0.3:
        estimates = [random.choice((e, e, *REQUESTED_TIMES_S)) for e in estimates]
    requeue = [random.random() < 0.6 for _ in jobs] if random.random() < 0.3 else None
    outages = draw_outages(random, len(case.machine.nodes))
    return Hit(case._replace(jobs=jobs), outages, estimates, requeue)


def attempts_of(schedule: hpcgym.Schedule) -> Rows:
    """Return the attempts of a schedule as rows: job, when it began and ended, and why."""
    frame = schedule.attempts_frame()
    row = {job: at for at, job in enumerate(schedule.workload.job_id.tolist())}
    ends = frame["reason"].replace(KILLED, COMPLETED).tolist()
    times = (frame[key].tolist() for key in ("taken_time", "end_time"))
    return sorted(zip([row[job] for job in frame["job_id"]], *times, ends, strict=True))


def check(hit: Hit) -> Rows:
    """Check a case against the reference; return the attempts."""
    expected, attempts = hit.by_reference()
    lost = [start is None for start in expected.starts]
    expected = expected._replace(starts=[-1 if s is None else s for s in expected.starts])
    simulator = simulator_of(hit.workload, **hit.given)
    assert not simulator.run()
    assert first_difference(expected, result_of(simulator)) == ""
    schedule = hpcgym.simulate(hit.workload, **hit.given)
    assert first_difference(expected, result_of(schedule)) == ""
    assert schedule.complete
    assert ([False] * len(lost) if schedule.lost is None else schedule.lost.tolist()) == lost
    got = attempts_of(schedule)
    assert got == [attempt[:4] for attempt in attempts]
    return got


@pytest.mark.parametrize("seed", range(12))
def test_a_few_drawn_machines_with_outages_are_scheduled_as_by_the_reference(seed):
    check(draw_hit(Random(seed)))


@given(draws)
def test_every_attempt_on_drawn_machines_is_that_of_the_reference(random):
    check(draw_hit(random))


@given(draws)
def test_every_attempt_where_many_jobs_wait_is_that_of_the_reference(random):
    check(draw_hit(random, 4, 40))
