"""What a site may try: orders, modes, limits and sizes, each a change of what it has today."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hpcgym.agent import RuleAgent, load_agent
from hpcgym.base.errors import HpcgymError, PolicyError, WorkloadError
from hpcgym.base.ranges import number_ranges
from hpcgym.core.policy import as_policy
from hpcgym.core.requests import unplaceable
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.workload import Workload
from hpcgym.machine import Machine, NodeType

Group: TypeAlias = Literal["order", "mode", "limits", "machine", "simulated only"]

GUARD_S = 200_000
"""Threshold of an order other than that of submission, where today's setting has none, s."""

BY_USER = "SMITH-REG"
ORDERS = {
    "FCFS": "first come, first served",
    "SQF": "fewest cpus first",
    "SPF": "shortest limit first",
    "SAF": "smallest cpus × limit first",
    "WFP3": "wide jobs, and those that waited long for their limit",
    BY_USER: "smallest expected cpu-hours first, by users' past jobs",
}
"""Orders that a site's scheduler can be told as priorities, with what they mean."""

AGENTS = {
    "SAF-TRIAL": "SAF, and trials where processors idle",
    "URGENT-BENEFIT": "learned urgency, a cap on long jobs, cost-benefit backfilling",
    "URGENT-YOUNG": "the same with trials, and young jobs that give way",
}
"""Agents with what site's schedulers do not have: caps, cost-benefit, trials."""

FACTORS = (0.9, 0.95, 1.05, 1.1)  # sizes of the machine to try, as shares of today's
SLACK = 1.2  # limits to try, as multiples of what the job used

_PART = re.compile(r"(event|backfill|policy) '(\w+)[^']*'")
_PARTS = {"limit": "running limits", "outage": "outages"}
_PARTS |= {"event": "", "backfill": "backfilling", "policy": "order"}


@dataclass(frozen=True)
class Option:
    """A change of what a site has."""

    id: str  # what files call it
    name: str  # what tables call it
    group: Group  # what kind of change it is
    what: str  # what it means, in a few words
    settings: SchedulerSettings  # the scheduler
    change: Callable[[Workload], Workload] | None = None  # makes the jobs of it from the site's


def option_of(id_: str, name: str, group: Group, what: str, settings: Any) -> Option | str:
    """Return an option, by a function that makes its settings, or why it is none."""
    try:
        return Option(id_, name, group, what, settings())
    except PolicyError as error:
        return f"{name}: {plainly(error)}"


def plainly(error: HpcgymError) -> str:
    """Return an error of parts that do not go together without the texts of settings."""
    sides = [_PART.search(side) for side in str(error).split("; got ")]
    parts = [_PARTS.get(side[2], f"{_PARTS[side[1]]} {side[2]}") for side in sides if side]
    return f"{' and '.join(parts)} are not simulated together" if len(parts) == 2 else str(error)


def options_beside(
    baseline: SchedulerSettings, workload: Workload, *, is_machine_known: bool = True
) -> Iterator[Option | str]:
    """Yield what may be tried beside a setting, on a machine, and why some of it cannot be."""
    guarded = replace(baseline, threshold=baseline.threshold or GUARD_S)
    for policy, what in ORDERS.items():
        if policy == BY_USER and not (workload.user >= 0).any():
            yield f"{policy}: no job states its user"
            continue
        settings = replace(baseline if policy == "FCFS" else guarded, policy=policy)
        if order_of(settings) != order_of(baseline):
            yield Option(policy.lower(), policy, "order", what, settings)
    modes = {"no backfilling": "none", "EASY": "easy", "conservative": conservative_on(workload)}
    for name, mode in modes.items():
        if mode != str(baseline.backfill):
            what, there = f"today's order, backfilling {mode}", partial(replace, backfill=mode)
            yield option_of(mode.partition(":")[0], name, "mode", what, partial(there, baseline))
    for policy in dict.fromkeys([order_of(baseline), "SAF"]):
        settings = baseline if policy == order_of(baseline) else replace(guarded, policy=policy)
        yield Option(
            f"limits-{policy.lower()}",
            f"limits, {policy}",
            "limits",
            f"limits at {SLACK:g} times the use, order {policy}",
            settings,
            with_close_limits,
        )
    yield from _sizes(baseline, workload, is_machine_known)
    for name, what in AGENTS.items():
        agent = load_agent(name)
        assert isinstance(agent, RuleAgent)
        beside = partial(agent.settings, guarded)
        yield option_of(name.lower(), name, "simulated only", what, beside)


