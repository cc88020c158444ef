"""A log as some studies take it: nothing is dropped, and what is missing is made up.

Source: Zhang, Dai, He, Bao and Xie 2020 (RLScheduler), its code; rules of reruns, "RLScheduler".
"""

from dataclasses import replace

import numpy as np

from hpcgym.trace.swf import SwfLog

NEVER_RAN_S = 10  # run time of jobs whose log has none, s


def as_found(log: SwfLog) -> SwfLog:
    """Return a log whose records need no cleaning; `hpcgym.trace.clean` then drops none of them.

    A job has the larger of its allocated and requested processors. One without a request asks for
    its run time, and one without a run time, most often cancelled before it started, runs for 10 s.
    Jobs wider than the machine, and those without any processor, can still not be run.

    Example:
        >>> from hpcgym.trace import clean, find_trace, read_swf
        >>> clean(as_found(read_swf(find_trace("tiny"))))[0]
        Workload('tiny', 8 jobs, 4 processors)
    """
    records = log.records.copy()
    both = ["requested_processors", "allocated_processors"]
    records[both[0]] = records[both[1]] = records[both].max(axis="columns")
    records["run_time"] = records["run_time"].mask(records["run_time"] < 0, NEVER_RAN_S)
    missing = records["requested_time"] < 0
    request = np.where(missing, records["run_time"], records["requested_time"])
    records["requested_time"] = np.maximum(request, 1)
    return replace(log, records=records)
