"""Names that the rooms above add to those of the core, each with a function that loads its object.

`hpcgym/registration.py` fills both tables when hpcgym is imported. An object is loaded when its
name is first used, so that the import stays quick.
"""

from collections.abc import Callable
from typing import Any

SIMULATORS: dict[str, Callable[[], Any]] = {}
"""Subclasses of `hpcgym.core.backfill.OwnSimulator`."""
