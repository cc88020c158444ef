"""The job before a job: its position among others, its id in files, and what cannot be.

A column that refers to jobs holds positions, so whatever moves jobs renumbers it. A job whose
predecessor is left out waits for nobody.

Source: Specification, section 15, "Dependencies and holds".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.base.errors import WorkloadError

IntArray = NDArray[np.int64]

SHOWN_JOBS = 5  # jobs of a cycle that a message names


def renumbered(after: IntArray, position: IntArray) -> IntArray:
    """Return predecessors by new positions; `position` has that of each job, -1 = left out."""
    if not len(position):
        return after
    return np.where(after >= 0, position[after], -1)


def held_as_long(eligible: IntArray, moved: IntArray) -> IntArray:
    """Return the ends of holds, s, of which each moves as the job's submission does."""
    return np.where(eligible >= 0, eligible + moved, -1)


def ids_before(after: IntArray, job_id: IntArray) -> IntArray:
    """Return the id of each job's predecessor, -1 = none."""
    return np.where(after >= 0, job_id[after], -1)


def find_ids(wanted: IntArray, job_id: IntArray) -> tuple[IntArray, IntArray]:
    """Return the first position of each wanted id, -1 = not there, and how many jobs have it."""
    by_id = np.argsort(job_id, kind="stable")
    known = job_id[by_id]
    first = np.searchsorted(known, wanted)
    n_alike = np.searchsorted(known, wanted, side="right") - first
    there = np.minimum(first, len(known) - 1)
    return np.where(n_alike > 0, by_id[there], -1), n_alike


def why_unknown(n_alike: int) -> str:
    """Say what is wrong with an id that names no job, or several."""
    return "which is not there" if n_alike == 0 else f"an id that {n_alike} jobs have"


def positions_of(name: str, key: str, wanted: IntArray, ids: IntArray) -> IntArray:
    """Return the position of the job whose id a column holds for each job, -1 = none.

    Raises:
        WorkloadError: No job has the id, or several have.
    """
    positions, n_alike = find_ids(wanted, ids)
    bad = np.flatnonzero((wanted != -1) & (n_alike != 1))
    if len(bad):
        row = int(bad[0])
        raise WorkloadError(
            f"{name}: job {ids[row]} (row {row}) is {key} job {wanted[row]}, "
            f"{why_unknown(int(n_alike[row]))} ({len(bad)} such jobs)"
        )
    return np.where(wanted == -1, -1, positions)


def find_cycle(after: IntArray) -> IntArray:
    """Return positions of jobs that wait for each other in a circle, in that order; empty = none.

    It takes O(n_jobs log n_jobs).
    """
    # Who is reached by as many steps as there are jobs lies on a circle; steps are doubled.
    reached = np.append(after, -1)  # the place behind all others leads nowhere
    steps = 1
    while steps < len(reached):
        reached = reached[reached]
        steps *= 2
    on_circle = reached[reached >= 0]
    if not len(on_circle):
        return on_circle
    circle = [int(on_circle.min())]
    while int(after[circle[-1]]) != circle[0]:
        circle.append(int(after[circle[-1]]))
    lowest = circle.index(min(circle))
    return np.array(circle[lowest:] + circle[:lowest])


def text_of_cycle(circle: IntArray, job_id: IntArray) -> str:
    """Say who waits for whom in a circle."""
    if len(circle) == 1:
        return f"job {job_id[circle[0]]} is after itself"
    shown = ", ".join(str(job_id[job]) for job in circle[:SHOWN_JOBS])
    more = f" and {len(circle) - SHOWN_JOBS} more" if len(circle) > SHOWN_JOBS else ""
    return f"jobs {shown}{more} are each after the next, the last after the first"


def refuse_impossible(name: str, columns: Mapping[str, Any]) -> None:
    """Refuse holds that end before the submission, and jobs that wait for each other.

    `columns` are those of a job table by name, in the order in which they were given.

    Raises:
        WorkloadError: There are such jobs.
    """
    job_id = columns["job_id"]
    if "eligible" in columns:
        eligible, submit = columns["eligible"], columns["submit_time"]
        bad = np.flatnonzero((eligible != -1) & (eligible < submit))
        if len(bad):
            row = int(bad[0])
            raise WorkloadError(
                f"{name}: eligible of job {job_id[row]} (row {row}) is {eligible[row]}; allowed: "
                f"from its submission, {submit[row]}, on, or -1 ({len(bad)} such jobs)"
            )
    if "after" in columns and len(circle := find_cycle(columns["after"])):
        raise WorkloadError(f"{name}: row {circle[0]}: {text_of_cycle(circle, job_id)}")
