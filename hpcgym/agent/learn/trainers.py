"""Trainers of networks, each of which needs the extra `train`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from hpcgym.agent.own import Trainer
from hpcgym.agent.search import OPEN
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


_BRIEF: dict[str, Any] = {"steps": 400_000, "minutes": 0.0, "validate_every": 6}
_BRIEF |= {"learning_rate": 3e-3, "averaging": 0.8}  # a few rollouts must do
_AT_URGENCY: dict[str, Any] = {**_BRIEF, "start": "smith-urgent"}

NETWORKS: dict[str, Callable[[], Trainer]] = {
    "credit": _credit_trainer,
    "ppo": _ppo_trainer,
    "ppo-controls": partial(_ppo_trainer, "PPO-CONTROLS", "controls", **_BRIEF),
    "ppo-open": partial(_ppo_trainer, "PPO-OPEN", "controls", backfill=OPEN, **_BRIEF),
    "ppo-urgent": partial(_ppo_trainer, "PPO-URGENT", backfill=CONTROLLED, **_AT_URGENCY),
    "ppo-order-open": partial(_ppo_trainer, "PPO-ORDER-OPEN", backfill=OPEN, **_AT_URGENCY),
}
"""What makes each trainer, by the name that commands take; `hpcgym.agent.trainers` lists them."""
