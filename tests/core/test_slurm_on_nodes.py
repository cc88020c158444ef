"""Slurm's backfilling on machines of nodes: the reference, cases by hand, and what stands by it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hpcgym
import reference_nodes
import reference_nodes_slurm
from drawn_machines import Case
from engines import simulator_of
from fair_share_cases import limited
from hpcgym.base.errors import PolicyError
from hpcgym.core.backfill import as_backfill
from hpcgym.core.parts.slurm import Slurm
from hpcgym.core.simulator import Simulator
from hpcgym.core.workload import Workload
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.machine import Machine
from hpcgym.machine.files.formats import read_machine
from nodes_lived import Lived, check, draw_crowd, draw_outages, draws
from nodes_of_kernels import (
    MACHINES,
    by_reference,
    first_difference,
    log_on_nodes,
    result_of,
    settings_of,
    workload_of,
)
from reference_nodes import Job, is_refused, one_partition

FINE = "resolution=1,interval=1"
KEYS = ("placement", "order", "threshold", "kill")


def draw_mode(random: Random) -> str:
    """Draw a mode: few tests or many, short windows, grids and intervals of all sizes."""
    stated = {
        "max_job_test": random.choice((1, 2, 3, 5, 500, 500)),
        "max_job_user": random.choice((1, 2, 500, 500)),
        "max_job_part": random.choice((1, 2, "inf", "inf")),
        "window": random.choice((1, 1, 2, 1440)),
        "resolution": random.choice((1, 2, 7, 10, 60, 1000)),
        "interval": random.choice((1, 2, 5, 30, 500)),
    }
    return "slurm:" + ",".join(f"{key}={value}" for key, value in stated.items())


def draw_crowded(random: Random, *most: int) -> Case:
    """Draw a case of a few users, in most of which many jobs wait at once."""
    case = draw_crowd(random, *most)
    return case._replace(settings={key: case.settings[key] for key in KEYS})


def simulator_for(case: Case, mode: str, **more: Any) -> Simulator:
    """Make a simulator of a case that checks invariants."""
    given = settings_of(**case.settings) | {"backfill": mode}
    return simulator_of(workload_of(case.machine, case.jobs), **given, **more)


def difference(case: Case, mode: str) -> str:
    """Compare start, nodes and kind of every job with the reference's."""
    simulator = simulator_for(case, mode)
    assert not simulator.run()
    expected = reference_nodes_slurm.simulate(case.machine, case.jobs, mode, **case.settings)
    return first_difference(expected, result_of(simulator))


@given(draws)
def test_drawn_machines_are_scheduled_as_by_the_reference(random):
    assert not difference(draw_crowded(random, 8, random.choice((12, 30))), draw_mode(random))


@pytest.mark.slow
@settings(max_examples=2_000)
@given(draws)
def test_larger_drawn_machines_are_scheduled_as_by_the_reference(random):
    assert not difference(draw_crowded(random, 20, 60), draw_mode(random))


@pytest.mark.long
def test_drawn_cases_have_what_the_two_steps_are_about():
    """Blocked partitions beside others, with nodes in common; jobs that cycles start."""
    several = shared = by_cycles = 0
    kind = reference_nodes_slurm.SlurmNodes
    for seed in range(100):
        case, made = draw_crowded(Random(seed), 8, 30), []

        class Noting(kind):  # type: ignore[misc, valid-type]
            def run(self, made=made):  # the list of this case
                made.append(self)
                return super().run()

        reference_nodes.simulate(case.machine, case.jobs, kind=Noting, **case.settings)
        partitions = case.machine.partitions
        several += len(partitions) > 1
        shared += sum(len(one.nodes) for one in partitions) > len(case.machine.nodes)
        by_cycles += made[0].n_by_cycles > 0
    assert several > 30 and shared > 10 and by_cycles > 25


# --- By hand --------------------------------------------------------------------------------------


def machine_of(nodes: int, cpus: int, **partitions: str) -> Machine:
    """Return a machine of equal nodes, with partitions by name."""
    given = [{"name": name, "nodes": ids} for name, ids in partitions.items()]
    return Machine.from_dict({"nodes": [{"count": nodes, "cpus": cpus}], "partitions": given})


def jobs_on(machine: Machine, *rows: tuple[int, int, int, int], **further: Any) -> Workload:
    """Return jobs (submit, run, cpus, partition) of one chunk each; requests are exact."""
    submit, run, cpus, partition = zip(*rows, strict=True)
    ones = [1] * len(rows)
    return Workload.from_arrays(
        submit, run, run, cpus, chunks=ones, partition=partition, machine=machine, **further
    )


