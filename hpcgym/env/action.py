"""Action spaces, and how an action is read. The kernels apply it."""

from __future__ import annotations

import math
import operator
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from hpcgym.core import constants as s
from hpcgym.core.backfill import Easy
from hpcgym.core.compiler.struct import Struct
from hpcgym.core.index_policy import urgent_policy
from hpcgym.core.kernels.env.actions import CAP_SPAN, LONG_SPAN
from hpcgym.core.kernels.types import ActionSpec
from hpcgym.core.parts.cost_benefit import CostBenefit
from hpcgym.core.policy import FEATURES, Policy, as_policy, policy_names
from hpcgym.errors import ActionError, ScenarioError, unknown_name

ActionKind = Literal["weights", "policy", "order", "job", "controls"]
Scale = Literal["unit", "raw"]

KINDS = {
    "weights": s.ACTION_WEIGHTS,
    "policy": s.ACTION_POLICY,
    "order": s.ACTION_ORDER,
    "job": s.ACTION_JOB,
    "controls": s.ACTION_CONTROLS,
}

CONTROLS = ("kappa", "cap", "long", "urgency")
"""What an action `controls` sets, in order."""

CONTROLLED = "cost-benefit:cap=0.97"
"""The mode that controls change unless another is named, that of URGENT-CAPPED-COST-BENEFIT."""

_NO_VALUES = np.zeros(0, dtype=np.float32)


