"""Recorded episodes: stepped through a new environment they are the same, to the bit."""

import json
import os
import shutil
from pathlib import Path

import gymnasium
import numpy as np
import pytest

minari = pytest.importorskip("minari")

from hostile import Hostile  # noqa: E402
from hpcgym import simulate  # noqa: E402
from hpcgym.agent.base import NamedAgent  # noqa: E402
from hpcgym.agent.weights import ConstantAction  # noqa: E402
from hpcgym.base.errors import EvaluationError, HpcgymError, OutputError, PolicyError  # noqa: E402
from hpcgym.core.policy import as_policy  # noqa: E402
from hpcgym.env.scenario.episodes import Episodes  # noqa: E402
from hpcgym.evaluation import chunks, record, recording  # noqa: E402

ROOT = Path(__file__).parents[2]
BUSY = "synthetic-busy-weeks"
LIGHT = "11"  # A week with few decisions


def read(made):
    """Return a data set, and what it says of each episode."""
    data = minari.MinariDataset(made.path / "data")
    return data, list(data.storage.get_episode_metadata(data.episode_indices))


def parts(observation):
    """Return the arrays of an observation, or of many."""
    return observation if isinstance(observation, dict) else {"all": observation}


def replay(data, about):
    """Step the actions of each episode through a new environment, and compare all that it gives."""
    env = data.recover_environment().unwrapped
    for episode, known in zip(data.iterate_episodes(), about, strict=True):
        shown, _ = env.reset(seed=known["seed"], options=known["options"])
        for step in range(len(episode.rewards) + 1):
            for key, array in parts(episode.observations).items():
                np.testing.assert_array_equal(array[step], parts(shown)[key])
            if step == len(episode.rewards):
                break
            shown, reward, terminated, truncated, info = env.step(episode.actions[step])
            assert reward == episode.rewards[step]
            assert terminated == episode.terminations[step]
            assert truncated == episode.truncations[step]
        assert terminated
        assert env.metrics()["mean_bsld"] == known["mean_bsld"]
        told = {key: value for key, value in info.items() if key != "action_mask"}
        assert told.pop("mean_bsld") == pytest.approx(known["mean_bsld"])
        assert told == {key: known[key] for key in told}
        assert len(told) > 10 and known["ratio"] > 0


@pytest.mark.long
@pytest.mark.parametrize(
    ("agents", "options"),
    [
        (["SAF", "FCFS"], {}),
        (["SMITH-REG"], {"action": "job", "n_slots": 16, "observation": "flat"}),
        (["URGENT-BENEFIT"], {"action": "order", "epsilon": 0.2, "seed": 7}),
        (["PPO-ORDER"], {}),
        ([NamedAgent("MIX", ConstantAction((0.5, 0.5, 0, 0, 0, 0)), {"action": "weights"})], {}),
        ([NamedAgent("OWN", ConstantAction((0.5, 0.5, 1, 0.5, 0.2)))], {"observation": "flat"}),
    ],
    ids=lambda value: str(value)[:40],
)
def test_recorded_actions_give_the_recorded_episode(agents, options, tmp_path):
    made = record(agents, BUSY, "some-v0", weeks=LIGHT, folder=tmp_path, **options)
    data, about = read(made)
    replay(data, about)
    assert [one["agent"] for one in about] == [getattr(one, "name", one) for one in agents]
    assert made.frame["decisions"].tolist() == [len(one.actions) for one in data]


@pytest.mark.long
@pytest.mark.parametrize("action", ["policy", "order"])
def test_a_rule_s_episode_is_its_schedule_where_all_jobs_are_visible(action, tmp_path):
    made = record(["SPF"], BUSY, "spf-v0", weeks=LIGHT, action=action, n_slots=512, folder=tmp_path)
    episodes = Episodes(BUSY).select(LIGHT)
    schedule = simulate(episodes.workload(0), "SPF", threshold=200_000)
    assert made.frame["mean_bsld"].item() == schedule.metrics()["mean_bsld"]


