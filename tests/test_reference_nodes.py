"""What must hold on machines of nodes (specification, section 13), and examples worked by hand."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nodes_of_kernels
import reference_nodes
import reference_nodes_log
from drawn_machines import (
    STILL_ORDERS,
    Case,
    draw_case,
    draw_jobs,
    draw_machine,
    draw_nodes,
    draw_settings,
)
from reference_nodes import (
    RULES,
    Hold,
    Job,
    Machine,
    Node,
    Partition,
    Result,
    free_during,
    one_partition,
    place,
)
from strategies import REQUESTED_TIMES_S

Simulate = Callable[..., Result]

SIMULATORS = {"reference": reference_nodes.simulate, "hpcgym": nodes_of_kernels.simulate}
"""What every property is asked of."""

draws = st.integers(0, 2**40).map(Random)
every_simulator = pytest.mark.parametrize("simulate", SIMULATORS.values(), ids=SIMULATORS)


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
    """Check that each job has what it asked for, after its submission."""
    for start, job, nodes in zip(result.starts, case.jobs, result.placements, strict=True):
        partition = case.machine.partitions[job.partition]
        assert start >= job.submit_time
        assert sum(nodes.values()) == job.chunks and min(nodes.values()) >= 1
        assert set(nodes) <= partition.nodes
        assert len(nodes) <= (partition.max_nodes or len(nodes))
        assert not job.spread or set(nodes.values()) == {1}
        assert list(nodes) == sorted(nodes)


@every_simulator
@pytest.mark.parametrize(("most_nodes", "most_jobs"), [(8, 12), (40, 40)])
@given(draws)
def test_no_node_gives_more_than_it_has_and_each_job_gets_what_it_asks_for(
    simulate, most_nodes, most_jobs, random
):
    case = draw_case(random, most_nodes, most_jobs)
    result = run(simulate, case)
    check_capacity(case, result)
    check_requests(case, result)


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
    settings["depth"] = settings["depth"] or 1  # with 0, one partition's first misfit stops both
    settings["kill"] = True  # when an overdue job is taken to end depends on the passes that ask
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
    """Draw a case that asks for cpus only, under an order that does not depend on M."""
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


def check_head(result: Result, *, unless: bool = True) -> None:
    """Check that no first reserved job is later than first said, unless one ahead starts."""
    heads: dict[int, Hold] = {}
    for one in result.passes:
        said = heads.pop(one.component, None)
        if said and not (unless and set(one.started) & set(one.queue[: one.queue.index(said.j)])):
            assert said.j not in one.started or one.time <= said.begin
            if one.reserved and one.reserved[0].j == said.j:
                assert one.reserved[0].begin <= said.begin
                heads[one.component] = said
        if one.reserved:
            heads.setdefault(one.component, one.reserved[0])


def draw_honoured_case(random: Random) -> Case:
    """Draw a case in which requests are honoured."""
    case = draw_case(random)
    case.settings["kill"] = True
    return case


@given(draws)
def test_the_first_reserved_job_is_never_later_than_first_said(random):
    case = draw_honoured_case(random)
    check_head(run(reference_nodes.simulate, case))


def with_one_tier(case: Case) -> Case:
    """Return a case with every partition in one tier."""
    parts = tuple(part._replace(tier=0) for part in case.machine.partitions)
    return case._replace(machine=case.machine._replace(partitions=parts))


@given(draws)
def test_under_fcfs_with_one_tier_the_first_reserved_job_is_never_later(random):
    case = with_one_tier(draw_honoured_case(random))
    check_head(run(reference_nodes.simulate, case, order="FCFS"), unless=False)


def draw_exact_case(random: Random) -> Case:
    """Draw a case of conservative backfilling under FCFS with exact requests and one tier."""
    machine = draw_machine(random)
    rule = random.choice([rule for rule in RULES if rule not in ("tightest", "fewest-groups")])
    settings = {"placement": rule, "conservative": True}
    return with_one_tier(Case(machine, draw_jobs(random, machine, rule, exact=True), settings))


def check_promises(result: Result) -> None:
    """Check that no reservation is later than any before it of the same job."""
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
    for job in case.jobs:
        more, less = draw_less(random, case, job)
        if place(case.machine, job, less, rule) is not None:
            assert place(case.machine, job, more, rule) is not None


@given(draws)
def test_the_reference_for_whole_logs_schedules_as_the_reference_does(random):
    case = draw_case(random)
    more = {"estimates": [random.choice(REQUESTED_TIMES_S) for _ in case.jobs]}
    for changed in ({}, more):
        expected = run(reference_nodes.simulate, case, **changed)
        assert run(reference_nodes_log.simulate, case, **changed)[:5] == expected[:5]


# --- Examples worked by hand ----------------------------------------------------------------------


def starts_on(simulate: Simulate, cpus: int, jobs: list[tuple[int, ...]], **settings: Any) -> list:
    """Return the starts of (submit, run, processors) on one node, requests exact."""
    table = [Job(submit, time, time, processors) for submit, time, processors in jobs]
    return simulate(one_partition([Node(cpus)]), table, **settings).starts


@every_simulator
@pytest.mark.parametrize("depth", [1, 2, float("inf")])
def test_a_job_ahead_of_a_reservation_starts_before_the_next_is_made(simulate, depth):
    jobs = [(0, 10, 2), (0, 10, 3), (0, 1000, 1), (0, 5, 4)]
    assert starts_on(simulate, 4, jobs, depth=depth) == [0, 10, 0, 1000]


@every_simulator
@pytest.mark.parametrize(
    ("depth", "starts"),
    [(0, [0, 10, 20, 25]), (1, [0, 10, 1000, 0]), (2, [0, 10, 20, 25]), (3, [0, 10, 20, 25])],
)
def test_a_second_reservation_keeps_the_third_job_from_being_pushed_back(simulate, depth, starts):
    jobs = [(0, 10, 2), (0, 10, 3), (0, 5, 4), (0, 1000, 1)]
    assert starts_on(simulate, 4, jobs, depth=depth) == starts


@every_simulator
def test_under_saf_a_job_ahead_in_order_may_delay_the_head(simulate):
    assert starts_on(simulate, 2, [(0, 2, 1), (0, 9, 2), (1, 3, 1)], order="SAF") == [0, 4, 1]


@every_simulator
def test_a_pass_plans_no_more_jobs_than_it_may(simulate):
    jobs = [(0, 10, 1), (0, 5, 2), (0, 5, 1)]
    assert starts_on(simulate, 2, jobs, conservative=True) == [0, 10, 0]
    assert starts_on(simulate, 2, jobs, conservative=True, planned=2) == [0, 10, 15]
    assert starts_on(simulate, 2, jobs, conservative=True, planned=3) == [0, 10, 0]


@every_simulator
@pytest.mark.parametrize(
    ("conservative", "starts"), [(True, [0, 20, 6, 30]), (False, [0, 20, 30, 30])]
)
def test_an_overdue_job_ends_now_under_easy_and_a_second_on_under_conservative(
    simulate, conservative, starts
):
    jobs = [Job(0, 20, 5), Job(6, 10, 10, 2), Job(6, 1, 1), Job(6, 2, 2)]
    result = simulate(one_partition([Node(2)]), jobs, kill=False, conservative=conservative)
    assert result.starts == starts


@every_simulator
def test_a_tier_outranks_the_threshold_and_the_threshold_the_score(simulate):
    both = frozenset({0})
    machine = Machine((Node(1),), (Partition("low", both), Partition("high", both, tier=1)))
    jobs = [Job(0, 10, 10), Job(1, 9, 9), Job(9, 1, 1), Job(9, 5, 5, partition=1)]
    for threshold, starts in ((None, [0, 16, 15, 10]), (5, [0, 15, 24, 10])):
        assert simulate(machine, jobs, order="SPF", threshold=threshold).starts == starts


ROOM = [(1, "a"), (2, "a"), (1, "a"), (1, "b"), (4, "b"), (1, "b"), (3, "c"), (2, "c")]
"""Cpus and group of each node of a machine worked by hand; the groups have 4, 6 and 5."""


def nodes_of(simulate: Simulate, rule: str, n: int, max_nodes: int = 0, **asked: Any) -> Any:
    """Return the nodes of the only job of that machine, or None if it is refused."""
    nodes = tuple(Node(cpus, group=group) for cpus, group in ROOM)
    machine = Machine(nodes, (Partition("all", frozenset(range(8)), max_nodes=max_nodes),))
    result = simulate(machine, [Job(0, 1, 1, n, **asked)], placement=rule)
    return None if result.refused else result.placements[0]


@every_simulator
@pytest.mark.parametrize(
    ("rule", "n", "max_nodes", "nodes"),
    [
        ("lowest", 4, 0, {0: 1, 1: 2, 2: 1}),
        ("lowest", 4, 2, {4: 4}),
        ("lowest", 6, 2, {4: 4, 6: 2}),
        ("lowest", 8, 2, None),
        ("tightest", 4, 0, {0: 1, 2: 1, 3: 1, 5: 1}),
        ("tightest", 5, 0, {0: 1, 1: 1, 2: 1, 3: 1, 5: 1}),
        ("tightest", 6, 2, {4: 4, 6: 2}),
        ("fewest-groups", 1, 0, {0: 1}),
        ("fewest-groups", 4, 0, {0: 1, 1: 2, 2: 1}),
        ("fewest-groups", 5, 0, {6: 3, 7: 2}),
        ("fewest-groups", 6, 0, {3: 1, 4: 4, 5: 1}),
        ("fewest-groups", 7, 0, {3: 1, 4: 4, 5: 1, 6: 1}),
        ("fewest-groups", 4, 2, {6: 3, 7: 1}),
        ("fewest-groups", 4, 1, {4: 4}),
        ("fewest-groups", 6, 2, {4: 4, 6: 2}),
        ("fewest-groups", 7, 2, {4: 4, 6: 3}),
        ("fewest-groups", 8, 2, None),
        ("contiguous", 5, 0, {0: 1, 1: 2, 2: 1, 3: 1}),
        ("contiguous", 4, 2, {3: 1, 4: 3}),
        ("contiguous", 5, 2, {3: 1, 4: 4}),
        ("local", 1, 0, {0: 1}),
        ("local", 4, 0, {0: 1, 1: 2, 2: 1}),
        ("local", 5, 0, {3: 1, 4: 4}),
        ("local", 4, 2, {4: 4}),
        ("local", 5, 1, None),
        ("local", 7, 0, None),
        ("best-effort-local", 7, 0, {0: 1, 1: 2, 2: 1, 3: 1, 4: 2}),
        ("best-effort-local", 5, 0, {3: 1, 4: 4}),
        ("best-effort-contiguous", 4, 2, {3: 1, 4: 3}),
        ("best-effort-contiguous", 15, 0, {v: cpus for v, (cpus, _) in enumerate(ROOM)}),
        ("best-effort-contiguous", 7, 2, {4: 4, 6: 3}),
    ],
)
def test_a_rule_takes_nodes_in_its_order(simulate, rule, n, max_nodes, nodes):
    assert nodes_of(simulate, rule, n, max_nodes) == nodes


@every_simulator
@pytest.mark.parametrize("is_busy", [False, True])
def test_fewest_groups_places_on_a_free_machine_what_it_places_on_a_busy_one(simulate, is_busy):
    nodes = (Node(4, group="a"), *[Node(1, group="b")] * 5)
    parts = (Partition("all", frozenset(range(6)), max_nodes=5), Partition("one", frozenset({5})))
    jobs = [Job(0, 9, 9, partition=1)] * is_busy + [Job(0, 1, 1, 8)]
    result = simulate(Machine(nodes, parts), jobs, placement="fewest-groups")
    assert (result.starts[-1], result.placements[-1]) == (0, {0: 4, 1: 1, 2: 1, 3: 1, 4: 1})


@every_simulator
def test_spread_takes_a_chunk_of_each_node_and_tightest_still_compares_whole_rooms(simulate):
    assert nodes_of(simulate, "lowest", 3, spread=True) == {0: 1, 1: 1, 2: 1}
    assert nodes_of(simulate, "tightest", 3, spread=True) == {0: 1, 2: 1, 3: 1}
    assert nodes_of(simulate, "lowest", 9, spread=True) is None


@every_simulator
def test_contiguous_crosses_no_node_outside_the_partition(simulate):
    machine = Machine(
        (Node(1),) * 4, (Partition("p", frozenset({0, 2, 3})), Partition("q", frozenset({1})))
    )
    assert simulate(machine, [Job(0, 1, 1, 2)], placement="contiguous").placements == [{2: 1, 3: 1}]
    assert simulate(machine, [Job(0, 1, 1, 3)], placement="contiguous").refused == [0]


@every_simulator
@pytest.mark.parametrize(("depth", "start"), [(2, 60), (math.inf, 7)])
def test_a_job_beyond_its_estimate_ends_now_or_with_reservations_for_all_a_second_later(
    simulate, depth, start
):
    """Job 2, of a second, starts beside job 0 at 7 s only if job 1 is not expected at 7 s."""
    jobs = [Job(0, 50, 5), Job(6, 10, 10, 2), Job(7, 1, 1)]
    result = simulate(one_partition([Node(1)] * 2), jobs, depth=depth, kill=False)
    assert result.starts == [0, 50, start]


@every_simulator
def test_groups_are_taken_anew_for_every_job(simulate):
    machine = one_partition([Node(1, group=group) for group in "aabbc"])
    result = simulate(machine, [Job(0, 9, 9, 4), Job(9, 9, 9, 4)], placement="fewest-groups")
    assert result.placements == [{0: 1, 1: 1, 2: 1, 3: 1}] * 2


@every_simulator
def test_room_for_fewer_chunks_side_by_side_is_none_for_more(simulate):
    """From 10 s on nodes 2 and 5 are taken; pairs of nodes between them are free, but not three."""
    taken = [Job(0, 10, 10, 2), Job(1, 100, 100), Job(2, 8, 8, 2), Job(3, 100, 100)]
    waiting = [Job(11, 9, 50, 7), Job(11, 20, 1000, 2), Job(12, 10, 10, 3)]
    machine = one_partition([Node(1)] * 8)
    result = simulate(machine, taken + waiting, placement="contiguous", order="LCFS")
    assert result.starts == [0, 1, 2, 3, 111, 12, 101]
    assert result.placements[5:] == [{0: 1, 1: 1}, {0: 1, 1: 1, 2: 1}]


@every_simulator
def test_an_exclusive_job_takes_empty_nodes_whole(simulate):
    jobs = [Job(0, 9, 9), Job(0, 9, 9, exclusive=True), Job(0, 9, 9, 5)]
    result = simulate(one_partition([Node(4)] * 3), jobs)
    assert result.placements == [{0: 1}, {1: 1}, {0: 3, 2: 2}]
    assert result.starts == [0, 0, 0]


@every_simulator
def test_memory_is_ignored_on_nodes_that_do_not_count_it(simulate):
    machine = one_partition([Node(4, memory_mb=10), Node(4)])
    result = simulate(machine, [Job(0, 1, 1, 5, memory_mb=10), Job(0, 1, 1, 6, memory_mb=11)])
    assert result.placements == [{0: 1, 1: 4}, {}]
    assert result.refused == [1]


@every_simulator
def test_a_job_that_asks_for_more_time_than_its_partition_allows_is_refused(simulate):
    machine = Machine((Node(1),), (Partition("short", frozenset({0}), max_time_s=10),))
    result = simulate(machine, [Job(0, 1, 10), Job(0, 1, 11)])
    assert (result.refused, result.starts) == ([1], [0, None])


@every_simulator
def test_a_backfilled_job_may_push_a_reservation_to_other_nodes(simulate):
    nodes = (Node(1),) * 3
    parts = (Partition("all", frozenset({0, 1, 2})), Partition("two", frozenset({1, 2})))
    jobs = [Job(0, 10, 10, 2, partition=1), Job(0, 10, 10, 2), Job(0, 100, 100)]
    result = simulate(Machine(nodes, parts), jobs)
    assert result.starts == [0, 10, 0]
    assert result.placements == [{1: 1, 2: 1}, {1: 1, 2: 1}, {0: 1}]
    assert result.backfilled == [False, False, True]


@every_simulator
def test_a_job_that_would_take_the_heads_place_starts_beside_it(simulate):
    jobs = [Job(0, 10, 10), Job(0, 10, 10, cpus=2), Job(0, 100, 100)]
    result = simulate(one_partition([Node(2), Node(1)]), jobs)
    assert result.starts == [0, 10, 0]
    assert result.placements == [{0: 1}, {0: 1}, {1: 1}]


@every_simulator
def test_each_partition_of_a_component_has_a_reservation_of_its_own(simulate):
    parts = (Partition("all", frozenset({0, 1})), Partition("one", frozenset({1})))
    jobs = [
        Job(0, 10, 10, 1, partition=1),
        Job(0, 10, 10, 1, cpus=2, partition=1),  # head of "one": node 1 from 10 on
        Job(0, 10, 10, 2, cpus=2),  # head of "all": both nodes from 20 on
        Job(0, 20, 20, 1),  # until 20 on node 0
        Job(0, 21, 21, 1),  # would delay the head of "all"
    ]
    result = simulate(Machine((Node(2), Node(2)), parts), jobs)
    assert result.starts == [0, 10, 20, 0, 30]


@every_simulator
def test_a_backfilled_job_keeps_off_the_nodes_that_a_reservation_has_moved_to(simulate):
    jobs = [
        Job(0, 10, 10, 2, spread=True, partition=1),  # a cpu of nodes 1 and 2
        Job(0, 10, 10, 2, cpus=2),  # reserved at 10 on nodes 0 and 1
        Job(0, 100, 100, cpus=2),  # takes node 0: the reservation moves to 1 and 2
        Job(0, 100, 100),
    ]
    parts = (Partition("all", frozenset({0, 1, 2})), Partition("two", frozenset({1, 2})))
    result = simulate(Machine((Node(2),) * 3, parts), jobs)
    assert result.starts == [0, 10, 0, 20]
    assert result.placements[1] == {1: 1, 2: 1}


@every_simulator
def test_reservations_of_one_time_do_not_share_nodes(simulate):
    jobs = [(0, 10, 3), (0, 10, 2), (0, 10, 2), (0, 100, 1)]
    assert starts_on(simulate, 4, jobs, depth=2) == [0, 10, 10, 20]


@every_simulator
def test_an_event_of_another_component_makes_no_pass(simulate):
    """A pass at 17 would take the overdue job to end at 18, and start the last but one at once."""
    parts = (Partition("two", frozenset({0, 1})), Partition("other", frozenset({2})))
    jobs = [
        Job(0, 18, 18, exclusive=True),
        Job(0, 60, 3),
        Job(8, 1, 1, exclusive=True),
        Job(14, 10, 10),
        Job(17, 1, 1, partition=1),
    ]
    result = simulate(Machine((Node(2),) * 3, parts), jobs, conservative=True, kill=False)
    assert result.starts == [0, 0, 18, 18, 17]
