"""Environments on drawn workloads, each beside its twin, and actions for both."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from hypothesis import strategies as st

import reference
from engines import history_of_users, jobs_of, records_of_users
from env_twin import WEEK_S, EnvTwin, Rules
from hpcgym.core.features import FEATURES
from hpcgym.core.workload import Workload
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.env.scenario.spec import MachineSpec, Scenario, SchedulerSpec, TraceSpec, WholeEpisode
from hpcgym.env.scheduling import SchedulingEnv
from hpcgym.env.vector import SchedulingVectorEnv
from strategies import THRESHOLDS_S, workloads
from strategies import weights as mixed_weights

ACTIONS = ("weights", "policy", "order", "job")
ACCRUING = ("bsld", "wait", "pp_bsld", "ratio")
REWARDS = (*ACCRUING, "user_ratio", "bsld_start", "bsld_end", "log_ratio", "relative")
BSLD_FORMS = ("bsld", "bsld_start", "bsld_end")
KEEPING = "conservative:compress=shift"
RESERVING = ("depth:k=2", "conservative", KEEPING)
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
                processors=rules.processors,
                largest_request_s=rules.largest_request,
                nodes=workload.machine,
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
                placement=rules.placement,
            ),
        ),
        workload=workload,
    )


def rules_for(workload: Workload, **changes: Any) -> Rules:
    """Return the plainest rules for a workload, with changes."""
    return replace(Rules(workload.machine_processors, workload.largest_request), **changes)


PLAIN = {"action": "weights", "reward": "bsld"}
"""Keywords of tests in which each pass is a decision, by weights, and pays in bounded slowdowns."""


def plain_env(scenario: Any = "synthetic-256-weeks", **keywords: Any) -> SchedulingEnv:
    """Make an environment of `PLAIN`, but for the keywords given."""
    return SchedulingEnv(scenario, **PLAIN | keywords)


def plain_vector(scenario: Any = "synthetic-256-weeks", **keywords: Any) -> SchedulingVectorEnv:
    """Make a vector environment of `PLAIN`, but for the keywords given."""
    return SchedulingVectorEnv(scenario, **PLAIN | keywords)


def env_of(
    workload: Workload, rules: Rules, events: str = "", fields: Sequence[str] = ()
) -> SchedulingEnv:
    """Make the environment, perhaps with events beside the jobs and with further fields."""
    episodes = episodes_of(workload, rules)
    if events:
        scheduler = replace(episodes.scenario.scheduler, events=events)
        episodes = Episodes(replace(episodes.scenario, scheduler=scheduler), workload=workload)
    return SchedulingEnv(
        episodes,
        action=rules.action,
        decide=rules.decide,
        reward=rules.reward,
        baseline=text_of(rules.baseline),
        policies=rules.policies or None,
        n_slots=rules.n_slots,
        expectations=rules.expectations,
        fields=fields,
    )


def twin_of(workload: Workload, rules: Rules, kind: type[EnvTwin] = EnvTwin) -> EnvTwin:
    """Make the twin."""
    history = workload.history
    users = dict(zip(workload.user.tolist(), workload.user_index.tolist(), strict=True))
    known = {user: row for user, row in users.items() if history.completed[row] > 0}
    start = workload.time_offset if workload.unix_start is None else workload.unix_start
    return kind(
        jobs_of(workload),
        rules,
        ended=history_of_users(workload),
        n_ended={user: int(history.completed[row]) for user, row in known.items()},
        last_end={user: int(history.last_end_time[row]) for user, row in known.items()},
        records=records_of_users(workload),
        week_start=start % WEEK_S,
    )


class Case(NamedTuple):
    """A workload, what its environment is made of, and a seed for its actions."""

    workload: Workload
    rules: Rules
    seed: int


def slowed(workload: Workload, by: int) -> Workload:
    """Return a workload in which everything takes so many times as long."""
    history = workload.history
    return replace(
        workload,
        submit_time=workload.submit_time * by,
        run_time=workload.run_time * by,
        requested_time=workload.requested_time * by,
        history=history._replace(
            run_time=history.run_time * by,
            requested_time=history.requested_time * by,
            last_end_time=history.last_end_time * by,
        ),
    )


@st.composite
def stretched(draw: st.DrawFn, max_jobs: int) -> tuple[Workload, int]:
    """Draw a workload whose times are stretched, and by how much."""
    by = draw(st.sampled_from(TIME_SCALES))
    longer = replace(
        slowed(draw(workloads(max_jobs)), by),
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
        "backfill": draw(st.sampled_from(("none", "easy", "easy", "easy", *RESERVING))),
        "threshold": draw(st.sampled_from([t and t * by for t in THRESHOLDS_S])),
        "estimates": draw(st.sampled_from(("requested", "requested", "exact"))),
        "event_semantics": draw(st.sampled_from(("batch", "batch", "batch", "pyss", "one-by-one"))),
        "action": draw(st.sampled_from(ACTIONS)),
        "reward": draw(st.sampled_from(REWARDS)),
        "baseline": draw(st.none() | policies),
        "n_slots": draw(st.sampled_from((1, 2, 3, 4, 5, 8, 128))),
        "expectations": draw(st.sampled_from((None, "records", "regression", "urgency"))),
    }
    if rules["backfill"] in ("easy", "depth:k=2"):
        rules["backfill_order"] = draw(st.sampled_from((None, "SAF", "SPF")) | policies)
    if rules["event_semantics"] != "pyss":
        rules["kill_at_limit"] = draw(st.sampled_from((True, True, False)))
    rules |= fixed
    if rules["backfill"] == KEEPING and rules["action"] == "job":
        rules["backfill"] = "conservative"
    epochs = ["contested", "contested", "event"]
    if rules["action"] in ("weights", "policy"):
        epochs += [3 * by, 11 * by, 60 * by]
    rules.setdefault("decide", draw(st.sampled_from(epochs)))
    if rules["action"] == "policy":
        names = draw(st.lists(st.sampled_from(reference.POLICIES), min_size=1, max_size=4))
        rules.setdefault("policies", tuple(names))
    if rules["reward"] in ("log_ratio", "relative") and rules["baseline"] is None:
        rules["baseline"] = "SAF"
    if rules["reward"] == "user_ratio":
        rules["baseline"] = None
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


def play(env: SchedulingEnv, action: Any, **reset: Any) -> list[float]:
    """Play an episode with one constant action; return the rewards."""
    env.reset(**reset)
    rewards, terminated = [], False
    while not terminated:
        _, reward, terminated, _, _ = env.step(action)
        rewards.append(reward)
    return rewards


def env_with(
    workload: Workload, action: str, threshold: int | None = None, **keywords: Any
) -> SchedulingEnv:
    """Make an environment of eight slots with a kind of action."""
    episodes = episodes_of(workload, threshold=threshold)
    return SchedulingEnv(episodes, action=action, **{"n_slots": 8} | keywords)


def starts_under(env: SchedulingEnv, action: Any) -> list[int]:
    """Play an episode with one constant action; return all starts."""
    play(env, action)
    return env.schedule().start_time.tolist()


def play_at_random(env: SchedulingEnv, case: Case, max_steps: int | None = None) -> list[float]:
    """Play an episode, or its first steps, with the random actions of a case; return rewards."""
    generator = np.random.default_rng(case.seed)
    env.reset()
    rewards, terminated = [], False
    while not terminated and len(rewards) != max_steps:
        _, reward, terminated, _, _ = env.step(random_action(case.rules, generator))
        rewards.append(reward)
    return rewards


def busy_workload(seed: int = 0, n: int = 250, processors: int = 16) -> Workload:
    """Make a workload with a long queue: jobs of all sizes, few users, many ties of sizes."""
    generator = np.random.default_rng(seed)
    requested_time = 60 * generator.choice([1, 2, 5, 10, 30, 60, 120], n)
    run_time = (requested_time * generator.choice([0.0, 0.1, 0.5, 0.9, 1.0], n)).astype(np.int64)
    sizes = 2 ** generator.integers(0, processors.bit_length(), n)
    work = float((run_time * sizes).sum()) / processors
    submit_time = np.sort(generator.integers(0, int(0.8 * work), n)) // 30 * 30
    return Workload.from_arrays(
        submit_time,
        run_time,
        requested_time,
        np.minimum(sizes, processors),
        machine_processors=processors,
        user=generator.integers(0, 5, n),
        name=f"busy {seed}",
    )


def assert_tells(info: dict[str, Any], twin: EnvTwin, when: str, ledger: float = 1.0) -> None:
    """Compare an info with what the twin has to tell, key by key; `when` is begin, step or end."""
    expected = twin.info()
    if when != "step":
        expected["episode_number"] = 1
    if when == "end":
        expected |= twin.end_info()
    assert info.keys() == expected.keys()
    for key, value in expected.items():
        atol = 1e-12 * ledger if key.endswith("_term") else 1e-9
        np.testing.assert_allclose(info[key], value, rtol=1e-9, atol=atol, err_msg=key)


def terms_of(info: dict[str, Any]) -> list[float]:
    """Return the terms of the reward."""
    return [value for key, value in info.items() if key.endswith("_term")]


def burst(seed: int, n: int = 400, processors: int = 16) -> Workload:
    """Make a workload most of which waits for most of the time: areas of all sizes, and ties."""
    generator = np.random.default_rng(seed)
    requested = 60 * generator.choice([1, 2, 3, 5, 7, 10, 30, 60, 120], n)
    return Workload.from_arrays(
        np.sort(generator.integers(0, 6_000, n)),
        (requested * generator.choice([0.1, 0.5, 1.0], n)).astype(np.int64),
        requested,
        generator.integers(1, processors + 1, n),
        machine_processors=processors,
        user=generator.integers(0, 5, n),
        name=f"burst {seed}",
    )


def replay(keywords: dict[str, Any], seed: int, steps: int) -> list[bytes]:
    """Make an environment by its registered name, act at random; return all that it shows."""
    env = gymnasium.make("hpcgym:HPCBatch-v0", **keywords)
    env.action_space.seed(seed)
    seen = []
    shown, info = env.reset(seed=seed)
    for _ in range(steps):
        seen.append(b"".join(shown[key].tobytes() for key in sorted(shown)))
        shown, reward, terminated, _, info = env.step(env.action_space.sample())
        seen.append(repr((reward, terminated, info)).encode())
        if terminated:
            shown, info = env.reset()
    return seen


BUSY = episodes_of(busy_workload(3, n=90), threshold=1_800)


def pair(
    num_envs: int,
    scenario: Any = BUSY,
    mode: AutoresetMode = AutoresetMode.NEXT_STEP,
    threads: int = 1,
    **keywords: Any,
) -> tuple[SyncVectorEnv, SchedulingVectorEnv]:
    """Make Gymnasium's vector of the scalar environment, and ours."""
    if keywords.get("reward") in ("log_ratio", "relative"):
        keywords["baseline"] = "FCFS"
    theirs = gymnasium.make_vec(
        "HPCBatch-v0",
        num_envs=num_envs,
        scenario=scenario,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": mode},
        **keywords,
    )
    ours = gymnasium.make_vec(
        "HPCBatch-v0",
        num_envs=num_envs,
        scenario=scenario,
        autoreset_mode=mode,
        threads=threads,
        **keywords,
    )
    assert isinstance(theirs, SyncVectorEnv)
    assert isinstance(ours, SchedulingVectorEnv)
    return theirs, ours


