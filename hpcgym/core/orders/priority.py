"""Priorities by many factors, as Slurm's multifactor plug-in adds them up; highest first.

All factors but age and fair share are the same at every instant, so they are added up before a
simulation begins (`Multifactor.constant`), and an order costs two of them for each job.

Source: Specification, section 16, "Multifactor priorities".
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hpcgym.base.errors import PolicyError, WorkloadError, unknown_name
from hpcgym.core import constants as s
from hpcgym.core.backfill import is_whole
from hpcgym.core.kernels.queue.entries import entry_of
from hpcgym.core.kernels.types import Jobs
from hpcgym.core.part_text import text_of_part
from hpcgym.core.parts.fair_share import (
    CLASSIC,
    FAIR_TREE,
    FairShare,
    FairShareSim,
    line_of,
    refresh,
)
from hpcgym.core.policy import Policy, compiled_policy
from hpcgym.core.workload import Workload
from hpcgym.machine.accounts import Accounts

AGE, MAX_AGE, FAIR_SHARE = range(3)
"""Parameters: the weight of age, the wait at which age is full, s, the weight of fair share."""

LARGEST_PRIORITY = 2.0**32 - 1


def priority(jobs: Jobs, sim: FairShareSim, which: int, n: int) -> None:
    """Score jobs by their priorities, which are whole numbers."""
    column = 1 if which == s.BACKFILL_ORDER else 0
    weight = sim.weight[which, FAIR_SHARE]
    if weight != 0.0:
        refresh(jobs, sim)
    for position in range(n):
        job = sim.scratch[position]
        wait = sim.now - jobs.feature[job, s.FEATURE_SUBMIT]
        total = sim.weight[which, AGE] * min(wait / sim.weight[which, MAX_AGE], 1.0)
        if weight != 0.0:
            total += weight * sim.factor[line_of(jobs, sim, job)]
        total = math.floor(total + jobs.keys[job, column])
        sim.key[which, entry_of(sim, job)] = -min(max(total, 0.0), LARGEST_PRIORITY)


@dataclass(frozen=True)
class Multifactor:
    """Priorities as Slurm's plug-in priority/multifactor adds them up.

    Raises:
        PolicyError: A value that is not allowed, or a weight without what it weighs.
    """

    NAME: ClassVar[str] = "multifactor"

    age: int = 0  # PriorityWeightAge, the weight of the wait over `max_age`
    fairshare: int = 0  # PriorityWeightFairshare
    jobsize: int = 0  # PriorityWeightJobSize
    partition: int = 0  # PriorityWeightPartition, which needs `partitions`
    qos: int = 0  # PriorityWeightQOS, which needs `qoses`
    max_age: int = 604_800  # PriorityMaxAge, s: the wait at which age is full
    half_life: int = 604_800  # PriorityDecayHalfLife, s; 0 = usage does not decay
    # PriorityCalcPeriod, s: after which usage decays, and shares are computed anew.
    period: int = 300
    favor_small: int = 0  # PriorityFavorSmall: 1 = small jobs have the larger factor
    # SMALL_RELATIVE_TO_TIME of PriorityFlags: 1 = by cpus per minute requested.
    relative_to_time: int = 0
    fair_tree: int = 1  # 0 = classic fair share, NO_FAIR_TREE of PriorityFlags
    dampening: int = 1  # FairShareDampeningFactor, of classic fair share
    # PriorityJobFactor of each partition, by name; in texts name/number/name/number.
    partitions: Any = ()
    qoses: Any = ()  # priority of each quality of service, likewise
    # The tree of accounts; None = all users are equal.
    accounts: Accounts | None = field(default=None, hash=False)

    def __post_init__(self) -> None:
        for key in ("age", "fairshare", "jobsize", "partition", "qos", "half_life"):
            self._refuse_unless_whole(key, 0, int(LARGEST_PRIORITY))
        for key, least in (("max_age", 1), ("period", 60), ("dampening", 1)):
            self._refuse_unless_whole(key, least, int(LARGEST_PRIORITY))
        for key in ("favor_small", "relative_to_time", "fair_tree"):
            self._refuse_unless_whole(key, 0, 1)
        for weight, key in (("partition", "partitions"), ("qos", "qoses")):
            object.__setattr__(
                self, key, _pairs(f"policy {self.NAME!r}: {key}", getattr(self, key))
            )
            if getattr(self, weight) and not getattr(self, key):
                raise PolicyError(
                    f"policy {self.NAME!r}: {weight}={getattr(self, weight)} weighs nothing "
                    f"without {key}, as in {key}=batch/1/debug/10"
                )

    def _refuse_unless_whole(self, key: str, low: int, high: int) -> None:
        """Refuse a parameter that is no whole number of a range."""
        given = getattr(self, key)
        if not is_whole(given, low) or given > high:
            raise PolicyError(
                f"policy {self.NAME!r}: {key} must be whole, from {low} to {high}, got {given!r}"
            )

    @property
    def policy(self) -> Policy:
        """Return the policy."""
        kind = FAIR_TREE if self.fair_tree else CLASSIC
        pace = self.half_life, self.period, self.period
        kept = FairShare(kind, *pace, self.dampening, 0, self.accounts) if self.fairshare else None
        return compiled_policy(
            text_of_part(self),
            priority,
            [self.age, self.max_age, self.fairshare],
            "Slurm, priority/multifactor",
            constant=self.constant,
            keeps=kept,
        )

    def constant(self, workload: Workload) -> NDArray[np.float64]:
        """Return what time does not change of each job's priority, shape (n_jobs,).

        Raises:
            WorkloadError: A job's partition or quality of service has no factor.
        """
        total = self.jobsize * self.size_factor(workload)
        for weight, pairs, column in (
            (self.partition, self.partitions, "partition"),
            (self.qos, self.qoses, "qos"),
        ):
            if weight:
                total = total + weight * _factors(workload, column, pairs)
        return total - (0.0 if workload.nice is None else workload.nice.astype(np.float64))

    def size_factor(self, workload: Workload) -> NDArray[np.float64]:
        """Return the job size factor of each job, shape (n_jobs,), from 0 to 1."""
        cpus, all_cpus = workload.processors.astype(np.float64), workload.machine_processors
        nodes, all_nodes = cpus, all_cpus
        if workload.machine is not None:
            assert workload.chunks is not None and workload.spread is not None
            all_nodes = workload.machine.n_nodes
            nodes = np.where(workload.spread, workload.chunks, 1).astype(np.float64)
        if self.relative_to_time:
            minutes = np.maximum(np.ceil(workload.requested_time / 60), 1)
            size = np.maximum(nodes * all_cpus / all_nodes, cpus) / minutes / all_cpus
        else:
            size = (nodes / all_nodes + cpus / all_cpus) / 2
        size = np.clip(size, 0.0, 1.0)
        return 1.0 - size if self.favor_small else size


def _pairs(what: str, given: object) -> tuple[Any, ...]:
    """Return names and numbers in turn."""
    if isinstance(given, Mapping):
        given = tuple(part for pair in given.items() for part in pair)
    if not isinstance(given, tuple) or len(given) % 2:
        raise PolicyError(f"{what} must be name/number/name/number ..., got {given!r:.80}")
    for number in given[1::2]:
        if not is_whole(number, 0):
            raise PolicyError(f"{what}: a factor must be whole, a number >= 0, got {number!r}")
    return tuple(str(part) if at % 2 == 0 else part for at, part in enumerate(given))


def _factors(workload: Workload, column: str, pairs: tuple[Any, ...]) -> NDArray[np.float64]:
    """Return the factor of each job's partition or quality of service, the largest being 1."""
    known = dict(zip(pairs[::2], pairs[1::2], strict=True))
    largest = max(max(known.values()), 1)
    named = workload.named(column)
    for name in dict.fromkeys(named.tolist()):
        if name not in known:
            row = int(np.argmax(named == name))
            raise WorkloadError(
                f"{workload.name}: job {workload.job_id[row]} (row {row}): "
                f"{unknown_name(column, name, known)}"
            )
    return np.array([known[name] / largest for name in named.tolist()])
