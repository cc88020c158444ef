"""Agent cards: strict TOML that says what an agent is, where it comes from and how it was made.

A card has the keys `name`, `title`, `kind`, `source` and `description`, and the tables `parameters`
and `environment`. Its results are in `results.csv` beside it (`hpcgym.agent.result_table`). An
agent that was trained on weeks of logs has a table that names them by scenario; it is never
evaluated on these weeks or on weeks adjacent to them:

    [training]
    weeks = { kth-sp2-weeks = "1-9,20-46" }
    seed = 0
    seconds = 512.3
    commit = "863cff6"
    command = "hpcgym train --scenario kth-sp2-weeks"
    logs = { kth-sp2-weeks = "<sha256 of the log's text>" }

`ended_at_start = true` is added where nothing that the training tried was better than what it began
with, so that the agent decides as that does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, cast

from hpcgym.agent.base import NamedAgent
from hpcgym.agent.contest import UNKNOWN, Contest, contest_by, mode_in_env
from hpcgym.agent.result_table import Result, read_results
from hpcgym.agent.rule import RuleAgent
from hpcgym.agent.training_weeks import Training
from hpcgym.base.errors import CardError, PolicyError, ScenarioError, unknown_name
from hpcgym.base.ranges import parse_numbers
from hpcgym.base.registry import read_toml, shelf_entries
from hpcgym.core.index_policy import index_policy
from hpcgym.core.policy import mixed_policy
from hpcgym.core.setting_list import settings_of_rules
from hpcgym.env.scenario.spec import NUMBERS

KIND_OF_ACTION = {
    "order": "scores every visible job",
    "job": "picks the job that goes first",
    "policy": "chooses the policy of each pass",
    "index": "sets an index of jobs and what a delay may cost",
    "weights": "weighs six features of a job",
    "controls": "sets how far jobs are held back",
    "trials": "sets how far jobs are held back and trials go",
    "price": "sets what a delay must save, and the cap of long jobs",
}


class Stated(NamedTuple):
    """What a card states of an agent besides its name and its training."""

    texts: dict[str, str]
    parameters: dict[str, Any]
    environment: dict[str, Any]


@dataclass(frozen=True)
class Card:
    """What the shelf states of one agent.

    Attributes:
        name: What tables call it; the file's stem in any case.
        title: The name in words.
        kind: How it is made into an agent, one of `KINDS`.
        source: Paper or program the agent comes from.
        description: A few sentences for a person choosing among agents.
        parameters: What defines it.
        environment: Keywords of `HPCBatch-v0` that it needs; the rest is the scenario's.
    """

    name: str
    title: str
    kind: str
    source: str
    description: str
    parameters: Mapping[str, Any]
    environment: Mapping[str, Any]
    path: Path
    training: Training | None = None

    @property
    def results(self) -> tuple[Result, ...]:
        """Its results, one per scenario, from the table beside the card.

        Raises:
            CardError: The table is not understood.
        """
        return read_results(self.path.parent).get(self.name, ())

    @property
    def looks(self) -> dict[str, bool]:
        """Whether the agent is surely better than its controls, by scenario where it was tried."""
        return {row.scenario: row.looks for row in self.results if row.looks is not None}

    @property
    def contest(self) -> Contest:
        """The contest it takes part in under a threshold, where it states no mode under EASY.

        "-" where the mode it states is not known. Its results say it without loading any mode.
        """
        known = {result.contest for result in self.results} - {UNKNOWN}
        if len(known) == 1:
            return cast(Contest, known.pop())
        try:
            mode = mode_in_env(self.environment, "easy")
            return contest_by(mode, self.parameters.get("estimates"))
        except PolicyError:
            return UNKNOWN

    @cached_property
    def agent(self) -> RuleAgent | NamedAgent:
        """The agent, under the card's name; made once.

        Raises:
            CardError: The card states what its kind of agent cannot honour.
        """
        try:
            return replace(KINDS[self.kind](self), training=self.training)
        except (CardError, PolicyError) as error:
            raise CardError(f"{self.path}: {error}") from None


def read_card(path: Path) -> Card:
    """Read and check a card, and make its agent.

    Raises:
        CardError: As `parse_card`, or the agent cannot be made.
    """
    card = parse_card(path)
    _ = card.agent  # refuses what cannot be honoured
    return card


def parse_card(path: Path) -> Card:
    """Read a card and check its keys, but make no agent, for which kernels would be loaded.

    Raises:
        CardError: The file cannot be read, or a key is missing, unknown or of another type; the
            message names the file, the key and the nearest valid one.
    """
    document = read_toml(path, CardError)
    try:
        return _card_of(document, path)
    except CardError as error:
        raise CardError(f"{path}: {error}") from None


def _card_of(document: dict[str, Any], path: Path) -> Card:
    """Check a parsed card, key by key."""
    texts = ("name", "title", "kind", "source", "description")
    tables = ("parameters", "environment")
    _check_keys("card", document, (*texts, *tables), ("training",))
    for key in texts:
        _check_type(key, document[key], str)
    for key in tables:
        _check_type(key, document[key], dict)
    if document["name"].casefold() != path.stem:
        raise CardError(
            f"name is {document['name']!r}; a card's file is named after it in lower case, "
            f"{document['name'].casefold()}.toml"
        )
    if document["kind"] not in KINDS:
        raise CardError(unknown_name("kind", document["kind"], KINDS))
    read: dict[str, Any] = {key: " ".join(document[key].split()) for key in texts}
    return Card(
        **read,
        **{key: document[key] for key in tables},
        training=_training_of(document["training"]) if "training" in document else None,
        path=path,
    )


def _training_of(table: object) -> Training:
    _check_type("training", table, dict)
    assert isinstance(table, dict)
    types = {"weeks": dict, "seed": int, "seconds": float, "commit": str, "command": str}
    _check_keys("training", table, tuple(types), ("logs", "ended_at_start"))
    _check_type("training.ended_at_start", table.get("ended_at_start", False), bool)
    _check_type("training.logs", table.get("logs", {}), dict)
    for scenario, digest in table.get("logs", {}).items():
        _check_type(f"training.logs.{scenario}", digest, str)
    for key, wanted in types.items():
        _check_type(f"training.{key}", table[key], wanted)
    if not table["weeks"]:
        raise CardError("training.weeks names no scenario")
    weeks = {}
    for scenario, text in table["weeks"].items():
        what = f"training.weeks.{scenario}"
        _check_type(what, text, str)
        try:
            weeks[scenario] = parse_numbers(text, NUMBERS, what=what)  # a card knows no log
        except ScenarioError as error:
            raise CardError(str(error)) from None
    return Training(**(table | {"weeks": weeks}))


def _check_keys(
    where: str, table: Mapping[str, Any], needed: tuple[str, ...], others: tuple[str, ...] = ()
) -> None:
    """Refuse a table that lacks a key that is needed, or has one that is not among the others."""
    for key in table:
        if key not in (*needed, *others):
            raise CardError(f"{where}: {unknown_name('key', key, (*needed, *others))}")
    missing = [key for key in needed if key not in table]
    if missing:
        raise CardError(f"{where}: {', '.join(missing)} missing")


def _check_type(key: str, value: object, wanted: type) -> None:
    if type(value) is not wanted:
        words = {
            str: "a text",
            bool: "true or false",
            int: "a whole number",
            float: "a number",
            dict: "a table",
        }
        raise CardError(f"{key} must be {words.get(wanted, 'a list')}, got {value!r}")


def _rule_agent(card: Card) -> RuleAgent:
    environment = dict(card.environment)
    settings, overrides = settings_of_rules("parameters"), settings_of_rules("environment")
    _check_keys("parameters", card.parameters, ("policy",), ("score", *settings))
    _check_keys("environment", environment, ("action", "policies"), overrides)
    if environment.pop("action") != "policy":
        raise CardError('environment.action of a rule must be "policy"')
    _check_type("environment.policies", environment["policies"], list)
    return RuleAgent(
        card.parameters["policy"],
        name=card.name,
        **(environment | {key: card.parameters.get(key) for key in settings}),
    )


def _replay_agent(card: Card) -> RuleAgent:
    """Make the agent that chooses among other rules of the shelf by replay."""
    from hpcgym.agent.replay import ReplayAgent

    environment = dict(card.environment)
    _check_keys("parameters", card.parameters, ("agents",))
    _check_keys("environment", environment, ("action", "policies"), ("backfill",))
    _check_type("parameters.agents", card.parameters["agents"], list)
    cards = shelf_entries("agents")
    rules: list[RuleAgent] = []
    for name in card.parameters["agents"]:
        if str(name).casefold() not in cards:
            known = unknown_name("agent", name, map(str.upper, cards))
            raise CardError(f"parameters.agents: {known}")
        is_itself = name.casefold() == card.name.casefold()
        rule = None if is_itself else read_card(cards[name.casefold()]).agent
        if not isinstance(rule, RuleAgent) or len(rule.choices) > 1:
            raise CardError(f"parameters.agents: {name} is no single rule")
        rules.append(rule)
    agent = ReplayAgent(rules, name=card.name)
    if environment.get("backfill") != (agent.backfill and str(agent.backfill)):
        raise CardError(f"environment.backfill must be that of {rules[0].name}, {agent.backfill}")
    return agent


def _index_agent(card: Card) -> RuleAgent:
    """Make the agent of an index, whose network, if it has one, is beside the card."""
    from hpcgym.agent.run_time_network import read_run_time_network

    _check_keys("parameters", card.parameters, ("weights",), ("network",))
    _check_keys("environment", card.environment, ("action",))
    if card.environment["action"] != "policy":
        raise CardError('environment.action of an index must be "policy"')
    _check_type("parameters.weights", card.parameters["weights"], list)
    network, file = None, card.parameters.get("network")
    if file is not None:
        _check_weights_file("parameters.network", file, card.path)
        network = read_run_time_network(card.path.with_suffix(".npz"))
    policy = index_policy(card.parameters["weights"], network, source=card.source)
    return RuleAgent(policy, name=card.name)


def _constant_agent(card: Card) -> NamedAgent:
    """Make the agent that takes the same vector, the card's kind of action, at every decision."""
    from hpcgym.agent.weights import ConstantAction
    from hpcgym.core.actions.controls import CONTROLS

    key, environment = card.kind, dict(card.environment)
    _check_keys("parameters", card.parameters, (key,))
    needed = ("action",) if key == "weights" else ("action", "backfill")
    _check_keys("environment", environment, needed)
    if environment["action"] != key:
        raise CardError(f'environment.action of {key} must be "{key}"')
    values = card.parameters[key]
    _check_type(f"parameters.{key}", values, list)
    for value in values:
        _check_type(f"parameters.{key}", value, float)
        if not -1 <= value <= 1:
            raise CardError(f"parameters.{key} must lie in [-1, 1], got {value}")
    if key == "weights":
        mixed_policy(values)  # refuses other than six
    elif len(values) != len(CONTROLS):
        raise CardError(f"parameters.controls must be {len(CONTROLS)} numbers, got {len(values)}")
    return NamedAgent(card.name, ConstantAction(tuple(values)), environment)


