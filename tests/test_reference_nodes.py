"""What must hold on machines of nodes (specification, section 13), and examples worked by hand.

Each test runs on every simulator of `SIMULATORS`. Those that look into a pass run on the reference
alone. A simulator is called as `reference_nodes.simulate` is, and gives the first four columns of
its result.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
import reference_nodes
import reference_profile
from drawn_machines import (
    STILL_ORDERS,
    Case,
    draw_case,
    draw_jobs,
    draw_machine,
    draw_nodes,
    draw_plain_case,
    draw_settings,
)
from reference_nodes import (
    RULES,
    Job,
    Machine,
    Node,
    Partition,
    Result,
    free_during,
    is_refused,
    one_partition,
    place,
)

Simulate = Callable[..., Result]

SIMULATORS = [reference_nodes.simulate]
"""What every property is asked of."""

draws = st.integers(0, 2**40).map(Random)
every_simulator = pytest.mark.parametrize("simulate", SIMULATORS, ids=["reference"])


def run(simulate: Simulate, case: Case, **changed: Any) -> Result:
    """Simulate a case, with some settings changed."""
    return simulate(case.machine, case.jobs, **(case.settings | changed))


def outcome(result: Result) -> list[tuple[Any, ...]]:
    """Return start, nodes and kind of each job."""
    columns = result.starts, result.placements, result.backfilled, result.thresholded
    return list(zip(*columns, strict=True))


# --- What must hold -------------------------------------------------------------------------------


def executed(job: Job, *, kill: bool = True, **_: Any) -> int:
    """Return how long a job runs."""
    return min(job.run_time, job.requested_time) if kill else job.run_time


def check_capacity(case: Case, result: Result) -> None:
    """Check that no node ever gives more than it has, and an exclusive job's nodes to no other."""
    runs = [
        (start, start + executed(job, **case.settings), job, nodes)
        for start, job, nodes in zip(result.starts, case.jobs, result.placements, strict=True)
    ]
    for t in set(result.starts):
        held = defaultdict(list)
        for start, end, job, nodes in runs:
            for v in nodes if start <= t < end else ():
                held[v].append((job, nodes[v]))
        for v, jobs in held.items():
            node = case.machine.nodes[v]
            assert sum(job.cpus * chunks for job, chunks in jobs) <= node.cpus
            assert sum(job.gpus * chunks for job, chunks in jobs) <= node.gpus
            memory_mb = sum(job.memory_mb * chunks for job, chunks in jobs)
            assert memory_mb <= node.memory_mb or node.memory_mb == 0
            assert len(jobs) == 1 or not any(job.exclusive for job, _ in jobs)


def check_requests(case: Case, result: Result) -> None:
    """Check that each job has what it asked for, on nodes of its partition, after its submission."""
    for start, job, nodes in zip(result.starts, case.jobs, result.placements, strict=True):
        partition = case.machine.partitions[job.partition]
        assert start >= job.submit_time
        assert sum(nodes.values()) == job.chunks and min(nodes.values()) >= 1
        assert set(nodes) <= partition.nodes
        assert len(nodes) <= (partition.max_nodes or len(nodes))
        assert not job.spread or set(nodes.values()) == {1}
        assert list(nodes) == sorted(nodes)


@every_simulator
@given(draws)
def test_no_node_gives_more_than_it_has_and_each_job_gets_what_it_asks_for(simulate, random):
    case = draw_case(random)
    result = run(simulate, case)
    check_capacity(case, result)
    check_requests(case, result)


@every_simulator
@given(draws)
def test_plain_jobs_start_as_on_identical_processors_under_easy_and_without(simulate, random):
    case = draw_plain_case(random)
    result = run(simulate, case)
    check_flat(case, result, reference.Machine, "easy" if case.settings["depth"] else "none")


@every_simulator
@given(draws, st.sampled_from((1, 2, 3, 5, float("inf"))))
def test_one_node_starts_plain_jobs_as_that_many_processors_at_any_depth(simulate, random, depth):
    case = draw_plain_case(random)
    settings = case.settings | {"depth": depth, "kill": depth == 1 or case.settings["kill"]}
    if depth == float("inf"):
        settings |= {"backfill_order": None, "kill": True}
    case = Case(one_partition([Node(case.machine.cpus)]), case.jobs, settings)
    check_flat(case, run(simulate, case), reference_profile.Planner, f"depth:k={depth}")


