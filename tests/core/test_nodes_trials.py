"""Trials on machines of nodes: against the reference, and what holds of every schedule.

After every pass it is checked that no node gives more than it has, to trials either.
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
import reference_nodes
import reference_nodes_trials
from drawn_machines import Case, draw_case
from engines import simulator_of, starts_again
from hpcgym.base.errors import HpcgymError
from hpcgym.core.simulator import Simulator
from hpcgym.core.workload import Workload
from hpcgym.schedule.attempts import COMPLETED, KILLED
from nodes_of_kernels import first_difference, machine_of, result_of, settings_of, workload_of
from reference_nodes import Job, Machine, Node
from strategies import REQUESTED_TIMES_S

draws = st.integers(0, 2**40).map(Random)
Rows = list[tuple[int, int, int, str]]


class Tried(NamedTuple):
    """A case, and how its jobs are tried."""

    case: Case
    limit: int
    kills: int
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
        mode = f"easy+trial:limit={self.limit},kills={self.kills}"
        return settings_of(**self.case.settings) | {"backfill": mode, "estimates": self.estimates}

    def by_reference(self) -> tuple[reference_nodes.Result, Any]:
        """Return starts and nodes, and all attempts, by the reference."""
        allowed = None
        if self.requeue is not None:
            allowed = [j for j, may_be_killed in enumerate(self.requeue) if may_be_killed]
        return reference_nodes_trials.simulate(
            *self.case[:2],
            limit=self.limit,
            kills=self.kills,
            requeue=allowed,
            estimates=self.estimates,
            **self.case.settings,
        )


def crowded(random: Random, case: Case) -> Case:
    """Have many jobs of a case wait at once, and request more than they run."""
    sooner, longer = random.choice((1, 2, 8)), random.choice((1, 1, 3))
    jobs = []
    for job in case.jobs:
        limited = case.machine.partitions[job.partition].max_time_s
        asked = job.requested_time * (1 if limited else longer)
        jobs.append(job._replace(submit_time=job.submit_time // sooner, requested_time=asked))
    settings = {key: value for key, value in case.settings.items() if key != "planned"}
    return Case(case.machine, jobs, settings | {"depth": 1})


def draw_tried(random: Random, *most: int) -> Tried:
    """Draw a case with a job."""
    case = crowded(random, draw_case(random, *most))
    while not case.jobs:
        case = crowded(random, draw_case(random, *most))
    estimates = [job.requested_time for job in case.jobs]
    if random.random() < 0.4:
        estimates = [random.choice((e, e, *REQUESTED_TIMES_S)) for e in estimates]
    flags = [random.random() < 0.8 for _ in case.jobs] if random.random() < 0.3 else None
    return Tried(
        case, random.choice((1, 2, 3, 5, 10, 20)), random.choice((1, 2, 3)), estimates, flags
    )


def draw_roomy(random: Random) -> Tried:
    """Draw narrow jobs, alike but for their times, and wide ones for few of the nodes.

    A node may hold several trials at once, and those on the large nodes are in a wide job's way.
    """
    nodes = [Node(random.choice((2, 4, 8)), memory_mb=9) for _ in range(random.randint(2, 4))]
    largest = max(node.cpus for node in nodes)
    settings = draw_case(random).settings | {"depth": 1}
    settings.pop("planned", None)
    jobs, submit_time = [], 0
    for _ in range(random.randint(10, 40)):
        submit_time += random.choice((0, 0, 1, 2))
        times = submit_time, random.choice((0, 1, 3, 8, 30)), random.choice((3, 10, 60, 60))
        if random.random() < 0.2:
            jobs.append(Job(*times, random.choice((1, 1, 2)), largest))
        else:
            memory_mb = random.choice((0, 0, 0, 3))
            jobs.append(Job(*times, random.choice((1, 1, 1, 2)), 1, memory_mb=memory_mb))
    machine = reference_nodes.one_partition(nodes)
    rule = settings["placement"]
    jobs = [job for job in jobs if not reference_nodes.is_refused(machine, job, rule)]
    estimates = [job.requested_time for job in jobs]
    return Tried(Case(machine, jobs, settings), random.choice((4, 20, 40)), 3, estimates, None)


def attempts_of(schedule: hpcgym.Schedule) -> Rows:
    """Return the attempts of a schedule as rows: job, when it began and ended, and why."""
    frame = schedule.attempts_frame()
    row = {job: at for at, job in enumerate(schedule.workload.job_id.tolist())}
    assert (frame["taken_time"] == frame["start_time"]).all()
    ends = frame["reason"].replace(KILLED, COMPLETED).tolist()
    times = (frame[key].tolist() for key in ("taken_time", "end_time"))
    return sorted(zip([row[job] for job in frame["job_id"]], *times, ends, strict=True))


def check(tried: Tried) -> Rows:
    """Check a case against the reference; return the attempts."""
    expected, attempts = tried.by_reference()
    simulator = simulator_of(tried.workload, **tried.given)
    assert not simulator.run()
    assert first_difference(expected, result_of(simulator)) == ""
    schedule = hpcgym.simulate(tried.workload, **tried.given)
    assert first_difference(expected, result_of(schedule)) == ""
    got = attempts_of(schedule)
    assert got == sorted(attempt[:4] for attempt in attempts)
    return got


@given(draws)
def test_every_attempt_on_drawn_machines_is_that_of_the_reference(random):
    check(draw_tried(random))


@given(draws)
def test_every_attempt_where_many_jobs_wait_is_that_of_the_reference(random):
    check(draw_tried(random, 4, 40))


@given(draws)
def test_every_attempt_where_trials_share_nodes_is_that_of_the_reference(random):
    tried = draw_roomy(random)
    if tried.case.jobs:
        check(tried)


@pytest.mark.long
def test_drawn_cases_promote_and_end_trials_in_every_way():
    """So that the tests above compare what they say."""
    reasons, promoted = set(), 0
    for seed in range(40):
        tried = draw_tried(Random(seed), 4, 40)
        attempts = check(tried)
        reasons |= {reason for *_, reason in attempts}
        began = {job: start for job, start, _, reason in attempts if reason == COMPLETED}
        passes = tried.by_reference()[0].passes
        promoted += sum(began[j] < one.time for one in passes for j in one.started)
    assert reasons == {COMPLETED, "evicted", "trial over"}
    assert promoted > 10


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(150))
def test_every_attempt_on_larger_machines_is_that_of_the_reference(seed):
    check(draw_tried(Random(seed), 40, 60))


@given(draws)
def test_no_node_ever_gives_more_than_it_has(random):
    tried = draw_tried(random, 4, 40)
    check(tried)
    machine, jobs = tried.case[:2]
    _, attempts = tried.by_reference()
    for instant in {attempt.taken for attempt in attempts}:
        there = [one for one in attempts if one.taken <= instant < one.end]
        for v, node in enumerate(machine.nodes):
            holds = [reference_nodes.Hold(one.job, one.nodes, 0, 1) for one in there]
            own = [hold for hold in holds if v in hold.nodes]
            left = reference_nodes.free_at(machine, jobs, v, own)
            assert min(left.cpus, left.gpus) >= 0
            assert not node.memory_mb or left.memory_mb >= 0
            alone = [hold.j for hold in own if jobs[hold.j].exclusive]
            assert not alone or len(own) == 1


@given(draws)
def test_a_component_tries_jobs_as_a_machine_alone_does(random):
    tried = draw_tried(random, 6, 30)
    attempts = check(tried)
    component = reference_nodes.components(tried.case.machine)
    for one in set(component):
        rows = [j for j, job in enumerate(tried.case.jobs) if component[job.partition] == one]
        if not rows:
            continue
        flags = None if tried.requeue is None else [tried.requeue[j] for j in rows]
        jobs = [tried.case.jobs[j] for j in rows]
        alone = Tried(
            tried.case._replace(jobs=jobs),
            *tried[1:3],
            [tried.estimates[j] for j in rows],
            flags,
        )
        rows_of = {j: at for at, j in enumerate(rows)}
        own = [(rows_of[job], *rest) for job, *rest in attempts if job in rows_of]
        assert attempts_of(hpcgym.simulate(alone.workload, **alone.given)) == sorted(own)


@given(draws)
def test_without_time_for_a_trial_jobs_start_as_under_easy(random):
    """No job may be killed, so none goes on trial."""
    tried = draw_tried(random)._replace(requeue=None)
    tried = tried._replace(requeue=[False] * len(tried.case.jobs))
    with_trials = hpcgym.simulate(tried.workload, **tried.given)
    easy = hpcgym.simulate(tried.workload, **tried.given | {"backfill": "easy"})
    assert first_difference(result_of(easy), result_of(with_trials)) == ""


def two_nodes(*rows: Job) -> tuple[Machine, list[Job]]:
    """Return a machine of two nodes with 2 cpus each, and jobs."""
    return reference_nodes.one_partition([Node(2), Node(2)]), list(rows)


def run(machine: Machine, jobs: list[Job], mode: str = "easy+trial:limit=300") -> hpcgym.Schedule:
    """Simulate in debug mode first, so that invariants are checked."""
    workload = workload_of(machine, jobs)
    simulator = simulator_of(workload, "FCFS", backfill=mode)
    simulator.run()
    schedule = hpcgym.simulate(workload, "FCFS", backfill=mode)
    assert schedule.start_time.tolist() == simulator.start_time.tolist()
    return schedule


def test_only_trials_on_the_nodes_of_a_start_end():
    """Jobs 2 and 3 go on trial beside job 0; at 50 job 4 backfills on node 1, where job 2 is."""
    machine, jobs = two_nodes(
        Job(0, 100, 100, 1),
        Job(1, 100, 100, 4),  # the head, from 100 on
        Job(2, 200, 200, 1, 2),  # node 1
        Job(3, 200, 200, 1),  # node 0
        Job(50, 40, 40, 1, 2),
    )
    schedule = run(machine, jobs)
    assert schedule.placement.of(4) == {1: 1}
    assert attempts_of(schedule)[1:] == [
        (1, 100, 200, COMPLETED),
        (2, 2, 50, "evicted"),
        (2, 90, 100, "evicted"),  # on trial again once job 4 has ended
        (2, 200, 400, COMPLETED),
        (3, 3, 100, "evicted"),
        (3, 200, 400, COMPLETED),
        (4, 50, 90, COMPLETED),
    ]


def test_a_job_on_trial_starts_on_its_own_nodes_and_on_no_others():
    """At 50 job 2 takes node 1, where job 3 is on trial; the cpu left is for the pass at 60."""
    machine = reference_nodes.one_partition([Node(2)] * 3)
    jobs = [Job(0, 50, 1000, 1), Job(0, 50, 100, 1), Job(1, 100, 100, 5), Job(2, 200, 2000, 1)]
    schedule = run(machine, [*jobs, Job(60, 1, 1, 6)])
    assert schedule.placement.of(3) == {2: 1}
    assert attempts_of(schedule)[3:5] == [(3, 2, 50, "evicted"), (3, 60, 260, COMPLETED)]


def test_a_job_on_trial_that_a_pass_starts_runs_on_where_it_is():
    """At 50 job 1 ends, so that a cpu is extra at 100, when job 2 is to start."""
    machine = reference_nodes.one_partition([Node(2)] * 3)
    jobs = [Job(0, 100, 100, 2), Job(0, 50, 1000, 1), Job(1, 100, 100, 5), Job(2, 200, 2000, 1)]
    schedule = run(machine, jobs, "easy+trial:limit=100")
    assert attempts_of(schedule)[2:] == [(2, 100, 200, COMPLETED), (3, 2, 202, COMPLETED)]
    assert schedule.placement.of(3) == {1: 1}
    assert schedule.backfilled.tolist() == [False, False, False, True]


def test_a_promoted_job_takes_nothing_extra_if_it_ends_in_time_by_its_trial():
    """At 10 the head is job 4, from 100 on. Job 3 ends at 97, so that job 5 may start."""
    machine = reference_nodes.one_partition([Node(10)])
    jobs = [
        *(Job(0, 50, 50, 5), Job(0, 100, 100, 3), Job(1, 10, 10, 7), Job(2, 90, 95, 1)),
        *(Job(10, 1, 1, 9), Job(10, 1000, 1000, 1)),
    ]
    settings = {"placement": "lowest", "order": "SAF", "threshold": None, "kill": True, "depth": 1}
    case = Case(machine, jobs, settings)
    requeue = [True] * 5 + [False]  # job 5 is not tried
    attempts = check(Tried(case, 20, 2, [job.requested_time for job in jobs], requeue))
    assert attempts[3:] == [
        (3, 2, 92, COMPLETED),
        (4, 100, 101, COMPLETED),
        (5, 10, 1010, COMPLETED),
    ]


def stopped_simulator() -> Simulator:
    """Return a simulator at a decision while a job is on trial."""
    machine, jobs = two_nodes(
        Job(0, 100, 100, 1), Job(1, 100, 100, 4), Job(2, 200, 200, 1), Job(50, 40, 400, 1, 2)
    )
    simulator = simulator_of(workload_of(machine, jobs), decide="event", backfill="easy+trial")
    while simulator.run() and simulator.now < 50:
        pass
    assert simulator.state.lent_on[0].sum() == 1
    return simulator


def test_many_policies_at_once_measure_what_each_simulation_does():
    tried = draw_roomy(Random(0))
    given = tried.given | {"estimates": "requested"}
    del given["policy"]
    assert hpcgym.simulate(tried.workload, **given).metrics()["kills_per_job"] > 0
    many = hpcgym.simulate_many([tried.workload], ["FCFS", "SAF"], **given)
    for column, policy in enumerate(("FCFS", "SAF")):
        alone = hpcgym.simulate(tried.workload, policy, **given).metrics()
        for key in ("mean_bsld", "n_backfilled", "makespan"):
            assert many[key][0, column] == pytest.approx(alone[key], rel=1e-12)


@pytest.mark.parametrize("resource", [0, 1, 2])
def test_a_node_that_counts_something_else_as_lent_is_found_broken(resource):
    simulator = stopped_simulator()
    simulator.state.lent_on[0, 0, resource] += 1
    with pytest.raises(HpcgymError, match="jobs use more of a node than it has"):
        simulator.run()


@given(draws)
def test_invariants_hold_where_jobs_are_picked(random):
    tried = draw_tried(random, 4, 30)
    simulator = simulator_of(tried.workload, **tried.given, decide="event")
    while simulator.run():
        if random.random() < 0.7:
            simulator.pick(random.choice(simulator.waiting.tolist()))
    assert (simulator.start_time >= tried.workload.submit_time).all()


@given(draws)
def test_nothing_is_read_before_it_is_written(random):
    tried = draw_tried(random)
    simulator = simulator_of(tried.workload, **tried.given)
    simulator.run()
    starts = simulator.start_time.tolist()
    assert starts_again(simulator) == starts


def test_users_who_do_not_take_part_are_not_tried():
    machine, jobs = two_nodes(Job(0, 100, 100, 1), Job(1, 100, 100, 4), Job(2, 20, 200, 1))
    assert len(attempts_of(run(machine, jobs))) == 3
    assert run(machine, jobs).start_time[2] == 2
    assert run(machine, jobs, "easy+trial:users=0").start_time[2] == 200
    assert machine_of(machine).n_nodes == 2
