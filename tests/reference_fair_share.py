"""Fair share and multifactor priorities in plain Python, from the specification's section 16.

Usage is added up from the runs, interval by interval. The passes are those of `reference`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import reference
from reference import Job, Ranking, Start


class Line(NamedTuple):
    """An account (user "") or a user: the place of what is above it (-1 = root), its shares."""

    above: int
    is_user: bool
    shares: int = 1
    usage: int = 0


class Rule(NamedTuple):
    """How jobs are ordered. Without `weights` fair share alone; times in s."""

    kind: str = "tree"  # or "classic"
    half_life: float = 604_800
    interval: int = 300
    period: int = 300
    dampening: int = 1
    passed: int = 0  # s of the first interval before time 0
    weights: Mapping[str, float] | None = None  # age, max_age, fairshare


def flat(n_users: int) -> list[Line]:
    """Return a root with users."""
    return [Line(-1, False), *(Line(0, True) for _ in range(n_users))]


class Run(NamedTuple):
    """Processors that a line's user held from an instant until another."""

    line: int
    processors: int
    begin: int
    end: int


class Usage:
    """What each user has used, in a unit that never moves: a second at time 0 counts 1.

    Logs of more than a thousand half-lives would need a larger unit.
    """

    def __init__(self, tree: Sequence[Line], rule: Rule) -> None:
        self.interval, self.passed = rule.interval, rule.passed
        self.rate = rule.interval / rule.half_life if rule.half_life else 0.0
        self.over = 0  # intervals before this one are in `total`
        self.total = {user: float(each.usage) for user, each in enumerate(tree) if each.is_user}
        self.runs: list[Run] = []

    def weigh(self, seconds: int, k: int) -> float:
        """Return processors times seconds of interval k in the unit."""
        exponent = k * self.rate
        whole = math.floor(exponent)
        return math.ldexp(seconds * 2.0 ** (exponent - whole), whole)

    def within(self, begin: int, end: int) -> dict[int, int]:
        """Return processors times seconds of each user's runs between two instants."""
        seconds = dict.fromkeys(self.total, 0)
        for run in self.runs:
            seconds[run.line] += run.processors * max(min(end, run.end) - max(begin, run.begin), 0)
        return seconds

    def at(self, t: int) -> dict[int, float]:
        """Return the usage at an instant, which is no earlier than the last one asked for."""
        begin = self.over * self.interval - self.passed
        while begin + self.interval <= t:
            for user, seconds in self.within(begin, begin + self.interval).items():
                self.total[user] += self.weigh(seconds, self.over)
            self.over += 1
            begin += self.interval
            self.runs = [run for run in self.runs if run.end > begin]
        return {
            user: self.total[user] + self.weigh(seconds, self.over)
            for user, seconds in self.within(begin, t).items()
        }


def shares(
    tree: Sequence[Line], used: Mapping[int, float], kind: str, dampening: int = 1
) -> dict[int, float]:
    """Return each user's fair-share factor, 1 = first."""
    of = [0.0] * len(tree)  # usage of all below
    below: list[list[int]] = [[] for _ in tree]
    for line, each in enumerate(tree):
        if each.above >= 0:
            below[each.above].append(line)
        above = line if each.is_user else -1
        while above >= 0:
            of[above] += used[line]
            above = tree[above].above
    of_all = [sum(tree[child].shares for child in children) for children in below]

    def given(line: int) -> float:
        all_shares = of_all[tree[line].above]
        return tree[line].shares / all_shares if all_shares else 0.0

    def level(line: int) -> float:
        return given(line) / (of[line] / of[tree[line].above]) if of[line] else math.inf

    def norm(line: int) -> float:
        return norm(tree[line].above) * given(line) if line else 1.0

    def effective(line: int) -> float:
        mine = of[line] / of[0] if of[0] else 0.0
        above = tree[line].above
        return mine + (effective(above) - mine) * given(line) if above > 0 else mine

    users = [line for line, each in enumerate(tree) if each.is_user]
    if kind == "classic":
        return {
            user: 2.0 ** -(effective(user) / norm(user) / dampening) if norm(user) else 0.0
            for user in users
        }
    factor: dict[int, float] = {}
    counted = 0

    def visit(accounts: Sequence[int], tied: bool) -> None:
        """Rank all below accounts that are merged."""
        nonlocal counted
        levels: dict[float, list[int]] = {}
        for account in accounts:
            for line in below[account]:
                levels.setdefault(level(line), []).append(line)
        for _, equal in sorted(levels.items(), reverse=True):
            before = counted
            persons = [line for line in equal if tree[line].is_user]
            for user in persons:
                if not tied and user == persons[0]:
                    latest[0] = (len(users) - counted) / len(users)
                factor[user] = latest[0]
                counted += 1
            groups = [line for line in equal if not tree[line].is_user]
            visit(groups, tied or bool(persons))
            tied = tied and counted == before

    latest = [1.0]
    visit([0], False)
    return factor


