"""Environments on machines of nodes that tests play: drawn ones, and one with a long queue."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any, NamedTuple

import reference
import reference_nodes
from drawn_machines import draw_case
from env_cases import ACTIONS, REWARDS
from env_twin import Rules
from hpcgym.core.workload import Workload
from nodes_of_kernels import settings_of, workload_of

HETERO = "hetero-64-weeks"
SOME = ("FCFS", "SPF", "WFP3", "SMITH")
TIME_SCALES = (1, 7, 600, 7_200)


class Case(NamedTuple):
    """A machine, jobs, what the environment is made of, and a seed for its actions."""

    machine: reference_nodes.Machine
    table: list[reference_nodes.Job]
    rules: Rules
    seed: int

    @property
    def workload(self) -> Workload:
        """The jobs as the package holds them."""
        return workload_of(self.machine, self.table)


def drawn(random: Random, **fixed: Any) -> Case:
    """Draw an environment on nodes of any kind; `fixed` rules are taken as given."""
    machine, table, settings = draw_case(random, most_nodes=6, most_jobs=14)
    while not table:
        machine, table, settings = draw_case(random, most_nodes=6, most_jobs=14)
    by = random.choice(TIME_SCALES)
    parts = tuple(one._replace(max_time_s=one.max_time_s * by) for one in machine.partitions)
    table = [
        job._replace(
            submit_time=job.submit_time * by,
            run_time=job.run_time * by,
            requested_time=job.requested_time * by,
            user=random.choice((-1, 0, 0, 1)),
        )
        for job in table
    ]
    given = settings_of(**settings)
    threshold = given["threshold"]
    rules: dict[str, Any] = {
        "processors": machine.cpus,
        "largest_request": max(job.requested_time for job in table) * random.choice((1, 1, 5)),
        "policy": random.choice((*SOME, "SAF")),
        "backfill": given["backfill"],
        "backfill_order": settings.get("backfill_order"),
        "threshold": None if threshold is None else threshold * by,
        "kill_at_limit": given["kill_at_limit"],
        "estimates": random.choice(("requested", "requested", "exact")),
        "placement": given["placement"],
        "action": random.choice(ACTIONS),
        "reward": random.choice(REWARDS),
        "baseline": random.choice((None, "SAF", "WFP3")),
        "n_slots": random.choice((1, 2, 3, 5, 8, 128)),
        "expectations": random.choice((None, "records")),
    } | fixed
    if rules["backfill"] == "none":
        rules["backfill_order"] = None
    if rules["action"] == "job":
        rules["backfill"] = rules["backfill"].partition(":planned")[0]
    if rules["action"] == "policy":
        rules["policies"] = tuple(random.sample(reference.POLICIES, 3))
    epochs = ["contested", "contested", "event"]
    if rules["action"] in ("weights", "policy"):
        epochs += [3 * by, 11 * by]
    rules.setdefault("decide", random.choice(epochs))
    if rules["reward"] in ("log_ratio", "relative") and rules["baseline"] is None:
        rules["baseline"] = "SAF"
    if rules["reward"] == "user_ratio":
        rules["baseline"] = None
    machine = machine._replace(partitions=parts)
    return Case(machine, table, Rules(**rules), random.randrange(2**16))


def busy_case(n: int = 60, **changes: Any) -> Case:
    """Return jobs with a long queue on two components, one of them two partitions."""
    random = Random(3)
    nodes = [reference_nodes.Node(4, 0, 8, f"s{v // 3}") for v in range(5)]
    nodes += [reference_nodes.Node(8, 2, 16, "s2")] * 3
    parts = (
        reference_nodes.Partition("batch", frozenset(range(5))),
        reference_nodes.Partition("gpu", frozenset(range(5, 8))),
        reference_nodes.Partition("debug", frozenset((3, 4)), 0, 2, 1),
    )
    machine = reference_nodes.Machine(tuple(nodes), parts)
    table = []
    for j in range(n):
        partition = random.choice((0, 0, 1, 1, 2))
        asked = 600 * random.choice((1, 2, 6, 12))
        run_time = int(asked * random.choice((0.1, 0.5, 1.0)))
        table.append(
            reference_nodes.Job(
                300 * j // 2,
                run_time,
                asked,
                random.choice((1, 2, 4)),
                random.choice((1, 2, 4) if partition != 2 else (1, 2)),
                random.choice((0, 1, 1)) if partition == 1 else 0,
                random.choice((0, 1, 4, 8)) if partition != 2 else 2,
                random.random() < 0.1 and partition == 0,
                random.random() < 0.1,
                partition,
                random.randrange(4),
            )
        )
    kept = [job for job in table if not reference_nodes.is_refused(machine, job, "lowest")]
    rules = Rules(machine.cpus, 7_200, n_slots=12, threshold=20_000, baseline="SAF", **changes)
    if rules.action == "policy":
        rules = replace(rules, policies=SOME)
    return Case(machine, kept, rules, 1)
