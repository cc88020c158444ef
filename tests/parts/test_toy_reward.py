"""A reward of one file is paid by name, and sums to what it says."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long  # compiles kernels in a process of its own

HERE = Path(__file__).parent

SHARED = """
import gymnasium
import numpy as np
import hpcgym

def made(**keywords):
    return gymnasium.make("HPCBatch-v0", scenario="tiny", action="policy", **keywords).unwrapped

def said(call, *given, **named):
    try:
        call(*given, **named)
    except hpcgym.HpcgymError as error:
        print(error)
"""


def run(code):
    command = [sys.executable, "-c", SHARED + code]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True)
    return done.stdout.strip() or done.stderr


PAID = """
import toy_reward

def cost(schedule):
    jobs = schedule.workload
    late = np.maximum(schedule.start_time - jobs.submit_time - 3600, 0)
    return float((late * jobs.processors / 256 / 3600).mean())

names = {"scenario": "synthetic-256-weeks", "action": "policy", "policies": ["SAF", "FCFS"]}
for baseline in (None, "FCFS"):
    env = gymnasium.make("HPCBatch-v0", reward="late-area", baseline=baseline, **names).unwrapped
    envs = gymnasium.make_vec(
        "HPCBatch-v0", num_envs=2, reward="late-area", baseline=baseline, **names
    )
    env.reset(options={"episode": 1})
    envs.reset(options={"episode": 1})
    env.action_space.seed(1)
    total, over = 0.0, False
    while not over:
        action, before = env.action_space.sample(), (env.now, env.schedule().start_time)
        _, reward, over, _, info = env.step(action)
        assert envs.step(np.array([action, action]))[1].tolist() == [reward, reward]
        total += reward
        if not over:  # paid at starts only
            begun = (env.schedule().start_time >= 0) & (before[1] < 0)
            late = env.schedule().start_time - env.workload.submit_time > 3600
            assert (info.get("agent_term", reward) < 0) == bool((begun & late).any())
    fcfs = hpcgym.simulate(env.workload, "FCFS", threshold=env.settings.threshold)
    of_baseline = 0.0 if baseline is None else cost(fcfs)
    assert cost(env.schedule()) > 1e-3
    assert abs(total - (of_baseline - cost(env.schedule()))) <= 1e-9 * cost(fcfs)
print("the sum")
"""


def test_reward_of_one_file_sums_to_minus_its_mean_cost():
    assert run(PAID) == "the sum"


BY_FILE = """
import json
from hpcgym.env.reward import as_reward

spec = gymnasium.spec("HPCBatch-v0")
for text in ("toy_reward.py", "toy_reward.py:LATE", "toy_reward:LATE", "toy_reward.py:late_area"):
    spec.kwargs = {"scenario": "tiny", "reward": text}
    env = gymnasium.make(gymnasium.envs.registration.EnvSpec.from_json(spec.to_json()))
    env.reset(seed=0)
    assert as_reward(text).name == ("" if text.endswith("late_area") else "late-area"), text
assert as_reward("late-area").pays.startswith("for each job")
print("by its file")
"""


def test_reward_is_named_by_its_file_in_specs():
    assert run(BY_FILE) == "by its file"


REFUSED = """
import toy_reward
from hpcgym.core.constants import PAY_LOG_RATIO, PAY_RELATIVE

rate = toy_reward.late_area
said(made, reward="late-are")
said(made, reward="toy_reward.py:late")
said(hpcgym.register_reward, "wait", rate)
said(hpcgym.register_reward, "no name", rate)
said(hpcgym.register_reward, "x", 5)
said(hpcgym.register_reward, "x", rate, form=PAY_LOG_RATIO)
hpcgym.register_reward("compared", rate, form=PAY_RELATIVE)
said(made, reward="compared")
print(made(reward="compared", baseline="SAF")._config.shown_terms)
"""


def test_rewards_are_refused_with_what_is_allowed():
    lines = run(REFUSED).splitlines()
    assert lines[0].startswith("unknown reward 'late-are'; did you mean 'late-area'? Allowed: bsld")
    assert lines[1].startswith("toy_reward.py: unknown name 'late'; did you mean 'LATE'?")
    assert lines[2].startswith("reward 'wait' is taken; names taken: bsld, bsld_start")
    assert lines[3].startswith("reward name 'no name': a letter")
    assert lines[4] == "reward 'x': the rate must be a function of a job, got 5"
    assert lines[5].endswith("PAY_AT_START, PAY_AT_END or PAY_RELATIVE, got 3")
    assert lines[6] == "reward 'compared' compares with a baseline; name one, say 'SAF'"
    assert lines[7:] == ["('compared_term',)"]
