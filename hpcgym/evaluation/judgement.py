"""What a judgement found: one table of an agent among lines of reference, and all its runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from hpcgym.evaluation.references import Kind
from hpcgym.evaluation.table import Evaluation
from hpcgym.output import writing

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

KEYS = ["agent", "week", "label", "replica"]
"""Columns that tell runs apart once training seeds are averaged."""


def averaged(runs: pd.DataFrame) -> pd.DataFrame:
    """Average every run over training seeds.

    Args:
        runs: One row per agent, week, fold, seed and replica; `fold` and `seed` are missing where
            nothing was trained.

    Returns:
        One row per agent, week and replica, in the order of the runs; the longest wait is that of
        all seeds.

    Source:
        Specification, section 10, "Evaluation protocol", step 3.

    Example:
        >>> import pandas as pd
        >>> run = {"agent": "net", "week": 1, "label": "week 1", "replica": 0, "fold": 1}
        >>> two = [{**run, "seed": 0, "mean_bsld": 2.0}, {**run, "seed": 1, "mean_bsld": 4.0}]
        >>> averaged(pd.DataFrame(two))["mean_bsld"].tolist()
        [3.0]
    """
    figures = [name for name in runs if name not in (*KEYS, "fold", "seed")]
    how = {name: "max" if name == "max_wait_time" else "mean" for name in figures}
    return runs.groupby(KEYS, sort=False, as_index=False).agg(how)


@dataclass(frozen=True, eq=False)
class Judgement:
    """What `hpcgym.evaluation.held_out.judge` found.

    Attributes:
        evaluation: Every agent and line of reference, training seeds averaged.
        runs: Every run: as `Evaluation.frame`, with the `fold` and the training `seed` of agents
            that were trained.
        trainings: One row per training: `agent`, `fold`, `seed`, `test_weeks`, `training_weeks`,
            `left_out_weeks`, `seconds` and `made`, the rule that came out where it is one.
        kinds: Whether a scheduler could be each agent.
    """

    evaluation: Evaluation
    runs: pd.DataFrame
    trainings: pd.DataFrame
    kinds: Mapping[str, Kind]

    @cached_property
    def seed_ratios(self) -> dict[str, tuple[float, ...]]:
        """The ratio to the reference of each training seed alone, by agent."""
        found: dict[str, tuple[float, ...]] = {}
        for agent, runs in self.runs[self.runs["seed"].notna()].groupby("agent", sort=False):
            reference = self.evaluation.reference_values(str(agent)).mean(axis=1).sum()
            sums = runs.groupby(["seed", "week"])["mean_bsld"].mean().groupby("seed").sum()
            found[str(agent)] = tuple(float(one / reference) for one in sums)
        return found

    def summary(self) -> pd.DataFrame:
        """Return one row per agent and line of reference.

        Returns:
            As `Evaluation.summary`, with the columns `kind`, `n_seeds` (0 where nothing was
            trained), `ratio_seeds_low` and `ratio_seeds_high`, the spread between training seeds.

        Source:
            Specification, section 10, "Evaluation protocol", steps 3 to 5.
        """
        frame = self.evaluation.summary()
        by_seed = [self.seed_ratios.get(agent, ()) for agent in frame["agent"]]
        frame.insert(1, "kind", [self.kinds[agent] for agent in frame["agent"]])
        frame["n_seeds"] = [len(ratios) for ratios in by_seed]
        frame["ratio_seeds_low"] = [min(ratios, default=float("nan")) for ratios in by_seed]
        frame["ratio_seeds_high"] = [max(ratios, default=float("nan")) for ratios in by_seed]
        return frame

    def table(self) -> Table:
        """Lay the summaries out for a terminal, best ratio first.

        Returns:
            A table to print with rich; below it the spread between training seeds.

        Source:
            Specification, section 10, "Evaluation protocol", steps 3 to 5.
        """
        notes = ["hindsight: made for the very week it is run on; clairvoyant: knows run times"]
        for agent, ratios in self.seed_ratios.items():
            by_seed = ", ".join(f"{ratio:.3f}" for ratio in ratios)
            notes.append(f"{agent}: trained without the block; ratio by training seed {by_seed}")
        return self.evaluation.table(kinds=self.kinds, notes=notes)

    def to_csv(self, folder: str | Path, *, force: bool = False) -> None:
        """Write `runs`, `summary` and `trainings`, each to a file of that name.

        Args:
            folder: Where; it exists.
            force: Whether to replace files that are there.

        Writes:
            runs.csv, summary.csv and trainings.csv.

        Raises:
            OutputError: A file exists and `force` is False, or it cannot be written.

        Source:
            House rule: a table can be worked out again from what is written.
        """
        frames = {"runs": self.runs, "summary": self.summary(), "trainings": self.trainings}
        for name, frame in frames.items():
            with writing(Path(folder, f"{name}.csv"), force=force) as file:
                frame.to_csv(file, index=False, lineterminator="\n")
