"""What `scripts/verify.py` compares: whole logs, and the schedulers to try on each."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from engines import first_difference
from hpcgym import Workload, load_workload
from hpcgym.trace import find_trace
from nodes_of_kernels import MACHINES, first_difference_on_log, log_on_nodes
from reference import POLICIES

TESTS = Path(__file__).resolve().parent

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
    {"backfill": "easy:cap=0.97", "policy": "SAF", "threshold": 200_000},
    {"backfill": "cost-benefit:cap=0.97", "policy": "SMITH-URGENT", "threshold": 200_000},
    {"backfill": "cost-benefit:cap=0.97,overdue=open", "policy": "SMITH-REG"},
]
ON_NODES = [
    {"placement": placement, **settings}
    for settings in ({"depth": 1}, {"depth": 2}, {"conservative": True, "planned": 50})
    for placement in ("lowest", "best-effort-local")
] + [
    {"placement": "lowest", "order": "SMITH-URGENT", "threshold": 200_000, "mode": mode}
    for mode in ("easy:cap=0.97", "cost-benefit", "cost-benefit:cap=0.97")
]
"""Schedulers to try on machines of nodes, as keywords of `reference_nodes.simulate`."""


def matrix(log: str) -> list[dict[str, Any]]:
    """Return the schedulers to try on a log: every policy, in fewer settings where it is large."""
    pairs = [(None, None), ("SPF", 200_000)]
    if log not in LARGE:
        pairs += [("SPF", None), (None, 200_000), (None, 72_000), ("SPF", 72_000)]
    keys = ("policy", "backfill_order", "threshold")
    cells = [dict(zip(keys, (policy, *pair), strict=True)) for policy in POLICIES for pair in pairs]
    return cells + OTHER_RULES


def matrix_on_nodes(log: str) -> list[dict[str, Any]]:
    """Return the schedulers to try on a log's machine of nodes, if it has one."""
    return ON_NODES if LOGS[log] in MACHINES else []


@cache
def workload(log: str, *, on_nodes: bool = False) -> Workload:
    """Read a log, once per process."""
    return log_on_nodes(find_trace(LOGS[log])) if on_nodes else load_workload(LOGS[log])


def check(log: str, settings: dict[str, Any]) -> tuple[int, str]:
    """Return how many jobs were compared, and the first difference, if any."""
    on_nodes = "placement" in settings
    jobs = workload(log, on_nodes=on_nodes)
    compare = first_difference_on_log if on_nodes else first_difference
    return len(jobs), compare(jobs, **settings)


def digest() -> str:
    """Name the sources that results depend on."""
    references = (
        *("reference", "reference_index", "reference_capped", "reference_nodes"),
        *("reference_nodes_capped", "reference_nodes_log", "nodes_of_kernels"),
    )
    sources = [TESTS / f"{name}.py" for name in references]
    sources += sorted((TESTS.parent / "hpcgym" / "core").rglob("*.py"))
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:12]
