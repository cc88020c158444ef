"""`hpcgym record`: a data set and a table of its episodes, or one line that says what to do."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., str]


def test_episodes_are_listed_and_the_data_set_is_named(run: Command, tmp_path: Path) -> None:
    pytest.importorskip("minari")
    where = ("--output", str(tmp_path / "new"))
    printed = run("record", "tiny-v0", "-a", "SAF,FCFS", "-s", "tiny", *where)
    assert [line.split()[0] for line in printed.splitlines()[1:3]] == ["SAF", "FCFS"]
    assert f"wrote {tmp_path / 'new' / 'tiny-v0'}" in printed.replace("\n", "")
    assert (tmp_path / "new" / "tiny-v0" / "data" / "metadata.json").is_file()


@pytest.mark.long
def test_observations_are_one_array_where_asked(run: Command, tmp_path: Path) -> None:
    """As learners want them that know no dicts, d3rlpy's among them."""
    minari = pytest.importorskip("minari")
    options = ("--observation", "flat", "--slots", "8", "--action", "job")
    run("record", "flat-v0", "-a", "SAF", "-s", "tiny", *options, "--output", str(tmp_path))
    data = minari.MinariDataset(tmp_path / "flat-v0" / "data")
    env = data.recover_environment()
    assert data.observation_space == env.observation_space
    assert data[0].observations.shape == (len(data[0]) + 1, 8 * 18 + 19 + 8)


def test_recording_without_minari_names_what_to_install(
    refuse: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "minari.dataset.minari_storage", None)
    printed = refuse("record", "tiny-v0", "-a", "SAF", "-s", "tiny")
    assert "pip install 'hpcgym[record]'" in printed
