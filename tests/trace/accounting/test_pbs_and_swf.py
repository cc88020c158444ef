"""Records of PBS and Torque, and logs in SWF that go on after field 18; real ones, too."""

import gzip
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcgym.base.errors import TraceError
from hpcgym.trace import load_workload, read_log
from hpcgym.trace.accounting import read_accounting, write_accounting


def record(kind: str, job: str, **keys: Any) -> str:
    """Print a record as PBS does; "_" in a key of three parts stands for a dot."""
    pairs = (f"{key.replace('List_', 'List.')}={value}" for key, value in keys.items())
    return f"01/05/2026 10:00:00;{kind};{job};{' '.join(pairs)}"


E_RECORD = {
    "user": "ann",
    "group": "staff",
    "account": '"chem lab"',
    "jobname": "a=b|c",
    "queue": "workq",
    "ctime": 100,
    "qtime": 101,
    "etime": 160,
    "start": 200,
    "end": 500,
    "Resource_List_walltime": "01:00:00",
    "Exit_status": 0,
    "resources_used.ncpus": 9,
}


@pytest.mark.parametrize(
    ("asked", "chunks", "cpus", "gpus", "memory_mb", "spread", "exclusive"),
    [
        (
            *({"select": "2:ncpus=16:ngpus=1:mem=64gb", "place": "scatter:excl"}, 2, 16, 1, 65_536),
            *(1, 1),
        ),
        ({"select": "3:ncpus=2:mpiprocs=2:mem=1500kb", "place": "free"}, 3, 2, 0, 2, 0, 0),
        ({"select": "1:ncpus=4+2:ncpus=8:ngpus=2"}, 4, 5, 1, 0, 0, 0),
        ({"select": "1:ncpus=4+2:ncpus=4"}, 3, 4, 0, 0, 0, 0),
        ({"nodes": "2:ppn=8", "mem": "32gb"}, 2, 8, 0, 16_384, 1, 0),
        ({"ncpus": 6, "mem": "3gb"}, 1, 6, 0, 3072, 0, 0),
    ],
)
def test_records_of_pbs_ask_for_chunks_as_their_resources_say(
    tmp_path: Path,
    asked: dict[str, Any],
    chunks: int,
    cpus: int,
    gpus: int,
    memory_mb: int,
    spread: int,
    exclusive: int,
) -> None:
    path = tmp_path / "20260105"
    keys = E_RECORD | {f"Resource_List_{key}": value for key, value in asked.items()}
    path.write_text(record("E", "12.server", **keys) + "\n")
    found = read_accounting(path)
    run = found.runs.iloc[0]
    assert run[["job_id", "submit_time", "wait_time", "run_time"]].tolist() == [12, 160, 40, 300]
    assert run[["requested_time", "user", "group", "queue"]].tolist() == [
        *(3600, "ann", "chem lab", "workq")
    ]
    assert run["executable"] == "a=b|c"
    got = run[["chunks", "cpus", "gpus", "memory_mb", "spread", "exclusive"]].tolist()
    assert got == [chunks, cpus, gpus, memory_mb, bool(spread), bool(exclusive)]


def test_every_record_of_pbs_is_a_run_or_counted(tmp_path: Path) -> None:
    path = tmp_path / "accounting"
    good = E_RECORD | {"Resource_List_ncpus": 1}
    lines = [
        record("Q", "12.server", queue="workq"),
        record("E", "12.server", **good),
        record("E", "13[4].server", **good),
        record("E", "13[].server", **good),
        record("D", "14.server", requestor="ann@host"),
        record("E", "15.server", **(good | {"start": 0})),
        record("E", "16.server", **(good | {"Resource_List_ncpus": "many"})),
        "no record at all",
    ]
    path.write_text("\n".join(lines))
    found = read_accounting(path)
    assert found.runs["job_id"].tolist() == [12, 13]
    assert {reason: one.places for reason, one in found.ledger.left_out.items()} == {
        "record of type Q": [(path, 1)],
        "array as a whole: its tasks are rows of their own": [(path, 4)],
        "record of type D": [(path, 5)],
        "no start": [(path, 6)],
        "ncpus cannot be read": [(path, 7)],
        "no record of PBS": [(path, 8)],
    }


