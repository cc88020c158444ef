"""What memory jobs used: of a real Slurm, drawn steps against plain Python, PBS, SWF and tables."""

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcgym.trace import read_log, read_swf, read_table
from hpcgym.trace.accounting import read_accounting, sacct_text, write_accounting
from hpcgym.trace.accounting.used_memory import (
    BY_LARGEST,
    BY_TOTAL,
    NO_TASKS,
    UNREADABLE,
    kilobytes,
)
from reference_accounting import used_kb

SLURM = Path(__file__).parents[2] / "data" / "slurm"
HELD_MB = {"one": 60, "tasks": 120, "steps": 90, "two_nodes": 80, "again": 50, "a|b": 15}
HELD_MB |= {"percpu": 45, "array": 25}
"""What the jobs of the real file held at once, by name; Python itself takes some 9 MB a task."""
TASKS = {"tasks": 3, "two_nodes": 4}
PYTHON_MB = (5, 15)
FIELDS = ["JobID", "State", "Submit", "Start", "End", "NCPUS", "NTasks", "MaxRSS", "TRESUsageInTot"]


def columns_of(text: str, fields: list[str]) -> str:
    """Keep some fields of text that sacct printed."""
    rows = [
        line.split("|") for line in text.splitlines() if "a|b" not in line and "c|d" not in line
    ]
    places = [rows[0].index(field) for field in fields]
    return "\n".join("|".join(row[place] for place in places) for row in rows)


def test_a_real_slurm_says_what_its_jobs_held() -> None:
    runs = read_accounting(SLURM / "sacct-memory.txt").runs
    measured = runs[runs["executable"] != "quick"]
    assert len(measured) == 10
    for _, run in measured.iterrows():
        name, tasks = run["executable"], TASKS.get(run["executable"], 1)
        above = run["used_memory_kb"] / 1024 - HELD_MB[name]
        assert PYTHON_MB[0] * tasks < above < PYTHON_MB[1] * tasks, name
    assert runs.loc[runs["executable"] == "quick", "used_memory_kb"].tolist() == [-1]


def test_text_and_json_of_a_real_slurm_say_the_same_of_memory() -> None:
    text, jobs = (read_accounting(SLURM / f"sacct-memory.{end}") for end in ("txt", "json.gz"))
    one, other = (found.runs.drop(columns="cause") for found in (text, jobs))  # text has no Reason
    assert one.equals(other)
    assert text.ledger.notes[BY_TOTAL] == jobs.ledger.notes[BY_TOTAL] == 10


def test_of_the_largest_task_alone_all_tasks_are_taken_to_be_as_large(tmp_path: Path) -> None:
    file = tmp_path / "sacct.txt"
    fields = [*FIELDS[:-1], "JobName", "ReqTRES", "AllocTRES"]
    file.write_text(columns_of((SLURM / "sacct-memory.txt").read_text(), fields))
    found = read_accounting(file)
    used = found.runs.set_index("executable")["used_memory_kb"]
    assert used["tasks"] == 3 * 49_344
    assert used["two_nodes"] == 4 * 28_992
    assert used["steps"] == 100_612  # of its largest step, not of both
    assert found.ledger.notes[BY_LARGEST] == 9


def test_without_a_number_of_tasks_what_several_used_is_not_known(tmp_path: Path) -> None:
    file = tmp_path / "sacct.txt"
    fields = [field for field in FIELDS if field not in ("NTasks", "TRESUsageInTot")]
    text = columns_of((SLURM / "sacct-memory.txt").read_text(), [*fields, "JobName"])
    file.write_text(text)
    found = read_accounting(file)
    used = found.runs.set_index("executable")["used_memory_kb"]
    assert used["one"] == 71_176  # a batch script is one task
    assert (used["tasks"], used["two_nodes"]) == (-1, -1)
    assert found.ledger.notes[NO_TASKS] == 3


@pytest.mark.parametrize("name", ["sacct-with-steps.txt", "sacct-minimal.txt", "sacct.json.gz"])
def test_accounting_that_states_no_used_memory_has_none(name: str) -> None:
    found = read_accounting(SLURM / name)
    assert (found.runs["used_memory_kb"] == -1).all()
    assert not [note for note in found.ledger.notes if "used memory" in note]


