"""The environment where jobs go on trial: vectors, rewards, and what observations keep."""

import gymnasium
import pytest

import hpcgym  # noqa: F401
from env_cases import assert_vector_plays_alike

MODES = [
    "easy:cap=0.95,by=request,widest=0.2,pressed=0.25+trial:young=1800,victim=0.25,overhead=30",
    "cost-benefit:cap=0.97+trial:young=1800",
    "easy+trial:restart=121",
]
SCENARIO = "synthetic-256-weeks"


@pytest.mark.long
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("action", ["policy", "order"])
def test_vector_equals_the_scalar_environment_where_jobs_go_on_trial(action, mode):
    assert_vector_plays_alike(scenario=SCENARIO, action=action, backfill=mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("reward", "metric"), [("bsld", "mean_bsld"), ("wait", "mean_wait_time"), ("pp_bsld", None)]
)
def test_rewards_add_up_to_the_metric_where_jobs_go_on_trial(mode, reward, metric):
    keywords = {"scenario": SCENARIO, "action": "policy", "reward": reward, "baseline": None}
    env = gymnasium.make("HPCBatch-v0", **keywords, backfill=mode)
    env.reset(seed=5)
    total, is_over = 0.0, False
    while not is_over:
        _, paid, is_over, _, info = env.step(0)
        total += paid
    assert total == pytest.approx(-info[metric or "mean_pp_bsld"], rel=1e-9)
