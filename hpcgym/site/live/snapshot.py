"""A machine and its queue at one instant, as a simulation can begin from it.

Cpus are counted: a machine is those partitions that share nodes, with the cpus of the nodes that
are up. Jobs that could not start if the machine were empty are kept out, each with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import mode

from hpcgym.base.errors import LiveError, unknown_name
from hpcgym.machine.files.records import AWAY, hosts
from hpcgym.site.live.readings import Node, QueuedJob, Reading, WaitingJob

COMPETES = (
    *("None", "", "Resources", "Priority", "BeginTime", "JobArrayTaskLimit"),
    "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions",
)
"""Reasons of jobs that an order can help; Slurm's other reasons keep a job out."""

_IN_WORDS = {
    "JobHeldUser": "held by its user",
    "JobHeldAdmin": "held by an administrator",
    "Dependency": "waits for another job",
    "DependencyNeverSatisfied": "waits for a job that can no longer satisfy it",
}
_SHARE_SEEN = 0.5
"""Running jobs that hold less than this share of the allocated cpus are a part of them only."""


@dataclass(frozen=True)
class KeptOut:
    """A waiting job that no order can help now, and why."""

    job: WaitingJob
    why: str


@dataclass(frozen=True)
class Snapshot:
    """What a simulation begins from."""

    partitions: tuple[str, ...]  # names of the partitions that share the nodes
    cpus: int  # cpus of the nodes that are up
    now: int  # the instant, Unix s
    # Jobs that an order can help, or will once their begin time has come.
    waiting: tuple[WaitingJob, ...]
    # Jobs on nodes that are up, with the cpus that they hold there.
    running: tuple[tuple[QueuedJob, int], ...]
    kept_out: tuple[KeptOut, ...]  # waiting jobs that no order can help
    tiers: dict[str, int]  # the priority tier of each partition: jobs of a higher one go first
    notes: tuple[str, ...]  # what of the machine is simplified, in sentences

    def begins(self, job: WaitingJob) -> int:
        """Return from when on a job may be scheduled, Unix s; an array's tasks all at once."""
        return job.submit_time if job.eligible_time is None else job.eligible_time

    def tier(self, job: WaitingJob) -> int:
        """Return the highest tier of the partitions that a job may start in."""
        return max(self.tiers.get(name, 0) for name in job.partition.split(","))


def snapshots_of(reading: Reading, partitions: Sequence[str] = ()) -> list[Snapshot]:
    """Return a snapshot of each machine: of all, or of those that have the partitions named."""
    known = dict.fromkeys(node.partition for node in reading.nodes)
    for name in partitions:
        if name not in known:
            raise LiveError(unknown_name("partition", name, known))
    _refuse_partial_view(reading)
    groups = _sharing_nodes(reading.nodes)
    for job in (*reading.waiting, *reading.running):
        if _home(job) not in known:
            raise LiveError(
                f"squeue: job {job.array_id} is in partition {_home(job)!r}, which sinfo does not "
                "list; nothing is advised on readings that contradict each other"
            )
    return [
        _snapshot(reading, group)
        for group in groups
        if not partitions or not group.isdisjoint(partitions)
    ]


def _home(job: QueuedJob) -> str:
    return job.partition.split(",")[0]


def _refuse_partial_view(reading: Reading) -> None:
    """Refuse a queue in which jobs hold far fewer cpus than the nodes have allocated."""
    shown = sum(job.cpus for job in reading.running)
    if shown < _SHARE_SEEN * reading.held:
        raise LiveError(
            f"squeue shows jobs on {shown} cpus, and sinfo says that {reading.held} are allocated; "
            "nothing is advised on part of a queue. Where PrivateData hides jobs, run this as an "
            "operator"
        )


def _sharing_nodes(nodes: Iterable[Node]) -> list[set[str]]:
    """Return the sets of partitions that share nodes, directly or through others."""
    by_node: dict[str, set[str]] = {}
    for node in nodes:
        by_node.setdefault(node.name, set()).add(node.partition)
    groups: list[set[str]] = []
    for together in by_node.values():
        touched = [group for group in groups if not group.isdisjoint(together)]
        groups = [group for group in groups if group.isdisjoint(together)]
        groups.append(set().union(together, *touched))
    return groups