class ShareMachine(reference.Machine):
    """A machine whose order goes by usage."""

    tree: Sequence[Line]
    lines: Sequence[int]
    constants: Sequence[float]
    rule: Rule

    def prepare(
        self,
        tree: Sequence[Line],
        lines: Sequence[int],
        constants: Sequence[float],
        rule: Rule,
        *,
        backfills: bool,
    ) -> None:
        """Take the tree, the line and the constant of each job, and the rule."""
        self.tree, self.lines, self.constants, self.rule = tree, lines, constants, rule
        self.ordered = self.secondary if backfills else self.primary
        self.kept: tuple[int, dict[int, float]] = (-1, {})
        self.used = Usage(tree, rule)

    def start(self, j: int, t: int, *, backfilled: bool) -> None:
        """Start a job, whose run counts from now on."""
        self.factors(t)  # a new period begins before what happens in it
        super().start(j, t, backfilled=backfilled)
        run = Run(self.lines[j], self.jobs[j].processors, t, t + self.executed[j])
        self.used.runs.append(run)

    def factors(self, t: int) -> dict[int, float]:
        """Return the factors by the usage at the begin of this period."""
        begin = t // self.rule.period * self.rule.period
        if self.kept[0] != begin:
            used = self.used.at(begin)
            self.kept = begin, shares(self.tree, used, self.rule.kind, self.rule.dampening)
        return self.kept[1]

    def in_order(self, ranking: Ranking, t: int) -> Iterator[int]:
        """Yield the waiting jobs in order."""
        if ranking is not self.ordered:
            yield from super().in_order(ranking, t)
            return

        def score(j: int) -> float:
            weights = self.rule.weights
            if weights is None:
                return -self.factors(t)[self.lines[j]]
            wait = t - self.jobs[j].submit_time
            total = weights["age"] * min(wait / weights["max_age"], 1)
            if weights["fairshare"]:
                total += weights["fairshare"] * self.factors(t)[self.lines[j]]
            return -min(max(math.floor(total + self.constants[j]), 0), 2**32 - 1)

        overdue = [j for j in ranking.score if self.is_thresholded(j, t)]
        yield from overdue
        others = (j for j in ranking.score if j not in overdue)
        yield from sorted(others, key=lambda j: (score(j), j))


def simulate(
    jobs: Sequence[Sequence[int]],
    processors: int,
    tree: Sequence[Line],
    lines: Sequence[int],
    rule: Rule,
    *,
    constants: Sequence[float] | None = None,
    backfill: str = "easy",
    backfills: bool = False,
    threshold: float | None = None,
) -> list[Start]:
    """Schedule every job; `lines` are their users' lines in the tree.

    With `backfills` the order is that of candidates for backfilling, and the queue is FCFS.
    """
    table, executed, estimate = reference.prepare(
        jobs, processors, kill_at_limit=True, estimates="requested"
    )
    order = "LCFS" if backfills else None  # any other that is replaced
    machine = ShareMachine(
        [Job(*job) for job in table],
        processors,
        "FCFS",
        backfill,
        order,
        threshold,
        executed,
        estimate,
        {},
    )
    machine.prepare(tree, lines, constants or [0.0] * len(table), rule, backfills=backfills)
    return machine.run("batch")
