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
@pytest.mark.parametrize(("mode", "action"), zip(MODES, ("policy", "order", "policy"), strict=True))
def test_vector_equals_the_scalar_environment_where_jobs_go_on_trial(action, mode):
    assert_vector_plays_alike(scenario=SCENARIO, action=action, backfill=mode)


PAID = [("bsld", "mean_bsld"), ("wait", "mean_wait_time"), ("pp_bsld", "mean_pp_bsld")]


@pytest.mark.parametrize(("mode", "paid"), zip(MODES, PAID, strict=True))
def test_rewards_add_up_to_the_metric_where_jobs_go_on_trial(mode, paid):
    reward, metric = paid
    keywords = {"scenario": SCENARIO, "action": "policy", "reward": reward, "baseline": None}
    env = gymnasium.make("HPCBatch-v0", **keywords, backfill=mode)
    env.reset(seed=5)
    total, is_over = 0.0, False
    while not is_over:
        _, given, is_over, _, info = env.step(0)
        total += given
    assert total == pytest.approx(-info[metric], rel=1e-9)
