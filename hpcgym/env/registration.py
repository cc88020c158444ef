"""Registers environments with `gymnasium.make` and `gymnasium.make_vec`, by strings.

`HPCBatch-v0` takes every keyword. The id of a problem fixes scenario, weeks, action and observation
for clients that pass no keywords: `hpcgym/Price-train-v0` draws training weeks of `price-weeks`,
with actions `price`. A problem on which no learner gains anything has no id.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gymnasium.envs.registration import register
from gymnasium.error import NameNotFound

from hpcgym.base.errors import ScenarioError

PARTS = ("train", "validation", "test")
"""Values of the keyword `weeks` that have ids, for every problem."""


@dataclass(frozen=True)
class Problem:
    """What the ids of a problem fix."""

    scenario: str
    solved: float  # sum of rewards that counts as solved
    keywords: dict[str, Any]  # keywords of `HPCBatch-v0`, besides `weeks` and a flat `observation`


PROBLEMS = {
    "Price": Problem(
        "price-weeks", 0.4, {"action": "price", "reward": "priced", "baseline": "SAF"}
    ),
    "Windows-pick": Problem(
        "windows-256", -1.0, {"action": "job", "backfill": "none", "expectations": "regression"}
    ),
}
"""Problems that have ids. Of `pick` solved is what SAF reaches with backfilling, and of `Price`, by
what SAF takes more, above the best rule known."""

TRIED = {"index": "60", "trials": "31", "order": "120", "job": "120"}
GONE = [f"{weeks}-{action}" for weeks in ("ManyWeeks", "BusyWeeks") for action in TRIED]
"""Problems that had ids, by minutes in which PPO gained nothing with their actions."""

OPEN = ("render_mode",)
OPEN_OF_VECTORS = (*OPEN, "num_envs", "max_episode_steps", "threads", "autoreset_mode", "copy")
"""Keywords that a problem leaves to its user."""


def one_of(problem: str, **keywords: Any) -> Any:
    """Return the environment of a problem, named with its part of the episodes.

    Raises:
        ScenarioError: A keyword that the problem fixes.
        NameNotFound: A problem that has no id any more.
    """
    from hpcgym.env.scheduling import SchedulingEnv

    return SchedulingEnv(**_fixed(problem, keywords, OPEN))


def many_of(problem: str, **keywords: Any) -> Any:
    """Return a vector environment of a problem; argument and error as of `one_of`."""
    from hpcgym.env.vector import SchedulingVectorEnv

    return SchedulingVectorEnv(**_fixed(problem, keywords, OPEN_OF_VECTORS))


def _fixed(problem: str, given: dict[str, Any], allowed: tuple[str, ...]) -> dict[str, Any]:
    """Return all keywords of a problem, given those of its user.

    Keywords that no environment has are handed on, and refused as by `HPCBatch-v0`.
    """
    from hpcgym.env.config import Keywords

    if problem in PROBLEMS:
        parts = ", ".join(f"hpcgym/{problem}-{part}-v0" for part in PARTS)
        raise NameNotFound(f"hpcgym/{problem}-v0 does not say which weeks; there are {parts}")
    name, _, weeks = problem.rpartition("-")
    if (action := name.partition("-")[2]) in TRIED:
        made = f'"HPCBatch-v0", action="{action}", observation="flat"'
        if name.startswith("Busy"):
            made += ', scenario="synthetic-busy-weeks"'
        elif action == "index":
            made = made.replace("flat", "small")
        raise NameNotFound(
            f"hpcgym/{problem}-v0 is gone: {TRIED[action]} minutes of PPO gained nothing on what "
            f'needs no learning. The same: gymnasium.make({made}, weeks="{weeks}")'
        )
    fixed = set(given) & {"scenario", *Keywords.__annotations__}
    if fixed:
        raise ScenarioError(
            f"hpcgym/{problem}-v0 fixes {', '.join(sorted(fixed))}, so that results can "
            f"be compared; it takes {', '.join(allowed)}. 'HPCBatch-v0' takes every keyword"
        )
    of = PROBLEMS[name]
    return {"scenario": of.scenario, "weeks": weeks, "observation": "flat"} | of.keywords | given


register(
    id="HPCBatch-v0",
    entry_point="hpcgym.env.scheduling:SchedulingEnv",
    vector_entry_point="hpcgym.env.vector:SchedulingVectorEnv",
)
for _name in (*PROBLEMS, *GONE):
    for _part in (*PARTS, "" if _name in PROBLEMS else "short"):
        _id = f"{_name}-{_part}".removesuffix("-")
        register(
            id=f"hpcgym/{_id}-v0",
            entry_point="hpcgym.env.registration:one_of",
            vector_entry_point="hpcgym.env.registration:many_of",
            reward_threshold=PROBLEMS[_name].solved if _name in PROBLEMS else None,
            kwargs={"problem": _id},
        )
