"""What sites' accounting has in it: ids used anew, reruns, suspensions, states, cut starts."""

import json
from pathlib import Path
from typing import Any

import pytest

from hpcgym.base.errors import TraceError
from hpcgym.trace.accounting import Accounting, read_accounting
from hpcgym.trace.accounting.slurm import NOT_YET, RAN, REVOKED, STATES

DATA = Path(__file__).parents[2] / "data" / "accounting"
YEARS_S = 200_000_000
FIELDS = "JobID|User|Account|State|Submit|Start|End|ElapsedRaw|NCPUS"


def read(folder: Path, *rows: str, fields: str = FIELDS) -> Accounting:
    """Read rows of text."""
    (folder / "sacct.txt").write_text("\n".join([fields, *rows]) + "\n")
    return read_accounting(folder / "sacct.txt")


def reasons(found: Accounting) -> dict[str, int]:
    """Return how many rows were left out, by reason."""
    return {reason: one.rows for reason, one in found.ledger.left_out.items()}


def waits(found: Accounting) -> list[int]:
    """Return what each job waited, s, shortest first."""
    return sorted((found.job_waits * 3600).round().astype(int).tolist())


def test_an_id_that_another_user_has_years_later_is_another_job() -> None:
    found = read_accounting(DATA / "recycled-ids.txt")
    assert waits(found) == [10, 50, 150]
    assert found.runs["wait_time"].tolist() == [10, 50, 150]
    assert "further attempts of jobs" not in found.ledger.notes
    assert found.ledger.notes["id of a job that another job had before"] == 1


AGAIN = {
    "the same user at once": ("u", "a", 110, True),
    "within a day": ("u", "a", 86_510, True),
    "no account stated": ("u", "", 110, True),
    "another user": ("v", "a", 110, False),
    "another account": ("u", "b", 110, False),
    "the same user, long after": ("u", "a", 86_511, False),
}


@pytest.mark.parametrize("state", ["NODE_FAIL", "PREEMPTED", "REQUEUED", "BOOT_FAIL"])
@pytest.mark.parametrize("job", ["7", "7_3", "7+1"])
@pytest.mark.parametrize("kind", AGAIN)
def test_whether_a_row_is_an_attempt_is_told_by_user_account_and_time(
    tmp_path: Path, kind: str, job: str, state: str
) -> None:
    """The first row ran from 10 to 110; the second waited 5 s since it was submitted."""
    user, account, submit, is_attempt = AGAIN[kind]
    second = f"{submit}|{submit + 5}|{submit + 15}|10|4"
    found = read(
        tmp_path, f"{job}|u|a|{state}|1|10|110|100|4", f"{job}|{user}|{account}|COMPLETED|{second}"
    )
    assert found.runs["wait_time"].tolist() == [9, 5]
    assert waits(found) == ([submit + 5 - 1] if is_attempt else [5, 9])


@pytest.mark.parametrize("array", [None, 7])
def test_json_tells_an_id_used_anew_as_text_does(tmp_path: Path, array: int | None) -> None:
    jobs = [
        job_of(7, user, submit, state, array=array)
        for user, submit, state in (("old", 10, "NODE_FAIL"), ("new", YEARS_S, "COMPLETED"))
    ]
    (tmp_path / "sacct.json").write_text(json.dumps({"jobs": jobs}))
    assert waits(read_accounting(tmp_path / "sacct.json")) == [50, 50]


def job_of(job: int, user: str, submit: int, state: str, **more: Any) -> dict[str, Any]:
    """Return a job of JSON that waits 50 s and runs for 100 s."""
    times = {"submission": submit, "eligible": submit, "start": submit + 50, "end": submit + 150}
    array = more.pop("array", None)
    return {
        "job_id": job,
        "array": {"job_id": array or 0, "task_id": {"set": array is not None, "number": 1}},
        "user": user,
        "state": {"current": [state], "reason": "None"},
        "time": times | {"elapsed": 100} | more.pop("time", {}),
        "required": {"CPUs": 4},
        "tres": {"allocated": [{"type": "cpu", "count": 4}]},
        **more,
    }


