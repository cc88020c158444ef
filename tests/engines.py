"""The two schedulers side by side: the plain-Python reference and the package."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import reference
import reference_multi_queue
import reference_profile
from reference import Completed, Job, Start

import hpcgym
from hpcgym.core.history import RING_JOBS
from hpcgym.core.workload import Workload


def workload_of(jobs: Sequence[Sequence[int]], processors: int) -> Workload:
    """Return rows of `reference.Job` as the package holds them."""
    table = [Job(*row) for row in jobs]
    submit_time, run_time, requested_time, sizes, user = zip(*table, strict=True)
    return Workload.from_arrays(
        submit_time,
        run_time,
        requested_time,
        sizes,
        user=user,
        machine_processors=processors,
        name="drawn",
    )


def jobs_of(workload: Workload) -> list[Job]:
    """Return a workload as rows of `reference.Job`."""
    columns = (
        workload.submit_time,
        workload.run_time,
        workload.requested_time,
        workload.processors,
        workload.user,
    )
    return [Job(*row) for row in zip(*(c.tolist() for c in columns), strict=True)]


KINDS: tuple[type[reference.Machine], ...] = (
    reference.Machine,
    reference_profile.Planner,
    reference_multi_queue.MultiQueue,
)
"""The machines of the judges; each knows some backfilling modes."""


def history_of_users(workload: Workload) -> Mapping[int, list[Completed]]:
    """Return what a workload knows of each user at time 0, oldest completed job first."""
    history = workload.history
    known = {}
    for user, row in dict(zip(workload.user.tolist(), workload.user_index, strict=True)).items():
        completed = int(history.completed[row])
        cells = [k % RING_JOBS for k in range(max(0, completed - RING_JOBS), completed)]
        known[user] = [
            (int(history.run_time[row, c]), int(history.requested_time[row, c])) for c in cells
        ]
    return known


def by_reference(workload: Workload, **settings: Any) -> list[Start]:
    """Schedule with `tests/reference.py`, or the file beside it that knows the backfilling mode."""
    known = history_of_users(workload)
    processors = workload.machine_processors
    name = str(settings.get("backfill", "easy")).partition(":")[0]
    settings["kind"] = next(kind for kind in KINDS if name in kind.MODES)
    return reference.simulate(jobs_of(workload), processors, history=known, **settings)


def by_package(workload: Workload, **settings: Any) -> list[Start]:
    """Schedule with `hpcgym.simulate`."""
    if not isinstance(settings.get("estimates", ""), str):
        settings["estimates"] = np.asarray(settings["estimates"])
    schedule = hpcgym.simulate(workload, **settings)
    columns = (schedule.start_time, schedule.backfilled, schedule.thresholded)
    return [Start(*row) for row in zip(*(c.tolist() for c in columns), strict=True)]


ENGINES: dict[str, Callable[..., list[Start]]] = {
    "reference": by_reference,
    "hpcgym": by_package,
}


def first_difference(workload: Workload, **settings: Any) -> str:
    """Compare every start and both flags of every job; say nothing where they are equal."""
    expected, got = by_reference(workload, **settings), by_package(workload, **settings)
    differing = [j for j, pair in enumerate(zip(expected, got, strict=True)) if pair[0] != pair[1]]
    if not differing:
        return ""
    j = min(differing, key=lambda k: (min(expected[k].start_time, got[k].start_time), k))
    job = jobs_of(workload)[j]
    return (
        f"{len(differing)} of {len(expected)} jobs differ; the first, in row {j}, {job}: "
        f"reference {expected[j]}, hpcgym {got[j]}"
    )
