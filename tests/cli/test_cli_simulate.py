"""`hpcgym simulate`: what it prints and writes, and that bad input loses nothing."""

import io
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from hpcgym import load_workload, simulate
from hpcgym.cli import app

Command = Callable[..., str]

LOG = """\
; MaxProcs: 4
 1 100 -1  10  4 -1 -1  4  20 -1  1  1 -1 -1 -1 -1 -1 -1
 2 105 -1  30  4 -1 -1  4  30 -1  1  1 -1 -1 -1 -1 -1 -1
 3 110 -1  -1  1 -1 -1  1  -1 -1  5  2 -1 -1 -1 -1 -1 -1
 4 112 -1   5  2 -1 -1  2  10 -1  1  2 -1 -1 -1 -1 -1 -1
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "mine.swf"
    path.write_text(LOG)
    return path


def test_published_figure_of_easy_can_be_worked_out_from_the_file(
    run: Command, real_log: Callable[[str], Path], tmp_path: Path
) -> None:
    """KTH-SP2, event semantics of pyss: predictsim publishes a mean bsld of 92.5765397336295."""
    options = ("--minimum-run-time", "1", "--event-semantics", "pyss", "-o", tmp_path / "kth.csv")
    assert "28481 of 28489 jobs kept" in run("simulate", real_log("KTH-SP2-1996-2"), *options)
    jobs = pd.read_csv(tmp_path / "kth.csv")
    turnaround_time = jobs["start_time"] - jobs["submit_time"] + jobs["run_time"]
    bsld = (turnaround_time / jobs["run_time"].clip(lower=10)).clip(lower=1)
    assert bsld.mean() == pytest.approx(92.5765397336295, rel=1e-12)
    assert turnaround_time.mean() == pytest.approx(15696.7981812436, rel=1e-12)


def names_in(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_report_and_figures_are_printed(run: Command, log: Path) -> None:
    printed = run("simulate", log)
    assert "mine: 3 of 4 jobs kept" in printed
    assert "no run time" in printed
    assert "mine: FCFS, backfill easy" in printed
    assert "utilisation" in printed
    assert "pp-bsld" in printed


@pytest.mark.parametrize(
    ("arguments", "keywords"),
    [
        (["-p", "saf"], {"policy": "SAF"}),
        (["--policy", "SMITH"], {"policy": "SMITH"}),
        (["--policy", "q=1,e=-0.5,wait=.1"], {"policy": [1, -0.5, 0.1, 0, 0, 0]}),
        (["--backfill", "none"], {"backfill": "none"}),
        (["--backfill-order", "SPF"], {"backfill_order": "SPF"}),
        (["--threshold", "20"], {"threshold": 20}),
        (["--threshold", "0"], {"threshold": 0}),
        (["--threshold", "none"], {}),
        (["--estimates", "exact"], {"estimates": "exact"}),
        (["--estimates", "f-model:f=3,seed=1"], {"estimates": "f-model:f=3,seed=1"}),
        (
            ["--estimates", "recent", "--correction", "tsafrir"],
            {"estimates": "recent", "correction": "tsafrir"},
        ),
        (["--no-kill"], {"kill_at_limit": False}),
        (["--event-semantics", "pyss"], {"event_semantics": "pyss"}),
    ],
)
def test_every_option_reaches_the_simulation(
    run: Command, tmp_path: Path, arguments: list[str], keywords: dict[str, object]
) -> None:
    run("simulate", "tiny", *arguments, "--output", tmp_path / "out.csv")
    expected = simulate(load_workload("tiny"), **keywords)
    assert pd.read_csv(tmp_path / "out.csv")["start_time"].tolist() == expected.start_time.tolist()


def test_orders_of_a_file_reach_the_simulation(run: Command, tmp_path: Path) -> None:
    path, output = tmp_path / "two_orders.py", tmp_path / "out.csv"
    path.write_text("def wide(jobs): return -jobs.q\ndef short(jobs): return jobs.e\n")
    run("simulate", "tiny", "-p", f"{path}:wide", "--backfill-order", f"{path}:short", "-o", output)
    tiny = load_workload("tiny")
    wanted = simulate(tiny, "LQF", backfill_order="SPF").start_time
    assert (pd.read_csv(output).start_time == wanted).all()
    assert (wanted != simulate(tiny, "FCFS").start_time).any()


def test_options_of_the_cleaning_reach_it(run: Command, log: Path, tmp_path: Path) -> None:
    log.write_text(LOG.replace("2  10 -1", "2  -1 -1") + "a line that is none\n")
    out = tmp_path / "out.csv"
    clean = ("--on-bad-line", "drop", "--missing-request", "max", "--max-request", "25")
    run("simulate", log, *clean, "--processors", "8", "-o", out)
    frame = pd.read_csv(out)
    assert frame["requested_time"].tolist() == [20, 25, 25]
    assert frame["run_time"].tolist() == [10, 25, 5]
    assert frame["start_time"].tolist() == [100, 105, 112]
    run("simulate", log, "--on-bad-line", "drop", "--missing-request", "drop", "-o", out, "--force")
    assert pd.read_csv(out)["job_id"].tolist() == [1, 2]
    run("simulate", log, "--on-bad-line", "drop", "--minimum-run-time", "6", "-o", out, "--force")
    assert pd.read_csv(out)["job_id"].tolist() == [1, 2]


@pytest.mark.parametrize("by", ["class", "user"])
def test_figures_by_group_follow(run: Command, log: Path, by: str) -> None:
    assert f"By {by}" in run("simulate", log, "--by", by)


def test_users_are_sorted_by_work_and_can_be_cut(run: Command, log: Path) -> None:
    """User 2 has 10 cpu-seconds, user 1 has 160."""
    log.write_text(LOG.replace("-1  1  1 -1", "-1  1  7 -1"))  # users 7, 7, 2
    shown = run("simulate", log, "--by", "user").partition("By user")[2]
    assert [line.split()[0] for line in shown.splitlines()[3:5]] == ["7", "2"]
    cut = run("simulate", log, "--by", "user", "--top", 1).partition("By user")[2]
    assert [line.split()[0] for line in cut.splitlines()[3:]] == ["7", "1"]
    assert "1 of 2 users shown, with 94.1% of the work" in cut
    frame = pd.read_csv(io.StringIO(run("simulate", log, "--by", "user", "--format", "csv")))
    assert frame["user"].tolist() == [7, 2]
    assert frame["max_wait_time"].tolist() == [5.0, 28.0]


def test_classes_state_their_bounds_and_waits_are_in_hours_too(run: Command, log: Path) -> None:
    log.write_text(LOG.replace("-1 -1  4  30", "-1 -1  4  9999"))
    shown = run("simulate", log, "--by", "class")
    assert re.search(r"^1 +0-100 s +2 ", shown, re.MULTILINE)
    assert re.search(r"^3 +1001-10000 s +1 ", shown, re.MULTILINE)
    frame = pd.read_csv(io.StringIO(run("simulate", log, "--by", "class", "--format", "csv")))
    assert frame["requested_time"].tolist() == ["0-100", "1001-10000"]


@pytest.mark.parametrize("how", ["csv", "json", "markdown"])
def test_programs_get_the_table_alone_on_standard_output(
    run: Command, log: Path, tmp_path: Path, how: str
) -> None:
    printed = run("simulate", log, "--format", how, "--output", tmp_path / "out.csv")
    if how == "csv":
        frame = pd.read_csv(io.StringIO(printed))
    elif how == "json":
        frame = pd.DataFrame(json.loads(printed))
    else:
        heads, _, values = printed.splitlines()
        frame = pd.DataFrame([values.split(" | ")], columns=heads.strip("| ").split(" | "))
    assert len(frame) == 1
    assert float(frame["mean_wait_time"][0]) == 11.0
    assert float(frame["max_wait_time"][0]) == 28


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_tables_for_a_person_fit_the_width_there_is(
    log: Path, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    printed = CliRunner().invoke(app, ["simulate", str(log), "--by", "user"]).stdout
    table = printed[printed.index("mine: FCFS") :].splitlines()
    assert max(map(len, table)) <= columns
    assert any("left out" in line for line in table) is (columns < 80)


@pytest.mark.parametrize(
    ("by", "row"),
    [("partition", "all +3 "), ("resource", r"cpus +4 +3.78 +94.44% *\n *gpus +0 +0.00 +-\n")],
)
def test_figures_by_partition_and_resource_follow(
    run: Command, log: Path, tmp_path: Path, by: str, row: str
) -> None:
    machine = tmp_path / "machine.toml"
    machine.write_text("[[nodes]]\ncount = 2\ncpus = 2\n")
    shown = run("simulate", log, "--machine", machine, "--by", by)
    assert re.search(row, shown.partition(f"By {by}")[2]), shown


def test_machine_size_must_be_stated_somewhere(refuse: Command, run: Command, log: Path) -> None:
    log.write_text(LOG.replace("; MaxProcs: 4\n", ""))
    assert "--processors" in refuse("simulate", log)
    run("simulate", log, "--processors", "4")


def test_output_that_exists_is_kept_unless_forced(
    refuse: Command, run: Command, log: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.csv"
    out.write_text("precious")
    assert "exists already" in refuse("simulate", log, "--output", out)
    assert out.read_text() == "precious"
    run("simulate", log, "--output", out, "--force")
    assert out.read_text().startswith("job_id,")


def test_impossible_output_is_refused_before_the_log_is_read(
    refuse: Command, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("no log")
    for out in (tmp_path / "file" / "out.csv", "/proc/folder/out.csv", "/proc/out.csv"):
        message = refuse("simulate", tmp_path / "file", "--output", out)
        assert str(Path(out).parent) in message
    assert names_in(tmp_path) == ["file"]


SHAPES = """\
job_id,processors,requested_time,run_time
4,2,10,5
4,4,4,2
2,4,30,30
2,1,120,120
"""


def test_jobs_choose_among_the_shapes_of_a_file(run: Command, log: Path, tmp_path: Path) -> None:
    """Job 4 comes while 1 runs on the whole machine and 2 waits: wide or narrow, it waits."""
    (tmp_path / "shapes.csv").write_text(SHAPES)
    printed = run(
        "simulate", log, "--shapes", tmp_path / "shapes.csv", "--output", tmp_path / "out.csv"
    )
    assert "1 of 3 jobs chose other processors than the log's" in printed
    jobs = pd.read_csv(tmp_path / "out.csv").set_index("job_id")
    assert jobs.loc[1, "processors"] == 4  # not named in the file: as it is
    assert jobs.loc[2, "run_time"] == 30  # alone on a free machine soon: 30 s beat 120
    assert (jobs.loc[4, "processors"], jobs.loc[4, "run_time"]) == (4, 2)


def test_cost_counts_with_alpha(run: Command, log: Path, tmp_path: Path) -> None:
    (tmp_path / "shapes.csv").write_text(
        "job_id,processors,requested_time,run_time\n1,4,20,10\n1,1,40,30\n"
    )
    words = ("simulate", log, "--shapes", tmp_path / "shapes.csv")
    assert "0 of 3 jobs chose" in run(*words)
    assert "1 of 3 jobs chose" in run(*words, "--alpha", "5")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("job_id,processors\n1,4\n", "shapes.csv:1: no column requested_time, run_time"),
        (SHAPES + "9,1,1,1\n", "shapes.csv:6: mine has no job 9"),
        (SHAPES + "3,1,1,1\n", "shapes.csv:6: mine has no job 3, or it was left out"),
        (SHAPES + "1,wide,1,1\n", "shapes.csv:6: processors must be a whole number, got 'wide'"),
        (SHAPES + "1,4\n", "shapes.csv:6: requested_time must be a whole number, got ''"),
        (SHAPES + "1,9,1,1\n", "job 1 cannot have"),
    ],
)
def test_shapes_that_are_not_understood_are_refused(
    refuse: Command, log: Path, tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "shapes.csv").write_text(text)
    assert said in refuse("simulate", log, "--shapes", tmp_path / "shapes.csv")


def test_shapes_need_requests_as_estimates(refuse: Command, log: Path, tmp_path: Path) -> None:
    (tmp_path / "shapes.csv").write_text(SHAPES)
    words = ("simulate", log, "--shapes", tmp_path / "shapes.csv")
    assert "must be 'requested', got 'exact'" in refuse(*words, "--estimates", "exact")
    assert "alpha must be a number >= 0" in refuse(*words, "--alpha", "-1")
    assert "no such file" in refuse("simulate", log, "--shapes", tmp_path / "none.csv")


OWN_PARTS = """
import hpcgym


