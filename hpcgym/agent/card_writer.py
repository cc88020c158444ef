"""Write what was trained as a card, with its weights beside it, and put it on the shelf."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import tomli_w

from hpcgym.agent.base import NamedAgent
from hpcgym.agent.card import KIND_OF_ACTION, Stated, read_card
from hpcgym.agent.network import NetworkAgent, NetworkSpec, write_network
from hpcgym.agent.result_table import forget_results
from hpcgym.agent.rule import RuleAgent
from hpcgym.agent.run_time_network import write_run_time_network
from hpcgym.agent.trainers import TRAINERS
from hpcgym.agent.training_weeks import Training
from hpcgym.agent.weights import ConstantAction
from hpcgym.base.errors import CardError
from hpcgym.base.output import ensure_writable, writing
from hpcgym.base.ranges import number_ranges
from hpcgym.base.registry import clone, shelf_folders
from hpcgym.core.features import FEATURES
from hpcgym.core.index_policy import INDEX
from hpcgym.core.policy import WEIGHTS, Policy

LONGEST_NAME = 200
"""Bytes of an agent's name: file systems allow 255, and names of its files are longer."""


class Trained(Protocol):
    """A network that says what its card states, such as one that PPO has trained."""

    agent: NetworkAgent

    @property
    def ended_at_start(self) -> bool: ...  # noqa: D102

    def described(self, stem: str, logs: str) -> Stated: ...  # noqa: D102


def write_agent(
    agent: RuleAgent | NamedAgent | Trained,
    name: str,
    folder: str | Path,
    training: Training,
    *,
    force: bool = False,
) -> Path:
    """Write the card of a trained agent, and its network if it has one; return the card.

    Args:
        agent: An index, weights of the six features, the same in unit scale, constant controls, a
            network, or what `hpcgym.agent.learn.ppo.train` returns.
        name: What tables call it; the files are named after it, in lower case.
        training: How it was trained; the weeks include those it was validated on.
        force: Whether to replace files that are there.

    Raises:
        OutputError: A file cannot be written, or is there.
        CardError: The agent is none of these.
    """
    path = Path(folder) / f"{name.casefold()}.toml"
    stated = _stated(agent, path.stem, " and ".join(training.weeks))
    training = replace(training, ended_at_start=agent.ended_at_start)
    if training.ended_at_start and isinstance(agent, RuleAgent | NamedAgent):
        stated.texts["description"] += " Nothing that was tried was better than this, its start."
    if isinstance(agent, RuleAgent):
        if agent.policy.network is not None:
            write_run_time_network(agent.policy.network, path.with_suffix(".npz"), force=force)
    elif isinstance(agent.agent, NetworkAgent):
        write_network(agent.agent, path.with_suffix(".npz"), force=force)
    with writing(path, force=force) as file:
        file.write_text(
            tomli_w.dumps(
                {
                    "name": name,
                    **stated.texts,
                    "parameters": stated.parameters,
                    "environment": stated.environment,
                    "training": training_table(training),
                }
            ),
            encoding="utf-8",
        )
    read_card(path)
    forget_results(path.parent, name)
    return path


def refuse_name(name: str) -> None:
    """Refuse a name that no file can be named after."""
    if not name or Path(name).name != name or len(name.encode()) > LONGEST_NAME:
        raise CardError(f"an agent's files are named after it, so {name!r} cannot be its name")


def ensure_free(
    name: str, folder: Path, *, shelf: bool, force: bool = False, resumed: bool = False
) -> None:
    """Refuse a name that an agent cannot be written under, before it is trained.

    With `resumed` files in the folder may be replaced, though not on the shelf.

    Raises:
        CardError: A name that no file or the shelf can have, or hpcgym was not cloned.
        OutputError: A file cannot be written, or is there and `force` is False.
    """
    refuse_name(name)
    if shelf:
        _refuse_for_shelf(name, folder)
    for directory in (folder, shelf_folders("agents")[0]) if shelf else (folder,):
        for suffix in (".toml", ".npz"):
            file = directory / f"{name.casefold()}{suffix}"
            ensure_writable(file, force=force or (resumed and directory == folder))


def put_on_shelf(card: Path, *, force: bool = False) -> Path:
    """Copy a card, and the file of weights that it may name, to the shelf; return the copy.

    Earlier results under that name are removed; `scripts/update_agents.py` writes new ones.

    Raises:
        CardError: A name that the shelf cannot have, or hpcgym was not cloned.
        OutputError: A file cannot be written, or is there.
    """
    stated = read_card(card)
    _refuse_for_shelf(stated.name, card.parent)
    shelf = shelf_folders("agents")[0]
    weights = card.with_suffix(".npz")
    named = weights.name in stated.parameters.values()
    for source in (weights, card) if named else (card,):
        with writing(shelf / source.name, force=force) as file:
            shutil.copyfile(source, file)
    forget_results(shelf, stated.name)
    return shelf / card.name


