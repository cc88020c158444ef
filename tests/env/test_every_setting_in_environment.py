"""Whatever the setting, an environment makes the schedule of a simulation, and so does a vector."""

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from hypothesis import HealthCheck, given, reject
from hypothesis import settings as drawing
from hypothesis import strategies as st

import hpcgym
from env_cases import assert_vector_plays_alike, text_of
from every_setting import SETTINGS
from hpcgym.base.errors import PolicyError, ScenarioError
from hpcgym.core.constants import N_WEIGHTS
from hpcgym.core.policy import KEYS, Policy
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.env.scenario.spec import MachineSpec, Scenario, SchedulerSpec, TraceSpec, WholeEpisode

PAID = {f"bsld{form}": "mean_bsld" for form in ("", "_start", "_end")}
PAID |= {"wait": "mean_wait_time", "pp_bsld": "mean_pp_bsld"}
KINDS = [kind for kind in SETTINGS if kind not in ("shares", "predictions")]
"""But for orders that are no choice among several, and for what an environment would show early."""

BY_SUBMISSION = {
    "FCFS": Policy("FIRST", KEYS, np.zeros(N_WEIGHTS), keys=lambda jobs: jobs.submit_time),
    "LCFS": Policy("LAST", KEYS, np.zeros(N_WEIGHTS), keys=lambda jobs: -jobs.submit_time),
}
"""Orders as choices make them: a job that was killed stands where its submission put it."""

some_refused = (HealthCheck.filter_too_much, HealthCheck.too_slow)


def env_of(case, base, **keywords):
    """Return keywords of environments in which a scenario states all settings of a case."""
    given = {key: value for key, value in case.settings.items() if key != "policy"}
    if not isinstance(given.get("estimates", ""), str):
        given["estimates"] = "requested"
    given["threshold_s"] = given.pop("threshold", None)
    given["events"] = ";".join(map(str, given.get("events", ())))
    given["backfill_order"] = text_of(given.get("backfill_order"))
    jobs = case.workload
    scenario = Scenario(
        name="drawn",
        description="Drawn by a test.",
        trace=TraceSpec(name="tiny", missing_request="drop"),
        machine=MachineSpec(jobs.machine_processors, jobs.largest_request, jobs.machine),
        episode=WholeEpisode(),
        scheduler=SchedulerSpec(policy=base, **given),
    )
    return {"scenario": Episodes(scenario, workload=jobs), "baseline": None, **keywords}


@pytest.mark.parametrize("kind", KINDS)
@drawing(suppress_health_check=some_refused)
@given(
    data=st.data(),
    decide=st.sampled_from(("contested", "event", 7)),
    reward=st.sampled_from(tuple(PAID)),
    n_slots=st.sampled_from((1, 3, 128)),
)
def test_one_order_starts_every_job_as_simulate_does_and_pays_the_metric(
    kind, data, decide, reward, n_slots
):
    case = data.draw(SETTINGS[kind])
    policy = case.settings["policy"]
    base = data.draw(st.sampled_from(("SPF", "FCFS")))
    chosen = {"action": "policy", "policies": ["LCFS", policy], "n_slots": n_slots}
    try:
        keywords = env_of(case, base, decide=decide, reward=reward, **chosen)
        env = gymnasium.make("HPCBatch-v0", **keywords).unwrapped
        env.reset(seed=0)
    except (PolicyError, ScenarioError):  # such as jobs that outages would lose
        reject()
    total, is_over = 0.0, False
    while not is_over:
        _, paid, is_over, _, _ = env.step(1)
        total += paid
    told = env.metrics()
    assert total == pytest.approx(-told[PAID[reward]], rel=1e-9, nan_ok=True)
    if kind == "trials without promotion":
        policy = BY_SUBMISSION.get(policy, policy)
    made, settings = env.schedule(), vars(keywords["scenario"].settings)
    expected = hpcgym.simulate(case.workload, **settings | {"policy": policy})
    columns = ["start_time", "backfilled", "thresholded", "eligible_time", "cancelled"]
    if kind == "limits" and decide == "contested" and policy != "SAF":
        # Passes without a choice go in SAF order.
        columns.remove("backfilled")
        del told["n_backfilled"]
    for key in columns:
        np.testing.assert_array_equal(getattr(made, key), getattr(expected, key), key)
    if expected.placement is not None:
        assert all(map(np.array_equal, made.placement, expected.placement))
    metrics = expected.metrics()
    for key in metrics.keys() & told.keys():
        assert told[key] == pytest.approx(metrics[key], nan_ok=True), key


@pytest.mark.parametrize("kind", KINDS)
@drawing(max_examples=max(drawing.default.max_examples // 5, 1), suppress_health_check=some_refused)
@given(
    data=st.data(),
    action=st.sampled_from(("policy", "order", "job", "weights")),
    mode=st.sampled_from(AutoresetMode),
)
def test_a_vector_plays_as_single_environments_do(kind, data, action, mode):
    case = data.draw(SETTINGS[kind])
    try:
        keywords = env_of(case, "SPF", action=action, n_slots=8, reward="bsld")
        gymnasium.make("HPCBatch-v0", **keywords).unwrapped.reset(seed=0)
    except (PolicyError, ScenarioError):
        reject()
    assert_vector_plays_alike(mode, **keywords)
