"""A cap, costs, young jobs and overhead beside trials on nodes: against the reference.

After every pass it is checked that no node gives more than it has, to trials either.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any, NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import hpcgym
import reference_nodes
import reference_nodes_lives
from drawn_machines import Case, draw_case
from engines import simulator_of
from hpcgym.attempts import COMPLETED, KILLED
from hpcgym.core.workload import Workload
from nodes_of_kernels import first_difference, result_of, settings_of, workload_of
from reference_nodes import Job, Node

draws = st.integers(0, 2**40).map(Random)
CHANCES = {"young": 0.0, "overhead": 0.0}
"""Share of drawn modes in which young jobs give way, or that have an overhead."""


class Lived(NamedTuple):
    """A case, the text of its mode, estimates, and the jobs that may be killed; None = all."""

    case: Case
    mode: str
    estimates: list[int]
    requeue: list[bool] | None = None

    @property
    def workload(self) -> Workload:
        """The jobs as the package holds them."""
        jobs = workload_of(self.case.machine, self.case.jobs)
        return jobs if self.requeue is None else replace(jobs, requeue=np.array(self.requeue))

    @property
    def given(self) -> dict[str, Any]:
        """Keywords of `hpcgym.simulate`."""
        settings = settings_of(**self.case.settings, mode=self.mode)
        return settings | {"estimates": self.estimates}

    def by_reference(self) -> tuple[reference_nodes.Result, Any]:
        """Return starts and nodes, and all attempts, by the reference."""
        allowed = None
        if self.requeue is not None:
            allowed = [j for j, may_be_killed in enumerate(self.requeue) if may_be_killed]
        given = {"mode": self.mode, "requeue": allowed, "estimates": self.estimates}
        return reference_nodes_lives.simulate(*self.case[:2], **given, **self.case.settings)


def draw_trial(random: Random, chances: dict[str, float]) -> str:
    """Draw how jobs are tried, in times like those of the drawn jobs."""
    stated = {"limit": random.choice((1, 2, 3, 5, 10, 20, 40)), "kills": random.choice((1, 2, 3))}
    if random.random() < chances["young"]:
        stated |= {
            "young": random.choice((2, 10, 60, 200)),
            "request": random.choice((0, 0, 5, 10)),
            "times": random.choice((1, 2)),
            "share": random.choice((0.25, 0.5, 1)),
            "guarantee": random.choice((1, 2, 5, 10, 20)),
            "victim": random.choice((0.25, 0.5, "inf", "inf")),
        }
    if random.random() < chances["overhead"]:
        stated["overhead"] = random.choice((1, 1, 2, 5, 10))
    return "trial:" + ",".join(f"{key}={value}" for key, value in stated.items())


def draw_mode(random: Random, chances: dict[str, float]) -> str:
    """Draw a mode with trials, of which most have a cap or costs."""
    name = random.choice(("easy", "easy", "cost-benefit"))
    stated: dict[str, object] = {}
    if name == "cost-benefit":
        stated["kappa"] = random.choice((0, 0.25, 0.25, 1, 5))
    if random.random() < 0.6:
        stated["cap"] = random.choice((0, 0.3, 0.5, 0.8, 0.97))
        stated["long"] = random.choice((0, 5, 9, 12, 20))
        some = {"by": "request", "widest": 0.4, "pressed": random.choice((0.25, 1))}
        stated |= {key: value for key, value in some.items() if random.random() < 0.35}
    if stated and random.random() < 0.4:
        stated |= {"overdue": "open"} if name == "cost-benefit" or "cap" in stated else {}
    text = ",".join(f"{key}={value}" for key, value in stated.items())
    return f"{name}{':' * bool(text)}{text}+{draw_trial(random, chances)}"


def draw_crowd(random: Random, *most: int) -> Case:
    """Draw a case of a few users in which many jobs wait at once."""
    case = draw_case(random, *most)
    while not case.jobs:
        case = draw_case(random, *most)
    sooner, longer = random.choice((1, 2, 8)), random.choice((1, 1, 3))
    jobs = []
    for job in case.jobs:
        limited = case.machine.partitions[job.partition].max_time_s
        asked = job.requested_time * (1 if limited else longer)
        begins, user = job.submit_time // sooner, random.choice((-1, 0, 1))
        jobs.append(job._replace(submit_time=begins, requested_time=asked, user=user))
    return case._replace(jobs=jobs)


def draw_roomy(random: Random) -> Case:
    """Draw narrow jobs, alike but for their times, and wide ones for few of the nodes."""
    nodes = [Node(random.choice((2, 4, 8)), memory_mb=9) for _ in range(random.randint(2, 4))]
    machine = reference_nodes.one_partition(nodes)
    settings = draw_case(random).settings
    jobs, submit_time = [], 0
    for _ in range(random.randint(10, 40)):
        submit_time += random.choice((0, 0, 1, 2))
        times = submit_time, random.choice((0, 1, 3, 8, 30)), random.choice((3, 10, 60, 60))
        chunks, cpus = random.choice((1, 1, 1, 2)), 1
        if random.random() < 0.2:
            cpus = max(node.cpus for node in nodes)
        memory_mb = random.choice((0, 0, 0, 3)) if cpus == 1 else 0
        job = Job(*times, chunks, cpus, memory_mb=memory_mb, user=random.choice((0, 1)))
        if not reference_nodes.is_refused(machine, job, settings["placement"]):
            jobs.append(job)
    return Case(machine, jobs, settings)


def draw_lived(random: Random, chances: dict[str, float] = CHANCES) -> Lived:
    """Draw a case, and how its jobs are tried."""
    case = draw_roomy(random) if random.random() < 0.5 else draw_crowd(random, 6, 40)
    order = random.choice(("SMITH-URGENT", "SMITH-REG", "FCFS", case.settings["order"]))
    kept = {key: case.settings[key] for key in ("placement", "threshold", "kill")}
    backfill_order = random.choice((None, None, "SMITH-URGENT", "SPF"))
    chosen = {"depth": 1, "order": order, "backfill_order": backfill_order}
    estimates = [job.requested_time for job in case.jobs]
    if random.random() < 0.3:
        estimates = [random.choice((e, e, 5, 10, 20, 60)) for e in estimates]
    flags = [random.random() < 0.8 for _ in case.jobs] if random.random() < 0.3 else None
    case = case._replace(settings=kept | chosen)
    return Lived(case, draw_mode(random, chances), estimates, flags)


def attempts_of(schedule: hpcgym.Schedule) -> list[tuple[int, int, int, int, str]]:
    """Return attempts as rows: job, when it was placed, ran usefully and ended, and why."""
    frame = schedule.attempts_frame()
    row = {job: at for at, job in enumerate(schedule.workload.job_id.tolist())}
    ends = frame["reason"].replace(KILLED, COMPLETED).tolist()
    times = (frame[key].tolist() for key in ("taken_time", "start_time", "end_time"))
    return sorted(zip([row[job] for job in frame["job_id"]], *times, ends, strict=True))


def check(lived: Lived) -> list[tuple[int, int, int, int, str]]:
    """Check a case against the reference; return the attempts."""
    if not lived.case.jobs:
        return []
    expected, attempts = lived.by_reference()
    simulator = simulator_of(lived.workload, **lived.given)
    assert not simulator.run()
    assert first_difference(expected, result_of(simulator)) == ""
    schedule = hpcgym.simulate(lived.workload, **lived.given)
    got = attempts_of(schedule)
    assert got == sorted(attempt[:5] for attempt in attempts)
    return got


@given(draws)
def test_every_attempt_is_that_of_the_reference(random):
    check(draw_lived(random))
