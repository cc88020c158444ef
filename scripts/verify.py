"""Compare hpcgym with the plain-Python reference, job by job, on whole real logs.

Results are kept as they come, so an interrupted run goes on where it stopped. Results of other
sources of the kernels, or of the reference, do not count.

    HPCGYM_TRACES=FOLDER python scripts/verify.py --logs kth-sp2 ctc-sp2 --processes 2
    HPCGYM_TRACES=FOLDER python scripts/verify.py --logs kth-sp2 hpc2n --nodes

Two logs are also put on machines of nodes, and nodes and chunks are compared too.
"""

import argparse
import csv
import hashlib
import json
import multiprocessing
import os
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

LOGS = {
    "kth-sp2": "KTH-SP2-1996-2.1-cln",
    "ctc-sp2": "CTC-SP2-1996-3.1-cln",
    "sdsc-sp2": "SDSC-SP2-1998-4.2-cln",
    "sdsc-par": "SDSC-Par-1996-3.1-cln",
    "sdsc-blue": "SDSC-BLUE-2000-4.2-cln",
    "hpc2n": "HPC2N-2002-2.2-cln",
    "cea-curie": "CEA-Curie-2011-2.1-cln",
}
LARGE = ("sdsc-blue", "hpc2n", "cea-curie")
OTHER_RULES = [
    {"policy": [0.1, 0.2, -0.3, 0.1, 0.2, 0.1]},
    {"event_semantics": "pyss"},
    {"event_semantics": "pyss", "estimates": "exact", "backfill_order": "SPF"},
    {"event_semantics": "pyss", "policy": "SAF", "threshold": 200_000},
    {"kill_at_limit": False, "policy": "SAF", "threshold": 200_000},
    {"estimates": "exact", "policy": "SMITH"},
    {"backfill": "none", "policy": "SPF", "threshold": 72_000},
]
ON_NODES = [
    {"placement": placement, **settings}
    for settings in ({"depth": 1}, {"depth": 2}, {"conservative": True, "planned": 50})
    for placement in ("lowest", "best-effort-local")
]
"""Schedulers to try on machines of nodes, as keywords of `reference_nodes.simulate`."""


def matrix(log: str) -> list[dict[str, Any]]:
    """Return the schedulers to try on a log: every policy, in fewer settings where it is large."""
    from reference import POLICIES

    pairs = [(None, None), ("SPF", 200_000)]
    if log not in LARGE:
        pairs += [("SPF", None), (None, 200_000), (None, 72_000), ("SPF", 72_000)]
    keys = ("policy", "backfill_order", "threshold")
    cells = [dict(zip(keys, (policy, *pair), strict=True)) for policy in POLICIES for pair in pairs]
    return cells + OTHER_RULES


def matrix_on_nodes(log: str) -> list[dict[str, Any]]:
    """Return the schedulers to try on a log's machine of nodes, if it has one."""
    from nodes_of_kernels import MACHINES

    return ON_NODES if LOGS[log] in MACHINES else []


@cache
def workload(log: str, *, on_nodes: bool = False) -> Any:
    """Read a log, once per process."""
    from hpcgym import load_workload
    from hpcgym.trace import find_trace
    from nodes_of_kernels import log_on_nodes

    return log_on_nodes(find_trace(LOGS[log])) if on_nodes else load_workload(LOGS[log])


def check(log: str, settings: dict[str, Any]) -> tuple[int, str]:
    """Return how many jobs were compared, and the first difference, if any."""
    from engines import first_difference
    from nodes_of_kernels import first_difference_on_log

    on_nodes = "placement" in settings
    jobs = workload(log, on_nodes=on_nodes)
    compare = first_difference_on_log if on_nodes else first_difference
    return len(jobs), compare(jobs, **settings)


def digest() -> str:
    """Name the sources that results depend on."""
    references = ("reference", "reference_nodes", "reference_nodes_log", "nodes_of_kernels")
    sources = [ROOT / "tests" / f"{name}.py" for name in references]
    sources += sorted((ROOT / "hpcgym" / "core").rglob("*.py"))
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:12]


def main() -> int:
    from rich.progress import Progress

    from hpcgym.errors import HpcgymError
    from hpcgym.trace import find_trace

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--logs", nargs="+", choices=LOGS, default=list(LOGS), help="default: all")
    parser.add_argument("--nodes", action="store_true", help="on machines of nodes only")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--record", type=Path, default=ROOT / "runs" / "verify.csv")
    options = parser.parse_args()
    try:
        for log in options.logs:
            find_trace(LOGS[log])
    except HpcgymError as error:
        parser.error(str(error))
    sources = digest()
    cells = {
        (sources, log, json.dumps(settings)): (log, settings)
        for log in options.logs
        for settings in ([] if options.nodes else matrix(log)) + matrix_on_nodes(log)
    }
    options.record.parent.mkdir(parents=True, exist_ok=True)
    pool = ProcessPoolExecutor(options.processes, multiprocessing.get_context("spawn"))
    with options.record.open("a+", newline="") as file, Progress() as bar, pool:
        file.seek(0)
        kept = {tuple(row[:3]): (int(row[3]), row[4]) for row in csv.reader(file)}
        done = {key: kept[key] for key in cells if key in kept}
        task = bar.add_task("schedules", total=len(cells), completed=len(done))
        jobs = {pool.submit(check, *cell): key for key, cell in cells.items() if key not in done}
        for job in as_completed(jobs):
            key = jobs[job]
            done[key] = job.result()
            csv.writer(file).writerow([*key, *done[key]])
            file.flush()
            bar.advance(task)
            if difference := done[key][1]:
                bar.console.print(*cells[key], difference, markup=False)
    equal = sum(not difference for _, difference in done.values())
    n_jobs, logs = sum(n for n, _ in done.values()), len(options.logs)
    print(f"{equal} of {len(cells)} schedules ({logs} logs, {n_jobs:,} jobs) equal the reference.")
    return int(equal < len(cells))


if __name__ == "__main__":
    sys.exit(main())
