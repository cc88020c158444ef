"""Results of a cross-validation: agents and baselines on one log or several, and all runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hpcgym.base.errors import EvaluationError
from hpcgym.evaluation.aggregate import Aggregate, aggregate_frame, aggregate_logs, aggregate_tables
from hpcgym.evaluation.baselines import Kind
from hpcgym.evaluation.results import Evaluation, write_csv
from hpcgym.evaluation.short_tables import overview, overview_of_logs

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Group

    from hpcgym.base.text_table import TextTable

_MEANING: Mapping[Kind, str] = {
    "hindsight": "hindsight: made for the very week it is run on",
    "clairvoyant": "clairvoyant: knows run times",
}
"""Notes on the kinds of agents that no scheduler could be."""

KEYS = ["agent", "week", "label", "replica"]
"""Columns that identify a run once training seeds are averaged."""


def mean_over_seeds(runs: pd.DataFrame) -> pd.DataFrame:
    """Average every run over training seeds.

    Args:
        runs: One row per agent, week, fold, seed and replica; `fold` and `seed` are missing where
            nothing was trained.

    Returns:
        One row per agent, week and replica, in the order of the runs. The longest wait is the
        maximum over seeds. Where nothing was trained, the runs as they are.

    Example:
        >>> import pandas as pd
        >>> run = {"agent": "net", "week": 1, "label": "week 1", "replica": 0, "fold": 1}
        >>> two = [{**run, "seed": 0, "mean_bsld": 2.0}, {**run, "seed": 1, "mean_bsld": 4.0}]
        >>> mean_over_seeds(pd.DataFrame(two))["mean_bsld"].tolist()
        [3.0]
    """
    if runs["seed"].isna().all():
        return runs.drop(columns=["fold", "seed"])
    metrics = [name for name in runs if name not in (*KEYS, "fold", "seed")]
    how = {name: "max" if name == "max_wait_time" else "mean" for name in metrics}
    return runs.groupby(KEYS, sort=False, as_index=False).agg(how)


@dataclass(frozen=True, eq=False)
class CrossValidationResult:
    """Results of `hpcgym.evaluation.cross_validate`.

    Attributes:
        evaluations: Every agent and baseline on each log, training seeds averaged.
        runs: Every run: as `Evaluation.frame`, with the `scenario`, and the `fold` and the training
            `seed` of agents that were trained.
        trainings: One row per training and log: `agent`, `scenario`, `fold`, `seed`, `test_weeks`,
            `training_weeks`, `left_out_weeks`; `seconds` and `steps` of the training on all logs,
            steps where they are counted; `ended_at_start`, whether nothing it tried was better than
            what it began with; and `made`, the rule that was trained, where it is one.
        kinds: Whether a scheduler could be each agent.
    """

    evaluations: tuple[Evaluation, ...]
    runs: pd.DataFrame
    trainings: pd.DataFrame
    kinds: Mapping[str, Kind]

    @property
    def evaluation(self) -> Evaluation:
        """The evaluation on the only log; an `EvaluationError` where there are several."""
        if len(self.evaluations) > 1:
            names = ", ".join(evaluation.scenario for evaluation in self.evaluations)
            raise EvaluationError(f"there is no one evaluation over {names}; take `evaluations`")
        return self.evaluations[0]

    @cached_property
    def aggregates(self) -> tuple[Aggregate, ...]:
        """Metrics of each agent over all logs; none where there is one log."""
        return aggregate_logs(self.evaluations) if len(self.evaluations) > 1 else ()

    @cached_property
    def seed_ratios(self) -> dict[str, tuple[float, ...]]:
        """The ratios to the baseline of each agent's training seeds.

        Over several logs a seed's ratio is the geometric mean of those on the logs.
        """
        if len(self.evaluations) == 1:
            return self.seed_ratios_on(self.evaluations[0])
        by_log = [self.seed_ratios_on(evaluation) for evaluation in self.evaluations]
        return {
            agent: tuple(np.exp(np.mean(np.log([ratios[agent] for ratios in by_log]), axis=0)))
            for agent in by_log[0]
        }

    @cached_property
    def _ended(self) -> dict[str, str]:
        """How many trainings of each agent ended where they began, in words; "" = none."""
        once = self.trainings.drop_duplicates(["agent", "fold", "seed"])
        by_agent = {}
        for agent, ended in once.groupby("agent")["ended_at_start"]:
            told = f"; {ended.sum()} of {len(ended)} trainings ended where they began"
            by_agent[str(agent)] = told if ended.any() else ""
        return by_agent

    def seed_ratios_on(self, evaluation: Evaluation) -> dict[str, tuple[float, ...]]:
        """Return the ratios to the baseline of each agent's training seeds on one log."""
        is_seeded = self.runs["seed"].notna() & (self.runs["scenario"] == evaluation.scenario)
        ratios: dict[str, tuple[float, ...]] = {}
        for agent, runs in self.runs[is_seeded].groupby("agent", sort=False):
            baseline = evaluation.baseline_values(str(agent)).mean(axis=1).sum()
            sums = runs.groupby(["seed", "week"])["mean_bsld"].mean().groupby("seed").sum()
            ratios[str(agent)] = tuple(float(total / baseline) for total in sums)
        return ratios

    def against(self, baseline: str) -> CrossValidationResult:
        """Return the same runs with ratios to another agent, as `Evaluation.against`."""
        logs = tuple(evaluation.against(baseline) for evaluation in self.evaluations)
        return replace(self, evaluations=logs)

    def summary(self) -> pd.DataFrame:
        """Return one row per log and agent or baseline, and rows over all logs.

        Returns:
            As `Evaluation.summary`, with the columns `scenario`, `kind`, `n_seeds` (0 where nothing
            was trained), `ratio_seeds_low` and `ratio_seeds_high`, the range over training seeds.
            Several logs add rows whose scenario is "all logs": geometric means of the ratios and
            means of the log ratios; other metrics are missing there.

        Source: Specification, section 10, "Evaluation protocol", steps 3 to 5.
        """
        import pandas as pd

        frames = []
        for evaluation in self.evaluations:
            frame = evaluation.summary()
            frame.insert(0, "scenario", evaluation.scenario)
            frames.append(self._with_seeds(frame, self.seed_ratios_on(evaluation)))
        if self.aggregates:
            frame = aggregate_frame(self.aggregates)
            joint = self._with_seeds(frame, self.seed_ratios).reindex(columns=frames[0].columns)
            frames = [frame.astype({"max_wait_time": "Int64"}) for frame in (*frames, joint)]
        return pd.concat(frames, ignore_index=True)

    def _with_seeds(
        self, frame: pd.DataFrame, ratios: Mapping[str, tuple[float, ...]]
    ) -> pd.DataFrame:
        """Add the kind of each agent, and the range over its training seeds."""
        by_seed = [ratios.get(agent, ()) for agent in frame["agent"]]
        frame.insert(2, "kind", [self.kinds[agent] for agent in frame["agent"]])
        frame["n_seeds"] = [len(values) for values in by_seed]
        frame["ratio_seeds_low"] = [min(values, default=float("nan")) for values in by_seed]
        frame["ratio_seeds_high"] = [max(values, default=float("nan")) for values in by_seed]
        return frame

    def table(self) -> Group:
        """Return a table per log for a terminal, and one over all logs where there are several.

        Best ratio first; below each table the ratios of training seeds.
        """
        from rich.console import Group

        tables = []
        for evaluation in self.evaluations:
            notes = _notes(self.kinds, self.seed_ratios_on(evaluation), self._ended)
            tables += [evaluation.table(kinds=self.kinds, notes=notes), evaluation.waits_table()]
        if self.aggregates:
            notes = _notes(self.kinds, self.seed_ratios, self._ended)
            tables += aggregate_tables(self.evaluations, self.aggregates, self.kinds, notes)
        return Group(*(part for table in tables for part in (table, "")))

    def overview(self) -> TextTable:
        """Return one table of five columns, over all logs where there are several."""
        notes = _notes(self.kinds, self.seed_ratios, self._ended)
        if self.aggregates:
            return overview_of_logs(self.evaluations, self.aggregates, self.kinds, notes)
        return overview(self.evaluation, self.kinds, notes)

    def to_csv(self, folder: str | Path, *, force: bool = False) -> None:
        """Write runs.csv, summary.csv and trainings.csv to a folder that exists.

        Raises:
            OutputError: A file exists and `force` is False, or it cannot be written.
        """
        for name, frame in self.frames().items():
            write_csv(frame, Path(folder, name), force=force)

    def frames(self) -> dict[str, pd.DataFrame]:
        """Return the tables by the names of their files."""
        return {
            "runs.csv": self.runs,
            "summary.csv": self.summary(),
            "trainings.csv": self.trainings,
        }


def _notes(
    kinds: Mapping[str, Kind],
    seed_ratios: Mapping[str, tuple[float, ...]],
    ended: Mapping[str, str],
) -> list[str]:
    """Return the lines below a table."""
    shown = [text for kind, text in _MEANING.items() if kind in kinds.values()]
    notes = ["; ".join(shown)] if shown else []
    for agent, ratios in seed_ratios.items():
        by_seed = ", ".join(f"{ratio:.3f}" for ratio in ratios)
        notes.append(
            f"{agent}: trained without the block; ratio by training seed {by_seed}{ended[agent]}"
        )
    return notes
