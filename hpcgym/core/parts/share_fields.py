"""Observation fields of a job's user: shares, usage and what fair share makes of both.

They are as of the begin of the period, like the order of a policy that goes by usage. A period's
first field costs what its first order costs (`hpcgym.core.parts.fair_share`), each other O(depth of
the tree).

Source: Specification, section 10, "Observation"; section 16, "Shares".
"""

from collections.abc import Callable

from hpcgym.core.kernels.types import Jobs
from hpcgym.core.observation_fields import OwnField
from hpcgym.core.parts.fair_share import (
    PARENT,
    FairShare,
    FairShareSim,
    line_of,
    of_line,
    refresh,
    share_among_siblings,
)


def show_share(jobs: Jobs, sim: FairShareSim, job: int) -> float:
    """Return the share of the machine that a job's user was given."""
    share, line = 1.0, line_of(jobs, sim, job)
    while line > 0:
        share *= share_among_siblings(jobs, sim, line)
        line = of_line(jobs, sim, PARENT, line)
    return share


def show_usage(jobs: Jobs, sim: FairShareSim, job: int) -> float:
    """Return the share of all usage that is a job's user's."""
    refresh(jobs, sim)
    return sim.seen[line_of(jobs, sim, job)] / sim.seen[0] if sim.seen[0] > 0.0 else 0.0


def show_factor(jobs: Jobs, sim: FairShareSim, job: int) -> float:
    """Return the factor of a job's user, 1 = first."""
    refresh(jobs, sim)
    return sim.factor[line_of(jobs, sim, job)]


def _field(name: str, meaning: str, show: Callable[..., float]) -> OwnField:
    """Return a field that has usage kept."""
    return OwnField(name, meaning, "itself", 0, 1, show, FairShare())


user_share = _field("user_share", "share of the machine that the user was given", show_share)
user_usage = _field("user_usage", "share of all usage that is the user's", show_usage)
user_fair_share = _field("user_fair_share", "the user's factor, 1 = first", show_factor)
