"""Accounting as Slurm prints it, text or JSON, of jobs that need not exist."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

from hpcgym.trace.accounting.slurm import COMMAND

FIELDS = COMMAND.rpartition(" -o ")[2].split(",")
BEGIN = datetime(2026, 1, 1)

Columns = Sequence[Sequence[int]]
"""Gap, wait, run time, s, nodes, cpus of each, user and limit, min, of each job."""


def drawn(n: int) -> Columns:
    """Return values that need not fit together."""
    draw = np.random.default_rng(1)
    gaps, waits, runs = draw.integers(0, [[60], [40_000], [86_400]], (3, n))
    nodes, each = draw.integers(1, [[5], [49]], (2, n))
    return [each.tolist() for each in (gaps, waits, runs, nodes, each, gaps, 60 + runs % 1440)]


def rows(columns: Columns) -> Iterator[list[object]]:
    """Yield values of `FIELDS`, one job in five a task of an array."""
    submit = BEGIN
    for i, (gap, wait, run, n_nodes, cpus, user, limit) in enumerate(zip(*columns, strict=True)):
        submit += timedelta(seconds=gap)
        start = submit + timedelta(seconds=wait)
        times = [one.isoformat() for one in (submit, submit, start, start + timedelta(seconds=run))]
        job = f"{i - i % 20}_{i % 20}" if i % 5 == 0 else i + 1
        tres = f"billing={n_nodes * cpus},cpu={n_nodes * cpus},mem={cpus * 2000}M,node={n_nodes}"
        names = [f"user{user}", f"account{user % 9}", f"part{wait % 6}"]
        names += ["normal", "COMPLETED", "None", ""]
        sizes = [run, limit, n_nodes, n_nodes * cpus, n_nodes, n_nodes * cpus]
        yield [job, i + 1, *names, *times, *sizes, tres, tres, f"job{wait % 5000}"]


def write_text(path: Path, columns: Columns) -> None:
    """Write what `sacct -P` prints."""
    with path.open("w") as file:
        file.write("|".join(FIELDS) + "\n")
        file.writelines("|".join(map(str, row)) + "\n" for row in rows(columns))


def write_json(path: Path, columns: Columns) -> None:
    """Write what `sacct --json` prints of these, as far as it is read."""
    with path.open("w") as file:
        file.write('{"jobs": [\n')
        for i, row in enumerate(rows(columns)):
            known = dict(zip(FIELDS, row, strict=True))
            moments = {
                key: int(datetime.fromisoformat(str(known[field])).timestamp())
                for key, field in (
                    *(("submission", "Submit"), ("eligible", "Eligible")),
                    *(("start", "Start"), ("end", "End")),
                )
            }
            job = {
                "job_id": known["JobIDRaw"],
                "name": known["JobName"],
                "state": {"current": ["COMPLETED"]},
                "time": moments | {"elapsed": known["ElapsedRaw"], "limit": known["TimelimitRaw"]},
                "required": {"CPUs": known["ReqCPUS"], "memory_per_node": {"number": 2000}},
                "tres": {
                    kind: [{"type": "cpu", "count": known["NCPUS"]}, {"type": "node", "count": 1}]
                    for kind in ("requested", "allocated")
                },
                **{key.lower(): known[key] for key in ("User", "Account", "Partition", "QOS")},
                "comment": {"administrator": " " * 600, "job": ""},  # what is not read
            }
            file.write(",\n" * bool(i) + json.dumps(job, indent=1))
        file.write("]}\n")
