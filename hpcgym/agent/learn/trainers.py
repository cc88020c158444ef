"""Trainers: what makes an agent of given weeks, and a list of those there are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from hpcgym.agent.learn.search import W_TRAIN, SearchTrainer
from hpcgym.agent.own import Trainer, is_own, own_trainer
from hpcgym.base.errors import CardError, unknown_name
from hpcgym.core.actions.controls import CONTROLLED


def _ppo_trainer(name: str = "PPO", action: str = "order", **changes: Any) -> Trainer:
    """Make the trainer of networks with a preset and changes to it; needs the extra `train`."""
    from hpcgym.agent.learn.ppo import PPOTrainer, preset

    return PPOTrainer(preset(action, **changes), name=name)


def _credit_trainer() -> Trainer:
    """Make the trainer on counterfactuals; needs the extra `train`."""
    import hpcgym.agent.learn.ppo  # noqa: F401  # says how PyTorch is installed where it is not
    from hpcgym.agent.learn.credit import CreditTrainer

    return CreditTrainer()


OPEN = f"{CONTROLLED},overdue=open"
_TUNED: dict[str, Any] = {"objective": "sum-ratio", "copies": 0, "evaluations": 40}
_BRIEF: dict[str, Any] = {"steps": 400_000, "minutes": 0.0, "validate_every": 6}
_BRIEF |= {"learning_rate": 3e-3, "averaging": 0.8}  # a few rollouts must do
_AT_URGENCY: dict[str, Any] = {**_BRIEF, "start": "smith-urgent"}

TRAINERS: dict[str, Callable[[], Trainer]] = {
    "weights": partial(replace, W_TRAIN),
    "tuned-weights": partial(SearchTrainer, "TUNED-WEIGHTS", "features", evaluations=240),
    "network": partial(SearchTrainer, "SMITH-NET", network=True, evaluations=0),
    "tuned-history": partial(SearchTrainer, "TUNED-HISTORY"),
    "tuned-network": partial(SearchTrainer, "TUNED-NET", network=True),
    "evolved-score": partial(SearchTrainer, "EVOLVED-NET", "score", network=True, evaluations=240),
    "tuned-controls": partial(SearchTrainer, "TUNED-CONTROLS", "controls", **_TUNED),
    "tuned-open": partial(SearchTrainer, "TUNED-OPEN", "controls", backfill=OPEN, **_TUNED),
    "credit": _credit_trainer,
    "ppo": _ppo_trainer,
    "ppo-controls": partial(_ppo_trainer, "PPO-CONTROLS", "controls", **_BRIEF),
    "ppo-open": partial(_ppo_trainer, "PPO-OPEN", "controls", backfill=OPEN, **_BRIEF),
    "ppo-urgent": partial(_ppo_trainer, "PPO-URGENT", backfill=CONTROLLED, **_AT_URGENCY),
    "ppo-order-open": partial(_ppo_trainer, "PPO-ORDER-OPEN", backfill=OPEN, **_AT_URGENCY),
}
"""What makes each trainer, by the name that commands take."""


def load_trainer(name: str) -> Trainer:
    """Make a trainer, with its default settings, by a name of `TRAINERS` in any case.

    Args:
        name: That name, or `path/to/file.py:Name` or `module:Name`, which runs the file.

    Raises:
        CardError: There is none of that name.
        HpcgymError: A file or module cannot be imported.
    """
    if is_own(name):
        return own_trainer(name)
    if name.casefold() not in TRAINERS:
        raise CardError(unknown_name("trainer", name, TRAINERS))
    return TRAINERS[name.casefold()]()
