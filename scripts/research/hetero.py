"""A generated log for a machine of CPU, big-memory and GPU nodes, and that machine.

Submissions, sizes and run times are those of the Lublin-Feitelson model, requests Tsafrir's, users
those of `hpcgym.trace.synthetic`. What jobs ask of nodes is drawn beside them. That GPU jobs ask
for powers of two, most for one, is published; the shares, and all else of requests, are our choice.

Source: Specification, section 9, "Lublin-Feitelson" and "Tsafrir estimates"; GPUs of a job: Jeon et
    al. 2019, Hu et al. 2021.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hpcgym.base.errors import TraceError
from hpcgym.core.requests import unplaceable
from hpcgym.core.workload import Workload
from hpcgym.machine import Machine, NodeType, Partition
from hpcgym.trace.estimates import tsafrir_estimates
from hpcgym.trace.lublin import lublin_workload
from hpcgym.trace.resample import scale_load
from hpcgym.trace.synthetic import LONGEST_REQUEST_S, draw_users

IntArray: TypeAlias = NDArray[np.int64]

DEBUG_REQUEST_S = 3600
DEBUG_NODES = 4

HETERO_64 = Machine(
    nodes=(
        NodeType(16, cpus=32, memory_mb=128_000, group="s1"),
        NodeType(16, cpus=32, memory_mb=128_000, group="s2"),
        NodeType(12, cpus=32, memory_mb=128_000, group="s3"),
        NodeType(4, cpus=32, memory_mb=1_024_000, group="s3"),
        NodeType(4, cpus=32, memory_mb=1_024_000, group="s4"),
        NodeType(12, cpus=64, gpus=4, memory_mb=512_000, group="s4"),
    ),
    partitions=(
        Partition("batch", "0-51", max_time_s=LONGEST_REQUEST_S),
        Partition("gpu", "52-63", max_time_s=LONGEST_REQUEST_S),
        Partition("debug", "32-47", max_time_s=DEBUG_REQUEST_S, max_nodes=DEBUG_NODES, tier=1),
    ),
)
"""44 CPU, 8 big-memory and 12 GPU nodes, on four leaf switches; "debug" is within "batch"."""

BATCH, GPU, DEBUG = range(3)

GPU_SHARE = 0.55
"""Share of the jobs in "gpu"; of the others, half of those that may be are in "debug"."""

NODE_CPUS = 32
NODE_GPUS = 4

GPUS = {1: 0.45, 2: 0.15, 4: 0.2, 8: 0.12, 16: 0.08}
"""Shares of the GPUs of a job."""

WIDE_CHUNK_CPUS = {1: 0.3, 4: 0.2, 16: 0.2, 32: 0.3}
"""Shares of the cpus of a chunk, of jobs wider than a node."""

HUNGRY_SHARE = 0.15
"""Share of the jobs that ask for more memory than their share of a CPU node, 4,000 MB a cpu."""


def hetero_workload(
    n_jobs: int,
    generator: np.random.Generator,
    *,
    n_users: int = 64,
    load: float = 0.6,
    name: str = "hetero",
) -> Workload:
    """Draw a log for `HETERO_64`, on which memory and GPUs leave cpus without use.

    - Partition: "gpu" for 55 % of the jobs. Half of the others that ask for at most 1 h and 128
      processors are in "debug", the rest in "batch".
    - Chunks: a job of "batch" or "debug" has as many cpus as the Lublin-Feitelson model draws for
      1,664 processors. If one node has them, it asks for one chunk or, as often, for chunks of one
      cpu; otherwise for chunks of 1, 4, 16 or 32 cpus (30, 20, 20, 30 %), the last one filled up.
    - GPUs: 1, 2, 4, 8 or 16 for 45, 15, 20, 12 and 8 % of the jobs of "gpu", in chunks of up to 4,
      or of 1 for three jobs in ten; 2, 4, 8 or 16 cpus a GPU, equally often.
    - Memory: log-uniform, 256 to 4,096 MB a cpu, for 15 % of the jobs 4 to 32 GB; 8 to 128 GB a
      GPU. That of a chunk is rounded up to a power of two of GB, at most the largest node's.
    - A tenth of the jobs of 2 to 8 chunks are spread; a twentieth of those wider than a node are
      alone on their nodes.
    - A job that can never run has half as many chunks, until it can.

    Args:
        n_users: Users, >= 1, numbered from 1 by popularity.
        load: Cpu-seconds of all jobs over those the machine has until the last submission.

    Raises:
        TraceError: A number is out of range.

    Example:
        >>> import numpy as np
        >>> hetero_workload(1000, np.random.default_rng(1))
        Workload('hetero', 1000 jobs, 2432 processors)
    """
    if n_users < 1:
        raise TraceError(f"n_users must be at least 1, got {n_users}")
    if not 0 < load < np.inf:
        raise TraceError(f"load must be a positive number, got {load}")
    cpus = int(HETERO_64.node_cpus[HETERO_64.members[BATCH]].sum())
    base = lublin_workload(n_jobs, generator, machine_processors=cpus, job_types=False)
    run_time = np.minimum(base.run_time, LONGEST_REQUEST_S)
    requests = tsafrir_estimates(run_time, generator, maximum=LONGEST_REQUEST_S)
    asked = draw_requests(base.processors, requests, generator)
    times: dict[str, Any] = {"run_time": run_time, "requested_time": requests}
    drawn = Workload.from_arrays(base.submit_time, machine=HETERO_64, **times, **asked)
    drawn = _without_impossible(drawn)
    offered = int(drawn.run_time @ drawn.processors) / drawn.machine_processors
    scaled = scale_load(drawn, load * int(drawn.submit_time[-1]) / offered)
    users = draw_users(scaled, n_users, generator)
    columns = scaled.columns() | {"user": users}
    return Workload.from_arrays(**columns, machine=HETERO_64, name=name)


def draw_requests(
    processors: IntArray, requested_time: IntArray, generator: np.random.Generator
) -> dict[str, Any]:
    """Draw what jobs ask of nodes: the columns of `Workload`, given processors of the model."""
    n = len(processors)
    partition = np.where(generator.random(n) < GPU_SHARE, GPU, BATCH)
    may_debug = (requested_time <= DEBUG_REQUEST_S) & (processors <= DEBUG_NODES * NODE_CPUS)
    is_debug = (partition == BATCH) & may_debug & (generator.random(n) < 0.5)
    partition[is_debug] = DEBUG
    is_gpu = partition == GPU
    chunks, cpus = _draw_chunks(processors, generator)
    gpu_chunks, gpu_cpus, gpus = _draw_gpus(n, generator)
    chunks, cpus = np.where(is_gpu, gpu_chunks, chunks), np.where(is_gpu, gpu_cpus, cpus)
    memory_mb = _draw_memory(cpus, np.where(is_gpu, gpus, 0), partition, generator)
    is_wide = (processors > NODE_CPUS) & ~is_gpu
    return {
        "processors": chunks * cpus,
        "chunks": chunks,
        "gpus": np.where(is_gpu, gpus, 0),
        "memory_mb": memory_mb,
        "spread": (chunks > 1) & (chunks <= 8) & (generator.random(n) < 0.1),
        "exclusive": is_wide & (generator.random(n) < 0.05),
        "partition": partition,
    }


def _without_impossible(workload: Workload) -> Workload:
    """Return jobs of which each that can never run has half as many chunks, until it can."""
    while refused := unplaceable(workload):
        assert workload.chunks is not None
        rows = [row for row, _ in refused]
        cpus, chunks = workload.processors // workload.chunks, workload.chunks.copy()
        chunks[rows] //= 2
        workload = replace(workload, chunks=chunks, processors=chunks * cpus)
    return workload


def _draw_chunks(processors: IntArray, generator: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Draw the chunks of each job without GPUs, and the cpus of one."""
    n = len(processors)
    of_narrow = np.where(generator.random(n) < 0.5, processors, 1)
    of_wide = _choose(WIDE_CHUNK_CPUS, n, generator)
    cpus = np.where(processors > NODE_CPUS, of_wide, of_narrow)
    return -(-processors // cpus), cpus


def _draw_gpus(n: int, generator: np.random.Generator) -> tuple[IntArray, IntArray, IntArray]:
    """Draw the chunks of each job with GPUs, and the cpus and GPUs of one."""
    total = _choose(GPUS, n, generator)
    gpus = np.where(generator.random(n) < 0.3, 1, np.minimum(total, NODE_GPUS))
    cpus = gpus * 2 ** generator.integers(1, 5, n)
    return total // gpus, cpus, gpus


def _draw_memory(
    cpus: IntArray, gpus: IntArray, partition: IntArray, generator: np.random.Generator
) -> IntArray:
    """Draw the memory of a chunk, MB: a power of two of GB that a node of the partition has."""
    n = len(cpus)
    is_hungry = generator.random(n) < HUNGRY_SHARE
    position = generator.random(n)
    of_cpu = np.exp2(np.where(is_hungry, 12 + 3 * position, 8 + 4 * position))
    needed = np.where(gpus > 0, gpus * np.exp2(13 + 4 * position), cpus * of_cpu)
    rounded = 1000 * 2 ** np.ceil(np.log2(np.maximum(needed / 1000, 1))).astype(np.int64)
    largest = [int(HETERO_64.node_memory_mb[one].max()) for one in HETERO_64.members]
    capped: IntArray = np.minimum(rounded, np.array(largest)[partition])
    return capped


def _choose(shares: dict[int, float], n: int, generator: np.random.Generator) -> IntArray:
    """Draw n values with these shares."""
    return generator.choice(list(shares), size=n, p=list(shares.values()))