def check_flat(case: Case, result: Result, kind: type[reference.Machine], backfill: str) -> None:
    """Check starts and their kinds against the reference of identical processors."""
    flat = reference.simulate(
        [(*job[:3], job.processors) for job in case.jobs],
        case.machine.cpus,
        case.settings["order"],
        backfill=backfill,
        backfill_order=case.settings.get("backfill_order"),
        threshold=case.settings["threshold"],
        kill_at_limit=case.settings["kill"],
        kind=kind,
    )
    columns = result.starts, result.backfilled, result.thresholded
    assert list(zip(*columns, strict=True)) == flat


@every_simulator
@given(draws)
def test_a_component_starts_every_job_as_if_it_were_alone(simulate, random):
    case = draw_case(random)
    together = outcome(run(simulate, case))
    component = reference_nodes.components(case.machine)
    for one in set(component):
        own = [j for j, job in enumerate(case.jobs) if component[job.partition] == one]
        alone = run(simulate, case._replace(jobs=[case.jobs[j] for j in own]))
        assert outcome(alone) == [together[j] for j in own]


def draw_joined_case(random: Random) -> Case:
    """Draw two partitions without a common node, and a third without jobs that joins them."""
    nodes = draw_nodes(random, 8) + draw_nodes(random, 1)
    first = frozenset(random.sample(range(len(nodes)), random.randint(1, len(nodes) - 1)))
    both = frozenset(range(len(nodes)))
    limits = [(0, random.choice((0, 0, 1, 2)), random.choice((0, 1))) for _ in range(2)]
    parts = (Partition("a", first, *limits[0]), Partition("b", both - first, *limits[1]))
    settings = draw_settings(random) | {"threshold": None, "order": random.choice(STILL_ORDERS)}
    settings |= {"planned": None} if settings["depth"] == float("inf") else {"backfill_order": None}
    jobs = draw_jobs(random, Machine(tuple(nodes), parts), settings["placement"], 16)
    return Case(Machine(tuple(nodes), (*parts, Partition("both", both))), jobs, settings)


def check_joined(simulate: Simulate, case: Case) -> None:
    """Check starts and nodes; a job of the other partition that waits may make one backfilled."""
    together = run(simulate, case)
    for partition in (0, 1):
        own = [j for j, job in enumerate(case.jobs) if job.partition == partition]
        alone = run(simulate, case._replace(jobs=[case.jobs[j] for j in own]))
        assert alone.starts == [together.starts[j] for j in own]
        assert alone.placements == [together.placements[j] for j in own]


@every_simulator
@given(draws)
def test_partitions_without_a_common_node_do_not_touch_each_other(simulate, random):
    check_joined(simulate, draw_joined_case(random))


@every_simulator
@given(draws, st.sampled_from((2, 3, 1000)))
def test_memory_in_another_unit_changes_nothing(simulate, random, factor):
    case = draw_case(random)
    nodes = [node._replace(memory_mb=node.memory_mb * factor) for node in case.machine.nodes]
    jobs = [job._replace(memory_mb=job.memory_mb * factor) for job in case.jobs]
    scaled = Case(case.machine._replace(nodes=tuple(nodes)), jobs, case.settings)
    assert outcome(run(simulate, scaled)) == outcome(run(simulate, case))


def draw_cpu_case(random: Random) -> Case:
    """Draw a case in which cpus are all that is asked for, and the machine's size scores nothing."""
    machine, settings = draw_machine(random), draw_settings(random)
    for key in ("order", "backfill_order"):
        settings |= {key: "SAF"} if settings.get(key) == "MULTIFACTOR" else {}
    machine = machine._replace(nodes=tuple(Node(n.cpus, group=n.group) for n in machine.nodes))
    jobs = draw_jobs(random, machine, settings["placement"])
    return Case(machine, [job._replace(memory_mb=0) for job in jobs], settings)


