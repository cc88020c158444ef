"""Slurm's accounting: drawn rows against plain Python, and what a real Slurm printed."""

import gzip
import json
from collections import Counter
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcgym.base.errors import TraceError
from hpcgym.machine import Machine, NodeType, Partition
from hpcgym.schedule.simulate import simulate
from hpcgym.trace import load_workload, read_log
from hpcgym.trace.accounting import read_accounting, write_accounting
from hpcgym.trace.accounting.rows import CAUSES, UNSAID
from hpcgym.trace.accounting.sacct_text import AMBIGUOUS
from hpcgym.trace.accounting.slurm import COMMAND, _cause
from reference_accounting import as_job, as_text, run_of

SLURM = Path(__file__).parents[2] / "data" / "slurm"
FIELDS = [
    *("JobID", "JobIDRaw", "JobName", "User", "Account", "Partition", "QOS", "State", "Submit"),
    *("Eligible", "Start", "End", "Elapsed", "ElapsedRaw", "TimelimitRaw", "NNodes", "NCPUS"),
    *("ReqNodes", "ReqCPUS", "ReqTRES", "AllocTRES"),
]
STATES = ["COMPLETED"] * 5 + ["FAILED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL", "PREEMPTED"]
STATES += ["CANCELLED by 7", "CANCELLED", "PENDING", "RUNNING", "BOOT_FAIL", "DEADLINE"]
STATES += ["SUSPENDED", "REVOKED", "RESIZING", "SPECIAL_EXIT", "REQUEUE_HOLD", "OUT_OF_ME+"]
EARLY = 1_700_000_000


@st.composite
def rows_of_sacct(draw: st.DrawFn, *, steps: bool = True) -> list[dict[str, str]]:
    """Rows of different jobs that are no attempts of each other."""
    return [draw(row_of_sacct(1000 + job, steps=steps)) for job in range(draw(st.integers(1, 8)))]


