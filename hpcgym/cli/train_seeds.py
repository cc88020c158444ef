"""`hpcgym train --seeds`: one training for each seed, shared by an executor."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, as_completed
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from hpcgym.errors import HpcgymError
from hpcgym.progress import steps

Train: TypeAlias = Callable[..., tuple[Any, Path]]
"""`hpcgym.cli.train.train_and_write`, which a worker finds by its name."""

MOST_SEED = 9_999
"""Largest seed that a range may name."""


@dataclass(frozen=True)
class SeedResult:
    """What the training of a seed came to; plain values, which leave a worker.

    Attributes:
        ratio: To SAF on the validation weeks; None = it was finished before.
    """

    seed: int
    card: str
    ratio: float | None = None
    steps: int = 0
    seconds: float = 0.0
    ended_at_start: bool = False


def seeds_of(text: str) -> tuple[int, ...]:
    """Return the seeds that a text such as "0-15" names.

    Raises:
        HpcgymError: It names none.
    """
    from hpcgym.ranges import parse_numbers

    return parse_numbers(text, range(MOST_SEED + 1), what="seeds", error=HpcgymError)


def options_of(given: Any, seed: int) -> Any:
    """Return the options of one seed's training, whose folder and name end in its number."""
    name, output = f"{given.name}-{seed}", given.output / f"seed-{seed}"
    return replace(given, seed=seed, seeds=None, executor=None, name=name, output=output)


def train_seeds(given: Any, command: str, train: Train) -> list[SeedResult]:
    """Train each seed of the options of `hpcgym train`, and return what each came to, by seed.

    With `resume`, seeds that have their card are left as they are, and others go on. One that fails
    lets the others end; then its error is raised.

    Raises:
        HpcgymError: Options that contradict each other, or the first error of a training.
    """
    from hpcgym.evaluation.executors import executor_of

    if given.shelf:
        raise HpcgymError("--shelf takes one agent; put the best of the seeds there by its card")
    found: dict[int, SeedResult] = {}
    failed: dict[int, HpcgymError] = {}
    todo = []
    for seed in seeds_of(given.seeds or ""):
        one = options_of(given, seed)
        card = one.output / f"{one.name.casefold()}.toml"
        if given.resume and not given.force and card.exists():
            found[seed] = SeedResult(seed, str(card))
        else:
            todo.append(one)
    with (
        executor_of(given.executor) as pool,
        steps(len(found) + len(todo), given.name, "trainings") as work,
    ):
        work.advance(len(found))
        if pool is None:
            ended = ((one.seed, _outcome(train, one, command, os.getcwd())) for one in todo)
        else:
            here = os.getcwd()
            jobs = {pool.submit(_outcome, train, one, command, here): one.seed for one in todo}
            ended = ((jobs[job], _result(job)) for job in as_completed(jobs))
        for seed, outcome in ended:
            if isinstance(outcome, SeedResult):
                found[seed] = outcome
            else:
                failed[seed] = outcome
            work.advance()
    if failed:
        first = min(failed)
        rest = ", ".join(map(str, sorted(failed)[1:]))
        others = f" (and seeds {rest} failed)" if rest else ""
        raise HpcgymError(f"seed {first}: {failed[first]}{others}")
    return [found[seed] for seed in sorted(found)]


def _result(job: Future[SeedResult | HpcgymError]) -> SeedResult | HpcgymError:
    """Return the outcome of a job, also where its worker has ended before it."""
    try:
        return job.result()
    except Exception as error:  # of whatever kind the executor raises
        return HpcgymError(f"its worker was lost ({type(error).__name__}); --resume goes on")


def _outcome(train: Train, given: Any, command: str, folder: str) -> SeedResult | HpcgymError:
    """Train a seed in a folder; return its error, so that other seeds go on."""
    os.chdir(folder)
    try:
        trained, card = train(given, command, progress=False)
    except HpcgymError as error:
        return HpcgymError(str(error))
    return SeedResult(
        given.seed,
        str(card),
        trained.ratio,
        trained.steps,
        trained.seconds,
        trained.ended_at_start,
    )


def line_of(result: SeedResult) -> str:
    """Say what a seed came to."""
    if result.ratio is None:
        return f"seed {result.seed}: was finished; {result.card}"
    start = ", ended where it began" if result.ended_at_start else ""
    return (
        f"seed {result.seed}: {result.ratio:.3f} times SAF on the validation weeks{start}; "
        f"{result.steps:,} decisions in {result.seconds:.0f} s; wrote {Path(result.card)}"
    )
