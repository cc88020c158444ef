"""A trained network as an entry of the shelf: its weights, and its card."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hpcgym.agent.card_writer import training_table, write_card
from hpcgym.agent.network import write_network
from hpcgym.agent.ppo.config import preset, texts_of
from hpcgym.agent.ppo.train import Trained
from hpcgym.agent.training_weeks import Training
from hpcgym.scenario.augment import Augmentation

NOT_SET = ("action", "steps", "minutes", "threads", "device")
"""Hyper-parameters that a card says elsewhere, or that do not change what comes out."""

KIND_OF_ACTION = {
    "order": "scores every visible job",
    "job": "picks the job that goes first",
    "policy": "chooses the policy of each pass",
    "weights": "weighs six features of a job",
}


def write_agent(
    trained: Trained,
    name: str,
    folder: str | Path,
    training: Training,
    *,
    force: bool = False,
) -> Path:
    """Write a trained network and its card; the results are for `scripts/update_agents.py`.

    Args:
        trained: The network.
        name: What tables call it; the files are named after it, in lower case.
        folder: Where to.
        training: How it was trained; its weeks are also those it was validated on.
        force: Whether to replace files that are there.

    Returns:
        The card.

    Raises:
        OutputError: A file cannot be written, or is there.

    Source:
        House rule: agents are weights with a card that says how they were made.
    """
    stem = name.casefold()
    config, path = trained.config, Path(folder) / f"{stem}.toml"
    write_network(trained.agent, path.with_suffix(".npz"), force=force)
    logs, start = " and ".join(training.weeks), config.start.upper()
    tie = f"corrects {start} by a bounded amount" if config.residual else f"owes {start} nothing"
    tables: dict[str, dict[str, Any]] = {
        "": {
            "name": name,
            "title": f"Network that {KIND_OF_ACTION[config.action]}, trained on {logs}",
            "kind": "network",
            "source": "Schulman et al. 2017, Proximal policy optimization algorithms; hpcgym",
            "description": (
                f"A {config.network} network that {tie}, trained by PPO on {trained.steps} "
                f"decisions. It was the {config.gives} of its training, on the weeks kept for "
                f"validation at {trained.ratio:.3f} times SAF's sum."
            ),
        },
        "parameters": {
            "weights": f"{stem}.npz",
            "network": config.network,
            "steps": trained.steps,
            "settings": _settings_of(trained),
        },
        "environment": dict(config.env_keywords),
        "training": training_table(training),
    }
    write_card(path, tables, force=force)
    return path


def _settings_of(trained: Trained) -> list[str]:
    """Return what is not the preset's, as `--set` takes it, and what changes episodes."""
    usual = texts_of(preset(trained.config.action))
    own = texts_of(trained.config).items()
    found = [f"{k}={v}" for k, v in own if k not in NOT_SET and v != usual[k]]
    unchanged = texts_of(Augmentation())
    changes = texts_of(trained.augmentation or Augmentation()).items()
    return found + [f"augment {k}={v}" for k, v in changes if v != unchanged[k]]
