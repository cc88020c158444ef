"""Parts of the scheduler of every kind, and which of them do not go together."""

from __future__ import annotations

from typing import Any

import pandas as pd

import hpcgym
from hpcgym.base.errors import PolicyError
from hpcgym.core.backfill import MODES, OwnSimulator, as_mode
from hpcgym.core.loaders import SIMULATORS
from hpcgym.core.own_backfill import OwnBackfill
from hpcgym.core.settings import SchedulerSettings

MACHINE = hpcgym.Machine.from_dict({"nodes": [{"count": 2, "cpus": 4}]})


class InPython(OwnBackfill):
    """Starts nothing out of turn."""

    def start(self, now: Any) -> Any:
        """Start the jobs before the first that does not fit."""
        profile, started = now.profile(), []
        for job in now.queue:
            if not profile.fits(job):
                break
            profile.reserve(job, now.now)
            started.append(job)
        return started


FULL = {"depth": "depth:k=2", "slack": "slack:c=1"}
"""Texts of modes that need a parameter."""

MORE = {
    "easy:cap": "easy:cap=0.5,long=9",
    "easy+trial": "easy+trial:limit=5",
    "easy+trial:restart": "easy+trial:limit=5,restart=9",
    "easy+trial:overhead": "easy+trial:limit=5,overhead=2",
    "conservative:compress=shift": "conservative:compress=shift",
    "conservative:planned": "conservative:planned=3",
    "slurm:max_job_part": "slurm:max_job_part=3",
    "own mode": InPython(),
}
"""Modes with parameters that change what they go with, and one of your own in Python."""

EVENTS = {
    "outage": "outage:from=5,to=9,processors=1",
    "outage of nodes": "outage:from=5,to=9,nodes=0",
    "limit": "limit:per=user,jobs=2",
    "price": "price:seed=1",
    "price that holds": "price:seed=1,kappa=5",
}

ORDERS = {
    "FCFS": "FCFS",
    "SAF": "SAF",
    "WFP3": "WFP3",
    "SAF-REG": "SAF-REG",
    "fair-share": "fair-share",
    "own formula": lambda jobs: jobs.e * jobs.q,
    "BANDIT-UCB": "BANDIT-UCB",
    "DYNP": "DYNP",
    "PLANNER": "PLANNER",
}

PARTS: dict[str, dict[str, Any]] = {
    **{mode: {"backfill": FULL.get(mode, mode)} for mode in (*MODES, *SIMULATORS)},
    **{name: {"backfill": mode} for name, mode in MORE.items()},
    **{name: {"policy": order} for name, order in ORDERS.items()},
    **{
        f"backfill order {name}": {"backfill_order": ORDERS[name]}
        for name in ("SAF", "SAF-REG", "own formula")
    },
    **{name: {"events": event} for name, event in EVENTS.items()},
    "pyss": {"event_semantics": "pyss", "estimates": "exact"},
    "one-by-one": {"event_semantics": "one-by-one"},
    "correction": {"correction": "tsafrir", "estimates": "recent"},
    "own predictor": {"estimates": lambda job: job.requested_time},
    "dependencies": {"dependencies": "start"},
    "nodes": {"machine": MACHINE},
    "counted processors": {"machine": None},
}
"""What each part sets; "machine" is no setting."""

FAMILIES = {
    "orders but FCFS": (*ORDERS,)[1:],
    "orders that plan": ("DYNP", "PLANNER"),
    "backfill orders": tuple(name for name in PARTS if name.startswith("backfill order")),
    "outages": ("outage", "outage of nodes"),
    "prices": ("price", "price that holds"),
    "other event semantics": ("pyss", "one-by-one"),
}
"""Parts that a row of the table names together, where all of them are refused."""


def beside(first: str, second: str) -> dict[str, Any] | None:
    """Return what two parts set together; None where both set the same."""
    one, two = PARTS[first], PARTS[second]
    if "events" in one and "events" in two:
        return {"events": f"{one['events']};{two['events']}"}
    return None if set(one) & set(two) else one | two


def refusal(together: dict[str, Any]) -> str:
    """Return why settings are refused, on any machine where they name none; "" = they are not."""
    given = dict(together)
    machines = [given.pop("machine")] if "machine" in given else [None, MACHINE]
    try:
        settings = SchedulerSettings(**given)
    except PolicyError as error:
        return str(error)
    reasons = [_refusal_on(settings, machine) for machine in machines]
    return reasons[0] if all(reasons) else ""


def _refusal_on(settings: SchedulerSettings, machine: hpcgym.Machine | None) -> str:
    """Return why settings are refused on a machine, None = counted processors; "" = not."""
    mode = as_mode(settings.backfill)
    if isinstance(mode, OwnSimulator) and "nodes" in mode.knows:
        return ""
    try:
        settings.refuse_on(machine)
    except PolicyError as error:
        return str(error)
    return ""


def table() -> pd.DataFrame:
    """Return the parts that do not go with others, and those further down that they refuse."""
    rows: dict[str, list[str]] = {}
    for number, first in enumerate(PARTS):
        pairs = {other: beside(first, other) for other in [*PARTS][number + 1 :]}
        others = [other for other, made in pairs.items() if made and refusal(made)]
        if others:
            rows.setdefault(", ".join(_by_family(others)), []).append(first)
    return pd.DataFrame({"part": map(", ".join, rows.values()), "not beside": rows.keys()})


def _by_family(parts: list[str]) -> list[str]:
    """Return parts in order, with the name of a family in place of the first of all its parts."""
    for family, members in FAMILIES.items():
        if {*members} <= {*parts}:
            at = parts.index(members[0])
            before, after = parts[:at], parts[at:]
            parts = [*before, family, *(part for part in after if part not in members)]
    return parts
