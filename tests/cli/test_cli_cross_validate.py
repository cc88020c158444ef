"""`hpcgym cross-validate`: one command makes the whole table."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from hpcgym.agent.search import W_TRAIN
from hpcgym.agent.trainers import TRAINERS
from hpcgym.cli.cross_validate import FILES

Command = Callable[..., str]

COPIES = ("--replicas", 1)
QUICK = ("--folds", 2, "--seeds", 2, *COPIES)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A scenario of six weeks, and searches that are short."""
    monkeypatch.setitem(TRAINERS, "weights", lambda: replace(W_TRAIN, evaluations=24))
    monkeypatch.setattr("hpcgym.evaluation.baselines.HINDSIGHT_EVALUATIONS", 24)
    from hpcgym.base.registry import find_entry

    text = find_entry("scenarios", "synthetic-256-weeks").read_text(encoding="utf-8")
    path = tmp_path / "six-weeks.toml"
    path.write_text(text.replace('kind = "week"', 'kind = "week"\nweeks = "1-6"'))
    return path


@pytest.mark.long
def test_one_command_makes_the_whole_table_and_its_files(
    run: Command, refuse: Command, quick: Path, tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib")
    folder = tmp_path / "results"
    command = ("cross-validate", "weights", "--scenario", quick, *QUICK, "--output", folder)
    printed = run(*command)
    assert "six-weeks: 6 weeks, each with 1 copy jittered by ±600 s" in printed
    for line in ("w*train", "w* on copies", "DYNP", "KNOWS-SMITH", "hindsight"):
        assert line in printed
    assert "w*train: trained without the block; ratio by training seed" in printed
    assert sorted(entry.name for entry in folder.iterdir()) == sorted(FILES)
    runs = pd.read_csv(folder / "runs.csv")
    own = runs[runs["agent"] == "w*train"]
    assert sorted(own["seed"].unique()) == [0, 1]
    assert sorted(own["replica"].unique()) == [0, 1]
    summary = pd.read_csv(folder / "summary.csv").set_index("agent")
    assert summary.loc["KNOWS-SAF", "kind"] == "clairvoyant"
    assert summary.loc["SAF", "ratio"] == 1.0
    assert len(pd.read_csv(folder / "trainings.csv")) == 4
    assert (folder / "comparison.png").read_bytes().startswith(b"\x89PNG")
    assert "exists already" in refuse(*command)


def test_help_names_every_trainer(run: Command) -> None:
    assert set(TRAINERS) <= set(re.findall(r"[a-z-]+", run("cross-validate", "--help")))


@pytest.mark.long
def test_families_are_compared_over_several_logs(
    run: Command, refuse: Command, quick: Path, tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib")
    folder = tmp_path / "results"
    names = ("SMITH", "SPF", "area=1")
    logs = ("-s", "tiny", "-s", quick)
    printed = run("cross-validate", *names, *logs, *COPIES, "--no-baselines", "--output", folder)
    assert "2 logs: tiny, six-weeks" in printed
    assert "KNOWS-SAF" not in printed
    figures = ["comparison-six-weeks.png", "comparison-tiny.png"]
    assert sorted(entry.name for entry in folder.iterdir()) == sorted([*FILES[:-1], *figures])
    runs = pd.read_csv(folder / "runs.csv")
    assert runs["scenario"].unique().tolist() == ["tiny", "six-weeks"]
    assert runs["agent"].unique().tolist() == [*names, "SAF"]
    summary = pd.read_csv(folder / "summary.csv")
    assert summary["scenario"].tolist() == [
        name for name in ("tiny", "six-weeks", "all logs") for _ in range(4)
    ]
    message = refuse("cross-validate", "SPF", "-s", quick, "-s", "synthetic-256-weeks", *QUICK)
    assert "six-weeks and synthetic-256-weeks cut one log" in message