class ActionReader:
    """The actions of an environment: their space, and how they are read.

    Attributes:
        space: The action space.
        n_values: Length of an action that is a vector, 0 for numbers.
        n_choices: Actions that are numbers lie below this, 1 for vectors.

    Raises:
        ScenarioError: An unknown kind, or no policy to choose among.

    Source: Specification, section 10, "Action semantics".
    """

    def __init__(self, kind: str, n_slots: int, policies: Sequence[Policy]) -> None:
        if not isinstance(kind, str) or kind not in KINDS:
            raise ScenarioError(unknown_name("action", kind, get_args(ActionKind)))
        self.kind = kind
        self.space: spaces.Space[Any]
        if kind == "weights":
            self.space = spaces.Box(-1.0, 1.0, (len(FEATURES),), np.float32)
        elif kind == "order":
            self.space = spaces.Box(-1.0, 1.0, (n_slots,), np.float32)
        elif kind == "controls":
            self.space = spaces.Box(-1.0, 1.0, (len(CONTROLS),), np.float32)
        elif kind == "job":
            self.space = spaces.Discrete(n_slots)
        elif not policies:
            raise ScenarioError("action 'policy' needs at least one policy to choose among")
        else:
            self.space = spaces.Discrete(len(policies))
        self._is_vector = isinstance(self.space, spaces.Box)
        self._shape = self.space.shape or ()
        self.n_values = sum(self._shape)
        self.n_choices = int(self.space.n) if isinstance(self.space, spaces.Discrete) else 1

    def read(self, action: Any) -> tuple[int, NDArray[np.float32]]:
        """Return an action as a number, 0 for vectors, and as a vector, empty for numbers.

        A number may come as an array of one whole number, as vector environments give it. The
        kernel checks the values of vectors.

        Raises:
            ActionError: Wrong shape or type (a bool is no number), or a number out of range.
        """
        if self._is_vector:
            return 0, self._vector(action)
        return self._number(action), _NO_VALUES

    def read_many(
        self, actions: Any, index: NDArray[np.int64], values: NDArray[np.float32]
    ) -> None:
        """Read one action per environment; the kernel checks the values.

        Writes numbers to `index`, shape (n_envs,), or vectors to `values`, (n_envs, n_values).

        Raises:
            ActionError: Wrong shape or type.
        """
        there: NDArray[Any] = values if self._is_vector else index
        given = self._checked(actions, there.shape)
        if given.dtype == there.dtype:
            there[:] = given
            return
        with np.errstate(over="ignore"):  # beyond float32 is infinite, which kernels refuse
            there[:] = given

    def refuse(self, action: Any) -> str:
        """Return the message of the error for an action whose values a kernel has refused."""
        if self._is_vector:
            return f"action {self.kind!r} must lie in [-1, 1] and hold no NaN, got {_shown(action)}"
        return f"action {self.kind!r} must lie in 0 to {self.n_choices - 1}, got {action}"

    def masks(self, slot: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which parts of an action serve now, given the job in each slot, -1 = empty.

        Returns:
            For "job" and "order" `masks_of(slot)`. Policies, weights and controls always serve: one
            True for each, behind the leading axes of `slot`.
        """
        if self.kind in ("job", "order"):
            return masks_of(slot)
        return np.ones((*slot.shape[:-1], self.n_values or self.n_choices), dtype=np.bool_)

    def _checked(self, actions: Any, shape: tuple[int, ...]) -> NDArray[Any]:
        """Return an action, or many, as an array of numbers of some shape."""
        try:
            given = np.asarray(actions)
            holds_numbers = given.dtype.kind in ("fiu" if self._is_vector else "iu")
        except ValueError:  # rows of different lengths
            holds_numbers = False
        if not holds_numbers:
            what = "numbers" if self._is_vector else "whole numbers"
            raise ActionError(
                f"action {self.kind!r} must be {what} of shape {shape}, got {_shown(actions)}"
            )
        if given.shape != shape:
            raise ActionError(f"action {self.kind!r} must have shape {shape}, got {given.shape}")
        return given

    def _vector(self, action: Any) -> NDArray[np.float32]:
        """Return an action as float32 of the space's shape."""
        values = self._checked(action, self._shape)
        if values.dtype != np.float32:
            with np.errstate(over="ignore"):  # beyond float32 is infinite, which kernels refuse
                values = values.astype(np.float32)
        return np.ascontiguousarray(values)

    def _number(self, action: Any) -> int:
        """Return an action as a number of the space."""
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


def masks_of(slot: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which slots hold a job, given the job in each slot, -1 = empty.

    Where no job waits the first slot is True, since a masked agent needs one action.

    Example:
        >>> masks_of(np.array([[4, -1], [-1, -1]])).tolist()
        [[True, False], [True, False]]
    """
    masks: NDArray[np.bool_] = slot >= 0
    masks[..., 0] |= ~masks.any(axis=-1)
    return masks


def unit_divisors(
    machine_processors: int, largest_request: int, threshold: int | None
) -> NDArray[np.float64]:
    """Return the divisors that bring features near one: (M, E, T, E, 1 + T/3600, M E).

    M is the processors, E the largest request in s, and T the threshold in s, 3 E without one.

    Source: Specification, section 10, "Action semantics".

    Example:
        >>> unit_divisors(100, 3600, None).astype(int).tolist()
        [100, 3600, 10800, 3600, 4, 360000]
    """
    m, e = float(machine_processors), float(largest_request)
    t = 3.0 * e if threshold is None else float(max(threshold, 1))
    return np.array([m, e, t, e, 1.0 + t / 3600.0, m * e])


def controlled(values: Sequence[float], mode: Easy) -> tuple[Policy, Easy]:
    """Return the order and the mode that an action `controls` sets.

    Args:
        values: Numbers for `CONTROLS`, each from -1 to 1; 0 = SMITH-URGENT and the mode itself.
        mode: What controls change.

    Source: Specification, section 10, "Controls".

    Example:
        >>> order, mode = controlled([-1, 0, 0, -0.5], CostBenefit(cap=0.97))
        >>> order.name, str(mode)
        ('urgent:urgency=2', 'cost-benefit:cap=0.97,kappa=0')
    """
    kappa, cap, long, urgency = map(float, values)
    changes = {"cap": mode.cap * CAP_SPAN**cap, "long": mode.long * LONG_SPAN**long}
    if mode.cap == math.inf:
        changes = {}
    if isinstance(mode, CostBenefit):
        changes["kappa"] = mode.kappa * (1 + kappa) ** 2
    return urgent_policy(s.USUAL_URGENCY[s.URGENCY] * (1 + urgency)), replace(mode, **changes)


AFTER_V0 = ("SMITH-URGENT",)
"""Policies newer than `HPCBatch-v0`, whose actions stay as they are. They can be named."""


def steppable_policies(names: Sequence[str] | None) -> list[Policy]:
    """Return the policies that a "policy" action chooses among, in the order given.

    Without names these are all that a step can run: those that do not order in Python, but for
    `AFTER_V0`.

    Raises:
        PolicyError: An unknown name.
        ScenarioError: A policy orders in Python.
    """
    if names is None:
        every = [as_policy(name) for name in policy_names()]
        return [policy for policy in every if not policy.is_python and policy.name not in AFTER_V0]
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise ScenarioError(f"policies must be a list of names, got {names!r}")
    chosen = [as_policy(name) for name in names]
    for policy in chosen:
        if policy.is_python:
            raise ScenarioError(
                f"policy {policy.name!r} orders in Python, which a step cannot run; "
                "register it by keys instead"
            )
    return chosen


def action_spec_of(
    kind: str,
    policies: Sequence[Policy],
    base: Policy,
    divisor: NDArray[np.float64],
    middle: NDArray[np.float64],
) -> Struct[ActionSpec]:
    """Return how kernels read actions.

    Args:
        kind: One of `KINDS`.
        policies: The policies that a "policy" action chooses among, or that "controls" go by.
            Those given by keys have the columns of `Jobs.keys` from 2 on.
        base: Policy of the base order.
        divisor: Divisor of each feature before it is weighted, shape (6,).
        middle: Parameters of the backfilling mode, as `hpcgym.core.backfill.Backfill.row`.

    Raises:
        ScenarioError: A policy orders in Python, or the base order is given by keys.
    """
    for policy in (*policies, base):
        if policy.is_python or (policy is base and policy.keys is not None):
            raise ScenarioError(
                f"policy {policy.name!r} cannot serve here: a step runs compiled rules and, for "
                "'policy' actions, policies given by keys"
            )
    rule_weight = np.zeros((max(len(policies), 1), s.N_WEIGHTS))
    for row, policy in enumerate(policies):
        rule_weight[row] = policy.parameters
        if policy.rule == s.RULE_KEYS:
            rule_weight[row, 0] = 2.0 + row
    fields = ActionSpec(
        kind=KINDS[kind],
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
