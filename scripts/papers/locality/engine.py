"""Conservative backfilling in five variants, and runs of jobs under it in float time.

A set of hosts is two words of 64 bits, hosts 0 to 63 in the first. At each event, reservations are
made anew, job by job in order, in a profile: the hosts free from each step on. A hole is found by
moving a window over the steps, from the latest reservation of a job no wider nor longer. A pass
ends after the last job that might start now, since reservations are forgotten anyway. A run of 300
jobs takes about 20 ms.

Kernels call none of another file, since numba's cache watches the file of a kernel only.

Source: Rules of reruns, "Five variants of conservative backfilling".
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.core.compiler.jit import kernel
from hpcgym.core.workload import Workload
from papers.locality.platform import CLUSTER_HOSTS, CLUSTERS, HOSTS, Platform
from papers.locality.sharing import Activities, advance, begin

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Sets = NDArray[np.uint64]
Word = np.uint64

BASIC: Final = 0
BEST_EFFORT_CONTIGUOUS: Final = 1
BEST_EFFORT_LOCAL: Final = 2
CONTIGUOUS: Final = 3
LOCAL: Final = 4

VARIANTS = {
    "basic": BASIC,
    "best-effort contiguous": BEST_EFFORT_CONTIGUOUS,
    "best-effort local": BEST_EFFORT_LOCAL,
    "contiguous": CONTIGUOUS,
    "local": LOCAL,
}
"""The paper's names, and the codes that kernels know."""

WORD: Final = HOSTS // 2
WORD_CLUSTERS: Final = CLUSTERS // 2
ALL: Final = Word(2**WORD - 1)
NONE: Final = Word(0)
ONE: Final = Word(1)
CLUSTER: Final = Word(2**CLUSTER_HOSTS - 1)
"""The hosts of a word's first cluster."""

COUNTING: Final = (
    (Word(1), Word(0x5555_5555_5555_5555)),
    (Word(2), Word(0x3333_3333_3333_3333)),
    (Word(4), Word(0x0F0F_0F0F_0F0F_0F0F)),
    (Word(8), Word(0x00FF_00FF_00FF_00FF)),
)
"""Widths and fields in which bits are added up, by pairs, to counts of 16 bits."""


# --- Sets of hosts --------------------------------------------------------------------------------


@kernel
def count_by_cluster(low: Word, high: Word, counts: IntArray) -> int:
    """Return how many hosts a set has; writes how many in each cluster."""
    total = np.int64(0)
    for half, word in enumerate((low, high)):
        for width, field in COUNTING:
            word = (word & field) + ((word >> width) & field)
        for cluster in range(WORD_CLUSTERS):
            here = np.int64((word >> Word(CLUSTER_HOSTS * cluster)) & CLUSTER)
            counts[WORD_CLUSTERS * half + cluster] = here
            total += here
    return int(total)


@kernel
def runs_of(low: Word, high: Word, size: int) -> tuple[Word, Word]:
    """Return the hosts of a set at which so many consecutive ones begin."""
    have = 1
    while have < size:
        step = min(have, size - have)
        right, left = Word(step), Word(WORD - step)
        low, high = low & ((low >> right) | (high << left)), high & (high >> right)
        have += step
    return low, high


@kernel
def block_from(low: Word, high: Word, size: int) -> tuple[Word, Word]:
    """Return so many consecutive hosts, from the lowest of a set on."""
    low, high = lowest(low, high, 1)
    have = 1
    while have < size:
        step = min(have, size - have)
        left, right = Word(step), Word(WORD - step)
        low, high = low | (low << left), high | (high << left) | (low >> right)
        have += step
    return low, high


@kernel
def lowest(low: Word, high: Word, size: int) -> tuple[Word, Word]:
    """Return so many hosts of a set, the lowest."""
    taken_low, taken_high = NONE, NONE
    for _ in range(size):
        if low != NONE:
            rest = low & (low - ONE)
            taken_low |= low ^ rest
            low = rest
        else:
            rest = high & (high - ONE)
            taken_high |= high ^ rest
            high = rest
    return taken_low, taken_high


@kernel
def has_room(low: Word, high: Word, size: int, variant: int, counts: IntArray) -> bool:
    """Tell whether a variant accepts a hole with these hosts; writes `counts`, its working space.

    More hosts never make a variant refuse what it accepted.
    """
    if count_by_cluster(low, high, counts) < size:
        return False
    if variant == LOCAL:
        return bool(np.max(counts) >= size)
    if variant == CONTIGUOUS:
        low, high = runs_of(low, high, size)
        return bool(low != NONE or high != NONE)
    return True


