"""What a live Slurm prints of its queue, priorities and nodes, in formats that are pinned here.

Text is read, because Slurm's JSON differs by version, and `squeue --json` says success and no jobs
where the controller is dead. A reading that fails, is cut short or contradicts another is refused:
no advice is better than advice on half a queue.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from hpcgym.base.errors import LiveError, unreadable
from hpcgym.trace.accounting.cells import NO_TIME, tasks_in

UNLIMITED_S = 365 * 86_400  # the limit of a job without one; Slurm plans with a year, too

TIMEOUT_S = 120
_NO_FACTORS = "not running a supported priority plugin"  # what `sprio` says under priority/basic

_ENVIRONMENT = {"SLURM_TIME_FORMAT": "%s", "SLURM_BITSTR_LEN": "0", "LC_ALL": "C"}
_STEERED_BY = ("SQUEUE_", "SPRIO_", "SINFO_", "SACCT_", "SLURM_CLUSTERS")
"""Variables by which a user's shell would change what the commands print."""


@dataclass(frozen=True, kw_only=True)
class QueuedJob:
    """A job as `squeue` prints it."""

    job_id: int  # its number; of the waiting tasks of an array, that of the array
    array_id: str  # its name for people, such as "93", "92_5", or "92_[6-9%2]" of waiting tasks
    user: str
    account: str
    partition: str  # its partition; several, parted by commas, while it waits for any of them
    qos: str
    state: str
    reason: str  # why it waits, in Slurm's word
    priority: int  # its priority; 0 = held
    nice: int
    submit_time: int  # Unix s
    eligible_time: int | None  # since when it may be scheduled, Unix s; None = not yet known
    start_time: int | None  # when it started, or is expected to by Slurm, Unix s; None = not known
    pending_s: int  # how long it has waited, or did
    elapsed_s: int  # how long it has run
    limit_s: int  # its limit; `UNLIMITED_S` where it has none
    cpus: int  # cpus that it holds, or asks for; each task of an array asks for as many
    nodes: int
    exclusive: bool  # whether it has whole nodes
    dependency: str  # what it waits for, "" = nothing
    node_list: str  # where it runs


@dataclass(frozen=True, kw_only=True)
class WaitingJob(QueuedJob):
    """A waiting job, or the waiting tasks of an array."""

    tasks: int = 1  # how many tasks wait; 1 of a job that is no array
    at_once: int | None = None  # how many tasks of the array may run at once; None = any number


@dataclass(frozen=True)
class Node:
    """A node in a partition."""

    name: str
    partition: str
    state: str  # Slurm's word, such as "mixed" or "draining"
    cpus: int
    held: int  # cpus that jobs hold
    tier: int  # the partition's priority tier: jobs of a higher one go first
    is_default: bool = False  # whether its partition is that of jobs that name none


@dataclass(frozen=True)
class Reading:
    """A queue at one instant."""

    now: int  # when it was read by Slurm's clock, Unix s; 0 where the queue is empty
    waiting: tuple[WaitingJob, ...]  # waiting jobs, as `squeue` lists them
    running: tuple[QueuedJob, ...]  # jobs that hold cpus
    nodes: tuple[Node, ...]  # nodes, once for each partition that they are in

    @property
    def held(self) -> int:
        """The cpus that jobs hold by `sinfo`, each node counted once."""
        return sum({node.name: node.held for node in self.nodes}.values())


class Column(NamedTuple):
    """A column of a pinned format: Slurm's name of it, ours ("" = unused), and how it is read."""

    slurm: str
    name: str
    read: Callable[[str], Any] = str


def _time(text: str) -> int | None:
    """Read Unix seconds, or None."""
    return None if text in NO_TIME else _count(text)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise ValueError("allowed: a whole number")
    return int(text)


def _whole(text: str) -> int:
    return -_count(text[1:]) if text.startswith("-") else _count(text)


def span(text: str) -> int:
    """Read [D-][HH:]MM:SS."""
    days, dash, clock = text.rpartition("-")
    parts = clock.split(":")
    if not 2 <= len(parts) <= 3 or (dash and not days):
        raise ValueError("allowed: [D-][HH:]MM:SS")
    total = 0
    for part in parts:
        total = 60 * total + _count(part)
    return total + 86_400 * _count(days or "0")


def _limit(text: str) -> int:
    return UNLIMITED_S if text in ("UNLIMITED", "NOT_SET", "INVALID") else max(span(text), 1)


def _required(text: str) -> str:
    """Read a word that cannot be left out."""
    if not text:
        raise ValueError("allowed: a word")
    return text


def _each(text: str) -> float:
    """Add up the terms of trackable resources, such as "cpu=10,mem=3"."""
    return sum(float(term.partition("=")[2]) for term in text.split(",") if term)


