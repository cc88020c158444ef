"""Environments on drawn workloads, each beside its twin, and actions for both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import reference
from engines import history_of_users, jobs_of
from env_twin import WEEK_S, EnvTwin, Rules
from hypothesis import strategies as st
from strategies import THRESHOLDS_S, workloads
from strategies import weights as mixed_weights

from hpcgym.core.policy import FEATURES
from hpcgym.core.workload import Workload
from hpcgym.env.scheduling import SchedulingEnv
from hpcgym.scenario.build import Episodes
from hpcgym.scenario.spec import MachineSpec, Scenario, SchedulerSpec, TraceSpec, WholeEpisode

ACTIONS = ("weights", "policy", "order", "job")
REWARDS = ("bsld", "bsld_start", "bsld_end", "wait", "pp_bsld", "log_ratio", "relative")
BSLD_FORMS = ("bsld", "bsld_start", "bsld_end")
TIME_SCALES = (1, 1, 7, 600, 7_200)
"""Seconds stretched to minutes and hours, so that every horizon of an observation matters."""

policies = st.sampled_from(reference.POLICIES) | mixed_weights


def text_of(policy: Any) -> Any:
    """Write a policy as a scenario does: weights as text."""
    if policy is None or isinstance(policy, str):
        return policy
    return ",".join(f"{feature}={w!r}" for feature, w in zip(FEATURES, policy, strict=True))


def episodes_of(workload: Workload, rules: Rules | None = None, **changes: Any) -> Episodes:
    """Make a scenario of one workload."""
    if rules is None:
        rules = rules_for(workload, **changes)
    return Episodes(
        Scenario(
            name="drawn",
            description="Drawn by a test.",
            trace=TraceSpec(name="tiny", missing_request="drop"),
            machine=MachineSpec(
                processors=rules.processors, largest_request_s=rules.largest_request
            ),
            episode=WholeEpisode(),
            scheduler=SchedulerSpec(
                policy=text_of(rules.policy),
                backfill=rules.backfill,
                backfill_order=text_of(rules.backfill_order),
                threshold_s=rules.threshold,
                kill_at_limit=rules.kill_at_limit,
                estimates=rules.estimates,
                event_semantics=rules.event_semantics,
            ),
        ),
        workload=workload,
    )


def rules_for(workload: Workload, **changes: Any) -> Rules:
    """Return the plainest rules for a workload, with changes."""
    return replace(Rules(workload.machine_processors, workload.largest_request), **changes)


def env_of(workload: Workload, rules: Rules) -> SchedulingEnv:
    """Make the environment."""
    return SchedulingEnv(
        episodes_of(workload, rules),
        action=rules.action,
        decide=rules.decide,
        reward=rules.reward,
        baseline=text_of(rules.baseline),
        policies=rules.policies or None,
        scale=rules.scale,
        n_slots=rules.n_slots,
    )


def twin_of(workload: Workload, rules: Rules) -> EnvTwin:
    """Make the twin."""
    history = workload.history
    users = dict(zip(workload.user.tolist(), workload.user_index.tolist(), strict=True))
    known = {user: row for user, row in users.items() if history.completed[row] > 0}
    start = workload.time_offset if workload.unix_start is None else workload.unix_start
    return EnvTwin(
        jobs_of(workload),
        rules,
        ended=history_of_users(workload),
        n_ended={user: int(history.completed[row]) for user, row in known.items()},
        last_end={user: int(history.last_end_time[row]) for user, row in known.items()},
        week_start=start % WEEK_S,
    )


class Case(NamedTuple):
    """A workload, what its environment is made of, and a seed for its actions."""

    workload: Workload
    rules: Rules
    seed: int


@st.composite
def stretched(draw: st.DrawFn, max_jobs: int) -> tuple[Workload, int]:
    """Draw a workload whose times are stretched, and by how much."""
    workload = draw(workloads(max_jobs))
    by = draw(st.sampled_from(TIME_SCALES))
    history = workload.history
    longer = replace(
        workload,
        submit_time=workload.submit_time * by,
        run_time=workload.run_time * by,
        requested_time=workload.requested_time * by,
        history=history._replace(
            run_time=history.run_time * by,
            requested_time=history.requested_time * by,
            last_end_time=history.last_end_time * by,
        ),
        time_offset=draw(st.integers(0, WEEK_S)),
        unix_start=draw(st.none() | st.integers(0, 2**31)),
    )
    return longer, by


@st.composite
def cases(draw: st.DrawFn, max_jobs: int = 20, **fixed: Any) -> Case:
    """Draw an environment of any kind; `fixed` rules are taken as given."""
    workload, by = draw(stretched(max_jobs))
    rules: dict[str, Any] = {
        "processors": workload.machine_processors,
        "largest_request": workload.largest_request * draw(st.sampled_from((1, 1, 5))),
        "policy": draw(st.just("SAF") | policies),
        "backfill": draw(st.sampled_from(("none", "easy", "easy", "easy"))),
        "threshold": draw(st.sampled_from([t and t * by for t in THRESHOLDS_S])),
        "estimates": draw(st.sampled_from(("requested", "requested", "exact"))),
        "event_semantics": draw(st.sampled_from(("batch", "batch", "batch", "pyss"))),
        "action": draw(st.sampled_from(ACTIONS)),
        "reward": draw(st.sampled_from(REWARDS)),
        "baseline": draw(st.none() | policies),
        "scale": draw(st.sampled_from(("unit", "raw"))),
        "n_slots": draw(st.sampled_from((1, 2, 3, 4, 5, 8, 128))),
    }
    if rules["backfill"] == "easy":
        rules["backfill_order"] = draw(st.none() | st.just("SPF") | policies)
    if rules["event_semantics"] == "batch":
        rules["kill_at_limit"] = draw(st.sampled_from((True, True, False)))
    rules |= fixed
    epochs = ["contested", "contested", "event"]
    if rules["action"] in ("weights", "policy"):
        epochs += [3 * by, 11 * by, 60 * by]
    rules.setdefault("decide", draw(st.sampled_from(epochs)))
    if rules["action"] == "policy":
        names = draw(st.lists(st.sampled_from(reference.POLICIES), min_size=1, max_size=4))
        rules.setdefault("policies", tuple(names))
    if rules["reward"] in ("log_ratio", "relative") and rules["baseline"] is None:
        rules["baseline"] = "SAF"
    return Case(workload, Rules(**rules), draw(st.integers(0, 2**16)))


def random_action(rules: Rules, generator: np.random.Generator) -> Any:
    """Draw an action, rich in ties, zeros and empty slots."""
    values = np.array([-1.0, -0.5, -0.1, 0.0, 0.0, 0.0, 0.1, 0.3, 1.0], dtype=np.float32)
    if rules.action == "weights":
        return generator.choice(values, 6)
    if rules.action == "order":
        return generator.choice(values, rules.n_slots)
    if rules.action == "policy":
        return int(generator.integers(len(rules.policies)))
    return int(generator.integers(min(rules.n_slots, 4)))


def play(env: SchedulingEnv, actions: Sequence[Any] | Any, **reset: Any) -> list[float]:
    """Play an episode with actions, the last one again and again, or one constant action.

    Returns:
        The rewards.
    """
    many = list(actions) if isinstance(actions, list) else [actions]
    env.reset(**reset)
    rewards, terminated = [], False
    while not terminated:
        action = many[min(len(rewards), len(many) - 1)]
        _, reward, terminated, _, _ = env.step(action)
        rewards.append(reward)
    return rewards


