"""A cap, costs, young jobs and overhead beside trials on nodes: against the reference.

After every pass it is checked that no node gives more than it has, to trials either.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hpcgym
import reference_nodes
import reference_nodes_lives
import reference_nodes_trials
from drawn_machines import Case, draw_case, draw_plain_case
from engines import simulator_of
from hpcgym.core.backfill import as_backfill
from hpcgym.core.parts.outages import Outage
from hpcgym.core.workload import Workload
from hpcgym.schedule.attempts import COMPLETED, KILLED
from nodes_of_kernels import (
    by_reference,
    first_difference,
    log_on_nodes,
    result_of,
    settings_of,
    workload_of,
)
from reference_nodes import Job, Node
from reference_nodes_lives import Outage as Down

draws = st.integers(0, 2**40).map(Random)
CHANCES = {"young": 0.0, "overhead": 0.0}
"""Share of drawn modes in which young jobs give way, or that have an overhead."""


class Lived(NamedTuple):
    """A case, its mode, estimates, the jobs that may be killed (None = all), and what goes down."""

    case: Case
    mode: str
    estimates: list[int]
    requeue: list[bool] | None = None
    outages: tuple[Down, ...] = ()

    @property
    def workload(self) -> Workload:
        """The jobs as the package holds them."""
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
        return settings | {"estimates": self.estimates, "events": events}

    def by_reference(self) -> tuple[reference_nodes.Result, Any]:
        """Return starts and nodes, and all attempts, by the reference."""
        allowed = None
        if self.requeue is not None:
            allowed = [j for j, may_be_killed in enumerate(self.requeue) if may_be_killed]
        given = {"mode": self.mode, "requeue": allowed, "again": allowed}
        given |= {"outages": self.outages, "estimates": self.estimates}
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


def draw_hit(random: Random, chances: dict[str, float] = CHANCES) -> Lived:
    """Draw a case with outages that overlap, tie and follow each other, with trials or a cap."""
    lived = draw_lived(random, chances)
    nodes = range(len(lived.case.machine.nodes))
    outages = []
    for _ in range(random.randint(1, 5)):
        begin = random.choice((0, 2, 5, 5, 10, 20, 20, 40, 61, 100))
        end = begin + random.choice((1, 3, 5, 10, 20, 60))
        down = frozenset(random.sample(nodes, random.randint(1, len(nodes))))
        outages.append(Down(begin, end, down, random.choice((0, 0, begin // 2, begin, begin))))
    mode = lived.mode if random.random() < 0.75 else lived.mode.partition("+")[0]
    return lived._replace(outages=tuple(outages), mode=mode)


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
    lost = [-1 if start is None else start for start in expected.starts]
    expected = expected._replace(starts=lost)
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


YOUNG = {"young": 0.7, "overhead": 0.0}
SLOW_KILLS = {"young": 0.6, "overhead": 1.0}
KTH = "KTH-SP2-1996-2.1-cln"
H_YOUNG = "cost-benefit:cap=0.97,widest=0.2+trial:young=1800,victim=0.25"
"""The mode of the agent URGENT-YOUNG."""


@given(draws)
def test_every_attempt_where_young_jobs_give_way_is_that_of_the_reference(random):
    check(draw_lived(random, YOUNG))


@given(draws)
def test_every_attempt_where_kills_take_time_is_that_of_the_reference(random):
    check(draw_lived(random, SLOW_KILLS))


@given(draws)
def test_every_attempt_beside_outages_is_that_of_the_reference(random):
    check(draw_hit(random, YOUNG))


@pytest.mark.slow
@pytest.mark.parametrize("block", range(15))
def test_every_attempt_of_many_drawn_cases_is_that_of_the_reference(block):
    for seed in range(100 * block, 100 * block + 100):
        check(draw_lived(Random(seed), YOUNG))
        check(draw_lived(Random(seed), SLOW_KILLS))
        check(draw_hit(Random(seed), YOUNG))


@pytest.mark.long
def test_drawn_cases_end_attempts_in_every_way():
    """So that the tests above compare what they say."""
    reasons = Counter(row[4] for seed in range(60) for row in check(draw_hit(Random(seed), YOUNG)))
    assert set(reasons) == {COMPLETED, "evicted", "trial over", "gave way", "node down"}
    assert min(reasons.values()) > 20


@given(draws)
def test_the_reference_of_plain_trials_is_this_one(random):
    lived = draw_lived(random)
    mode = lived.mode.partition("+")[2]
    limit, kills = (int(part.partition("=")[2]) for part in mode.split(",")[:2])
    settings = lived.case.settings | {"order": "SAF", "backfill_order": None}
    allowed = None if lived.requeue is None else np.flatnonzero(lived.requeue).tolist()
    given = {"requeue": allowed, "estimates": lived.estimates, **settings}
    plain, attempts = reference_nodes_trials.simulate(
        *lived.case[:2], limit=limit, kills=kills, **given
    )
    result, lives = reference_nodes_lives.simulate(*lived.case[:2], mode=f"easy+{mode}", **given)
    assert plain[:4] == result[:4]
    assert attempts == sorted((row.job, row.taken, *row[3:]) for row in lives)


@given(draws)
def test_what_holds_of_every_schedule_on_nodes(random):
    lived = draw_hit(random, YOUNG) if random.random() < 0.5 else draw_lived(random, SLOW_KILLS)
    if not lived.case.jobs:
        return
    check(lived)
    machine, jobs = lived.case[:2]
    _, attempts = lived.by_reference()
    schedule = hpcgym.simulate(lived.workload, **lived.given)
    # No useful run is lost or counted twice, but for lost jobs.
    useful = Counter(row.job for row in attempts if row.reason == COMPLETED)
    assert [useful[j] for j in range(len(jobs))] == (schedule.start_time >= 0).astype(int).tolist()
    # Kills stay within their bounds.
    trial = as_backfill(lived.mode).trial
    kinds = {"evicted": "kills", "trial over": "kills", "gave way": "times"}
    vain = Counter((row.job, kinds[row.reason]) for row in attempts if row.reason in kinds)
    assert all(n <= getattr(trial, kind) for (_, kind), n in vain.items())
    # No node gives more than it has, and none that is down gives anything.
    overhead = trial.overhead if trial is not None else 0
    held = [(row, row.end + overhead * (row.reason == "trial over")) for row in attempts]
    for instant in {row.taken for row in attempts}:
        there = [row for row, clear in held if row.taken <= instant < clear]
        holds = [reference_nodes.Hold(row.job, row.nodes, 0, 1) for row in there]
        for v, left in enumerate(reference_nodes_lives.left_over(machine, jobs, holds)):
            assert min(left.cpus, left.gpus) >= 0
            assert not machine.nodes[v].memory_mb or left.memory_mb >= 0
            down = any(o.begin <= instant < o.end and v in o.nodes for o in lived.outages)
            assert not down or left.is_empty


@given(draws)
def test_identical_cpus_on_one_node_give_way_as_counted_processors_do(random):
    """But where a pass finds a guaranteed trial behind a reservation, and but for costs."""
    case = draw_plain_case(random)
    if not case.jobs:
        return
    machine = reference_nodes.one_partition([Node(case.machine.cpus)])
    settings = case.settings | {"depth": 1, "order": random.choice(("FCFS", "SAF", "SPF"))}
    cap = random.choice(("", ":cap=0.5,long=9,by=request"))
    mode = f"easy{cap}+{draw_trial(random, YOUNG)}"
    estimates = [job.requested_time for job in case.jobs]
    lived = Lived(Case(machine, case.jobs, settings), mode, estimates)
    behind: list[int] = []
    reference_nodes_lives.simulate(
        machine, case.jobs, mode=lived.mode, estimates=estimates, behind=behind, **settings
    )
    counted = Workload.from_arrays(
        *zip(*[(*job[:3], job.chunks) for job in case.jobs], strict=True),
        machine_processors=machine.cpus,
    )
    given = {key: value for key, value in lived.given.items() if key != "placement"}
    expected = attempts_of(hpcgym.simulate(counted, **given))
    if not behind:
        assert check(lived) == expected


# --- Worked by hand -------------------------------------------------------------------------------


def attempts_on(nodes: list[Node], jobs: list[Job], mode: str, **more: Any) -> list[Any]:
    """Return the attempts on nodes of one partition under FCFS, which are the reference's, too."""
    settings = {"placement": "lowest", "order": "FCFS", "threshold": None, "kill": True, "depth": 1}
    machine = reference_nodes.one_partition(nodes)
    estimates = [job.requested_time for job in jobs]
    return check(Lived(Case(machine, jobs, settings), mode, estimates, **more))


