"""The platforms of the study: 8 clusters of 16 hosts around one backbone.

Hosts 16k to 16k + 15 are cluster k's. Each is joined to its cluster's switch by a link of its own;
the switches meet at the backbone.

Source: Dutot, Poquet and Trystram, sections 5.1 to 5.4; rules of reruns, "Platform".
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

CLUSTERS: Final = 8
CLUSTER_HOSTS: Final = 16
HOSTS: Final = CLUSTERS * CLUSTER_HOSTS

SPEED = 286.097e3
"""Of a host of the base cluster, flop/s."""

BANDWIDTH = 1.25e9
"""Of switches, of the backbone, and of the links of the heterogeneous base, byte/s."""

GRIFFON_LINK, PRINTED_LINK = 1.25e8, 1.25e6
"""Links of the homogeneous platform, byte/s: SimGrid's griffon.xml, and as the paper prints it."""

LATENCY_S = 24e-9

MULTIPLIERS = {
    "high": ((1.0, 2.0, 3.0), (1.0, 2.0, 4.0)),
    "low": ((1.0, 1.3, 1.7), (1.0, 1.5, 2.0)),
}
"""Speeds and bandwidths of the three kinds of clusters, over the base's."""

LAYOUTS = {
    "o1": (1, 1, 1, 2, 2, 2, 3, 3),
    "o2": (3, 3, 3, 2, 2, 2, 1, 1),
    "o3": (1, 2, 2, 3, 3, 2, 1, 1),
    "o4": (3, 1, 2, 3, 1, 2, 1, 2),
    "o2fix": (3, 3, 2, 2, 2, 1, 1, 1),
}
"""The kind of each cluster. `o2`, as printed, has other clusters than the rest."""


class Platform(NamedTuple):
    """What hosts and network can do.

    Attributes:
        speed: Of a host of each cluster, flop/s, shape (8,).
        link: Of a host's link, in each cluster, byte/s, shape (8,).
        switch: Of each cluster's switch, byte/s, shape (8,).
        backbone: Byte/s.
        latency: Of a host's link and of the backbone, s.
        directions: 1.0 where a link has its bandwidth in each direction, 2.0 where both share it.
    """

    speed: FloatArray
    link: FloatArray
    switch: FloatArray
    backbone: float
    latency: float
    directions: float


def homogeneous(*, link: float = GRIFFON_LINK, half_duplex: bool = False) -> Platform:
    """Return the platform of equal clusters, with host links of so many byte/s.

    Source: Dutot, Poquet and Trystram, section 5.3; rules of reruns, "Platform".
    """
    ones = np.ones(CLUSTERS)
    return _platform(ones, link * ones, BANDWIDTH * ones, half_duplex)


def levelled(kind: str) -> Platform:
    """Return a platform of equal clusters, each the mean of those of a kind of `MULTIPLIERS`.

    Example:
        >>> float(levelled("high").speed[0] / SPEED)
        1.875
    """
    uneven = heterogeneous(kind, "o1")
    ones = np.ones(CLUSTERS)
    speed, link, switch = (values.mean() * ones for values in uneven[:3])
    return uneven._replace(speed=speed, link=link, switch=switch)


def heterogeneous(kind: str, layout: str, *, half_duplex: bool = False) -> Platform:
    """Return the platform of a kind of `MULTIPLIERS` in a layout of `LAYOUTS`.

    Source: Dutot, Poquet and Trystram, section 5.4; rules of reruns, "Platform".

    Example:
        >>> heterogeneous("high", "o1").speed[[0, 7]]
        array([286097., 858291.])
    """
    number = np.array(LAYOUTS[layout]) - 1
    speeds, bandwidths = (np.array(values)[number] for values in MULTIPLIERS[kind])
    return _platform(speeds, BANDWIDTH * bandwidths, BANDWIDTH * bandwidths, half_duplex)


def _platform(
    speeds: FloatArray, link: FloatArray, switch: FloatArray, half_duplex: bool
) -> Platform:
    """Return the platform of clusters with these speeds, over the base's, and bandwidths."""
    directions = 2.0 if half_duplex else 1.0
    return Platform(SPEED * speeds, link, switch, BANDWIDTH, LATENCY_S, directions)