def test_json_of_several_clusters_is_refused_by_their_names(tmp_path: Path) -> None:
    jobs = [job_of(7, "u", 10, "COMPLETED", cluster=name) for name in ("east", "west")]
    (tmp_path / "sacct.json").write_text(json.dumps({"jobs": jobs}))
    with pytest.raises(TraceError, match=r"column Cluster: east \(1 rows\), west \(1 rows\)"):
        read_accounting(tmp_path / "sacct.json")


def record(kind: str, job: str, when: str = "11/14/2023 22:13:20", **keys: Any) -> str:
    """Print a record of PBS."""
    stated = {"user": "u", "group": "g", "ctime": 1000, "etime": 1000} | keys
    pairs = " ".join(f"{key.replace('__', '.')}={value}" for key, value in stated.items())
    return f"{when};{kind};{job};{pairs}"


ASKED = {"Resource_List__ncpus": 4, "Resource_List__walltime": "02:00:00"}


def test_a_rerun_of_pbs_is_a_run_and_what_follows_waits_from_its_end() -> None:
    found = read_accounting(DATA / "pbs-rerun.pbs")
    assert "failures" not in found.causes  # a rerun may have any reason
    runs = found.runs[found.runs["job_id"] == 10]
    assert runs["run_time"].tolist() == [3600, 900]
    assert runs["wait_time"].tolist() == [0, 100]
    assert waits(found) == [100, 3600, 3700]


def test_of_a_rerun_without_its_record_the_wait_is_not_known(tmp_path: Path) -> None:
    """What stood between the submission and the last start was not all waiting."""
    lines = (DATA / "pbs-rerun.pbs").read_text().splitlines()
    file = tmp_path / "20231114"
    file.write_text("\n".join(line for line in lines if ";R;" not in line))
    found = read_accounting(file)
    run = found.runs[found.runs["job_id"] == 10].iloc[0]
    assert run[["run_time", "wait_time"]].tolist() == [900, -1]
    assert waits(found) == [100, 3600, 3700]  # jobs, from their submission to their last start
    assert [rows for what, rows in found.ledger.notes.items() if "run_count" in what] == [1]


def test_a_rerun_as_torque_records_it_began_as_the_record_before_it_says(tmp_path: Path) -> None:
    """Torque's record R has a time and no more; files are of a day each."""
    first, second = tmp_path / "20231114", tmp_path / "20231115"
    first.write_text(record("S", "10.srv", start=1_700_000_000 - 600, **ASKED))
    again = record("E", "10.srv", start=1_700_000_100, end=1_700_001_000, Exit_status=0, **ASKED)
    second.write_text(f"11/14/2023 22:13:20;R;10.srv;\n{again}")
    runs = read_accounting([first, second], timezone="UTC").runs
    assert runs["run_time"].tolist() == [600, 900]
    assert runs["wait_time"].tolist()[1] == 100
    alone = read_accounting(second, timezone="UTC")
    assert alone.runs["wait_time"].tolist() == [-1]
    assert reasons(alone) == {"no start": 1}


def test_an_id_of_pbs_that_another_user_has_is_another_job(tmp_path: Path) -> None:
    times = {"start": 1100, "end": 1200}
    file = tmp_path / "20231114"
    later = {"ctime": 1300, "etime": 1300, "start": 1310, "end": 1400, "user": "v"}
    file.write_text(
        "\n".join([record("R", "5.s", **ASKED, **times), record("E", "5.s", **(ASKED | later))])
    )
    assert waits(read_accounting(file)) == [10, 100]


