"""A snapshot of a running episode: the frame that a person sees."""

from __future__ import annotations

import numpy as np

from hpcgym.core import constants as s
from hpcgym.core.compiler.struct import Struct
from hpcgym.core.kernels import entry_points
from hpcgym.core.kernels.types import Sim
from hpcgym.core.state import State
from hpcgym.env.episode import EnvEpisode
from hpcgym.env.rendering import frame
from hpcgym.schedule import Schedule


def take_snapshot(
    title: str, episode: EnvEpisode, state: State, env: int, sim: Struct[Sim]
) -> frame.Frame:
    """Return the frame of row `env` of a state, which is `sim` to the kernels.

    It shows no more of a running job than the scheduler knows: its end is the estimated one. The
    head is the first job of the base order that does not fit now. Writes `shadow` and `extra`,
    or the plan on nodes, which each pass computes anew.
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
    nodes, reservation = None, None
    if workload.machine is None:
        reservation = _reservation(episode, sim, waiting)
    else:
        assert workload.partition is not None
        tier_rank = table.limit[workload.partition[waiting], s.LIMIT_TIER]
        waiting = waiting[np.argsort(tier_rank, kind="stable")]
        nodes = _nodes_frame(episode, state, env, sim, made, waiting)
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
            waiting,
            workload.job_id[waiting],
            now - workload.submit_time[waiting],
            table.estimate[waiting],
            workload.processors[waiting],
            waiting < sim.fields.next_overdue,
        ),
        reservation=reservation,
        nodes=nodes,
    )


def _reservation(
    episode: EnvEpisode, sim: Struct[Sim], waiting: frame.IntArray
) -> frame.Reservation | None:
    """Return the reservation of the first waiting job that does not fit."""
    workload, address = episode.workload, episode.jobs.address
    misfits = (job for job in waiting if not entry_points.fits_now(address, sim.address, job))
    head = int(next(misfits, -1))
    if head < 0:
        return None
    entry_points.reserve(address, sim.address, head)
    return frame.Reservation(
        job=head,
        job_id=int(workload.job_id[head]),
        shadow_time=int(sim.fields.shadow),
        extra_processors=int(sim.fields.extra),
        estimate=int(episode.table.estimate[head]),
        processors=int(workload.processors[head]),
    )


def _nodes_frame(
    episode: EnvEpisode,
    state: State,
    env: int,
    sim: Struct[Sim],
    made: Schedule,
    waiting: frame.IntArray,
) -> frame.NodesFrame:
    """Return what is shown of the nodes; the waiting jobs are given in queue order."""
    workload = episode.workload
    machine, partition, chunks = workload.machine, workload.partition, workload.chunks
    assert machine is not None and partition is not None and chunks is not None
    heads = _heads(episode, state, env, sim, waiting)  # the kernels clear the nodes after a reset
    return frame.NodesFrame(
        machine=machine,
        free=state.free_on[env, : machine.n_nodes].copy(),
        held=_held_nodes(made),
        heads=heads,
        partition=partition[waiting],
        chunks=chunks[waiting],
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
    episode: EnvEpisode, state: State, env: int, sim: Struct[Sim], waiting: frame.IntArray
) -> tuple[frame.Head, ...]:
    """Return the head of each component; the waiting jobs are given in queue order."""
    workload, jobs = episode.workload, episode.jobs
    assert workload.partition is not None
    entry_points.ask_nodes(jobs.address, sim.address, s.NODES_SHOW, 0)
    component = episode.table.limit[:, s.LIMIT_COMPONENT]
    heads: dict[int, frame.Head] = {}
    for job, partition in zip(waiting.tolist(), workload.partition[waiting].tolist(), strict=True):
        own = int(component[partition])
        shadow_time = int(state.component_shadow[env, own])
        if shadow_time < 0 or own in heads:
            continue
        shown = entry_points.ask_nodes(jobs.address, sim.address, s.NODES_SHOW_JOB, job)
        if not shown & s.NODES_FITS:
            heads[own] = frame.Head(job, int(workload.job_id[job]), partition, shadow_time)
    return tuple(heads.values())
