"""Print what evaluations cost, as the tables of docs/costs.md.

    python3 scripts/costs.py --workers 1 2 4 8 16 --output costs.md

Logs are those of the suite that are here (HPCGYM_TRACES); the bundled ones always are. hpcgym need
not be installed, only what it depends on. Nothing should run beside it. Estimates are for many
agents on many logs, from what is measured here.
"""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
AGENTS = ("SAF", "SMITH-REG", "URGENT-YOUNG", "PPO-ORDER")
"""A rule, one that predicts, one that starts jobs again, and a network that looks at each job."""

LEFT_OUT = (
    *("of it at the end, s", "longest task, s", "load", "reading, s", "keys, ms"),
    *("kept of a week, kB", "tasks", "keys, core-hours", "kept, GB"),
    *("look whether a result is kept", "a store is read when it is opened, each GB"),
)
"""Columns and rows that are printed, and not written."""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4], metavar="N")
    parser.add_argument("--logs", nargs="+", metavar="SCENARIO", help="default: the suite's")
    parser.add_argument("--agents", nargs="+", default=AGENTS, metavar="NAME")
    parser.add_argument("--weeks", type=int, default=8, help="weeks of each log that are timed")
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="work that workers share, for one of them"
    )
    parser.add_argument("--many-agents", type=int, default=1_000, help="of the estimate")
    parser.add_argument("--many-logs", type=int, default=40, help="of the estimate")
    parser.add_argument("--cores", type=int, nargs="+", default=[64, 1_000], help="likewise")
    parser.add_argument("--output", type=Path, metavar="FILE", help="Markdown; default: print")
    parser.add_argument("--csv", type=Path, metavar="FOLDER", help="where tables are written, too")
    given = parser.parse_args()
    if min(*given.workers, given.weeks, given.many_agents, given.many_logs, *given.cores) < 1:
        parser.error("numbers begin at 1")

    from hpcgym.base.errors import HpcgymError
    from hpcgym.base.output import ensure_writable, writing
    from hpcgym.base.progress import shown

    try:
        if given.output is not None:
            ensure_writable(given.output, force=True)
        with shown():
            text = tables(given)
        if given.output is None:
            print(text)
            return 0
        with writing(given.output, force=True) as path:
            path.write_text(text + "\n", "utf-8")
    except HpcgymError as error:
        sys.exit(f"costs: {error}")
    print(f"wrote {given.output}")
    return 0


def tables(given: argparse.Namespace) -> str:
    """Measure everything and return the tables."""
    import pandas as pd

    from hpcgym.agent.shelf import load_agent
    from hpcgym.base.progress import steps
    from hpcgym.base.text_table import machine_text
    from hpcgym.evaluation.suite.definition import load_suite
    from research import costs
    from research.tables import Tables

    names = given.logs or [log.scenario for log in load_suite().logs]
    here, missing = costs.logs_here(names)
    machine = [costs.machine() | {"logs that are not here": ", ".join(missing) or "none"}]
    agents = [load_agent(name) for name in given.agents]
    shared_on = next((name for name in costs.SPEED_LOGS if name in here), here[0])
    with steps(len(here) + len(given.workers) + 2, "costs", "parts") as work:
        measured = costs.rates()
        work.advance()
        by_log = []
        for name in here:
            by_log.append(costs.log_cost(name, agents, given.weeks))
            work.advance()
        shared = []
        for run in costs.speed_up(shared_on, given.workers, given.seconds):
            shared.append(run)
            work.advance()
    campaign = costs.Campaign(given.many_agents, given.many_logs, given.cores)
    what = f"{campaign.n_agents:,} agents on {campaign.n_logs} logs"
    rows = {
        "Machine": machine,
        f"Workers side by side: {shared[0].n_tasks:,} tasks on {shared_on}": costs.speed_rows(
            shared[0], shared[1:]
        ),
        "An agent on the suite": costs.cost_rows(by_log),
        "The leading process": costs.rate_rows(measured, shared[0]),
        f"Estimate of {what}": costs.estimate_rows(by_log, measured, campaign),
        "Workers that a leading process keeps busy": costs.limit_rows(by_log, measured, shared[-1]),
    }
    names = ("machine", "workers", "by_log", "leading_process", "estimate", "most_workers")
    frames = {title: pd.DataFrame(list(cells)) for title, cells in rows.items()}
    for name, frame in zip(names, frames.values(), strict=True):
        rows, columns = (
            [one for one in some if one not in LEFT_OUT] for some in (frame.iloc[:, 0], frame)
        )
        Tables(given.csv).write(name, frame, rows, columns)
    parts = (f"## {title}\n\n{machine_text(frame, 'markdown')}" for title, frame in frames.items())
    return "\n\n".join(parts)


if __name__ == "__main__":
    sys.path[:0] = [str(ROOT)]
    sys.exit(main())