def _snapshot(reading: Reading, group: set[str]) -> Snapshot:
    nodes = {node.name: node for node in reading.nodes if node.partition in group}
    up = {name: node for name, node in nodes.items() if _is_up(node.state)}
    running = [
        (job, cpus)
        for job in reading.running
        if _home(job) in group and (cpus := _cpus_on(job, up.keys())) > 0
    ]
    sizes = [node.cpus for node in up.values()]
    held = sum(cpus for _, cpus in running)
    cpus = max(sum(sizes), held)
    waiting, kept_out = [], []
    for job in reading.waiting:
        if _home(job) in group:
            asked = _whole_nodes(job, sizes)
            why = _why_kept_out(asked, cpus, len(up))
            kept_out.append(KeptOut(job, why)) if why else waiting.append(asked)
    return Snapshot(
        tuple(sorted(group)),
        cpus,
        reading.now,
        tuple(waiting),
        tuple(running),
        tuple(kept_out),
        {node.partition: node.tier for node in reading.nodes if node.partition in group},
        tuple(_notes(reading, nodes, up, held, group)),
    )


def _is_up(state: str) -> bool:
    """Tell whether jobs may start on a node; "*" marks one that does not respond."""
    return not state.endswith("*") and not any(
        word in state.upper() for word in (*AWAY, "RESERVED", "UNKNOWN")
    )


def _cpus_on(job: QueuedJob, up: Iterable[str]) -> int:
    """Return the cpus that a running job holds on nodes that are up, as many on each of its own."""
    try:
        on = list(hosts(job.node_list))
    except ValueError as error:
        raise LiveError(
            f"squeue: nodes of job {job.array_id}: {job.node_list!r}; {error}"
        ) from None
    if not on:
        return job.cpus
    stay = len(set(up).intersection(on))
    return -(-job.cpus * stay // len(on))


def _whole_nodes(job: WaitingJob, sizes: Sequence[int]) -> WaitingJob:
    """Count all cpus of the nodes of a job that has them to itself."""
    if not job.exclusive or not sizes:
        return job
    return replace(job, cpus=max(job.cpus, job.nodes * mode(sizes)))


def _why_kept_out(job: WaitingJob, cpus: int, n_nodes: int) -> str:
    """Return why no order can help a job, "" where one can."""
    if job.priority == 0 or job.reason in _IN_WORDS:
        what = _IN_WORDS.get(job.reason, f"held: Slurm says {job.reason}")
        return f"{what}: {job.dependency}" if job.dependency else what
    if "+" in job.array_id:
        return "part of a heterogeneous job, whose parts start together"
    if job.reason not in COMPETES:
        return f"Slurm says {job.reason}"
    if job.cpus > cpus:
        return f"asks {job.cpus} cpus; up: {cpus}"
    if job.nodes > n_nodes:
        return f"asks {job.nodes} nodes; up: {n_nodes}"
    return ""


def _counted(n_nodes: int) -> str:
    return "1 node" if n_nodes == 1 else f"{n_nodes} nodes"


def _notes(
    reading: Reading, nodes: dict[str, Node], up: dict[str, Node], held: int, group: set[str]
) -> Iterable[str]:
    total = sum(node.cpus for node in up.values())
    away = len(nodes) - len(up)
    sizes = {node.cpus for node in up.values()}
    yield (
        f"{'+'.join(sorted(group))}: {total} cpus on {_counted(len(up))}, counted as one pool"
        + (f"; down, drained or reserved: {_counted(away)}" if away else "")
        + (f"; nodes have {min(sizes)} to {max(sizes)} cpus" if len(sizes) > 1 else "")
    )
    if held > total:
        yield f"jobs hold {held} cpus, more than the {total} that are up; as many are counted"
    several = [
        job.array_id for job in reading.waiting if "," in job.partition and _home(job) in group
    ]
    if several:
        yield f"jobs in several partitions are counted in the first: {', '.join(several)}"
