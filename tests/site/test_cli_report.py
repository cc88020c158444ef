"""`hpcgym report`: what a real Slurm printed becomes a page, and nothing is lost on the way."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from hpcgym.base.errors import HpcgymError
from hpcgym.cli import app
from hpcgym.evaluation.store import Store
from hpcgym.site import outcome

Command = Callable[..., str]
SLURM = Path(__file__).parents[1] / "data" / "slurm"


@pytest.mark.long
def test_accounting_of_a_real_slurm_becomes_a_page(run: Command, tmp_path: Path) -> None:
    page = tmp_path / "site.html"
    said = run("report", SLURM / "sacct-allocations.txt", "--timezone", "UTC", "-o", page)
    report = json.loads((tmp_path / "site.json").read_text())
    assert " ".join(said.split()).startswith(" ".join(report["answer"]))
    assert said.splitlines()[-1].startswith("written    ")
    assert report["log"]["n_jobs"] == 120
    assert report["log"]["machine"] == "32 processors"
    assert report["log"]["machine_is_guess"] is True
    assert 0 < report["trust"]["fixed_share"] < 1  # dependencies, holds and begin times
    assert "left out   2  cancelled before its start: line 116, 118" in report["log"]["read"]
    markdown = (tmp_path / "site.md").read_text()
    assert all(sentence in markdown for sentence in report["answer"])
    html = page.read_text()
    assert not re.search(r"""(?:src|href)\s*=\s*["']?(?:https?:)?//""", html)
    assert not {"ana", "ben", "chi", "phys"} & set(re.findall(r"\w+", html))


@pytest.mark.long
def test_names_are_shown_where_they_are_asked_for(run: Command, tmp_path: Path) -> None:
    page = tmp_path / "site.html"
    run("report", SLURM / "sacct-allocations.txt", "--timezone", "UTC", "--names", "-o", page)
    groups = json.loads((tmp_path / "site.json").read_text())["groups"]
    assert {"ana", "ben", "chi"} <= {row["name"] for row in groups["user"]}


@pytest.mark.long
def test_page_and_markdown_say_what_a_report_without_time_tried(
    run: Command, tmp_path: Path
) -> None:
    page = tmp_path / "site.html"
    words = ("--timezone", "UTC", "--fit-seconds", 0, "-o", page)
    run("report", SLURM / "sacct-allocations.txt", *words)
    *_, search, others = json.loads((tmp_path / "site.json").read_text())["trust"]["told"]
    assert re.match(r"the search .* ended after 0 s: it tried \d+ of \d+ settings", search)
    assert re.match(r"noise .* 0 s after .*: of 4 copies .* 1 .* of \d+ options 0; .*SQF", others)
    for said in (search, others):
        assert said[1:] in (tmp_path / "site.md").read_text()
        assert said.partition(":")[2] in page.read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-o", "page.pdf"], "--output page.pdf: write a name that ends in .html"),
        (["--counted-from", "start"], 'counted_from=\'start\'; allowed: "eligible", "submit"'),
        (["--missing-request", "most"], "Allowed: run, max, tsafrir, drop"),
        (["--timezone", "Europe/Pariss"], "Europe/Pariss"),
        (["--processors", "0"], "processors"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(
    refuse: Command, tmp_path: Path, arguments: list[str], said: str
) -> None:
    output = [] if "-o" in arguments else ["-o", str(tmp_path / "site.html")]
    assert said in refuse("report", SLURM / "sacct-allocations.txt", *arguments, *output)
    assert not list(tmp_path.iterdir())


@pytest.mark.long
def test_no_file_is_written_over_unless_it_is_forced(
    run: Command, refuse: Command, tmp_path: Path
) -> None:
    (tmp_path / "site.md").write_text("mine")
    page = tmp_path / "site.html"
    words = ("report", SLURM / "sacct-allocations.txt", "-o", page)
    assert "site.md" in refuse(*words)
    assert [file.name for file in tmp_path.iterdir()] == ["site.md"]
    run(*words, "--force")
    assert (tmp_path / "site.md").read_text() != "mine"


@pytest.mark.long
def test_folders_of_the_command_are_told_with_names_only(
    run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "site.html"
    words = ["report", str(SLURM / "sacct-allocations.txt"), "-o", str(page), "--force"]
    for names, command in (
        ([], "hpcgym report sacct-allocations.txt -o site.html --force"),
        (["--names"], " ".join(["hpcgym", *words, "--names"])),
    ):
        monkeypatch.setattr("sys.argv", ["hpcgym", *words, *names])
        run(*words, *names)
        assert json.loads((tmp_path / "site.json").read_text())["command"] == command


@pytest.mark.long
def test_a_report_that_was_cut_off_goes_on_and_is_the_same(
    run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("report", SLURM / "sacct-allocations.txt", "--timezone", "UTC", "--names", "-o")
    whole, page = tmp_path / "whole.html", tmp_path / "site.html"
    kept = tmp_path / "site.unfinished.sqlite"
    simulate, n_calls, last = outcome.simulate_under, 0, 1_000

    def counted(*given: Any, **settings: Any) -> Any:
        nonlocal n_calls
        n_calls += 1
        if n_calls > last:
            raise KeyboardInterrupt
        return simulate(*given, **settings)

    monkeypatch.setattr(outcome, "simulate_under", counted)
    run(*words, whole)
    n_of_whole, n_calls, last = n_calls, 0, 24
    cut = CliRunner().invoke(app, [*map(str, words), str(page)])
    assert cut.exit_code != 0 and not page.exists()
    n_kept, n_calls, last = Store(kept).n_kept(), 0, 1_000
    assert n_kept > 15
    said = CliRunner().invoke(app, [*map(str, words), str(page)]).stderr
    assert "an interrupted run kept its finished simulations here" in said
    run(*words, page, "--resume")
    assert n_calls == n_of_whole - n_kept
    assert not list(tmp_path.glob("*.sqlite"))
    reports = [json.loads(file.with_suffix(".json").read_text()) for file in (whole, page)]
    assert {**reports[0], "command": ""} == {**reports[1], "command": ""}


def test_a_report_says_on_the_terminal_what_was_read_and_left_out(tmp_path: Path) -> None:
    log = tmp_path / "cut.txt"
    log.write_text((SLURM / "sacct-allocations.txt").read_text()[:-40])
    words = ["report", str(log), "--timezone", "UTC", "-o", str(tmp_path / "site.html")]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0
    assert "rows " in result.stderr and "left out" in result.stderr
    assert "jobs kept" in result.stderr or "machine " in result.stderr


def test_a_report_whose_every_candidate_fails_says_why_the_first_did(
    refuse: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise HpcgymError("it cannot be")

    monkeypatch.setattr("hpcgym.site.outcome.Outcome.under", fails)
    log = tmp_path / "mine.swf"
    rest = "100 2 -1 -1 2 900 -1 1 7 1 -1 -1 -1 -1 -1"
    jobs = [f"{n} {60 * n} {5 * n} {rest}" for n in range(1, 101)]
    log.write_text("\n".join(["; MaxProcs: 4", *jobs, ""]))
    said = refuse("report", log, "-o", tmp_path / "site.html")
    assert re.search(r"mine: none of \d+ settings can be simulated; the first: .*: it cannot", said)
