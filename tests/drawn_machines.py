"""Drawn machines of nodes and jobs for them: small, rich in ties, scarce in one thing or other."""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

from reference_nodes import (
    RULES,
    Free,
    Job,
    Machine,
    Node,
    Partition,
    is_refused,
    one_partition,
    room,
)
from strategies import REQUESTED_TIMES_S, RUN_TIMES_S, THRESHOLDS_S, WEIGHTS

GAPS_S = (0, 0, 0, 0, 1, 1, 2, 3, 5)

ORDERS = ("FCFS", "FCFS", "SAF", "SPF", "LEXP", "LCFS", "WFP3", "F1", "MULTIFACTOR")
STILL_ORDERS = ("FCFS", "SAF", "SPF", "LCFS", "LQF", "F1")  # orders that do not depend on the time


class Case(NamedTuple):
    """What a simulator is given."""

    machine: Machine
    jobs: list[Job]
    settings: dict[str, Any]


def draw_nodes(random: Random, most: int) -> list[Node]:
    """Draw nodes of one to three types, in groups whose nodes need not lie side by side."""
    types = [
        (random.randint(1, 6), random.choice((0, 0, 1, 2)), random.choice((0, 2, 4, 7)))
        for _ in range(random.randint(1, 3))
    ]
    groups = [f"s{g}" for g in range(random.randint(1, 3))]
    nodes: list[Node] = []
    n = random.randint(1, most)
    while len(nodes) < n:
        node = Node(*random.choice(types), random.choice(groups))
        nodes += [node] * random.randint(1, 4)
    return nodes[:n]


def draw_partitions(random: Random, n: int) -> list[Partition]:
    """Draw partitions of n nodes that leave no node out: one, disjoint ones, or any."""
    n_partitions = random.choice((1, 1, 2, 3))
    how = random.choice(("disjoint", "any"))
    members: list[set[int]] = [set() for _ in range(n_partitions)]
    for v in range(n):
        times = 1 if how == "disjoint" else random.randint(1, n_partitions)
        for one in random.sample(members, times):
            one.add(v)
    return [
        Partition(
            f"p{i}",
            frozenset(nodes),
            random.choice((0, 0, 0, 20)),
            random.choice((0, 0, 1, 2, 3)),
            random.choice((0, 0, 1)),
        )
        for i, nodes in enumerate(one for one in members if one)
    ]


def draw_machine(random: Random, most_nodes: int = 8) -> Machine:
    """Draw a machine of up to so many nodes."""
    nodes = draw_nodes(random, most_nodes)
    return Machine(tuple(nodes), tuple(draw_partitions(random, len(nodes))))


def draw_times(random: Random, submit_time: int, *, exact: bool) -> tuple[int, int, int]:
    """Draw submit, run and requested time; one request in three is exact, or all are."""
    run_time = random.choice(RUN_TIMES_S)
    if exact:
        return submit_time, max(run_time, 1), max(run_time, 1)
    requested = random.choice((*REQUESTED_TIMES_S, *[max(run_time, 1)] * 5))
    return submit_time, run_time, requested


def draw_request(random: Random, machine: Machine, times: tuple[int, int, int]) -> Job:
    """Draw a job that asks for one chunk, for part of its empty partition, or for all of it."""
    partition = random.randrange(len(machine.partitions))
    nodes = [machine.nodes[v] for v in sorted(machine.partitions[partition].nodes)]
    node = random.choice(nodes)
    job = Job(
        *times,
        1,
        random.choice((1, 1, random.randint(1, node.cpus))),
        random.choice((0, 0, 0, min(node.gpus, 1))),
        random.choice((0, 0, 1, 2, node.memory_mb)),
        random.random() < 0.2,
        random.random() < 0.2,
        partition,
    )
    most = sum(room(job, node, Free(*node[:3], is_empty=True)) for node in nodes)
    return job._replace(chunks=random.choice((1, random.randint(1, most), random.randint(1, most))))


def draw_jobs(
    random: Random, machine: Machine, rule: str, most: int = 12, *, exact: bool = False
) -> list[Job]:
    """Draw jobs with all kinds of requests, fewer chunks where the rule would refuse them."""
    jobs, submit_time = [], 0
    for _ in range(random.randint(1, most)):
        submit_time += random.choice(GAPS_S)
        job = draw_request(random, machine, draw_times(random, submit_time, exact=exact))
        while job.chunks > 1 and is_refused(machine, job, rule):
            job = job._replace(chunks=job.chunks // 2)
        if not is_refused(machine, job, rule):
            jobs.append(job)
    return jobs


def draw_order(random: Random) -> Any:
    """Draw the order of a queue: a name, or six weights."""
    return random.choice((*ORDERS, tuple(random.choice(WEIGHTS) for _ in range(6))))


def draw_settings(random: Random) -> dict[str, Any]:
    """Draw how the scheduler works."""
    settings: dict[str, Any] = {
        "placement": random.choice(list(RULES)),
        "order": draw_order(random),
        "threshold": random.choice(THRESHOLDS_S),
        "kill": random.random() < 0.6,
        "depth": random.choice((0, 1, 1, 1, 2, 3, float("inf"))),
    }
    if settings["depth"] == float("inf"):
        return settings | {"planned": random.choice((None, None, 1, 2, 4))}
    return settings | {"backfill_order": random.choice((None, None, draw_order(random)))}


def draw_case(random: Random, most_nodes: int = 8, most_jobs: int = 12) -> Case:
    """Draw everything."""
    machine, settings = draw_machine(random, most_nodes), draw_settings(random)
    return Case(machine, draw_jobs(random, machine, settings["placement"], most_jobs), settings)


def draw_plain_case(random: Random) -> Case:
    """Draw a case that the machine of as many identical processors must start as.

    Chunks have one cpu, and nothing else is asked for; there is one partition and one group.
    """
    machine = one_partition(Node(random.randint(1, 5)) for _ in range(random.randint(1, 5)))
    settings = draw_settings(random) | {"depth": random.choice((0, 1, 1))}
    settings["placement"] = random.choice([rule for rule in RULES if rule != "contiguous"])
    settings.pop("planned", None)
    jobs = draw_jobs(random, machine, settings["placement"])
    plain = [
        Job(*job[:3], random.choice((job.chunks, random.randint(1, machine.cpus)))) for job in jobs
    ]
    return Case(machine, [job for job in plain if job.chunks <= machine.cpus], settings)
