"""Every kind of setting, drawn with jobs for it: all backfilling modes, and what stands beside."""

from dataclasses import replace
from random import Random
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

import dependent_cases
import drawn_lives
import hpcgym
import nodes_lived
import nodes_of_kernels
from drawn_lives import orders
from drawn_machines import draw_case
from fair_share_cases import limited
from hpcgym.core.workload import Workload
from strategies import (
    busy_workloads,
    capped,
    indexes,
    multi_queues,
    one_of,
    policies,
    settings_for,
    slurms,
    workloads,
)

RESERVING = (
    *("conservative", "conservative:compress=shift"),
    *("depth:k=1", "depth:k=2", "depth:k=5", "depth:k=inf"),
)

MODES = (
    *RESERVING,
    *("look-ahead", "look-ahead:window=1", "look-ahead:window=3", "look-ahead:window=inf"),
    *("relaxed", "relaxed:omega=0", "relaxed:omega=0.3", "relaxed:omega=inf"),
    *("slack:c=0", "slack:c=0.5", "slack:c=1", "slack:c=1000"),
    *("multi-queue", "multi-queue:bounds=3", "multi-queue:bounds=1/3/5/20"),
    "multi-queue:bounds=2/10,delay=7,batch=3",
    "multi-queue:bounds=5,delay=20,batch=2,tolerance=0,delta1=printed",
    "multi-queue:bounds=1/2/3/4/5/10/11,delay=1,batch=1",
    *("easy:cap=0.4,long=10", "cost-benefit:kappa=4,cap=0.6,long=11"),
    "cost-benefit:kappa=1,cap=0.4,long=10,overdue=open",
    *("slurm", "slurm:resolution=1,interval=1"),
    "slurm:max_job_test=2,window=1,resolution=7,interval=5",
    "slurm:max_job_user=1,resolution=3,interval=2",
    *("committed", "committed:fill=before"),
)
"""All modes, with bounds and delays among the times that are drawn."""

EVERY_MODE = {mode: st.just(mode) for mode in ("none", "easy", *MODES)} | {
    "drawn queues": multi_queues(),
    "drawn cycles": slurms,
    "drawn caps and costs": capped(),
}
"""Strategies of texts: each mode as it is, and those of many numbers with any of them."""


class Case(NamedTuple):
    """What `hpcgym.simulate` is given."""

    workload: Workload
    settings: dict[str, Any]

    def run(self, simulate=hpcgym.simulate):
        """Return the schedule."""
        return simulate(self.workload, **self.settings)


jobs = workloads() | busy_workloads()
further = st.fixed_dictionaries(
    {
        "threshold": one_of((None, 0, 30, 100)),
        "kill_at_limit": st.booleans(),
        "estimates": one_of(("requested", "requested", "exact")),
    }
)


@st.composite
def of_mode(draw, mode):
    """Draw jobs under a mode, in one kind of instants or the other."""
    workload = draw(jobs)
    settings = draw(settings_for(workload, mode)) | {"policy": draw(policies)}
    if not isinstance(settings.get("estimates", ""), str):
        settings["estimates"] = np.array(settings["estimates"])
    return Case(workload, settings)


@st.composite
def with_trials(draw, *, restart=False, users=False):
    """Draw jobs that may be tried, those that must not be killed among them."""
    workload, mode = draw(busy_workloads()), draw(drawn_lives.modes(restart=restart))
    if users:
        trial = replace(mode.trial, users=0.5, seed=draw(st.integers(0, 9)))
        mode = replace(mode, trial=trial)
    elif draw(st.booleans()):
        seed = draw(st.integers(0, 999))
        requeue = np.random.default_rng(seed).random(len(workload)) < 0.7
        workload = replace(workload, requeue=requeue)
    still = st.sampled_from(("FCFS", "SAF", "SPF", "LCFS"))
    settings = draw(further) | {"policy": draw(still if restart else orders)}
    return Case(workload, settings | {"backfill": str(mode)})


@st.composite
def with_limits(draw):
    """Draw jobs within limits."""
    workload, events, _ = draw(limited(draw(workloads())))
    mode = draw(one_of(("none", "easy", "slurm", "slurm:resolution=1,interval=1")))
    return Case(
        workload, draw(further) | {"policy": draw(policies), "backfill": mode, "events": events}
    )


