"""The gap of action `index` in other mixes of jobs than those of `many-weeks`, by few weeks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from hpcgym.env.scenario.load import load_scenario
from hpcgym.env.scenario.spec import Scenario, WeekEpisodes
from research.scales import find

REGIMES: dict[str, dict[str, Any]] = {
    "load .60": {"load": 0.6},
    "load .80": {"load": 0.8},
    "32 processors": {"processors": 32},
    "bursts, `session_jobs` = 16": {"session_jobs": 16.0},
    "wide jobs, `wide` = .3": {"wide": 0.3},
    "load .95": {"load": 0.95},
    "64 processors": {"processors": 64},
}
"""What each states in place of `many-weeks`: keys of `[trace]`, and the processors."""

WEEKS = 12
"""Weeks to search on, and as many others to judge on; every five are of other users."""


def scenario_of(name: str) -> Scenario:
    """Return `many-weeks` with the numbers of a regime."""
    stated = dict(REGIMES[name])
    many = load_scenario("many-weeks")
    assert isinstance(many.episode, WeekEpisodes)
    processors = stated.pop("processors", many.machine.processors)
    first = 20_001
    return replace(
        many,
        name=name,
        trace=replace(many.trace, population_weeks=5, digests=None, **stated),
        machine=replace(many.machine, processors=processors),
        episode=replace(many.episode, train=f"1-{WEEKS}", test=f"{first}-{first + WEEKS - 1}"),
    )


def rows(folder: Path) -> Iterator[dict[str, str]]:
    """Yield the rows of the table that the command prints, as each is found."""
    for name in REGIMES:
        # Branches of other modes than EASY merge late, and take minutes a week.
        scale = find(scenario_of(name), "index", "", folder, modes=("easy",))
        means, (gap, low, high) = scale["means"], scale["gap"]
        static = means[scale["static"]]
        numbers = ", ".join(f"{number:g}" for number in scale["constant"])
        best = f"({numbers})" if scale["static"] == "constant" else scale["rule"]
        saf = sum(row[2] for row in scale["weeks"]) / len(scale["weeks"])
        yield {
            "regime": name,
            "mean bsld of SAF": f"{saf:.1f}",
            "best static": f"{static:.3f}: {best}",
            "clairvoyant": f"{means['clairvoyant']:.3f}",
            "gap": f"{gap:.3f} [{low:.3f}, {high:.3f}]",
            "over the static one": f"{100 * gap / static:.0f} %",
        }
