"""Which weeks a training plays, and which it keeps for validation."""

from __future__ import annotations

from math import ceil

from hpcgym.base.errors import HpcgymError
from hpcgym.base.ranges import number_ranges
from hpcgym.env.scenario.episodes import Episodes


def split_validation(
    episodes: Episodes, share: float, weeks: str | None = None
) -> tuple[Episodes, Episodes]:
    """Split weeks, in time order, into those to play and those kept for validation.

    Kept are `weeks`, such as "31-36", or else the last `share` of them, at least one. Both parts
    are the same week where there is one and none is named.

    Raises:
        HpcgymError: All weeks are named, so that none is left to play.
        ScenarioError: There is no such week.

    Source: Specification, section 10, "Evaluation protocol".
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
