"""Results of an evaluation: every run, a summary per agent, a table and a CSV file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpcgym.evaluation.on_nodes import tables_on_nodes
from hpcgym.evaluation.statistics import Estimate, draw_weeks, mean_log_ratio, ratio_of_sums
from hpcgym.output import writing

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table


FEWEST_WEEKS = 5
"""Weeks from which on intervals carry no warning."""


@dataclass(frozen=True)
class Summary:
    """Metrics of one agent over its weeks; a week's metric is the mean over its replicas.

    Attributes:
        mean_bsld: Mean over the weeks of the weekly mean bounded slowdown.
        sum_bsld: Sum over the weeks of the same.
        ratio: The sum divided by the baseline's, with its interval.
        log_ratio: Mean natural log of the paired ratio to the baseline, with its interval.
        mean_pp_bsld: Mean over the weeks of the mean bounded slowdown per processor.
        p99_bsld: Mean over the weeks of the 99th percentile of the bounded slowdown.
        max_wait_time: Longest wait of any job in any run, s.
        utilisation: Mean over the weeks.
    """

    agent: str
    n_weeks: int
    mean_bsld: float
    sum_bsld: float
    ratio: Estimate
    log_ratio: Estimate
    mean_pp_bsld: float
    p99_bsld: float
    max_wait_time: int
    utilisation: float


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Results of `hpcgym.evaluation.evaluate`.

    Attributes:
        frame: One row per agent, week and replica (0 = the original): `agent`, `week` (its number),
            `label`, `replica`, every metric of `hpcgym.core.metrics.summary`, and on a machine of
            nodes those of `hpcgym.evaluation.on_nodes`. An agent may lack weeks or replicas, the
            same replicas in every week; the baseline has all.
        baseline: Agent the ratios are taken to.
        jitter: Largest shift of a submit time in a copy, s.
        replicas: Jittered copies of each week, besides the original.
        seed: Seed of the copies and of the bootstrap.
        left_out: Agents that cannot schedule the scenario's machine, and why.
    """

    frame: pd.DataFrame
    scenario: str
    baseline: str
    jitter: int
    replicas: int
    seed: int
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def agents(self) -> tuple[str, ...]:
        """Names of the agents, in the order of the runs."""
        return tuple(self.frame["agent"].unique())

    @property
    def weeks(self) -> tuple[int, ...]:
        """Numbers of the weeks, ascending."""
        return tuple(int(week) for week in self.frame["week"].unique())

    @property
    def unit(self) -> str:
        """The word for an episode: "week", or "episode" where it is of another kind."""
        return "week" if self.frame["label"].iloc[0].startswith("week ") else "episode"

    @property
    def interval_warning(self) -> str | None:
        """Say that the intervals come from few weeks, where they do."""
        n_weeks = len(self.weeks)
        if not 1 < n_weeks < FEWEST_WEEKS:
            return None
        return (
            f"{self.scenario}: intervals from {n_weeks} {self.unit}s are too narrow; fewer than "
            f"{FEWEST_WEEKS} show little of how {self.unit}s differ"
        )

    def values(self, agent: str, metric: str = "mean_bsld") -> NDArray[np.float64]:
        """Return a metric, a column of `frame`, of every run of an agent.

        Returns:
            Shape (n_weeks, n_replicas); column 0 is the original week, where the agent has it.
        """
        return self._shaped(self._rows(agent), metric)

    def baseline_values(self, agent: str, metric: str = "mean_bsld") -> NDArray[np.float64]:
        """Return a metric of the baseline on an agent's weeks and replicas, in the same shape."""
        keys = ["week", "replica"]
        paired = self._rows(agent)[keys].merge(self._rows(self.baseline), on=keys, how="left")
        return self._shaped(paired, metric)

    def _rows(self, agent: str) -> pd.DataFrame:
        """Return the runs of one agent."""
        return self.frame[self.frame["agent"] == agent]

    def _shaped(self, rows: pd.DataFrame, metric: str) -> NDArray[np.float64]:
        """Arrange one metric of some runs by week and replica."""
        runs = np.asarray(rows[metric], dtype=np.float64)
        return runs.reshape(rows["week"].nunique(), -1)

    @cached_property
    def summaries(self) -> tuple[Summary, ...]:
        """One summary per agent, in the order of the runs."""
        draws = {
            n: draw_weeks(n, seed=self.seed) for n in {len(self.values(a)) for a in self.agents}
        }
        return tuple(self._summary(agent, draws) for agent in self.agents)

    def _summary(self, agent: str, draws_of: Mapping[int, NDArray[np.float64]]) -> Summary:
        """Return one agent's summary; `draws_of` are bootstrap draws by number of weeks."""
        bsld, baseline = self.values(agent), self.baseline_values(agent)
        draws = draws_of[len(bsld)]
        return Summary(
            agent=agent,
            n_weeks=len(bsld),
            mean_bsld=float(bsld.mean()),
            sum_bsld=float(bsld.mean(axis=1).sum()),
            ratio=ratio_of_sums(bsld, baseline, draws),
            log_ratio=mean_log_ratio(bsld, baseline, draws),
            mean_pp_bsld=float(self.values(agent, "mean_pp_bsld").mean()),
            p99_bsld=float(self.values(agent, "p99_bsld").mean()),
            max_wait_time=int(self.values(agent, "max_wait_time").max()),
            utilisation=float(self.values(agent, "utilisation").mean()),
        )

    def ranked(self) -> tuple[Summary, ...]:
        """Return the summaries, best ratio first."""
        return tuple(sorted(self.summaries, key=lambda one: one.ratio.value))

    def summary(self) -> pd.DataFrame:
        """Return one row per agent, in the order of the runs.

        Returns:
            Columns agent, n_weeks, mean_bsld, sum_bsld, ratio, ratio_low, ratio_high, log_ratio,
            log_ratio_low, log_ratio_high (intervals are NaN where there is one week),
            mean_pp_bsld, p99_bsld, max_wait_time (s) and utilisation; see `Summary`.
        """
        import pandas as pd

        rows = [
            {
                "agent": one.agent,
                "n_weeks": one.n_weeks,
                "mean_bsld": one.mean_bsld,
                "sum_bsld": one.sum_bsld,
                **one.ratio.columns("ratio"),
                **one.log_ratio.columns("log_ratio"),
                "mean_pp_bsld": one.mean_pp_bsld,
                "p99_bsld": one.p99_bsld,
                "max_wait_time": one.max_wait_time,
                "utilisation": one.utilisation,
            }
            for one in self.summaries
        ]
        return pd.DataFrame(rows)

    def to_csv(self, path: str | Path, *, force: bool = False) -> None:
        """Write `frame`, one row per run.

        Raises:
            OutputError: The file exists and `force` is False, or it cannot be written.
        """
        write_csv(self.frame, path, force=force)

    @property
    def conditions(self) -> str:
        """Scenario, weeks and copies, in one line."""
        weeks = f"{len(self.weeks)} {self.unit}" + "s" * (len(self.weeks) != 1)
        if not self.replicas:
            return f"{self.scenario}: {weeks}"
        copies = f"{self.replicas} cop{'y' if self.replicas == 1 else 'ies'}"
        return f"{self.scenario}: {weeks}, each with {copies} jittered by ±{self.jitter} s"

    def table(self, *, kinds: Mapping[str, str] | None = None, notes: Sequence[str] = ()) -> Table:
        """Return a table for a terminal, best ratio first.

        Args:
            kinds: Kind of each agent, shown in a column of its own; the mean, which is the sum
                divided by the number of weeks, is then left out.
            notes: Lines to add below.

        Source: Specification, section 10, "Evaluation protocol", step 5.
        """
        from rich.table import Table

        if len(self.weeks) > 1:
            how = f"95 % interval by paired bootstrap over {self.unit}s"
        else:
            how = f"one {self.unit}: no interval"
        without = [f"left out {agent}: {why}" for agent, why in self.left_out.items()]
        what = f"ratio: sum of bsld against {self.baseline}'s, lower is better; {how}"
        table = Table(
            title=self.conditions,
            caption="\n".join((what, *notes, *without)),
            box=None,  # whole numbers in 80 columns
            padding=(0, 1, 0, 0),
        )
        table.add_column("\nagent", overflow="fold")  # weights may go over two lines
        if kinds is not None:
            table.add_column("\nkind", no_wrap=True)
        titles = ("mean\nbsld", "sum\nbsld", f"ratio\nto {self.baseline}", "95 %\ninterval")
        more = ("log\nratio", "pp-\nbsld", "p99\nbsld", "max\nwait s", "utili-\nsation")
        for title in (*titles, *more)[0 if kinds is None else 1 :]:
            table.add_column(title, justify="right", no_wrap=True)
        for one in self.ranked():
            cells = _cells(one)
            table.add_row(
                one.agent,
                *(cells if kinds is None else (kinds[one.agent], *cells[1:])),
                style="bold" if one.agent == self.baseline else None,
            )
        return table

    def tables_on_nodes(self) -> list[Table]:
        """Return tables of the metrics that only a machine of nodes has; none on another.

        Rows are in the order of `table`; each metric is the mean over an agent's runs that have it.
        """
        agents = [one.agent for one in self.ranked()]
        title = f"{self.scenario} on nodes: mean over {self.unit}s"
        return tables_on_nodes(self.frame, agents, title)


def write_csv(frame: pd.DataFrame, path: str | Path, *, force: bool) -> None:
    """Write a frame without its index.

    Raises:
        OutputError: The file exists and `force` is False, or it cannot be written.
    """
    with writing(path, force=force) as file:
        frame.to_csv(file, index=False, lineterminator="\n")


def _cells(one: Summary) -> Sequence[str]:
    """Format an agent's metrics, to the digits that cards quote."""
    low, high = one.ratio.low, one.ratio.high
    return (
        f"{one.mean_bsld:.2f}",
        f"{one.sum_bsld:.2f}",
        f"{one.ratio.value:.3f}",
        "" if low is None or high is None else f"{low:.3f}-{high:.3f}",
        f"{one.log_ratio.value:+.3f}",
        f"{one.mean_pp_bsld:.2f}",
        f"{one.p99_bsld:.1f}",
        f"{one.max_wait_time}",
        f"{one.utilisation:.3f}",
    )
