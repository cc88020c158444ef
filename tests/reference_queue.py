"""A queue that goes on from running jobs, in plain Python: EASY, and reservations for all.

Written from sections 1 and 4 of the specification; shares no code with the package.
"""

from typing import NamedTuple


class Runs(NamedTuple):
    """A running job: its cpus, how long it goes on, and how long its limit lets it."""

    cpus: int
    left: int
    limit: int


class Waits(NamedTuple):
    """A waiting job: its cpus, run time, limit, and when it may begin, from now on."""

    cpus: int
    run: int
    limit: int
    begin: int = 0


def starts_of(machine, running, ranked, mode):
    """Return when each of the ranked jobs starts, from now on."""
    started = [None] * len(ranked)
    active = [(job.left, job.limit, job.cpus) for job in running]
    now = 0
    while None in started:
        active = [job for job in active if job[0] > now]
        queue = [k for k, job in enumerate(ranked) if started[k] is None and job.begin <= now]
        for k in PASSES[mode](machine, now, active, queue, ranked):
            started[k] = now
            active.append((now + ranked[k].run, now + ranked[k].limit, ranked[k].cpus))
        instants = [end for end, _, _ in active]
        instants += [job.begin for k, job in enumerate(ranked) if started[k] is None]
        now = min((instant for instant in instants if instant > now), default=now)
    return started


def easy(machine, now, active, queue, ranked):
    """Yield the jobs that an EASY pass starts."""
    free = machine - sum(cpus for _, _, cpus in active)
    releases = [(limit, cpus) for _, limit, cpus in active]
    rest = list(queue)
    while rest and ranked[rest[0]].cpus <= free:
        k = rest.pop(0)
        free -= ranked[k].cpus
        releases.append((now + ranked[k].limit, ranked[k].cpus))
        yield k
    if not rest:
        return
    head = ranked[rest[0]].cpus
    shadow = min(
        instant
        for instant, _ in releases
        if free + sum(cpus for end, cpus in releases if end <= instant) >= head
    )
    extra = free + sum(cpus for end, cpus in releases if end <= shadow) - head
    for k in rest[1:]:
        job = ranked[k]
        if job.cpus > free:
            continue
        if now + job.limit <= shadow:
            free -= job.cpus
            yield k
        elif job.cpus <= extra:
            free, extra = free - job.cpus, extra - job.cpus
            yield k


def conservative(machine, now, active, queue, ranked):
    """Yield the jobs whose reservation, made in order, is now."""
    taken = [(now, limit, cpus) for _, limit, cpus in active]
    for k in queue:
        job = ranked[k]
        for instant in sorted({now, *(end for _, end, _ in taken)}):
            inside = {instant, *(begin for begin, _, _ in taken if begin > instant)}
            inside = {point for point in inside if point < instant + job.limit}
            fits = all(
                sum(cpus for begin, end, cpus in taken if begin <= point < end) + job.cpus
                <= machine
                for point in inside
            )
            if instant >= now and fits:
                taken.append((instant, instant + job.limit, job.cpus))
                if instant == now:
                    yield k
                break


PASSES = {"easy": easy, "conservative": conservative}
