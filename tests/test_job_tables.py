"""Tables of jobs, CSV and Parquet, and logs in SWF, on machines of nodes."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from hpcgym import Machine
from hpcgym.base.errors import TraceError
from hpcgym.core.columns import NODE_COLUMNS
from hpcgym.machine import NodeType, Partition, SwfPartitions
from hpcgym.trace import check_log, clean, load_with_report, load_workload, read_log, read_swf
from hpcgym.trace.clean import CANNOT_RUN
from hpcgym.trace.swf import FIELDS, SwfLog

MACHINE = Machine(
    (NodeType(4, cpus=8, memory_mb=1000), NodeType(2, cpus=16, gpus=2)),
    (Partition("batch", "0-3", max_time_s=500), Partition("gpu", "4-5", max_nodes=1)),
)

TABLE = """\
job_id,submit_time,run_time,requested_time,chunks,cpus,gpus,memory_mb,spread,exclusive,partition,user,queue
11,70,5,20,2,4,0,50,true,False,batch,ann,3
12,60,50,60,1,8,1,,1,0,gpu,bob,2
13,80,7,60,3,,,,,TRUE,,ann,

14,90,7,60,1,,,,,,,,1
"""

NEEDED = "job_id,submit_time,run_time,requested_time,chunks"


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a file and returns its path."""

    def put(text: str, name: str = "jobs.csv") -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return put


def test_a_table_becomes_a_workload_with_its_requests(write: Callable[..., Path]):
    jobs = load_workload(write(TABLE), machine=MACHINE)
    assert (jobs.name, jobs.machine_processors, jobs.time_offset) == ("jobs", 64, 60)
    assert jobs.job_id.tolist() == [12, 11, 13, 14]
    assert jobs.submit_time.tolist() == [0, 10, 20, 30]
    assert jobs.run_time.tolist() == [50, 5, 7, 7]
    assert jobs.requested_time.tolist() == [60, 20, 60, 60]
    assert jobs.processors.tolist() == [8, 8, 3, 1]
    asked = jobs.columns()
    assert asked["chunks"].tolist() == [1, 2, 3, 1]
    assert asked["gpus"].tolist() == [1, 0, 0, 0]
    assert asked["memory_mb"].tolist() == [0, 50, 0, 0]
    assert asked["spread"].tolist() == [True, True, False, False]
    assert asked["exclusive"].tolist() == [False, False, True, False]
    assert asked["partition"].tolist() == [1, 0, 0, 0]
    assert jobs.user.tolist() == [2, 1, 1, -1]


def test_users_and_queues_are_numbers_or_are_numbered(write: Callable[..., Path]):
    log = read_log(write(TABLE))
    assert log.records["queue"].tolist() == [3, 2, -1, 1]
    assert log.records["user"].tolist() == [1, 2, 1, -1]
    assert log.records["executable"].tolist() == [-1] * 4
    assert list(log.records.columns) == list(FIELDS)


def test_partitions_whose_names_are_numbers_are_found_beside_empty_cells(
    write: Callable[..., Path],
):
    machine = Machine((NodeType(2, 4),), (Partition("0", "0"), Partition("1", "1")))
    path = write(f"{NEEDED},partition,spread\n1,0,1,1,1,1,1\n2,0,1,1,1,,\n3,0,1,1,1,0,0\n")
    asked = load_workload(path, machine=machine).columns()
    assert asked["partition"].tolist() == [1, 0, 0]
    assert asked["spread"].tolist() == [True, False, False]


def test_jobs_that_must_not_be_killed_are_named_and_an_empty_cell_is_true(
    write: Callable[..., Path],
):
    path = write(f"{NEEDED},requeue\n1,0,1,1,1,false\n2,0,1,1,1,\n3,0,1,1,1,1\n")
    jobs = load_workload(path, machine_processors=1)
    assert jobs.requeue is not None
    assert jobs.requeue.tolist() == [False, True, True]
    assert load_workload(write(f"{NEEDED}\n1,0,1,1,1\n"), machine_processors=1).requeue is None


