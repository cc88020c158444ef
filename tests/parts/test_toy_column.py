"""A column that `core/columns.py` declares is read, checked, cut, varied, digested and exported."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long  # compiles kernels in a process of its own

HERE = Path(__file__).parent

TABLE = """job_id,submit_time,run_time,requested_time,chunks,cpus,energy_j,twin
1,1300000,10,20,1,1,500,3
2,0,10,20,2,1,200,
3,700000,10,20,2,2,300,4
4,700001,10,20,2,2,,3
"""


def run(code, folder):
    (folder / "jobs.csv").write_text(TABLE)
    code = f"import sys; sys.path.insert(0, {str(HERE)!r})\nimport toy_column\n{code}"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    return done.stdout.strip() or done.stderr


THROUGH = """
import numpy as np
import pandas as pd
import hpcgym
from hpcgym.evaluation.store import digest
from hpcgym.trace import resample, scale_load, weeks
from hpcgym.trace.resample import join_weeks

jobs = hpcgym.load_workload("jobs.csv", machine_processors=8)
assert jobs.energy_j.tolist() == [200, 300, 7, 500], jobs.energy_j
assert jobs.select([2, 3]).energy_j.tolist() == [7, 500]
assert jobs.resubmitted([3, 2, 1, 0]).energy_j.tolist() == [500, 7, 300, 200]
assert [week.energy_j.tolist() for week in weeks(jobs)] == [[300, 7]]
assert scale_load(jobs, 2).energy_j.tolist() == [200, 300, 7, 500]
assert join_weeks([*weeks(jobs), *weeks(jobs)]).energy_j.tolist() == [300, 7, 300, 7]
varied = resample(jobs, np.random.default_rng(1))
assert sorted(varied.energy_j) == [7, 200, 300, 500]
again = hpcgym.Workload.from_frame(jobs.to_frame(), machine_processors=8)
assert again.energy_j.tolist() == jobs.energy_j.tolist()
assert digest(again) == digest(jobs)
other = hpcgym.Workload.from_frame(jobs.to_frame().assign(energy_j=1), machine_processors=8)
assert digest(other) != digest(jobs)
assert jobs.twin.tolist() == [-1, 2, 1, 1], jobs.twin
assert jobs.to_frame()["twin"].tolist() == [-1, 4, 3, 3]
assert again.twin.tolist() == jobs.twin.tolist()
assert jobs.select([2, 3]).twin.tolist() == [-1, -1]
assert jobs.select([1, 2]).twin.tolist() == [1, 0]
assert jobs.resubmitted([3, 2, 1, 0]).twin.tolist() == [2, 2, 1, -1]
assert [week.twin.tolist() for week in weeks(jobs)] == [[1, 0]]
assert join_weeks([*weeks(jobs), *weeks(jobs)]).twin.tolist() == [1, 0, 3, 2]
together = np.flatnonzero(varied.twin >= 0)
assert len(together) and (varied.twin[varied.twin[together]] == together).any()
schedule = hpcgym.simulate(jobs)
schedule.to_csv("all.csv", columns="all")
assert pd.read_csv("all.csv")["energy_j"].tolist() == [200, 300, 7, 500]
schedule.to_csv("default.csv")
assert "energy_j" not in pd.read_csv("default.csv")
nodes = hpcgym.load_workload("jobs.csv", machine=hpcgym.Machine((hpcgym.machine.NodeType(2, 4),)))
assert nodes.energy_j.tolist() == [200, 300, 7, 500]
assert hpcgym.load_workload("tiny").energy_j.tolist() == [7] * 8
print("the same everywhere")
"""


def test_column_of_one_line_goes_wherever_jobs_go(tmp_path):
    assert run(THROUGH, tmp_path) == "the same everywhere"


REFUSED = """
import hpcgym
from pathlib import Path

def said(call):
    try:
        call()
    except hpcgym.HpcgymError as error:
        return str(error)

one = [[0], [1], [1], [1]]
print(said(lambda: hpcgym.Workload.from_arrays(*one, machine_processors=1, energy_j=[-1])))
Path("jobs.csv").write_text(Path("jobs.csv").read_text().replace(",300", ",-3"))
print(said(lambda: hpcgym.load_workload("jobs.csv", machine_processors=8)))
Path("jobs.csv").write_text(Path("jobs.csv").read_text().replace(",-3,4", ",3,9"))
print(said(lambda: hpcgym.load_workload("jobs.csv", machine_processors=8)))
"""


def test_column_of_one_line_is_checked_wherever_it_comes_in(tmp_path):
    array, table, reference = run(REFUSED, tmp_path).splitlines()
    assert array.endswith(
        "energy_j of job 1 (row 0) is -1; allowed: 0 to 4503599627370496 (1 such jobs)"
    )
    assert table.startswith("jobs.csv:4: energy_j is '-3'; allowed: whole numbers from 0 to")
    assert reference.startswith("jobs.csv:4: job 3 is twin job 9, which is not there")