def _held(text: str) -> int:
    """Read the first of allocated/idle/other/total."""
    parts = text.split("/")
    if len(parts) != 4:
        raise ValueError("allowed: allocated/idle/other/total")
    return _count(parts[0])


SQUEUE = (
    Column("JobArrayID", "array_id", _required),
    Column("JobID", "job_id", _count),
    Column("UserName", "user", _required),
    Column("Account", "account"),
    Column("Partition", "partition", _required),
    Column("QOS", "qos"),
    Column("State", "state", _required),
    Column("Reason", "reason"),
    Column("PriorityLong", "priority", _count),
    Column("Nice", "nice", _whole),
    Column("SubmitTime", "submit_time", _count),
    Column("EligibleTime", "eligible_time", _time),
    Column("StartTime", "start_time", _time),
    Column("PendingTime", "pending_s", _count),
    Column("TimeUsed", "elapsed_s", span),
    Column("TimeLimit", "limit_s", _limit),
    Column("NumCPUs", "cpus", _count),
    Column("NumNodes", "nodes", _count),
    Column("OverSubscribe", "exclusive", lambda text: text in ("NO", "USER", "MCS")),
    Column("Dependency", "dependency", lambda text: "" if text == "(null)" else text),
    Column("NodeList", "node_list"),
)
SINFO = (
    Column("NodeList", "name", _required),
    Column("Partition", "partition", _required),
    Column("StateLong", "state", _required),
    Column("CPUs", "cpus", _count),
    Column("CPUsState", "held", _held),
    Column("PriorityTier", "tier", _count),
)
SPRIO = (
    Column("%i", "job_id", _count),
    Column("%r", "partition"),
    Column("%Y", "priority", _count),
    Column("%S", "site", _whole),
)
TERMS = (
    Column("%A", "age", _whole),
    Column("%B", "association", _whole),
    Column("%F", "fair share", _whole),
    Column("%J", "job size", _whole),
    Column("%P", "partition's", _whole),
    Column("%Q", "QOS", _whole),
    Column("%T", "TRES", _each),
)
"""Of a priority, beside the site factor and the nice."""

FACTORS = (*SPRIO, Column("%N", "nice", _whole), *TERMS)


def _short(columns: tuple[Column, ...]) -> str:
    """Return a format of `sprio -o`, whose fields end in "|", too."""
    return "".join(f"{column.slurm}|" for column in columns)


def _wide(columns: tuple[Column, ...]) -> str:
    """Return a format of `squeue -O` or `sinfo -O`, whose fields end in "|" and are never cut."""
    return ",".join(f"{column.slurm}:|" for column in columns)


FORMATS = {"squeue": SQUEUE, "sprio": SPRIO, "sinfo": SINFO, "factors": FACTORS}
COMMANDS = {
    "squeue": ("squeue", "-a", "-h", "-t", "PD,R,CF,CG", "-O", _wide(SQUEUE)),
    "sprio": ("sprio", "-h", "-o", _short(SPRIO)),
    "sinfo": ("sinfo", "-a", "-h", "-N", "-O", _wide(SINFO)),
    "factors": ("sprio", "-h", "-o", _short(FACTORS)),
}
"""What is asked, by the name of the option that takes it as a file; no option takes factors."""


def shell_line(name: str) -> str:
    """Return how a person prints a reading into a file."""
    program, *words = COMMANDS[name]
    variables = "SLURM_TIME_FORMAT=%s SLURM_BITSTR_LEN=0 "
    quoted = [f"'{word}'" if set(word) & set("|%,") else word for word in words]
    return f"{variables if name == 'squeue' else ''}{' '.join([program, *quoted])} > {name}.txt"


class Text(NamedTuple):
    """A text, and the file or command that it is of."""

    where: str
    text: str


def asked(name: str) -> Text:
    """Ask Slurm for a reading; of priorities that have no factors it is empty."""
    try:
        return Text(COMMANDS[name][0], printed(*COMMANDS[name]))
    except LiveError as error:
        if name == "sprio" and _NO_FACTORS in str(error):
            return Text(name, "")
        raise


def environment() -> dict[str, str]:
    """Return the variables under which commands of Slurm print what is expected."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(_STEERED_BY)}
    return kept | _ENVIRONMENT


def run(*command: str, **more: Any) -> subprocess.CompletedProcess[bytes]:
    """Run a command of Slurm, whatever the user's shell sets; more is as of `subprocess.run`."""
    how = {"stdin": subprocess.DEVNULL, "timeout": TIMEOUT_S, "env": environment(), **more}
    return subprocess.run(command, capture_output=True, check=False, **how)