def commit_at(folder: Path) -> str:
    """Return the short hash of a folder's checkout, "unknown" where there is none."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    try:
        told = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except OSError:
        return "unknown"
    return told.stdout.strip() or "unknown"


def training_table(training: Training) -> dict[str, Any]:
    """Return how an agent was trained as a card's table, its seconds to a tenth."""
    weeks = {name: number_ranges(numbers) for name, numbers in training.weeks.items()}
    table = vars(training) | {"weeks": weeks, "seconds": round(training.seconds, 1)}
    usual = {"logs": {}, "ended_at_start": False}
    return {key: value for key, value in table.items() if value != usual.get(key)}


def _refuse_for_shelf(name: str, folder: Path) -> None:
    """Refuse a shelf that is not a clone's, and a name that would train new agents."""
    if clone() is None:
        card = folder / f"{name.casefold()}.toml"
        raise CardError(
            "the shelf can be written to in a clone of hpcgym only, and this is an installed "
            f"package; without --shelf `hpcgym evaluate --agents {shlex.quote(str(card))}` runs it"
        )
    if name.casefold() in TRAINERS:
        raise CardError(
            f"{name} is a trainer, so `hpcgym cross-validate {name}` would train new agents; "
            f"give an agent for the shelf another name than {', '.join(TRAINERS)}"
        )


def _stated(agent: RuleAgent | NamedAgent | Trained, stem: str, logs: str) -> Stated:
    """Describe an agent the way its kind of card does."""
    if isinstance(agent, RuleAgent):
        is_index = agent.policy.order == INDEX
        return _index(agent.policy, stem, logs) if is_index else _weighted(agent.policy, logs)
    if not isinstance(agent, NamedAgent):
        return agent.described(stem, logs)
    if isinstance(agent.agent, NetworkAgent):
        return _credited(agent, agent.agent.spec, stem, logs)
    if not isinstance(agent.agent, ConstantAction):
        raise CardError(f"{agent.name} orders by no tuned weights; `hpcgym train` writes networks")
    if agent.env_keywords["action"] == "controls":
        return Stated(
            {
                "title": "Constant controls: kappa, cap, bound of long jobs, urgency",
                "kind": "controls",
                "source": "hpcgym specification, section 10, Controls",
                "description": "The order of SMITH-URGENT with an urgency of its own, under a cap "
                f"and costs of its own, trained on {logs}.",
            },
            {"controls": _numbers(agent.agent)},
            dict(agent.env_keywords),
        )
    return Stated(
        {
            "title": "Weights of the six features, in unit scale",
            "kind": "weights",
            "source": "RR-9212, equation 3",
            "description": "Orders the jobs by a weighted sum of six features, each divided by its "
            f"size on the machine at hand, trained on {logs}.",
        },
        {"weights": _numbers(agent.agent)},
        {"action": "weights"},
    )


def _numbers(constant: ConstantAction) -> list[float]:
    assert isinstance(constant.action, tuple)
    return list(constant.action)


def _weighted(policy: Policy, logs: str) -> Stated:
    """Describe weights of raw features, or the rule that they are equal to."""
    text = policy.name
    if policy.order == WEIGHTS:
        named = zip(FEATURES, policy.parameters[: len(FEATURES)].tolist(), strict=True)
        text = ",".join(f"{feature}={weight!r}" for feature, weight in named if weight)
    return Stated(
        {
            "title": "Weights of the six features",
            "kind": "rule",
            "source": policy.source,
            "description": f"Orders the jobs by a weighted sum of six features, trained on {logs}.",
        },
        {"policy": text, "score": "the weighted sum of raw features"},
        {"action": "policy", "policies": [text]},
    )


def _index(policy: Policy, stem: str, logs: str) -> Stated:
    parameters: dict[str, Any] = {"weights": np.trim_zeros(policy.parameters, "b").tolist()}
    expects = "means over the user's last jobs"
    if policy.network is not None:
        parameters["network"] = f"{stem}.npz"
        expects = "a network that reads the user's last jobs"
    return Stated(
        {
            "title": f"Index of what is expected by {expects}",
            "kind": "index",
            "source": "Smith 1956, Various optimizers for single-stage production; hpcgym",
            "description": "Orders the jobs by a weighted sum of the logarithms of processors, "
            "request, run-time ratio and speed. The last two are expected by "
            f"{expects}, trained on {logs}.",
        },
        parameters,
        {"action": "policy"},
    )


def _credited(agent: NamedAgent, spec: NetworkSpec, stem: str, logs: str) -> Stated:
    """Describe a network that was fitted to counterfactuals."""
    return Stated(
        {
            "title": f"Network that {KIND_OF_ACTION[spec.action]}, fitted to branches on {logs}",
            "kind": "network",
            "source": "hpcgym specification, section 10, Counterfactuals",
            "description": f"A network that corrects {spec.start.upper()} by a "
            f"bounded amount, fitted to what options at {agent.steps} decisions would have "
            "changed. Weeks kept for validation chose among its epochs.",
        },
        {"weights": f"{stem}.npz"},
        dict(agent.env_keywords),
    )
