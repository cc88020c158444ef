"""Scenarios and the command line on machines of nodes."""

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from hpcgym import Machine, Workload
from hpcgym.base.errors import ScenarioError
from hpcgym.cli import app
from hpcgym.env.scenario.augment import Augmentation, AugmentedEpisodes
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.env.scenario.from_log import episodes_of_log
from hpcgym.env.scenario.load import load_scenario, parse_scenario
from hpcgym.env.scenario.spec import MachineSpec
from hpcgym.machine import NodeType, Partition
from update_scenarios import describe_scheduler

WEEK_S = 604_800

NODES = """
[[machine.nodes]]
count = 6
cpus = 8
group = "s1"

[[machine.nodes]]
count = 2
cpus = 8
gpus = 2
group = "s2"

[[machine.partitions]]
name = "batch"
nodes = "0-5"
max_time_s = 90000

[[machine.partitions]]
name = "gpu"
nodes = "6-7"
"""

MACHINE = Machine(
    (NodeType(6, 8, group="s1"), NodeType(2, 8, 2, group="s2")),
    (Partition("batch", "0-5", max_time_s=90_000), Partition("gpu", "6-7")),
)

GOOD = """
description = "Weeks of a table of jobs."

[trace]
file = "jobs.csv"
missing_request = "drop"

[machine]
largest_request_s = 3600

[episode]
kind = "week"

[scheduler]
placement = "local"
"""


def edited(old: str, new: str, *, text: str = GOOD) -> str:
    """Return the scenario with one thing changed."""
    assert old in text
    return text.replace(old, new)


INLINE = edited("largest_request_s = 3600\n", f"largest_request_s = 3600\n{NODES}")
IN_FILE = edited("largest_request_s = 3600\n", 'largest_request_s = 3600\nfile = "m/mine.toml"\n')
PATH_ONLY = edited(
    '\n[trace]\nfile = "jobs.csv"',
    'machine = "m/mine.toml"\n\n[trace]\nfile = "jobs.csv"\nmax_request_s = 3600',
    text=edited("[machine]\nlargest_request_s = 3600\n", ""),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a machine, and five weeks of jobs whose memory tells them apart."""
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "mine.toml").write_text(NODES.replace("machine.", ""))
    generator = np.random.default_rng(5)
    lines = ["job_id,submit_time,run_time,requested_time,chunks,cpus,gpus,memory_mb,partition"]
    for i, submit in enumerate(np.sort(generator.integers(0, 5 * WEEK_S, 200)).tolist()):
        gpus, partition = (1, "gpu") if i % 5 == 0 else (0, "batch")
        lines.append(f"{i},{submit},{50 + i},3600,{1 + i % 3},{1 + i % 4},{gpus},{i},{partition}")
    (tmp_path / "jobs.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def save(folder: Path, text: str) -> Path:
    """Write a scenario beside its log."""
    path = folder / "mine.toml"
    path.write_text(text)
    return path


def refused(text: str) -> str:
    """Return the message of the error that a scenario's text gives."""
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(text, name="mine")
    return str(caught.value)


# --- What a scenario says -------------------------------------------------------------------------


@pytest.mark.parametrize("text", [INLINE, IN_FILE, PATH_ONLY], ids=["inline", "file", "path"])
def test_a_scenario_holds_nodes_or_names_their_file(text: str, folder: Path):
    scenario = load_scenario(save(folder, text))
    assert scenario.machine == MachineSpec(64, 3600, MACHINE)
    assert scenario.scheduler.settings.placement == "local"
    assert describe_scheduler(scenario).endswith("local placement")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[machine]\n", "[machine]\nprocessors = 64\n", "[machine] needs one of processors, file"),
        ("[machine]\n", '[machine]\nfile = "x.toml"\n', "file and nodes, got file, nodes, partit"),
        (
            "cpus = 8\n",
            "cpu = 8\n",
            "[machine] [[nodes]] 1: unknown key 'cpu'; did you mean 'cpus'",
        ),
        ('nodes = "6-7"', 'nodes = "6"', "[machine] [[partitions]] no partition has the nodes 7"),
        ("largest_request_s = 3600\n", "", "[machine] largest_request_s is missing"),
        ("largest_request_s = 3600\n", "largest_s = 1\n", "[machine] unknown key 'largest_s'"),
        ('"local"', '"locale"', "[scheduler] unknown placement 'locale'; did you mean 'local'?"),
        ('placement = "local"', "placement = 1", "placement must be a text, got int 1"),
        (NODES, "processors = 64\n", "[scheduler] placement needs nodes: [[machine.nodes]]"),
        (NODES, "file = 3\n", "[machine] file must be a text, got 3"),
        (NODES, 'file = "no/such.toml"\n', "[machine] no/such.toml: no such file"),
        (NODES, "", "[machine] processors is missing"),
        (
            'missing_request = "drop"',
            'missing_request = "drop"\nrequested_memory = 1',
            "true or fal",
        ),
    ],
)
def test_a_wrong_machine_is_an_error_that_says_where(old: str, new: str, message: str):
    assert message in refused(edited(old, new, text=INLINE))


def test_memory_of_a_log_needs_nodes_to_be_asked_for():
    text = edited(NODES, "processors = 64\n", text=INLINE.replace('placement = "local"', ""))
    text = edited("[machine]", "requested_memory = true\n[machine]", text=text)
    assert "[trace] requested_memory needs nodes: [[machine.nodes]]" in refused(text)


