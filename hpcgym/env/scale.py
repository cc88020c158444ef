"""The scale of a problem: what needs no learning is 0, and what knows run times is 1.

A problem is a scenario, a kind of action and perhaps a backfilling mode. Its scale is a file of the
folder `scales` on the shelf of scenarios, which `scripts/find_scales.py` writes: the value of the
best static scheduler and of a clairvoyant one in each test week, with a digest of the week's jobs.
In other jobs than those the file says nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from hpcgym.base.errors import ScenarioError
from hpcgym.base.registry import read_toml, shelf_folders
from hpcgym.core.columns import COLUMNS
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.workload import Workload

DIGITS = 12  # hexadecimal digits of a week's digest that a file keeps

_digests: WeakKeyDictionary[Workload, str] = WeakKeyDictionary()
"""Digests so far in this process: a week is played many times."""


class Ends(NamedTuple):
    """The values of a week at both ends of the scale, the digest of its jobs, and what it counts.

    The weight of a ratio is SAF's mean bounded slowdown, so that means are ratios of sums.
    """

    digest: str
    weight: float
    static: float
    clairvoyant: float


@dataclass(frozen=True)
class Scale:
    """What scores 0 and what scores 1 on the test weeks of a problem."""

    scenario: str  # the problem's
    action: str
    # The backfilling mode that the problem states, "" = the kind of action's usual one.
    backfill: str
    settings: str  # the scenario's, as `settings_of` states them; under others the file is silent
    contest: str  # the contest of both ends; see `hpcgym.agent.contest`
    metric: str  # the key of infos that a week's value is; lower is better
    rule: str  # the best rule of the shelf on the training weeks
    constant: tuple[float, ...]  # the best action there that never changes
    static: str  # which of the two is the static end: "rule" or "constant"
    clairvoyant: str
    training: float  # mean value of the static end on the training weeks, by weight
    means: Mapping[str, float]  # mean value on the test weeks, by weight, by what plays them
    # That of the static end less the clairvoyant one's, and the ends of its 95 % interval.
    gap: tuple[float, float, float]
    weeks: Mapping[int, Ends]  # the ends of each test week by its number
    command: str  # what found them

    @property
    def name(self) -> str:
        """Name of the problem, which its file has."""
        mode = f"-{self.backfill}" if self.backfill else ""
        return f"{self.scenario}-{self.action}{mode}".replace(":", "-").replace("=", "-")

    @property
    def has_gap(self) -> bool:
        """Tell whether knowing run times is surely worth something on the test weeks."""
        return self.gap[1] > 0

    @cached_property
    def mean_gap(self) -> float:
        """Mean over the test weeks of the difference of the ends times the weight."""
        weights = [ends.weight for ends in self.weeks.values()]
        return self.gap[0] * sum(weights) / len(weights)

    def ends(self, number: int, jobs: Workload) -> Ends | None:
        """Return the ends of a week, None where the file knows none of these jobs."""
        known = self.weeks.get(number)
        return known if known is not None and known.digest == week_digest(jobs) else None

    def gap_closed(self, number: int, jobs: Workload, value: float) -> float | None:
        """Return a week's part of the gap closed; their mean over the weeks is the gap closed.

        None where the file knows none of these jobs, or there is no gap to close.

        Source: Specification, section 10, "Gap closed".
        """
        known = self.ends(number, jobs) if self.has_gap else None
        return None if known is None else (known.static - value) * known.weight / self.mean_gap


def settings_of(settings: SchedulerSettings) -> str:
    """State what of a scheduler is not usual, besides its policy."""
    given = {key.name: (getattr(settings, key.name), key.default) for key in fields(settings)}
    given["events"] = (",".join(map(str, settings.events)), "")
    whole = None if settings.threshold is None else int(settings.threshold)
    given["threshold"] = whole, None
    unusual = {key: value for key, (value, usual) in given.items() if str(value) != str(usual)}
    return "; ".join(f"{key} {value}" for key, value in unusual.items() if key != "policy")


def scale_of(
    scenario: str, action: str, backfill: str = "", settings: SchedulerSettings | None = None
) -> Scale | None:
    """Return the scale of a problem, None where nobody has found it; settings as of `scales_of`."""
    for scale in scales_of(scenario, settings):
        if (scale.action, scale.backfill) == (action, backfill):
            return scale
    return None


def scales_of(scenario: str, settings: SchedulerSettings | None = None) -> tuple[Scale, ...]:
    """Return the scales of a scenario's problems, in order of their files' names.

    Args:
        scenario: Its name, which another scenario may have, too.
        settings: The scheduler, which must be that of the scales; None = any.

    Raises:
        ScenarioError: A file is not understood.
    """
    folders = (folder / "scales" for folder in shelf_folders("scenarios"))
    paths = [path for folder in folders for path in sorted(folder.glob(f"{scenario}-*.toml"))]
    scales = (_read(path, path.stat().st_mtime_ns) for path in paths)
    alike = None if settings is None else settings_of(settings)
    return tuple(
        scale for scale in scales if scale.scenario == scenario and alike in (None, scale.settings)
    )


@cache
def _read(path: Path, _changed: int) -> Scale:
    """Read a file, once while it stays as it is."""
    table: dict[str, Any] = read_toml(path, ScenarioError)
    try:
        weeks = {int(row[0]): Ends(str(row[1]), *map(float, row[2:])) for row in table["weeks"]}
        mean, low, high = map(float, table["gap"])
        given = {field.name: table[field.name] for field in fields(Scale)}
        given |= {"weeks": weeks, "gap": (mean, low, high), "constant": tuple(table["constant"])}
        return Scale(**given)
    except (KeyError, TypeError, ValueError) as error:
        raise ScenarioError(
            f"{path}: not the scale of a problem: {error}; scripts/find_scales.py writes such files"
        ) from None


def week_digest(jobs: Workload) -> str:
    """Digest the jobs of a week: what decides a schedule, users and their histories included.

    Example:
        >>> from hpcgym.env.scenario.episodes import Episodes
        >>> tiny = Episodes("tiny").workload(0)
        >>> len(week_digest(tiny)), week_digest(tiny) == week_digest(tiny.select([0, 1, 2]))
        (12, False)
    """
    if jobs not in _digests:
        hasher = hashlib.sha256(repr((jobs.machine_processors, jobs.machine)).encode())
        columns = [values for key, values in jobs.columns().items() if COLUMNS[key].decides]
        for array in (*columns, jobs.user_index, *jobs.history):
            hasher.update(array.tobytes())
        _digests[jobs] = hasher.hexdigest()[:DIGITS]
    return _digests[jobs]