def test_reruns_of_a_job_do_not_count_for_the_one_that_has_its_id_later(tmp_path: Path) -> None:
    file = tmp_path / "20231114"
    first = {"ctime": 1000, "start": 1100, "end": 1200}
    later = {"ctime": YEARS_S, "etime": YEARS_S, "start": YEARS_S + 10, "end": YEARS_S + 90}
    file.write_text(
        "\n".join(
            record(kind, "5.s", **(ASKED | keys)) for kind, keys in [("R", first), ("E", later)]
        )
    )
    found = read_accounting(file)
    assert found.runs["wait_time"].tolist()[1] == 10
    assert not [what for what in found.ledger.notes if "run_count" in what]


def test_of_a_suspension_that_no_time_is_stated_of_the_run_time_has_it_too(tmp_path: Path) -> None:
    file = tmp_path / "20231114"
    lines = [record("z", "5.srv"), record("E", "5.srv", **ASKED, start=1100, end=1200)]
    file.write_text("\n".join(lines))
    found = read_accounting(file)
    assert found.runs["run_time"].tolist() == [100]
    assert found.ledger.told == {
        "suspended for a time that is not stated: the run time has it too": 1
    }


def test_a_job_of_pbs_that_was_suspended_ran_for_its_used_walltime() -> None:
    found = read_accounting(DATA / "pbs-suspended.pbs")
    assert found.runs["run_time"].tolist() == [1200, 6000]
    assert found.runs["suspended"].tolist() == [True, False]
    assert found.machine_processors == 4
    assert "1 attempts suspended for a time" in found.in_short


@pytest.mark.parametrize(
    ("used", "run_time"), [("00:00:00", 100), ("00:01:39", 99), ("00:05:00", 100), ("?", 100)]
)
def test_a_used_walltime_that_says_nothing_is_not_taken(
    tmp_path: Path, used: str, run_time: int
) -> None:
    file = tmp_path / "20231114"
    keys = ASKED | {"start": 1100, "end": 1200, "resources_used__walltime": used}
    file.write_text(record("E", "5.srv", **keys))
    found = read_accounting(file)
    assert found.runs["run_time"].tolist() == [run_time]
    assert not found.ledger.told


@pytest.mark.parametrize("field", ["ElapsedRaw", "Suspended"])
def test_a_job_of_slurm_that_was_suspended_ran_for_its_elapsed_time(
    tmp_path: Path, field: str
) -> None:
    """It stood suspended for 6,000 of the 7,200 s between its start and its end."""
    value = {"ElapsedRaw": "1200", "Suspended": "01:40:00"}[field]
    fields = f"JobID|State|Submit|Start|End|{field}|NCPUS"
    found = read(tmp_path, f"1|COMPLETED|1|10|7210|{value}|4", fields=fields)
    assert found.runs["run_time"].tolist() == [1200]
    assert "1 attempts suspended for a time" in found.in_short


def test_json_says_for_how_long_a_job_was_suspended(tmp_path: Path) -> None:
    jobs = [job_of(1, "u", 10, "COMPLETED", time={"elapsed": 40, "suspended": 60})]
    (tmp_path / "sacct.json").write_text(json.dumps({"jobs": jobs}))
    found = read_accounting(tmp_path / "sacct.json")
    assert found.runs[["run_time", "suspended"]].iloc[0].tolist() == [40, True]


def test_of_an_array_whose_list_is_cut_short_the_number_of_tasks_is_not_known() -> None:
    found = read_accounting(DATA / "array-cut-short.txt")
    cut = next(
        one for reason, one in found.ledger.left_out.items() if "number is not known" in reason
    )
    assert [line for _, line in cut.places] == [6] and cut.jobs == 0
    assert found.ledger.left_out["array tasks that never started"].jobs == 11


def test_tasks_cut_short_are_no_step_where_steps_state_memory_or_values_are_too_many(
    tmp_path: Path,
) -> None:
    fields = "JobID|JobName|State|Submit|Start|End|NCPUS|MaxRSS"
    rows = ["1|x|COMPLETED|5|6|9|1|", "1.batch|x|COMPLETED|5|6|9|1|20K"]
    rows += ["2_[1,3,...]|a|b|PENDING|5|Unknown|Unknown|1|", "2_[1,...%2]|x|PENDING|5|||1|"]
    found = read(tmp_path, *rows, fields=fields)
    assert sorted(reasons(found).values()) == [1, 2]
    assert "step of a job" in reasons(found)