GIVES_WAY = "easy+trial:young=60,request=50,share=1,guarantee=20"


def test_only_young_jobs_on_the_nodes_that_a_candidate_gets_give_way():
    """Job 0 would go first, but only job 1 holds the GPU that job 2 needs.

    Job 3 needs the GPU, too; while the trial is guaranteed, nothing takes it.
    """
    jobs = [
        Job(0, 100, 100, 1, 1),
        Job(0, 100, 100, 1, 2, 1),
        Job(10, 15, 100, 1, 1, 1),
        Job(12, 5, 5, 1, 1, 1),
    ]
    assert attempts_on([Node(2), Node(2, gpus=1)], jobs, f"{GIVES_WAY},times=1") == [
        (0, 0, 0, 100, COMPLETED),
        (1, 0, 0, 10, "gave way"),
        (1, 25, 25, 125, COMPLETED),
        (2, 10, 10, 25, COMPLETED),
        (3, 125, 125, 130, COMPLETED),
    ]


def test_nobody_gives_way_where_all_young_jobs_together_leave_too_little_memory():
    """Job 0 is too old, and its memory stays; a node without counted memory would do."""
    jobs = [
        Job(0, 100, 100, 1, 1, memory_mb=4),
        Job(20, 100, 100, 1, 1, memory_mb=4),
        Job(70, 5, 5, 1, 1, memory_mb=5),
    ]
    reasons = {row[4] for row in attempts_on([Node(4, memory_mb=8)], jobs, GIVES_WAY)}
    assert reasons == {COMPLETED}
    assert attempts_on([Node(2)], jobs, GIVES_WAY)[1] == (1, 20, 20, 70, "gave way")


