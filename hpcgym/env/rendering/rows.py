"""Rows in which the nodes of a machine are drawn, and the cpus of a row on which each job is drawn.

Rows follow groups, then node ids. A row is one node, or several where one would be too thin to see.
Its height is its share of the machine's cpus. The simulator knows the nodes of each job, but not
which cpus of a node it has; these are chosen here, and a job keeps them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hpcgym.env.rendering.frame import Frame, HeldNodes, IntArray, Placement, StartedJobs
from hpcgym.machine import Machine
from hpcgym.schedule.allocation import Interval

MOST_ROWS = 200  # rows of a picture at most, so that each has two pixels or more


class Rows(NamedTuple):
    """The rows of a machine. Cpus count from the bottom of the picture, its last row, upwards."""

    row: IntArray  # row of each node, from the top, shape (n_nodes,)
    first_cpu: IntArray  # where the cpus of each node begin, shape (n_nodes,)
    cpus: IntArray  # cpus of each row, shape (n_rows,)
    row_first_cpu: IntArray  # where the cpus of each row begin, shape (n_rows,)

    @property
    def nodes_in_row(self) -> IntArray:
        """Number of nodes in each row, shape (n_rows,)."""
        return np.bincount(self.row)


def rows_of(machine: Machine, most_rows: int = MOST_ROWS) -> Rows:
    """Return rows of nodes, none smaller than one of `most_rows` equal shares of the cpus.

    A node that is smaller joins the next of its group. So does what is left of a group, which goes
    to the row before, or to the next group if its own is that small.
    """
    order = np.argsort(machine.node_group, kind="stable")
    row = np.empty(machine.n_nodes, dtype=np.int64)
    row[order] = _cut(machine.node_cpus[order], machine.node_group[order], most_rows)
    cpus = np.bincount(row, weights=machine.node_cpus).astype(np.int64)
    first_cpu = np.empty(machine.n_nodes, dtype=np.int64)
    first_cpu[order] = machine.cpus - np.cumsum(machine.node_cpus[order])
    return Rows(row, first_cpu, cpus, machine.cpus - np.cumsum(cpus))


def _cut(cpus: IntArray, group: IntArray, most_rows: int) -> IntArray:
    """Return the row of each node, given nodes in the order of the picture."""
    total, n = int(cpus.sum()), len(cpus)
    rows = np.empty(n, dtype=np.int64)
    row, filled, first = 0, 0, 0
    for position, n_cpus in enumerate(cpus.tolist()):
        rows[position] = row
        filled += n_cpus
        is_last = position + 1 == n or group[position + 1] != group[position]
        if filled * most_rows >= total:
            row, filled, first = row + 1, 0, position + 1
        elif first > 0 and (position + 1 == n or (is_last and group[first - 1] == group[position])):
            rows[first : position + 1] = row - 1
            filled, first = 0, position + 1
    return rows


class RowPlacement:
    """The cpus of a machine of nodes on which each job is drawn, inside the rows of its nodes.

    The frames of one episode in order keep every job where it was first drawn; the last frame
    alone leads to the same placement.
    """

    def __init__(self, machine: Machine) -> None:
        self.rows = rows_of(machine)
        self.intervals: dict[int, list[Interval]] = {}
        self._of_row = [Placement(cpus) for cpus in self.rows.cpus.tolist()]
        self._ended = np.empty(0, dtype=np.int64)

    def update(self, started: StartedJobs, held: HeldNodes) -> None:
        """Place new jobs and free the cpus of ended ones, given every job started by now."""
        is_open = ~np.isin(started.job, self._ended)
        self._ended = started.job[~started.running]
        columns = _taken(started, np.flatnonzero(is_open))
        row, at, cpus = self._cpus_in_rows(columns.job, held)
        for part in np.split(np.arange(len(row)), np.flatnonzero(np.diff(row)) + 1):
            if len(part):
                jobs_of_row = _taken(columns, at[part])._replace(processors=cpus[part])
                self._update_row(int(row[part[0]]), jobs_of_row)

    def _cpus_in_rows(self, job: IntArray, held: HeldNodes) -> tuple[IntArray, IntArray, IntArray]:
        """Return rows, places in `job` and cpus there, by rows; one of each for a job in a row."""
        order = np.argsort(job)
        is_asked = np.isin(held.job, job)
        at = order[np.searchsorted(job[order], held.job[is_asked])]
        pair = self.rows.row[held.node[is_asked]] * max(len(job), 1) + at
        pairs, which = np.unique(pair, return_inverse=True)
        cpus = np.bincount(which, weights=held.cpus[is_asked], minlength=len(pairs))
        row, at = np.divmod(pairs, max(len(job), 1))
        return row, at, cpus.astype(np.int64)

    def _update_row(self, row: int, started: StartedJobs) -> None:
        """Place the jobs of one row; write `intervals`."""
        placement, first = self._of_row[row], int(self.rows.row_first_cpu[row])
        new = [job for job in started.job.tolist() if job not in placement.intervals]
        placement.update(started)
        for job in new:
            intervals = [
                (first + low, first + high) for low, high in placement.intervals.get(job, [])
            ]
            self.intervals.setdefault(job, []).extend(intervals)


def _taken(started: StartedJobs, places: IntArray) -> StartedJobs:
    return StartedJobs._make(column[places] for column in started)


def placed_in_rows(frame: Frame, placement: RowPlacement | None) -> RowPlacement:
    """Return a placement of the frame's jobs: that of earlier frames, updated, or a new one."""
    assert frame.nodes is not None
    placement = RowPlacement(frame.nodes.machine) if placement is None else placement
    placement.update(frame.started, frame.nodes.held)
    return placement