@given(st.lists(st.tuples(*[st.integers(1, 9000)] * 5), min_size=1, max_size=9))
def test_times_and_requests_of_pbs_are_those_of_the_package_pbsparse(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[tuple[int, ...]]
) -> None:
    pbsparse = pytest.importorskip("pbsparse")
    path = tmp_path_factory.mktemp("pbs") / "accounting"
    lines = []
    for job, (submit, wait, run, cpus, limit) in enumerate(drawn):
        times = {
            "ctime": submit,
            "etime": submit,
            "start": submit + wait,
            "end": submit + wait + run,
        }
        keys = E_RECORD | times | {"account": '"chem"', "jobname": f"j{job}"}
        keys |= {"Resource_List_ncpus": cpus, "Resource_List_walltime": f"{limit}:00:30"}
        lines.append(record("E", f"{job}.server", **keys))
    path.write_text("\n".join(lines))
    runs = read_accounting(path).runs.set_index("job_id")
    for line in lines:
        judge = pbsparse.PbsRecord(line, process=True)
        run = runs.loc[int(judge.short_id)]
        assert run["submit_time"] == judge.etime.timestamp()
        assert run["wait_time"] == (judge.start - judge.etime).total_seconds()
        assert run["run_time"] == (judge.end - judge.start).total_seconds()
        assert run["cpus"] == judge.Resource_List["ncpus"]
        assert run["requested_time"] == judge.Resource_List["walltime"]
        assert (run["user"], run["executable"]) == (judge.user, judge.jobname)


LINE = "1 100 5 60 4 -1 -1 4 600 -1 1 7 2 -1 3 -1 -1 -1"