def _price_agent(card: Card) -> NamedAgent:
    """Make an agent of action `price`: a rule of the price, or the network beside the card."""
    from hpcgym.agent.price import PriceAgent, PriceNet, PriceRule

    parameters, environment = card.parameters, dict(card.environment)
    _check_keys("environment", environment, ("action", "backfill"))
    if environment["action"] != "price":
        raise CardError('environment.action of price must be "price"')
    agent: PriceAgent
    if "weights" in parameters:
        _check_keys("parameters", parameters, ("weights",))
        _check_weights_file("parameters.weights", parameters["weights"], card.path)
        agent = PriceNet.read(card.path.with_suffix(".npz"))
    else:
        _check_keys("parameters", parameters, ("kappa",), ("power", "cap", "cheap", "dear"))
        for key, value in parameters.items():
            _check_type(f"parameters.{key}", value, float)
        agent = PriceRule(**parameters)
    return NamedAgent(card.name, agent, environment)


def _check_weights_file(key: str, file: object, card: Path) -> None:
    """Refuse a file of weights that is not beside its card, under its name."""
    if file != f"{card.stem}.npz":
        raise CardError(
            f"{key} is {file!r}; weights stand beside a card, under its name, {card.stem}.npz"
        )


def _network_agent(card: Card) -> NamedAgent:
    """Make a network's agent of a card and the weights beside it."""
    from hpcgym.agent.network import read_network

    environment = dict(card.environment)
    _check_keys("parameters", card.parameters, ("weights",), ("network", "steps", "settings"))
    needed, others = ("action", "n_slots"), ("policies", "decide", "expectations", "backfill")
    _check_keys("environment", environment, needed, others)
    _check_weights_file("parameters.weights", card.parameters["weights"], card.path)
    agent = read_network(card.path.with_suffix(".npz"))
    spec = agent.spec
    for key in needed:
        if environment[key] != getattr(spec, key):
            raise CardError(
                f"environment.{key} is {environment[key]!r}, yet the weights are for "
                f"{getattr(spec, key)!r}"
            )
    needs = spec.expectations
    if needs is not None and environment.get("expectations") != needs:
        raise CardError(
            f"environment.expectations must be {needs!r}: the weights correct {spec.start.upper()}"
        )
    if spec.action == "policy" and len(environment.get("policies", ())) != spec.n_outputs:
        raise CardError(f"environment.policies must name {spec.n_outputs} policies")
    return NamedAgent(card.name, agent, environment)


KINDS: dict[str, Callable[[Card], RuleAgent | NamedAgent]] = {
    "rule": _rule_agent,
    "replay": _replay_agent,
    "index": _index_agent,
    "weights": _constant_agent,
    "controls": _constant_agent,
    "price": _price_agent,
    "network": _network_agent,
}
"""How each kind of card becomes an agent."""
