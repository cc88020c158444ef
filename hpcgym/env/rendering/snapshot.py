"""From the state of an episode to the frame that a person sees."""

from __future__ import annotations

import numpy as np

from hpcgym.core import state as s
from hpcgym.core.kernels import entry_points
from hpcgym.core.kernels.types import Jobs, Sim
from hpcgym.core.state import JobTable, State
from hpcgym.core.struct import Struct
from hpcgym.env.rendering.frame import Frame, Reservation, StartedJobs, WaitingJobs
from hpcgym.schedule import Schedule


def frame_of(
    title: str,
    made: Schedule,
    table: JobTable,
    state: State,
    env: int,
    jobs: Struct[Jobs],
    row: Struct[Sim],
) -> Frame:
    """Gather what a picture shows of an episode; ends of running jobs by estimate.

    The head shown is the first job of the base order that does not fit now.

    Args:
        title: Scenario and episode.
        made: The schedule so far.
        table: The episode's jobs.
        state: The stack.
        env: Row of the stack.
        jobs: The same jobs as kernels see them.
        row: The same row as kernels see it.

    Returns:
        The frame.

    Writes:
        SHADOW and EXTRA, which the pass works out anew.

    Source:
        House rule: a person sees no more of a running job than the scheduler does.
    """
    counter = state.counter[env]
    now, workload = int(counter[s.NOW]), made.workload
    started = np.flatnonzero(made.start_time >= 0)
    is_running = np.zeros(len(workload), dtype=bool)
    is_running[state.release_job[env, : counter[s.N_RELEASES]]] = True
    estimated_end = np.maximum(made.start_time + table.estimate, now)
    end = np.where(is_running, estimated_end, made.end_time)
    waiting = np.empty(int(counter[s.N_WAITING]), dtype=np.int64)
    entry_points.list_waiting(row.address, waiting)
    too_wide = waiting[workload.processors[waiting] > counter[s.FREE]]
    reservation = None
    if len(too_wide) > 0:
        head = int(too_wide[0])
        entry_points.reserve(jobs.address, row.address, head)
        reservation = Reservation(
            job=head,
            job_id=int(workload.job_id[head]),
            shadow_time=int(counter[s.SHADOW]),
            extra_processors=int(counter[s.EXTRA]),
            requested_time=int(table.estimate[head]),
            processors=int(workload.processors[head]),
        )
    return Frame(
        title=title,
        machine_processors=workload.machine_processors,
        now=now,
        started=StartedJobs(
            started,
            made.start_time[started],
            end[started],
            workload.processors[started],
            is_running[started],
        ),
        waiting=WaitingJobs(
            waiting,
            workload.job_id[waiting],
            now - workload.submit_time[waiting],
            table.estimate[waiting],
            workload.processors[waiting],
            waiting < counter[s.NEXT_OVERDUE],
        ),
        reservation=reservation,
    )
