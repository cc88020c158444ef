"""Passes that a backfilling mode in Python makes: show it the instant, check its answer, start."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.base.errors import PolicyError
from hpcgym.core import constants as s
from hpcgym.core.backfill import as_backfill
from hpcgym.core.compiler.struct import Struct
from hpcgym.core.kernels import entry_points
from hpcgym.core.kernels.types import Jobs, Sim
from hpcgym.core.own_backfill import OwnBackfill, OwnPass, RunningJob, WaitingJob
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.workload import Workload


class OwnPasses:
    """The passes of one simulation under a mode in Python; it is copied with the simulation."""

    def __init__(self, mode: OwnBackfill) -> None:
        """Take a copy of the mode, which this simulation may change."""
        self.mode = deepcopy(mode)

    def make(self, workload: Workload, jobs: Struct[Jobs], sim: Struct[Sim]) -> None:
        """Make the pass of this instant.

        Raises:
            PolicyError: The mode starts what it cannot, or lets jobs wait for ever.
        """
        shown = _shown(workload, jobs, sim)
        started = self._checked(shown, self.mode.start(shown))
        is_ahead = False
        for job in shown.queue:
            if job.row in started:
                entry_points.start_waiting(jobs.address, sim.address, job.row, is_ahead)
            else:
                is_ahead = True
        if not started and not shown.running and int(sim.fields.next_job) == len(workload):
            raise PolicyError(
                f"backfill '{self.mode}' starts none of {len(shown.queue)} waiting jobs on an idle "
                f"machine at {shown.now} s, and nothing is to come; the first in order is job "
                f"{shown.queue[0].job_id}"
            )

    def _checked(self, shown: OwnPass, answer: object) -> set[int]:
        """Return the rows of the jobs that a mode starts."""
        if not isinstance(answer, Iterable):
            raise PolicyError(f"backfill '{self.mode}' must return jobs, got {answer!r}")
        waiting = {job.row: job for job in shown.queue}
        rows: set[int] = set()
        free = shown.free_processors
        for job in answer:
            is_job = isinstance(job, WaitingJob)
            mine = waiting.pop(job.row, None) if is_job else None
            if mine is None:
                what = f"job {job.job_id}" if is_job else repr(job)
                raise PolicyError(
                    f"backfill '{self.mode}' must return jobs of the queue, each once; at "
                    f"{shown.now} s it returned {what}"
                )
            if mine.processors > free:
                raise PolicyError(
                    f"backfill '{self.mode}' starts job {mine.job_id} at {shown.now} s on "
                    f"{mine.processors} processors, and {free} of {shown.machine_processors} are "
                    "left"
                )
            rows.add(mine.row)
            free -= mine.processors
        return rows


def own_passes(settings: SchedulerSettings) -> OwnPasses | None:
    """Return the passes of a new simulation, None where the mode's are compiled."""
    mode = as_backfill(settings.backfill)
    return OwnPasses(mode) if isinstance(mode, OwnBackfill) else None


def _shown(workload: Workload, jobs: Struct[Jobs], sim: Struct[Sim]) -> OwnPass:
    """Return what a mode sees at this instant."""
    table, fields = jobs.fields, sim.fields
    queue = _in_order(jobs, sim)
    n = int(fields.n_releases)
    running = fields.release_job[:n][::-1]
    waiting_columns = (
        *(queue, workload.job_id[queue], workload.user[queue], table.submit_time[queue]),
        *(table.processors[queue], table.estimate[queue], queue < int(fields.next_overdue)),
    )
    running_columns = (
        *(running, workload.job_id[running], workload.user[running], table.processors[running]),
        *(fields.start_time[running], fields.release_time[:n][::-1]),
    )
    return OwnPass(
        now=int(fields.now),
        machine_processors=workload.machine_processors,
        free_processors=int(fields.free),
        queue=tuple(map(WaitingJob._make, _rows(waiting_columns))),
        running=tuple(map(RunningJob._make, _rows(running_columns))),
    )


def _rows(columns: tuple[NDArray[Any], ...]) -> Iterable[tuple[Any, ...]]:
    """Go through the rows of a table given by its columns, with Python's numbers."""
    return zip(*(column.tolist() for column in columns), strict=True)


def _in_order(jobs: Struct[Jobs], sim: Struct[Sim]) -> NDArray[np.int64]:
    """Return the waiting jobs in the order of this pass; write its keys, where it is not kept."""
    fields = sim.fields
    if int(fields.ordered) == 0 and int(fields.order_rule) != s.BY_BASE:
        weight = fields.weight[s.PASS_ORDER].copy()
        entry_points.order_by_rule(jobs.address, sim.address, int(fields.order_rule), weight)
    listed = np.empty(int(fields.n_waiting), dtype=np.int64)
    entry_points.list_waiting(sim.address, listed)
    if int(fields.ordered) == 0:
        return listed
    entry = s.FIRST_ENTRY - fields.start_time[listed]
    return listed[np.lexsort((listed, fields.key[s.PASS_ORDER, entry]))]
