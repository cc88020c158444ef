"""Which weeks a training plays, and which it keeps for validation."""

from __future__ import annotations

from math import ceil

from hpcgym.errors import HpcgymError
from hpcgym.scenario.episodes import Episodes
from hpcgym.scenario.week_ranges import number_ranges


def held_back(
    episodes: Episodes, share: float, weeks: str | None = None
) -> tuple[Episodes, Episodes]:
    """Part the weeks of validation, the last unless others are named, from those to play.

    Args:
        episodes: Weeks, in time order.
        share: How much to keep where no weeks are named, at least one week.
        weeks: Which to keep, such as "31-36"; None = the last.

    Returns:
        The weeks to play, and those kept; the same for both where there is one and none is named.

    Raises:
        HpcgymError: All weeks are named, so that none is left to play.
        ScenarioError: There is no such week.

    Source:
        Specification, section 10, "Evaluation protocol".

    Example:
        >>> [len(part) for part in held_back(Episodes("synthetic-256-weeks"), 0.2)]
        [16, 5]
        >>> held_back(Episodes("synthetic-256-weeks"), 0.2, "4-6")[1].numbers
        (4, 5, 6)
    """
    if weeks is None:
        kept = episodes.numbers[-max(ceil(share * len(episodes)), 1) :]
        if len(kept) == len(episodes):
            return episodes, episodes
    else:
        kept = episodes.select(weeks).numbers
    played = [number for number in episodes.numbers if number not in kept]
    if not played:
        raise HpcgymError(
            f"{episodes.scenario.name}: weeks {number_ranges(kept)} are all kept for validation, "
            "and none is left to play"
        )
    return episodes.select(number_ranges(played)), episodes.select(number_ranges(kept))
