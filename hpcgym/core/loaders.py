"""Names of policies and modes that other rooms or a user add, and how each is loaded.

`hpcgym/simulators.py` and `hpcgym/policies/registration.py` fill the tables when hpcgym is
imported. An object is loaded when its name is first used, so that the import stays quick.
"""

from collections.abc import Callable
from typing import Any

POLICIES: dict[str, Callable[[], Any]] = {}
"""Objects of `hpcgym.core.policy.Policy`, in the order in which `policy_names` lists them."""

SIMULATORS: dict[str, Callable[[], Any]] = {}
"""Subclasses of `hpcgym.core.backfill.OwnSimulator`."""

BACKFILLS: dict[str, type[Any]] = {}
"""Subclasses of `hpcgym.core.own_backfill.OwnBackfill` that a user has registered."""
