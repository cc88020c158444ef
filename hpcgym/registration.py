"""Register by name what the rooms above the core add to it: simulators of their own.

`import hpcgym` runs this file before any other module of the package can be used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hpcgym.core import loaders

if TYPE_CHECKING:
    from hpcgym.gang import Gang


def _gang() -> type[Gang]:
    """Load gang scheduling."""
    from hpcgym.gang import Gang

    return Gang


loaders.SIMULATORS["gang"] = _gang
