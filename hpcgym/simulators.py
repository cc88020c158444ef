"""Registers the modes with a simulator of their own by name; see `hpcgym.core.loaders`."""

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
