"""`hpcgym advise`: a table for people, rows for programs, and what it refuses."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from live_queues import RECORDED, fake_commands

from hpcgym.site.live import last_reading

Command = Callable[..., str]
TEXTS = ("squeue", "sprio", "sinfo")


@pytest.fixture(autouse=True)
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Keep what the last reading had in a folder of the test."""
    folder = tmp_path / "kept"
    monkeypatch.setattr(last_reading, "_folder", lambda: folder)
    return folder


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Return a folder with copies of what a toy cluster printed."""
    folder = tmp_path / "printed"
    shutil.copytree(RECORDED, folder)
    return folder


def options(folder: Path, *names: str) -> list[str]:
    """Return options that name files."""
    return [word for name in names or TEXTS for word in (f"--{name}", str(folder / f"{name}.txt"))]


def test_every_waiting_job_has_a_row_with_ranks_starts_and_a_reason(
    run: Command, files: Path
) -> None:
    rows = json.loads(run("advise", *options(files), "--format", "json"))
    lines = [line.split("|") for line in (files / "squeue.txt").read_text().splitlines()]
    waiting = {cells[0]: cells for cells in lines if cells[6] == "PENDING"}
    assert {row["job"] for row in rows} == waiting.keys()
    assert all(row["why"] for row in rows)
    ranked = [row for row in rows if row["rank"] is not None]
    assert [row["rank"] for row in ranked] == list(range(1, len(ranked) + 1))
    assert sorted(row["rank_now"] for row in ranked) == [row["rank"] for row in ranked]
    assert ranked[0]["partition"] == "debug,batch"  # of a higher tier
    work = [row["cpus"] * row["limit_s"] for row in ranked[1:]]
    assert work == sorted(work)
    out = {row["job"]: row["why"] for row in rows if row["start"] is None}
    states = {job: waiting[job][7] for job in out}
    assert set(states.values()) == {"JobHeldUser", "Dependency", "PartitionConfig"}
    now = max(int(cells[10]) + int(cells[13]) for cells in waiting.values())
    assert all(row["start"] >= now for row in rows if row["start"] is not None)


def test_table_and_sentences_say_what_changes(run: Command, files: Path) -> None:
    shown = run("advise", *options(files), "--policy", "SPF")
    assert "32 cpus on 2 nodes, counted as one pool" in shown
    assert "run times are the limits, as no accounting was read" in shown
    assert "SPF starts" in shown
    assert "Mean time until the start" in shown
    assert "held by its user" in shown
    short = run("advise", *options(files), "--top", "2")
    assert "more jobs; --top 0 shows all" in short


def test_accounting_tells_run_times(run: Command, files: Path) -> None:
    shown = run("advise", *options(files, *TEXTS, "sacct"))
    assert "users' last jobs were off by" in shown


def test_order_that_priorities_have_already_changes_nothing(run: Command, files: Path) -> None:
    path = files / "squeue.txt"
    rows = json.loads(run("advise", *options(files), "--format", "json"))
    priority = {row["job"]: str(1000 - place) for place, row in enumerate(rows)}
    lines = []
    for line in path.read_text().splitlines():
        cells = line.split("|")
        if cells[8] != "0":
            cells[8] = priority.get(cells[0], cells[8])
        lines.append("|".join(cells))
    path.write_text("\n".join([*lines, ""]))
    assert "SAF starts 0 earlier and 0 later" in run("advise", *options(files))


def test_commands_are_asked_and_nothing_else_is_run(
    run: Command, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    printing = {name: f"cat {files / name}.txt" for name in (*TEXTS, "sacct")}
    refused = {"scontrol": "exit 1", "scancel": "exit 1", "sbatch": "exit 1"}
    log = fake_commands(tmp_path, monkeypatch, **printing, **refused)
    by_files = run("advise", *options(files, *TEXTS, "sacct"), "--format", "csv")
    assert run("advise", "--format", "csv") == by_files
    asked = log.read_text(encoding="utf-8").splitlines()
    assert [line.split()[0] for line in asked] == [*TEXTS, "sacct"]
    assert "--duplicates -S 20" in asked[-1]
    run("advise", "--days", "0")
    assert len(log.read_text(encoding="utf-8").splitlines()) == len(asked) + 3


def test_dead_controller_is_one_line(
    refuse: Command, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_commands(tmp_path, monkeypatch, squeue="echo 'Unable to contact' >&2; exit 1")
    assert "Unable to contact; nothing is advised" in refuse("advise")


def test_emptied_queue_is_refused_after_one_with_jobs(
    run: Command, refuse: Command, files: Path
) -> None:
    run("advise", *options(files))
    (files / "squeue.txt").write_text("")
    assert "no jobs, but sinfo says" in refuse("advise", *options(files))
    (files / "sprio.txt").write_text("")
    sinfo = files / "sinfo.txt"
    cells = [line.split("|") for line in sinfo.read_text().splitlines()]
    sinfo.write_text("".join("|".join([*c[:4], "0/16/0/16", *c[5:]]) + "\n" for c in cells))
    assert "the last reading of this cluster had" in refuse("advise", *options(files))


def test_idle_cluster_has_nothing_to_advise(run: Command, files: Path, kept: Path) -> None:
    (files / "squeue.txt").write_text("")
    (files / "sprio.txt").write_text("")
    (files / "sinfo.txt").write_text("n1|batch|idle|16|0/16/0/16|1|\n")
    assert "No job waits that an order can help." in run("advise", *options(files))
    assert json.loads(run("advise", *options(files), "--format", "json")) == []
    assert "no accounting was read" in run(
        "advise", *options(files), "--sacct", files / "sacct.txt"
    )
    assert not kept.exists()


@pytest.mark.long
def test_ranges_are_columns_and_the_accounting_says_how_often_they_held(
    run: Command, files: Path
) -> None:
    path = files / "sacct.txt"
    assert "no ranges" not in run("advise", *options(files, *TEXTS, "sacct"))  # too few like ones
    head, first, *rest = path.read_text(encoding="utf-8").splitlines()
    begin = int(first.split("|")[8]) - 100_000
    threes = [
        f"{9000 + k}|{9000 + k}|ana|phys|batch|normal|COMPLETED|None|{submit}|{submit}|{start}"
        f"|{start + 300}|300|10|2|32|2|32|||wrap"
        for k in range(120)  # of three, each starts when the one before it has ended
        for submit in [begin + 1_000 * (k // 3) + 10 * (k % 3)]
        for start in [begin + 1_000 * (k // 3) + 300 * (k % 3)]
    ]
    path.write_text("\n".join([head, *threes, first, *rest, ""]), encoding="utf-8")
    rows = json.loads(run("advise", *options(files, *TEXTS, "sacct"), "--format", "json"))
    known = [row for row in rows if row["range_from"] is not None]
    assert known
    assert all(row["range_to"] is None or row["range_from"] <= row["range_to"] for row in known)
    assert all(row["range_tells"] in (True, False) for row in known)
    shown = run("advise", *options(files, *TEXTS, "sacct"))
    assert "80 % range" in shown
    assert "held in the second" in " ".join(shown.split())
    assert "no ranges: the accounting shows 0 past waits" in run("advise", *options(files))


def test_jobs_not_yet_submitted_stand_side_by_side(run: Command, files: Path) -> None:
    shapes = ("cpus=16,time=30:00,partition=batch", "cpus=64,time=5:00,partition=debug,gres=gpu:1")
    words = [word for shape in shapes for word in ("--job", shape)]
    asked = [*options(files, *TEXTS, "sacct"), *words]
    rows = json.loads(run("advise", *asked, "--format", "json"))
    assert [row["job"] for row in rows] == list(shapes)
    assert rows[0]["start"] > 0
    assert (rows[1]["start"], rows[1]["why"]) == (None, "asks 64 cpus; up: 32")
    shown = " ".join(run("advise", *asked).split())
    assert "asks 64 cpus" in shown
    assert "What gres asks for is not simulated" in shown


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--policy", "SFA"], "did you mean 'SAF'"),
        (["--policy", "URGENT-CAP"], "URGENT-CAP is more than an order (backfill"),
        (["--policy", "PPO-ORDER"], "PPO-ORDER is more than an order (it answers at each pass)"),
        (["--policy", "DYNP"], "chooses between orders"),
        (["--partition", "bach"], "unknown partition 'bach'; did you mean 'batch'"),
        (["--days", "3"], "--days has no effect beside files; give --sacct FILE"),
        (["--top", "3", "--format", "csv"], "--top has no effect with this --format"),
        (["--backfill", "esy"], "esy"),
        (["--job", "cpus=1,time=1:00", "--top", "3"], "--top has no effect beside --job"),
        (["--top", "-1"], "--top and --days must be 0 or more, got -1"),
        (["--days", "1000000"], "--days must be at most 3650, got 1000000"),
    ],
)
def test_what_cannot_be_is_one_clear_line(
    refuse: Command, files: Path, words: list[str], says: str
) -> None:
    assert says in refuse("advise", *options(files), *words)


def test_missing_file_beside_others_says_how_to_print_it(refuse: Command, files: Path) -> None:
    said = refuse("advise", *options(files, "squeue", "sinfo"))
    assert "--sprio is missing" in said
    assert "sprio -h -o '%i|%r|%Y|%S|' > sprio.txt" in said
    assert "--sacct has no effect without" in refuse("advise", *options(files, "sacct"))


def test_order_by_predictions_is_an_order(run: Command, files: Path) -> None:
    shown = run("advise", *options(files, *TEXTS, "sacct"), "--policy", "SPF-RECENT")
    assert "SPF-RECENT starts" in shown
