"""Drawn and worked cases on nodes whose jobs are tried, give way, or meet nodes that go down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

import hpcgym
import reference_node_outages
import reference_nodes
import reference_nodes_lives
import reference_nodes_slurm
from drawn_machines import Case, draw_case
from engines import simulator_of
from hpcgym.core.parts.outages import Outage
from hpcgym.core.workload import Workload
from hpcgym.schedule.attempts import COMPLETED, KILLED
from nodes_of_kernels import first_difference, result_of, settings_of, workload_of
from reference_limits import Limit
from reference_nodes import Job, Node
from reference_nodes_lives import Outage as Down

draws = st.integers(0, 2**40).map(Random)
CHANCES = {"young": 0.0, "overhead": 0.0}
"""Share of drawn modes in which young jobs give way, or that have an overhead."""


class Lived(NamedTuple):
    """A case, its mode, estimates, the jobs that may be killed (None = all), and what goes down.

    Without a mode it is under outages alone, and as many jobs have reservations as the case says.
    """

    case: Case
    mode: str | None
    estimates: list[int]
    requeue: list[bool] | None = None
    outages: tuple[Down, ...] = ()
    # The jobs within limits, with these as texts and as the reference has them.
    within: tuple[Workload, Sequence[str], Sequence[Limit]] | None = None

    @property
    def workload(self) -> Workload:
        """The jobs as the package holds them."""
        if self.within:
            return self.within[0]
        jobs = workload_of(self.case.machine, self.case.jobs)
        return jobs if self.requeue is None else replace(jobs, requeue=np.array(self.requeue))

    @property
    def given(self) -> dict[str, Any]:
        """Keywords of `hpcgym.simulate`."""
        settings = settings_of(**self.case.settings, mode=self.mode)
        offset = self.workload.time_offset
        events = [
            Outage(*(at + offset for at in down[:2]), 0, down.announced + offset, [*down.nodes])
            for down in self.outages
        ]
        texts = self.within[1] if self.within else []
        return settings | {"estimates": self.estimates, "events": [*events, *texts]}

    def by_reference(self) -> tuple[reference_nodes.Result, Any]:
        """Return starts and nodes, and all attempts, by the reference."""
        allowed = None
        if self.requeue is not None:
            allowed = [j for j, may_be_killed in enumerate(self.requeue) if may_be_killed]
        given = {"requeue": allowed, "outages": self.outages, "estimates": self.estimates}
        if self.mode is None or self.mode.startswith("slurm"):
            given |= {"limits": self.within[2] if self.within else (), **self.case.settings}
            slurm = reference_nodes_slurm.SlurmNodesAhead
            given |= {} if self.mode is None else {"kind": slurm, "mode": self.mode}
            return reference_node_outages.simulate(*self.case[:2], **given)
        given |= {"mode": self.mode, "again": allowed}
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


def draw_outages(random: Random, n: int) -> tuple[Down, ...]:
    """Draw outages of n nodes that overlap, tie and follow each other."""
    outages = []
    for _ in range(random.randint(1, 5)):
        begin = random.choice((0, 2, 5, 5, 10, 20, 20, 40, 61, 100))
        end = begin + random.choice((1, 3, 5, 10, 20, 60, 200))
        down = frozenset(random.sample(range(n), random.randint(1, n)))
        outages.append(Down(begin, end, down, random.choice((0, 0, begin // 2, begin, begin))))
    return tuple(outages)


def draw_hit(random: Random, chances: dict[str, float] = CHANCES) -> Lived:
    """Draw a case with outages, and with trials or a cap."""
    lived = draw_lived(random, chances)
    outages = draw_outages(random, len(lived.case.machine.nodes))
    mode = lived.mode if random.random() < 0.75 else lived.mode.partition("+")[0]
    return lived._replace(outages=outages, mode=mode)


def attempts_of(schedule: hpcgym.Schedule) -> list[tuple[int, int, int, int, str]]:
    """Return attempts as rows: job, when it was placed, ran usefully and ended, and why."""
    frame = schedule.attempts_frame()
    row = {job: at for at, job in enumerate(schedule.workload.job_id.tolist())}
    ends = frame["reason"].replace(KILLED, COMPLETED).tolist()
    begin = schedule.workload.time_offset
    times = ((frame[key] - begin).tolist() for key in ("taken_time", "start_time", "end_time"))
    return sorted(zip([row[job] for job in frame["job_id"]], *times, ends, strict=True))


def check(lived: Lived) -> list[tuple[int, int, int, int, str]]:
    """Check a case against the reference; return the attempts."""
    if not lived.case.jobs:
        return []
    expected, attempts = lived.by_reference()
    lost = [start is None for start in expected.starts]
    expected = expected._replace(starts=[-1 if s is None else s for s in expected.starts])
    simulator = simulator_of(lived.workload, **lived.given)
    assert not simulator.run()
    assert first_difference(expected, result_of(simulator)) == ""
    schedule = hpcgym.simulate(lived.workload, **lived.given)
    assert first_difference(expected, result_of(schedule)) == ""
    assert schedule.complete
    assert ([False] * len(lost) if schedule.lost is None else schedule.lost.tolist()) == lost
    got = attempts_of(schedule)
    assert got == sorted(attempt[:5] for attempt in attempts)
    return got


def attempts_on(
    nodes: list[Node], jobs: list[Job], mode: str, *, order: str = "FCFS", **more: Any
) -> list[Any]:
    """Return the attempts on nodes of one partition, which are the reference's, too."""
    settings = {"placement": "lowest", "order": order, "threshold": None, "kill": True, "depth": 1}
    machine = reference_nodes.one_partition(nodes)
    estimates = [job.requested_time for job in jobs]
    return check(Lived(Case(machine, jobs, settings), mode, estimates, **more))


YOUNG = {"young": 0.7, "overhead": 0.0}
SLOW_KILLS = {"young": 0.6, "overhead": 1.0}