@kernel
def place(low: Word, high: Word, size: int, variant: int, counts: IntArray) -> tuple[Word, Word]:
    """Return the hosts that a variant takes of an accepted hole; writes `counts`."""
    if variant in (CONTIGUOUS, BEST_EFFORT_CONTIGUOUS):
        first_low, first_high = runs_of(low, high, size)
        if first_low != NONE or first_high != NONE:
            return block_from(first_low, first_high, size)
    if variant in (LOCAL, BEST_EFFORT_LOCAL):
        count_by_cluster(low, high, counts)
        for cluster in range(CLUSTERS):
            if counts[cluster] >= size:
                inside = CLUSTER << Word(CLUSTER_HOSTS * (cluster % WORD_CLUSTERS))
                if cluster < WORD_CLUSTERS:
                    return lowest(low & inside, NONE, size)
                return lowest(NONE, high & inside, size)
    return lowest(low, high, size)


# --- The profile ----------------------------------------------------------------------------------


class Profile(NamedTuple):
    """The hosts free by estimates, as a step function of time; the last step lasts for ever.

    Attributes:
        time: When each step begins, s, ascending.
        free: Its free hosts, shape (n_steps, 2).
    """

    time: FloatArray
    free: Sets


@kernel
def make_profile(
    now: float, running: IntArray, deadline: FloatArray, hosts: Sets, profile: Profile
) -> int:
    """Write the profile of the running jobs and return its number of steps."""
    low, high = ALL, ALL
    for job in running:
        low, high = low & ~hosts[job, 0], high & ~hosts[job, 1]
    profile.time[0] = now
    n_steps = 1
    for job in running[np.argsort(deadline[running])]:
        profile.free[n_steps - 1, 0], profile.free[n_steps - 1, 1] = low, high
        if deadline[job] > profile.time[n_steps - 1]:
            profile.time[n_steps] = deadline[job]
            n_steps += 1
        low, high = low | hosts[job, 0], high | hosts[job, 1]
    profile.free[n_steps - 1, 0], profile.free[n_steps - 1, 1] = low, high
    return n_steps


@kernel
def find_hole(
    profile: Profile,
    n_steps: int,
    first: int,
    size: int,
    limit: float,
    variant: int,
    counts: IntArray,
) -> tuple[int, Word, Word]:
    """Return the step, `first` or later, at which a variant accepts a hole, and the hosts free.

    Writes `counts`, its working space.
    """
    step = first
    low, high = ALL, ALL  # free in all steps from `first` up to `step`, which is left out
    while step < n_steps and profile.time[step] < profile.time[first] + limit:
        free = profile.free[step]
        if has_room(low & free[0], high & free[1], size, variant, counts):
            low, high = low & free[0], high & free[1]
        else:  # a hole that reaches here begins no earlier than the steps that share room with it
            first, low, high = step + 1, ALL, ALL
            before_low, before_high = free[0], free[1]
            while has_room(before_low, before_high, size, variant, counts):
                first, low, high = first - 1, before_low, before_high
                before_low &= profile.free[first - 1, 0]
                before_high &= profile.free[first - 1, 1]
        step += 1
    return first, low, high


@kernel
def reserve(profile: Profile, n_steps: int, first: int, limit: float, low: Word, high: Word) -> int:
    """Take hosts out of a profile from a step on; writes it and returns its number of steps."""
    end = profile.time[first] + limit
    after = first + np.searchsorted(profile.time[first:n_steps], end)
    if after == n_steps or profile.time[after] > end:
        for step in range(n_steps, after, -1):
            profile.time[step] = profile.time[step - 1]
            profile.free[step] = profile.free[step - 1]
        profile.time[after] = end
        profile.free[after] = profile.free[after - 1]
        n_steps += 1
    for step in range(first, after):
        profile.free[step, 0] &= ~low
        profile.free[step, 1] &= ~high
    return n_steps


@kernel
def start_jobs(
    now: float,
    waiting: IntArray,
    running: IntArray,
    size: IntArray,
    limit: FloatArray,
    deadline: FloatArray,
    hosts: Sets,
    variant: int,
) -> NDArray[np.bool_]:
    """Make all reservations anew; tell which of `waiting` start now, and write their hosts."""
    longest = len(running) + len(waiting) + 2
    profile = Profile(np.empty(longest), np.empty((longest, 2), dtype=np.uint64))
    n_steps = make_profile(now, running, deadline, hosts, profile)
    counts = np.empty(CLUSTERS, dtype=np.int64)
    is_starting = np.zeros(len(waiting), dtype=np.bool_)
    reserved = np.empty(len(waiting))
    idle = np.empty((len(waiting), 2), dtype=np.uint64)  # for the whole of each job from now on
    idle[:] = profile.free[0]
    last = last_with_room(0, idle, waiting, size, variant, counts)
    index = 0
    while index <= last:
        job = waiting[index]
        first, low, high = 0, idle[index, 0], idle[index, 1]
        is_starting[index] = has_room(low, high, size[job], variant, counts)
        if not is_starting[index]:
            soonest = soonest_of(waiting[: index + 1], reserved, size, limit, now)
            first = int(np.searchsorted(profile.time[:n_steps], soonest))
            first, low, high = find_hole(
                profile, n_steps, first, size[job], limit[job], variant, counts
            )
        low, high = place(low, high, size[job], variant, counts)
        if is_starting[index]:
            hosts[job, 0], hosts[job, 1] = low, high
        reserved[index] = profile.time[first]
        n_steps = reserve(profile, n_steps, first, limit[job], low, high)
        for later in range(index + 1, last + 1):
            if reserved[index] < now + limit[waiting[later]]:
                idle[later, 0] &= ~low
                idle[later, 1] &= ~high
        index += 1
        last = last_with_room(index, idle[: last + 1], waiting, size, variant, counts)
    return is_starting