def assert_same(one: Any, other: Any, where: str = "") -> None:
    """Compare what two environments give: types, keys, shapes and every bit."""
    assert type(one) is type(other), where
    if isinstance(one, dict):
        assert one.keys() == other.keys(), where
        for key in one:
            assert_same(one[key], other[key], f"{where}/{key}")
    elif isinstance(one, (tuple, list)):
        assert len(one) == len(other), where
        for place, (mine, yours) in enumerate(zip(one, other, strict=True)):
            assert_same(mine, yours, f"{where}/{place}")
    elif isinstance(one, np.ndarray) and one.dtype != object:
        assert (one.dtype, one.shape) == (other.dtype, other.shape), where
        assert one.tobytes() == other.tobytes(), f"{where}: {one} is not {other}"
    elif isinstance(one, np.ndarray):
        assert_same(one.tolist(), other.tolist(), where)
    else:
        assert one == other, where


def assert_same_schedules(theirs: Any, ours: SchedulingVectorEnv) -> None:
    """Compare the schedules made so far, job by job."""
    for one, other in zip(theirs.call("schedule"), ours.call("schedule"), strict=True):
        assert one.start_time.tobytes() == other.start_time.tobytes()
        assert one.backfilled.tobytes() == other.backfilled.tobytes()
        assert one.thresholded.tobytes() == other.thresholded.tobytes()


