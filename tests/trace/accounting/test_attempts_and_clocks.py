"""Rows as runs: attempts of one job, nights on which the clock is put back, files that overlap."""

import json
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcgym.base.errors import TraceError
from hpcgym.trace.accounting import read_accounting

HEADER = "JobID|State|Submit|Start|End|ElapsedRaw|NCPUS"
BERLIN = ZoneInfo("Europe/Berlin")
PUT_BACK = int(datetime(2025, 10, 26, 1, tzinfo=UTC).timestamp())
"""When clocks in Berlin went from 3:00 back to 2:00."""


def written(folder: Path, *rows: str, name: str = "sacct.txt") -> Path:
    """Write rows under the header."""
    (folder / name).write_text("\n".join([HEADER, *rows]) + "\n")
    return folder / name


def test_attempts_of_a_job_are_runs_that_enter_when_they_were_put_back(tmp_path: Path) -> None:
    """Job 1 runs 10 to 30, is requeued, runs 50 to 90; its submit time may stay or be anew."""
    for again in (0, 30):
        path = written(
            tmp_path,
            "1|REQUEUED|0|10|30|20|4",
            f"1|COMPLETED|{again}|50|90|40|4" if again else "1|COMPLETED|5|50|90|40|4",
            "2|COMPLETED|20|30|60|30|4",
        )
        path.write_text(path.read_text().replace("|0|10|", "|5|10|"))
        found = read_accounting(path)
        runs = found.runs
        assert runs["job_id"].tolist() == [1, 2, 1]
        assert runs["submit_time"].tolist() == [5, 20, 30]
        assert runs["wait_time"].tolist() == [5, 10, 20]
        assert sorted(found.job_waits * 3600) == [10, 45]  # job 1 from 5 to its last start, 50
        assert found.ledger.notes["further attempts of jobs"] == 1


TRIALS = """\
JobIDRaw|Partition|QOS|Submit|Eligible|Start|End|ElapsedRaw|TimelimitRaw|State|ReqCPUS|NCPUS
5|main|normal|1795750048|1795750048|1795750049|1795750060|11|51|COMPLETED|16|16
27|trial|trial|1795750138|1795750138|1795750139|1795750149|10|44|REQUEUED|1|1
31|trial|trial|1795750148|1795750148|1795750152|1795750156|4|57|PREEMPTED|4|4
27|main|normal|1795750149|1795750155|1795750157|1795750222|65|44|COMPLETED|1|1
31|trial|trial|1795750156|1795750162|1795750183|1795750193|10|57|REQUEUED|4|4
31|main|normal|1795750193|1795750199|1795750338|1795750361|23|57|COMPLETED|4|4
"""
"""What Slurm 24.11 printed with --duplicates of jobs that were preempted and requeued."""


@pytest.mark.parametrize("counted_from", ["submit", "eligible"])
def test_rows_that_slurm_preempted_and_requeued_are_attempts_of_one_job(
    tmp_path: Path, counted_from: str
) -> None:
    (tmp_path / "sacct.txt").write_text(TRIALS)
    found = read_accounting(tmp_path / "sacct.txt", counted_from=counted_from)
    assert found.ledger.notes["further attempts of jobs"] == 3
    runs = found.runs.assign(start=found.runs["submit_time"] + found.runs["wait_time"])
    began = runs.groupby("job_id")["start"].apply(lambda times: (times - 1795750000).tolist())
    assert began.to_dict() == {5: [49], 27: [139, 157], 31: [152, 183, 338]}
    assert (found.job_waits * 3600).round().tolist() == [1, 157 - 138, 338 - 148]


def test_json_of_an_attempt_that_was_requeued_names_two_states(tmp_path: Path) -> None:
    """So Slurm 24.11 printed them: the first is that in which the job then waited."""
    attempts = [(["PENDING", "REQUEUED"], 131, 131, 141), (["COMPLETED"], 141, 185, 210)]
    jobs = [
        {
            "job_id": 6,
            "state": {"current": states, "reason": "None"},
            "time": {
                "submission": submit,
                "eligible": submit,
                "start": start,
                "end": end,
                "elapsed": end - start,
            },
            "required": {"CPUs": 1},
            "tres": {"allocated": [{"type": "cpu", "count": 1}]},
        }
        for states, submit, start, end in attempts
    ]
    (tmp_path / "sacct.json").write_text(json.dumps({"jobs": jobs}))
    found = read_accounting(tmp_path / "sacct.json")
    assert found.runs["run_time"].tolist() == [10, 25]
    assert found.runs["wait_time"].tolist() == [0, 44]
    assert (found.job_waits * 3600).round().tolist() == [185 - 131]


