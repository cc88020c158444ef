"""`hpcgym simulate`: what it prints and writes, and that bad input loses nothing."""

import gzip
import io
import json
import re
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from hpcgym import load_workload, simulate
from hpcgym.cli import app
from hpcgym.trace import read_swf

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


def test_csv_is_in_the_base_of_the_log(run: Command, log: Path, tmp_path: Path) -> None:
    run("simulate", log, "--output", tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == (
        "job_id,submit_time,start_time,run_time,requested_time,processors,backfilled\n"
        "1,100,100,10,20,4,0\n"
        "2,105,110,30,30,4,0\n"
        "4,112,140,5,10,2,0\n"
    )
    assert names_in(tmp_path) == ["mine.swf", "out.csv"]


@pytest.mark.parametrize("name", ["out.swf", "out.swf.gz"])
def test_swf_is_written_where_the_name_says_so(
    run: Command, log: Path, tmp_path: Path, name: str
) -> None:
    assert f"wrote {tmp_path / name}" in run("simulate", log, "-o", tmp_path / name)
    written = read_swf(tmp_path / name)
    assert written.records["wait_time"].tolist() == [0, 5, 28]
    assert (tmp_path / name).read_bytes().startswith(b"\x1f\x8b") is name.endswith(".gz")


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


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--policy", "SFP"], ["unknown policy 'SFP'", "did you mean 'SPF'"]),
        (["--policy", "q=1,ee=2"], ["unknown feature 'ee'", "did you mean 'e'"]),
        (["--policy", "q=one"], ["weight of q must be a number"]),
        (["--backfill", "esay"], ["did you mean 'easy'"]),
        (["--backfill-order", "SPFF"], ["did you mean 'SPF'"]),
        (["--threshold", "-5"], ["--threshold '-5'", "whole seconds, 0 to", "'none'"]),
        (["--threshold", "1.5"], ["--threshold '1.5'", "whole seconds"]),
        (["--estimates", "exat"], ["did you mean 'exact'"]),
        (["--correction", "reqtme"], ["did you mean 'reqtime'"]),
        (["--event-semantics", "pys"], ["did you mean 'pyss'"]),
        (["--event-semantics", "pyss", "--no-kill"], ["pyss"]),
        (["--missing-request", "maxx"], ["did you mean 'max'"]),
        (["--on-bad-line", "dorp"], ["on_bad_line", "drop"]),
        (["--processors", "0"], ["processors must be a whole number from 1"]),
        (["--processors", "-4"], ["processors must be a whole number from 1"]),
        (["--processors", "1"], ["no job remains"]),
        (["--max-request", "0"], ["max_request"]),
        (["--top", "3"], ["--top 3", "with --by"]),
        (["--by", "user", "--top", "0"], ["--top 0", "at least 1"]),
        (["--format", "tabel"], ["did you mean 'table'", "markdown"]),
        (["--by", "usr"], ["did you mean 'user'"]),
        (["--by", "partition"], ["partitions need a machine of nodes", "--machine"]),
        (["--by", "resource"], ["need a machine of nodes", "--machine"]),
        (["--output", "out.txt"], ["must end in .batsim.csv, .csv, .parquet, .swf or .swf.gz"]),
        (["--output", "/proc/folder/out.csv"], ["cannot make this folder"]),
    ],
)
def test_wrong_options_are_one_clear_line(
    refuse: Command, log: Path, tmp_path: Path, arguments: list[str], words: list[str]
) -> None:
    message = refuse("simulate", log, *arguments)
    assert all(word in message for word in words), message


def test_unknown_log_is_answered_with_the_nearest(refuse: Command) -> None:
    assert "did you mean 'tiny'" in refuse("simulate", "tinny")
    assert "no such file" in refuse("simulate", "no/such/log.swf")


def test_folder_in_place_of_a_log_is_called_one(refuse: Command, tmp_path: Path) -> None:
    assert f"{tmp_path}: is a folder" in refuse("simulate", tmp_path)
    assert f"{tmp_path}: is a folder" in refuse("evaluate", "--log", tmp_path)


@pytest.mark.long
def test_broken_logs_are_refused_by_name_and_line(refuse: Command, tmp_path: Path) -> None:
    whole = gzip.compress(LOG.encode() * 50)
    broken = {
        "short.swf": LOG.replace("1 -1 -1 -1 -1 -1 -1\n", "1 -1\n", 1).encode(),
        "word.swf": LOG.replace("105", "1o5").encode(),
        "binary.swf": bytes(range(256)) * 20,
        "truncated.swf.gz": whole[: len(whole) // 2],
        "notgzip.swf.gz": b"\x1f\x8bthis is no gzip",
        "empty.swf": b"",
        "comments.swf": b"; MaxProcs: 4\n",
    }
    for name, content in broken.items():
        (tmp_path / name).write_bytes(content)
        message = refuse("simulate", tmp_path / name, "-o", tmp_path / "out.csv")
        assert name in message
        assert not (tmp_path / "out.csv").exists()
    assert f"{tmp_path / 'short.swf'}:2" in refuse("simulate", tmp_path / "short.swf")
    assert f"{tmp_path / 'word.swf'}:3" in refuse("simulate", tmp_path / "word.swf")


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


@contextmanager
def almost_full_disk() -> Iterator[None]:
    """Let no file grow beyond 50 bytes, as on a disk with as much space left.

    The tests' output may be such a file, so that pytest must write nothing inside the block.
    """
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.parametrize("name", ["out.csv", "out.swf", "out.swf.gz"])
def test_full_disk_is_a_clear_error_and_keeps_the_old_file(
    refuse: Command, log: Path, tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_text("precious")
    simulate(load_workload(log))  # compiled code goes to a cache of its own
    with almost_full_disk():
        message = refuse("simulate", log, "--output", tmp_path / name, "--force")
    assert "writing failed" in message
    assert "untouched" in message
    assert (tmp_path / name).read_text() == "precious"
    assert names_in(tmp_path) == sorted(["mine.swf", name])


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


@pytest.mark.parametrize(
    ("outage", "table", "said"),
    [
        ("104,120,2", "", "counts processors; of nodes name those"),
        ("104,120,nodes=lefd", "", "did you mean 'left'"),
        ("104,120,nodes=2-4", "", "there is no 4; allowed are 0-3"),
        ("104,x,nodes=2", "", "write FROM,TO,COUNT"),
        ("104,120,nodes=2", "[[outage]]\nfrom = 1\n", "machine.toml: [[outage]] 1: to is missing"),
    ],
)
def test_an_outage_of_nodes_that_cannot_be_is_refused(
    refuse: Command, log: Path, tmp_path: Path, outage: str, table: str, said: str
) -> None:
    machine = nodes_file(tmp_path, table)
    assert said in refuse("simulate", log, "--machine", machine, "--outage", outage)


@pytest.mark.parametrize(
    ("outage", "said"),
    [
        ("104,120", "--outage '104,120': write FROM,TO,COUNT"),
        ("104,120,-2", "--outage '104,120,-2': write FROM,TO,COUNT"),
        ("104,104,2", "to must be later than from"),
        ("104,120,5", "outages take 5 processors at 104 s; mine has 4"),
        ("104,120,nodes=1", "names nodes; on counted processors say how many"),
    ],
)
def test_an_outage_that_cannot_be_is_refused(
    refuse: Command, log: Path, outage: str, said: str
) -> None:
    assert said in refuse("simulate", log, "--outage", outage)
