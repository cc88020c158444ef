"""A kind of action of one file runs compiled, by its name, in environments and vectors."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long  # compiles kernels in a process of its own

HERE = Path(__file__).parent

BEGUN = """
import gymnasium
import numpy as np
import hpcgym
import toy_action

keywords = {"scenario": "synthetic-256-weeks", "n_slots": 512, "reward": "wait"}

def make(action="defer", **more):
    return gymnasium.make("HPCBatch-v0", action=action, **keywords, **more).unwrapped

def play(env, n_steps, choose, week=5):
    env.reset(seed=1, options={"episode": week})
    steps = []
    for _ in range(n_steps):
        shown, reward, over, *_ = env.step(choose(env))
        steps.append((reward, env.now, shown["jobs"].tobytes()))
        if over:
            break
    return steps, env.schedule().start_time.tolist()

def some_slot(env):
    return int(np.flatnonzero(env.action_masks())[-1])
"""


def run(code):
    done = subprocess.run(
        [sys.executable, "-c", BEGUN + code], cwd=HERE, capture_output=True, text=True
    )
    return done.stdout.strip() or done.stderr


def test_action_in_one_file_does_what_scores_of_all_visible_jobs_do():
    """Every waiting job has a slot, so scores by the base order say the same."""
    assert (
        run("""
def scores(env):
    first = env.first_by(hpcgym.as_policy("SAF"))
    slot = some_slot(env)
    score = np.zeros(512, dtype=np.float32)
    score[first] = np.linspace(-1, 0.9, len(first), dtype=np.float32)
    score[slot] = 1
    return score

assert make().action_space == gymnasium.spaces.Discrete(512)
ours, starts = play(make(), 400, some_slot)
plain, starts_by_scores = play(make("order"), 400, scores)
by_saf = hpcgym.simulate(make().episodes.workload(4), "SAF").start_time.tolist()
assert ours == plain and starts == starts_by_scores and starts != by_saf
print(len(ours) > 300)
""")
        == "True"
    )


def test_vector_takes_such_actions_as_single_environments_do():
    assert (
        run("""
for threads in (1, 2):
    vector = gymnasium.make_vec(
        "HPCBatch-v0", num_envs=4, action="defer", threads=threads, **keywords
    )
    vector.reset(options={"episode": [1, 2, 4, 5]})
    paid = np.zeros((80, 4))
    for step in range(80):
        masks = vector.action_masks()
        paid[step] = vector.step(511 - masks[:, ::-1].argmax(axis=1))[1]
    for place, week in enumerate((1, 2, 4, 5)):
        alone, _ = play(make(), 80, some_slot, week)
        assert [step[0] for step in alone] == paid[:, place].tolist(), (threads, week)
print("same")
""")
        == "same"
    )


def test_empty_slot_is_masked_and_counted():
    assert (
        run("""
env = make()
shown, _ = env.reset(seed=1)
assert env.action_masks().tolist() == (shown["action_mask"] == 1).tolist()
over = [env.step(511)[2] for _ in range(3)][-1]
while not over:
    *_, over, _, info = env.step(some_slot(env))
    assert info["action_mask"].tolist() == env.action_masks().tolist()
print(info["invalid_actions"])
""")
        == "3"
    )


def test_what_the_action_cannot_do_is_refused_with_what_can():
    said = run("""
import hpcgym.base.errors
for make_it in (
    lambda: make(backfill="none"),
    lambda: make(decide=3600),
    lambda: make(policies=["SAF"]),
    lambda: make("defr"),
    lambda: make().reset()[0] and make().step(0),
    lambda: (env := make(), env.reset(), env.step(512)),
    lambda: hpcgym.register_action(type("Mine", (toy_action.Defer,), {"NAME": "job"})),
    lambda: hpcgym.register_action(type("Mine", (toy_action.Defer,), {"NAME": "no name"})),
    lambda: hpcgym.register_action(print),
):
    try:
        make_it()
    except hpcgym.HpcgymError as error:
        print(error)
hpcgym.register_action(type("Bare", (toy_action.Defer,), {"NAME": "bare", "__module__": "sys"}))
try:
    make("bare")
except hpcgym.HpcgymError as error:
    print(error)
""").splitlines()
    expected = [
        "action 'defer' needs a mode that backfills, not 'none'",
        "decide=3600 s is for actions 'index', 'weights', 'policy', 'controls', 'trials' and ",
        "'policies' belongs to action 'policy', not to 'defer'",
        "unknown action 'defr'; did you mean 'defer'? Allowed: index, weights, policy, order, job, "
        "controls, trials, price, defer",
        "no episode is under way; call reset()",
        "action 'defer' must lie in 0 to 511, got 512",
        "action 'job' is taken",
        "action name 'no name': a letter",
        "register_action takes a subclass of hpcgym.core.action.Action, got <built-in",
        "action 'bare': sys has no kernel called act",
    ]
    assert len(said) == len(expected), said
    for line, begins in zip(said, expected, strict=True):
        assert line.startswith(begins), line


def test_environment_with_such_an_action_survives_a_pickle():
    """The copy is made in a process that has imported nothing of the action."""
    assert (
        run("""
import pickle, subprocess, sys
env = make()
env.reset(seed=1, options={"episode": 5})
env.step(some_slot(env))
copy = "import pickle, sys; env = pickle.load(sys.stdin.buffer); print(env.step(2)[1:3])"
done = subprocess.run(
    [sys.executable, "-c", copy], input=pickle.dumps(env), capture_output=True
)
print(done.stdout.decode().strip() == str(env.step(2)[1:3]) or done.stderr.decode())
""")
        == "True"
    )
