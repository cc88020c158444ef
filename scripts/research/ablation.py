"""Train by PPO with each option of the learnability kit alone, and compare it with one preset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from hpcgym.base.errors import EvaluationError, unknown_name
from hpcgym.env.scenario.augment import Augmentation
from hpcgym.evaluation.cross_validation import Weeks, cross_validate
from hpcgym.evaluation.cv_result import CrossValidationResult
from hpcgym.evaluation.folds import FOLDS
from hpcgym.evaluation.statistics import ratio_of_sums
from hpcgym.trace.resample import JITTER_S

if TYPE_CHECKING:
    from hpcgym.agent.learn.ppo import PPOConfig, PPOTrainer

PRESET = "preset"
"""The options are compared with this one."""

DAY_S = 86_400

SETTINGS: Mapping[str, Mapping[str, Any]] = {
    PRESET: {},
    "untrained": {"minutes": 1e-9},
    "no baseline": {"reward": "bsld", "baseline": ""},
    "a baseline, but not in its units": {"reward": "bsld"},
    "SAF as baseline": {"baseline": "SAF"},
    "all of the reward at the end": {"reward": "log_ratio"},
    "no groups": {"group_size": 1},
    "groups of 24": {"group_size": 24},
    "starts at SAF": {"start": "saf"},
    "warmer": {"temperature": 0.5},
    "farther from its start": {"bound": 4.0},
    "no residual": {"residual": False},
    "no average": {"averaging": 0.0},
    "the best by validation": {"gives": "best"},
}
"""Options that are hyper-parameters."""

AUGMENTATIONS: Mapping[str, Augmentation] = {
    "trivial and hopeless weeks left out": Augmentation(easiest=2.0, hardest=200.0),
    "jitter": Augmentation(jitter=600),
    "load": Augmentation(load=(0.8, 1.25)),
    "half of the weeks resampled": Augmentation(resampled=0.5),
    "half of the weeks generated": Augmentation(generated=0.5),
    "short windows": Augmentation(window=(DAY_S, 3 * DAY_S)),
    "short windows before long ones": Augmentation(window=(DAY_S, 7 * DAY_S), growing=True),
}
"""Options that change the episodes."""

MIXTURE = "mixture of logs"
"""The preset, trained on other logs, too."""


def kit_trainers(config: PPOConfig, names: Sequence[str]) -> list[PPOTrainer]:
    """Return a trainer per option, under its name, equal to the preset but for that option.

    Args:
        config: The preset.
        names: Options, of `SETTINGS` and `AUGMENTATIONS`.

    Raises:
        EvaluationError: No such option.

    Source: Specification, section 10, "Learnability kit".
    """
    from hpcgym.agent.learn.ppo import PPOTrainer

    for name in names:
        if name not in (*SETTINGS, *AUGMENTATIONS):
            raise EvaluationError(unknown_name("option", name, (*SETTINGS, *AUGMENTATIONS)))
    return [
        PPOTrainer(replace(config, **SETTINGS.get(name, {})), AUGMENTATIONS.get(name), name)
        for name in names
    ]


def ablate(
    config: PPOConfig,
    scenario: Weeks,
    names: Sequence[str] = (*SETTINGS, *AUGMENTATIONS),
    *,
    mixed_with: Sequence[Weeks] = (),
    seeds: int = 2,
    replicas: int = 3,
    resume: str | Path | None = None,
) -> CrossValidationResult:
    """Train with each option, and evaluate the agents on the last block of a log.

    Args:
        config: The preset.
        scenario: Weeks of a log.
        names: Options, of `SETTINGS` and `AUGMENTATIONS`.
        mixed_with: Weeks of other logs, to train on together with the log.
        seeds: Trainings of each option.
        replicas: Jittered copies of each week, besides the original.
        resume: File in which finished trainings and runs are kept.

    Returns:
        Every option and the preset's starts against SAF, on the log and on those it is mixed with.

    Raises:
        EvaluationError: No such option, or a cross-validation that is not possible.

    Source: Specification, section 10, "Learnability kit" and "Evaluation protocol".
    """
    trainers = kit_trainers(config, names)
    if mixed_with:
        trainers = [replace(one, name=MIXTURE) for one in trainers]
    return cross_validate(
        [*trainers, *(start.upper() for start in config.starts)],
        [scenario, *mixed_with],
        blocks=[FOLDS],
        seeds=seeds,
        jitter=JITTER_S if replicas else 0,
        replicas=replicas,
        baselines=[],
        resume=resume,
    )


def table_of(results: Sequence[CrossValidationResult]) -> pd.DataFrame:
    """Return a table of options, best ratio first.

    Of each result the first log counts, the same in all. Options are also compared with `PRESET`,
    where it is among them.
    """
    logs = [result.evaluations[0] for result in results]
    preset = next((log.values(PRESET) for log in logs if PRESET in log.agents), None)
    rows = {}
    for result, log in zip(results, logs, strict=True):
        by_seed = result.seed_ratios_on(log)
        for one in log.summaries:
            seeds = ", ".join(f"{ratio:.3f}" for ratio in by_seed.get(one.agent, ()))
            row = {"option": one.agent, "ratio to SAF": f"{one.ratio}", "by seed": seeds}
            row["mean log ratio"] = f"{one.log_ratio.value:+.3f}"
            if preset is not None:
                row["ratio to the preset"] = f"{ratio_of_sums(log.values(one.agent), preset)}"
            rows[one.agent] = (one.ratio.value, row)
    ordered = sorted(rows.values(), key=lambda pair: (pair[0], pair[1]["option"]))
    return pd.DataFrame([row for _, row in ordered])