def starts(jobs: Workload, mode: str, **settings: Any) -> list[int]:
    """Return when jobs start, s, by both schedulers, which must agree."""
    schedule = hpcgym.simulate(jobs, backfill=mode, **settings)
    expected = by_reference(jobs, lambda *given: reference_nodes_slurm.simulate(*given, mode))
    assert not first_difference(expected, result_of(schedule))
    return schedule.start_time.tolist()


def test_a_blocked_job_holds_back_its_partition_and_no_other():
    """A and B, which waits for A, are in a, as is C; D and E are in b. C fits from 1 on."""
    machine = machine_of(2, 4, a="0", b="1")
    rows = [(0, 100, 3, 0), (0, 100, 4, 0), (0, 10, 4, 1), (1, 20, 1, 0), (2, 10, 4, 1)]
    jobs = jobs_on(machine, *rows)
    assert starts(jobs, "slurm:interval=1000") == [0, 100, 0, 200, 10]
    assert starts(jobs, "slurm:interval=30") == [0, 100, 0, 30, 10]
    assert hpcgym.simulate(jobs).start_time.tolist() == [0, 100, 0, 1, 10]
    behind = hpcgym.simulate(jobs, backfill="slurm").backfilled.tolist()
    assert behind == [False, False, False, True, False]


def test_a_blocked_partition_keeps_its_nodes_from_other_partitions():
    """Node 0 is in both. It has a cpu for C and D, of b; the main scheduler gives C node 1."""
    machine = machine_of(2, 4, a="0", b="0-1")
    rows = [(0, 100, 3, 0), (0, 100, 4, 0), (1, 10, 4, 1), (2, 10, 1, 1)]
    jobs = jobs_on(machine, *rows)
    assert starts(jobs, "slurm:interval=1000") == [0, 100, 1, 11]
    assert starts(jobs, "slurm:interval=5") == [0, 100, 1, 5]
    schedule = hpcgym.simulate(jobs, backfill="slurm:interval=1000")
    assert schedule.placement.of(3) == {1: 1}
    assert hpcgym.simulate(jobs, backfill="slurm:interval=5").placement.of(3) == {0: 1}


def test_a_reservation_holds_whole_nodes():
    """The second job will need half of the node at 100; the third may not run into it."""
    jobs = jobs_on(machine_of(1, 4, all="0"), (0, 100, 3, 0), (0, 50, 2, 0), (0, 200, 1, 0))
    assert starts(jobs, f"slurm:{FINE}") == [0, 100, 100]
    assert hpcgym.simulate(jobs, backfill="conservative").start_time.tolist() == [0, 100, 0]


def test_a_cycle_tests_so_many_jobs_of_a_partition_and_does_not_count_the_others():
    """Of each partition the first job runs, the second waits for it, and the third fits."""
    machine = machine_of(2, 8, a="0", b="1")
    rows = [(0, 500, 6, 0), (0, 500, 8, 0), (0, 90, 1, 0), (0, 500, 7, 1), (0, 500, 2, 1)]
    jobs = jobs_on(machine, *rows, (0, 90, 1, 1))
    assert starts(jobs, "slurm") == [0, 500, 0, 0, 500, 0]
    assert starts(jobs, "slurm:max_job_part=2") == [0, 500, 0, 0, 500, 0]
    assert starts(jobs, "slurm:max_job_part=1") == [0, 500, 1000, 0, 500, 500]
    # The third job is left out, and not counted: the fifth is the second that is tested.
    assert starts(jobs, "slurm:max_job_part=1,max_job_test=2") == [0, 500, 1000, 0, 500, 500]


@pytest.mark.parametrize(("tier", "begin"), [(0, [0, 30]), (3, [30, 0])])
def test_higher_tiers_of_other_nodes_are_tested_first(tier, begin):
    """A cycle tests three jobs: both of the partition that goes first, and one of the other."""
    parts = [{"name": "a", "nodes": "0"}, {"name": "b", "nodes": "1", "tier": tier}]
    machine = Machine.from_dict({"nodes": [{"count": 2, "cpus": 8}], "partitions": parts})
    rows = [(0, 50, 6, 0), (0, 50, 8, 0), (0, 9, 1, 0), (0, 50, 6, 1), (0, 50, 8, 1), (0, 9, 1, 1)]
    jobs = jobs_on(machine, *rows)
    assert starts(jobs, "slurm:max_job_test=3,resolution=1")[2::3] == begin


