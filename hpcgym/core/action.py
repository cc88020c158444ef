"""Kinds of action: what an agent says at a decision. A new kind is a file of its own.

`hpcgym.core.actions` says what the file holds; `hpcgym.core.loaders.ACTIONS` lists the kinds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from hpcgym.base.errors import ScenarioError, unknown_name
from hpcgym.core import loaders
from hpcgym.core.backfill import Backfill, Mode
from hpcgym.core.observation_fields import ObservationField
from hpcgym.core.policy import Policy

if TYPE_CHECKING:
    from hpcgym.core.events import Event


class Action:
    """A kind of action under the keywords of an environment.

    The docstring of a kind says in the data sheet of the environment what its actions mean; the
    sheet leaves out what follows `Source:`.

    Attributes:
        policies: Policies that its kernel finds in `ActionSpec.rule`.
        size: `SIZE`, as a number.
    """

    NAME: ClassVar[str]  # what the keyword `action` names
    # Numbers of an action that is a vector, or choices of one that is a number. Where the keywords
    # decide, "n_slots" or "len(policies)".
    SIZE: ClassVar[int | str]
    # Whether an action is a vector of numbers from -1 to 1, or one whole number.
    IS_VECTOR: ClassVar[bool] = True
    # Keywords that only such kinds take: "policies", "invalid".
    TAKES: ClassVar[tuple[str, ...]] = ()
    LASTS: ClassVar[bool] = False  # whether an action can order all passes until the next decision
    # When an agent decides where the keyword `decide` says nothing.
    USUAL_DECIDE: ClassVar[str | int] = "contested"
    # Jobs that an agent sees where the keyword `n_slots` says nothing.
    USUAL_SLOTS: ClassVar[int] = 32
    # Whether observations show the fields of `ControlsField`.
    SHOWS_CONTROLS: ClassVar[bool] = False
    # Whether they show those of `TrialField` and `JobTrialField`.
    SHOWS_TRIALS: ClassVar[bool] = False
    ON_NODES: ClassVar[bool] = True  # whether there are such actions on machines of nodes
    # All that observations show, where that is not jobs and cluster; None = these.
    FIELDS: ClassVar[type[ObservationField] | None] = None
    # Corrections of the start to try before others, where one holds for whole weeks.
    KNOWN: ClassVar[tuple[tuple[float, ...], ...]] = ()

    def __init__(self, n_slots: int, policies: Sequence[str] | None = None) -> None:
        self.policies = self.policies_of(policies)
        sizes = {"n_slots": n_slots, "len(policies)": len(self.policies)}
        self.size = self.SIZE if isinstance(self.SIZE, int) else sizes[self.SIZE]

    @property
    def names_slot(self) -> bool:
        """Tell whether an action is the number of a slot."""
        return self.SIZE == "n_slots" and not self.IS_VECTOR

    def policies_of(self, names: Sequence[str] | None) -> list[Policy]:
        """Return the policies that the kernel needs, given the keyword `policies`."""
        return []

    @classmethod
    def usual_mode(cls, scenarios: str | Mode) -> str | Mode:
        """Return the mode where the keyword `backfill` names none, given the scenario's."""
        return scenarios

    @classmethod
    def events_of(cls, events: Sequence[Event]) -> tuple[Event, ...]:
        """Return the events of episodes, given the scenario's, which those of baselines keep."""
        return tuple(events)

    @classmethod
    def refuse(cls, mode: Backfill) -> None:
        """Raise a ScenarioError where no action can be taken under a backfilling mode."""

    @classmethod
    def refuse_on_nodes(cls) -> None:
        """Raise a ScenarioError unless there are such actions on machines of nodes."""
        if not cls.ON_NODES:
            raise ScenarioError(
                f"action {cls.NAME!r} counts processors; a machine of nodes takes 'weights', "
                "'policy', 'order' and 'job'"
            )

    def masks(self, slot: NDArray[np.int64]) -> NDArray[np.int8]:
        """Return 1 for each part of an action that serves now, 0 for the others.

        Args:
            slot: The job in each slot, -1 = empty.

        Returns:
            Where an action has a part for each slot, which slots hold a job. Where no job waits the
            first is 1, since a masked agent needs one action. Else a 1 for each part, behind the
            leading axes of `slot`.
        """
        if self.SIZE != "n_slots":
            return np.ones((*slot.shape[:-1], self.size), dtype=np.int8)
        masks = slot >= 0
        masks[..., 0] |= ~masks.any(axis=-1)
        return masks.view(np.int8)


def kind_of(name: str) -> type[Action]:
    """Return a kind of action by its name.

    Raises:
        ScenarioError: There is none of that name, or its file has no kernel.
    """
    if name == "lend":
        raise ScenarioError("action 'lend' is gone: 'trials' decides about trial runs")
    if not isinstance(name, str) or name not in loaders.ACTIONS:
        raise ScenarioError(unknown_name("action", name, loaders.ACTIONS))
    kind = loaders.ACTIONS[name]
    if not hasattr(loaders.module(kind.__module__), "act"):
        raise ScenarioError(f"action {name!r}: {kind.__module__} has no kernel called act")
    return kind


AKind = TypeVar("AKind", bound=type[Action])


def register_action(kind: AKind) -> AKind:
    """Let the keyword `action` name a kind of action of your own; usable as a decorator.

    It is a subclass of `Action` in a file with its kernel, as `hpcgym.core.actions` says. A kind of
    yours that has the name already is replaced.

    Raises:
        ScenarioError: No such class, or a name that is malformed or not yours.
    """
    if not isinstance(kind, type) or not issubclass(kind, Action):
        raise ScenarioError(
            f"register_action takes a subclass of hpcgym.core.action.Action, got {kind!r}"
        )
    loaders.ACTIONS.register(kind.NAME, kind)
    return kind
