"""Workloads whose logs name users and accounts, and what a simulation keeps of a tree at time 0."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np

from engines import workload_of
from hpcgym.core.orders.fair_share import fair_share
from hpcgym.core.parts.fair_share import FAIR_TREE, FairShare
from hpcgym.core.policy import compiled_policy
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.simulator import Simulator

LONG = 10**9
"""A period in which the order of time 0 holds for ever."""


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
