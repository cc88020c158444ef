"""How many processors a schedule keeps busy in stretches of time, and what notebooks show of it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.base.notebook import card, steps_picture
from hpcgym.base.text_table import duration
from hpcgym.core.node_metrics import mean_between

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

N_STRETCHES = 200  # of the picture in notebooks


def shown_in_notebooks(schedule: Any) -> str:
    """Return HTML with some metrics, and the processors held over time."""
    made, measured = schedule.settings, schedule.metrics()
    title = schedule.workload.name + (f", {made.policy} under {made.backfill}" if made else "")
    rows = {
        "jobs": f"{len(schedule):,}" + ("" if schedule.complete else ", not all started"),
        "mean wait": duration(measured["mean_wait_time"]),
        "longest wait": duration(measured["max_wait_time"]),
        "mean bounded slowdown": f"{measured['mean_bsld']:.2f}",
        "utilisation": f"{measured['utilisation']:.1%}",
    }
    begin, end = int(schedule.workload.submit_time[0]), int(schedule.end_time.max())
    edges = np.linspace(begin, max(end, begin + 1), N_STRETCHES + 1)
    label = "share of the processors held, over time"
    return card(title, rows, steps_picture(share_held(schedule, edges).tolist(), label))


def share_held(schedule: Any, edges: FloatArray) -> FloatArray:
    """Return the mean share of the processors that jobs hold between edges, s.

    Jobs that take turns hold as much less as they are suspended.
    """
    there = schedule.end_time - schedule.start_time
    held = schedule.workload.processors * schedule.run_time / np.maximum(there, 1)
    level = mean_level(schedule.start_time, schedule.end_time, held, edges)
    return level / float(schedule.workload.machine_processors)


def mean_waiting(schedule: Any, edges: FloatArray) -> FloatArray:
    """Return how many jobs wait in the mean between edges, s, shape (n_edges - 1,)."""
    submitted, started = schedule.jobs.submit_time, schedule.start_time
    return mean_level(submitted, started, np.ones(len(schedule)), edges)


def mean_level(
    first: IntArray, last: IntArray, height: FloatArray, edges: FloatArray
) -> FloatArray:
    """Average between edges the sum of heights, each from a first to a last instant, s."""
    time = np.concatenate([first, last])
    order = np.argsort(time, kind="stable")
    level = np.cumsum(np.concatenate([height, -height])[order])
    return np.maximum(mean_between(time[order], level, edges), 0.0)