def test_a_job_put_back_before_it_started_waits_from_its_first_submission(tmp_path: Path) -> None:
    path = written(tmp_path, "1|REQUEUED|5|None|30|0|4", "1|COMPLETED|30|50|90|40|4")
    found = read_accounting(path)
    assert found.runs["submit_time"].tolist() == [30]
    assert (found.job_waits * 3600).tolist() == [45]
    assert found.ledger.left_out["put back before its start"].places == [(path, 2)]


def test_an_id_that_came_again_after_an_end_is_another_job(tmp_path: Path) -> None:
    found = read_accounting(
        written(tmp_path, "1|COMPLETED|5|10|30|20|4", "1|COMPLETED|40|50|90|40|4")
    )
    assert found.runs["submit_time"].tolist() == [5, 40]
    assert (found.job_waits * 3600).tolist() == [5, 10]
    assert found.ledger.notes["id of a job that another job had before"] == 1


def test_rows_that_two_files_share_are_read_once(tmp_path: Path) -> None:
    one = written(tmp_path, "1|COMPLETED|5|10|30|20|4", "2|RUNNING|6|11|Unknown|9|4", name="one")
    two = written(tmp_path, "1|COMPLETED|5|10|30|20|4", "2|COMPLETED|6|11|40|29|4", name="two")
    found = read_accounting([one, two])
    assert found.runs["job_id"].tolist() == [1, 2]
    assert found.ledger.rows == 4
    reasons = {reason: entry.places for reason, entry in found.ledger.left_out.items()}
    assert reasons == {"still running": [(one, 3)], "row once more": [(two, 2)]}
    assert f"row once more: {two}:2" in str(found)


@pytest.mark.parametrize("shift", [-7200, -1800, 0, 1800, 7200])
def test_times_around_the_put_back_clock_are_told_by_elapsed_time(
    tmp_path: Path, shift: int
) -> None:
    """A job submitted hours before, running for 40 minutes, ends or starts in the double hour."""
    start = PUT_BACK + shift
    submit, end = start - 20_000, start + 2400
    local = [datetime.fromtimestamp(one, BERLIN) for one in (submit, start, end)]
    texts = "|".join(one.strftime("%Y-%m-%dT%H:%M:%S") for one in local)
    path = written(tmp_path, f"1|COMPLETED|{texts}|2400|4")
    found = read_accounting(path, timezone="Europe/Berlin")
    run = found.runs.iloc[0]
    read = run["submit_time"], run["submit_time"] + run["wait_time"], run["run_time"]
    undecided = 3600 if shift == 0 else 0  # start and end in the second hour: the first is taken
    assert read == (submit, start - undecided, 2400)


@given(st.lists(st.integers(-5400, 5400), min_size=2, max_size=12), st.data())
def test_submissions_of_the_double_hour_are_put_in_order_of_ids(
    tmp_path_factory: pytest.TempPathFactory, shifts: list[int], data: st.DataObject
) -> None:
    """Printed in any order; from where ids ascend and local times go back, the hour is the second.

    Where no job shows that the clock went back, the first hour is taken, off by an hour at most.
    """
    submits = PUT_BACK + np.sort(shifts)
    texts = [
        datetime.fromtimestamp(int(one), BERLIN).strftime("%Y-%m-%dT%H:%M:%S") for one in submits
    ]
    rows = [
        f"{job}|COMPLETED|{text}|{2 * PUT_BACK}|{2 * PUT_BACK}|0|1"
        for job, text in enumerate(texts)
    ]
    path = tmp_path_factory.mktemp("clock") / "sacct.txt"
    path.write_text("\n".join([HEADER, *data.draw(st.permutations(rows))]))
    runs = read_accounting(path, timezone="Europe/Berlin").runs.sort_values("job_id")
    back = np.flatnonzero(np.array(texts[1:]) < np.array(texts[:-1]))
    in_second = (submits >= PUT_BACK) & (submits < PUT_BACK + 3600)
    shown = np.arange(len(submits)) > (back[0] if len(back) else len(submits))
    assert runs["submit_time"].tolist() == (submits - 3600 * (in_second & ~shown)).tolist()


def test_a_zone_that_nobody_knows_is_refused_with_the_nearest(tmp_path: Path) -> None:
    path = written(tmp_path, "1|COMPLETED|5|10|30|20|4")
    with pytest.raises(TraceError, match=r"'Europe/Berln'; did you mean 'Europe/Berlin'"):
        read_accounting(path, timezone="Europe/Berln")