TORQUE = {
    1: (12, 1),
    2: (2, 4),
    3: (2, 8),
    6: (1, 4),
    7: (4, 8),
    8: (2, 8),
    9: (17, 1),
    12: (1, 4),
    13: (1, 2),
    14: (8, 1),
    15: (1, 4),  # 4-7.srv and 5[3].srv, which are tasks, have numbers of their own
    16: (1, 4),
}


def test_requests_of_torque_are_read() -> None:
    found = read_accounting(DATA / "torque-requests.pbs")
    runs = found.runs.set_index("job_id")
    assert {job: tuple(runs.loc[job, ["chunks", "cpus"]]) for job in runs.index} == TORQUE
    assert reasons(found) == {"record of type D": 1, "record of type A": 1}
    assert runs.loc[[7, 16], "requested_time"].tolist() == [86_400, 360_000]
    assert runs.loc[2, "spread"] and runs.loc[3, "gpus"] == 2
    assert runs.loc[12, "memory_mb"] == 4096


@pytest.mark.parametrize(
    ("asked", "chunks", "cpus", "spread", "exclusive"),
    [
        ({"nodes": "node01.site.org:ppn=8+node02.site.org:ppn=8"}, 2, 8, True, False),
        ({"nodes": "bigmem:ppn=4"}, 1, 4, False, False),
        ({"nodes": "2:ppn=4#excl"}, 2, 4, True, True),
        ({"nodes": "2:ppn=4#shared"}, 2, 4, True, False),
        ({"nodes": "1:ppn=4", "procs": 4}, 8, 1, False, False),
        ({"size": 1024}, 1024, 1, False, False),
        ({"mppwidth": 64, "mppdepth": 2, "mppnppn": 16}, 4, 32, True, False),
        ({"mppwidth": 7, "mppnppn": 4}, 7, 1, False, False),
        ({"exec_host": "n1/0*4+n2/0*4"}, 2, 4, True, False),
        ({"exec_host": "n1/0-3,5+n2/0"}, 6, 1, False, False),
        ({"exec_host": "n1/1+n1/0+n2/1+n2/0"}, 2, 2, True, False),
        ({"exec_host": "n1/0", "exec_vnode": "(n1:ncpus=4:mem=8gb)"}, 1, 4, False, False),
        ({"exec_host": "n1/0", "exec_vnode": "(a:ncpus=2+b:ncpus=2)+(c:ncpus=4)"}, 8, 1, *(0, 0)),
        ({"nodes": "2:ppn=all", "exec_host": "n1/0-7+n2/0-7"}, 2, 8, True, False),
        ({"total_execution_slots": 6}, 6, 1, False, False),
    ],
)
def test_whatever_a_record_of_pbs_asks_by_the_processors_are_read(
    tmp_path: Path, asked: dict[str, Any], chunks: int, cpus: int, spread: bool, exclusive: bool
) -> None:
    held = {"exec_host", "exec_vnode", "total_execution_slots"}
    keys = {key if key in held else f"Resource_List__{key}": value for key, value in asked.items()}
    file = tmp_path / "20231114"
    file.write_text(record("E", "5.srv", start=1100, end=1200, **keys))
    found = read_accounting(file)
    shape = found.runs.iloc[0][["chunks", "cpus", "spread", "exclusive"]].tolist()
    if "total_execution_slots" in asked:
        assert shape[0] * shape[1] == chunks
    else:
        assert shape == [chunks, cpus, bool(spread), bool(exclusive)]
    taken = "no request that can be read: the processors of exec_host are taken"
    assert found.ledger.notes.get(taken, 0) == int(not held.isdisjoint(asked))


