"""Compare hpcgym with the plain-Python reference, job by job, on whole real logs.

Results are kept as they come, so an interrupted run goes on where it stopped. Results of other
sources of the kernels, or of the reference, do not count.

    HPCGYM_TRACES=FOLDER python scripts/verify.py --logs kth-sp2 ctc-sp2 --on local:2
    HPCGYM_TRACES=FOLDER python scripts/verify.py --logs kth-sp2 hpc2n --nodes

Two logs are also put on machines of nodes, and nodes and chunks are compared too.
"""

import argparse
import csv
import json
import sys
from concurrent.futures import as_completed
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))


def main() -> int:
    from rich.progress import Progress

    from hpcgym.base.errors import HpcgymError
    from hpcgym.evaluation.executors import executor_of
    from hpcgym.trace import find_trace
    from whole_logs import LOGS, check, digest, matrix, matrix_on_nodes

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--logs", nargs="+", choices=LOGS, default=list(LOGS), help="default: all")
    parser.add_argument("--nodes", action="store_true", help="on machines of nodes only")
    parser.add_argument("--on", default="local", help="as of `hpcgym evaluate`; default local")
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
    record = options.record.open("a+", newline="")
    with record as file, Progress() as bar, executor_of(options.on) as pool:
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
