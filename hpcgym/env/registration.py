"""Registers environments with `gymnasium.make` and `gymnasium.make_vec`, by strings.

`HPCBatch-v0` takes every keyword. Ids of problems fix all that makes results comparable, for
clients that pass no keywords: `hpcgym/BusyWeeks-index-train-v0` draws the training weeks of
`synthetic-busy-weeks`, with actions `index` and observations in one array.
"""

from __future__ import annotations

from typing import Any

from gymnasium.envs.registration import register

from hpcgym.errors import ScenarioError

SCENARIO = "synthetic-busy-weeks"

PROBLEMS = {"index": -0.9, "order": -0.95, "job": -0.95, "trials": -0.34}
"""Kinds of action that have ids of their own, and the sum of rewards that counts as solved: minus
the ratio to SAF. Of `trials` it is what zeros reach on the test weeks."""

WEEKS = ("train", "validation", "test", "short")
"""Values of the keyword `weeks` that have."""

OPEN = ("render_mode",)
OPEN_OF_VECTORS = (*OPEN, "num_envs", "max_episode_steps", "threads", "autoreset_mode", "copy")
"""Keywords that a problem leaves to its user."""


def one_of(problem: str, **keywords: Any) -> Any:
    """Return the environment of a problem.

    Raises:
        ScenarioError: A keyword that the problem fixes.
    """
    from hpcgym.env.scheduling import SchedulingEnv

    return SchedulingEnv(SCENARIO, **_fixed(problem, keywords, OPEN))


def many_of(problem: str, **keywords: Any) -> Any:
    """Return a vector environment of a problem.

    Raises:
        ScenarioError: A keyword that the problem fixes.
    """
    from hpcgym.env.vector import SchedulingVectorEnv

    return SchedulingVectorEnv(SCENARIO, **_fixed(problem, keywords, OPEN_OF_VECTORS))


def _fixed(problem: str, given: dict[str, Any], allowed: tuple[str, ...]) -> dict[str, Any]:
    """Return all keywords of a problem, given those of its user.

    Keywords that no environment has are handed on, and refused as by `HPCBatch-v0`.
    """
    from hpcgym.env.config import Keywords

    action, _, weeks = problem.partition("-")
    fixed = set(given) & {"scenario", *Keywords.__annotations__}
    if fixed:
        raise ScenarioError(
            f"hpcgym/BusyWeeks-{problem}-v0 fixes {', '.join(sorted(fixed))}, so that results can "
            f"be compared; it takes {', '.join(allowed)}. 'HPCBatch-v0' takes every keyword"
        )
    return {"action": action, "weeks": weeks, "observation": "flat"} | given


register(
    id="HPCBatch-v0",
    entry_point="hpcgym.env.scheduling:SchedulingEnv",
    vector_entry_point="hpcgym.env.vector:SchedulingVectorEnv",
)
for _action, _solved in PROBLEMS.items():
    for _weeks in WEEKS:
        register(
            id=f"hpcgym/BusyWeeks-{_action}-{_weeks}-v0",
            entry_point="hpcgym.env.registration:one_of",
            vector_entry_point="hpcgym.env.registration:many_of",
            reward_threshold=_solved,
            kwargs={"problem": f"{_action}-{_weeks}"},
        )
