"""A snapshot of a running episode: the frame that a person sees."""

from __future__ import annotations

import numpy as np

from hpcgym.core.kernels import entry_points
from hpcgym.core.kernels.types import Sim
from hpcgym.core.state import State
from hpcgym.core.struct import Struct
from hpcgym.env.episode import EnvEpisode
from hpcgym.env.rendering.frame import Frame, Reservation, StartedJobs, WaitingJobs


def take_snapshot(
    title: str, episode: EnvEpisode, state: State, env: int, sim: Struct[Sim]
) -> Frame:
    """Return the frame of row `env` of a state, which is `sim` to the kernels.

    It shows no more of a running job than the scheduler knows: its end is the estimated one. The
    head is the first job of the base order that does not fit now. Writes `shadow` and `extra`,
    which each pass computes anew.
    """
    made, table = episode.schedule(state, env), episode.table
    now, workload = int(sim.fields.now), made.workload
    started = np.flatnonzero(made.start_time >= 0)
    is_running = np.zeros(len(workload), dtype=bool)
    is_running[state.release_job[env, : sim.fields.n_releases]] = True
    estimated_end = np.maximum(made.start_time + table.estimate, now)
    end = np.where(is_running, estimated_end, made.end_time)
    waiting = np.empty(int(sim.fields.n_waiting), dtype=np.int64)
    entry_points.list_waiting(sim.address, waiting)
    misfits = waiting[workload.processors[waiting] > sim.fields.free]
    reservation = None
    if len(misfits) > 0:
        head = int(misfits[0])
        entry_points.reserve(episode.jobs.address, sim.address, head)
        reservation = Reservation(
            job=head,
            job_id=int(workload.job_id[head]),
            shadow_time=int(sim.fields.shadow),
            extra_processors=int(sim.fields.extra),
            estimate=int(table.estimate[head]),
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
            waiting < sim.fields.next_overdue,
        ),
        reservation=reservation,
    )
