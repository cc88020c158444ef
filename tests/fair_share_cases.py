"""Workloads whose logs name users and accounts, and what a simulation keeps of a tree at time 0."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
from hypothesis import strategies as st

import reference_limits
from engines import workload_of
from hpcgym.core.orders.fair_share import fair_share
from hpcgym.core.parts.fair_share import FAIR_TREE, FairShare
from hpcgym.core.policy import compiled_policy
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.simulator import Simulator
from strategies import one_of

LONG = 10**9  # A period in which the order of time 0 holds for ever


def with_names(workload, **names):
    """Return a workload whose log names its users, groups and so on."""
    known = {key: np.array(values, dtype=object) for key, values in names.items()}
    log = SimpleNamespace(named=known.__getitem__)
    return replace(workload, source=log, source_row=np.arange(len(workload)))


def state_at_0(tree, kind=FAIR_TREE):
    """Return what a simulation keeps of the lines of a tree at time 0; all users have jobs then."""
    lines = [tree.lines[place] for place in tree.users]
    workload = workload_of([(0, 10, 10, 1 + row % 2, row) for row in range(len(lines))], 2)
    workload = with_names(
        workload, user=[line.user for line in lines], group=[line.account for line in lines]
    )
    kept = FairShare(kind, period=LONG, accounts=tree)
    policy = compiled_policy("SHARES", fair_share, keeps=kept)
    simulator = Simulator(workload, SchedulerSettings(policy))
    simulator.run()
    return simulator.state


def factors_of(tree, kind=FAIR_TREE):
    """Return the factor of each user at time 0, by account and name."""
    factor = state_at_0(tree, kind).factor[0]
    return {tree.lines[place][:2]: float(factor[place]) for place in tree.users}


@st.composite
def limited(draw, workload):
    """Draw accounts and limits per user and account; also return texts and the reference's."""
    n_jobs = len(workload)
    accounts = draw(st.lists(one_of((-1, 0, 1)), min_size=n_jobs, max_size=n_jobs))
    groups = {"user": workload.user.tolist(), "account": accounts}
    texts, theirs = [], []
    for _ in range(draw(st.integers(1, 3))):
        per = draw(st.sampled_from(("user", "account")))
        jobs, cpus = draw(one_of((None, 1, 1, 2))), draw(one_of((None, 8, 8)))
        submitted, name = draw(one_of((None, None, 1, 2, 3))), draw(one_of(("", "", "0")))
        most = max((workload.processors * workload.requested_time).tolist(), default=1)
        minutes = draw(one_of((None, None, -(-most // 60), most // 30 + 1)))
        cpus = cpus if jobs or submitted or minutes else 8
        stated = {"jobs": jobs, "cpus": cpus, "submitted": submitted, "minutes": minutes}
        stated["name"] = name or None
        keys = (f"{key}={each}" for key, each in stated.items() if each is not None)
        texts.append(f"limit:per={per}," + ",".join(keys))
        of = [g if g >= 0 and (not name or g == int(name)) else None for g in groups[per]]
        theirs.append(reference_limits.Limit(of, jobs, cpus, submitted, minutes=minutes))
    return replace(workload, account=np.array(accounts)), texts, theirs
