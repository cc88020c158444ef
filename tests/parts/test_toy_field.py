"""Fields of one file are shown by name, within their bounds, wherever observations are made."""

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
import toy_field

OWN = ("longest_wait", toy_field.IDLE)

def scalar(**keywords):
    return gymnasium.make("HPCBatch-v0", **keywords).unwrapped

def vector(**keywords):
    return gymnasium.make_vec("HPCBatch-v0", num_envs=3, **keywords)

def rows(shown, env):
    return shown["jobs"].reshape(env.n_slots, -1)

def own_of(env):
    '''Compute the fields in plain Python, from the schedule so far.'''
    made, jobs, now = env.schedule(), env.workload, env.now
    starts, ends = made.start_time, made.start_time + made.run_time
    runs = (starts >= 0) & (ends > now)
    free = jobs.machine_processors - jobs.processors[runs].sum()
    waits = np.flatnonzero((starts < 0) & (jobs.submit_time <= now))
    longest = max((now - jobs.submit_time[waits]).tolist(), default=0)
    of_job = np.zeros(env.n_slots)
    for slot, job in enumerate(env._slot.tolist()):
        if job >= 0:
            assert job in waits
            of_job[slot] = max((free - jobs.processors[job]) / jobs.machine_processors, -1)
    return np.float32(of_job), np.float32(longest / (longest + 3600))
"""


def run(code):
    command = [sys.executable, "-c", SHARED + code]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True)
    return done.stdout.strip() or done.stderr


COMPARED = """
seen = set()
for keywords in (
    {"scenario": "synthetic-256-weeks", "action": "weights"},
    {"scenario": "synthetic-busy-weeks", "action": "controls"},
    {"scenario": "hetero-64-weeks", "action": "policy"},
)[:N_SCENARIOS]:
    plain, env = scalar(n_slots=24, **keywords), scalar(n_slots=24, fields=OWN, **keywords)
    envs, flat = vector(n_slots=24, fields=OWN, **keywords), vector(
        n_slots=24, fields=OWN, observation="flat", **keywords
    )
    places = env._config.places
    plain.action_space.seed(1)
    before, shown, many, one = (
        each.reset(seed=3, options={"episode": 2})[0] for each in (plain, env, envs, flat)
    )
    for _ in range(N_STEPS):
        # What is shown without them stays as it is, to the bit.
        assert rows(shown, env)[:, :-1].tobytes() == rows(before, plain).tobytes()
        assert shown["cluster"][:-1].tobytes() == before["cluster"].tobytes()
        for key in before.keys() - {"jobs", "cluster"}:
            assert shown[key].tobytes() == before[key].tobytes()
        of_job, of_cluster = own_of(env)
        assert rows(shown, env)[:, -1].tolist() == of_job.tolist()
        assert shown["cluster"][-1] == of_cluster
        assert env.observation_space.contains(shown) and flat.observation_space.contains(one)
        for number in range(3):
            assert all(many[key][number].tobytes() == shown[key].tobytes() for key in shown)
            joined = np.concatenate([shown[key].ravel() for key in places])
            assert one[number].tobytes() == joined.tobytes()
        seen |= {*of_job.tolist(), float(of_cluster)}
        action = plain.action_space.sample()
        before, shown = (each.step(action)[0] for each in (plain, env))
        many, one = (each.step(np.array([action] * 3))[0] for each in (envs, flat))
