"""An order of one file runs compiled, by its name, everywhere where orders run."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hpcgym.base.errors import PolicyError
from hpcgym.core import constants as s
from hpcgym.core import loaders
from hpcgym.core.policy import as_policy, policy_names, register_policy

pytestmark = pytest.mark.long  # compiles kernels in a process of its own

HERE = Path(__file__).parent


def run(code, folder=HERE):
    # Without bytecode, which is stale if a file is edited within its second.
    command = [sys.executable, "-B", "-c", code]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    return done.stdout.strip() or done.stderr


SCHEDULED = """
import numpy as np
import hpcgym
import toy_order

def wide_or_old(jobs):
    return -(jobs.q + 4.0 * jobs.wait / 3600.0)

jobs = hpcgym.load_workload("synthetic-256")
jobs = jobs.select(np.arange(len(jobs)) < 600)

def compare(ours, plain, **others):
    ours = hpcgym.simulate(jobs, threshold=50_000, **others, **ours)
    plain = hpcgym.simulate(jobs, threshold=50_000, **others, **plain)
    assert ours.start_time.tolist() == plain.start_time.tolist(), others
    assert ours.backfilled.tolist() == plain.backfilled.tolist(), others

for mode in ("none", "easy", "depth:k=3", "conservative", "cost-benefit:cap=0.5,long=600"):
    compare({"policy": "wide-or-old"}, {"policy": wide_or_old}, backfill=mode)
    compare({"policy": "WIDE"}, {"policy": "LQF"}, backfill=mode)
for order in ("SAF", "WFP3", "WIDE"):
    compare({"backfill_order": "WIDE-OR-OLD"}, {"backfill_order": wide_or_old}, policy=order)
    compare({"backfill_order": "WIDE"}, {"backfill_order": "LQF"}, policy=order)
both = hpcgym.simulate_many([jobs], ["WIDE", "LQF", "WIDE-OR-OLD"], threshold=50_000)["mean_bsld"]
plain = hpcgym.simulate(jobs, wide_or_old, threshold=50_000).metrics()["mean_bsld"]
assert both[0, 0] == both[0, 1] and abs(both[0, 2] - plain) < 1e-9 * plain
print("same")
"""


def test_order_in_one_file_schedules_as_the_same_order_in_python():
    assert run(SCHEDULED) == "same"


STEPPED = """
import pickle
import gymnasium
import numpy as np
import hpcgym
import toy_order

keywords = {"scenario": "synthetic-256-weeks", "action": "policy"}
seen = []
for wide in ("WIDE", "LQF"):
    env = gymnasium.make("HPCBatch-v0", policies=("SAF", wide), backfill_order=wide, **keywords)
    env.reset(seed=1)
    seen.append([env.step(step % 2)[1] for step in range(100)])
    many = gymnasium.make_vec(
        "HPCBatch-v0", num_envs=3, policies=("SAF", wide), decide=7200, **keywords
    )
    many.reset(seed=1)
    turns = (np.array([step, step + 1, 1]) % 2 for step in range(100))
    seen.append([many.step(turn)[1].tolist() for turn in turns])
assert seen[:2] == seen[2:]
env = gymnasium.make("HPCBatch-v0", policies=("SAF", "WIDE-OR-OLD"), **keywords).unwrapped
env.reset(seed=1)
slot = env.first_by(hpcgym.as_policy("WIDE-OR-OLD"))
print("same" if len(slot) else "nothing waits")
with open(r"FOLDER/env", "wb") as file:
    pickle.dump(env, file)
print(env.step(1)[1])
"""

UNPICKLED = """
import pickle
import toy_order
with open(r"FOLDER/env", "rb") as file:
    env = pickle.load(file)
print(env.step(1)[1])
"""


def test_order_in_one_file_is_an_action_of_environments_and_vectors(tmp_path):
    same, reward = run(STEPPED.replace("FOLDER", str(tmp_path))).splitlines()
    assert same == "same"
    assert run(UNPICKLED.replace("FOLDER", str(tmp_path))) == reward


def test_order_is_found_in_the_file_that_the_list_names():
    for order, names in loaders.ORDERS.items():
        for name in names:
            assert as_policy(name).order in (order, loaders.load(order))
            assert as_policy(name).name == name


def test_runs_of_an_order_whose_file_was_edited_are_not_taken_for_its_own(tmp_path):
    toy = (HERE / "toy_order.py").read_text(encoding="utf-8")
    digest = "import toy_order, hpcgym\nfrom hpcgym.evaluation.content import content_digest\n"
    digest += "print(content_digest(hpcgym.as_policy('WIDE')))"
    found = []
    for text in (toy, toy, toy.replace("-(wide", "+(wide")):
        (tmp_path / "toy_order.py").write_text(text, encoding="utf-8")
        found.append(run(digest, tmp_path))
    assert found[0] == found[1] != found[2]


@pytest.mark.parametrize("score", [lambda jobs, sim, which, n: None, np.sum, "score", run])
def test_score_that_cannot_be_compiled_by_its_name_is_refused(score):
    before = policy_names()
    with pytest.raises(PolicyError, match="plain function of jobs, sim, which and n, at the top"):
        register_policy("MINE", score=score)
    assert policy_names() == before


def scored(jobs, sim, which, n):
    """Do nothing."""


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"score": scored, "parameters": range(s.N_WEIGHTS + 1)}, "at most 9 finite numbers"),
        ({"score": scored, "parameters": [np.nan]}, "at most 9 finite numbers"),
        ({"score": scored, "keys": len}, "exactly one of keys, formula, chooser and score"),
        ({"keys": len, "is_static": True}, "is_static belong to a score"),
    ],
)
def test_contradictory_declaration_of_an_order_is_refused(declared, message):
    with pytest.raises(PolicyError, match=message):
        register_policy("MINE", **declared)