def test_rows_that_held_processors_are_load_whatever_their_state() -> None:
    found = read_accounting(DATA / "states-that-ran.txt")
    assert reasons(found) == {"ran on another cluster (REVOKED)": 1}
    first = found.runs[found.runs["job_id"] == 1]
    assert first[["chunks", "wait_time", "run_time"]].to_numpy().tolist() == [
        [16, 10, 1000],
        [4, 0, 1000],
    ]
    assert waits(found) == [10] * 8  # the job that was resized waited once
    assert found.runs["run_time"].sum() == 1000 + 1000 + 3600 + 6 * 300


@pytest.mark.parametrize("state", sorted(STATES))
def test_every_state_of_slurm_is_a_run_or_not_yet_one(tmp_path: Path, state: str) -> None:
    rows = "1|u|a|COMPLETED|1|10|110|100|4", f"2|u|a|{state}|1|10|110|100|4"
    found = read(tmp_path, *rows)
    is_run = state in RAN and state != REVOKED
    assert len(found.runs) == 1 + is_run
    assert list(reasons(found)) == [NOT_YET.get(state, "ran on another cluster (REVOKED)")] * (
        not is_run
    )


def test_a_revoked_job_that_was_given_processors_here_is_a_run(tmp_path: Path) -> None:
    row = "1|REVOKED|1|10|110|4|cpu=4,node=1"
    found = read(tmp_path, row, fields="JobID|State|Submit|Start|End|NCPUS|AllocTRES")
    assert found.runs["run_time"].tolist() == [100]


@pytest.mark.parametrize(
    ("state", "n_runs"), [("OUT_OF_ME+", 2), ("CANCELLED+", 2), ("REQUEUE+", 1), ("PENDI+", 1)]
)
def test_a_state_that_is_cut_is_read_where_one_alone_begins_so(
    tmp_path: Path, state: str, n_runs: int
) -> None:
    found = read(tmp_path, "1|u|a|COMPLETED|1|10|110|100|4", f"2|u|a|{state}|1|10|110|100|4")
    assert len(found.runs) == n_runs


def test_starts_at_the_begin_of_a_window_are_told() -> None:
    found = read_accounting(DATA / "truncated-window.txt", timezone="UTC")
    assert [rows for what, rows in found.ledger.warnings.items() if "sacct -T" in what] == [2]
    assert "warning: 2 attempts start in the first second of all" in found.in_short
    assert "warning    2  start in the first second of all" in str(found)


def test_ends_at_the_end_of_a_window_are_told(tmp_path: Path) -> None:
    cut = (f"{n}|u|a|COMPLETED|{n}|{10 * n}|900|{900 - 10 * n}|4" for n in (1, 2, 3))
    found = read(tmp_path, *cut, "4|u|a|COMPLETED|5|6|700|694|4")
    assert (
        "warning: 3 attempts end in the last second of all, as where sacct -T cuts"
        in found.in_short
    )
    together = (f"{n}|u|a|COMPLETED|{n}|10|900|890|4" for n in (1, 2, 3))
    assert not read(tmp_path, *together, "4|u|a|COMPLETED|5|6|700|694|4").ledger.warnings


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (["1|u|a|COMPLETED|1|100|110|10|4", "2|u|a|COMPLETED|2|100|110|10|4"], 2),
        (["1|u|a|COMPLETED|1|100|110|10|4", "2|u|a|COMPLETED|1|100|110|10|4"], 0),  # one array
        (["1|u|a|COMPLETED|100|100|110|10|4", "2|u|a|COMPLETED|100|100|110|10|4"], 0),
        (["1|u|a|COMPLETED|1|3600|3610|10|4", "2|u|a|COMPLETED|2|3700|3710|10|4"], 1),
        (["1|u|a|COMPLETED|1|3601|3610|9|4", "2|u|a|COMPLETED|2|3700|3710|10|4"], 0),
    ],
)
def test_a_first_start_that_nothing_says_was_cut_is_not_warned_of(
    tmp_path: Path, rows: list[str], told: int
) -> None:
    assert sum(read(tmp_path, *rows).ledger.warnings.values()) == told
