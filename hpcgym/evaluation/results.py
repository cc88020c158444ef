"""Results of an evaluation: every run, a summary per agent, a table and a CSV file."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpcgym.base.errors import EvaluationError, unknown_name
from hpcgym.base.output import writing
from hpcgym.base.text_table import Column, TextTable, csv_style, duration, fixed
from hpcgym.core.price import PRICED
from hpcgym.evaluation.gap import gap_columns, gap_notes
from hpcgym.evaluation.on_nodes import means_on_nodes, tables_on_nodes
from hpcgym.evaluation.priced import priced_columns
from hpcgym.evaluation.statistics import Estimate, ends_text, mean_log_ratio, mean_of, ratio_of_sums
from hpcgym.evaluation.waits import (
    IntArray,
    LongWaits,
    Waits,
    long_waits,
    notes_on,
    row_of,
    table_columns,
    unpacked,
)
from hpcgym.evaluation.waste import means_of_waste, tables_of_waste

if TYPE_CHECKING:
    import pandas as pd


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
        contest: Whether it guards the threshold; see `hpcgym.agent.contest`.
        waits: Its long waits, and their ratios to the baseline's.
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
    contest: str
    waits: LongWaits


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Results of `hpcgym.evaluation.evaluate`.

    Attributes:
        frame: One row per agent, week and replica (0 = the original): `agent`, `week` (its number),
            `label`, `replica`, every metric of `hpcgym.core.metrics.summary`, and on a machine of
            nodes those of `hpcgym.evaluation.on_nodes`. An agent may lack weeks or replicas, the
            same replicas in every week; the baseline has all.
        waits: The waits of every run, packed.
        threshold: The scenario's, s, or None.
        contests: Contest of each agent; see `hpcgym.agent.contest`.
        baseline: Agent the ratios are taken to.
        jitter, replicas, seed: As of `hpcgym.evaluation.runner.Copies`.
        left_out: Agents that cannot schedule the scenario's machine, and why.
        gaps: The gap that each agent closes, where it is known; see `hpcgym.evaluation.gap`.
    """

    frame: pd.DataFrame
    waits: Waits
    scenario: str
    threshold: int | None
    contests: Mapping[str, str]
    baseline: str
    jitter: int
    replicas: int
    seed: int
    left_out: Mapping[str, str] = field(default_factory=dict)
    gaps: Mapping[str, Estimate] = field(default_factory=dict)

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

    def values(self, agent: str, metric: str = "mean_bsld") -> NDArray[np.float64]:
        """Return a column of `frame` of every run of an agent, shape (n_weeks, n_replicas).

        Column 0 is the original week, where the agent has it.
        """
        return self._shaped(self._rows(agent), metric)

    def against(self, baseline: str) -> Evaluation:
        """Return the same runs with ratios to another of the agents, whose name has any case.

        Raises:
            EvaluationError: It is not among the agents, or has not run all their weeks.
        """
        names = list(self.frame["agent"].unique())
        if baseline.casefold() not in map(str.casefold, names):
            raise EvaluationError(unknown_name("baseline", baseline, names))
        (name,) = (agent for agent in names if agent.casefold() == baseline.casefold())
        if len(self._rows(name)) < len(self.frame[["week", "replica"]].drop_duplicates()):
            raise EvaluationError(
                f"baseline {name} has not run all weeks and copies; choose an agent that has"
            )
        return replace(self, baseline=name)

    def baseline_values(self, agent: str, metric: str = "mean_bsld") -> NDArray[np.float64]:
        """Return a metric of the baseline on an agent's weeks and replicas, in the same shape."""
        keys = ["week", "replica"]
        paired = self._rows(agent)[keys].merge(self._rows(self.baseline), on=keys, how="left")
        return self._shaped(paired, metric)

    def pooled_waits(self, agent: str) -> tuple[IntArray, IntArray]:
        """Return the waits of an agent's jobs, and of the baseline's in the same runs.

        Both are of all its weeks, replicas and training seeds, ascending, s.
        """
        rows = self._rows(agent)
        keys = list(zip(rows["week"], rows["replica"], strict=True))
        of_agent, of_baseline = (
            unpacked(text for key in keys for text in self.waits[name, *key])
            for name in (agent, self.baseline)
        )
        return of_agent, of_baseline

    def _rows(self, agent: str) -> pd.DataFrame:
        return self.frame[self.frame["agent"] == agent]

    def _shaped(self, rows: pd.DataFrame, metric: str) -> NDArray[np.float64]:
        """Arrange one metric of some runs by week and replica."""
        runs = np.asarray(rows[metric], dtype=np.float64)
        return runs.reshape(rows["week"].nunique(), -1)

    @property
    def metric(self) -> str:
        """The column of `frame` that counts: J where there is a price."""
        return PRICED if PRICED in self.frame else "mean_bsld"

    @cached_property
    def priced(self) -> dict[str, Estimate]:
        """Mean J of each agent less the baseline's, in pairs; empty without a price."""
        if PRICED not in self.frame:
            return {}
        less = {a: self.values(a, PRICED) - self.baseline_values(a, PRICED) for a in self.agents}
        return {agent: mean_of(runs.mean(axis=1)) for agent, runs in less.items()}

    @cached_property
    def summaries(self) -> tuple[Summary, ...]:
        """One summary per agent, in the order of the runs."""
        return tuple(map(self._summary, self.agents))

    def _summary(self, agent: str) -> Summary:
        bsld, baseline = self.values(agent), self.baseline_values(agent)
        return Summary(
            agent=agent,
            n_weeks=len(bsld),
            mean_bsld=float(bsld.mean()),
            sum_bsld=float(bsld.mean(axis=1).sum()),
            ratio=ratio_of_sums(bsld, baseline),
            log_ratio=mean_log_ratio(bsld, baseline),
            mean_pp_bsld=float(self.values(agent, "mean_pp_bsld").mean()),
            p99_bsld=float(self.values(agent, "p99_bsld").mean()),
            max_wait_time=int(self.values(agent, "max_wait_time").max()),
            utilisation=float(self.values(agent, "utilisation").mean()),
            contest=self.contests[agent],
            waits=long_waits(*self.pooled_waits(agent), self.threshold),
        )

    def ranked(self) -> tuple[Summary, ...]:
        """Return the summaries, best ratio first; where there is a price, least J first."""
        of_j = self.priced
        return tuple(sorted(self.summaries, key=lambda row: of_j.get(row.agent, row.ratio).value))

    def summary(self) -> pd.DataFrame:
        """Return one row per agent, in the order of the runs.

        Returns:
            Columns agent, n_weeks, mean_bsld, sum_bsld, ratio, ratio_low, ratio_high, log_ratio,
            log_ratio_low, log_ratio_high (intervals are NaN where there is one week),
            mean_pp_bsld, p99_bsld, max_wait_time (s), utilisation and contest; see `Summary`.
            p999_wait_time (s), share_beyond_threshold, p999_wait_ratio, max_wait_ratio and
            share_beyond_ratio; see `hpcgym.evaluation.waits`. On a machine of nodes the means of
            `hpcgym.evaluation.on_nodes` follow, and where jobs were killed those of
            `hpcgym.evaluation.waste`. Where gaps are known, gap_closed, gap_closed_low and
            gap_closed_high, NaN where there is no gap to close; where there is a price, priced,
            priced_low and priced_high, which is J less the baseline's.
        """
        import pandas as pd

        none = Estimate(math.nan, None, 0)
        rows = [row_of(summary) for summary in self.summaries]
        for row in rows if self.gaps else ():
            row |= self.gaps.get(row["agent"], none).columns("gap_closed")
        for row in rows if self.priced else ():
            row |= self.priced[row["agent"]].columns(PRICED)
        frame = pd.DataFrame(rows).join(means_on_nodes(self.frame), on="agent")
        return frame.join(means_of_waste(self.frame), on="agent")

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

    def table(
        self, *, kinds: Mapping[str, str] | None = None, notes: Sequence[str] = ()
    ) -> TextTable:
        """Return a table for a person, best ratio first; rich prints it in the width there is.

        Args:
            kinds: Kind of each agent, shown in a column of its own.
            notes: Lines to add below.

        Source: Specification, section 10, "Evaluation protocol", step 5.
        """
        if len(self.weeks) > 1:
            how = f"95 % interval over {self.unit}s, of each agent alone"
        else:
            how = f"one {self.unit}: no interval"
        without = [f"left out {agent}: {why}" for agent, why in self.left_out.items()]
        what = f"ratio: sum of bsld against {self.baseline}'s, lower is better; {how}"
        ranked = self.ranked()
        names = [row.agent for row in ranked]
        columns = [Column("agent", names, "name")]
        if kinds is not None:
            columns.append(Column("kind", [kinds[row.agent] for row in ranked], "word", rank=3))
        columns += priced_columns(names, self.priced, self.baseline)
        return TextTable(
            [*columns, *_columns(ranked, self.baseline), *gap_columns(names, self.gaps)],
            title=self.conditions,
            notes=(what, *gap_notes(self.gaps, len(self.weeks)), *notes, *without),
            bold=[position for position, row in enumerate(ranked) if row.agent == self.baseline],
        )

    def waits_table(self) -> TextTable:
        """Return a table of contests and of long waits, in the order of `table`.

        Source: Specification, section 10, "Contests" and "Long waits".
        """
        ranked = self.ranked()
        p999, _, beyond = zip(*(row.waits.values for row in ranked), strict=True)
        shares = fixed([100 * share for share in beyond], 3)
        threshold = "no threshold" if self.threshold is None else f"threshold {self.threshold} s"
        return TextTable(
            [
                Column("agent", [row.agent for row in ranked], "name"),
                Column("contest", [row.contest for row in ranked], "word"),
                *table_columns([row.waits.ratios for row in ranked]),
                Column("p99.9\nwait", list(map(duration, p999)), rank=3),
                Column("beyond\n%", shares, rank=2),
            ],
            title=f"{self.scenario}: long waits, {threshold}, as ratios to {self.baseline}'s",
            notes=notes_on([row.contest for row in ranked]),
            bold=[position for position, row in enumerate(ranked) if row.agent == self.baseline],
        )

    def further_tables(self) -> list[TextTable]:
        """Return tables of the metrics that only a machine of nodes has, and of waste; or none.

        Rows are in the order of `table`; each metric is the mean over an agent's runs that have it.
        """
        agents = [row.agent for row in self.ranked()]
        mean = f"mean over {self.unit}s"
        return [
            *tables_on_nodes(self.frame, agents, f"{self.scenario} on nodes: {mean}"),
            *tables_of_waste(self.frame, agents, f"{self.scenario}: attempts in vain, {mean}"),
        ]