def test_a_recorded_start_is_a_wait_and_never_before_the_submission(write: Callable[..., Path]):
    rows = "1,10,1,1,1,{}\n2,20,1,1,1,\n3,30.5,1,1,1,-1\n4,40,1,1,1,40\n"
    log = read_log(write(f"{NEEDED},start_time\n{rows.format(17)}"))
    assert log.records["wait_time"].tolist() == [7, -1, -1, 0]
    path = write(f"{NEEDED},start_time\n{rows.format(9)}")
    with pytest.raises(TraceError, match=r":2: start_time is 9(\.0)?, before submit_time, 10"):
        read_log(path)
    assert len(read_log(path, on_bad_line="drop")) == 3
    with pytest.raises(TraceError, match="wait_time and start_time say one thing; give one"):
        read_log(write(f"{NEEDED},start_time,wait_time\n1,10,1,1,1,17,7\n"))


def test_the_largest_numbers_are_read_to_the_digit(write: Callable[..., Path]):
    most = 2**53 - 1
    path = write(
        f"{NEEDED},cpus,user,partition\n{most},0,1,1,{most},,{most},{2**53 + 1}\n"
        f"{most - 1},0,1,1,3,{most // 3},,01\n{-most},0.5,1,1,1,,,\n"
    )
    log = read_log(path)
    assert log.records["job_id"].tolist() == [most, most - 1, -most]
    assert log.records["requested_processors"].tolist() == [most, most // 3 * 3, 1]
    assert log.records["user"].tolist() == [most, -1, -1]
    assert log.requests is not None
    assert log.requests["partition"].tolist() == [str(2**53 + 1), "01", ""]


def test_rows_whose_processors_are_beyond_a_log_are_left_out_where_wanted(
    write: Callable[..., Path],
):
    path = write(f"{NEEDED},cpus\n1,0,1,1,{2**52},{2**52}\n2,0,1,1,2,3\n3,0,1,1,{2**52},2\n")
    log = read_log(path, on_bad_line="drop")
    assert [bad.number for bad in log.bad_lines] == [2, 4]
    assert log.records["requested_processors"].tolist() == [6]


def test_the_needed_columns_suffice_in_any_order(write: Callable[..., Path]):
    path = write("chunks, job_id ,requested_time,run_time,submit_time\n2,1,9,8,7\n")
    jobs = load_workload(path, machine=MACHINE)
    assert jobs.processors.tolist() == [2] and jobs.user.tolist() == [-1]
    assert (jobs.run_time.tolist(), jobs.requested_time.tolist()) == ([8], [9])


def test_times_with_decimals_are_rounded_and_missing_ones_cleaned(write: Callable[..., Path]):
    path = write(f"{NEEDED}\n1,0,4.6,10,1\n2,1,-1,10,1\n3,2,,10,1\n4,3,9,,1\n5,4,9,-1,1\n")
    jobs, report = load_with_report(path, machine=MACHINE, missing_request="max")
    assert jobs.run_time.tolist() == [5, 9, 9] and jobs.requested_time.tolist() == [10, 10, 10]
    assert (report.count("decimals"), report.count("no run time")) == (1, 2)
    assert report.count("no requested time") == 2


def test_on_counted_processors_what_a_table_asks_of_nodes_is_reported(write: Callable[..., Path]):
    jobs, report = load_with_report(write(TABLE), machine_processors=9)
    assert jobs.machine is None and jobs.processors.tolist() == [8, 8, 3, 1]
    assert report.count("stated in the log") == 3
    with pytest.raises(TraceError, match="or its nodes"):
        load_workload(write(TABLE))


WRONG = {
    "text": (f"{NEEDED}\n1,2,3,4,5\n2,2,3,4,x\n", ":3: chunks is 'x'; allowed: whole numbers from"),
    "decimals": (f"{NEEDED}\n1,2,3,4,1.5\n", ":2: chunks is '1.5'; allowed: whole numbers from 1"),
    "empty": (f"{NEEDED}\n1,,3,4,1\n", ":2: submit_time is empty; allowed: seconds from 0"),
    "short": (f"{NEEDED}\n1,2,3,4\n", ":2: chunks is empty"),
    "negative": (f"{NEEDED}\n1,-2,3,4,1\n", ":2: submit_time is '-2'; allowed: seconds from 0"),
    "huge": (f"{NEEDED}\n1,2,3,4,99999999999999999999\n", ":2: chunks is '99999999999999999999'"),
    "beyond float64": (
        f"{NEEDED}\n1,2,3,4,1\n9007199254740993,2,3,4,1\n,2,3,4,1\n",
        ":3: job_id is '9007199254740993'; allowed: whole numbers from -9007199254740991 to 90071",
    ),
    "product beyond int64": (
        f"{NEEDED},cpus\n1,2,3,4,2147418113,8590196740\n",
        ":2: chunks is 2147418113, cpus is 8590196740; allowed: less than 9007199254740992 cpus in",
    ),
    "product of 0 in int64": (
        f"{NEEDED},cpus\n1,2,3,4,1,1\n2,2,3,4,4503599627370496,4503599627370496\n",
        ":3: chunks is 4503599627370496, cpus is 4503599627370496; allowed: less than 90071992547",
    ),
    "decimal comma": (
        f"{NEEDED.replace(',', ';')}\n1;2;3,5;4;1\n",
        ":2: run_time is '3,5', with a decimal comma, where a point is read; allowed: seconds",
    ),
    "infinite": (f"{NEEDED}\n1,2,inf,4,1\n", ":2: run_time is 'inf'"),
    "after a blank line": (f"{NEEDED}\n\n1,2,3,4,0\n", ":3: chunks is '0'"),
    "truth": (f"{NEEDED},spread\n1,2,3,4,1,maybe\n", ":2: spread is 'maybe'; allowed: true, false"),
    "many": (f"{NEEDED}\n1,2,3,4,0\n1,2,3,4,0\n", ":2: chunks is '0'; allowed: whole numbers from"),
    "long": (f"{NEEDED}\n1,2,3,4,5\n1,2,3,4,5,6\n", ":3: 6 values, yet the header has 5 names"),
    "all long": (f"{NEEDED}\n1,2,3,4,5,6\n", ": the rows have more values than the header has"),
    "unknown": (f"{NEEDED},memory\n1,2,3,4,5,6\n", ": unknown column 'memory'; did you mean"),
    "missing": ("job_id,chunks\n1,2\n", ": the columns submit_time, run_time, requested_time are"),
    "twice": (f"{NEEDED},chunks\n1,2,3,4,5,6\n", ": unknown column 'chunks.1'; did you mean"),
    "no row": (f"{NEEDED}\n", ": no job in this file"),
    "nothing": ("", ": the file is empty"),
    "partition": (
        f"{NEEDED},partition\n1,2,3,4,1,\n2,2,3,4,1,bach\n",
        ":3: unknown partition 'bach'",
    ),
}


@pytest.mark.parametrize(("text", "message"), WRONG.values(), ids=WRONG)
def test_an_error_names_file_line_and_column(text: str, message: str, write: Callable[..., Path]):
    path = write(text)
    with pytest.raises(TraceError) as caught:
        load_workload(path, machine=MACHINE)
    assert f"{path}{message}" in str(caught.value)


@pytest.mark.parametrize("name", ["jobs.csv", "jobs.parquet", "jobs.csv.gz"])
def test_a_file_that_is_no_table_is_an_error_that_names_it(name: str, tmp_path: Path):
    path = tmp_path / name
    with pytest.raises(TraceError, match="no such file"):
        load_workload(path)
    path.write_bytes(b"\xff\xfe\x00\x01" * 9)
    with pytest.raises(TraceError, match=name):
        load_workload(path)


def test_rows_with_an_error_are_left_out_where_wanted(write: Callable[..., Path]):
    text = f"{NEEDED},partition\n1,2,3,4,x,batch\n2,2,3,4,1,batch\n3,y,3,4,1,gpu\n4,2,3,4,1,gpo\n"
    log = read_log(write(text), on_bad_line="drop")
    assert [bad.number for bad in log.bad_lines] == [2, 4]
    assert log.records["job_id"].tolist() == [2, 4]
    with pytest.raises(TraceError, match=r"jobs\.csv:5: unknown partition 'gpo'; did you mean 'gp"):
        clean(log, machine=MACHINE)
    with pytest.raises(TraceError, match='allowed: "raise", "drop"'):
        read_log(write(text), on_bad_line="dorp")


def test_a_table_can_be_checked_like_a_log(write: Callable[..., Path]):
    found = check_log(read_log(write(TABLE)), machine_processors=64)
    assert found.cleaning is not None and found.cleaning.jobs == 4


def test_parquet_gives_the_same_as_csv(write: Callable[..., Path], tmp_path: Path):
    pytest.importorskip("pyarrow", reason="reading Parquet needs pyarrow")
    path = write(TABLE)
    frame = pd.read_csv(path).astype({"gpus": "Int64", "memory_mb": "float32"})
    frame.to_parquet(tmp_path / "jobs.parquet")
    one, other = (load_workload(p, machine=MACHINE) for p in (path, tmp_path / "jobs.parquet"))
    assert one.to_frame().equals(other.to_frame())
    frame.loc[2, "chunks"] = 0
    frame.to_parquet(tmp_path / "jobs.parquet")
    with pytest.raises(TraceError, match=r"jobs\.parquet: row 3: chunks is '0'"):
        load_workload(tmp_path / "jobs.parquet", machine=MACHINE)
    frame.assign(chunks=1, submit_time=pd.Timestamp(0)).to_parquet(tmp_path / "jobs.parquet")
    with pytest.raises(TraceError, match="row 1: submit_time is '1970-01-01 00:00:00'; allowed: s"):
        load_workload(tmp_path / "jobs.parquet", machine=MACHINE)


def test_whole_numbers_of_parquet_beside_empty_cells_are_not_rounded(tmp_path: Path):
    pyarrow = pytest.importorskip("pyarrow", reason="reading Parquet needs pyarrow")
    columns = {key: [1, 2] for key in NEEDED.split(",")} | {"partition": [2**53 + 1, None]}
    path = tmp_path / "jobs.parquet"

    def log_with(**more: list[Any]) -> SwfLog:
        pyarrow.parquet.write_table(pyarrow.table(columns | more), path)
        return read_log(path)

    asked = log_with().requests
    assert asked is not None and asked["partition"].tolist() == [str(2**53 + 1), ""]
    with pytest.raises(TraceError, match=r"row 2: job_id is '9007199254740993'; allowed: whole"):
        log_with(job_id=[1, 2**53 + 1])
    with pytest.raises(TraceError, match=r"jobs\.parquet: user has cells of type list<.*one value"):
        log_with(user=[[1], [2]])


def test_parquet_without_pyarrow_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    path = tmp_path / "jobs.parquet"
    path.write_bytes(b"PAR1")
    with pytest.raises(TraceError, match=r"pyarrow, which is not.*'hpcgym\[tables\]'"):
        load_workload(path)


# --- Logs in SWF ----------------------------------------------------------------------------------

LOG = """\
; MaxProcs: 64
1 0 -1 10 4 -1 -1 4 20 1024 1 -1 -1 -1 1 7 -1 -1
; a comment
2 1 -1 10 2 -1 -1 2 20 1025 1 -1 -1 -1 2 8 -1 -1

3 2 -1 10 2 -1 -1 2 20 -1 1 -1 -1 -1 1 7 -1 -1
4 3 -1 10 2 -1 -1 2 20 0 1 -1 -1 -1 1 9 -1 -1
"""


def mapped(*names: tuple[int, str], field: Any = "partition") -> Machine:
    """Return the machine with partitions for numbers of a log."""
    return Machine(MACHINE.nodes, MACHINE.partitions, SwfPartitions(names, field))


def test_a_record_asks_for_chunks_of_one_cpu_in_the_first_partition(write: Callable[..., Path]):
    jobs = load_workload(write(LOG, "log.swf"), machine=MACHINE)
    asked = jobs.columns()
    assert asked["chunks"].tolist() == jobs.processors.tolist() == [4, 2, 2, 2]
    assert not any(asked[key].any() for key in NODE_COLUMNS if key != "chunks")


def test_memory_of_a_record_is_rounded_up_where_it_is_asked_for(write: Callable[..., Path]):
    path = write(LOG, "log.swf")
    jobs, report = load_with_report(path, machine=MACHINE, requested_memory=True)
    assert jobs.columns()["memory_mb"].tolist() == [1, 2, 0, 0]
    assert report.count("no requested memory") == 1
    for options in ({"machine_processors": 4}, {}):
        with pytest.raises(TraceError, match="requested_memory is for logs in SWF on a machine of"):
            load_workload(path, requested_memory=True, **options)
    with pytest.raises(TraceError, match="tables of jobs have a column memory_mb"):
        load_workload(write(TABLE), machine=MACHINE, requested_memory=True)


@pytest.mark.parametrize(
    ("machine", "partition"),
    [
        (mapped((7, "gpu"), (8, "batch"), (9, "gpu")), [1, 0, 1, 1]),
        (mapped((1, "batch"), (2, "gpu"), field="queue"), [0, 1, 0, 0]),
    ],
)
def test_numbers_of_a_record_name_its_partition(
    machine: Machine, partition: list[int], write: Callable[..., Path]
):
    jobs = load_workload(write(LOG, "log.swf"), machine=machine)
    assert jobs.columns()["partition"].tolist() == partition


def test_an_unmapped_number_is_an_error_with_its_line(write: Callable[..., Path]):
    machine = mapped((7, "gpu"), (8, "batch"))
    with pytest.raises(TraceError) as caught:
        load_workload(write(LOG, "log.swf"), machine=machine)
    assert "log.swf:7: partition 9 has no partition of the machine" in str(caught.value)
    assert "maps 7, 8 (1 such jobs)" in str(caught.value)
    broken = write(LOG.replace("2 1 -1", "x 1 -1"), "log.swf")
    with pytest.raises(TraceError, match=r"log\.swf:7: partition 9"):
        clean(read_swf(broken, on_bad_line="drop"), machine=machine)
    whole = read_swf(write(LOG, "log.swf"))
    with pytest.raises(TraceError, match="memory: row 4: partition 9"):
        clean(SwfLog("memory", None, (), whole.records), machine=machine)


def test_jobs_that_the_machine_can_never_run_are_dropped_and_counted_by_the_rule(
    write: Callable[..., Path],
):
    rows = ["1,0,1,501,1,1", "2,0,1,500,1,1", "3,0,1,9,9,4", "4,0,1,9,5,8", "5,0,1,9,70,1"]
    path = write(f"{NEEDED},cpus\n" + "\n".join(rows) + "\n6,0,1,9,3,8\n")
    jobs, report = load_with_report(path, machine=MACHINE)
    assert jobs.job_id.tolist() == [2, 6]
    assert (report.count("larger than the machine"), report.count(CANNOT_RUN)) == (1, 3)
    assert "job 1 asks for 501 s; partition 'batch' allows 500 s" in str(report)
    assert jobs.source_row is not None and jobs.source_row.tolist() == [1, 5]
    split = Machine(
        (NodeType(2, 8, group="a"), NodeType(2, 8, group="b"), *MACHINE.nodes[1:]),
        MACHINE.partitions,
    )
    for placement, n_refused in (("lowest", 3), ("local", 4)):
        found = load_with_report(path, machine=split, placement=placement)[1]
        assert found.count(CANNOT_RUN) == n_refused


def test_the_machine_and_another_size_contradict_each_other(write: Callable[..., Path]):
    with pytest.raises(TraceError, match="63 processors are stated, yet the nodes"):
        load_workload(write(TABLE), machine=MACHINE, machine_processors=63)
    jobs = load_workload("tiny", machine=MACHINE)
    assert np.array_equal(jobs.submit_time, load_workload("tiny").submit_time)
    assert jobs.machine is MACHINE


def _frame() -> pd.DataFrame:
    """Jobs in numbers, one without a request."""
    return pd.DataFrame(
        {
            "job_id": [7, 8, 9],
            "submit_time": [0, 60, 120],
            "wait_time": [5, 90_000, 0],
            "run_time": [7200, 100, 0],
            "requested_time": [86_400, None, 3600],
            "chunks": [8, 1, 2],
            "user": ["ann", "NaN", "ben"],
        }
    )


def _alike(path: Path, expected: SwfLog) -> None:
    """Hold that a file has the same jobs, and the same names of users."""
    log = read_log(path)
    pd.testing.assert_frame_equal(log.records, expected.records, check_dtype=False)
    assert log.named("user").tolist() == expected.named("user").tolist()


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_tables_saved_by_pandas_are_read(separator: str, write: Callable[..., Path]):
    """An index without a name, decimals, differences of times, `NaN`, other separators."""
    frame = _frame()
    expected = read_log(write(frame.to_csv(index=False), "plain.csv"))
    spans = {
        key: pd.to_timedelta(frame[key], unit="s")
        for key in ("wait_time", "run_time", "requested_time")
    }
    floats = frame.assign(chunks=frame["chunks"].astype(float), job_id=frame["job_id"] + 0.0)
    twice = frame.reset_index().rename(columns={"index": "Unnamed: 0"})
    for table in (frame, floats, frame.assign(**spans), twice):
        _alike(write(table.to_csv(sep=separator), "jobs.csv"), expected)
    _alike(write(frame.to_csv(na_rep="NaN", sep=separator), "jobs.csv"), expected)
    python = frame["run_time"].map(lambda seconds: str(pd.Timedelta(seconds, "s").to_pytimedelta()))
    _alike(write(frame.assign(run_time=python).to_csv(sep=separator), "jobs.csv"), expected)


def test_parquet_with_an_index_and_differences_of_times_is_read(
    write: Callable[..., Path], tmp_path: Path
):
    pytest.importorskip("pyarrow")
    frame = _frame()
    expected = read_log(write(frame.to_csv(index=False), "plain.csv"))
    typed = frame.assign(run_time=pd.to_timedelta(frame["run_time"], unit="s"))
    typed.insert(0, "Unnamed: 0", range(3))
    typed.set_index(pd.Index([4, 5, 6])).to_parquet(tmp_path / "jobs.parquet")
    _alike(tmp_path / "jobs.parquet", expected)


def test_a_column_without_a_name_that_says_something_is_an_error(write: Callable[..., Path]):
    text = f"{NEEDED},\n1,0,9,9,1,\n"
    assert len(read_log(write(text, "empty.csv"))) == 1
    with pytest.raises(TraceError, match="unknown column 'Unnamed: 5'"):
        read_log(write(f"{NEEDED},\n1,0,9,9,1,x\n", "last.csv"))
    with pytest.raises(TraceError, match="unknown column 'Unnamed: 0'"):
        read_log(write(f",{NEEDED}\nx,1,0,9,9,1\n", "first.csv"))


def test_a_span_that_is_none_is_an_error_with_its_line(write: Callable[..., Path]):
    with pytest.raises(TraceError, match=r"jobs\.csv:3: run_time is '-1 days \+23:00:00'; allowed"):
        read_log(write(f"{NEEDED}\n1,0,9,9,1\n2,0,-1 days +23:00:00,9,1\n", "jobs.csv"))


def test_columns_of_others_behind_an_index_are_named(write: Callable[..., Path]):
    """As the tables of Lumos have them: what is unknown is the first column, not the index."""
    text = ",job,user,submit_time,wait_time,run_time\n0,35079,7,1535348017.0,102306,17348.0\n"
    with pytest.raises(TraceError, match=r"unknown column 'job'; did you mean 'job_id'"):
        read_log(write(text, "mira.csv"))
