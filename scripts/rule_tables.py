"""Write tables of rules, what readers of files and reruns of papers take for what, and learners.

    python scripts/rule_tables.py --csv docs/appendices

Their texts stand in research/formats.toml and papers/reruns.toml, with names in braces for what
readers and reruns have as constants; what learners reached, and how, in research/learners.toml.
"""

import argparse
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from hpcgym.machine.files import limits
from hpcgym.trace.accounting import lsf, rows, slurm
from papers.carastan_santos import run as gain
from papers.lawson import run as queues
from papers.locality import platform, sharing
from papers.locality import run as locality
from papers.rlscheduler import simulator
from papers.rr9212 import search
from research.tables import Tables, csv_option

SCRIPTS = Path(__file__).parent


def listed(*names: str) -> str:
    """Join names as texts list them."""
    return ", ".join(names)


def short(number: float) -> str:
    """Write a number without zeros in its power of ten."""
    digits, _, power = f"{number:.6g}".partition("e")
    return f"{digits}e{int(power)}" if power else digits


def of_readers() -> dict[str, str]:
    """Return the constants of readers of accounting, machines and limits."""
    tried = (*slurm.REQUEUED, *slurm.BROKEN_OFF)
    ended = [state for state in slurm.RAN if state not in (*tried, slurm.RESIZING, slurm.REVOKED)]
    unknown = [state for state in ended if slurm.RAN[state] == rows.UNKNOWN]
    waiting = [state for state, what in slurm.NOT_YET.items() if what == "still waiting"]
    return {
        "ended": listed(*(state for state in ended if state not in unknown)),
        "retried": listed(*tried),
        "completing": listed(*unknown),
        "waiting": listed(*waiting),
        "running": listed(*(state for state in slurm.NOT_YET if state not in waiting)),
        "suspended_s": f"{rows.SUSPENDED_S}",
        "failed": listed(*slurm.FAILED),
        "exclusive": f"{lsf.EXCLUSIVE:#x}",
        "alone": listed(*limits.ALONE),
        "group": listed(*limits.GROUP),
        "per_user": listed(*limits.PER_USER),
        "of_one_job": listed(*limits.OF_ONE_JOB),
    }


def of_reruns() -> dict[str, str]:
    """Return the constants of reruns."""
    layouts = {name: ",".join(map(str, kinds)) for name, kinds in platform.LAYOUTS.items()}
    return layouts | {
        "n_worst": f"{gain.N_WORST}",
        "premature_ratio": f"{gain.PREMATURE_RATIO}",
        "batch_jobs": f"{queues.BATCH_JOBS}",
        "clusters": f"{platform.CLUSTERS}",
        "cluster_hosts": f"{platform.CLUSTER_HOSTS}",
        "last_host": f"{platform.CLUSTER_HOSTS - 1}",
        "printed_link": short(platform.PRINTED_LINK),
        "bandwidth": short(platform.BANDWIDTH),
        "link": short(platform.GRIFFON_LINK),
        "latency": short(platform.LATENCY_S),
        "speed": short(platform.SPEED),
        "n_jobs": f"{locality.N_JOBS}",
        "f_limit": f"{locality.F_LIMIT}",
        "f_comp": short(locality.F_COMP),
        "saturated": short(sharing.SATURATED),
        "xnes_evaluations": f"{search.XNES_EVALUATIONS}",
        "xnes_step_size": f"{search.XNES_STEP_SIZE}",
        "subdivisions": f"{search.SUBDIVISIONS}",
        "half_of_them": f"{search.SUBDIVISIONS // 2}",
        "windows": listed(*map(str, simulator.starts_of_windows())),
        "slice": f"{simulator.SLICE:,}",
    }


def tables_of(path: Path, constants: Mapping[str, str]) -> dict[str, pd.DataFrame]:
    """Return the tables of a file of texts, with constants in place of their names."""
    texts = tomllib.loads(path.read_text(encoding="utf-8"))
    filled = {
        name: [[cell.format_map(constants) for cell in cells] for cells in table]
        for name, table in texts.items()
    }
    return {name: pd.DataFrame(table[1:], columns=table[0]) for name, table in filled.items()}


def all_tables() -> dict[str, pd.DataFrame]:
    """Return all tables, by folder and name."""
    formats = tables_of(SCRIPTS / "research" / "formats.toml", of_readers())
    reruns = tables_of(SCRIPTS / "papers" / "reruns.toml", of_reruns())
    learners = tables_of(SCRIPTS / "research" / "learners.toml", {})
    every = {"formats": formats, "reruns": reruns, "learners": learners}
    return {f"{of}/{name}": table for of, one in every.items() for name, table in one.items()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    csv_option(parser)
    given = parser.parse_args()
    for name, table in all_tables().items():
        Tables(given.csv).show(name, table, name)
