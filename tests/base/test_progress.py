"""Progress: what is shown of nested work, on a terminal and without one."""

import io
import time
from collections.abc import Callable

import pytest
from rich.console import Console

from hpcgym import load_workload, simulate
from hpcgym.agent.search import SearchTrainer
from hpcgym.base import progress
from hpcgym.base.progress import sent, shown, steps
from hpcgym.env.scenario.episodes import Episodes


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look often, and print what is due after no time."""
    for name in ("FIRST_S", "LINE_S", "NOTICE_S"):
        monkeypatch.setattr(progress, name, 0.0)
    monkeypatch.setattr(progress, "TICK_S", 0.001)


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def test_of_compilations_lines_say_the_share_sooner_than_of_other_work(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "LINE_S", 1e9)
    monkeypatch.setattr(progress, "NOTED_S", 0.0)
    said = ""
    compiling = steps(4, "compiling", "kernels", notice="kept")
    with shown(), steps(2, "running", "weeks"), compiling as work:
        work.advance()
        while "compiling: 25 % of 4 kernels" not in said:
            said += capfd.readouterr().err
            time.sleep(0.002)
    assert said.startswith("hpcgym: compiling: 4 kernels (kept)\nhpcgym: compiling: ")
    assert "running" not in said


def test_without_a_terminal_lines_say_how_far_the_outermost_work_is(
    capfd: pytest.CaptureFixture[str],
) -> None:
    said = ""

    def has_said(text: str) -> bool:
        nonlocal said
        said += capfd.readouterr().err
        return text in said

    with shown(), steps(4, "six weeks", "runs") as runs:
        runs.advance()
        wait_for(lambda: has_said("hpcgym: six weeks: 25 % of 4 runs, 0:0"))
        with steps(2) as halves, steps(2):  # alike, and still told apart
            halves.advance()
            wait_for(lambda: has_said("six weeks: 38 % of 4 runs"))
        with steps(10, "compiling", "kernels", notice="kept here", count=lambda: 5):
            wait_for(lambda: has_said("compiling: 10 kernels (kept here)"))
            wait_for(lambda: has_said("compiling: 50 % of 10 kernels"))
    assert said.count("kept here") == 1
    assert capfd.readouterr().out == ""


def test_a_terminal_shows_a_bar_that_is_wiped(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = io.StringIO()
    monkeypatch.setattr("sys.stderr", Tty())
    monkeypatch.setattr(
        "rich.console.Console",
        lambda **_: Console(file=drawn, force_terminal=True, width=80, color_system=None),
    )
    with shown(), steps(4, "six weeks", "runs") as runs:
        runs.advance()
        wait_for(lambda: "25 % of 4 runs" in drawn.getvalue())
    assert drawn.getvalue().endswith("\x1b[2K")
    assert "\x1b[?25h" in drawn.getvalue()


def test_nothing_is_shown_unasked(capfd: pytest.CaptureFixture[str]) -> None:
    with shown(False), steps(4, "six weeks", "runs"):
        time.sleep(0.05)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("backfill", ["easy", "gang"])
def test_a_simulation_says_how_many_jobs_have_started(
    monkeypatch: pytest.MonkeyPatch, backfill: str
) -> None:
    seen: list[progress.Steps] = []
    monkeypatch.setattr(progress, "_display", progress._Lines())
    monkeypatch.setattr(progress, "_under_way", Noting(seen))
    simulate(load_workload("tiny"), backfill=backfill)
    (work,) = (one for one in seen if one.name == "scheduling tiny")
    assert (work.total, work.unit, work.share(0.0)) == (8, "jobs", 1.0)


def test_a_search_says_how_many_vectors_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[progress.Steps] = []
    monkeypatch.setattr(progress, "_display", progress._Lines())
    monkeypatch.setattr(progress, "_under_way", Noting(seen))
    SearchTrainer("mine", "features", evaluations=20, strategy="xnes").train([Episodes("tiny")], 0)
    (search,) = (one for one in seen if one.total == 20)
    assert search.share(0.0) == 1.0


class Tty(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


class Noting(list[progress.Steps]):
    """A list of what is under way that notes all that ever was."""

    def __init__(self, seen: list[progress.Steps]) -> None:
        super().__init__()
        self.seen = seen

    def append(self, work: progress.Steps) -> None:
        self.seen.append(work)
        super().append(work)


def test_a_worker_writes_its_share_where_another_process_reads_it() -> None:
    shares = [0.0, 0.0]
    with sent(shares, 1), steps(4) as work:
        work.advance()
        wait_for(lambda: shares == [0.0, 0.25])
        with steps(2, notice="compiling") as kernels:
            kernels.advance()
            wait_for(lambda: shares == [0.0, -0.5])
    assert shares == [0.0, 0.0]


def test_shares_of_workers_add_up_behind_what_was_kept() -> None:
    work = progress.Steps(4, unit="runs", shares=[0.5, -0.25], n_done=2)
    assert work.share(0.0) == 2.5 / 4
    assert work.text(0.625).endswith("of 4 runs, 0:00, compiling kernels: 25%")
