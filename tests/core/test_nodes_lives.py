"""Trials, young jobs, a cap, costs, overhead and outages on nodes: against the reference."""

from __future__ import annotations

from collections import Counter
from functools import partial
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import hpcgym
import reference_nodes
import reference_nodes_lives
from drawn_machines import Case, draw_plain_case
from engines import simulator_of
from hpcgym.base.errors import HpcgymError
from hpcgym.core.backfill import as_backfill
from hpcgym.core.workload import Workload
from hpcgym.schedule.attempts import COMPLETED
from nodes_lived import (
    CHANCES,
    SLOW_KILLS,
    YOUNG,
    Lived,
    attempts_of,
    attempts_on,
    check,
    draw_hit,
    draw_lived,
    draw_trial,
    draws,
)
from nodes_of_kernels import (
    by_reference,
    first_difference,
    log_on_nodes,
    result_of,
    settings_of,
    workload_of,
)
from reference_nodes import Job, Node

KTH = "KTH-SP2-1996-2.1-cln"
H_YOUNG = "cost-benefit:cap=0.97,widest=0.2+trial:young=1800,victim=0.25"
"""The mode of the agent URGENT-YOUNG."""


@pytest.mark.parametrize(
    "draw",
    [
        draw_lived,
        partial(draw_lived, chances=YOUNG),
        partial(draw_lived, chances=SLOW_KILLS),
        partial(draw_hit, chances=YOUNG),
    ],
    ids=["trials", "young jobs that give way", "kills that take time", "outages"],
)
@given(random=draws)
def test_every_attempt_is_that_of_the_reference(draw, random):
    check(draw(random))


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
    jobs = [Job(0, 18, 18, 1, 2), Job(0, 10, 10, 2, 2), Job(1, 40, 50, 1, 2), Job(18, 3, 3, 1, 2)]
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


CROSSED = [
    Job(0, 100, 100, 1),
    Job(1, 100, 100, 4),  # the head, from 100 on
    Job(2, 200, 200, 1, 2),  # node 1
    Job(3, 200, 200, 1),  # node 0
    Job(50, 40, 40, 1, 2),
]
"""Jobs 2 and 3 go on trial beside job 0; at 50 job 4 backfills on node 1, where job 2 is."""


def test_only_trials_on_the_nodes_of_a_start_end():
    assert attempts_on([Node(2), Node(2)], CROSSED, "easy+trial")[1:] == [
        (1, 100, 100, 200, COMPLETED),
        (2, 2, 2, 50, "evicted"),
        (2, 90, 90, 100, "evicted"),  # on trial again once job 4 has ended
        (2, 200, 200, 400, COMPLETED),
        (3, 3, 3, 100, "evicted"),
        (3, 200, 200, 400, COMPLETED),
        (4, 50, 50, 90, COMPLETED),
    ]


def test_a_job_on_trial_starts_on_its_own_nodes_and_on_no_others():
    """At 50 job 2 takes node 1, where job 3 is on trial; the cpu left is for the pass at 60."""
    jobs = [Job(0, 50, 1000, 1), Job(0, 50, 100, 1), Job(1, 100, 100, 5), Job(2, 200, 2000, 1)]
    assert attempts_on([Node(2)] * 3, [*jobs, Job(60, 1, 1, 6)], "easy+trial")[3:5] == [
        (3, 2, 2, 50, "evicted"),
        (3, 60, 60, 260, COMPLETED),
    ]


def test_a_job_on_trial_that_a_pass_starts_runs_on_where_it_is():
    """At 50 job 1 ends, so that a cpu is extra at 100, when job 2 is to start."""
    jobs = [Job(0, 100, 100, 2), Job(0, 50, 1000, 1), Job(1, 100, 100, 5), Job(2, 200, 2000, 1)]
    assert attempts_on([Node(2)] * 3, jobs, "easy+trial:limit=100")[2:] == [
        (2, 100, 100, 200, COMPLETED),
        (3, 2, 2, 202, COMPLETED),
    ]


