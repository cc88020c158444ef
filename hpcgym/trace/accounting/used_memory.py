"""What memory Slurm says that jobs used: by the rows of their steps, or by the job's own row.

A job used what its largest step did; steps that ran at once are not added. A step used what all of
its tasks did at their peaks, and where only the largest task is stated, as if all were as large.

Source: Specification, section 14, "Used memory".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from hpcgym.trace.accounting.cells import whole
from hpcgym.trace.accounting.rows import UNKNOWN, stated_kb

FIELDS = ("maxrss", "tresusageinmax", "tresusageintot")
"""Fields that say what a step used; `ntasks` says how many tasks it had."""

BY_TOTAL = "used memory: of all tasks of the largest step (TRESUsageInTot)"
BY_LARGEST = "used memory: largest task of the largest step, times its tasks (MaxRSS, NTasks)"
NO_TASKS = "used memory not known: of a step MaxRSS is stated, and not how many tasks (NTasks)"
UNREADABLE = "used memory not known: it cannot be read"

_SIZE = re.compile(r"(\d+(?:\.\d*)?)([KMGTPE]?)")
_MEMORY = re.compile(r"(?:^|,)mem=([^,]*)")
_BYTES = {unit: 1024**power for power, unit in enumerate(("", *"KMGTPE"))}


class Used(NamedTuple):
    """What a step or a job used: KB, UNKNOWN where none is stated, and how that is known."""

    kb: int = UNKNOWN
    how: str = ""


@lru_cache(maxsize=100_000)
def kilobytes(text: str) -> int:
    """Read a size in KB, rounded up; without a unit it is in bytes, and "" is 0.

    Raises:
        ValueError: It is no size.
    """
    match = _SIZE.fullmatch(text or "0")
    if match is None or len(text) > len("9" * 18):
        raise ValueError(text)
    return int(-(-float(match[1]) * _BYTES[match[2]] // 1024))


def of_step(total_kb: int, largest_kb: int, tasks: int) -> Used:
    """Return what a step used, of all of its tasks and of the largest; 0 is not stated."""
    if total_kb == largest_kb == 0:
        return Used()
    if total_kb == tasks == 0:
        return Used(how=NO_TASKS)
    together = stated_kb(total_kb or largest_kb * tasks)
    how = BY_TOTAL if total_kb else BY_LARGEST
    return Used(together, UNREADABLE if together == UNKNOWN else how)


def of_job(steps: Iterable[Used]) -> Used:
    """Return what a job used: what its largest step did; unknown where that of any step is."""
    stated = [step for step in steps if step.how]
    unknown = (step for step in stated if step.kb == UNKNOWN)
    return next(unknown, max(stated, default=Used()))


def of_rows(cells: Mapping[str, Sequence[str]]) -> list[Used]:
    """Return what the job of each row used, of texts by field; a step's row has nothing.

    A step belongs to the last row before it that has its job's id.
    """
    ids = cells.get("jobid") or cells["jobidraw"]
    none = [""] * len(ids)
    columns = [cells.get(field) or none for field in (*FIELDS, "ntasks", "ncpus")]
    rows: dict[str, int] = {}
    steps: list[list[Used]] = [[] for _ in ids]
    for row, (name, *texts) in enumerate(zip(ids, *columns, strict=True)):
        job, dot, step = name.partition(".")
        if not dot:
            rows[job] = row
        if job in rows:
            steps[rows[job]].append(_of_texts(step, *texts))
    return [of_job(known) for known in steps]


def _of_texts(step: str, rss: str, largest: str, total: str, tasks: str, cpus: str) -> Used:
    """Return what a row says; a batch script is one task, and so is a step of one cpu."""
    try:
        known = [kilobytes(_memory_of(text)) for text in (total, largest)]
        n_tasks = whole(tasks) or int(step == "batch" or (bool(step) and cpus == "1"))
        return of_step(known[0], known[1] or kilobytes(rss), n_tasks)
    except ValueError:
        return Used(how=UNREADABLE)


def _memory_of(text: str) -> str:
    """Return the memory in a list of what was used; "" = none."""
    match = _MEMORY.search(text)
    return "" if match is None else match[1]
