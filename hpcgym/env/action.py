"""Action spaces, and how an action is read. The kernels apply it."""

from __future__ import annotations

import operator
import textwrap
from collections.abc import Iterable
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from hpcgym.base.errors import ActionError, ScenarioError, refuse_unless_whole, unknown_name
from hpcgym.core import constants as s
from hpcgym.core import loaders
from hpcgym.core.action import Action, kind_of
from hpcgym.core.compiler.struct import Struct
from hpcgym.core.kernels.types import ActionSpec
from hpcgym.core.policy import Policy

_NO_VALUES = np.zeros(0, dtype=np.float32)


class ActionReader:
    """The actions of an environment: their space, and how they are read.

    Source: Specification, section 10, "Action semantics".
    """

    def __init__(self, action: Action) -> None:
        # masks: `Action.masks`.
        self.kind, self._is_vector, self.masks = action.NAME, action.IS_VECTOR, action.masks
        self.space: spaces.Space[Any] = spaces.Discrete(action.size)  # the action space
        if self._is_vector:
            self.space = spaces.Box(-1.0, 1.0, (action.size,), np.float32)
        self._shape = self.space.shape or ()
        # n_choices: Actions that are numbers lie below this, 1 for vectors.
        # n_values: Length of an action that is a vector, 0 for numbers.
        self.n_values, self.n_choices = sum(self._shape), 1 if self._is_vector else action.size

    def read(self, action: Any) -> tuple[int, NDArray[np.float32]]:
        """Return an action as a number, 0 for vectors, and as a vector, empty for numbers.

        A number may come as an array of one whole number, as vector environments give it. The
        kernel checks the values of vectors.

        Raises:
            ActionError: Wrong shape or type (a bool is no number), or a number out of range.
        """
        if not self._is_vector:
            return self._number(action), _NO_VALUES
        values = np.empty(self._shape, dtype=np.float32)
        self._write(action, values)
        return 0, values

    def read_many(
        self, actions: Any, index: NDArray[np.int64], values: NDArray[np.float32]
    ) -> None:
        """Read one action per environment; the kernel checks the values.

        Writes numbers to `index`, shape (n_envs,), or vectors to `values`, (n_envs, n_values).

        Raises:
            ActionError: Wrong shape or type.
        """
        self._write(actions, values if self._is_vector else index)

    def refuse(self, action: Any) -> str:
        """Return the message of the error for an action whose values a kernel has refused."""
        if self._is_vector:
            return f"action {self.kind!r} must lie in [-1, 1] and hold no NaN, got {_shown(action)}"
        return f"action {self.kind!r} must lie in 0 to {self.n_choices - 1}, got {action}"

    def refuse_invalid(self, index: int) -> str:
        """Return the message of the error for a slot that serves nothing now."""
        return (
            f"action {self.kind!r}: slot {index} holds no job that may be named now; action_masks()"
            " says which do, or invalid='first' lets the first job stand for it"
        )

    def _write(self, actions: Any, to: NDArray[Any]) -> None:
        """Write an action, or many, to an array of numbers."""
        try:
            given = np.asarray(actions)
            holds_numbers = given.dtype.kind in ("fiu" if self._is_vector else "iu")
        except ValueError:  # rows of different lengths
            holds_numbers = False
        if not holds_numbers:
            what = "numbers" if self._is_vector else "whole numbers"
            raise ActionError(
                f"action {self.kind!r} must be {what} of shape {to.shape}, got {_shown(actions)}"
            )
        if given.shape != to.shape:
            raise ActionError(f"action {self.kind!r} must have shape {to.shape}, got {given.shape}")
        if given.dtype == to.dtype:
            to[:] = given
            return
        with np.errstate(over="ignore"):  # beyond float32 is infinite, which kernels refuse
            to[:] = given

    def _number(self, action: Any) -> int:
        is_array_of_one = isinstance(action, np.ndarray) and action.size == 1
        value = action.item() if is_array_of_one else action
        try:
            index = operator.index(value)
        except TypeError:
            index = None
        if index is None or isinstance(value, bool):
            raise ActionError(f"action {self.kind!r} must be a whole number, got {_shown(action)}")
        if not 0 <= index < self.n_choices:
            raise ActionError(self.refuse(index))
        return index


