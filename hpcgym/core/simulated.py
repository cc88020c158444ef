"""What a simulation shows: its clock, who waits and runs, and what has become of each job."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.core import constants as s
from hpcgym.core.compiler.struct import Struct
from hpcgym.core.dependencies import exchanged, own_columns
from hpcgym.core.kernels import entry_points
from hpcgym.core.kernels.types import Jobs, Sim
from hpcgym.core.nodes import Placement
from hpcgym.core.prepare import PreparedEpisode, state_for
from hpcgym.core.state import own_table, placement_of, sim_of
from hpcgym.core.workload import Workload


class Simulated:
    """A simulation as it can be read at any instant."""

    episode: PreparedEpisode

    def _open(self) -> None:
        """Allocate a state, and view state and jobs as kernels do."""
        self.state = state_for([self.episode])
        self._sim: Struct[Sim] = sim_of(self.state, 0)
        table = self.episode.table
        if self.episode.dependencies is not None:
            table = own_columns(table)
        self._table = own_table(table, self.state, 0)
        self._jobs: Struct[Jobs] = Struct(self._table)

    @property
    def workload(self) -> Workload:
        """Return the job table."""
        return self.episode.workload

    @property
    def now(self) -> int:
        """Return the clock, s."""
        return int(self.state.now[0])

    @property
    def free_processors(self) -> int:
        """Return the idle processors."""
        return int(self.state.free[0])

    @property
    def waiting(self) -> NDArray[np.int64]:
        """Return the waiting jobs' indices in base order, shape (n_waiting,)."""
        return self.rows(self._waiting)

    @property
    def _waiting(self) -> NDArray[np.int64]:
        """Return the same jobs as kernels number them."""
        listed = np.empty(int(self.state.n_waiting[0]), dtype=np.int64)
        entry_points.list_waiting(self._sim.address, listed)
        return listed

    @property
    def running(self) -> NDArray[np.int64]:
        """Return the running jobs' indices by estimated end, shape (n_running,)."""
        n = self.state.n_releases[0]
        return self.rows(self.state.release_job[0, :n][::-1].copy())

    def rows(self, jobs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return positions in the job table of jobs as kernels number them."""
        if self.episode.dependencies is None:
            return jobs
        rows: NDArray[np.int64] = self.state.row_of[0, jobs]
        return rows

    def by_row(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return what kernels hold of each job in the order of the job table, shape (n_jobs,)."""
        if self.episode.dependencies is None:
            return values
        in_order: NDArray[Any] = values[self.state.job_of[0, : len(values)]]
        return in_order

    @property
    def table(self) -> Jobs:
        """Return the jobs as this simulation has them: with estimates as predicted and corrected.

        Arrays have shape (n_jobs,). `run_time` is the executed one, s.
        """
        if self.episode.dependencies is None:
            return self._table
        columns: dict[str, Any] = {
            key: self.by_row(getattr(self._table, key)) for key in exchanged(self._table)
        }
        return self._table._replace(**columns)

    @property
    def eligible_time(self) -> NDArray[np.int64]:
        """Return from when on each job could be scheduled, shape (n_jobs,), s; `NEVER` = not known.

        Waits count from there. Of a cancelled job it is when that was cancelled. It is the
        submission where jobs neither wait for others nor are held.
        """
        if self.episode.dependencies is None:
            return self.workload.submit_time
        comes_at: NDArray[np.int64] = self.state.comes_at[0, : len(self.workload)].copy()
        return comes_at

    @property
    def predicted_time(self) -> NDArray[np.int64]:
        """Return what each job was predicted to run at its submission, shape (n_jobs,), s.

        Later corrections do not count. Of a job not yet submitted it is the estimate known so far.
        """
        return self.by_row(self._table.feature[:, s.FEATURE_ESTIMATE].astype(np.int64))

    @property
    def start_time(self) -> NDArray[np.int64]:
        """Return the start of each job, shape (n_jobs,), s, -1 = not started, lost or cancelled."""
        started: NDArray[np.int64] = self.state.start_time[0, : len(self.workload)]
        starts = self.by_row(np.maximum(started, -1))
        starts[self.without_run] = -1
        return starts

    @property
    def without_run(self) -> NDArray[np.bool_]:
        """Tell which jobs are done without a useful run, lost or cancelled, shape (n_jobs,)."""
        return self._has_flag(s.FLAG_NO_RUN)

    @property
    def cancelled(self) -> NDArray[np.bool_]:
        """Tell which jobs were cancelled, shape (n_jobs,); others in `without_run` are lost."""
        cancelled = np.zeros(len(self.workload), dtype=np.bool_)
        if self.episode.dependencies is not None:
            cancelled[self.state.cancelled[0, : self.state.n_cancelled[0]]] = True
        return cancelled

    @property
    def backfilled(self) -> NDArray[np.bool_]:
        """Return which jobs started ahead of one that keeps waiting, shape (n_jobs,)."""
        return self._has_flag(s.FLAG_BACKFILLED)

    @property
    def placement(self) -> Placement | None:
        """Return on which nodes each job was placed, None where processors are counted."""
        jobs = self.by_row(np.arange(len(self.workload)))
        return placement_of(self.episode.table, self.state, 0, self.start_time, jobs)

    @property
    def thresholded(self) -> NDArray[np.bool_]:
        """Return which jobs were beyond the threshold when they started, shape (n_jobs,)."""
        return self._has_flag(s.FLAG_THRESHOLDED)

    def counts(self) -> dict[str, float]:
        """Count what the simulation has done so far.

        Returns:
            `events` (submissions, completions and ends of delays), `passes`, and the queue length
            at passes: `mean_waiting`, `max_waiting`.
        """
        sim = self._sim.fields
        passes = int(sim.n_passes)
        return {
            "events": int(sim.n_events),
            "passes": passes,
            "mean_waiting": float(sim.sum_waiting) / max(passes, 1),
            "max_waiting": int(sim.most_waiting),
        }

    def _has_flag(self, bit: int) -> NDArray[np.bool_]:
        """Tell which jobs started with a bit of `Sim.flag` set."""
        flag: NDArray[np.bool_] = (self.state.flag[0, : len(self.workload)] & bit) != 0
        return self.by_row(flag)