@st.composite
def row_of_sacct(draw: st.DrawFn, job: int, *, steps: bool) -> dict[str, str]:
    """One row, consistent with itself."""
    submit = EARLY + draw(st.integers(0, 10_000))
    eligible = submit + draw(st.sampled_from([0, 0, 60]))
    elapsed = draw(st.integers(0, 200_000))
    start = eligible + draw(st.integers(0, 5000))
    state = draw(st.sampled_from(STATES))
    started = state not in ("PENDING", "CANCELLED")
    given = started and state != "REVOKED"
    elapsed = max(elapsed, 1) if state.startswith("CANCELLED by") else elapsed * started
    nodes, gpus = draw(st.integers(1, 4)), draw(st.sampled_from([0, 0, 1, 2, 4]))
    cpus = draw(st.integers(1, 64))
    core = draw(st.sampled_from([1, 2, 4]))
    charged = draw(st.sampled_from([-(-cpus // core) * core, core * cpus]))
    wanted = f"billing={cpus},cpu={cpus}" + (f",gres/gpu={gpus}" if gpus else "")
    wanted += draw(st.sampled_from(["", ",mem=4000M", ",mem=62.50G"])) + f",node={nodes}"
    given_mem = draw(st.sampled_from(["", ",mem=4000M"]))
    tails = ["", "", "_4", ".batch", "_[5-9%2]"] if steps else ["", "_4"]
    hours, rest = divmod(elapsed, 3600)
    day, hour = divmod(hours, 24)
    name = st.text(st.sampled_from("ab |,;é_"), min_size=1, max_size=9)
    return {
        "JobID": f"{job}{draw(st.sampled_from(tails))}",
        "JobIDRaw": str(job + 5000),
        "JobName": draw(name).strip() or "x",
        "User": draw(st.sampled_from(["ann", "bob"])),
        "Account": draw(st.sampled_from(["chem", "phys", ""])),
        "Partition": draw(st.sampled_from(["batch", "gpu"])),
        "QOS": "normal",
        "State": state,
        "Submit": str(submit),
        "Eligible": str(eligible),
        "Start": str(start) if started else draw(st.sampled_from(["None", "Unknown"])),
        "End": "Unknown" if state == "RUNNING" else str((start if started else submit) + elapsed),
        "Elapsed": f"{day}-{hour:02}:{rest // 60:02}:{rest % 60:02}",
        "ElapsedRaw": str(elapsed),
        "TimelimitRaw": str(draw(st.integers(1, 4000))),
        "NNodes": str(nodes if started else 0),
        "NCPUS": str(charged),
        "ReqNodes": str(nodes),
        "ReqCPUS": str(cpus),
        "ReqTRES": wanted,
        "AllocTRES": f"billing={charged},cpu={charged},node={nodes}{given_mem}" if given else "",
        **dict.fromkeys(("Reason", "Reservation"), ""),
    }


def check(path: Path, rows: list[dict[str, str]], delimiter: str = "") -> int:
    """Hold that every row is the run, or is left out for the reason, that plain Python says.

    A row with the delimiter in its name may be left out, too; return how many are.
    """
    said = {int(row["JobIDRaw"]): run_of(row) for row in rows}
    if not any(one_is_run(one) for one in said.values()):
        with pytest.raises(TraceError, match="no row is an attempt"):
            read_accounting(path)
        return 0
    odd = {int(row["JobIDRaw"]) for row in rows if delimiter and delimiter in row["JobName"]}
    try:
        found = read_accounting(path)
    except TraceError:
        assert {job for job, one in said.items() if one_is_run(one)} <= odd
        return len(odd)
    counts = Counter({reason: one.rows for reason, one in found.ledger.left_out.items()})
    n_odd = counts.pop(AMBIGUOUS, 0)
    read = {int(run["job_id"]): run for _, run in found.runs.iterrows()}
    for job, run in read.items():
        expected = said[job]
        assert isinstance(expected, dict), expected
        unsure = {"job"} | ({"executable"} if job in odd and not run["executable"] else set())
        assert {key: run[key] for key in expected if key not in unsure} == {
            key: value for key, value in expected.items() if key not in unsure
        }
    missing = {job for job, one in said.items() if one_is_run(one)} - read.keys()
    assert missing <= odd
    expected_counts = Counter(one for one in said.values() if isinstance(one, str))
    assert counts <= expected_counts
    assert (expected_counts - counts).total() + len(missing) == n_odd
    assert found.ledger.rows == len(rows) == len(read) + counts.total() + n_odd
    assert found.runs["submit_time"].is_monotonic_increasing
    return n_odd


def one_is_run(said: object) -> bool:
    """Tell a run from a reason."""
    return isinstance(said, dict)


@given(rows_of_sacct(), st.sampled_from(["|", ";", "\t", "@@", "^"]), st.booleans(), st.data())
def test_every_row_of_text_is_the_run_that_plain_python_reads_or_counted(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[dict[str, str]],
    delimiter: str,
    trailing: bool,
    data: st.DataObject,
) -> None:
    """Any order of fields, any delimiter, which may be in names; `-p` ends each line in it."""
    fields = data.draw(st.permutations(FIELDS))
    path = tmp_path_factory.mktemp("sacct") / "accounting"
    path.write_text(as_text(rows, fields, delimiter, delimiter * trailing), encoding="utf-8")
    check(path, rows, delimiter)


@given(rows_of_sacct(), st.sampled_from(["|", ";"]))
def test_of_what_the_shown_command_prints_no_row_is_left_out_for_a_name(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, str]], delimiter: str
) -> None:
    fields = COMMAND.partition(" -o ")[2].split(",")
    path = tmp_path_factory.mktemp("sacct") / "accounting"
    path.write_text(as_text(rows, fields, delimiter), encoding="utf-8")
    assert check(path, rows, delimiter) == 0


@given(rows_of_sacct(steps=False), st.sampled_from(["scalar", "list", "object"]))
def test_every_job_of_json_is_read_whatever_form_its_numbers_have(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, str]], form: str
) -> None:
    path = tmp_path_factory.mktemp("sacct") / "accounting"
    jobs = [as_job(row, form) for row in rows]
    path.write_text(json.dumps({"meta": {"jobs": 0}, "jobs": jobs}, indent=1))
    check(path, rows)