def allowed(basis: SchedulerSettings, *changes: Mapping[str, Any]) -> Iterator[SchedulerSettings]:
    """Yield settings with each of some changes; what contradicts the others is left out."""
    for change in changes:
        with suppress(PolicyError):  # limits and outages go with few modes
            yield replace(basis, **change)


def _sizes(
    baseline: SchedulerSettings, workload: Workload, is_known: bool
) -> Iterator[Option | str]:
    """Yield machines of other sizes on which every job fits, and why some are none."""
    machine = workload.machine
    if not is_known:
        yield "other sizes of the machine: today's is a guess; give --processors or --machine"
        return
    if machine is not None and machine.outages:
        yield "other sizes of the machine: outages name its nodes"
        return
    sizes = {workload.machine_processors}
    for factor in FACTORS:
        change = resized if machine is None else resized_nodes
        try:
            size = change(workload, factor).machine_processors
        except HpcgymError:
            widest = f"{int(workload.processors.max()):,} processors"
            yield f"{factor:.0%} of the machine: not all jobs fit; the widest asks for {widest}"
            continue
        if size in sizes:
            continue
        sizes.add(size)
        yield Option(
            f"machine-{factor * 100:g}",
            f"{size:,} processors",
            "machine",
            f"{size / workload.machine_processors - 1:+.1%} processors, today's order",
            baseline,
            partial(change, factor=factor),
        )


def resized(workload: Workload, factor: float) -> Workload:
    """Return the jobs on a machine of so many times the processors."""
    return replace(workload, machine_processors=round(workload.machine_processors * factor))


def resized_nodes(workload: Workload, factor: float) -> Workload:
    """Return the jobs on a machine of so many times the nodes of each kind.

    Nodes of a kind are alike and in the same partitions, which have as many of them then. Each kind
    is rounded to whole nodes by itself.
    """
    assert workload.machine is not None  # where it is called
    today = workload.machine
    types: list[NodeType] = []
    members: list[NDArray[np.bool_]] = []
    first = 0
    for alike in today.nodes:
        here = today.members[:, first : first + alike.count]
        _, nodes_of_kinds, counts = np.unique(here, axis=1, return_index=True, return_counts=True)
        for node, n in sorted(zip(nodes_of_kinds.tolist(), counts.tolist(), strict=True)):
            types.append(replace(alike, count=round(n * factor)))
            members.append(np.repeat(here[:, node : node + 1], types[-1].count, axis=1))
        first += alike.count
    named = np.concatenate(members, axis=1)
    partitions = [
        replace(partition, nodes=number_ranges(np.flatnonzero(nodes).tolist()))
        for partition, nodes in zip(today.partitions, named, strict=True)
    ]
    machine = Machine(tuple(types), tuple(partitions), today.swf_partitions)
    jobs = replace(workload, machine=machine, machine_processors=machine.cpus)
    if unplaceable(jobs):
        raise WorkloadError(f"{workload.name}: a job can never run on {machine}")
    return jobs


def with_close_limits(workload: Workload) -> Workload:
    """Return the jobs with limits at `SLACK` times what they used, and no longer than they had."""
    used = np.maximum(np.ceil(SLACK * workload.run_time), 1).astype(np.int64)
    return replace(workload, requested_time=np.minimum(used, workload.requested_time))


def conservative_on(workload: Workload) -> str:
    """Return conservative backfilling; on nodes a plan of all that wait would cost too much."""
    return "conservative" if workload.machine is None else "conservative:planned=100"


def is_dear(settings: SchedulerSettings) -> bool:
    """Tell whether each pass plans for many jobs, which may take hours on nodes."""
    return str(settings.backfill).startswith(("conservative", "depth"))


def order_of(settings: SchedulerSettings) -> str:
    """Return the name of the primary order."""
    return as_policy(settings.policy).name


def setting_text(settings: SchedulerSettings) -> str:
    """Return order, backfilling and threshold as a line.

    Example:
        >>> setting_text(SchedulerSettings("SAF", threshold=86_400))
        'SAF, backfill easy, threshold 24 h'
    """
    threshold = settings.threshold
    guard = "no threshold" if threshold is None else f"threshold {threshold / 3600:.3g} h"
    return f"{order_of(settings)}, backfill {settings.backfill}, {guard}"