STEP = st.fixed_dictionaries(
    {
        "step": st.sampled_from(["batch", "extern", "0", "1", "12"]),
        "NTasks": st.sampled_from(["", "1", "2", "7"]),
        "MaxRSS": st.sampled_from(["", "0", "71176K", "10.50M", "50369877", "1G"]),
        "mem": st.sampled_from(["", "", "147568K", "2.25M", "1000"]),
        "NCPUS": st.sampled_from(["1", "4"]),
    }
)


@given(st.lists(st.lists(STEP, max_size=4), min_size=1, max_size=6), st.sampled_from([1, 2, 99]))
def test_memory_of_drawn_steps_is_that_of_plain_python(
    tmp_path_factory: pytest.TempPathFactory, jobs: list[list[dict[str, str]]], block: int
) -> None:
    """Blocks of any length: the steps of a job stay with it."""
    lines, expected = ["|".join(FIELDS)], {}
    for job, drawn in enumerate(jobs, start=1):
        rows = [{"JobID": str(job), "NCPUS": "4", "NTasks": "", "MaxRSS": "", "TRESUsageInTot": ""}]
        for one in drawn:
            usage = f"cpu=00:00:01,energy=0,mem={one['mem']},vmem=9999K" if one["mem"] else ""
            rows.append(one | {"JobID": f"{job}.{one['step']}", "TRESUsageInTot": usage})
        whole = {"State": "COMPLETED", "Submit": "100", "Start": "160", "End": "460"}
        lines += ["|".join((whole | row)[field] for field in FIELDS) for row in rows]
        expected[job] = used_kb(rows[1:])
    file = tmp_path_factory.mktemp("sacct") / "sacct.txt"
    file.write_text("\n".join(lines))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sacct_text, "BLOCK_ROWS", block)
        runs = read_accounting(file).runs
    found = dict(zip(runs["job_id"].tolist(), runs["used_memory_kb"].tolist(), strict=True))
    assert found == {job: -1 if kb is None else kb for job, kb in expected.items()}


@given(st.lists(st.lists(STEP, max_size=4), min_size=1, max_size=6))
def test_memory_of_drawn_steps_in_json_is_that_of_plain_python(
    tmp_path_factory: pytest.TempPathFactory, jobs: list[list[dict[str, str]]]
) -> None:
    def step_of(drawn: dict[str, str]) -> dict[str, Any]:
        def memory(text: str) -> list[dict[str, Any]]:
            cpu = {"type": "cpu", "name": "", "id": 1, "count": 5}
            count = {"type": "mem", "name": "", "id": 2, "count": kilobytes(text) * 1024}
            return [cpu, count] if text else [cpu]

        asked = {"max": memory(drawn["MaxRSS"]), "total": memory(drawn["mem"])}
        return {"tasks": {"count": int(drawn["NTasks"] or 1)}, "tres": {"requested": asked}}

    listed, expected = [], []
    for number, drawn in enumerate(jobs, start=1):
        times = {"submission": 100, "eligible": 100, "start": 160, "end": 460, "elapsed": 300}
        steps = [step_of(one) for one in drawn]
        job = {"job_id": number, "state": {"current": "COMPLETED"}, "time": times, "steps": steps}
        listed.append(job | {"required": {"CPUs": 4}})
        rows = [
            one
            | {"NTasks": one["NTasks"] or "1", "JobID": "1.0"}
            | {"TRESUsageInTot": f"mem={one['mem']}" if one["mem"] else ""}
            for one in drawn
        ]
        expected.append(used_kb(rows) or -1)
    file = tmp_path_factory.mktemp("sacct") / "sacct.json"
    file.write_text(json.dumps({"jobs": listed}))
    assert read_accounting(file).runs["used_memory_kb"].tolist() == expected


def test_a_step_that_cannot_be_read_leaves_its_job_unknown_and_in_the_log(tmp_path: Path) -> None:
    file = tmp_path / "sacct.txt"
    fields = "JobID|State|Submit|Start|End|NCPUS|NTasks|JobName|MaxRSS|Comment"
    ran = "COMPLETED|100|160|460|4"
    rows = [f"1|{ran}||x||", f"1.batch|{ran}|1|b|50K|", f"1.0|{ran}|2|c|30K|70K|e"]
    rows += [f"2|{ran}||x||", f"2.0|{ran}|2|c|much|", f"3|{ran}||x||", f"3.0|{ran}|2|c|30K|"]
    file.write_text("\n".join([fields, *rows]))
    found = read_accounting(file)
    assert found.runs["used_memory_kb"].tolist() == [-1, -1, 60]
    assert found.ledger.notes[UNREADABLE] == 2