def printed(*command: str) -> str:
    """Return what a command of Slurm prints."""
    program = command[0]
    try:
        done = run(*command)
    except subprocess.TimeoutExpired:
        raise LiveError(
            f"{program}: no answer within {TIMEOUT_S} s; nothing is advised. Is the controller up? "
            "(scontrol ping)"
        ) from None
    except OSError as error:
        raise LiveError(
            f"{program}: {error.strerror}; run this where Slurm's commands are, or give files"
        ) from None
    complaint = " ".join(done.stderr.decode("utf-8", errors="replace").split())
    if done.returncode or complaint:
        raise LiveError(
            f"{program}: exit code {done.returncode}: {complaint[:300] or '(no message)'}; nothing "
            "is advised on it. Try again when the controller answers (scontrol ping)"
        )
    return done.stdout.decode("utf-8", errors="replace")


def text_of(name: str, path: str | Path) -> Text:
    """Read what a command printed into a file. LiveError: the file cannot be read."""
    try:
        return Text(str(path), Path(path).read_text(encoding="utf-8", errors="replace"))
    except OSError as error:
        raise LiveError(f"{unreadable(path, error)}; print it by: {shell_line(name)}") from None


def rows_of(name: str, source: Text) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the place (file:line) and the values of each line of a reading."""
    columns = FORMATS[name]
    for number, line in enumerate(source.text.splitlines(), start=1):
        where = f"{source.where}:{number}"
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) != len(columns) + 1 or cells[-1]:
            raise LiveError(
                f"{where}: {len(cells) - 1} fields that end in '|', expected {len(columns)}; "
                f"print it by: {shell_line(name)}"
            )
        values: dict[str, Any] = {}
        for column, cell in zip(columns, cells[:-1], strict=True):
            try:
                values[column.name] = column.read(cell)
            except ValueError as error:
                raise LiveError(
                    f"{where}: {column.slurm} is {cell[:60]!r}; {error}; print it by: "
                    f"{shell_line(name)}"
                ) from None
        yield where, values


def read_queue(squeue: Text, sprio: Text, sinfo: Text) -> Reading:
    """Read a queue of three texts, and refuse it where they contradict each other."""
    nodes = tuple(
        Node(**values | {"partition": name.removesuffix("*"), "is_default": name.endswith("*")})
        for _, values in rows_of("sinfo", sinfo)
        for name in [values["partition"]]
    )
    if not nodes:
        raise LiveError(
            f"{sinfo.where}: no nodes; nothing is advised. Print it by: {shell_line('sinfo')}"
        )
    n_priorities = len({values["job_id"] for _, values in rows_of("sprio", sprio)})
    waiting: list[WaitingJob] = []
    running: list[QueuedJob] = []
    seen: dict[str, str] = {}
    for where, values in rows_of("squeue", squeue):
        if values["array_id"] in seen:
            raise LiveError(
                f"{where}: job {values['array_id']} stands in {seen[values['array_id']]} already"
            )
        seen[values["array_id"]] = where
        if values["state"] == "PENDING":
            waiting.append(_waiting(values))
        else:
            running.append(_running(values, where))
    reading = Reading(_now(waiting, running), tuple(waiting), tuple(running), nodes)
    _refuse_empty(reading, squeue, n_priorities)
    return reading


def _waiting(values: dict[str, Any]) -> WaitingJob:
    """Make a waiting job; an array's name says which tasks wait, and how many may run at once."""
    _, bracket, listed = values["array_id"].partition("_[")
    at_once = listed.rstrip("]").partition("%")[2]
    return WaitingJob(
        **values,
        tasks=tasks_in(listed.rstrip("]")) if bracket else 1,
        at_once=int(at_once) if at_once.isdigit() else None,
    )


def _running(values: dict[str, Any], where: str) -> QueuedJob:
    """Make a job that holds cpus."""
    if values["start_time"] is None:
        raise LiveError(f"{where}: job {values['array_id']} is {values['state']} without StartTime")
    return QueuedJob(**values)


def _now(waiting: list[WaitingJob], running: list[QueuedJob]) -> int:
    """Return when Slurm printed its queue, by its own clock: from how long jobs have waited."""
    known = [job.submit_time + job.pending_s for job in waiting]
    known += [(job.start_time or 0) + job.elapsed_s for job in running]
    return max(known, default=0)


def _refuse_empty(reading: Reading, squeue: Text, n_priorities: int) -> None:
    """Refuse a queue that is empty though other readings say that there are jobs."""
    if reading.waiting or reading.running:
        return
    against = {
        f"sinfo says that jobs hold {reading.held} cpus": reading.held,
        f"sprio lists {n_priorities} jobs": n_priorities,
    }
    for why, count in against.items():
        if count:
            raise LiveError(
                f"{squeue.where}: no jobs, but {why}; nothing is advised on readings that "
                "contradict each other. Read all three again, or ask the controller: scontrol ping"
            )
