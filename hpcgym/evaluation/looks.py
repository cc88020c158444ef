"""Whether a learned agent looks at anything: beside its mean action, and its actions shuffled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hpcgym.agent.blind import MEAN, SHUFFLED
from hpcgym.evaluation.statistics import Estimate, ratio_of_sums

if TYPE_CHECKING:
    from hpcgym.evaluation.results import Evaluation


@dataclass(frozen=True)
class Looks:
    """Ratios of sums of an agent to its controls, on the same weeks and copies."""

    to_mean: Estimate  # to its mean action, held for whole weeks
    to_shuffled: Estimate  # to its actions in another turn

    @property
    def is_seen(self) -> bool:
        """Tell whether the agent is surely better than both, so that it looks at something."""
        return all(ratio.high is not None and ratio.high < 1 for ratio in vars(self).values())

    def __str__(self) -> str:
        """Say it in words.

        Example:
            >>> print(Looks(Estimate(0.9, 0.01, 9), Estimate(0.99, 0.1, 9)))
            0.900 [0.880, 0.921] of its mean action, 0.990 [0.790, 1.241] of its actions shuffled: \
not seen to look at anything
        """
        seen = "it looks" if self.is_seen else "not seen to look at anything"
        parts = f"{self.to_mean} of its mean action, {self.to_shuffled} of its actions shuffled"
        return f"{parts}: {seen}"


def looks_of(evaluation: Evaluation, agent: str) -> Looks | None:
    """Return whether an agent of an evaluation looks; None where its controls have not run.

    Source: Specification, section 10, "Controls of an agent".
    """
    ratios = []
    for control in (f"{agent}/{MEAN}", f"{agent}/{SHUFFLED}"):
        if control not in evaluation.agents:
            return None
        beside = evaluation.against(control)
        values = beside.values, beside.baseline_values
        ratios.append(ratio_of_sums(*(of(agent, beside.metric) for of in values)))
    return Looks(*ratios)


def looks_notes(evaluation: Evaluation) -> list[str]:
    """Return a line for each agent whose controls have run."""
    pairs = ((agent, looks_of(evaluation, agent)) for agent in evaluation.agents)
    return [f"{agent}: {looks}" for agent, looks in pairs if looks is not None]
