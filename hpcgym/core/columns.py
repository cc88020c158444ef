"""The columns of a job, said once: name, type, range, default, and who else states or needs each.

A line of `JobColumns` makes a column: `Workload` has it as an attribute, checks, cuts and sorts it,
and tables of jobs, cleaning, resampling, digests and exports read it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, NamedTuple, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

from hpcgym.machine import LARGEST_NUMBER

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

CONDITIONS = ("end", "success", "failure")
"""What of the job before it a job waits for: any end, or one of that kind."""

LARGEST_TIME = 2**52  # times (s) and areas stay below this, so that float64 holds them exactly


class JobColumn(NamedTuple):
    """What holds of a column."""

    least: int | None = None  # least value of a job; None: any whole number, or true or false
    most: int = LARGEST_TIME  # largest value; of processors and partitions the machine has its own
    # Value where none is given; None: it is needed, or made of what else is known.
    default: int | None = None
    swf: str = ""  # the field of SWF that states it; "" = none
    on_nodes: bool = False  # whether only machines of nodes know it
    is_flag: bool = False  # whether it is true or false
    decides: bool = True  # whether a schedule may depend on it, so that digests of jobs have it
    optional: bool = False  # whether a table has it only where it is given
    names: tuple[str, ...] = ()  # what frames and files say in place of 0, 1 and so on
    # Whether it names another job: by position, in frames and files by id, -1 = none.
    refers: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class JobColumns:
    """What a job table knows of each job; shape (n_jobs,), times in s.

    Attributes:
        job_id: Id of the job in its log.
        submit_time: Time the job enters the queue, >= 0, ascending.
        run_time: Real duration, >= 0; the scheduler must not see it before the end.
        requested_time: The user's limit, >= 1.
        processors: Processors requested, 1 to those of the machine.
        user: User id as in the log, -1 = unknown; all unknown users count as one.
        wait_time: Wait in the log, -1 = not recorded.
        chunks: Chunks of each job, >= 1; they divide its processors, the cpus of all chunks.
        gpus: GPUs of each chunk.
        memory_mb: Memory of each chunk, MB.
        spread: Whether a node may have at most one chunk of the job; bool.
        exclusive: Whether the job's nodes are its own; bool.
        partition: Index of each job's partition in `machine.partitions`.
        after: Position of the job before it, -1 = none; in frames and files that job's id.
        think_time: Time between the end of that job and what it lets begin.
        condition: What of that job lets it begin, a place in `CONDITIONS`.
        fails: Whether the job fails even if it ends by itself; bool.
        eligible: Instant from which the job may be scheduled, -1 = its submission.
        requeue: Whether the job may be killed and started again; bool. Modes with trials ask, and
            outages lose a job that may not.
        account: Number of the account that is charged, -1 = unknown; without it, a log's groups.
        qos: Number of the quality of service, -1 = unknown; without it, a log's queues.
        nice: What the job's priority is lowered by, as Slurm counts it; may be negative.
        array: Number of the array that the job is a task of, -1 = none.
        array_limit: Tasks of its array that may run at once, Slurm's `%N`; below 1 = any number.
    """

    job_id: Annotated[IntArray, JobColumn(swf="job_id")]
    submit_time: Annotated[IntArray, JobColumn(0, swf="submit_time")]
    run_time: Annotated[IntArray, JobColumn(0, swf="run_time")]
    requested_time: Annotated[IntArray, JobColumn(1, swf="requested_time")]
    processors: Annotated[IntArray, JobColumn(1, swf="requested_processors")]
    user: Annotated[IntArray, JobColumn(default=-1, swf="user", decides=False)]
    wait_time: Annotated[IntArray, JobColumn(default=-1, swf="wait_time", decides=False)]
    chunks: Annotated[IntArray | None, JobColumn(1, on_nodes=True)] = None
    gpus: Annotated[IntArray | None, JobColumn(0, LARGEST_NUMBER, 0, on_nodes=True)] = None
    memory_mb: Annotated[IntArray | None, JobColumn(0, LARGEST_NUMBER, 0, on_nodes=True)] = None
    spread: Annotated[BoolArray | None, JobColumn(default=0, on_nodes=True, is_flag=True)] = None
    exclusive: Annotated[BoolArray | None, JobColumn(default=0, on_nodes=True, is_flag=True)] = None
    partition: Annotated[IntArray | None, JobColumn(0, default=0, on_nodes=True)] = None
    after: Annotated[IntArray | None, JobColumn(-1, default=-1, optional=True, refers=True)] = None
    think_time: Annotated[IntArray | None, JobColumn(0, default=0, optional=True)] = None
    condition: Annotated[
        IntArray | None, JobColumn(0, len(CONDITIONS) - 1, 0, optional=True, names=CONDITIONS)
    ] = None
    fails: Annotated[BoolArray | None, JobColumn(default=0, optional=True, is_flag=True)] = None
    eligible: Annotated[IntArray | None, JobColumn(-1, default=-1, optional=True)] = None
    requeue: Annotated[BoolArray | None, JobColumn(default=1, optional=True, is_flag=True)] = None
    account: Annotated[IntArray | None, JobColumn(-1, default=-1, optional=True)] = None
    qos: Annotated[IntArray | None, JobColumn(-1, default=-1, optional=True)] = None
    nice: Annotated[IntArray | None, JobColumn(default=0, optional=True)] = None
    array: Annotated[IntArray | None, JobColumn(-1, default=-1, optional=True)] = None
    array_limit: Annotated[IntArray | None, JobColumn(-1, default=-1, optional=True)] = None


COLUMNS: dict[str, JobColumn] = {
    name: get_args(hint)[-1]
    for name, hint in get_type_hints(JobColumns, include_extras=True).items()
}


def referring(names: Iterable[str]) -> list[str]:
    """Return those of some columns that name other jobs, which whatever moves jobs renumbers."""
    return [name for name in names if name in COLUMNS and COLUMNS[name].refers]


NODE_COLUMNS = tuple(name for name, column in COLUMNS.items() if column.on_nodes)
"""What jobs ask of nodes, besides their processors."""
