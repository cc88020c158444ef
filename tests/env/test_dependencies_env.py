"""Environments in which jobs wait for others: what they schedule, pay and show."""

import gymnasium
import numpy as np
import pytest
from hypothesis import given

import hpcgym
from dependent_cases import conditional_tables, tables, workload_of
from hpcgym.scenario.episodes import Episodes
from hpcgym.scenario.spec import MachineSpec, Scenario, SchedulerSpec, TraceSpec, WholeEpisode
from strategies import one_of

KINDS = ("ignore", "start", "feedback")
ORDERS = ("FCFS", "SAF", "SPF", "LCFS", "SMITH")
MODES = ("none", "easy", "depth:k=2", "conservative", "easy:cap=0.5,long=10", "slack:c=1")


def episodes_of(jobs, **scheduler):
    """Return one episode of a workload."""
    return Episodes(
        Scenario(
            name="drawn",
            description="Drawn by a test.",
            trace=TraceSpec(name="tiny", missing_request="drop"),
            machine=MachineSpec(
                jobs.machine_processors, max(jobs.largest_request, 2), nodes=jobs.machine
            ),
            episode=WholeEpisode(),
            scheduler=SchedulerSpec(**scheduler),
        ),
        workload=jobs,
    )


def env_of(jobs, policies, keywords, **scheduler):
    """Return an environment that chooses among policies."""
    return gymnasium.make(
        "HPCBatch-v0",
        scenario=episodes_of(jobs, **scheduler),
        action="policy",
        policies=policies,
        disable_env_checker=True,
        **keywords,
    ).unwrapped


def play(env, choose=lambda: 0):
    """Play an episode; return the sum of rewards and all that was shown."""
    shown, _ = env.reset(seed=0)
    seen, total, is_over = [shown], 0.0, False
    while not is_over:
        shown, reward, is_over, _, _ = env.step(choose())
        seen.append(shown)
        total += reward
    return total, seen


@given(
    rows=tables() | conditional_tables(),
    policy=one_of(ORDERS),
    backfill=one_of(MODES),
    threshold=one_of((None, 0, 5, 20)),
    kind=one_of(KINDS),
    decide=one_of(("contested", "event", 7)),
    reward=one_of(("bsld", "bsld_start", "bsld_end")),
    n_slots=one_of((1, 3, 128)),
)
def test_one_order_starts_every_job_as_simulate_does_and_pays_the_mean_bounded_slowdown(
    rows, policy, backfill, threshold, kind, decide, reward, n_slots
):
    jobs = workload_of(rows)
    scheduler = {"backfill": backfill, "threshold_s": threshold, "dependencies": kind}
    keywords = {"decide": decide, "reward": reward, "n_slots": n_slots}
    env = env_of(jobs, [policy], keywords, policy=policy, **scheduler)
    total, _ = play(env)
    got = env.schedule()
    settings = {"backfill": backfill, "threshold": threshold, "dependencies": kind}
    expected = hpcgym.simulate(jobs, policy, **settings)
    for key in ("start_time", "backfilled", "thresholded", "eligible_time", "cancelled"):
        np.testing.assert_array_equal(getattr(got, key), getattr(expected, key), key)
    metrics = env.metrics()
    for key, value in expected.metrics().items():
        if key in metrics:
            assert metrics[key] == pytest.approx(value, nan_ok=True), key
    assert total == pytest.approx(-metrics["mean_bsld"])
    assert metrics.get("n_cancelled", 0) == (0 if got.cancelled is None else got.cancelled.sum())