def test_random_decisions_are_drawn_by_the_seed(tmp_path):
    keywords = {"weeks": LIGHT, "action": "job", "n_slots": 16, "folder": tmp_path}
    names = {"a-v0": (0.5, 1), "b-v0": (0.5, 1), "c-v0": (0.5, 2), "d-v0": (0.0, 1)}
    actions = {}
    for name, (epsilon, seed) in names.items():
        made = record(["SAF"], BUSY, name, epsilon=epsilon, seed=seed, **keywords)
        data, _ = read(made)
        actions[name] = data[0].actions
        held = data[0].observations["action_mask"][:-1][
            np.arange(len(actions[name])), actions[name]
        ]
        assert (held == 1).all()
    assert np.array_equal(actions["a-v0"], actions["b-v0"])
    assert not np.array_equal(actions["a-v0"], actions["c-v0"])
    assert 0.3 < np.mean(actions["a-v0"] > 0) < 0.6 > np.mean(actions["d-v0"] > 0) == 0


def test_a_data_set_says_how_it_was_made(tmp_path):
    made = record(["SAF", "FCFS"], "tiny", "tiny-v1", folder=tmp_path, seed=5)
    data, about = read(made)
    assert made.path == tmp_path / "tiny-v1"
    assert [one["seed"] for one in about] == [5, 6]
    assert data.spec.dataset_id == "tiny-v1"
    assert data.spec.env_spec.kwargs["policies"] == ["SAF", "FCFS"]
    metadata = json.loads((made.path / "data" / "metadata.json").read_text())
    assert metadata["algorithm_name"] == "SAF, FCFS"
    assert metadata["hpcgym"]["scenario"] == "tiny"
    assert metadata["hpcgym"]["version"] in metadata["requirements"][0]


def test_bundled_data_set_is_what_its_page_s_command_makes(tmp_path):
    folder = ROOT / "docs" / "datasets" / "busy-smith-v0"
    assert sum(one.stat().st_size for one in folder.rglob("*") if one.is_file()) < 300_000
    bundled = minari.MinariDataset(folder / "data")
    made = record(
        ["SMITH-REG"], BUSY, folder.name, weeks="10", action="job", n_slots=16, folder=tmp_path
    )
    again, _ = read(made)
    assert again.spec.env_spec == bundled.spec.env_spec
    assert np.array_equal(again[0].actions, bundled[0].actions)
    assert np.array_equal(again[0].rewards, bundled[0].rewards)
    for key, array in bundled[0].observations.items():
        np.testing.assert_array_equal(again[0].observations[key], array)


def test_a_scenario_s_file_is_found_from_anywhere(tmp_path, monkeypatch):
    (tmp_path / "own.toml").write_bytes((ROOT / "scenarios" / "tiny.toml").read_bytes())
    monkeypatch.chdir(tmp_path)
    made = record(["SAF"], "own.toml", "own-v0", folder=tmp_path)
    monkeypatch.chdir("/")
    replay(*read(made))


