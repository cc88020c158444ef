"""Digests of what agents hold and of what their files say."""

import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hpcgym.agent import NamedAgent, RuleAgent
from hpcgym.agent.npz import write_npz
from hpcgym.agent.shelf import load_agent
from hpcgym.evaluation import evaluate
from hpcgym.evaluation.content import content_digest

ROOT = Path(__file__).parents[2]

RULE = """\
from helper import sign

def rule(jobs):
    return sign() * jobs.submit_time
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A file of somebody's own with what it imports, which other tests never see."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = set(sys.modules)
    (tmp_path / "helper.py").write_text("def sign():\n    return 1.0\n")
    (tmp_path / "mine_of_content.py").write_text(RULE)
    yield tmp_path / "mine_of_content.py"
    for name in set(sys.modules) - before:
        if name in ("helper", "mine_of_content"):
            del sys.modules[name]


def evaluated(file: Path, resume: Path | None = None) -> pd.DataFrame:
    return evaluate([f"{file}:rule"], "tiny", resume=resume, progress=False).frame


@pytest.mark.long
@pytest.mark.parametrize("edited", ["mine_of_content.py", "helper.py"])
def test_agent_whose_file_was_edited_is_run_again(own, tmp_path, edited):
    path = tmp_path / "kept.sqlite"
    before = evaluated(own, path)
    file = own.with_name(edited)
    file.write_text(file.read_text().replace("return ", "return -1.0 * "))
    after = evaluated(own, path)
    assert before["mean_bsld"][0] != after["mean_bsld"][0]
    pd.testing.assert_frame_equal(after, evaluated(own))


def in_another_process(own: Path) -> str:
    """Return the digest that a process of its own makes of an agent of a file."""
    code = (
        "import sys; from hpcgym.agent.shelf import load_agent; "
        "from hpcgym.evaluation.content import content_digest; "
        "print(content_digest(load_agent(sys.argv[1])))"
    )
    command = [sys.executable, "-c", code, f"{own}:rule"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.mark.long
def test_every_process_makes_the_same_digest_until_a_file_changes(own):
    before = in_another_process(own)
    assert in_another_process(own) == before
    helper = own.with_name("helper.py")
    helper.write_text(helper.read_text() + "# mended\n")
    assert in_another_process(own) != before


def test_text_that_changed_after_it_was_loaded_is_equal_to_no_other(own):
    agent = load_agent(f"{own}:rule")
    assert content_digest(agent) == content_digest(agent)
    own.write_text(RULE + "# mended\n")
    assert content_digest(agent) != content_digest(agent)


def test_every_agent_of_the_shelf_is_known_again_and_apart_from_the_others():
    names = ("SAF", "SPF", "EASY-SJBF", "PPO-ORDER", "URGENT-BENEFIT", "SMITH-NET")
    digests = [content_digest(load_agent(name)) for name in names]
    assert digests == [content_digest(load_agent(name)) for name in names]
    assert len(set(digests)) == len(names)


def test_a_card_with_other_weights_is_another_agent(tmp_path):
    card = tmp_path / "ppo-order.toml"
    shutil.copy(ROOT / "agents" / "ppo-order.toml", card)
    shutil.copy(ROOT / "agents" / "ppo-order.npz", card.with_suffix(".npz"))
    before = content_digest(load_agent(str(card)))
    assert content_digest(load_agent(str(card))) == before
    with np.load(card.with_suffix(".npz")) as file:
        arrays = dict(file)
    largest = max((name for name in arrays if arrays[name].ndim == 2), key=lambda n: arrays[n].size)
    arrays[largest][0, 0] += 0.125
    write_npz(card.with_suffix(".npz"), arrays, force=True)
    assert content_digest(load_agent(str(card))) != before


class Weighs:
    """An agent with an array."""

    def __init__(self, weights):
        self.weights = weights

    def predict(self, observation, state=None, episode_start=None, deterministic=True):
        return self.weights, state


def test_one_number_of_an_array_makes_another_agent():
    keywords = {"action": "weights"}
    weights = np.arange(6.0)
    agent = NamedAgent("trained", Weighs(weights), keywords)
    assert content_digest(agent) == content_digest(NamedAgent("trained", Weighs(weights), keywords))
    anew = weights + np.eye(6)[3] * 1e-9
    assert content_digest(agent) != content_digest(NamedAgent("trained", Weighs(anew), keywords))


def test_functions_differ_by_code_defaults_and_what_they_enclose():
    def ordered(power, by="submit_time"):
        return lambda jobs: getattr(jobs, by) ** power

    agents = [RuleAgent(ordered(1)), RuleAgent(ordered(2)), RuleAgent(ordered(1, "processors"))]
    assert len({content_digest(agent) for agent in agents}) == 3
    assert content_digest(agents[0].policy.formula) == content_digest(ordered(1))


def test_what_cannot_be_read_is_equal_to_nothing():
    agent = NamedAgent("locked", Weighs(threading.Lock()), {"action": "weights"})
    assert content_digest(agent) != content_digest(agent)


def test_an_object_that_holds_itself_has_a_digest():
    agents = [Weighs([1.0]), Weighs([1.0]), Weighs([2.0])]
    for agent in agents:
        agent.weights.append(agent)
    same, again, other = map(content_digest, agents)
    assert same == again != other
