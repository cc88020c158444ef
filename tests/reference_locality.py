"""Plain-Python reference of the locality study: parallel tasks, and backfilling on their hosts.

Written from the specification's words, one resource at a time and one host at a time. Hosts are
numbers from 0, clusters have 16 of them each, and every host and every direction of every link is
a resource of its own.

Source: Rules of reruns, "Parallel-task model".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from reference import added

CLUSTER_HOSTS = 16


@dataclass
class Platform:
    """Speeds (flop/s) and bandwidths (byte/s) by cluster; the backbone's; latency of a link, s."""

    speed: Sequence[float]
    link: Sequence[float]
    switch: Sequence[float]
    backbone: float
    latency: float
    half_duplex: bool = False


@dataclass
class Job:
    """What a job does on each of `hosts`, and how far it is."""

    size: int
    flop: float
    traffic: float
    limit: float
    hosts: list[int] = field(default_factory=list)
    start: float = math.inf
    end: float = math.inf
    left: float = 1.0
    latency: float = 0.0


Resource = tuple[str, int]


def cluster_of(host: int) -> int:
    """Return the cluster of a host."""
    return host // CLUSTER_HOSTS


def loads(job: Job, platform: Platform) -> dict[Resource, float]:
    """Return what a whole job asks of each resource, in flop or bytes."""
    found: dict[Resource, float] = {}
    for host in job.hosts:
        found["host", host] = job.flop
    for sender in job.hosts:
        for receiver in job.hosts:
            if sender == receiver:
                continue
            at, to = cluster_of(sender), cluster_of(receiver)
            down = "up" if platform.half_duplex else "down"
            used = [("up", sender), (down, receiver), ("switch", at)]
            if at != to:
                used += [("switch", to), ("backbone", 0)]
            for resource in used:
                found[resource] = found.get(resource, 0.0) + job.traffic
    return {resource: load for resource, load in found.items() if load > 0}


def capacity_of(resource: Resource, platform: Platform) -> float:
    """Return the capacity of a resource, flop/s or byte/s."""
    kind, number = resource
    if kind == "host":
        return platform.speed[cluster_of(number)]
    if kind == "switch":
        return platform.switch[number]
    return platform.backbone if kind == "backbone" else platform.link[cluster_of(number)]


def fair_bottleneck(jobs: Sequence[Job], platform: Platform) -> list[float]:
    """Return the rate of each job, step by step as the specification says."""
    load = [loads(job, platform) for job in jobs]
    remaining = {resource: capacity_of(resource, platform) for one in load for resource in one}
    bound = [min(platform.speed[cluster_of(host)] for host in job.hosts) / job.flop for job in jobs]
    rate, increment = [0.0] * len(jobs), [0.0] * len(jobs)
    unfrozen, unsaturated = set(range(len(jobs))), set(remaining)
    while unfrozen:
        offer = {}
        for resource in sorted(unsaturated):
            sharing = sum(resource in load[job] for job in unfrozen)
            if sharing:
                offer[resource] = remaining[resource] / sharing
        unsaturated = set(offer)
        for job in sorted(unfrozen):
            offers = [offer[resource] / asked for resource, asked in load[job].items()]
            increment[job] = min(*offers, bound[job] - rate[job])
            rate[job] += increment[job]
            if rate[job] >= bound[job]:
                unfrozen.discard(job)
        for resource in sorted(unsaturated):
            remaining[resource] -= added(
                one[resource] * increment[job] for job, one in enumerate(load) if resource in one
            )
            if remaining[resource] < 1e-5:
                unsaturated.discard(resource)
                unfrozen -= {job for job in unfrozen if resource in load[job]}
    return rate


