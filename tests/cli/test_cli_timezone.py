"""`--timezone`: local times of accounting are read in the zone of the site, by every command."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from hpcgym.env.scenario.from_log import episodes_of_log
from hpcgym.trace import load_workload

Command = Callable[..., str]
ZONE = "Europe/Berlin"


@pytest.fixture
def night(tmp_path: Path) -> Path:
    """Forty jobs around 2 o'clock on 29 March 2026, when it became 3 o'clock in Berlin."""
    lines = ["JobID|State|Submit|Start|End|TimelimitRaw|NCPUS"]
    for job in range(40):
        minute = f"{job % 60:02}"
        submit, start = f"2026-03-29T01:{minute}:00", f"2026-03-29T03:{minute}:30"
        lines.append(f"{job}|COMPLETED|{submit}|{start}|2026-03-29T04:{minute}:00|60|1")
    file = tmp_path / "night.txt"
    file.write_text("\n".join(lines))
    return file


def test_python_reads_the_hour_that_there_was_not(night: Path) -> None:
    for zone, wait in ((ZONE, 3_630), ("UTC", 7_230)):
        assert set(load_workload(night, timezone=zone).wait_time.tolist()) == {wait}
        episodes, _ = episodes_of_log(night, timezone=zone)
        assert set(episodes.workload(0).wait_time.tolist()) == {wait}


def mean_wait(said: str) -> str:
    """Return the mean wait that a table of metrics shows."""
    match = re.search(r"^wait, s +([\d.,]+)", said, re.MULTILINE)
    assert match is not None, said
    return match[1]


def test_recorded_waits_are_those_of_the_zone(run: Command, night: Path, tmp_path: Path) -> None:
    table = tmp_path / "jobs.csv"
    run("traces", "import", night, "-o", table, "--timezone", ZONE)
    words = ("--policy", "recorded", "--processors", 64)
    imported = run("simulate", table, *words)
    there = run("simulate", night, *words, "--timezone", ZONE)
    elsewhere = run("simulate", night, *words, "--timezone", "UTC")
    assert mean_wait(there) == mean_wait(imported) != mean_wait(elsewhere)


@pytest.mark.parametrize(
    "command",
    [
        ["simulate", "LOG"],
        ["evaluate", "--log", "LOG", "--agents", "FCFS,RECORDED", "--baseline", "recorded"],
        ["plot", "LOG", "--policy", "recorded", "-o", "OUT"],
        ["traces", "check", "LOG"],
        ["traces", "statistics", "LOG"],
    ],
)
def test_every_command_that_reads_accounting_says_the_zone(
    command: list[str], night: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from typer.testing import CliRunner

    from hpcgym.cli import app

    monkeypatch.setenv("COLUMNS", "200")
    places = {"LOG": str(night), "OUT": str(tmp_path / "night.png")}
    words = [places.get(word, word) for word in command]
    for zone in (ZONE, "America/New_York"):
        result = CliRunner().invoke(app, [*words, "--timezone", zone])
        assert result.exit_code == 0, result.output
        assert f"times local, of {zone};" in result.stderr
        (tmp_path / "night.png").unlink(missing_ok=True)


def test_a_zone_that_is_not_known_or_of_no_use_is_refused(refuse: Command, night: Path) -> None:
    said = refuse("simulate", night, "--timezone", "Europe/Berlim")
    assert "did you mean 'Europe/Berlin'?" in said
    assert "has no local times" in refuse("simulate", "tiny", "--timezone", ZONE)
    assert "goes with --log only" in refuse("evaluate", "--timezone", ZONE)
    assert "has no local times" in refuse("evaluate", "--log", "tiny", "--timezone", ZONE)
