"""Tables of jobs that sites publish with columns of their own, as CSV and as Parquet."""

import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hpcgym.base.errors import OutputError, TraceError
from hpcgym.trace import load_workload, read_log
from hpcgym.trace.accounting import read_accounting, write_accounting

EAGLE = """\
job_id,user,account,partition,qos,wallclock_req,nodes_req,processors_req,gpus_req,mem_req,\
submit_time,start_time,end_time,run_time,state,name
7,u1,a1,short,normal,14400.0,2,72,0,0.0,2019-01-01 08:00:00,2019-01-01 08:01:00,\
2019-01-01 09:01:00,3600.0,COMPLETED,"mesh, fine"
7,u1,a1,short,normal,14400.0,2,72,0,0.0,2019-01-01 08:00:00,2019-01-01 08:01:00,\
2019-01-01 09:01:00,3600.0,COMPLETED,"mesh, fine"
8,u2,a1,gpu,high,90.0,1,18,2,0.0,2019-01-01 08:00:10,,,0.0,CANCELLED,
9,u2,a1,gpu,high,90.0,1,18,2,0.0,2019-01-01 08:00:10,2019-01-01 08:00:10,\
2019-01-01 08:01:40,90.0,TIMEOUT,x
10,u2,a1,gpu
"""
RAPS = """\
job_id,account,node_count,state_current,name,time_submission,time_start,time_end,time_limit
5,p1,128,COMPLETED,a,2024-01-18 00:00:00+00:00,2024-01-18 00:10:00+00:00,\
2024-01-18 01:10:00+00:00,7200
6,p1,2,RUNNING,b,2024-01-18 00:00:00+00:00,2024-01-18 00:10:00+00:00,,7200
"""


LUMOS = """\
,job,user,project,state,gpu_num,cpu_num,node_num,submit_time,wait_time,run_time,wall_time,\
node_hour,new_status
0,35,77,45,0,0,32.0,2.0,1535348017.0,60,300.0,900.0,1.0,Pass
1,36,78,45,0,0,16.0,1.0,1535348020.0,0,40.0,900.0,1.0,Killed
2,37,77,45,228,0,64.0,4.0,1535348030.0,5,50.0,900.0,1.0,Failed
3,38,77,45,0,0,64.0,4.0,1535348030.0,,50.0,900.0,1.0,Pass
"""


def test_rows_of_eagle_are_jobs_though_tasks_of_an_array_share_an_id(tmp_path: Path) -> None:
    path = tmp_path / "eagle.csv"
    path.write_text(EAGLE)
    found = read_accounting(path, timezone="UTC")
    shown = ["job_id", "wait_time", "run_time", "requested_time", "chunks", "cpus", "gpus"]
    assert found.runs[shown].to_numpy().tolist() == [
        [7, 60, 3600, 14_400, 2, 36, 0],
        [7, 60, 3600, 14_400, 2, 36, 0],
        [9, 0, 90, 90, 2, 9, 1],
    ]
    assert found.runs["executable"].tolist() == ["mesh, fine", "mesh, fine", "x"]
    assert {why: one.places[0][1] for why, one in found.ledger.left_out.items()} == {
        "cancelled before its start": 4,
        "another number of values than names": 6,
    }
    assert len(load_workload(path)) == 3


def test_jobs_of_frontier_count_nodes_as_processors(tmp_path: Path) -> None:
    path = tmp_path / "joblive.csv"
    path.write_text(RAPS)
    found = read_accounting(path)
    (run,) = found.runs.to_dict("records")
    assert (run["chunks"], run["cpus"], run["wait_time"], run["run_time"]) == (128, 1, 600, 3600)
    assert found.ledger.notes["no cpus: processors are nodes"] == 1
    assert found.ledger.left_out["still running"].rows == 1


def test_jobs_of_lumos_count_nodes_as_processors_and_state_their_waits(tmp_path: Path) -> None:
    path = tmp_path / "lumos.csv"
    path.write_text(LUMOS)
    found = read_accounting(path)
    shown = ["job_id", "submit_time", "wait_time", "run_time", "requested_time", "charged"]
    assert found.runs[shown].to_numpy().tolist() == [
        [35, 1535348017, 60, 300, 900, 2],
        [36, 1535348020, 0, 40, 900, 1],
        [37, 1535348030, 5, 50, 900, 4],
        [38, 1535348030, -1, 50, 900, 4],
    ]
    assert found.runs["status"].tolist() == [1, 5, 0, 1]
    assert found.runs["user"].tolist() == ["77", "78", "77", "77"]


@pytest.mark.long
@pytest.mark.skipif("HPCGYM_MODERN" not in os.environ, reason="no logs of today")
def test_the_table_of_mira_is_read_to_the_digit() -> None:
    path = Path(os.environ["HPCGYM_MODERN"], "alcf", "data_mira.csv.gz")
    runs = read_accounting(path).runs
    table = pd.read_csv(path).sort_values("job")
    theirs = ["job", "submit_time", "wait_time", "run_time", "wall_time", "node_num"]
    ours = ["job_id", "submit_time", "wait_time", "run_time", "requested_time", "charged"]
    assert np.array_equal(runs.sort_values("job_id")[ours], table[theirs])


@pytest.mark.parametrize("text", [EAGLE, RAPS])
def test_parquet_is_read_as_the_same_rows_in_csv(text: str, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    import pandas as pd

    (tmp_path / "jobs.csv").write_text(text.removesuffix("10,u2,a1,gpu\n"))
    frame = pd.read_csv(tmp_path / "jobs.csv")
    moments = {"submit_time", "start_time", "end_time", "time_submission", "time_start", "time_end"}
    for name in moments & set(frame):
        frame[name] = pd.to_datetime(frame[name])
    frame.assign(xnames=[["x1", "x2"]] * len(frame)).to_parquet(tmp_path / "jobs.parquet")
    plain, packed = (read_accounting(tmp_path / f"jobs.{kind}") for kind in ("csv", "parquet"))
    assert packed.runs.equals(plain.runs)
    assert read_log(tmp_path / "jobs.parquet").reading


def test_runs_written_as_parquet_are_the_jobs_written_as_csv(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    (tmp_path / "eagle.csv").write_text(EAGLE)
    found = read_accounting(tmp_path / "eagle.csv")
    logs = []
    for kind in ("csv", "parquet"):
        write_accounting(tmp_path / f"jobs.{kind}", found)
        logs.append(read_log(tmp_path / f"jobs.{kind}"))
    assert logs[0].records.equals(logs[1].records)
    assert logs[0].requests is not None and logs[1].requests is not None
    assert logs[0].requests.to_numpy().tolist() == logs[1].requests.to_numpy().tolist()
    assert logs[0].names == logs[1].names


def test_parquet_without_pyarrow_is_refused_by_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "eagle.csv").write_text(EAGLE)
    found = read_accounting(tmp_path / "eagle.csv")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(OutputError, match=r"pip install 'hpcgym\[tables\]'"):
        write_accounting(tmp_path / "jobs.parquet", found)
    assert not (tmp_path / "jobs.parquet").exists()


def test_a_damaged_table_of_a_site_is_refused_or_counted(tmp_path: Path) -> None:
    path = tmp_path / "eagle.csv"
    for damage in ('"', "\0", "\r", ",,,,", "9" * 200_000):
        path.write_text(EAGLE.replace("u2", damage))
        try:
            assert len(read_accounting(path).runs)
        except TraceError as error:
            assert str(path) in str(error)
