"""Weights of an index are tuned on weeks, and what comes of it stands on the shelf."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hpcgym import simulate
from hpcgym.agent.fitness import Fitness
from hpcgym.agent.indexing import SMITH, IndexTrainer
from hpcgym.agent.shelf import load_agent, load_card
from hpcgym.agent.shelving import write_tuned
from hpcgym.agent.trained import Training
from hpcgym.agent.training import load_trainer
from hpcgym.agent.tuning import WeightsTrainer
from hpcgym.core.index import index_policy
from hpcgym.core.policy import as_policy
from hpcgym.core.state import N_LAST
from hpcgym.errors import CardError, HpcgymError, OutputError
from hpcgym.scenario.build import Episodes

SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.fixture(scope="module")
def weeks():
    """Two weeks of the bundled log."""
    return Episodes("synthetic-256-weeks").select("1-2")


@pytest.fixture
def training():
    """How an agent might have been trained."""
    return Training({"synthetic-256-weeks": (1, 2)}, 7, 1.5, "abc1234", "python train.py")


@pytest.fixture(scope="module")
def smith(weeks):
    """Smith's rule with a network that was fitted on these weeks."""
    return load_trainer("network").train([weeks], 0)


def test_fitness_is_the_mean_log_ratio_to_saf(weeks):
    fitness = Fitness([weeks], 0, np.random.default_rng(0))
    found = fitness([as_policy("SAF"), as_policy("FCFS")])
    logs = [
        np.log(
            simulate(
                weeks.workload(week), policy="FCFS", threshold=weeks.settings.threshold
            ).metrics()["mean_bsld"]
        )
        - np.log(
            simulate(
                weeks.workload(week), policy="SAF", threshold=weeks.settings.threshold
            ).metrics()["mean_bsld"]
        )
        for week in range(2)
    ]
    assert found[0] == 0.0
    assert found[1] == pytest.approx(np.mean(logs), rel=1e-9)


def test_copies_are_shaken_by_the_generator_alone(weeks):
    policies = [as_policy("FCFS")]
    one, same, other = (
        Fitness([weeks], 1, np.random.default_rng(seed))(policies)[0] for seed in (1, 1, 2)
    )
    assert one == same
    assert one != other


def test_every_log_weighs_alike(weeks):
    first, second = weeks.select("1"), weeks.select("2")
    generator = np.random.default_rng(0)
    policies = [as_policy("FCFS")]
    apart = [Fitness([one], 0, generator)(policies)[0] for one in (first, second)]
    assert Fitness([first, second], 0, generator)(policies)[0] == pytest.approx(np.mean(apart))


def test_without_a_search_smiths_rule_stands(smith):
    assert smith.name == "SMITH-NET"
    assert smith.policy.parameters.tolist() == [*SMITH[:2], 0.0, 0.0, *SMITH[2:]]
    assert smith.policy.network is not None


@pytest.mark.parametrize("strategy", ["cma", "xnes"])
def test_search_moves_weights_and_keeps_the_first(weeks, strategy):
    trainer = IndexTrainer("MINE", network=False, strategy=strategy, evaluations=20, copies=0)
    agent, again = trainer.train([weeks], 1), trainer.train([weeks], 1)
    assert agent.policy.parameters[0] == 1.0
    assert agent.policy.parameters[1:4].tolist() != list(SMITH[1:])
    assert np.array_equal(agent.policy.parameters, again.policy.parameters)
    assert agent.policy.network is None


def test_searched_score_adds_to_smiths_rule_by_what_the_last_layer_has_found(weeks, smith):
    trainer = IndexTrainer("MINE", network=True, searched="score", evaluations=16, copies=0)
    found = trainer.train([weeks], 0).policy
    assert found.parameters.tolist() == smith.policy.parameters.tolist()
    moved = np.flatnonzero(found.network != smith.policy.network)
    first = len(found.network) - 2 * (N_LAST + 1)
    assert moved.tolist() == list(range(first, first + N_LAST))
    generator = np.random.default_rng(0)
    together = Fitness([weeks], 0, generator)([found, smith.policy, as_policy("SAF")])
    apart = [Fitness([weeks], 0, generator)([one])[0] for one in (found, smith.policy)]
    assert together.tolist() == [*apart, 0.0]
    assert apart[0] != apart[1]


@pytest.mark.parametrize(
    ("keywords", "said"),
    [
        ({"network": False, "strategy": "xness"}, "xnes"),
        ({"network": False, "searched": "scores"}, "score"),
        ({"network": False, "searched": "score"}, "network=True"),
    ],
)
def test_search_that_cannot_be_is_refused(keywords, said):
    with pytest.raises(HpcgymError, match=said):
        IndexTrainer("MINE", **keywords)


def test_index_is_written_as_a_card_and_read_again(weeks, smith, training, tmp_path):
    card = write_tuned(smith, "MINE", tmp_path, training)
    read = load_agent(str(card))
    assert read.name == "MINE"
    assert read.training == training
    workload = weeks.workload(0)
    assert np.array_equal(
        simulate(workload, read.policy).start_time, simulate(workload, smith.policy).start_time
    )
    with pytest.raises(OutputError):
        write_tuned(smith, "MINE", tmp_path, training)


def test_index_without_a_network_needs_no_file(training, tmp_path):
    policy = index_policy([1, 1.5, 0.25, -0.125, 0, 0])
    agent = load_agent("SAF")
    card = write_tuned(type(agent)(policy), "MINE", tmp_path, training)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.toml"]
    assert load_card(str(card)).agent().policy.parameters.tolist() == policy.parameters.tolist()


def test_weights_of_features_are_written_to_the_last_digit(weeks, training, tmp_path):
    agent = WeightsTrainer(evaluations=30).train([weeks], 0)
    card = write_tuned(agent, "MINE", tmp_path, training)
    read, workload = load_agent(str(card)), weeks.workload(0)
    assert np.allclose(
        read.policy.parameters,
        agent.policy.parameters / abs(agent.policy.parameters).sum(),
        rtol=1e-12,
    )
    assert np.array_equal(
        simulate(workload, read.policy).start_time, simulate(workload, agent.policy).start_time
    )


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("weights = [", "weight = [", "weight"),
        ('action = "policy"', 'action = "order"', "policy"),
        ('network = "mine.npz"', 'network = "other.npz"', "mine.npz"),
        ("weights = [1.0, ", "weights = [", "an index needs 6"),
    ],
)
def test_malformed_cards_of_an_index_are_refused(smith, training, tmp_path, old, new, said):
    card = write_tuned(smith, "MINE", tmp_path, training)
    text = card.read_text()
    assert old in text
    card.write_text(text.replace(old, new))
    with pytest.raises(CardError, match=said):
        load_card(str(card))


def test_script_leaves_the_last_block_out(tmp_path):
    """The agent that the script writes may be judged on the last block, and nowhere else."""
    script = [sys.executable, str(SCRIPTS / "tune_weights.py"), "--trainer", "tuned-history"]
    options = ["--scenario", "synthetic-256-weeks", "--evaluations", "8", "--name", "BRIEF"]
    subprocess.run(
        [*script, *options, "--output", str(tmp_path)], check=True, capture_output=True, text=True
    )
    agent = load_agent(str(tmp_path / "brief.toml"))
    trained = agent.training.weeks["synthetic-256-weeks"]
    every = Episodes("synthetic-256-weeks").numbers
    n_block = len(every) // 5
    assert max(trained) < every[-n_block] - 1
    refused = subprocess.run(
        [*script, *options, "--output", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert refused.returncode == 1
    assert "brief.toml" in refused.stderr
