"""Records of a suite as files: read by strict rules, since anybody may send one.

A record is JSON of bounded size. Numbers are finite, each week of a log has all its copies, and no
week is missing but those that an agent's training closes. Its agent is made of the card and the
weights in it, and never of anything that would run code.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.agent.own import is_own
from hpcgym.agent.sandbox import load_sandboxed
from hpcgym.agent.shelf import load_agent
from hpcgym.base.errors import EvaluationError, HpcgymError, unreadable
from hpcgym.base.registry import shelf_entries
from hpcgym.evaluation.runner import AnyAgent
from hpcgym.evaluation.suite.definition import Suite, load_suite
from hpcgym.evaluation.suite.record import FORMAT, METRICS

MOST_BYTES = 64 * 2**20  # largest file that is read
MOST_WEIGHTS = 16 * 2**20  # most bytes of weights in a record

FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,80}\.npz")
"""What a file of weights may be called."""

SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Week:
    """What a record says of a week: a digest over all copies, and metrics of each copy."""

    starts: str
    metrics: Mapping[str, tuple[float, ...]]


@dataclass(frozen=True)
class Record:
    """A record that keeps the rules of the file; whether it is true, `verify_record` tells.

    Attributes:
        suite: The suite.
        name: The agent's name.
        given: What the agent was called by.
        card: Text of its card; None = it has none.
        weights: Files of weights beside the card.
        contests: Contest by log, as the record says.
        weeks: What each week came to, by log and number.
        versions: What computed it.
    """

    suite: Suite
    name: str
    given: str
    card: str | None
    weights: Mapping[str, bytes]
    contests: Mapping[str, str]
    weeks: Mapping[str, Mapping[int, Week]]
    versions: Mapping[str, str]

    @cached_property
    def identity(self) -> str:
        """Digest of what the agent is: its card and weights, or what it was called by."""
        hasher = hashlib.sha256((self.card or self.given).encode())
        for name in sorted(self.weights):
            hasher.update(name.encode() + self.weights[name])
        return hasher.hexdigest()

    def agent(self) -> AnyAgent:
        """Make the agent of what the record holds of it.

        Raises:
            EvaluationError: It is code, whose name cannot be trusted; or another than that of the
                shelf under its name; or its card is not understood.
        """
        shelved = shelf_entries("agents").get(self.name.casefold())
        if shelved is not None and not self._is_of(shelved):
            raise EvaluationError(
                f"the record's {self.name} has another card, or other weights, than the "
                f"{self.name} of the shelf"
            )
        agent = self._named() if self.card is None else self._made(self.card)
        if agent.name.casefold() != self.name.casefold():
            raise EvaluationError(f"the record calls {self.name} what is {agent.name}")
        return agent

    def _is_of(self, card: Path) -> bool:
        """Tell whether the agent is that of a card, weights included."""
        return card.read_text("utf-8") == self.card and all(
            (card.parent / name).read_bytes() == content
            for name, content in self.weights.items()
            if (card.parent / name).exists()
        )

    def _named(self) -> AnyAgent:
        """Load the agent that was named without a card."""
        if not re.fullmatch(r"[A-Za-z0-9_=,.+:-]+", self.given) or is_own(self.given):
            raise EvaluationError(
                f"{self.name} is code ({self.given}), which a record does not hold; name its file "
                "(--agent), which a sandbox runs"
            )
        return load_agent(self.given)

    def of_file(self, text: str) -> AnyAgent:
        """Return the agent of a file that its author sent beside the record, in a sandbox.

        Raises:
            EvaluationError: The record is not of code, or of code of another name.
            CardError: The file has no agent, or there is no sandbox.
        """
        agent = load_sandboxed(text)
        is_known = self.name.casefold() in shelf_entries("agents")
        if self.card is not None or is_known or agent.name != self.name:
            raise EvaluationError(f"{text} is {agent.name}; the record is not of code of that name")
        return agent

    def _made(self, card: str) -> AnyAgent:
        """Make the agent of a card and the weights beside it."""
        try:
            with TemporaryDirectory() as folder:
                path = Path(folder, f"{self.name.casefold()}.toml")
                path.write_text(card, "utf-8")
                for name, content in self.weights.items():
                    Path(folder, name).write_bytes(content)
                return load_agent(str(path))
        except (HpcgymError, OSError, ValueError) as error:
            raise EvaluationError(f"the record's agent cannot be made: {error}") from None

    def values(self, log: str, metric: str = "mean_bsld") -> NDArray[np.float64]:
        """Return a metric of a log, shape (n_weeks, n_copies), weeks ascending."""
        weeks = self.weeks[log]
        return np.array([weeks[number].metrics[metric] for number in sorted(weeks)])


def read_record(path: str | Path) -> Record:
    """Read a record.

    Raises:
        EvaluationError: The file is no record, too large, or breaks a rule; the message names it
            and the key.
    """
    try:
        size = Path(path).stat().st_size
        if size > MOST_BYTES:
            raise EvaluationError(f"has {size:,} bytes; allowed: {MOST_BYTES:,}")
        text = Path(path).read_text("utf-8")
        return record_of(json.loads(text, parse_constant=_refuse_constant))
    except OSError as error:
        raise EvaluationError(unreadable(path, error)) from None
    except (UnicodeDecodeError, RecursionError, json.JSONDecodeError) as error:
        raise EvaluationError(f"{path}: not a record: {str(error)[:200]}") from None
    except HpcgymError as error:
        raise EvaluationError(f"{path}: {error}") from None


def _refuse_constant(text: str) -> None:
    """Refuse NaN and infinities, which JSON does not have."""
    raise EvaluationError(f"{text} is no number")


def record_of(document: Any) -> Record:
    """Return the record that a document of JSON is.

    Raises:
        EvaluationError: It breaks a rule of records.
        ScenarioError: It is of no known suite.
    """
    top = _table(document, "record", {"format", "suite", "agent", "versions", "logs"})
    if top["format"] != FORMAT:
        raise EvaluationError(f"format is {top['format']!r}; this version reads {FORMAT}")
    suite = load_suite(_text(top["suite"], "suite"))
    agent = _table(top["agent"], "agent", {"name", "given", "card", "weights"})
    logs = _table(top["logs"], "logs")
    if not logs:
        raise EvaluationError("logs is empty")
    contests, weeks = {}, {}
    for name, log in logs.items():
        table = _table(log, f"logs.{name}", {"digest", "contest", "weeks"})
        if table["digest"] != suite.log(name).digest:
            raise EvaluationError(f"logs.{name}.digest is not that of {suite.name}")
        contests[name] = _text(table["contest"], f"logs.{name}.contest")
        weeks[name] = _weeks_of(table["weeks"], f"logs.{name}.weeks", suite.copies.replicas + 1)
    versions = _table(top["versions"], "versions")
    return Record(
        suite,
        _text(agent["name"], "agent.name"),
        _text(agent["given"], "agent.given"),
        None if agent["card"] is None else _text(agent["card"], "agent.card"),
        _weights_of(agent["weights"]),
        contests,
        weeks,
        {str(key): str(value) for key, value in versions.items()},
    )


def _weeks_of(value: Any, where: str, n_copies: int) -> dict[int, Week]:
    weeks = {}
    for number, week in _table(value, where).items():
        if not re.fullmatch(r"[1-9][0-9]{0,3}", number):
            raise EvaluationError(f"{where}: {number!r} is no number of a week")
        table = _table(week, f"{where}.{number}", {"starts", *METRICS})
        starts = _text(table["starts"], f"{where}.{number}.starts")
        if not SHA256.fullmatch(starts):
            raise EvaluationError(f"{where}.{number}.starts is no sha256")
        metrics = {
            name: _numbers(table[name], f"{where}.{number}.{name}", n_copies) for name in METRICS
        }
        weeks[int(number)] = Week(starts, metrics)
    return weeks


def _numbers(value: Any, where: str, n_copies: int) -> tuple[float, ...]:
    plain = isinstance(value, list) and all(type(number) in (int, float) for number in value)
    if not plain or len(value) != n_copies:
        raise EvaluationError(f"{where} must be {n_copies} numbers")
    if not all(math.isfinite(number) and number >= 0 for number in value):
        raise EvaluationError(f"{where} has a number that is not finite, or is below 0")
    return tuple(map(float, value))


def _weights_of(value: Any) -> dict[str, bytes]:
    weights = {}
    for name, text in _table(value, "agent.weights").items():
        if not FILE_NAME.fullmatch(name):
            raise EvaluationError(f"agent.weights: {name!r} is no name of a .npz file")
        try:
            weights[name] = base64.b64decode(_text(text, f"agent.weights.{name}"), validate=True)
        except (binascii.Error, ValueError):
            raise EvaluationError(f"agent.weights.{name} is not base64") from None
    if sum(map(len, weights.values())) > MOST_WEIGHTS:
        raise EvaluationError(f"agent.weights has more than {MOST_WEIGHTS:,} bytes")
    return weights


def _table(value: Any, where: str, keys: set[str] | None = None) -> dict[str, Any]:
    """Return a table that has these keys and no others; None = any."""
    if not isinstance(value, dict):
        raise EvaluationError(f"{where} must be a table")
    if keys is not None and set(value) != keys:
        wrong = sorted(set(value) ^ keys)
        raise EvaluationError(f"{where}: {wrong[0]!r} is missing, or is one too many")
    return value


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise EvaluationError(f"{where} must be a text")
    return value
