"""Which rows of one id are attempts of one job, and how long each job waited.

Source: Specification, section 14, "Reading", "Attempts".
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.trace.accounting.rows import CAUSES, TIMES, UNKNOWN, Block, Ledger

LONG_AFTER_S = 86_400
"""A row that is submitted later than this after the end of the one before it is another job's."""

OWNERS = ("user", "group")  # names that rows of one job have in common, as far as they state them


def repeats(table: Block) -> NDArray[np.bool_]:
    """Tell which rows say what an earlier one does, as in files that overlap."""
    import pandas as pd

    keys = ("job", *TIMES, "run_time", "chunks", "cpus")
    return np.array(pd.DataFrame({key: table[key] for key in keys}).duplicated(), dtype=bool)


def find_attempts(table: Block, ledger: Ledger) -> None:
    """Add `first_row`, `attempt`, `goes_on`, `is_unknown` and times of the first attempt.

    An attempt enters the queue when the one before it was put back. A row that `goes_on` is the
    same attempt with other processors. Of one that `is_unknown` attempts before it are missing, so
    nothing says since when it waited.
    """
    n = len(table["line"])
    table["first_row"], table["attempt"] = np.arange(n), np.zeros(n, dtype=np.int64)
    table["goes_on"] = np.zeros(n, dtype=bool)
    order = np.lexsort((table["line"], table["start"], table["submit"]))
    order = order[np.argsort(codes(table["job"])[order], kind="stable")]
    jobs = table["job"][order]
    for index in np.flatnonzero(jobs[1:] == jobs[:-1]).tolist():
        before, row = order[index], order[index + 1]
        if not _is_of_one_job(table, before, row):
            ledger.note("id of a job that another job had before")
            continue
        table["first_row"][row] = table["first_row"][before]
        table["goes_on"][row] = table["resized"][before]
        table["attempt"][row] = table["attempt"][before] + (not table["resized"][before])
        if table["failed"][before]:  # Slurm then states a begin time, which is its own delay
            table["cause"][row] = CAUSES.index("failures")
        put_back = max(_end(table, before), table["submit"][row])
        if table["start"][row] == UNKNOWN or put_back <= table["start"][row]:
            table["submit"][row] = put_back
        table["eligible"][row] = max(table["eligible"][row], table["submit"][row])
    table["is_unknown"] = table["run_count"] > table["attempt"] + 1
    ledger.note("further attempts of jobs", int(((table["attempt"] > 0) & ~table["goes_on"]).sum()))
    ledger.note(
        "jobs resized while they ran: what follows is an attempt", int(table["goes_on"].sum())
    )
    ledger.note(
        "attempted before, as run_count or a record R says, and not when: the wait is not known",
        int(table["is_unknown"].sum()),
    )
    for key in ("submit", "eligible"):
        table[f"first_{key}"] = table[key][table["first_row"]]


def _is_of_one_job(table: Block, before: int, row: int) -> bool:
    """Tell whether a row is of the job that an earlier row of this id is of: soon after it."""
    return bool(
        table["retried"][before]
        and all(
            table[key][before] == table[key][row] or not (table[key][before] and table[key][row])
            for key in OWNERS
        )
        and table["submit"][row] - max(_end(table, before), table["submit"][before]) <= LONG_AFTER_S
    )


def _end(table: Block, row: int) -> int:
    """Return when a row ended, as it says or by its run time; UNKNOWN where it never started."""
    end, start, run_time = (int(table[key][row]) for key in ("end", "start", "run_time"))
    return end if end != UNKNOWN or start == UNKNOWN else start + max(run_time, 0)


def codes(values: NDArray[Any]) -> NDArray[np.int64]:
    """Return the number of each value, equal for equal ones."""
    import pandas as pd

    return np.asarray(pd.factorize(values)[0], dtype=np.int64)


def job_waits(table: Block, counted_from: str) -> NDArray[np.float64]:
    """Return how long each job waited in all, h: from its first entry to its last start."""
    rows = _last_rows(table)
    begun = np.minimum(table[f"first_{counted_from}"][rows], table["start"][rows])
    return np.asarray((table["start"][rows] - begun) / 3600, dtype=np.float64)


def _last_rows(table: Block) -> NDArray[np.int64]:
    """Return the row in which the last attempt of each job began, of jobs that have started."""
    rows = np.flatnonzero(~table["goes_on"])
    rows = rows[np.lexsort((table["attempt"][rows], table["first_row"][rows]))]
    first = table["first_row"][rows]
    last = np.sort(rows[np.append(first[1:] != first[:-1], True)[: len(rows)]])
    return np.asarray(last[table["start"][last] != UNKNOWN], dtype=np.int64)