def test_processors_and_nodes_of_a_machine_made_in_python_agree():
    with pytest.raises(ScenarioError, match="processors is 63, yet the nodes have 64 cpus"):
        MachineSpec(63, 100, MACHINE)


# --- Its episodes ---------------------------------------------------------------------------------


def is_whole(part: Workload) -> bool:
    """Tell whether a part is on the machine, and its jobs ask for what the table says."""
    asked = part.columns()
    i = asked["memory_mb"]
    return (
        part.machine == MACHINE
        and (part.run_time == 50 + i).all()
        and (asked["chunks"] == 1 + i % 3).all()
        and (part.processors == (1 + i % 3) * (1 + i % 4)).all()
        and (asked["gpus"] == (i % 5 == 0)).all()
        and (asked["partition"] == (i % 5 == 0)).all()
    )


@pytest.mark.parametrize(
    "episode",
    [
        *('kind = "week"', 'kind = "week"\nwarm_history = false', 'kind = "window"\nn_jobs = 30'),
        'kind = "random_window"\nn_jobs = 30\nepisodes = 2\nseed = 1',
        'kind = "resampled"\nepisodes = 2\nseed = 1',
        *('kind = "resampled"\nepisodes = 2\nseed = 1\npart = "week"', 'kind = "whole"'),
    ],
)
def test_every_kind_of_episode_is_on_the_machine(episode: str, folder: Path):
    episodes = Episodes(save(folder, edited('kind = "week"', episode, text=INLINE)))
    again = pickle.loads(pickle.dumps(episodes))
    for index in range(len(episodes)):
        assert is_whole(episodes.workload(index))
        assert again.workload(index).to_frame().equals(episodes.workload(index).to_frame())
    assert is_whole(episodes.draw(np.random.default_rng(1))[1])


def test_weeks_set_apart_and_changed_for_training_are_on_the_machine(folder: Path):
    episodes = Episodes(save(folder, INLINE)).set_apart([1, 2, 3])
    assert is_whole(episodes.select("2-3").workload(0))
    change = Augmentation(60, (0.5, 2.0), (100_000, 300_000), resampled=0.5)
    generator = np.random.default_rng(1)
    augmented = AugmentedEpisodes(episodes, change)
    drawn = [augmented.draw(generator) for _ in range(8)]
    assert any(label.startswith("resampled") for label, _ in drawn)
    assert all(is_whole(workload) for _, workload in drawn)
    with pytest.raises(ScenarioError, match="generated weeks ask for counted processors"):
        AugmentedEpisodes(episodes, Augmentation(generated=0.5))


def test_jobs_that_can_never_run_are_refused_unless_the_scenario_drops_them(folder: Path):
    table = (folder / "jobs.csv").read_text()
    (folder / "jobs.csv").write_text(table + "900,9,50,3600,7,8,0,0,batch\n")
    path = save(folder, INLINE)
    with pytest.raises(ScenarioError) as caught:
        Episodes(path)
    message = str(caught.value)
    assert message.startswith("mine: 1 of 201 jobs of jobs can never run on the nodes of [machine]")
    assert "with placement 'local': job 900 asks for 7 chunks; empty, partition 'batch'" in message
    path = save(folder, edited("[machine]", 'on_wide_job = "drop"\n[machine]', text=INLINE))
    report = Episodes(path).report
    assert report is not None and (report.jobs, report.records) == (200, 201)


def test_jobs_made_for_other_nodes_are_refused(folder: Path):
    scenario = load_scenario(save(folder, edited('kind = "week"', 'kind = "whole"', text=INLINE)))
    other = replace(scenario, machine=MachineSpec(64, 3600, Machine((NodeType(8, 8, 9),))))
    with pytest.raises(ScenarioError, match="was made for other nodes than those of"):
        Episodes(other, workload=Episodes(scenario).workload(0))


def test_a_table_of_one_s_own_becomes_episodes(folder: Path):
    episodes, report = episodes_of_log(
        folder / "jobs.csv", machine=MACHINE, placement="tightest", threshold=None
    )
    assert report.jobs == 200 and episodes.scenario.machine.nodes == MACHINE
    assert episodes.settings.placement == "tightest"
    assert is_whole(episodes.workload(0))


# --- The command line -----------------------------------------------------------------------------


def ran(*arguments: object) -> str:
    """Run the command and return what it printed."""
    result = CliRunner().invoke(app, [str(one) for one in arguments])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.long
def test_a_table_is_simulated_on_the_machine_of_a_file(folder: Path):
    machine = ("--machine", folder / "m" / "mine.toml")
    printed = ran("simulate", folder / "jobs.csv", *machine, "--placement", "local")
    assert "jobs: 200 of 200 jobs kept" in printed
    assert "64 processors (the cpus of 8 nodes)" in printed


def test_nodes_are_shown_for_scenarios_that_have_some(folder: Path):
    shown = ran("scenarios", "info", save(folder, INLINE))
    assert "8 nodes, 64 cpus, 2 partitions" in shown and "local" in shown
    plain = ran("scenarios", "info", "tiny")
    assert not any(key in plain for key in ("nodes", "placement", "requested_memory"))