@given(draws)
def test_jobs_alone_on_their_nodes_are_scheduled_as_by_the_conservative_mode(random):
    """One partition, no limit and no grid; jobs run for a second at least."""
    case = draw_crowded(random, 8, 30)
    jobs = [
        job._replace(run_time=max(job.run_time, 1), exclusive=True, partition=0)
        for job in case.jobs
    ]
    machine = one_partition(case.machine.nodes)
    given = settings_of(**case.settings) | {"policy": "FCFS", "threshold": None}
    fit = [job for job in jobs if not is_refused(machine, job, given["placement"])]
    workload = workload_of(machine, fit or [Job(0, 1, 1)])
    ours, theirs = (
        hpcgym.simulate(workload, **given | {"backfill": mode})
        for mode in (f"slurm:max_job_test=inf,window=inf,{FINE}", "conservative")
    )
    assert not first_difference(result_of(theirs), result_of(ours))


# --- Logs -----------------------------------------------------------------------------------------


@cache
def hetero_week(number: int) -> Workload:
    """Return a week of a bundled log whose partitions have tiers, GPUs and memory."""
    return Episodes("hetero-64-weeks").workload(number)


def log_differs(workload: Workload, mode: str, **settings: Any) -> str:
    """Compare the schedule of part of a log with the reference's."""
    kind = lambda machine, jobs, **given: reference_nodes_slurm.simulate(  # noqa: E731
        machine, jobs, mode, **given
    )
    expected = by_reference(workload, kind, **settings)
    schedule = hpcgym.simulate(workload, **settings_of(**settings) | {"backfill": mode})
    return first_difference(expected, result_of(schedule))


IN_MODES = pytest.mark.parametrize(
    ("mode", "settings"),
    [
        ("slurm", {}),
        ("slurm:max_job_test=20,max_job_part=5,interval=120", {"order": "SAF"}),
        ("slurm:window=60,resolution=600,interval=300", {"placement": "best-effort-local"}),
    ],
    ids=str,
)


@pytest.mark.long
@IN_MODES
def test_half_a_day_of_the_bundled_log_starts_as_in_the_reference(mode, settings):
    week = hetero_week(0)
    assert not log_differs(week.select(week.submit_time < 43_200), mode, **settings)


@pytest.mark.slow
@IN_MODES
@pytest.mark.parametrize("log", MACHINES)
def test_part_of_a_log_starts_as_in_the_reference(real_log, mode, settings, log):
    workload = log_on_nodes(real_log(log))
    rows = np.arange(len(workload))
    first = len(workload) // 3
    part = workload.select((rows >= first) & (rows < first + 1_500))
    assert hpcgym.simulate(part).wait_time.mean() > 60
    assert not log_differs(part, mode, **settings)


# --- Beside other parts ---------------------------------------------------------------------------


@given(st.data())
def test_a_job_beyond_a_limit_is_left_out_and_blocks_nothing(data):
    random = Random(data.draw(st.integers(0, 2**40)))
    case, mode = draw_crowded(random, 8, 30), draw_mode(random)
    narrow = [job for job in case.jobs if job.processors <= 8]  # limits of cpus allow as many
    case = case._replace(jobs=narrow or [Job(0, 1, 1)])
    workload, texts, theirs = data.draw(limited(workload_of(case.machine, case.jobs)))
    settings = case.settings | {"order": random.choice(("FCFS", "SAF", "LCFS", "WFP3"))}
    chosen = settings_of(**settings) | {"backfill": mode}
    ours = simulator_of(workload, **chosen, events=texts)
    assert not ours.run()
    expected = reference_nodes_slurm.simulate(
        case.machine, case.jobs, mode, limits=theirs, **settings
    )
    assert not first_difference(expected, result_of(ours))


def draw_hit(random: Random, *most: int, widest: float = np.inf) -> Lived:
    """Draw a crowded case, a mode and outages."""
    case = draw_crowded(random, *most)
    rule = case.settings["placement"]
    narrow = [job for job in case.jobs if job.processors <= widest]
    jobs = [job for job in narrow if not is_refused(case.machine, job, rule)]
    case = case._replace(jobs=jobs or [Job(0, 1, 1)])
    estimates = [job.requested_time for job in case.jobs]
    requeue = [random.random() < 0.6 for _ in case.jobs] if random.random() < 0.3 else None
    outages = draw_outages(random, len(case.machine.nodes))
    return Lived(case, draw_mode(random), estimates, requeue, outages)


@pytest.mark.parametrize(("wide", "begins"), [(2, [0, 200, 1]), (1, [0, 30, 30])])
def test_a_job_that_outages_keep_from_its_nodes_blocks_nothing(wide, begins):
    """Node 1 is down from 60 to 200; node 0 may hold a job of 80 s. A Slurm 22.05 does the same."""
    columns = [0, 0, 1], [30, 80, 10], [30, 80, 10], [4, 4 * wide, 4]
    machine = machine_of(2, 4, a="0-1")
    jobs = Workload.from_arrays(*columns, chunks=[1, wide, 1], machine=machine)
    outage = "outage:from=60,to=200,nodes=1"
    schedule = hpcgym.simulate(jobs, backfill="slurm:interval=1000", events=outage)
    assert schedule.start_time.tolist() == begins


