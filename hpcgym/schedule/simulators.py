"""Registers the modes with a simulator of their own by name; see `hpcgym.core.loaders`."""

from hpcgym.core import loaders

loaders.SIMULATORS.ship(
    {"gang": "hpcgym.schedule.gang:Gang", "recorded": "hpcgym.schedule.recorded:Recorded"}
)
