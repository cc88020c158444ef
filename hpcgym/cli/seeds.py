"""`--seeds` of `hpcgym train` and `hpcgym tune`: one agent for each seed, shared by an executor."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, as_completed
from dataclasses import replace
from typing import Any, TypeAlias

import typer

from hpcgym.base.errors import HpcgymError
from hpcgym.base.progress import steps
from hpcgym.cli.options import stated

Make: TypeAlias = Callable[[Any, str], str]
"""Makes the agent of one seed from a command's options and its text; says what it came to.

A worker finds it by its name.
"""

MOST_SEED = 9_999  # largest seed that a range may name


def has_seeds(context: typer.Context, given: Any) -> bool:
    """Tell whether several seeds are asked for."""
    if given.seeds is None:
        if given.executor is not None:
            raise HpcgymError("--on shares trainings of several --seeds, such as --seeds 0-3")
        return False
    if stated(context, "seed"):
        raise HpcgymError("--seeds takes the place of --seed; give one of them")
    if given.shelf:
        raise HpcgymError("--shelf takes one agent; put the best of the seeds there by its card")
    return True


def seeds_of(text: str) -> tuple[int, ...]:
    """Return the seeds that a text such as "0-15" names. HpcgymError: it names none."""
    from hpcgym.base.ranges import parse_numbers

    return parse_numbers(text, range(MOST_SEED + 1), what="seeds", error=HpcgymError)


def options_of(given: Any, seed: int) -> Any:
    """Return the options of one seed, whose folder and name end in its number."""
    name, output = f"{given.name}-{seed}", given.output / f"seed-{seed}"
    return replace(given, seed=seed, seeds=None, executor=None, name=name, output=output)


def make_seeds(given: Any, command: str, make: Make) -> list[str]:
    """Make the agent of each seed, and return a line about each, by seed.

    With `resume`, seeds that have their card are left as they are, and others go on. One that fails
    lets the others end; then its error is raised.

    Args:
        given: Options of the command, `hpcgym.cli.train.AgentOptions`.
    """
    from hpcgym.evaluation.executors import executor_of

    lines: dict[int, str] = {}
    errors: dict[int, HpcgymError] = {}
    left = []
    for seed in seeds_of(given.seeds):
        options = options_of(given, seed)
        card = options.output / f"{options.name.casefold()}.toml"
        if given.resume and not given.force and card.exists():
            lines[seed] = f"seed {seed}: was finished; {card}"
        else:
            left.append(options)
    here = os.getcwd()
    with (
        executor_of(given.executor) as pool,
        steps(len(lines) + len(left), given.name, "seeds") as work,
    ):
        work.advance(len(lines))
        if pool is None:
            ended = ((options.seed, _outcome(make, options, command, here)) for options in left)
        else:
            jobs = {
                pool.submit(_outcome, make, options, command, here): options.seed
                for options in left
            }
            ended = ((jobs[job], _result(job)) for job in as_completed(jobs))
        for seed, outcome in ended:
            if isinstance(outcome, str):
                lines[seed] = f"seed {seed}: {outcome}"
            else:
                errors[seed] = outcome
            work.advance()
    if errors:
        first = min(errors)
        rest = ", ".join(map(str, sorted(errors)[1:]))
        others = f" (and seeds {rest} failed)" if rest else ""
        raise HpcgymError(f"seed {first}: {errors[first]}{others}")
    return [lines[seed] for seed in sorted(lines)]


def _result(job: Future[str | HpcgymError]) -> str | HpcgymError:
    """Return the outcome of a job, also where its worker has ended before it."""
    try:
        return job.result()
    except Exception as error:  # of whatever kind the executor raises
        return HpcgymError(f"its worker was lost ({type(error).__name__}); --resume goes on")


def _outcome(make: Make, given: Any, command: str, folder: str) -> str | HpcgymError:
    """Make one seed's agent in a folder; return its error, so that other seeds go on."""
    os.chdir(folder)
    try:
        return make(given, command)
    except HpcgymError as error:
        return HpcgymError(str(error))
