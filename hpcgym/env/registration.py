"""Registers environments with `gymnasium.make` and `gymnasium.make_vec`, by strings.

`HPCBatch-v0` takes every keyword. Ids of problems fix all that makes results comparable, for
clients that pass no keywords: `hpcgym/ManyWeeks-index-train-v0` draws the training weeks of
`many-weeks`, with actions `index` and small observations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gymnasium.envs.registration import register

from hpcgym.base.errors import ScenarioError

PARTS = ("train", "validation", "test")
"""Values of the keyword `weeks` that have ids, for every problem."""


@dataclass(frozen=True)
class Problem:
    """What the ids of a problem fix."""

    scenario: str
    # Sum of rewards that counts as solved: minus the ratio to SAF, but of `Price` what SAF takes
    # more.
    solved: float
    keywords: dict[str, Any]  # keywords of `HPCBatch-v0`, besides `weeks` and a flat `observation`
    parts: tuple[str, ...] = PARTS  # values of the keyword `weeks` that have ids


SHOWN = {"index": {"observation": "small"}}
"""What ids show by kind of action, where that is not observations in one array."""

PROBLEMS = {
    f"ManyWeeks-{action}": Problem(
        "many-weeks", solved, {"action": action} | SHOWN.get(action, {}), (*PARTS, "short")
    )
    for action, solved in {"index": -0.85, "trials": -0.54}.items()
} | {
    "Price": Problem(
        "price-weeks", 0.4, {"action": "price", "reward": "priced", "baseline": "SAF"}
    ),
    "Windows-pick": Problem(
        "windows-256", -1.0, {"action": "job", "backfill": "none", "expectations": "regression"}
    ),
}
"""Problems that have ids. Of `index` solved is below the constant that is SAF-REG, 0.89 on the test
weeks, of `trials` what zeros reach. Of `pick` it is what SAF reaches with backfilling, and of
`Price` more than the best rule known."""

OPEN = ("render_mode",)
OPEN_OF_VECTORS = (*OPEN, "num_envs", "max_episode_steps", "threads", "autoreset_mode", "copy")
"""Keywords that a problem leaves to its user."""


def one_of(problem: str, **keywords: Any) -> Any:
    """Return the environment of a problem, named with its part of the episodes.

    Raises:
        ScenarioError: A keyword that the problem fixes.
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

    name, _, weeks = problem.rpartition("-")
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
for _name, _problem in PROBLEMS.items():
    for _part in _problem.parts:
        register(
            id=f"hpcgym/{_name}-{_part}-v0",
            entry_point="hpcgym.env.registration:one_of",
            vector_entry_point="hpcgym.env.registration:many_of",
            reward_threshold=_problem.solved,
            kwargs={"problem": f"{_name}-{_part}"},
        )