def max_min(jobs: Sequence[Job], platform: Platform) -> list[float]:
    """Return the rate of each job where all grow alike until something they load is full."""
    load = [loads(job, platform) for job in jobs]
    rate = [0.0] * len(jobs)
    unfrozen = set(range(len(jobs)))
    while unfrozen:
        room = {}
        for resource in {resource for job in unfrozen for resource in load[job]}:
            used = added(one.get(resource, 0.0) * rate[job] for job, one in enumerate(load))
            growing = added(load[job].get(resource, 0.0) for job in unfrozen)
            room[resource] = (capacity_of(resource, platform) - used) / growing
        step = min(room.values())
        full = {resource for resource, most in room.items() if most <= step * (1 + 1e-12)}
        for job in unfrozen:
            rate[job] += step
        unfrozen = {job for job in unfrozen if not full & set(load[job])}
    return rate


Sharing = Callable[[Sequence[Job], Platform], list[float]]


def begin(job: Job, now: float, hosts: Sequence[int], platform: Platform) -> None:
    """Let a job begin."""
    job.hosts, job.start = list(hosts), now
    n_links = 2 if len({cluster_of(host) for host in hosts}) == 1 else 3
    sends = len(hosts) > 1 and job.traffic > 0
    job.latency = n_links * platform.latency if sends else 0.0


def advance(
    now: float, running: Sequence[Job], platform: Platform, sharing: Sharing
) -> tuple[float, list[Job]]:
    """Let jobs run until the next one ends or is killed; return the instant and what ended."""
    rate = sharing(running, platform)
    ends = [now + job.latency + job.left / x for job, x in zip(running, rate, strict=True)]
    then = min(ends + [job.start + job.limit for job in running])
    ended = []
    for job, x in zip(running, rate, strict=True):
        idle = min(job.latency, then - now)
        job.latency -= idle
        job.left -= x * (then - now - idle)
        if job.left < 1e-10 or job.start + job.limit <= then:
            job.end = then
            ended.append(job)
    return then, ended


def first_block(free: set[int], size: int) -> list[int]:
    """Return the lowest consecutive hosts of a set, or none."""
    for first in sorted(free):
        block = list(range(first, first + size))
        if free.issuperset(block):
            return block
    return []


def first_in_cluster(free: set[int], size: int) -> list[int]:
    """Return the lowest hosts of the lowest cluster with room, or none."""
    for cluster in sorted({cluster_of(host) for host in free}):
        inside = sorted(host for host in free if cluster_of(host) == cluster)
        if len(inside) >= size:
            return inside[:size]
    return []


def first_hosts(free: set[int], size: int) -> list[int]:
    """Return the lowest hosts, or none."""
    return sorted(free)[:size] if len(free) >= size else []


PLACEMENTS: dict[str, Callable[[set[int], int], list[int]]] = {
    "basic": first_hosts,
    "best-effort contiguous": lambda free, n: first_block(free, n) or first_hosts(free, n),
    "best-effort local": lambda free, n: first_in_cluster(free, n) or first_hosts(free, n),
    "contiguous": first_block,
    "local": first_in_cluster,
}
"""The hosts that each variant takes of those free throughout a hole; none rejects the hole."""


def simulate(
    jobs: list[Job], platform: Platform, variant: str, sharing: Sharing = fair_bottleneck
) -> None:
    """Run jobs released at 0 by conservative backfilling, rebuilt at each event; writes them."""
    every = set(range(CLUSTER_HOSTS * len(platform.speed)))
    waiting, running, now = list(jobs), list[Job](), 0.0
    while waiting or running:
        taken = [(now, job.start + job.limit, set(job.hosts)) for job in running]
        for job in list(waiting):
            for start in sorted({now, *(end for _, end, _ in taken)}):
                end = start + job.limit
                busy = {
                    h
                    for begins, ends, hosts in taken
                    if begins < end and start < ends
                    for h in hosts
                }
                hosts = PLACEMENTS[variant](every - busy, job.size)
                if hosts:
                    break
            taken.append((start, end, set(hosts)))
            if start == now:
                begin(job, now, hosts, platform)
                waiting.remove(job)
                running.append(job)
        now, ended = advance(now, running, platform, sharing)
        running = [job for job in running if job not in ended]