@given(rows_of_sacct(), st.permutations(["User", "NCPUS", "AllocTRES", "Eligible"]))
def test_a_delimiter_that_resources_hold_is_told_from_one_between_fields(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, str]], last: list[str]
) -> None:
    """With commas, as some sites export: lists of resources hold them, and so may names."""
    fields = [field for field in FIELDS if field not in last] + last
    path = tmp_path_factory.mktemp("sacct") / "accounting.csv"
    path.write_text(as_text(rows, fields, ","), encoding="utf-8")
    check(path, rows, ",")


def test_what_a_real_slurm_printed_is_the_same_as_text_with_steps_and_as_json() -> None:
    names = ("sacct-allocations.txt", "sacct-with-steps.txt", "sacct.json.gz")
    text, steps, jobs = (read_accounting(SLURM / name, timezone="UTC") for name in names)
    assert text.runs.equals(steps.runs)
    assert text.runs.equals(jobs.runs.drop(columns="array_limit"))  # text has no limits of arrays
    counts = {reason: one.rows for reason, one in steps.ledger.left_out.items()}
    assert counts == {"step of a job": 119, "cancelled before its start": 2, "still waiting": 1}
    assert (text.machine_processors, text.is_guess) == (32, True)


def test_jobs_of_a_real_slurm_are_what_was_submitted() -> None:
    runs = read_accounting(SLURM / "sacct-allocations.txt", timezone="UTC").runs.set_index("job_id")
    gpus = runs.loc[97, ["chunks", "cpus", "gpus", "memory_mb"]].tolist()
    assert gpus == [4, 2, 1, 5000]
    whole = runs.loc[98, ["chunks", "cpus", "spread", "exclusive", "charged"]].tolist()
    assert whole == [2, 1, True, True, 32]
    assert runs.loc[110, "executable"] == "name|pipe,comma"
    assert runs.loc[110, ["user", "run_time", "wait_time"]].tolist() == ["ana", 2, 6]
    assert runs.loc[100, "wait_time"] == 0  # it depended on another job for 12 s
    assert not {103, 105, 111} & set(runs.index)
    plain = [job for job in runs.index if job <= 90]
    assert runs.loc[plain, "wait_time"].mean() == pytest.approx(189.6, abs=0.05)
    assert (runs.loc[plain, "memory_mb"] == 0).all()
    assert {116, 117, 118, 119, 91, 108, 109} <= set(runs.index)


def test_tasks_of_arrays_and_their_limits_are_read() -> None:
    """Array 92 was submitted with %2, array 91 without; 92_9 has the number of its array."""
    runs = read_accounting(SLURM / "sacct.json.gz", timezone="UTC").runs
    tasks = runs[runs["array"] >= 0]
    assert sorted(set(zip(tasks["array"], tasks["array_limit"], strict=True))) == [(91, 0), (92, 2)]
    assert (runs.loc[runs["array"] < 0, "array_limit"] == -1).all()
    mine = tasks[tasks["array"] == 92]
    begin = mine["submit_time"] + mine["wait_time"]
    runs_at = [((begin <= at) & (begin + mine["run_time"] > at)).sum() for at in begin]
    assert max(runs_at) == 2
    workload = load_workload(SLURM / "sacct.json.gz", machine_processors=32, timezone="UTC")
    held = simulate(workload, events="limit:per=array")
    assert set(workload.array[held.limited_by != ""]) == {92}


def test_waits_from_submission_count_what_a_job_was_not_eligible() -> None:
    runs = read_accounting(
        SLURM / "sacct-allocations.txt", timezone="UTC", counted_from="submit"
    ).runs.set_index("job_id")
    assert runs.loc[100, "wait_time"] == 12


def test_squeue_in_json_is_read_too() -> None:
    found = read_accounting(SLURM / "squeue.json.gz")
    reasons = {reason: one.rows for reason, one in found.ledger.left_out.items()}
    assert reasons["still running"] == 11
    assert reasons["still waiting"] == 8
    assert len(found.runs) + sum(reasons.values()) == found.ledger.rows == 120


