"""Registers environments with `gymnasium.make` and `gymnasium.make_vec`, by strings.

`HPCBatch-v0` takes every keyword. Ids of problems fix all that makes results comparable, for
clients that pass no keywords: `hpcgym/BusyWeeks-index-train-v0` draws the training weeks of
`synthetic-busy-weeks`, with actions `index` and observations in one array.
"""

from __future__ import annotations

from typing import Any

from gymnasium.envs.registration import register

from hpcgym.errors import ScenarioError

SCENARIOS = {"BusyWeeks": "synthetic-busy-weeks", "Price": "price-weeks"}
"""What each family of ids plays."""

PRICE: dict[str, Any] = {"action": "price", "reward": "priced", "baseline": "SAF"}
"""Keywords of the ids of `Price`, whose rewards sum to what SAF takes more."""

PRICE_SOLVED = 0.4
"""Sum of rewards of an agent that counts as solved there; the best rule known reaches less."""

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

    return SchedulingEnv(SCENARIOS[problem.partition("-")[0]], **_fixed(problem, keywords, OPEN))


def many_of(problem: str, **keywords: Any) -> Any:
    """Return a vector environment of a problem.

    Raises:
        ScenarioError: A keyword that the problem fixes.
    """
    from hpcgym.env.vector import SchedulingVectorEnv

    scenario = SCENARIOS[problem.partition("-")[0]]
    return SchedulingVectorEnv(scenario, **_fixed(problem, keywords, OPEN_OF_VECTORS))


def _fixed(problem: str, given: dict[str, Any], allowed: tuple[str, ...]) -> dict[str, Any]:
    """Return all keywords of a problem, given those of its user.

    Keywords that no environment has are handed on, and refused as by `HPCBatch-v0`.
    """
    from hpcgym.env.config import Keywords

    family, *action, weeks = problem.split("-")
    fixed = set(given) & {"scenario", *Keywords.__annotations__}
    if fixed:
        raise ScenarioError(
            f"hpcgym/{problem}-v0 fixes {', '.join(sorted(fixed))}, so that results can "
            f"be compared; it takes {', '.join(allowed)}. 'HPCBatch-v0' takes every keyword"
        )
    chosen = PRICE if family == "Price" else {"action": action[0]}
    return chosen | {"weeks": weeks, "observation": "flat"} | given


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
            kwargs={"problem": f"BusyWeeks-{_action}-{_weeks}"},
        )
for _weeks in ("train", "validation", "test"):
    register(
        id=f"hpcgym/Price-{_weeks}-v0",
        entry_point="hpcgym.env.registration:one_of",
        vector_entry_point="hpcgym.env.registration:many_of",
        reward_threshold=PRICE_SOLVED,
        kwargs={"problem": f"Price-{_weeks}"},
    )
