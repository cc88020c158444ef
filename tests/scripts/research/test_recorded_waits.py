"""Recorded waits beside simulated ones: what is counted at whole hours, by hand."""

import numpy as np
import pytest

import hpcgym
from hpcgym.core.workload import Workload
from research.recorded_waits import DOWN, HOUR, beside, down_times, hourly_held, hourly_queue, room


def jobs_of(*rows: tuple[float, float, float, int]) -> Workload:
    """Make jobs of submit time, wait, run time (h) and processors, on four processors."""
    submit, wait, run, processors = np.array(rows).T
    times = ((HOUR * one).astype(np.int64) for one in (submit, run, run))
    waits = (HOUR * wait).astype(np.int64)
    return Workload.from_arrays(
        *times, processors.astype(np.int64), wait_time=waits, machine_processors=4
    )


def test_queue_and_processors_are_counted_at_whole_hours() -> None:
    meant = hpcgym.simulate(jobs_of((0, 0, 2, 4), (0.5, 2.0, 1, 2), (0.5, 0.25, 1, 1)), "recorded")
    assert hourly_queue(meant, 4 * HOUR).tolist() == [0, 1, 1, 0, 0]
    assert hourly_held(meant).tolist() == [4]


def test_there_is_room_where_the_smallest_waiting_job_fits() -> None:
    runs, waits, last = (0, 0, 2, 3), (0, 3.5, 1, 1), (4, 0, 1, 1)
    assert room(hpcgym.simulate(jobs_of(runs, waits, last), "recorded")) == 1.0
    wide = (0, 3.5, 1, 2)
    assert room(hpcgym.simulate(jobs_of(runs, wide, last), "recorded")) == 0.5


def test_hours_that_are_nearly_empty_become_outages_that_delay_jobs() -> None:
    jobs = jobs_of((0, 0, 1, 4), (0, 9.5, 1, 4), (10.25, 0.25, 1, 4))
    (down,) = down_times(hpcgym.simulate(jobs, "recorded"))
    assert (down.from_, down.to, down.processors) == (HOUR, 9 * HOUR, 4)
    rows = {row.name: row for row in beside(jobs, ["FCFS, EASY"])}
    assert list(rows) == ["recorded", "FCFS, EASY", DOWN]
    assert rows["recorded"].likeness == pytest.approx(1.0)
    assert rows["FCFS, EASY"].mean == pytest.approx(1 / 3)
    assert rows[DOWN].mean == pytest.approx(9 / 3)