@kernel
def last_with_room(
    index: int, idle: Sets, waiting: IntArray, size: IntArray, variant: int, counts: IntArray
) -> int:
    """Return the place in order of the last job that might start now, from `index` on, or -1."""
    for later in range(len(idle) - 1, index - 1, -1):
        if has_room(idle[later, 0], idle[later, 1], size[waiting[later]], variant, counts):
            return later
    return -1


@kernel
def soonest_of(
    until: IntArray, reserved: FloatArray, size: IntArray, limit: FloatArray, now: float
) -> float:
    """Return the latest reservation among jobs before the last no wider nor longer than it."""
    job, soonest = until[-1], now
    for earlier, other in enumerate(until[:-1]):
        if size[other] <= size[job] and limit[other] <= limit[job]:
            soonest = max(soonest, reserved[earlier])
    return soonest


# --- Runs -----------------------------------------------------------------------------------------


class Run(NamedTuple):
    """What became of the jobs; arrays by job.

    Attributes:
        start: s.
        end: s.
        hosts: Sets of hosts, shape (n_jobs, 2).
        clusters: Hosts in each cluster, shape (n_jobs, 8).
        killed: Whether it was killed at its limit.
    """

    start: FloatArray
    end: FloatArray
    hosts: Sets
    clusters: IntArray
    killed: NDArray[np.bool_]

    @property
    def makespan(self) -> float:
        """When the last job ends, s."""
        return float(self.end.max())


def activities_of(jobs: Workload, f_comp: float, f_comm: float) -> Activities:
    """Return what jobs compute and send, before any has begun.

    Source: Rules of reruns, "Jobs".
    """
    n_jobs, run_time = len(jobs), jobs.run_time.astype(np.float64)
    return Activities(
        flop=run_time * f_comp,
        traffic=run_time * f_comm,
        limit=jobs.requested_time.astype(np.float64),
        clusters=np.zeros((n_jobs, CLUSTERS), dtype=np.int64),
        left=np.zeros(n_jobs),
        latency=np.zeros(n_jobs),
        deadline=np.zeros(n_jobs),
    )


def simulate(
    size: IntArray,
    activities: Activities,
    platform: Platform,
    variant: str,
    *,
    sharing: str = "fair-bottleneck",
) -> Run:
    """Run jobs that are all released at 0, first come first served, each in its place in order.

    Args:
        size: Hosts of each job, at most those of a cluster.
        activities: The jobs, none begun; written.
        platform: What they run on.
        variant: One of `VARIANTS`.
        sharing: "fair-bottleneck" or "max-min".
    """
    n_jobs, is_fair = len(size), sharing == "fair-bottleneck"
    start, end, killed = np.zeros(n_jobs), np.zeros(n_jobs), np.zeros(n_jobs, dtype=np.bool_)
    hosts, clusters = np.zeros((n_jobs, 2), dtype=np.uint64), activities.clusters
    limit, deadline = activities.limit, activities.deadline
    waiting, running, now = np.arange(n_jobs), np.arange(0), 0.0
    while len(waiting) or len(running):
        is_starting = start_jobs(
            now, waiting, running, size, limit, deadline, hosts, VARIANTS[variant]
        )
        for job in waiting[is_starting]:
            count_by_cluster(hosts[job, 0], hosts[job, 1], clusters[job])
            begin(now, job, activities, platform)
            start[job] = now
        running = np.concatenate((running, waiting[is_starting]))
        waiting = waiting[~is_starting]
        now = advance(now, np.inf, running, activities, platform, is_fair)
        has_more, is_over = activities.left[running] > 0.0, deadline[running] <= now
        killed[running] = has_more & is_over
        end[running] = now  # the last time that this is written is the job's end
        running = running[has_more & ~is_over]
    return Run(start, end, hosts, clusters, killed)


def replay(start: FloatArray, activities: Activities, platform: Platform) -> FloatArray:
    """Return when jobs end that begin at given instants on the hosts of `clusters`, s.

    They share by fair bottleneck, and no limit ends them. Writes `activities`.
    """
    activities.limit[:] = np.inf
    end = np.zeros(len(start))
    waiting, running, now = np.argsort(start), np.arange(0), 0.0
    while len(waiting) or len(running):
        is_starting = start[waiting] <= now
        for job in waiting[is_starting]:
            begin(now, job, activities, platform)
        running = np.concatenate((running, waiting[is_starting]))
        waiting = waiting[~is_starting]
        until = start[waiting[0]] if len(waiting) else np.inf
        now = advance(now, until, running, activities, platform, True)
        end[running] = now
        running = running[activities.left[running] > 0.0]
    return end