@st.composite
def with_outages(draw):
    """Draw jobs, some of which may be lost, and outages of processors, beside trials too."""
    workload = draw(jobs)
    if draw(st.booleans()):
        flags = draw(st.integers(0, 2 ** len(workload) - 1))
        workload = replace(workload, requeue=(flags >> np.arange(len(workload)) & 1) == 1)
    mode = draw(one_of(("none", "easy")) | drawn_lives.modes(overhead=False).map(str))
    events = draw(drawn_lives.outages(workload.machine_processors))
    return Case(
        workload, draw(further) | {"policy": draw(orders), "backfill": mode, "events": events}
    )


@st.composite
def with_dependencies(draw):
    """Draw jobs in chains and fans, held ones, and such as may be cancelled, in every mode."""
    tables = dependent_cases.tables() | dependent_cases.conditional_tables()
    workload = dependent_cases.workload_of(draw(tables))
    settings = draw(further) | {"policy": draw(policies), "backfill": draw(one_of(MODES))}
    return Case(workload, settings | {"dependencies": draw(one_of(("start", "feedback")))})


@st.composite
def with_shares(draw):
    """Draw jobs in orders by what users have used."""
    weights = "multifactor:age=1000,max_age=60,fairshare={},half_life={},period={}"
    order = draw(
        st.just("fair-share")
        | st.builds(weights.format, one_of((10, 5000)), one_of((0, 100)), one_of((60, 600)))
    )
    mode = draw(one_of(("none", "easy", "slurm", "conservative", "depth:k=2")))
    return Case(draw(jobs), draw(further) | {"policy": order, "backfill": mode})


@st.composite
def with_records(draw):
    """Draw jobs in orders by what users' jobs have run, by records, regression or a network."""
    order = draw(indexes())
    mode = draw(one_of(("none", "easy", "conservative:compress=shift", "depth:k=2")))
    return Case(draw(jobs), draw(further) | {"policy": order, "backfill": mode})


@st.composite
def with_predictions(draw):
    """Draw jobs whose run times are predicted, and corrected."""
    mode = draw(one_of(("none", "easy", "conservative", "depth:k=2", "look-ahead", "relaxed")))
    settings = {
        "policy": draw(policies),
        "backfill": mode,
        "estimates": draw(one_of(("recent", "f-model:f=3,seed=1", "doubled"))),
        "correction": draw(one_of(("reqtime", "tsafrir", "doubling"))),
    }
    return Case(draw(jobs), settings)


@st.composite
def on_nodes(draw, *modes):
    """Draw jobs on a machine of nodes, under modes or else with reservations of any number."""
    random = Random(draw(st.integers(0, 2**16)))
    while True:
        machine, table, settings = draw_case(random, most_nodes=6, most_jobs=14)
        given = nodes_of_kernels.settings_of(**settings)
        refused = nodes_of_kernels.refused_rows(machine, table, given["placement"])
        table = [row for place, row in enumerate(table) if place not in refused]
        if table:
            break
    users = [random.choice((-1, 0, 0, 1)) for _ in table]
    workload = nodes_of_kernels.workload_of(
        machine, [row._replace(user=user) for row, user in zip(table, users, strict=True)]
    )
    if modes:
        given |= {"backfill": random.choice(modes), "backfill_order": None}
    return Case(workload, given)


@st.composite
def lived_on_nodes(draw):
    """Draw jobs that are tried and give way on nodes that go down."""
    while not (lived := nodes_lived.draw_hit(draw(nodes_lived.draws), nodes_lived.YOUNG)).case.jobs:
        pass
    given = lived.given
    return Case(lived.workload, given | {"estimates": np.array(given["estimates"])})


SETTINGS = {mode: of_mode(mode) for mode in ("none", "easy", *MODES)} | {
    "trials": with_trials(),
    "trials that some users take part in": with_trials(users=True),
    "trials without promotion": with_trials(restart=True),
    "limits": with_limits(),
    "outages": with_outages(),
    "dependencies": with_dependencies(),
    "shares": with_shares(),
    "records": with_records(),
    "predictions": with_predictions(),
    "nodes": on_nodes(),
    "Slurm on nodes": on_nodes("slurm", "slurm:max_job_user=1,resolution=3,interval=2"),
    "lives on nodes": lived_on_nodes(),
    "trials on nodes": on_nodes("easy+trial:limit=5", "cost-benefit:kappa=1+trial:limit=5,young=9"),
}
"""Kinds of settings, and how cases of each are drawn."""