@every_simulator
@pytest.mark.parametrize("scarce", ["gpus", "memory_mb"])
@given(draws)
def test_one_scarce_resource_is_scheduled_as_the_same_count_of_cpus(simulate, scarce, random):
    case = draw_cpu_case(random)
    ample = {"cpus": 1000, "gpus": 1000, "memory_mb": 1000}
    nodes = [Node(**ample | {scarce: n.cpus}, group=n.group) for n in case.machine.nodes]
    jobs = [job._replace(**{"gpus": 1, "memory_mb": 1, scarce: job.cpus}) for job in case.jobs]
    other = Case(case.machine._replace(nodes=tuple(nodes)), jobs, case.settings)
    assert outcome(run(simulate, other)) == outcome(run(simulate, case))


def check_head(case: Case, result: Result, *, unless: bool = True) -> None:
    """Check that the first reserved job is not later than first said, unless one ahead starts."""
    heads: dict[int, tuple[int, float]] = {}
    for one in result.passes:
        j, latest = heads.pop(one.component, (-1, 0.0))
        is_overtaken = unless and any(
            one.queue.index(k) < one.queue.index(j) for k in one.started if j in one.queue
        )
        if j in one.started and not is_overtaken:
            assert one.time <= latest
        if one.reserved:
            head = one.reserved[0]
            if head.j == j and not is_overtaken:
                assert head.begin <= latest
            keeps = head.j == j and not is_overtaken
            heads[one.component] = head.j, latest if keeps else head.begin


@given(draws)
def test_the_first_reserved_job_is_never_later_than_first_said(random):
    case = draw_case(random)
    case.settings["kill"] = True
    check_head(case, run(reference_nodes.simulate, case))


def with_one_tier(case: Case) -> Case:
    """Return a case with every partition in one tier."""
    parts = tuple(part._replace(tier=0) for part in case.machine.partitions)
    return case._replace(machine=case.machine._replace(partitions=parts))


@given(draws)
def test_under_fcfs_with_one_tier_the_first_reserved_job_is_never_later(random):
    case = with_one_tier(draw_case(random))
    case.settings.update(kill=True, order="FCFS")
    check_head(case, run(reference_nodes.simulate, case), unless=False)


def draw_exact_case(random: Random) -> Case:
    """Draw a case of conservative backfilling under FCFS with exact requests and one tier."""
    machine = draw_machine(random)
    rule = random.choice([rule for rule in RULES if rule not in ("tightest", "fewest-groups")])
    settings = {"placement": rule, "conservative": True}
    return with_one_tier(Case(machine, draw_jobs(random, machine, rule, exact=True), settings))


def check_promises(result: Result) -> None:
    latest: dict[int, float] = {}
    for one in result.passes:
        for hold in one.reserved:
            assert hold.begin <= latest.setdefault(hold.j, hold.begin)
            latest[hold.j] = hold.begin
        assert all(one.time <= latest.get(j, one.time) for j in one.started)


@given(draws)
def test_no_conservative_reservation_moves_later_with_exact_requests(random):
    case = draw_exact_case(random)
    exact = [job._replace(run_time=job.requested_time) for job in case.jobs]
    check_promises(run(reference_nodes.simulate, case._replace(jobs=exact)))


def draw_less(random: Random, case: Case, job: Job) -> tuple[Any, Any]:
    """Draw what is free on the nodes of a job's partition, and the same with less of it."""
    nodes = sorted(case.machine.partitions[job.partition].nodes)
    more = free_during(case.machine, [], nodes, 0, 1, [])
    less = {}
    for v, free in more.items():
        cpus = random.randint(0, free.cpus)
        gpus, memory_mb = random.randint(0, free.gpus), random.randint(0, free.memory_mb)
        more[v] = free._replace(cpus=cpus, gpus=gpus, memory_mb=memory_mb)
        less[v] = more[v]._replace(
            cpus=random.choice((cpus, random.randint(0, cpus))), is_empty=random.random() < 0.5
        )
    return more, less


@given(draws, st.sampled_from(list(RULES)))
def test_more_free_nodes_never_take_a_placement_away(random, rule):
    case = draw_case(random)
    check_more(random, case, rule)


def check_more(random: Random, case: Case, rule: str) -> None:
    for job in case.jobs:
        if rule == "fewest-groups" and case.machine.partitions[job.partition].max_nodes:
            continue
        more, less = draw_less(random, case, job)
        if place(case.machine, job, less, rule) is not None:
            assert place(case.machine, job, more, rule) is not None