def test_a_young_job_of_another_component_does_not_give_way():
    parts = (
        reference_nodes.Partition("a", frozenset({0})),
        reference_nodes.Partition("b", frozenset({1})),
    )
    machine = reference_nodes.Machine((Node(1), Node(1)), parts)
    jobs = [Job(0, 100, 100, partition=1), Job(0, 100, 40), Job(5, 9, 9)]
    settings = {"placement": "lowest", "order": "FCFS", "threshold": None, "kill": True, "depth": 1}
    lived = Lived(Case(machine, jobs, settings), GIVES_WAY, [100, 40, 9])
    assert {row[4] for row in check(lived)} == {COMPLETED}


def test_nodes_of_a_killed_trial_are_busy_while_they_are_cleared():
    """Job 2 is tried on node 1 from 1 to 16. That is clear at 21, when job 1 has both nodes.

    So job 3 starts at 18 on node 0, where it ends in time. Job 2 restarts at 31, useful from 36 on.
    """
    jobs = [
        Job(0, 18, 18, 1, 2),
        Job(0, 10, 10, 2, 2),
        Job(1, 40, 50, 1, 2),
        Job(18, 3, 3, 1, 2),
    ]
    mode = "easy+trial:limit=10,kills=1,overhead=5"
    assert attempts_on([Node(2), Node(2)], jobs, mode) == [
        (0, 0, 0, 18, COMPLETED),
        (1, 21, 21, 31, COMPLETED),
        (2, 1, 6, 16, "trial over"),
        (2, 31, 36, 76, COMPLETED),
        (3, 18, 18, 21, COMPLETED),
    ]


def attempts_on_log(workload: Workload, **settings: Any) -> tuple[Any, Any]:
    """Return the attempts of a log on nodes by the reference, and by the package."""
    made: list[Any] = []

    def by_lives(*given: Any, **more: Any) -> reference_nodes.Result:
        result, attempts = reference_nodes_lives.simulate(
            *given, day_start=workload.week_start, **more
        )
        made.extend(attempt[:5] for attempt in attempts)
        return result

    settings |= {"threshold": 200_000, "placement": "best-effort-local"}
    expected = by_reference(workload, by_lives, **settings)
    schedule = hpcgym.simulate(workload, **settings_of(**settings))
    assert first_difference(expected, result_of(schedule)) == ""
    return sorted(made), attempts_of(schedule)


def test_part_of_a_log_on_nodes_has_the_attempts_of_the_reference(real_log):
    workload = log_on_nodes(real_log(KTH))
    part = workload.select(np.arange(len(workload)) < 600)
    expected, got = attempts_on_log(part, mode=H_YOUNG, order="SMITH-URGENT")
    assert got == expected
    assert {row[4] for row in got} == {COMPLETED, "evicted", "trial over", "gave way"}


@pytest.mark.slow
def test_a_whole_log_on_nodes_has_the_attempts_of_the_reference(real_log):
    expected, got = attempts_on_log(log_on_nodes(real_log(KTH)), mode=H_YOUNG, order="SMITH-URGENT")
    assert got == expected