@given(draws)
def test_every_attempt_beside_outages_is_that_of_the_reference(random):
    check(draw_hit(random, 8, random.choice((12, 30))))


@given(st.data())
def test_jobs_beyond_a_limit_and_outages_meet_as_in_the_reference(data):
    """Under the mode; under EASY and none without limits of minutes."""
    random = Random(data.draw(st.integers(0, 2**40)))
    hit = draw_hit(random, 8, 30, widest=8)  # limits of cpus allow as many
    workload, texts, theirs = data.draw(limited(hit.workload))
    if random.random() < 0.4:
        kept = [at for at, limit in enumerate(theirs) if limit.minutes is None]
        texts, theirs = ([column[at] for at in kept] for column in (texts, theirs))
        settings = hit.case.settings | {"depth": random.choice((0, 1, 1))}
        hit = hit._replace(mode=None, case=hit.case._replace(settings=settings))
    check(hit._replace(within=(workload, texts, theirs)))


@pytest.mark.long
def test_it_stands_beside_priorities_dependencies_and_decisions():
    """Orders that change with time are made at the instants of cycles, too."""
    week = hetero_week(0)
    order = "multifactor:age=1000,fairshare=1000"
    coarse = hpcgym.simulate(week, order, backfill="slurm:interval=3600")
    fine = hpcgym.simulate(week, order, backfill="slurm")
    assert coarse.wait_time.mean() > fine.wait_time.mean()
    after = np.full(len(week), -1)
    after[1::2] = np.arange(0, len(week) - 1, 2)
    schedule = hpcgym.simulate(replace(week, after=after), backfill="slurm", dependencies="start")
    assert (schedule.start_time[1::2] >= schedule.end_time[: len(week) - 1 : 2]).all()
    simulator = simulator_of(week, decide="contested", backfill="slurm")
    while simulator.run():
        simulator.order_by("FCFS")
    plain = hpcgym.simulate(week, backfill="slurm")
    assert simulator.start_time.tolist() == plain.start_time.tolist()
    assert hpcgym.simulate_many([week], ["FCFS"], backfill="slurm")["mean_bsld"][0, 0] == (
        pytest.approx(plain.metrics()["mean_bsld"], rel=1e-12)
    )


def test_the_clock_stops_at_cycles_only_where_a_job_may_start():
    """Nothing fits for a week, and cycles would come each second."""
    week = 604_800
    machine = machine_of(2, 4, a="0", b="1")
    rows = [(0, week, 4, 0), (0, week, 4, 1), (5, 9, 4, 0), (9, 9, 1, 1)]
    simulator = simulator_of(jobs_on(machine, *rows), backfill=f"slurm:{FINE}")
    simulator.run()
    assert simulator.start_time.tolist() == [0, 0, week, week]
    assert simulator.counts()["passes"] <= 6


def test_a_limit_of_partitions_is_refused_where_there_are_none():
    jobs = Workload.from_arrays([0], [5], [5], [2], machine_processors=4)
    with pytest.raises(PolicyError, match="which is about partitions of machines of nodes"):
        hpcgym.simulate(jobs, backfill="slurm:max_job_part=3")


# --- Slurm's files --------------------------------------------------------------------------------

NODES = """NodeName=c1 CPUTot=4 RealMemory=1 State=IDLE Partitions=a
NodeName=c2 CPUTot=4 RealMemory=1 State=IDLE Partitions=b
PartitionName=a Default=YES MaxTime=UNLIMITED Nodes=c1 PriorityTier=1
PartitionName=b Default=NO MaxTime=UNLIMITED Nodes=c2 PriorityTier=1
"""


def test_machine_and_mode_come_from_the_files_of_a_slurm(tmp_path):
    """The case by hand, on what `scontrol` prints and with what slurm.conf says."""
    shown, conf = tmp_path / "nodes.txt", tmp_path / "slurm.conf"
    shown.write_text(NODES)
    text = "SchedulerParameters=bf_interval=30,bf_max_job_part=9,bf_continue\n"
    conf.write_text(text)
    assert as_backfill(f"slurm:{conf}") == Slurm(max_job_part=9)
    rows = [(0, 100, 3, 0), (0, 100, 4, 0), (0, 10, 4, 1), (1, 20, 1, 0), (2, 10, 4, 1)]
    jobs = jobs_on(read_machine(shown).machine, *rows)
    assert hpcgym.simulate(jobs, backfill=f"slurm:{conf}").start_time.tolist() == [
        *(0, 100, 0, 30, 10)
    ]
