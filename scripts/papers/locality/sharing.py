"""How parallel tasks share a platform: their rates, and the instant at which the next one ends.

A job is one activity. All its flops and bytes progress at one rate, in shares of the job per
second, and it loads each resource by its rate times what the whole job asks of it. Jobs share the
switches and the backbone. Of what a job has to itself, its slowest host and its slowest link count
alone, since they fill first. One call costs microseconds.

Kernels call none of another file, since numba's cache watches the file of a kernel only.

Source: Rules of reruns, "Parallel-task model".
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.core.compiler.jit import kernel
from papers.locality.platform import Platform

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

SATURATED: Final = 1e-5
"""A resource with less left than this is full, byte/s."""

DONE: Final = 1e-10
"""A job with less left than this has ended, as in SimGrid; a share of the job."""


class Activities(NamedTuple):
    """The jobs of a run as the platform sees them; the first axis is the job.

    Attributes:
        flop: Of each of its hosts.
        traffic: Bytes from each of its hosts to each other.
        limit: Longest it may run, s.
        clusters: Hosts that it has in each cluster, shape (n_jobs, 8); 0 before its start.
        left: Share of it that is left to do.
        latency: What is left of its latency, s.
        deadline: When it is killed, s.
    """

    flop: FloatArray
    traffic: FloatArray
    limit: FloatArray
    clusters: IntArray
    left: FloatArray
    latency: FloatArray
    deadline: FloatArray


@kernel
def begin(now: float, job: int, activities: Activities, platform: Platform) -> None:
    """Let a job begin on the hosts of `clusters`: writes its share left, latency and deadline."""
    hosts = activities.clusters[job]
    links = 2 if np.max(hosts) == np.sum(hosts) else 3
    sends = np.sum(hosts) > 1 and activities.traffic[job] > 0.0
    activities.left[job] = 1.0
    activities.latency[job] = links * platform.latency if sends else 0.0
    activities.deadline[job] = now + activities.limit[job]


@kernel
def advance(
    now: float,
    until: float,
    running: IntArray,
    activities: Activities,
    platform: Platform,
    is_fair: bool,
) -> float:
    """Let jobs run until one ends or is killed, `until` at the latest; writes what is left.

    Returns:
        The instant reached, s; jobs that have ended have nothing left.
    """
    rate = rates(running, activities, platform, is_fair)
    then = until
    for place, job in enumerate(running):
        then = min(then, now + activities.latency[job] + activities.left[job] / rate[place])
        then = min(then, activities.deadline[job])
    for place, job in enumerate(running):
        idle = min(activities.latency[job], then - now)
        left = activities.left[job] - rate[place] * (then - now - idle)
        activities.latency[job] -= idle
        activities.left[job] = left if left >= DONE else 0.0
    return then


@kernel
def rates(
    running: IntArray, activities: Activities, platform: Platform, is_fair: bool
) -> FloatArray:
    """Return the rates of the running jobs, 1/s, by fair bottleneck or else by max-min."""
    n_clusters = len(platform.switch)
    load = np.zeros((len(running), n_clusters + 1))
    own_load, own_capacity = np.empty((len(running), 2)), np.empty((len(running), 2))
    for place, job in enumerate(running):
        hosts, traffic = activities.clusters[job], activities.traffic[job]
        load_of(hosts, traffic, load[place])
        own_load[place, 0] = activities.flop[job]
        own_load[place, 1] = platform.directions * (np.sum(hosts) - 1) * traffic
        own_capacity[place, 0] = np.min(platform.speed[hosts > 0])
        own_capacity[place, 1] = np.min(platform.link[hosts > 0])
    capacity = np.empty(n_clusters + 1)
    capacity[:n_clusters] = platform.switch
    capacity[n_clusters] = platform.backbone
    if is_fair:
        return fair_bottleneck(load, capacity, own_load, own_capacity)
    return max_min(load, capacity, own_load, own_capacity)


@kernel
def load_of(hosts: IntArray, traffic: float, load: FloatArray) -> None:
    """Write what a job with so many hosts in each cluster asks of each switch and the backbone."""
    size = np.sum(hosts)
    inside = 0
    for cluster, here in enumerate(hosts):
        load[cluster] = (here * (here - 1) + 2 * here * (size - here)) * traffic
        inside += here * here
    load[len(hosts)] = (size * size - inside) * traffic


@kernel
def fair_bottleneck(
    load: FloatArray, capacity: FloatArray, own_load: FloatArray, own_capacity: FloatArray
) -> FloatArray:
    """Return the rates by SimGrid's fair bottleneck, its default for parallel tasks.

    Args:
        load: Of each job on each shared resource at rate 1, shape (n_jobs, n_resources).
        capacity: Of each shared resource, shape (n_resources,).
        own_load: Of each job on its slowest host and link at rate 1, shape (n_jobs, 2).
        own_capacity: Of these, shape (n_jobs, 2).
    """
    n_jobs, n_resources = load.shape
    bound = own_capacity / own_load
    rate, increment = np.zeros(n_jobs), np.zeros(n_jobs)
    frozen = np.zeros(n_jobs, dtype=np.bool_)
    remaining, offer = capacity.copy(), np.zeros(n_resources)
    is_open = np.ones(n_resources, dtype=np.bool_)
    while not np.all(frozen):
        for resource in range(n_resources):
            if is_open[resource]:
                sharing = np.sum((load[:, resource] > 0.0) & ~frozen)
                is_open[resource] = sharing > 0
                offer[resource] = remaining[resource] / max(sharing, 1)
        for job in range(n_jobs):
            if not frozen[job]:
                increment[job] = np.min(bound[job]) - rate[job]
                for resource in range(n_resources):
                    if load[job, resource] > 0.0:
                        most = offer[resource] / load[job, resource]
                        increment[job] = min(increment[job], most)
                rate[job] += increment[job]
                frozen[job] = is_full(own_load[job], own_capacity[job], rate[job])
        for resource in range(n_resources):
            if is_open[resource]:
                # A frozen job takes its old increment again and again, as it does in SimGrid.
                for job in range(n_jobs):
                    remaining[resource] -= load[job, resource] * increment[job]
                is_open[resource] = remaining[resource] >= SATURATED
                if not is_open[resource]:
                    freeze(load[:, resource], frozen)
    return rate


@kernel
def max_min(
    load: FloatArray, capacity: FloatArray, own_load: FloatArray, own_capacity: FloatArray
) -> FloatArray:
    """Return the rates by progressive filling: all grow alike until a resource is full.

    Arguments are those of `fair_bottleneck`.
    """
    n_jobs, n_resources = load.shape
    bound = own_capacity / own_load
    rate = np.zeros(n_jobs)
    frozen = np.zeros(n_jobs, dtype=np.bool_)
    remaining, total = capacity.copy(), np.zeros(n_resources)
    while not np.all(frozen):
        step = np.inf
        for job in range(n_jobs):
            if not frozen[job]:
                step = min(step, np.min(bound[job]) - rate[job])
        for resource in range(n_resources):
            total[resource] = np.sum(np.where(frozen, 0.0, load[:, resource]))
            if total[resource] > 0.0:
                step = min(step, remaining[resource] / total[resource])
        for job in range(n_jobs):
            if not frozen[job]:
                rate[job] += step
                frozen[job] = is_full(own_load[job], own_capacity[job], rate[job])
        for resource in range(n_resources):
            remaining[resource] -= step * total[resource]
            if total[resource] > 0.0 and remaining[resource] < SATURATED:
                freeze(load[:, resource], frozen)
    return rate


@kernel
def is_full(load: FloatArray, capacity: FloatArray, rate: float) -> bool:
    """Tell whether a job fills one of its own resources at a rate."""
    return bool(np.min(capacity - load * rate) < SATURATED)


@kernel
def freeze(load: FloatArray, frozen: NDArray[np.bool_]) -> None:
    """Freeze the jobs that load a resource; writes `frozen`."""
    for job in range(len(load)):
        if load[job] > 0.0:
            frozen[job] = True
