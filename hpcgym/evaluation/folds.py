"""Folds: contiguous blocks of weeks, each held out once, and the weeks left to train on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from hpcgym.agent.training_weeks import is_same_log
from hpcgym.base.errors import EvaluationError
from hpcgym.base.ranges import number_ranges
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.env.scenario.spec import Scenario, WeekEpisodes

FOLDS = 5  # blocks of the evaluation protocol


@dataclass(frozen=True)
class Fold:
    """One block that is held out, and the weeks that may be trained on meanwhile."""

    number: int  # from 1, in time order
    test: tuple[int, ...]  # numbers of the weeks held out
    training: tuple[int, ...]  # numbers of the weeks that may be trained on
    left_out: tuple[int, ...]  # numbers of the neighbours of the block, which are neither


def time_blocks(numbers: Sequence[int], n_folds: int = FOLDS) -> tuple[Fold, ...]:
    """Cut weeks in time order into contiguous blocks, and hold out each once.

    Blocks differ by one week at most. The week before a block and the week after it are left out of
    its training, since jobs cross over.

    Args:
        numbers: Numbers of the weeks, ascending.
        n_folds: Blocks, >= 2.

    Raises:
        EvaluationError: Fewer than two blocks, or a block that is empty or leaves nothing to train
            on.

    Source: Specification, section 10, "Evaluation protocol", step 1.
    """
    weeks = tuple(numbers)
    if n_folds < 2:
        raise EvaluationError(f"weeks are cut into at least 2 blocks, got {n_folds}")
    size, longer = divmod(len(weeks), n_folds)
    folds, first = [], 0
    for number in range(1, n_folds + 1):
        end = first + size + (number <= longer)
        test = weeks[first:end]
        near = {week + step for week in test for step in (-1, 0, 1)}
        training = tuple(week for week in weeks if week not in near)
        if not test or not training:
            raise EvaluationError(
                f"weeks {number_ranges(weeks)} are too few for {n_folds} blocks: block {number} "
                f"would hold out {len(test)} and leave {len(training)} to train on"
            )
        left_out = tuple(week for week in weeks if week in near and week not in test)
        folds.append(Fold(number, test, training, left_out))
        first = end
    return tuple(folds)


def left_to_train_on(episodes: Episodes, weeks: str | None = None) -> Episodes:
    """Return weeks to train an agent on that is to be evaluated on other weeks of the log.

    Args:
        episodes: All weeks of the log.
        weeks: Which, such as "1-36"; None = all but the last of the protocol's blocks and the week
            before it.

    Returns:
        Weeks that are set apart: no job of another week can be reached from them, not even by the
        history of a user. Other episodes than weeks of a log: all, or those named, as they are.

    Raises:
        ScenarioError: No such week.
        EvaluationError: Too few weeks to hold out a block.

    Source: Specification, section 10, "Evaluation protocol", step 1.

    Example:
        >>> left_to_train_on(Episodes("synthetic-256-weeks"))
        Episodes('synthetic-256-weeks', 16 of kind week)
    """
    if not isinstance(episodes.scenario.episode, WeekEpisodes):
        return episodes if weeks is None else episodes.select(weeks)
    if weeks is None:
        fold = time_blocks(episodes.numbers)[-1]
        return episodes.set_apart(fold.training, held_out=fold.test)
    numbers = episodes.select(weeks).numbers
    others = tuple(number for number in episodes.numbers if number not in numbers)
    return episodes.set_apart(numbers, held_out=others)


def left_of_each_log(
    scenarios: Sequence[str], weeks: Sequence[str] = (), kept: Sequence[str] = ()
) -> list[Episodes]:
    """Return weeks to train on of each of several logs, as `left_to_train_on` does of one.

    Args:
        scenarios: A name or a path for each log.
        weeks: Which weeks of each, or none.
        kept: Which weeks of each are kept for validation, or none; they are among those returned.

    Raises:
        EvaluationError: One log twice, weeks of some logs only, or too few to hold out a block.
        ScenarioError: No such scenario or week.

    Example:
        >>> left_of_each_log(["synthetic-256-weeks"], ["1-5"], ["9"])[0].numbers
        (1, 2, 3, 4, 5, 9)
    """
    for what, given in (("weeks", weeks), ("validation weeks", kept)):
        if given and len(given) != len(scenarios):
            raise EvaluationError(
                f"{len(scenarios)} scenarios, yet {what} are given {len(given)} times"
            )
    every = [Episodes(name) for name in scenarios]
    refuse_one_log_twice([log.scenario for log in every])
    left = []
    for log, chosen, held in zip_longest(every, weeks, kept):
        apart = left_to_train_on(log, chosen)
        if held is not None:
            both = sorted({*apart.numbers, *log.select(held).numbers})
            apart = left_to_train_on(log, number_ranges(both))
        left.append(apart)
    return left


def refuse_one_log_twice(scenarios: Sequence[Scenario]) -> None:
    """Refuse by an EvaluationError scenarios that cut one log, whatever their names."""
    # else weeks held out of one scenario could be trained on in the other
    for position, scenario in enumerate(scenarios):
        for other in scenarios[:position]:
            if scenario.name == other.name or is_same_log(scenario, other):
                raise EvaluationError(
                    f"{other.name} and {scenario.name} cut one log, so that weeks held out of one "
                    "could be trained on in the other; each log may stand once, with all its weeks"
                )
