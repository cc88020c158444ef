"""Action spaces, and how an action is read; the kernels apply it."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from hpcgym.core import state as s
from hpcgym.core.kernels.types import ActionSpec
from hpcgym.core.policy import FEATURES, Policy
from hpcgym.core.struct import Struct
from hpcgym.errors import ActionError, ScenarioError, unknown_name

ActionKind = Literal["weights", "policy", "order", "job"]
Scale = Literal["unit", "raw"]

KINDS = {
    "weights": s.ACTION_WEIGHTS,
    "policy": s.ACTION_POLICY,
    "order": s.ACTION_ORDER,
    "job": s.ACTION_JOB,
}

_NO_VALUES = np.zeros(0, dtype=np.float32)


class ActionReader:
    """What actions an environment takes, and how it reads them.

    Args:
        kind: "weights", "policy", "order" or "job".
        n_slots: Visible positions of the queue.
        policies: What a "policy" action chooses among.

    Attributes:
        space: The action space.
        n_values: Numbers in an action that is a vector, 0 for numbers.
        n_choices: Actions that are numbers lie below this, 1 for vectors.

    Raises:
        ScenarioError: An unknown kind, or no policy to choose among.

    Source:
        Specification, "Action semantics".
    """

    def __init__(self, kind: str, n_slots: int, policies: Sequence[Policy]) -> None:
        if kind not in KINDS:
            raise ScenarioError(unknown_name("action", kind, get_args(ActionKind)))
        self.kind = kind
        self.space: spaces.Space[Any]
        if kind == "weights":
            self.space = spaces.Box(-1.0, 1.0, (len(FEATURES),), np.float32)
        elif kind == "order":
            self.space = spaces.Box(-1.0, 1.0, (n_slots,), np.float32)
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
        """Read an action into the form kernels take.

        Args:
            action: What came. A number may come as an array that holds one whole number, as
                vectorised environments hand it out; the values of a vector are checked by the
                kernel.

        Returns:
            The action as a number, 0 for vectors; and as a vector, empty for numbers.

        Raises:
            ActionError: Wrong shape or type, true or false among them, or a number out of range.

        Source:
            Specification, "Action semantics".
        """
        if self._is_vector:
            return 0, self._vector(action)
        return self._number(action), _NO_VALUES

    def read_many(
        self, actions: Any, index: NDArray[np.int64], values: NDArray[np.float32]
    ) -> None:
        """Read the actions of environments side by side into the form kernels take.

        Args:
            actions: One action per environment, as rows or in a sequence; their values are checked
                by the kernel.
            index: Where numbers go, shape (n_envs,).
            values: Where vectors go, shape (n_envs, n_values).

        Raises:
            ActionError: Wrong shape or type.

        Source:
            Specification, "Action semantics".
        """
        there: NDArray[Any] = values if self._is_vector else index
        given = self._checked(actions, there.shape)
        if given.dtype == there.dtype:
            there[:] = given
            return
        with np.errstate(over="ignore"):  # beyond float32 is infinite, which kernels refuse
            there[:] = given

    def refuse(self, action: Any) -> str:
        """Return what is wrong with an action whose values a kernel has refused.

        Args:
            action: The action.

        Returns:
            A sentence for an `ActionError`.

        Source:
            House rule: an error says what came and what is allowed.
        """
        if self._is_vector:
            return f"action {self.kind!r} must lie in [-1, 1] and hold no NaN, got {action!r}"
        return f"action {self.kind!r} must lie in 0 to {self.n_choices - 1}, got {action}"

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
                f"action {self.kind!r} must be {what} of shape {shape}, got {actions!r}"
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
            raise ActionError(f"action {self.kind!r} must be a whole number, got {action!r}")
        if not 0 <= index < self.n_choices:
            raise ActionError(self.refuse(index))
        return index


def masks_of(slot: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Tell which slots hold a job, for `job` actions.

    Args:
        slot: Job in each slot, shape (..., n_slots), -1 = empty.

    Returns:
        The same shape; the first slot alone where no job waits, since some action must be.

    Source:
        Specification, "Action semantics", `job`.

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
    """Return what each feature is divided by so that its size is about one.

    Args:
        machine_processors: M.
        largest_request: E, s.
        threshold: T, s; where there is none, 3 E stands for it.

    Returns:
        (M, E, T, E, 1 + T/3600, M E), shape (6,).

    Source:
        Specification, "Action semantics", `weights`.

    Example:
        >>> unit_divisors(100, 3600, None).astype(int).tolist()
        [100, 3600, 10800, 3600, 4, 360000]
    """
    m, e = float(machine_processors), float(largest_request)
    t = 3.0 * e if threshold is None else float(max(threshold, 1))
    return np.array([m, e, t, e, 1.0 + t / 3600.0, m * e])


def action_spec_of(
    kind: str,
    policies: Sequence[Policy],
    base: Policy,
    divisor: NDArray[np.float64],
) -> Struct[ActionSpec]:
    """Gather how actions are read into the record that kernels take.

    Args:
        kind: "weights", "policy", "order" or "job".
        policies: What a "policy" action chooses among; those given by keys count the rows of
            `JobTable.keys` from 2 on.
        base: Policy of the base order.
        divisor: What each feature is divided by before it is weighted, shape (6,).

    Returns:
        The record.

    Raises:
        ScenarioError: A policy orders in Python, which a step cannot run.

    Source:
        House rule: normalise at the door.
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
        np.array([KINDS[kind]], dtype=np.int64),
        np.array([policy.rule for policy in policies] or [0], dtype=np.int64),
        rule_weight,
        np.array(divisor),
        np.array([base.rule], dtype=np.int64),
        np.array(base.parameters),
    )
    return Struct(fields)