def play_in_lockstep(
    theirs: SyncVectorEnv | SchedulingVectorEnv,
    ours: SchedulingVectorEnv,
    steps: int,
    seed: int = 5,
    most: float = math.inf,
    **reset: Any,
) -> int:
    """Step both with the same random actions, until so many have ended; return how many have."""
    theirs.action_space.seed(seed)
    assert_same(theirs.reset(seed=seed, **reset), ours.reset(seed=seed, **reset))
    assert theirs.np_random_seed == ours.np_random_seed
    ended = 0
    for _ in range(steps):
        actions = theirs.action_space.sample()
        gave, mine = theirs.step(actions), ours.step(actions)
        assert_same(gave, mine)
        over = gave[2] | gave[3]
        ended += int(over.sum())
        if not over.any():
            continue
        if ours.metadata["autoreset_mode"] is not AutoresetMode.SAME_STEP:
            assert_same_schedules(theirs, ours)
        if ours.metadata["autoreset_mode"] is AutoresetMode.DISABLED:
            one, other = ({"options": {"reset_mask": over.copy()}} for _ in range(2))
            assert_same(theirs.reset(**one), ours.reset(**other))
        if ended >= most:
            break
    assert_same_schedules(theirs, ours)
    return ended


def assert_vector_plays_alike(
    mode: AutoresetMode = AutoresetMode.NEXT_STEP, **keywords: Any
) -> None:
    """Play episodes to their ends in Gymnasium's vector of single environments and in ours."""
    assert play_in_lockstep(*pair(2, mode=mode, **keywords), steps=100_000, most=2) >= 2


def check_with_stable_baselines(env: gymnasium.Env) -> None:
    """Run SB3's checker, every warning an error but one: that `jobs` is a table, and no picture."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its imports
        sb3 = pytest.importorskip("stable_baselines3.common.env_checker")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "Your observation jobs has an unconventional shape")
        sb3.check_env(env, warn=True, skip_render_check=True)