def test_the_written_table_and_log_give_the_workload_that_was_recorded(tmp_path: Path) -> None:
    found = read_accounting(SLURM / "sacct-allocations.txt", timezone="UTC")
    for name in ("jobs.csv", "jobs.csv.gz", "jobs.swf", "jobs.swf.gz"):
        write_accounting(tmp_path / name, found)
        workload = load_workload(tmp_path / name, machine_processors=32)
        assert workload.wait_time.tolist() == found.runs["wait_time"].tolist()
        assert workload.run_time.tolist() == found.runs["run_time"].tolist()
        assert workload.requested_time.tolist() == found.runs["requested_time"].tolist()
    assert workload.processors[workload.job_id == 98].tolist() == [32]
    assert workload.unix_start == found.runs["submit_time"].min()


def test_a_table_for_people_is_refused_with_the_command_that_prints_what_is_needed() -> None:
    with pytest.raises(
        TraceError, match=r"sacct-default\.txt:1: a table for people, .*cut.*-P: .*sacct -a"
    ):
        read_accounting(SLURM / "sacct-default.txt")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "JobID|State|Start|End|NCPUS\n1|COMPLETED|5|6|1\n",
            r"few\.txt:1: no field Submit; the header.*sacct -a",
        ),
        ("who,knows\n1,2\n", r"it begins with 'who,knows'.*JSON of Slurm"),
    ],
)
def test_a_header_that_lacks_a_field_or_is_none_is_refused(
    tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "few.txt"
    path.write_text(text)
    with pytest.raises(TraceError, match=said):
        read_accounting(path)


def test_the_fields_that_a_tutorial_once_printed_are_enough(tmp_path: Path) -> None:
    path = tmp_path / "sacct.txt"
    rows = ["101|1767571200|3000|60|32|ann", "102|1767571260|500|UNLIMITED|64|bob"]
    path.write_text("\n".join(["JobIDRaw|Submit|ElapsedRaw|TimelimitRaw|NCPUS|User", *rows]))
    found = read_accounting(path)
    assert found.runs["requested_time"].tolist() == [3600, 3600]
    assert found.runs["wait_time"].tolist() == [-1, -1]
    assert found.machine_processors is None
    assert "simulate --processors N states it" in str(found)


def test_a_row_that_can_be_read_in_two_ways_is_left_out_with_its_line(tmp_path: Path) -> None:
    """Either the name is "a|5", submitted at 6, or "a", submitted at 5, with a comment "8|9"."""
    path = tmp_path / "two.txt"
    text = ["JobID|JobName|Submit|Start|End|Comment|NCPUS|State", "1|plain|5|6|7||1|COMPLETED"]
    text += ["2|a|5|6|7|8|9|1|COMPLETED", "3|x|5|6|7|1|COMPLETED"]
    path.write_text("\n".join(text))
    found = read_accounting(path)
    assert found.runs["job_id"].tolist() == [1]
    assert {reason: one.places for reason, one in found.ledger.left_out.items()} == {
        AMBIGUOUS: [(path, 3)],
        "fewer values than the header has fields": [(path, 4)],
    }


def test_a_row_whose_name_alone_is_not_told_is_read_without_it(tmp_path: Path) -> None:
    path = tmp_path / "name.txt"
    text = ["JobID|JobName|Comment|Submit|Start|End|NCPUS|State", "1|a|b|c|5|6|7|1|COMPLETED"]
    path.write_text("\n".join(text))
    found = read_accounting(path)
    assert found.runs[["job_id", "executable", "submit_time"]].to_numpy().tolist() == [[1, "", 5]]
    assert found.ledger.notes["delimiter in a name: which name it is of is not told"] == 1


def test_limits_of_partitions_come_from_the_machine_else_from_the_largest_request(
    tmp_path: Path,
) -> None:
    path = tmp_path / "limits.txt"
    text = ["JobID|Submit|Start|End|NCPUS|Timelimit|Partition", "1|5|6|7|1|1-00:00:00|a"]
    text += ["2|5|6|7|1|UNLIMITED|a", "3|5|6|7|1|Partition_Limit|b"]
    path.write_text("\n".join(text))
    assert read_accounting(path).runs["requested_time"].tolist() == [86_400] * 3
    partitions = (Partition("a", "0", max_time_s=172_800), Partition("b", "0"))
    machine = Machine((NodeType(1, cpus=4),), partitions)
    found = read_accounting(path, machine=machine)
    assert found.runs["requested_time"].tolist() == [86_400, 172_800, 86_400]
    assert found.ledger.notes == {
        "no AllocTRES: memory is not counted": 3,
        "no requested cpus: those charged are taken": 3,
        "no limit of their own: the partition's is taken": 1,
        "no limit, and the partition's is not known: the largest request is taken": 1,
    }
    assert (found.machine_processors, found.is_guess) == (4, False)


def test_a_json_file_that_ends_early_is_refused_by_its_line(tmp_path: Path) -> None:
    content = gzip.decompress((SLURM / "sacct.json.gz").read_bytes())
    path = tmp_path / "cut.json"
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(TraceError, match=r"cut\.json:\d+: the file ends within its jobs"):
        read_accounting(path)


@pytest.mark.parametrize(
    ("field", "text", "reason"),
    [
        ("Submit", "yesterday", "submit cannot be read"),
        ("Submit", "Unknown", "no submit time"),
        ("ReqTRES", "cpu", "reqtres cannot be read"),
        ("ElapsedRaw", "long", "elapsedraw cannot be read"),
        ("State", "EXPLODED", "state is not known"),
        ("State", "SUSPENDED", "still suspended"),
        ("State", "REVOKED", "ran on another cluster (REVOKED)"),
        ("Start", "4", "start before submission"),
        ("JobID", "none", "JobID is no id of a job"),
        ("NCPUS", "0", "no processors"),
    ],
)
def test_a_value_that_makes_no_sense_leaves_its_row_out_by_a_reason(
    tmp_path: Path, field: str, text: str, reason: str
) -> None:
    fields = ["JobID", "Submit", "Start", "ElapsedRaw", "NCPUS", "ReqTRES", "State"]
    good = dict(zip(fields, ["1", "5", "6", "7", "2", "", "COMPLETED"], strict=True))
    path = tmp_path / "odd.txt"
    path.write_text(as_text([good, good | {"JobID": "2"} | {field: text}], fields, "|"))
    found = read_accounting(path)
    assert found.runs["job_id"].tolist() == [1]
    assert list(found.ledger.left_out) == [reason]
    assert found.ledger.left_out[reason].places == [(path, 3)]


def test_tasks_that_never_started_count_as_so_many_jobs(tmp_path: Path) -> None:
    path = tmp_path / "array.txt"
    text = ["JobID|State|Submit|Start|End|NCPUS", "9_1|COMPLETED|5|6|7|1"]
    text += ["9_[2-6%2]|CANCELLED by 0|5|None|7|1", "9_[7,9-10]|PENDING|5|Unknown|Unknown|1"]
    path.write_text("\n".join(text))
    found = read_accounting(path)
    assert np.array_equal(found.runs["run_time"], [1])
    entry = found.ledger.left_out["array tasks that never started"]
    assert (entry.rows, entry.jobs) == (2, 8)


ODD = [
    *(
        *("", "0", "-1", "9" * 20, "9" * 15, "1e9", "None", "2026-11-22T11:22:45"),
        "0001-01-01T00:00:00",
    ),
    *(
        *("9999-12-31T23:59:59", "2026-99-99T11:22:45", "UNLIMITED", "5-", "1-00:00:00"),
        "gres/gpu=1.5",
    ),
    *("cpu=9999999999999999,mem=9E", "16K", "999999999999999M", "1_2", "1+0", "1_[1-999999999999]"),
    *("1.0", "REQUEUED", "PENDING", "cpu=1,cpu=2", "é", "aaaaaaaaaaTaaaaaaaa"),
]


@given(st.lists(st.dictionaries(st.sampled_from(FIELDS), st.sampled_from(ODD)), max_size=4))
def test_whatever_stands_in_a_row_it_is_a_run_or_counted(
    tmp_path_factory: pytest.TempPathFactory, changes: list[dict[str, str]]
) -> None:
    good = dict.fromkeys(FIELDS, "1") | {"State": "COMPLETED", "Elapsed": "1:00", "End": "2"}
    good |= {"ReqTRES": "cpu=1,node=1", "AllocTRES": "cpu=1,node=1"}
    folder = tmp_path_factory.mktemp("odd")
    rows = [good, *(good | change for change in changes)]
    (folder / "odd").write_text(as_text(rows, FIELDS, "|"), encoding="utf-8")
    found = read_accounting(folder / "odd")
    left_out = sum(one.rows for one in found.ledger.left_out.values())
    assert len(found.runs) + left_out == found.ledger.rows == len(rows)
    write_accounting(folder / "jobs.csv", found)
    write_accounting(folder / "jobs.swf", found)
    assert len(read_log(folder / "jobs.csv")) == len(found.runs)
    assert len(read_log(folder / "jobs.swf")) == len(found.runs)


@pytest.mark.parametrize("name", ["sacct-allocations.txt", "sacct.json.gz"])
def test_waiting_is_of_the_cause_that_its_reason_names(name: str) -> None:
    rows = [line.split("|") for line in (SLURM / "sacct-allocations.txt").read_text().splitlines()]
    at = {field: column - len(rows[0]) for column, field in enumerate(rows[0])}  # names hold "|"
    causes = {"JobArrayTaskLimit": "limits", "Dependency": "dependencies", "JobHeldUser": "holds"}
    causes |= {"BeginTime": "begin times", "ReqNodeNotAvail": "nodes reserved or down"}
    waits: Counter[str] = Counter()
    for row in rows[1:]:
        begun, submitted = (row[at[field]] for field in ("Start", "Submit"))
        if "Unknown" in (begun, submitted) or row[at["AllocTRES"]] == "":
            continue
        waited = datetime.fromisoformat(begun) - datetime.fromisoformat(submitted)
        cause = causes.get(row[at["Reason"]], "")
        waits[cause] += max(int(waited.total_seconds()), 0)
    found = read_accounting(SLURM / name, timezone="UTC", counted_from="submit")
    sums = found.runs.groupby("cause")["wait_time"].sum()
    assert {CAUSES[cause]: seconds for cause, seconds in sums.items()} == waits
    assert len(waits) == 6 and found.causes == (*CAUSES[1:-1], UNSAID)


def test_reasons_are_told_apart_by_what_holds_a_job_back() -> None:
    limits = "AssocGrpCpuLimit QOSMaxJobsPerUserLimit AssociationJobLimit AssocMaxJobsLimit"
    found = {
        **dict.fromkeys(limits.split(), "limits"),
        **dict.fromkeys(("None", "Priority", "Licenses", "PartitionTimeLimit"), ""),
        **dict.fromkeys(
            ("JobHeldUser", "JobHoldMaxRequeue", "launch_failed_requeued_held"), "holds"
        ),
    }
    found |= {"Dependency": "dependencies", "BeginTime": "begin times", "NodeDown": "failures"}
    found |= {"Reservation": "reservations", "ReqNodeNotAvail": "nodes reserved or down"}
    assert {reason: CAUSES[_cause(reason)] for reason in found} == found
    assert read_accounting(SLURM / "sacct-minimal.txt", timezone="UTC").causes == ()


@pytest.mark.parametrize(
    ("cpus", "given", "held"),
    [("4", "cpu=4", True), ("4", "", False), ("0", "cpu=4", False), ("0", "", False)],
)
@pytest.mark.parametrize("state", ["COMPLETED", "FAILED", "NODE_FAIL", "TIMEOUT"])
def test_rows_of_0_s_without_allocated_cpus_are_no_runs_in_any_state(
    tmp_path: Path, state: str, cpus: str, given: str, held: bool
) -> None:
    head = "JobID|Submit|Start|End|State|ElapsedRaw|NCPUS|ReqCPUS|AllocTRES"
    path = tmp_path / "sacct.txt"
    rows = ["1|100|200|260|COMPLETED|60|4|4|cpu=4", f"2|100|200|200|{state}|0|{cpus}|4|{given}"]
    path.write_text("\n".join([head, *rows]))
    found = read_accounting(path)
    assert found.runs["job_id"].tolist() == ([1, 2] if held else [1])
    assert found.ledger.left_out.keys() == (set() if held else {"never held processors"})
