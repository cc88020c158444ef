"""Fair share: what users and accounts have used of the machine, and who comes first by it.

A user's usage is processors times seconds, charged as jobs run, and it decays: what was used in
interval k of the clock counts 2^(-(K - k) r) in interval K. Only the weight of the interval at hand
is computed, so that usage in the past costs nothing. It is kept in units of 2^`share_epoch`, by
which no usage changes but in its exponent. So equal usage stays equal, whenever it was added up.

Once a period the order is made anew, by the usage at the period's begin. With a period of 1 s that
is each pass. `refresh` does it where an order asks, so passes whose order cannot matter cost
nothing.

Cost: O(1) at each start and end, and for each interval that a user's jobs run on; O(users with
running jobs) at the first event of a period; O(users * depth of the tree) where an order asks the
first time in it, as ranks hardly change. Nothing grows with the queue.

Source: Specification, section 16, "Usage" and "Shares".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hpcgym.base.errors import WorkloadError
from hpcgym.core import constants as s
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.events import Event
from hpcgym.core.kernels.types import Counter, FloatVector, IntVector, Jobs, Sim, empty
from hpcgym.core.workload import Workload
from hpcgym.machine.accounts import Accounts

HEARS = s.ON_START | s.ON_END | s.ON_LOSE | s.ON_EVICT

EVERY_PASS = 1  # the period that is each pass

CLASSIC, FAIR_TREE = 0, 1
N_LINES, KIND, PERIOD, INTERVAL, HALVINGS, PER, DAMPENING, PASSED, N_HEAD = range(9)
"""Numbers: lines of the tree, what shares are made of, s of a period and of an interval of decay,
halvings in an interval as a fraction, what divides the exponent of 2, s of the first interval that
are over at time 0. Then, by line: its parent, its shares, 1 for users, usage at time 0."""

PARENT, SHARES, IS_USER, USED = range(4)

MICRO = 1_000_000  # half-lives are whole numbers of so many in a second
NEVER_MORE = 400  # powers of 2 that usage may lie apart before its unit is moved


@dataclass(frozen=True)
class FairShare(Event):
    """What users have used, as a policy needs it."""

    NAME: ClassVar[str] = "usage"
    KNOWS: ClassVar[tuple[str, ...]] = ("nodes", "waits")

    kind: int = FAIR_TREE  # what shares are made of, `CLASSIC` or `FAIR_TREE`
    half_life: float = 604_800.0  # after which usage counts half, s; 0 = it counts for ever
    interval: int = 300  # after which usage decays, s
    period: int = 300  # after which the order is made anew, s
    dampening: int = 1  # Slurm's FairShareDampeningFactor, of `CLASSIC`
    passed: int = 0  # how much of the first interval is over at time 0, s
    accounts: Accounts | None = None  # the tree; None = all users are equal

    def tree(self, workload: Workload) -> Accounts:
        """Return the tree that the users of a workload are in."""
        return self.accounts or Accounts.flat(len(workload.history.completed))

    def numbers(self, workload: Workload) -> Sequence[int]:
        """Return the head, then each column of the tree."""
        tree = self.tree(workload)
        n = len(tree.lines)
        halvings = self.interval * MICRO, round(self.half_life * MICRO)
        decay = halvings if self.half_life else (0, 1)
        head = n, self.kind, self.period, self.interval, *decay, self.dampening, self.passed
        is_user = np.zeros(n, dtype=np.int64)
        is_user[list(tree.users)] = 1
        shares = [line.shares for line in tree.lines]
        usage = [round(line.usage) for line in tree.lines]
        return [*head, *tree.parents, *shares, *is_user.tolist(), *usage]

    def of_jobs(self, workload: Workload) -> NDArray[np.int64]:
        """Return the line of each job's user in the tree, shape (n_jobs, 1).

        Raises:
            WorkloadError: The tree has no such user.
        """
        if self.accounts is None:
            return workload.user_index[:, None] + 1
        users, accounts = workload.named("user"), workload.named("account")
        pairs = dict.fromkeys(zip(accounts.tolist(), users.tolist(), strict=True))
        at = {pair: self.accounts.row_of(*pair) for pair in pairs}
        missing = [pair for pair, line in at.items() if line is None]
        if missing:
            account, user = missing[0]
            raise WorkloadError(
                f"{workload.name}: the accounts have no user {user!r}"
                f"{f' of account {account!r}' if account else ' with a single account'} "
                f"({len(missing)} such users of jobs)"
            )
        lines = [at[pair] for pair in zip(accounts.tolist(), users.tolist(), strict=True)]
        return np.array(lines, dtype=np.int64)[:, None]

    def n_shares(self, workload: Workload) -> int:
        """Return the lines of the tree, for which a simulation needs room."""
        return len(self.tree(workload).lines)


class FairShareSim(Sim):
    """What fair share adds to a simulation."""

    shares_begun: Counter  # 1 once the arrays below are those of time 0
    share_event: Counter  # the event's place in `Jobs.event_pass`
    share_period: Counter  # the period whose order is made
    shares_due: Counter  # 1 = `factor` is to be computed anew from `seen`
    share_epoch: Counter  # `used` is in units of 2 to this power
    n_ranked: Counter  # users
    n_active: Counter  # users whose usage may be more than `seen`, or may be settled

    used: FloatVector = empty("shares")  # of each user up to the interval at hand
    used_now: IntVector = empty("shares")  # within it, processors times s
    used_by: IntVector = empty("shares")  # processors of the user's running jobs
    used_at: IntVector = empty("shares")  # instant up to which this is charged, s
    seen: FloatVector = empty("shares")
    """Usage at the period's begin; of accounts that of all users below, once an order asked."""
    active: IntVector = empty("shares")  # those users
    is_active: IntVector = empty("shares")  # 1 = a user is one of them
    shares_below: IntVector = empty("shares")  # shares of all that are right below an account
    n_above: IntVector = empty("shares")  # accounts above
    level: FloatVector = empty("shares")
    """Shares over usage among siblings, or effective usage (`CLASSIC`)."""
    norm: FloatVector = empty("shares")  # share of the whole machine, of `CLASSIC`
    ranked: IntVector = empty("shares")  # users, those who come first at the front
    factor: FloatVector = empty("shares")  # of each user, from 0 to 1, 1 = first