def write_csv(frame: pd.DataFrame, path: str | Path, *, force: bool) -> None:
    """Write a frame without its index.

    Raises:
        OutputError: The file exists and `force` is False, or it cannot be written.
    """
    with writing(path, force=force) as file:
        frame.to_csv(file, **csv_style(frame))


def _columns(ranked: Sequence[Summary], baseline: str) -> list[Column]:
    """Format the metrics of agents, to the digits that cards quote unless they are large."""
    intervals = [ends_text(row.ratio, ".3f") for row in ranked]
    return [
        Column("mean\nbsld", fixed([row.mean_bsld for row in ranked], 2), rank=2),
        Column("sum\nbsld", fixed([row.sum_bsld for row in ranked], 2), rank=4),
        Column(f"ratio\nto {baseline}", fixed([row.ratio.value for row in ranked], 3)),
        Column("95\u00a0%\ninterval", intervals, rank=1),
        Column("log\nratio", fixed([row.log_ratio.value for row in ranked], 3, sign="+"), rank=7),
        Column("pp-\nbsld", fixed([row.mean_pp_bsld for row in ranked], 2), rank=6),
        Column("p99\nbsld", fixed([row.p99_bsld for row in ranked], 1), rank=8),
        Column("max\nwait", [duration(row.max_wait_time) for row in ranked], rank=5),
        Column("utili-\nsation", fixed([row.utilisation for row in ranked], 3), rank=9),
    ]