def test_long_lines_of_swf_name_users_and_queues_and_ask_for_nodes(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    named = "2 110 -1 60 -1 -1 -1 3 -1 -1 1 user_A staff -1 -1 -1 -1 -1 0.5 more"
    text = ["; UnixStartTime: 1000", "; MaxProcs: 64", f"{LINE} {{9,9}} q_1d 2:ppn=2:x86", named]
    text += ["3 120 5 -7 4 -1 -1 4 600 -1 1 7 2 -1 3 -1 -1 -1", "4 5 6 7", LINE.replace("600", "x")]
    path.write_text("\n".join(text))
    found = read_accounting(path)
    runs = found.runs.set_index("job_id")
    assert runs.loc[1, ["submit_time", "wait_time", "user", "queue"]].tolist() == [
        *(1100, 5, "7", "q_1d")
    ]
    assert runs.loc[1, ["chunks", "cpus", "spread"]].tolist() == [2, 2, True]
    assert runs.loc[2, ["submit_time", "wait_time", "user", "chunks"]].tolist() == [
        *(1110, -1, "user_A", 3)
    ]
    assert (found.machine_processors, found.is_guess) == (64, False)
    assert {reason: one.places for reason, one in found.ledger.left_out.items()} == {
        "run time below 0": [(path, 5)],
        "fewer than 18 fields": [(path, 6)],
        "requested_time is no number": [(path, 7)],
    }
    write_accounting(tmp_path / "out.swf", found)
    workload = load_workload(tmp_path / "out.swf")
    assert workload.user.tolist() == [1, 2]  # numbers of names
    assert workload.unix_start == 1100


@pytest.mark.parametrize("held", ["4", "-1"])
def test_long_lines_of_0_s_without_allocated_processors_are_no_runs(
    tmp_path: Path, held: str
) -> None:
    """Where no line states any, only cancelled ones are none."""
    path = tmp_path / "log.txt"
    lines = [f"1 100 5 60 {held} -1 -1 4 600 -1 1 7 2 -1 3 -1 -1 -1 0.5"]
    for job, status in enumerate((0, 1, 5), start=2):
        lines.append(f"{job} 100 5 0 -1 -1 -1 4 600 -1 {status} 7 2 -1 3 -1 -1 -1 0.5")
    path.write_text("\n".join(lines))
    found = read_accounting(path)
    assert found.runs["job_id"].tolist() == ([1] if held == "4" else [1, 2, 3])
    assert found.ledger.left_out["never held processors"].rows == 4 - len(found.runs)


@pytest.fixture
def modern() -> Path:
    """The folder of real logs."""
    folder = os.environ.get("HPCGYM_MODERN")
    if not folder:
        pytest.skip("HPCGYM_MODERN is not set: no real logs of today's clusters")
    return Path(folder)


def test_a_log_in_swf_is_recognised_behind_a_long_header(tmp_path: Path) -> None:
    file = tmp_path / "long.swf"
    header = [f"; Note: line {number} of many" for number in range(200)]
    file.write_text("\n".join([*header, "1 0 5 10 2 -1 -1 2 20 -1 1 1 1 1 1 1 -1 -1"]))
    found = read_accounting(file)
    assert found.formats == ((str(file), "SWF"),)
    assert found.runs[["submit_time", "wait_time", "run_time"]].to_numpy().tolist() == [[0, 5, 10]]


def test_accounting_without_a_run_says_why(tmp_path: Path) -> None:
    file = tmp_path / "none.swf"
    file.write_text(" 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n")
    with pytest.raises(TraceError, match="no row is an attempt: 1 no processors"):
        read_accounting(file)


def test_every_row_of_cirrus_is_read(modern: Path) -> None:
    """An export with commas, times as seconds; 199 jobs were cancelled before they started."""
    path = modern / "cirrus" / "2024_Q1_CPU-sacct-subset.csv.gz"
    found = read_accounting(path)
    counts = {reason: one.rows for reason, one in found.ledger.left_out.items()}
    assert counts == {"cancelled before its start": 199}
    rows = [line.split(",") for line in gzip.decompress(path.read_bytes()).decode().split("\n")]
    ran = [row for row in rows[1:] if len(row) == 8 and row[4] != "None"]
    assert len(found.runs) == len(ran) == found.ledger.rows - 199
    waits = [int(row[4]) - int(row[3]) for row in ran]
    assert found.runs["wait_time"].sum() == sum(waits)
    assert found.runs["run_time"].sum() == sum(int(row[6]) for row in ran)
    assert found.runs["chunks"].sum() == sum(int(row[1]) for row in ran)
    assert found.runs["job_id"].is_unique


@pytest.mark.parametrize("further", ["x", "1 2 3", "a b c d"])
def test_an_import_reads_the_fields_that_a_log_has_and_says_which_it_does_not(
    tmp_path: Path, further: str
) -> None:
    path = tmp_path / "long.swf"
    path.write_text(f"; MaxProcs: 4\n1 0 5 9 4 -1 -1 4 20 -1 1 1 1 1 7 1 -1 0 {further}\n")
    found = read_accounting(path)
    assert found.runs["queue"].tolist() == ["7"]
    assert read_log(path).records["queue"].tolist() == [7]
    assert found.ledger.notes == {"longer than 18 fields: those after are not read": 1}


@pytest.mark.long
def test_every_line_of_cerit_is_read(modern: Path) -> None:
    path = modern / "cerit-2013" / "wagap-2013.swf.gz"
    found = read_accounting(path)
    counts = {reason: one.rows for reason, one in found.ledger.left_out.items()}
    assert counts == {"run time below 0": 2}
    assert len(found.runs) == 17_898
    lines = [line.split() for line in gzip.decompress(path.read_bytes()).decode().splitlines()]
    ran = {int(line[0]): line for line in lines if int(line[3]) >= 0}
    processors = found.runs["chunks"] * found.runs["cpus"]
    for job, queue, asked in zip(
        found.runs["job_id"], found.runs["queue"], processors, strict=True
    ):
        assert (queue, asked) == (ran[job][19], int(ran[job][7]))


@pytest.mark.parametrize("name", ["PBSeasy.swf", "PBSstrict.swf"])
def test_logs_of_pbs_with_names_of_users_are_read(modern: Path, name: str) -> None:
    path = modern / "pbs-fairshare" / name
    found = read_accounting(path)
    lines = [line.split() for line in path.read_text().split("\n") if line[:1].isdigit()]
    assert set(found.runs["user"]) == {"user_A", "user_B"}
    assert np.array_equal(np.sort(found.runs["wait_time"]), sorted(int(line[2]) for line in lines))


def test_fields_beyond_18_are_said_and_the_job_before_a_job_stays(tmp_path: Path) -> None:
    """From the log at once, and from a table and a log that an import of it wrote."""
    lines = [
        "1 0 0 100 1 -1 -1 1 100 -1 1 1 1 1 1 1 -1 0",
        "2 0 100 100 1 -1 -1 1 90 -1 1 1 1 1 1 1 1 7",
    ]
    workloads = []
    for n_fields, further in ((18, ""), (20, " dag-1 1"), (19, " 5"), (23, " a b c d e")):
        path = tmp_path / f"of-{n_fields}.swf"
        path.write_text("".join(f"{line}{further}\n" for line in lines))
        log = read_log(path)
        said = f"SWF of {n_fields} fields: those after field 18 are not read"
        assert log.reading == (said if n_fields > 18 else "")
        found = read_accounting(path)
        for name in ("jobs.csv", "out.swf"):
            write_accounting(tmp_path / name, found, force=True)
        options = {"machine_processors": 4, "dependencies": True}
        workloads += [
            load_workload(path, **options),
            load_workload(tmp_path / "out.swf", **options),
        ]
        workloads.append(load_workload(tmp_path / "jobs.csv", machine_processors=4))
    for workload in workloads:
        assert (workload.after.tolist(), workload.think_time.tolist()) == ([-1, 0], [0, 7])
        assert workload.requested_time.tolist() == [100, 90]


def test_one_job_before_all_and_before_itself_is_none_before_any(tmp_path: Path) -> None:
    """As in the log of CERIT, where fields 17 and 18 are 1 in every row."""
    path = tmp_path / "log.swf"
    path.write_text("".join(f"{k}{LINE[1:-6]} 1 1 0\n" for k in (1, 2, 3)))
    found = read_accounting(path)
    assert "after" not in found.runs
    note = "the job before it is the same in all rows: taken to be none"
    assert found.ledger.notes[note] == 3


def test_a_job_after_one_that_is_left_out_is_after_none(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    path.write_text(f"{LINE.replace(' 60 ', ' -1 ')}\n2{LINE[1:-6]} 1 5\n3{LINE[1:-6]} 2 5\n")
    found = read_accounting(path)
    assert found.runs[["job_id", "after", "think_time"]].to_numpy().tolist() == [
        [2, -1, 0],
        [3, 2, 5],
    ]
    assert found.ledger.notes["the job before it is not here once: taken to have ended"] == 1


def test_lines_of_more_fields_are_malformed_beside_lines_of_18(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    path.write_text(f"{LINE}\n{LINE} 7\n")
    with pytest.raises(TraceError, match=r"log\.swf:2: 19 fields where the format has 18"):
        read_log(path)
    found = read_accounting(path)
    assert {reason: each.rows for reason, each in found.ledger.left_out.items()} == {
        "19 fields where the format has 18": 1
    }
    path.write_text(f"{LINE} 7\n{LINE[:-3]}\n")
    with pytest.raises(TraceError, match=r"log\.swf:2: 17 fields where the format has 18"):
        read_log(path)
