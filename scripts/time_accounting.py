"""Make accounting as Slurm prints it, text or JSON, and measure how long reading it takes.

The jobs are drawn; each run is a process of its own, so that its memory is known.
"""

import argparse
import json
import resource
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from hpcgym.trace.accounting import read_accounting
from hpcgym.trace.accounting.slurm import COMMAND

FIELDS = COMMAND.rpartition(" -o ")[2].split(",")
BEGIN = datetime(2026, 1, 1)


def rows(n: int) -> Iterator[list[object]]:
    """Yield values of `FIELDS`, one job in five a task of an array."""
    draw = np.random.default_rng(1)
    gaps, waits, runs = draw.integers(0, [[60], [40_000], [86_400]], (3, n)).tolist()
    nodes, each = draw.integers(1, [[5], [49]], (2, n)).tolist()
    submit = BEGIN
    for i, (gap, wait, run, n_nodes, cpus) in enumerate(
        zip(gaps, waits, runs, nodes, each, strict=True)
    ):
        submit += timedelta(seconds=gap)
        start = submit + timedelta(seconds=wait)
        times = [one.isoformat() for one in (submit, submit, start, start + timedelta(seconds=run))]
        job = f"{i - i % 20}_{i % 20}" if i % 5 == 0 else i + 1
        tres = f"billing={n_nodes * cpus},cpu={n_nodes * cpus},mem={cpus * 2000}M,node={n_nodes}"
        names = [
            f"user{gap}",
            f"account{gap % 9}",
            f"part{wait % 6}",
            "normal",
            "COMPLETED",
            "None",
        ]
        sizes = [run, 60 + run % 1440, n_nodes, n_nodes * cpus, n_nodes, n_nodes * cpus]
        yield [job, i + 1, *names, *times, *sizes, tres, tres, f"job{wait % 5000}"]


def write_text(path: Path, n: int) -> None:
    """Write what `sacct -P` prints."""
    with path.open("w") as file:
        file.writelines("|".join(map(str, row)) + "\n" for row in (FIELDS, *rows(n)))


def write_json(path: Path, n: int) -> None:
    """Write what `sacct --json` prints of these, as far as it is read."""
    with path.open("w") as file:
        file.write('{"jobs": [\n')
        for i, row in enumerate(rows(n)):
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


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=("text", "json"), help="what to make")
    parser.add_argument("--jobs", type=int, default=1_000_000, help="how many")
    arguments = parser.parse_args()
    with TemporaryDirectory() as folder:
        path = Path(folder, "accounting")
        (write_text if arguments.kind == "text" else write_json)(path, arguments.jobs)
        begin = time.process_time()
        found = read_accounting(path)
        taken = time.process_time() - begin
        size_mb = path.stat().st_size / 2**20
    memory_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{len(found.runs)} runs, {size_mb:.0f} MB: {taken:.1f} s, {memory_mb:.0f} MB of memory")