def unit_divisors(
    machine_processors: int, largest_request: int, threshold: int | None
) -> NDArray[np.float64]:
    """Return the divisors that bring features near one: (M, E, T, E, 1 + T/3600, M E).

    M is the processors, E the largest request in s, and T the threshold in s, 3 E without one.

    Source: Specification, section 10, "Action semantics".
    """
    m, e = float(machine_processors), float(largest_request)
    t = 3.0 * e if threshold is None else float(max(threshold, 1))
    return np.array([m, e, t, e, 1.0 + t / 3600.0, m * e])


def with_action_table(sheet: str) -> str:
    """Return the data sheet with the kinds of action in place of the line `TABLE OF ACTIONS`."""
    rows = ["| `action` | space | meaning |", "|---|---|---|"]
    for name, kind in zip(loaders.ACTIONS, map(kind_of, loaders.ACTIONS), strict=True):
        space = f"Box(-1, 1, ({kind.SIZE},))" if kind.IS_VECTOR else f"Discrete({kind.SIZE})"
        meaning = " ".join((kind.__doc__ or "").partition("Source:")[0].split())
        rows.append(f'| `"{name}"` | {space} | {meaning} |')
    return sheet.replace("TABLE OF ACTIONS", "\n        ".join(rows))


def action_spec_of(
    action: Action, base: Policy, divisor: NDArray[np.float64], middle: NDArray[np.float64]
) -> Struct[ActionSpec]:
    """Return how kernels read actions.

    Args:
        action: The kind. Its policies that are given by keys have the columns of `Jobs.keys` from 2
            on.
        base: Policy of the base order.
        divisor: Divisor of each feature before it is weighted, shape (6,).
        middle: Parameters of the backfilling mode, as `hpcgym.core.backfill.Backfill.row`.

    Raises:
        ScenarioError: A policy orders in Python, or the base order is given by keys.
    """
    policies = action.policies
    for policy in (*policies, base):
        if policy.is_python or (policy is base and policy.keys is not None):
            how = "in Python" if policy.is_python else "by keys, which no base order does here"
            raise ScenarioError(
                f"policy {policy.name!r} orders {how}: a step runs compiled rules and, for actions "
                "'policy', policies given by keys"
            )
    rule_weight = np.zeros((max(len(policies), 1), s.N_WEIGHTS))
    for row, policy in enumerate(policies):
        rule_weight[row] = policy.parameters
        if policy.rule == s.RULE_KEYS:
            rule_weight[row, 0] = 2.0 + row
    fields = ActionSpec(
        act=type(action).__module__,
        names_slot=int(action.names_slot),
        base_rule=base.rule,
        rule=np.array([policy.rule for policy in policies] or [0], dtype=np.int64),
        rule_weight=rule_weight,
        divisor=np.array(divisor),
        base_weight=np.array(base.parameters),
        middle=np.array(middle),
    )
    return Struct(fields)


def _shown(action: Any) -> str:
    """Return an action in one line, the beginning of a long one."""
    return textwrap.shorten(repr(action), 200, placeholder=" ...")


def checked_decide(decide: str | int | None, kind: type[Action]) -> str | int:
    """Refuse decision epochs that are unknown, or at which an action cannot be taken."""
    if decide is None:
        return kind.USUAL_DECIDE
    if isinstance(decide, str):
        if decide not in ("contested", "event"):
            allowed = ("contested", "event", "a number of seconds")
            raise ScenarioError(unknown_name("decide", decide, allowed))
        return decide
    refuse_unless_whole("decide, in s,", decide, 1, error=ScenarioError)
    if not kind.LASTS:
        lasting = listed(name for name in loaders.ACTIONS if kind_of(name).LASTS)
        raise ScenarioError(
            f"decide={decide} s is for actions {lasting}: an order of visible jobs lasts one pass "
            f"only, so action {kind.NAME!r} decides 'contested' or at each 'event'"
        )
    return int(decide)


def listed(names: Iterable[str]) -> str:
    """List names in prose, with "and" before the last."""
    return " and ".join(", ".join(map(repr, names)).rsplit(", ", 1))
