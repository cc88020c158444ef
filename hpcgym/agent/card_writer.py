"""Writing what was trained as an entry of the shelf: its card, and its weights beside it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hpcgym.agent.base import NamedAgent
from hpcgym.agent.card import read_card
from hpcgym.agent.result_table import forget_results
from hpcgym.agent.rule import RuleAgent
from hpcgym.agent.run_time_network import write_expecting
from hpcgym.agent.trainers import TRAINERS
from hpcgym.agent.training_weeks import Training
from hpcgym.agent.weights import ConstantAction
from hpcgym.core.policy import FEATURES, Policy
from hpcgym.core.state import RULE_INDEX, RULE_WEIGHTS
from hpcgym.errors import CardError
from hpcgym.output import ensure_writable, writing
from hpcgym.registry import shelf_folders
from hpcgym.scenario.week_ranges import number_ranges


def write_card(path: Path, tables: Mapping[str, Mapping[str, Any]], *, force: bool = False) -> None:
    """Write a card, and see that it is understood.

    Args:
        path: Where to.
        tables: What stands in it by table, those of the top under "".
        force: Whether to replace a card that is there.

    Raises:
        OutputError: The file cannot be written, or is there.
        CardError: The card is not understood, or what it names is not there.

    Source:
        House rule: a card says what an agent is and how it was made.
    """
    text = "\n".join(_table(title, table) for title, table in tables.items())
    with writing(path, force=force) as file:
        file.write_text(text, encoding="utf-8")
    forget_results(path.parent, read_card(path).name)


def ensure_free(name: str, folder: Path, *, shelf: bool, force: bool = False) -> None:
    """Refuse a name that an agent cannot be written under, before the work of making one.

    Args:
        name: What tables would call it; its card and weights would be named after it.
        folder: Where they would go.
        shelf: Whether they would go to the shelf, too.
        force: Whether files that are there may be replaced.

    Raises:
        CardError: A name that the shelf cannot have.
        OutputError: A file cannot be written, or is there.

    Source:
        House rule: a long run fails before its work and not after it.
    """
    if shelf:
        _refuse_trainers_name(name)
    for place in (folder, shelf_folders("agents")[0]) if shelf else (folder,):
        for suffix in (".toml", ".npz"):
            ensure_writable(place / f"{name.casefold()}{suffix}", force=force)


def put_on_shelf(card: Path, *, force: bool = False) -> Path:
    """Copy a card, and the file of weights that it may name, to the shelf of agents.

    Args:
        card: The card, as it was written.
        force: Whether to replace files that are there.

    Returns:
        The card on the shelf; its results are for `scripts/update_agents.py`.

    Raises:
        CardError: A name that the shelf cannot have.
        OutputError: A file cannot be written, or is there.

    Source:
        House rule: the shelf is a folder of cards.
    """
    stated = read_card(card)
    _refuse_trainers_name(stated.name)
    shelf = shelf_folders("agents")[0]
    weights = card.with_suffix(".npz")
    named = weights.name in stated.parameters.values()
    for source in (weights, card) if named else (card,):
        with writing(shelf / source.name, force=force) as file:
            shutil.copyfile(source, file)
    forget_results(shelf, stated.name)
    return shelf / card.name


def commit_at(folder: Path) -> str:
    """Return the commit of the checkout that a folder is in.

    Args:
        folder: The folder.

    Returns:
        Its short hash, "unknown" where there is no checkout.

    Source:
        House rule: a card says what made its agent.
    """
    command = ["git", "rev-parse", "--short", "HEAD"]
    try:
        told = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except OSError:
        return "unknown"
    return told.stdout.strip() or "unknown"


def training_table(training: Training) -> dict[str, Any]:
    """Return how an agent was trained as a card's table.

    Args:
        training: How.

    Returns:
        The table, its seconds to a tenth.

    Source:
        `hpcgym.agent.card`.
    """
    weeks = {name: number_ranges(numbers) for name, numbers in training.weeks.items()}
    table = vars(training) | {"weeks": weeks, "seconds": round(training.seconds, 1)}
    return {key: value for key, value in table.items() if value or key != "logs"}


def write_tuned(
    agent: RuleAgent | NamedAgent,
    name: str,
    folder: Path,
    training: Training,
    *,
    force: bool = False,
) -> Path:
    """Write an agent that orders by tuned weights, and the network that it may have.

    Args:
        agent: The agent: an index, weights of the six features, or the same in unit scale, which an
            environment plays.
        name: What tables call it; the files are named after it, in lower case.
        folder: Where to.
        training: How it was trained.
        force: Whether to replace files that are there.

    Returns:
        The card.

    Raises:
        OutputError: A file cannot be written, or is there.
        CardError: The agent is none of these.

    Source:
        House rule: agents are weights with a card that says how they were made.
    """
    path = folder / f"{name.casefold()}.toml"
    described = _described(agent, path.stem)
    if isinstance(agent, RuleAgent) and agent.policy.network is not None:
        write_expecting(agent.policy.network, path.with_suffix(".npz"), force=force)
    logs = " and ".join(training.weeks)
    top = {"name": name, **described.top, "description": f"{described.text}, trained on {logs}."}
    tables = {
        "": top,
        "parameters": described.parameters,
        "environment": described.environment,
        "training": training_table(training),
    }
    write_card(path, tables, force=force)
    return path


def _refuse_trainers_name(name: str) -> None:
    """Refuse a name by which a judgement would make new agents, and not find this one."""
    if name.casefold() in TRAINERS:
        raise CardError(
            f"{name} is a trainer, so `hpcgym judge {name}` would train new agents; give an agent "
            f"for the shelf another name than {', '.join(TRAINERS)}"
        )


class _Described(NamedTuple):
    """What a card says of an agent."""

    top: dict[str, str]
    text: str
    parameters: dict[str, Any]
    environment: dict[str, Any]


def _described(agent: RuleAgent | NamedAgent, stem: str) -> _Described:
    """Say what a tuned agent is, the way its kind of card does."""
    if isinstance(agent, RuleAgent):
        is_index = agent.policy.rule == RULE_INDEX
        return _index(agent.policy, stem) if is_index else _weighted(agent.policy)
    if not isinstance(agent.agent, ConstantAction):
        raise CardError(
            f"{agent.name} orders by no tuned weights; scripts/train_ppo.py writes networks"
        )
    top = {"title": "Weights of the six features, in unit scale", "kind": "weights"}
    return _Described(
        top | {"source": "RR-9212, equation 3"},
        "Orders the jobs by a weighted sum of six features, each divided by its size on the "
        "machine at hand",
        {"weights": list(agent.agent.action)},
        {"action": "weights"},
    )


def _weighted(policy: Policy) -> _Described:
    """Say what weights of raw features are, or the rule that they come to."""
    text = policy.name
    if policy.rule == RULE_WEIGHTS:
        named = zip(FEATURES, policy.parameters[: len(FEATURES)].tolist(), strict=True)
        text = ",".join(f"{feature}={weight!r}" for feature, weight in named if weight)
    return _Described(
        {"title": "Weights of the six features", "kind": "rule", "source": policy.source},
        "Orders the jobs by a weighted sum of six features",
        {"policy": text, "score": "the weighted sum of raw features"},
        {"action": "policy", "policies": [text]},
    )


def _index(policy: Policy, stem: str) -> _Described:
    """Say what an index is."""
    parameters: dict[str, Any] = {"weights": np.trim_zeros(policy.parameters, "b").tolist()}
    expects = "means over the user's last jobs"
    if policy.network is not None:
        parameters["network"] = f"{stem}.npz"
        expects = "a network that reads the user's last jobs"
    top = {
        "title": f"Index of what is expected by {expects}",
        "kind": "index",
        "source": "Smith 1956, Various optimizers for single-stage production; hpcgym",
    }
    text = (
        "Orders the jobs by a weighted sum of the logarithms of processors, request, and the share "
        f"and speed expected by {expects}"
    )
    return _Described(top, text, parameters, {"action": "policy"})


def _table(title: str, table: Mapping[str, Any]) -> str:
    """Write a table as TOML."""
    head = f"[{title}]\n" if title else ""
    return head + "".join(f"{key} = {_value(value)}\n" for key, value in table.items())


def _value(value: object) -> str:
    """Write a text, a number, a list or a table of such as TOML."""
    if isinstance(value, Mapping):
        inside = ", ".join(f"{json.dumps(key)} = {_value(one)}" for key, one in value.items())
        return f"{{ {inside} }}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value)  # texts and numbers as TOML has them