E_RECORD = "01/05/2026 10:00:00;E;{job}.pbs;user=ann ctime=100 etime=100 start=200 end=500 "
E_RECORD += "Resource_List.walltime=01:00:00 Resource_List.select=2:ncpus=3:mem=1gb{used}"


def test_records_of_pbs_say_what_the_whole_job_used(tmp_path: Path) -> None:
    used = [" resources_used.mem=123456kb", " resources_used.mem=2gb resources_used.vmem=9gb"]
    used += [" resources_used.mem=1500b", " resources_used.mem=0kb", "", " resources_used.mem=x"]
    file = tmp_path / "pbs"
    records = (E_RECORD.format(job=job, used=text) for job, text in enumerate(used, start=1))
    file.write_text("\n".join(records))
    found = read_accounting(file)
    assert found.runs["used_memory_kb"].tolist() == [123_456, 2 * 1024**2, 2, -1, -1, -1]
    assert found.ledger.notes["used memory: resources_used.mem, of the whole job"] == 3
    assert (found.runs["memory_mb"] == 1024).all()


def test_an_import_keeps_used_memory_in_tables_and_in_field_7(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    found = read_accounting(SLURM / "sacct-memory.txt")
    runs = found.runs
    for name in ("jobs.csv", "jobs.csv.gz", "jobs.parquet", "jobs.swf"):
        write_accounting(tmp_path / name, found)
    for name in ("jobs.csv", "jobs.csv.gz", "jobs.parquet"):
        records = read_table(tmp_path / name).records
        kept = records["used_memory"] * records["requested_processors"]
        for before, after, q in zip(
            runs["used_memory_kb"], kept, records["requested_processors"], strict=True
        ):
            assert before == after == -q or 0 <= after - before < q or (before, after) == (-1, -q)
    lines = (line.split() for line in (tmp_path / "jobs.swf").read_text().splitlines())
    for run, line in zip(
        runs.to_dict("records"), (line for line in lines if line[0] != ";"), strict=True
    ):
        used, held = run["used_memory_kb"], int(line[4])
        assert int(line[6]) == (-1 if used < 0 else -(-used // held))
        asked = 1024 * run["memory_mb"] * run["chunks"]
        assert int(line[9]) == -(-asked // int(line[7]))


def test_fields_7_and_10_of_a_log_survive_an_import(tmp_path: Path) -> None:
    file, again = tmp_path / "log.swf", tmp_path / "again.swf"
    lines = [
        f"{n} {n} 5 60 4 -1 {100 + n} 3 600 {700 * n} 1 u{n} 2 -1 3 -1 -1 -1" for n in range(9)
    ]
    file.write_text("\n".join(lines))
    write_accounting(again, read_accounting(file))
    records = read_swf(again).records
    assert records["used_memory"].tolist() == [100 + n for n in range(9)]
    assert records["requested_memory"].tolist() == [700 * n or -1 for n in range(9)]
    assert (read_log(file).requests["memory_mb"] == 0).all()  # no request of nodes


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "n_used"), [("HPC2N-2002-2.2-cln", 200_733), ("LPC-EGEE-2004-1.2-cln", 113_582)]
)
def test_whole_logs_keep_what_jobs_used(name: str, n_used: int) -> None:
    folder = os.environ.get("HPCGYM_TRACES")
    if not folder or not (file := Path(folder) / f"{name}.swf.gz").exists():
        pytest.skip("no real logs: set HPCGYM_TRACES")
    text = gzip.decompress(file.read_bytes()).decode("latin-1")
    jobs = (line.split() for line in text.splitlines() if not line.lstrip().startswith(";"))
    expected = {
        int(job[0]): int(job[6]) * int(job[4] if int(job[4]) > 0 else job[7])
        for job in jobs
        if int(job[6]) > 0
    }
    assert len(expected) == n_used
    runs = read_accounting(file).runs
    known = runs[runs["used_memory_kb"] > 0]
    assert dict(zip(known["job_id"], known["used_memory_kb"], strict=True)) == expected
