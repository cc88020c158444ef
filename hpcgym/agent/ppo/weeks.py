"""Which weeks a training plays, and which it keeps for validation."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import NamedTuple

from hpcgym.errors import HpcgymError
from hpcgym.scenario.build import Episodes
from hpcgym.scenario.select import number_ranges


class Chosen(NamedTuple):
    """Weeks of a training.

    Attributes:
        training: What is played, one of each scenario.
        validation: What is kept, likewise.
        weeks: Numbers of both together, ascending, by scenario.
    """

    training: list[Episodes]
    validation: list[Episodes]
    weeks: dict[str, tuple[int, ...]]


def held_back(episodes: Episodes, share: float) -> tuple[Episodes, Episodes]:
    """Part the last weeks from the others.

    Args:
        episodes: Weeks, in time order.
        share: How much to keep, at least one week.

    Returns:
        The weeks for training, and those for validation; the same for both where there is one.

    Source:
        Specification, section 10, "Evaluation protocol".

    Example:
        >>> [len(part) for part in held_back(Episodes("synthetic-256-weeks"), 0.2)]
        [16, 5]
    """
    numbers = episodes.numbers
    n_held = max(ceil(share * len(numbers)), 1)
    if n_held >= len(numbers):
        return episodes, episodes
    parts = numbers[:-n_held], numbers[-n_held:]
    training, held = (episodes.select(number_ranges(part)) for part in parts)
    return training, held


def chosen_weeks(
    scenarios: Sequence[str],
    weeks: Sequence[str],
    validation_weeks: Sequence[str],
    share: float,
) -> Chosen:
    """Choose the weeks of a training by text.

    Args:
        scenarios: Names or paths.
        weeks: Of each scenario the weeks to play, such as "1-29"; empty = all that are not kept.
        validation_weeks: Of each scenario the weeks to keep; empty = the last of those to play.
        share: How much to keep where no weeks are named.

    Returns:
        The weeks.

    Raises:
        HpcgymError: Weeks that are not given once for each scenario, or weeks to play and to keep.
        ScenarioError: No such scenario or week.

    Source:
        Specification, section 10, "Evaluation protocol".

    Example:
        >>> chosen_weeks(["synthetic-256-weeks"], ["1-10"], [], 0.2).training
        [Episodes('synthetic-256-weeks', 8 of kind week)]
    """
    for what, given in (("weeks", weeks), ("validation weeks", validation_weeks)):
        if given and len(given) != len(scenarios):
            raise HpcgymError(
                f"{len(scenarios)} scenarios, yet {what} are given {len(given)} times"
            )
    found = Chosen([], [], {})
    for place, name in enumerate(scenarios):
        every = Episodes(name)
        playing = every.select(weeks[place]) if weeks else every
        kept = every.select(validation_weeks[place]) if validation_weeks else None
        if kept is None:
            playing, kept = held_back(playing, share)
        elif weeks:
            twice = sorted(set(playing.numbers) & set(kept.numbers))
            if twice:
                raise HpcgymError(f"{name}: weeks {number_ranges(twice)} are to be played and kept")
        else:
            rest = [number for number in every.numbers if number not in kept.numbers]
            if not rest:
                raise HpcgymError(f"{name}: no week is left to be played")
            playing = every.select(number_ranges(rest))
        found.training.append(playing)
        found.validation.append(kept)
        found.weeks[every.scenario.name] = tuple(sorted({*playing.numbers, *kept.numbers}))
    return found