print(len(seen), min(seen) < 0)
"""


@pytest.mark.parametrize(
    ("is_plain", "n_scenarios", "n_steps", "at_least"), [(0, 3, 60, 200), (1, 1, 10, 10)]
)
def test_fields_of_one_file_equal_the_same_fields_in_python(
    is_plain, n_scenarios, n_steps, at_least, monkeypatch
):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", str(is_plain))
    given = f"N_SCENARIOS, N_STEPS = {n_scenarios}, {n_steps}\n"
    n_seen, is_below_0 = run(given + COMPARED).split()
    assert int(n_seen) > at_least and is_below_0 == "True"


BOUNDS = """
hpcgym.register_field("large", lambda jobs, sim: 7, meaning="7", formula="x", low=-2, high=3)
hpcgym.register_field("small", lambda jobs, sim, job: -7, meaning="-7", formula="x", low=-2, high=3)
hpcgym.register_field("none", lambda jobs, sim: np.nan, meaning="NaN", formula="x", low=-2, high=3)
env = scalar(scenario="tiny", fields=["large", "small", "none"], n_slots=2)
shown, _ = env.reset(seed=0)
print(shown["cluster"][-2:].tolist(), rows(shown, env)[:, -1].tolist())
print(env.observation_space["jobs"].low[0, 0], env.observation_space["cluster"].high[0])
flat = scalar(scenario="tiny", fields=["large", "small"], n_slots=2, observation="flat")
print(flat.observation_space.low[[0, 18, 57]], flat.observation_space.high[[0, 18, 57]])
"""


def test_what_is_beyond_the_bounds_is_shown_as_the_nearest():
    assert run(BOUNDS).splitlines() == [
        "[3.0, -2.0] [-2.0, -2.0]",
        "-2.0 3.0",
        "[ 0. -2. -2.] [1. 3. 3.]",
    ]


ELSEWHERE = """
import pickle
from hpcgym.agent import NamedAgent
from hpcgym.agent.sb3_model import keywords_of

env = pickle.loads(pickle.dumps(scalar(scenario="tiny", fields=OWN)))
shown, _ = env.reset(seed=0)
again = pickle.loads(pickle.dumps(env))
for each in (env, again):
    shown = each.step(each.action_space.sample() * 0)[0]
    print(len(shown["cluster"]))

class Watcher:
    def predict(self, observation, state=None, episode_start=None, deterministic=True):
        assert observation["cluster"].shape[-1] == 20
        return np.zeros((*observation["cluster"].shape[:-1], 6), np.float32), state

watcher = NamedAgent("WATCHER", Watcher(), {"action": "weights", "fields": ["longest_wait"]})
found = hpcgym.evaluate([watcher, "FCFS"], "tiny", progress=False).summary()
print("WATCHER" in found["agent"].tolist())

for fields in (OWN, [toy_field.IDLE]):
    try:
        keywords_of(scalar(scenario="tiny", fields=fields), "model.zip")
    except hpcgym.HpcgymError as error:
        print("text or numbers" in str(error))
"""


def test_agents_carry_fields_of_their_own_and_models_are_told_to():
    assert run(ELSEWHERE).splitlines() == ["20", "20", "True", "True", "True"]


REFUSED = """
def said(call, *given, **named):
    try:
        call(*given, **named)
    except hpcgym.HpcgymError as error:
        print(error)

show, words = toy_field.longest_wait, {"meaning": "x", "formula": "x"}
said(scalar, scenario="tiny", fields="longest_wait")
said(scalar, scenario="tiny", fields=["longest_wai"])
said(vector, scenario="tiny", fields=["longest_wait", toy_field.WAIT])
said(hpcgym.register_field, "fits_now", show, **words)
said(hpcgym.register_field, "2", show, **words)
said(hpcgym.register_field, "x", lambda: 0, **words)
said(hpcgym.register_field, "x", show, low=1, **words)
said(hpcgym.register_field, "x", show, low=0, high=float("inf"), **words)
hpcgym.register_field("longest_wait", show, **words)  # a name of one's own may come again
"""


def test_fields_are_refused_with_what_is_allowed():
    lines = run(REFUSED).splitlines()
    assert lines[:3] == [
        "fields must be a list of names, got 'longest_wait'",
        "unknown field 'longest_wai'; did you mean 'longest_wait'? Allowed: user_share, "
        "user_usage, user_fair_share, idle_after_start, longest_wait",
        "fields names 'longest_wait' twice",
    ]
    assert lines[3].startswith("field 'fits_now' is taken; names taken: user_share, ")
    assert lines[4] == "field name '2': a letter, then letters, digits, '_' or '-'"
    assert lines[5].startswith("field 'x': show must be a function of (jobs, sim, job) or (jobs,")
    assert lines[6] == "field 'x': low must be below high, both within +-1e30; got 1 and 1"
    assert lines[7].endswith("got 0 and inf")
    assert len(lines) == 8