@kernel(inlined=True)
def head(jobs: Jobs, sim: FairShareSim, which: int) -> int:
    """Return a number of the head."""
    return int(jobs.event_data[jobs.event_first[sim.share_event] + which])


@kernel(inlined=True)
def of_line(jobs: Jobs, sim: FairShareSim, column: int, line: int) -> int:
    """Return a number of a line of the tree."""
    first = jobs.event_first[sim.share_event]
    return int(jobs.event_data[first + N_HEAD + column * jobs.event_data[first + N_LINES] + line])


@kernel(inlined=True)
def interval_of(jobs: Jobs, sim: FairShareSim, instant: int) -> int:
    """Return the number of the interval of decay that an instant is in."""
    return int((instant + head(jobs, sim, PASSED)) // head(jobs, sim, INTERVAL))


@kernel(inlined=True)
def line_of(jobs: Jobs, sim: FairShareSim, job: int) -> int:
    """Return the line of a job's user."""
    return int(jobs.known[job, jobs.known_first[sim.share_event]])


@kernel
def weight_of(jobs: Jobs, sim: FairShareSim, interval: int) -> float:
    """Return what a second of a processor in an interval weighs, in the unit of `used`.

    Moves the unit where weights would lie too far apart: writes `used`, `seen` and `share_epoch`.
    """
    exponent = interval * (head(jobs, sim, HALVINGS) / head(jobs, sim, PER))
    whole = math.floor(exponent)
    if whole - sim.share_epoch > NEVER_MORE:
        for line in range(head(jobs, sim, N_LINES)):
            sim.used[line] = math.ldexp(sim.used[line], int(sim.share_epoch - whole))
            sim.seen[line] = math.ldexp(sim.seen[line], int(sim.share_epoch - whole))
        sim.share_epoch = whole
    return math.ldexp(2.0 ** (exponent - whole), int(whole - sim.share_epoch))


@kernel
def settle(jobs: Jobs, sim: FairShareSim, line: int, interval: int) -> None:
    """Add what a user used within an interval that is over; write `used` and `used_now`."""
    if sim.used_now[line] > 0:
        weight = weight_of(jobs, sim, interval)
        sim.used[line] += sim.used_now[line] * weight
        sim.used_now[line] = 0


@kernel
def charge(jobs: Jobs, sim: FairShareSim, line: int, until: int) -> None:
    """Charge a user for its running jobs until an instant, s; write what is used of it."""
    at, last = sim.used_at[line], interval_of(jobs, sim, until)
    interval = interval_of(jobs, sim, at)
    while interval < last:
        over = (interval + 1) * head(jobs, sim, INTERVAL) - head(jobs, sim, PASSED)
        sim.used_now[line] += sim.used_by[line] * (over - at)
        settle(jobs, sim, line, interval)
        at, interval = over, interval + 1
        if sim.used_by[line] == 0:
            break  # it uses nothing until then
    sim.used_now[line] += sim.used_by[line] * (until - at)
    sim.used_at[line] = until


@kernel
def begin(jobs: Jobs, sim: FairShareSim) -> None:
    """Begin with the usage at time 0; write all that the simulation has of fair share."""
    sim.shares_begun = 1
    sim.n_ranked = 0
    for line in range(head(jobs, sim, N_LINES)):
        parent = of_line(jobs, sim, PARENT, line)
        sim.used[line] = sim.seen[line] = 0.0
        sim.used_now[line] = sim.used_by[line] = sim.used_at[line] = sim.is_active[line] = 0
        sim.shares_below[line] = 0
        sim.n_above[line] = 0
        if line > 0:
            sim.shares_below[parent] += of_line(jobs, sim, SHARES, line)
            sim.n_above[line] = sim.n_above[parent] + 1
        if of_line(jobs, sim, IS_USER, line) == 1:
            sim.used[line] = sim.seen[line] = float(of_line(jobs, sim, USED, line))
            sim.ranked[sim.n_ranked] = line
            sim.n_ranked += 1
    see(jobs, sim, 0)


@kernel
def see(jobs: Jobs, sim: FairShareSim, instant: int) -> None:
    """Go by users' usage up to an instant, s, which begins a period."""
    sim.share_period = instant // head(jobs, sim, PERIOD)
    sim.shares_due = 1
    weight = weight_of(jobs, sim, interval_of(jobs, sim, instant))
    kept = 0
    for position in range(sim.n_active):
        line = sim.active[position]
        charge(jobs, sim, line, instant)
        sim.seen[line] = sim.used[line] + sim.used_now[line] * weight
        if sim.used_by[line] > 0 or sim.used_now[line] > 0:
            sim.active[kept] = line
            kept += 1
        else:
            sim.is_active[line] = 0
    sim.n_active = kept


@kernel
def add_up(jobs: Jobs, sim: FairShareSim) -> None:
    """Add the usage of users up to that of their accounts; write `seen` of these."""
    n = head(jobs, sim, N_LINES)
    for line in range(n):
        if of_line(jobs, sim, IS_USER, line) == 0:
            sim.seen[line] = 0.0
    for line in range(n):
        if of_line(jobs, sim, IS_USER, line) == 1:
            above = line
            while above > 0:
                above = of_line(jobs, sim, PARENT, above)
                sim.seen[above] += sim.seen[line]


@kernel
def go_on(jobs: Jobs, sim: FairShareSim) -> None:
    """Begin the period of this instant, if it has not begun."""
    period = sim.now // head(jobs, sim, PERIOD)
    if period > sim.share_period:
        see(jobs, sim, period * head(jobs, sim, PERIOD))


@kernel
def comes_before(jobs: Jobs, sim: FairShareSim, line: int, other: int) -> int:
    """Tell whether a user comes before another by the tree: 1, -1, or 0 = they are equal.

    The levels of both are compared from the root down. Where one has no more, it comes first, and
    is equal to the other if that one is the first below its accounts: 2.
    """
    here, there = line, other
    while sim.n_above[here] > sim.n_above[there]:
        here = of_line(jobs, sim, PARENT, here)
    while sim.n_above[there] > sim.n_above[here]:
        there = of_line(jobs, sim, PARENT, there)
    order = 0
    while here != there:
        if sim.level[here] != sim.level[there]:
            order = 1 if sim.level[here] > sim.level[there] else -1
        here, there = of_line(jobs, sim, PARENT, here), of_line(jobs, sim, PARENT, there)
    if order == 0 and sim.n_above[line] != sim.n_above[other]:
        return 2 if sim.n_above[line] < sim.n_above[other] else -1
    return order


@kernel(inlined=True)
def share_among_siblings(jobs: Jobs, sim: FairShareSim, line: int) -> float:
    """Return the shares of an account or a user over those of all below the same account."""
    below = sim.shares_below[of_line(jobs, sim, PARENT, line)]
    return of_line(jobs, sim, SHARES, line) / below if below > 0 else 0.0


@kernel
def rank(jobs: Jobs, sim: FairShareSim) -> None:
    """Give each user its rank by Fair Tree, over their number; write `level` and `factor`."""
    for line in range(1, head(jobs, sim, N_LINES)):
        parent = of_line(jobs, sim, PARENT, line)
        sim.level[line] = math.inf
        if sim.seen[line] > 0.0:
            usage = sim.seen[line] / sim.seen[parent]
            sim.level[line] = share_among_siblings(jobs, sim, line) / usage
    n = sim.n_ranked
    for position in range(1, n):  # the order hardly changes from period to period
        line = sim.ranked[position]
        while position > 0:
            before = sim.ranked[position - 1]
            order = comes_before(jobs, sim, line, before)
            if order < 0 or (order == 0 and before < line):
                break
            sim.ranked[position] = before
            position -= 1
        sim.ranked[position] = line
    standing = n
    for position in range(n):
        line = sim.ranked[position]
        if position == 0 or comes_before(jobs, sim, sim.ranked[position - 1], line) == 1:
            standing = n - position
        sim.factor[line] = standing / n


@kernel
def weigh(jobs: Jobs, sim: FairShareSim) -> None:
    """Give each user 2^(-U/S), U its effective usage; write `level`, `norm` and `factor`."""
    sim.norm[0] = 1.0
    for line in range(1, head(jobs, sim, N_LINES)):
        parent = of_line(jobs, sim, PARENT, line)
        shares = share_among_siblings(jobs, sim, line)
        sim.norm[line] = sim.norm[parent] * shares
        usage = sim.seen[line] / sim.seen[0] if sim.seen[0] > 0.0 else 0.0
        sim.level[line] = usage
        if parent > 0:
            sim.level[line] += (sim.level[parent] - usage) * shares
        if of_line(jobs, sim, IS_USER, line) == 1:
            sim.factor[line] = 0.0
            if sim.norm[line] > 0.0:
                ratio = sim.level[line] / sim.norm[line] / head(jobs, sim, DAMPENING)
                sim.factor[line] = 2.0**-ratio


@kernel
def refresh(jobs: Jobs, sim: FairShareSim) -> None:
    """Bring `factor` to the period of this instant."""
    go_on(jobs, sim)
    if sim.shares_due == 1:
        sim.shares_due = 0
        add_up(jobs, sim)
        if head(jobs, sim, KIND) == FAIR_TREE:
            rank(jobs, sim)
        else:
            weigh(jobs, sim)


def work(jobs: Jobs, sim: FairShareSim, task: int, argument: int) -> int:
    """Do a task for a simulation; `argument` is a job."""
    if task == s.NEXT_INSTANT:
        if sim.shares_begun == 0:
            sim.share_event = sim.event
            begin(jobs, sim)
        return s.NEVER
    if task & HEARS == 0:
        return 0
    if head(jobs, sim, PERIOD) > EVERY_PASS:
        go_on(jobs, sim)
    line = line_of(jobs, sim, argument)
    if sim.is_active[line] == 0:
        sim.is_active[line] = 1
        sim.active[sim.n_active] = line
        sim.n_active += 1
    charge(jobs, sim, line, sim.now)
    sim.used_by[line] += jobs.processors[argument] * (1 if task == s.ON_START else -1)
    return 0