def test_minari_s_own_folder_is_the_default(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    record(["SAF"], "tiny", "mine-v3")
    assert len(minari.load_dataset("mine-v3")) == 1
    assert list(minari.list_local_datasets()) == ["mine-v3"]


def test_a_data_set_is_replaced_only_on_request_and_never_left_half_written(tmp_path, monkeypatch):
    record(["SAF"], "tiny", "tiny-v0", folder=tmp_path)
    with pytest.raises(OutputError, match="exists already"):
        record(["FCFS"], "tiny", "tiny-v0", folder=tmp_path)
    with monkeypatch.context() as patch, pytest.raises(OutputError, match="No space left"):
        patch.setattr(Path, "rename", _full_disk)
        record(["FCFS"], "tiny", "new-v0", folder=tmp_path)
    assert sorted(os.listdir(tmp_path)) == [".new-v0-unfinished", "tiny-v0"]
    record(["FCFS"], "tiny", "new-v0", folder=tmp_path, resume=True)
    assert sorted(os.listdir(tmp_path)) == ["new-v0", "tiny-v0"]
    made = record(["FCFS"], "tiny", "tiny-v0", folder=tmp_path, force=True)
    assert read(made)[1][0]["agent"] == "FCFS"
    assert sorted(os.listdir(tmp_path)) == ["new-v0", "tiny-v0"]


def stop_at(patch, episode):
    """Press Ctrl-C in an episode; return the list of those played."""
    played, play = [], recording._Stage.play

    def counted(self, task):
        if len(played) == episode:
            raise KeyboardInterrupt
        played.append(task[2])
        return play(self, task)

    patch.setattr(recording._Stage, "play", counted)
    return played


def files_in(folder):
    return {
        str(one.relative_to(folder)): one.read_bytes()
        for one in sorted(folder.rglob("*"))
        if one.is_file()
    }


def interrupted(folder, **options):
    with pytest.MonkeyPatch.context() as patch:
        stop_at(patch, 2)
        with pytest.raises(KeyboardInterrupt, match=r"episodes are kept in .*: add --resume"):
            record(["SAF", "FCFS"], BUSY, "busy-v0", weeks="1-2", folder=folder, **options)


@pytest.mark.long
def test_a_recording_goes_on_where_it_was_cut_off(tmp_path, monkeypatch):
    given = {"agents": ["SAF", "FCFS"], "scenario": BUSY, "name": "busy-v0", "weeks": "1-2"}
    given |= {"epsilon": 0.1}
    whole = record(folder=tmp_path / "whole", **given)
    cut_off = tmp_path / "cut off"
    interrupted(cut_off, epsilon=0.1)
    assert os.listdir(cut_off) == [".busy-v0-unfinished"]
    (cut_off / ".busy-v0-unfinished" / "data" / "metadata.json").write_text('{"total_ep')
    (cut_off / ".busy-v0-unfinished" / "data" / "2").mkdir()
    with pytest.raises(OutputError, match=r"--resume.*--force"):
        record(folder=cut_off, **given)
    with pytest.raises(EvaluationError, match="keeps another recording"):
        record(folder=cut_off, resume=True, **(given | {"epsilon": 0.2}))
    played = stop_at(monkeypatch, 100)
    made = record(folder=cut_off, resume=True, **given)
    assert played == [2, 3]
    assert made.frame.equals(whole.frame)
    assert files_in(made.path) == files_in(whole.path)
    with pytest.raises(OutputError, match="nothing to resume"):
        record(folder=cut_off, resume=True, **given)
    assert os.listdir(cut_off) == ["busy-v0"]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2))
def test_workers_that_reorder_repeat_and_die_record_the_same_files(seed, tmp_path, monkeypatch):
    monkeypatch.setattr(chunks, "INTERRUPT_S", 0.0)
    given = {"agents": ["SAF", "SMITH-HISTORY"], "scenario": BUSY, "name": "busy-v0"}
    given |= {"weeks": "1-3", "epsilon": 0.1}
    whole = record(folder=tmp_path / "whole", **given)
    hostile = Hostile(seed, lost=0.2)
    made = record(folder=tmp_path / "shared", executor=hostile, **given)
    assert hostile.done > 0
    assert made.frame.equals(whole.frame)
    assert files_in(made.path) == files_in(whole.path)


@pytest.mark.long
def test_an_episode_that_is_gone_is_played_again(tmp_path, monkeypatch):
    given = {"agents": ["SAF", "FCFS"], "scenario": BUSY, "name": "busy-v0", "weeks": "1-2"}
    interrupted(tmp_path)
    shutil.rmtree(tmp_path / ".busy-v0-unfinished" / "data" / "1")
    played = stop_at(monkeypatch, 100)
    made = record(folder=tmp_path, resume=True, **given)
    assert played == [1, 2, 3]
    assert len(read(made)[0]) == 4


def test_a_recording_that_is_cut_off_at_its_end_is_as_whole(tmp_path, monkeypatch):
    given = {"agents": ["SAF"], "scenario": "tiny", "name": "tiny-v0"}
    whole = record(folder=tmp_path / "whole", **given)
    with monkeypatch.context() as patch, pytest.raises(OutputError, match="add --resume"):
        patch.setattr(Path, "rename", _full_disk)
        record(folder=tmp_path, **given)
    made = record(folder=tmp_path, resume=True, **given)
    assert files_in(made.path) == files_in(whole.path)


def test_what_is_no_data_set_is_neither_replaced_nor_resumed(tmp_path):
    (tmp_path / "tiny-v0").write_text("mine")
    for options in ({}, {"force": True}, {"resume": True}):
        with pytest.raises(OutputError, match="is not a folder"):
            record(["SAF"], "tiny", "tiny-v0", folder=tmp_path, **options)
    assert (tmp_path / "tiny-v0").read_text() == "mine"


