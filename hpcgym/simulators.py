"""Registers the modes with a simulator of their own by name; see `hpcgym.core.loaders`."""

from hpcgym.core.loaders import SIMULATORS

SIMULATORS.add({"gang": "hpcgym.gang:Gang"})