def test_a_promoted_job_takes_nothing_extra_if_it_ends_in_time_by_its_trial():
    """At 10 SAF's head is job 4, from 100 on. Job 3 ends at 97, so that job 5 may start."""
    jobs = [
        *(Job(0, 50, 50, 5), Job(0, 100, 100, 3), Job(1, 10, 10, 7), Job(2, 90, 95, 1)),
        *(Job(10, 1, 1, 9), Job(10, 1000, 1000, 1)),
    ]
    requeue = [True] * 5 + [False]  # job 5 is not tried
    attempts = attempts_on([Node(10)], jobs, "easy+trial:limit=20", order="SAF", requeue=requeue)
    assert attempts[3:] == [
        (3, 2, 2, 92, COMPLETED),
        (4, 100, 100, 101, COMPLETED),
        (5, 10, 10, 1010, COMPLETED),
    ]


def test_users_who_do_not_take_part_are_not_tried():
    jobs = [Job(0, 100, 100, 1), Job(1, 100, 100, 4), Job(2, 20, 200, 1)]
    workload = workload_of(reference_nodes.one_partition([Node(2), Node(2)]), jobs)
    for mode, start in (("easy+trial", 2), ("easy+trial:users=0", 200)):
        assert hpcgym.simulate(workload, backfill=mode).start_time[2] == start


# --- Properties of trials -------------------------------------------------------------------------


def draw_tried(random: Random) -> Lived:
    """Draw a case with plain trials, in an order that each component goes by alone."""
    lived = draw_lived(random)
    chosen = {"order": random.choice(("FCFS", "SAF", "WFP3")), "backfill_order": None}
    case = lived.case._replace(settings=lived.case.settings | chosen)
    return lived._replace(case=case, mode=f"easy+{draw_trial(random, CHANCES)}")


@given(draws)
def test_a_component_tries_jobs_as_a_machine_alone_does(random):
    lived = draw_tried(random)
    attempts = check(lived)
    component = reference_nodes.components(lived.case.machine)
    for one in set(component):
        rows = [j for j, job in enumerate(lived.case.jobs) if component[job.partition] == one]
        if not rows:
            continue
        flags = None if lived.requeue is None else [lived.requeue[j] for j in rows]
        case = lived.case._replace(jobs=[lived.case.jobs[j] for j in rows])
        alone = Lived(case, lived.mode, [lived.estimates[j] for j in rows], flags)
        rows_of = {j: at for at, j in enumerate(rows)}
        own = [(rows_of[job], *rest) for job, *rest in attempts if job in rows_of]
        assert attempts_of(hpcgym.simulate(alone.workload, **alone.given)) == sorted(own)


@given(draws)
def test_where_no_job_may_be_killed_jobs_start_as_under_easy(random):
    lived = draw_tried(random)
    if not lived.case.jobs:
        return
    lived = lived._replace(requeue=[False] * len(lived.case.jobs))
    with_trials = hpcgym.simulate(lived.workload, **lived.given)
    easy = hpcgym.simulate(lived.workload, **lived.given | {"backfill": "easy"})
    assert first_difference(result_of(easy), result_of(with_trials)) == ""


@given(draws)
def test_invariants_hold_where_jobs_are_picked(random):
    lived = draw_tried(random)
    if not lived.case.jobs:
        return
    simulator = simulator_of(lived.workload, **lived.given, decide="event")
    while simulator.run():
        if random.random() < 0.7:
            simulator.pick(random.choice(simulator.waiting.tolist()))
    assert (simulator.start_time >= lived.workload.submit_time).all()


@pytest.mark.parametrize("resource", [0, 1, 2])
def test_a_node_that_counts_something_else_as_lent_is_found_broken(resource):
    jobs = [Job(0, 100, 100, 1), Job(1, 100, 100, 4), Job(2, 200, 200, 1), Job(50, 40, 400, 1, 2)]
    workload = workload_of(reference_nodes.one_partition([Node(2), Node(2)]), jobs)
    simulator = simulator_of(workload, decide="event", backfill="easy+trial")
    while simulator.run() and simulator.now < 50:
        pass
    assert simulator.state.lent_on[0].sum() == 1
    simulator.state.lent_on[0, 0, resource] += 1
    with pytest.raises(HpcgymError, match="jobs use more of a node than it has"):
        simulator.run()