def test_a_recording_that_another_process_has_made_meanwhile_is_not_replaced(tmp_path, monkeypatch):
    load = recording.load_agent

    def slow(name):
        if name == "FCFS":
            record(["SAF"], "tiny", "tiny-v0", folder=tmp_path)
        return load(name)

    monkeypatch.setattr(recording, "load_agent", slow)
    with pytest.raises(OutputError, match="exists already"):
        record(["FCFS"], "tiny", "tiny-v0", folder=tmp_path)


@pytest.mark.long
def test_a_recording_that_was_cut_off_begins_anew_only_on_request(tmp_path, monkeypatch):
    interrupted(tmp_path)
    played = stop_at(monkeypatch, 100)
    record(["SPF"], BUSY, "busy-v0", weeks="1-2", folder=tmp_path, force=True)
    assert played == [0, 1]
    assert os.listdir(tmp_path) == ["busy-v0"]


def test_nothing_is_left_of_a_recording_without_an_episode(tmp_path, monkeypatch):
    stop_at(monkeypatch, 0)
    with pytest.raises(KeyboardInterrupt, match="no episode had finished"):
        record(["SAF"], "tiny", "tiny-v0", folder=tmp_path)
    assert os.listdir(tmp_path) == []


def _full_disk(*_):
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize(
    ("agents", "options", "message"),
    [
        (["SAF"], {"name": "tiny"}, "a version: busy-v0; got 'tiny'"),
        (["SAF"], {"action": "weights"}, "unknown kind of action 'weights'"),
        (["SAF"], {"epsilon": 1.5}, "epsilon is a share from 0 to 1, got 1.5"),
        (["SAF"], {"seed": -1}, "a seed"),
        ([], {}, "at least one agent"),
        (["SAF", "PPO-ORDER"], {}, "action is policy and order; record them apart"),
        (["SAF", "CONSERVATIVE"], {}, "backfill is the default and conservative"),
        (["PPO-ORDER"], {"action": "job"}, "takes actions of kind 'order'"),
        (["PPO-ORDER"], {"n_slots": 16}, "PPO-ORDER needs n_slots 64, got 16"),
        (["SMITH-HISTORY", "SMITH-REG"], {"action": "job"}, "reads the regression of users"),
        (["SMITH-NET"], {}, "orders by a network"),
        (["PLANNER"], {}, "orders in Python"),
        (["PLANNER"], {"action": "order"}, "PLANNER orders in Python"),
        (["EASY-PLUS-PLUS"], {}, "estimates of its own"),
        (["GANG"], {}, "take turns"),
    ],
)
def test_what_cannot_be_recorded_is_refused(agents, options, message, tmp_path):
    given = {"name": "tiny-v0", "folder": tmp_path} | options
    with pytest.raises(HpcgymError, match=message):
        record(agents, "tiny", **given)
    assert os.listdir(tmp_path) == []


def test_without_minari_the_command_to_type_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "minari.dataset.minari_storage", None)
    with pytest.raises(EvaluationError, match=r"pip install 'hpcgym\[record\]'"):
        record(["SAF"], "tiny", "tiny-v0", folder=tmp_path)


def test_slots_by_a_policy_leave_the_decision_as_it_was():
    env, twin = (
        gymnasium.make("HPCBatch-v0", scenario=BUSY, action="order", n_slots=8).unwrapped
        for _ in range(2)
    )
    for one in (env, twin):
        one.reset(options={"episode": f"week {LIGHT}"})
    generator = np.random.default_rng(3)
    over = False
    while not over:
        first = env.first_by(as_policy("SAF"))
        assert first.tolist()[:6] == list(range(min(len(first), 6)))  # slots are in SAF's order
        assert sorted(first.tolist()) == list(range(len(first)))
        action = generator.uniform(-1, 1, 8).astype(np.float32)
        shown, reward, over, _, _ = env.step(action)
        other, other_reward, *_ = twin.step(action)
        assert reward == other_reward
        assert all(np.array_equal(shown[key], other[key]) for key in shown)
    with pytest.raises(PolicyError, match="DYNP orders in Python"):
        env.first_by(as_policy("DYNP"))
