"""Which of several policies a training begins at: the best on the weeks of validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hpcgym.agent.learn.ppo.config import PPOConfig
from hpcgym.agent.network import NetworkAgent
from hpcgym.agent.validation import Validation
from hpcgym.env.scenario.episodes import Episodes


def ratios_of_starts(config: PPOConfig, validation: Sequence[Episodes]) -> dict[str, float]:
    """Return the ratio to SAF of each start; empty where there is no choice.

    An untrained network plays them, so a start is judged among the jobs that the network sees.

    Source: Specification, section 10, "Learnability kit".
    """
    ratios: dict[str, float] = {}
    for start in config.starts if len(config.starts) > 1 else ():
        of_start = replace(config, start=start)
        spec = replace(of_start.spec, residual=True)
        weeks = Validation(
            validation,
            of_start.env_keywords,
            copies=config.validation_copies,
            threads=config.threads,
        )
        untrained = {name: np.zeros(shape, np.float32) for name, shape in spec.shapes.items()}
        ratios[start] = weeks.score(NetworkAgent(spec, untrained)).ratio
    return ratios


def beginning(config: PPOConfig, ratios: dict[str, float]) -> PPOConfig:
    """Return a configuration with one start: of several the least ratio, of equal ones the first.

    Example:
        >>> from hpcgym.agent.learn.ppo.config import preset
        >>> beginning(preset("job"), {"smith-reg": 1.1, "saf": 1.0, "smith-history": 1.0}).start
        'saf'
    """
    best = min(ratios, key=ratios.__getitem__) if ratios else config.starts[0]
    return replace(config, start=best)
