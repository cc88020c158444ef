"""A snapshot of a running episode: the frame that a person sees."""

from __future__ import annotations

import numpy as np

from hpcgym.core import constants as s
from hpcgym.core.compiler.struct import Struct
from hpcgym.core.kernels import entry_points
from hpcgym.core.kernels.types import Jobs, Sim
from hpcgym.core.state import State
from hpcgym.core.workload import Workload
from hpcgym.env.episode import EnvEpisode
from hpcgym.env.rendering import frame
from hpcgym.schedule.schedule import Schedule


def take_snapshot(
    title: str, episode: EnvEpisode, jobs: Struct[Jobs], state: State, env: int, sim: Struct[Sim]
) -> frame.Frame:
    """Return the frame of row `env` of a state; `jobs` and `sim` are what kernels take there.

    It shows no more of a running job than the scheduler knows: its end is the estimated one. The
    head is the first job of the base order that does not fit now. Writes `shadow` and `extra`,
    or the plan on nodes, which each pass computes anew.
    """
    made, table = episode.schedule(state, env), episode.table
    now, workload = int(sim.fields.now), made.workload
    started = np.flatnonzero(made.start_time >= 0)
    is_running = np.zeros(len(workload), dtype=bool)
    running = state.release_job[env, : sim.fields.n_releases]
    is_running[episode.rows(state, env, running)] = True
    estimated_end = np.maximum(made.start_time + table.estimate, now)
    end = np.where(is_running, estimated_end, made.end_time)
    waiting = np.empty(int(sim.fields.n_waiting), dtype=np.int64)
    entry_points.list_waiting(sim.address, waiting)
    nodes, reservation = None, None
    row = episode.rows(state, env, waiting)
    if workload.machine is None:
        reservation = _reservation(episode, jobs, sim, waiting, row)
    else:
        assert workload.partition is not None
        tier_rank = table.limit[workload.partition[row], s.LIMIT_TIER]
        by_tier = np.argsort(tier_rank, kind="stable")
        waiting, row = waiting[by_tier], row[by_tier]
        heads = _heads(episode, jobs, state, env, sim, waiting, row)
        nodes = _nodes_frame(workload, state, env, heads, made, row)
    return frame.Frame(
        title=title,
        machine_processors=workload.machine_processors,
        now=now,
        started=frame.StartedJobs(
            started,
            made.start_time[started],
            end[started],
            workload.processors[started],
            is_running[started],
        ),
        waiting=frame.WaitingJobs(
            row,
            workload.job_id[row],
            now - made.jobs.submit_time[row],
            table.estimate[row],
            workload.processors[row],
            waiting < sim.fields.next_overdue,
        ),
        reservation=reservation,
        nodes=nodes,
    )


def _reservation(
    episode: EnvEpisode,
    jobs: Struct[Jobs],
    sim: Struct[Sim],
    waiting: frame.IntArray,
    row: frame.IntArray,
) -> frame.Reservation | None:
    """Return the reservation of the first waiting job that does not fit.

    The jobs that wait are given as kernels number them, and by their rows in the job table.
    """
    workload, address = episode.workload, jobs.address
    fits = (entry_points.fits_now(address, sim.address, int(job)) for job in waiting)
    position = next((position for position, does in enumerate(fits) if not does), -1)
    if position < 0:
        return None
    head = int(row[position])
    entry_points.reserve(address, sim.address, int(waiting[position]))
    return frame.Reservation(
        job=head,
        job_id=int(workload.job_id[head]),
        shadow_time=int(sim.fields.shadow),
        extra_processors=int(sim.fields.extra),
        estimate=int(episode.table.estimate[head]),
        processors=int(workload.processors[head]),
    )


def _nodes_frame(
    workload: Workload,
    state: State,
    env: int,
    heads: tuple[frame.Head, ...],
    made: Schedule,
    row: frame.IntArray,
) -> frame.NodesFrame:
    """Return what is shown of the nodes; the rows of the waiting jobs are given in queue order."""
    machine, partition, chunks = workload.machine, workload.partition, workload.chunks
    assert machine is not None and partition is not None and chunks is not None
    return frame.NodesFrame(
        machine=machine,
        free=state.free_on[env, : machine.n_nodes].copy(),
        held=_held_nodes(made),
        heads=heads,
        partition=partition[row],
        chunks=chunks[row],
    )


def _held_nodes(made: Schedule) -> frame.HeldNodes:
    """Return the nodes of the started jobs, with the cpus that each job has there."""
    workload, placement = made.workload, made.placement
    machine, chunks, exclusive = workload.machine, workload.chunks, workload.exclusive
    assert machine is not None and chunks is not None and exclusive is not None
    assert placement is not None
    job = np.repeat(np.arange(len(workload)), np.diff(placement.first))
    cpus = placement.chunks * (workload.processors // chunks)[job]
    whole = machine.node_cpus[placement.node]
    return frame.HeldNodes(job, placement.node, np.where(exclusive[job], whole, cpus))


def _heads(
    episode: EnvEpisode,
    jobs: Struct[Jobs],
    state: State,
    env: int,
    sim: Struct[Sim],
    waiting: frame.IntArray,
    row: frame.IntArray,
) -> tuple[frame.Head, ...]:
    """Return the head of each component; the waiting jobs are given in queue order, by both."""
    workload = episode.workload
    assert workload.partition is not None
    entry_points.ask_nodes(jobs.address, sim.address, s.NODES_SHOW, 0)  # clears nodes after a reset
    component = episode.table.limit[:, s.LIMIT_COMPONENT]
    heads: dict[int, frame.Head] = {}
    partitions = workload.partition[row].tolist()
    for job, at, partition in zip(waiting.tolist(), row.tolist(), partitions, strict=True):
        part = int(component[partition])
        shadow_time = int(state.component_shadow[env, part])
        if shadow_time < 0 or part in heads:
            continue
        shown = entry_points.ask_nodes(jobs.address, sim.address, s.NODES_SHOW_JOB, job)
        if not shown & s.NODES_FITS:
            heads[part] = frame.Head(at, int(workload.job_id[at]), partition, shadow_time)
    return tuple(heads.values())
