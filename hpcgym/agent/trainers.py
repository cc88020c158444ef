"""Trainers: what makes an agent of given weeks, and a list of those there are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from hpcgym.agent.own import Trainer, is_own, own_trainer
from hpcgym.agent.search import OPEN, W_TRAIN, SearchTrainer
from hpcgym.base.errors import CardError, unknown_name
from hpcgym.base.registry import has_room

_TUNED: dict[str, Any] = {"objective": "sum-ratio", "copies": 0, "evaluations": 40}

TRAINERS: dict[str, Callable[[], Trainer]] = {
    "weights": partial(replace, W_TRAIN),
    "tuned-weights": partial(SearchTrainer, "TUNED-WEIGHTS", "features", evaluations=240),
    "network": partial(SearchTrainer, "SMITH-NET", network=True, evaluations=0),
    "tuned-history": partial(SearchTrainer, "TUNED-HISTORY"),
    "tuned-network": partial(SearchTrainer, "TUNED-NET", network=True),
    "evolved-score": partial(SearchTrainer, "EVOLVED-NET", "score", network=True, evaluations=240),
    "tuned-controls": partial(SearchTrainer, "TUNED-CONTROLS", "controls", **_TUNED),
    "tuned-open": partial(SearchTrainer, "TUNED-OPEN", "controls", backfill=OPEN, **_TUNED),
}
"""What makes each trainer, by the name that commands take."""

if has_room("agent/learn"):
    from hpcgym.agent.learn.trainers import NETWORKS

    TRAINERS |= NETWORKS


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