class EachThatFits(hpcgym.OwnBackfill):
    def start(self, now):
        free = now.free_processors
        for job in now.queue:
            if job.processors <= free:
                free -= job.processors
                yield job


def half(job):
    return max(job.requested_time // 2, 1)
"""


@pytest.mark.parametrize(("option", "end"), [("backfill", ":EachThatFits"), ("estimates", "")])
def test_mode_and_predictor_of_a_file_schedule_as_in_python(
    tmp_path: Path, option: str, end: str
) -> None:
    parts, output = tmp_path / f"own_{option}.py", tmp_path / "tiny.csv"
    parts.write_text(OWN_PARTS)
    arguments = ["simulate", "tiny", f"--{option}", f"{parts}{end}", "--output", str(output)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    module = sys.modules[f"own_{option}"]
    given = {"backfill": module.EachThatFits, "estimates": module.half}[option]
    wanted = simulate(load_workload("tiny"), **{option: given})
    assert pd.read_csv(output)["start_time"].tolist() == wanted.start_time.tolist()
    assert f"{option} {given.__name__}" in result.stdout


@pytest.mark.parametrize("option", ["backfill", "estimates"])
def test_file_without_a_mode_or_predictor_is_refused(tmp_path: Path, option: str) -> None:
    path = tmp_path / f"no_{option}.py"
    path.write_text("NUMBER = 3")
    result = CliRunner().invoke(app, ["simulate", "tiny", f"--{option}", str(path)])
    assert result.exit_code == 2
    assert re.search(r"no_\w+.py defines no .*; it defines NUMBER$", result.stderr)


def test_outages_on_the_clock_of_the_log_take_jobs_off(
    run: Command, log: Path, tmp_path: Path
) -> None:
    """Job 1 runs from 100 to 110, and 2 of 4 processors are down from 104 to 120."""
    out = ("--output", tmp_path / "out.csv", "--attempts")
    run("simulate", log, "--outage", "104,120,2,104", "--outage", "1000,1001,4", *out)
    rows = pd.read_csv(tmp_path / "out.csv")
    first = rows[rows["job_id"] == 1]
    assert first["start_time"].tolist() == [100, 120]
    assert first["end_time"].tolist() == [104, 130]
    assert first["reason"].tolist() == ["node down", "completed"]


def nodes_file(tmp_path: Path, more: str = "") -> Path:
    """Write a machine of four nodes, and more."""
    path = tmp_path / "machine.toml"
    path.write_text('[[nodes]]\ncount = 4\ncpus = 1\ngroup = "left"\n' + more)
    return path


def test_outages_of_nodes_take_jobs_off_whether_given_or_in_the_file_of_the_machine(
    run: Command, log: Path, tmp_path: Path
) -> None:
    out = ("--output", tmp_path / "out.csv", "--attempts", "--force")
    machine = nodes_file(tmp_path)
    run("simulate", log, "--machine", machine, "--outage", "104,120,nodes=0-1/3,104", *out)
    given = (tmp_path / "out.csv").read_text()
    assert "node down" in given
    table = '[[outage]]\nfrom = 104\nto = 120\nnodes = ["0-1", 3]\nannounced = 104\n'
    run("simulate", log, "--machine", nodes_file(tmp_path, table), *out)
    assert (tmp_path / "out.csv").read_text() == given
