"""Records of LSF and rows of Grid Engine: what is a run, what it says, and what is left out."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference_lsf_sge as reference
from hpcgym.base.errors import TraceError
from hpcgym.trace import load_workload
from hpcgym.trace.accounting import read_accounting
from hpcgym.trace.accounting.runs import Accounting
from hpcgym.trace.swf import NEVER_HELD

T = reference.T
DATA = Path(__file__).parents[2] / "data" / "accounting"
HEADER = "# Version: 8.1.9\n#\n# DO NOT MODIFY THIS FILE MANUALLY!\n#\n"


@pytest.fixture
def reading(tmp_path: Path) -> Callable[[str], Accounting]:
    """Read accounting of a text."""

    def read(text: str) -> Accounting:
        (tmp_path / "log").write_text(text)
        return read_accounting(tmp_path / "log")

    return read


def reasons(found: Accounting) -> dict[str, list[int]]:
    """Return the lines of rows that were left out, by reason."""
    left_out = found.ledger.left_out.items()
    return {why: [line for _, line in reason.places] for why, reason in left_out}


def said(found: Accounting, keys: Any) -> list[dict[str, Any]]:
    """Return what each run says."""
    runs: list[dict[str, Any]] = found.runs[list(keys)].to_dict("records")
    return runs


def in_any_order(runs: list[dict[str, Any]], keys: Any = None) -> list[list[tuple[str, str]]]:
    """Return what runs say, in an order of its own."""
    keys = sorted(keys or runs[0])
    return sorted([(key, str(run[key])) for key in keys] for run in runs)


LSF_CASES: dict[str, dict[str, Any]] = {
    "as asked": {},
    "fewest to most": {"asked": (2, 8), "hosts": ["n1"] * 3 + ["n2"] * 2},
    "on one host": {"requirement": "span[hosts=1]"},
    "as many on each": {"requirement": "span[ptile=2]", "hosts": ["n1", "n1", "n2", "n2"]},
    "as many on each, not evenly": {"requirement": "span[ptile=3]"},
    "more on each than asked": {"requirement": "span[ptile=16]"},
    "by what LSF made of the request": {"effective": "span[ptile=2]"},
    "a limit": {"limit": 43_200},
    "whole hosts": {"options": 66, "asked": (2, 2), "hosts": ["n1"] * 2, "slots": ["n1"] * 16},
    "not before a time": {"begin": T + 1_200},
    "not before a time after its start": {"begin": T + 1_400},
    "ineligible at first": {"ineligible": 250},
    "suspended": {"run_time": 300},
    "logged a moment late": {"run_time": 598},
    "killed by its owner": {"status": 32, "exit_info": 14},
    "failed": {"status": 32},
    "task of an array": {"index": 3, "name": "sweep[1-9]%2"},
    "names with quotes and lines": {"name": 'a "b" c', "command": 'x "\n"JOB y" ""\n z'},
    "pairs and usage of hosts": {"pairs": [(1110, "a b"), (1032, "")], "host_usage": ["n1", "n2"]},
    "no memory measured": {"memory_kb": 0},
}


@pytest.mark.parametrize("version", ["2.2", "5.1", "7.06", "9.11", "10.1"])
@pytest.mark.parametrize("case", LSF_CASES)
def test_a_record_of_lsf_says_what_each_version_states(
    case: str, version: str, reading: Callable[[str], Accounting]
) -> None:
    job = LSF_CASES[case] | {"version": version}
    expected = reference.lsf_run(**job)
    for short, by_manual in ((False, False), (True, False), (False, True)):
        found = reading(reference.lsf_record(short, by_manual, **job) + "\n")
        assert said(found, expected) == [expected]
        assert found.formats[0][1] == "accounting of LSF"


def test_what_a_record_of_lsf_does_not_tell_is_noted(reading: Callable[[str], Accounting]) -> None:
    records = [
        reference.lsf_record(id=1, version="7.06"),
        reference.lsf_record(id=2, limit=3_599),
        reference.lsf_record(id=9, limit=-1, by_manual=True),
        reference.lsf_record(id=3, condition="done(1)"),
        reference.lsf_record(id=4, condition="done(1)", ineligible=0),
        reference.lsf_record(id=5, requirement="rusage[mem=4000]"),
        reference.lsf_record(id=6, run_time=300),
        reference.lsf_record(id=7, version="9.11", options=64),
        reference.lsf_record(id=8, ineligible=10, memory_kb=-1),
    ]
    found = reading("\n".join(records))
    assert found.ledger.notes == {
        "used memory: maxRMem, of all processes of the job": 8,
        "run limits and slots are not read: the end of the record is of another version": 1,
        "run limit that is no number of minutes: the request is unknown": 1,
        "depends on jobs, and since when it was eligible is not stated: its submission is taken": 1,
        "asked memory and GPUs are not counted: the record does not say of what they are": 1,
        "exclusive, and the rest of its hosts is not stated: the processors given are taken": 1,
        "ineligible for a time: it is taken to be the first of the wait": 1,
    }
    assert list(found.ledger.told.values()) == [1]  # of the one that was suspended


@pytest.mark.parametrize("row", [reference.lsf_record(), reference.sge_row()])
def test_a_file_whose_first_line_is_cut_is_read(
    row: str, reading: Callable[[str], Accounting]
) -> None:
    found = reading(f"{row[100:]}\n{row}\n")
    assert len(found.runs) == 1
    assert list(reasons(found).values()) == [[1]]


def test_every_record_of_lsf_is_a_run_or_counted(reading: Callable[[str], Accounting]) -> None:
    good = reference.lsf_record()
    lines = [
        "#1 comment",
        good,
        '"EVENT_ADRSV_FINISH" "10.1" 1000 900 1 2',
        reference.lsf_record(id=13, start=0, hosts=[], status=32),
        good[: len(good) // 3] + ' "open',
        reference.lsf_record(id=14, command="one\n\ntwo"),
        reference.lsf_record(id=15, status=4),
        reference.lsf_record(id=16, to_cluster="east"),
        reference.lsf_record(id=17, asked=(0, 0), hosts=[]),
        reference.lsf_record(id=18).replace('"normal"', "normal"),
        reference.lsf_record(id=19).replace(f" {T + 1_000} ", " 1e3 ", 1),
        "no record at all",
        good,
        reference.lsf_record(id=20, end=T + 1_200),
        reference.lsf_record(id=21, end=T + 1_300, hosts=[]),
    ]
    found = reading("\n".join(lines))
    assert found.runs["job_id"].tolist() == [12, 14]
    assert reasons(found) == {
        "record of type EVENT_ADRSV_FINISH": [3],
        "no start": [4],
        "quotes that do not close": [5],
        "job status 4, neither EXIT nor DONE": [9],
        "forwarded to another cluster": [10],
        "no processors": [11],
        "fields are not those of JOB_FINISH": [12],
        "submitTime cannot be read": [13],
        "no record of LSF": [14],
        "row once more": [15],
        "end before start": [16],
        NEVER_HELD: [17],
    }
    assert found.ledger.rows == 14


def test_runs_of_a_requeued_job_are_attempts_and_ids_that_come_again_are_others(
    reading: Callable[[str], Accounting],
) -> None:
    again = {"start": T + 2_500, "end": T + 2_600}
    later = {"submit": T + 9_000, "start": T + 9_100, "end": T + 9_200}
    lsf: list[dict[str, Any]] = [
        {"exit_info": 11, "status": 32},
        again,
        later,
        later | {"index": 1},
    ]
    sge = [{"exit": 99}, again, later, later | {"task": 1}]
    for records in (
        [reference.lsf_record(**job) for job in lsf],
        [reference.sge_row(**job) for job in sge],
    ):
        found = reading("\n".join(records))
        assert (found.runs["submit_time"] - T).tolist() == [1_000, 1_900, 9_000, 9_000]
        assert found.runs["wait_time"].tolist() == [300, 600, 100, 100]
        assert found.ledger.notes["further attempts of jobs"] == 1
        assert sorted(found.job_waits * 3600) == pytest.approx([100, 100, 1_500])


SGE_CASES: dict[str, dict[str, Any]] = {
    "as asked": {},
    "one slot": {"slots": 1, "pe": "NONE", "category": "-U users"},
    "hours, minutes and seconds": {"category": "-l mem=2G,h_rt=01:30:00 -pe mpi 4"},
    "colons at the end of the category": {"category": "-pe mpi 4 -l cpu=24:00:00,h_rt=1:0:0"},
    "a soft limit": {"category": "-l s_rt=600"},
    "both limits": {"category": "-l s_rt=600,h_rt=900"},
    "no limit": {"category": "-l h_rt=INFINITY"},
    "failed": {"failed": 100, "exit": 137},
    "left with an exit status": {"exit": 1},
    "task of an array": {"task": 3},
    "deleted": {"failed": 100, "exit": 137, "qdel": "root@login"},
    "a project": {"project": "physics", "account": "a1"},
    "an account": {"account": "a1"},
}


@pytest.mark.parametrize("form", [43, 45, 52])
@pytest.mark.parametrize("case", SGE_CASES)
def test_a_row_of_grid_engine_says_what_each_version_states(
    case: str, form: int, reading: Callable[[str], Accounting]
) -> None:
    job = SGE_CASES[case] | {"form": form}
    expected = reference.sge_run(**job)
    for text in (HEADER + reference.sge_row(**job), reference.sge_row(**job) + "\r\n"):
        found = reading(text)
        assert said(found, expected) == [expected]
        assert found.formats[0][1] == "accounting of Grid Engine"


def test_every_row_of_grid_engine_is_a_run_or_counted(reading: Callable[[str], Accounting]) -> None:
    lines = [
        reference.sge_row(),
        reference.sge_row(pe_task="1.node2", submit=0),
        reference.sge_row(id=8, submit=0, start=0, end=0, failed=9, slots=0),
        reference.sge_row(id=9, end=0),
        reference.sge_row(id=10, slots=0),
        "?",
        reference.sge_row(id=11).rpartition("-l")[0],
        reference.sge_row(id=12).replace("NONE:127.0", "NONE:much"),
        reference.sge_row(id=13).replace(f":{T + 1_000}:", ":soon:"),
        reference.sge_row(id=14, slots=10**13),
        reference.sge_row(id=15, category="-l h_rt=long"),
        reference.sge_row(pe_task="1", submit=0),
        reference.sge_row(id=16, end=T + 1_300, slots=0),
    ]
    found = reading(HEADER + "\n".join(lines))
    assert found.runs["job_id"].tolist() == [7, 15]
    assert reasons(found) == {
        "part of a parallel job, which has a row of its own": [6, 16],
        "no start": [7],
        "no end": [8],
        "no processors": [9],
        NEVER_HELD: [17],
        "fewer fields than a row of Grid Engine has": [11],
        "no row of Grid Engine: what follows the category is no usage": [12],
        "submission_time cannot be read": [13],
        "slots cannot be read": [14],
    }
    assert found.ledger.left_out["no start"].jobs == 1
    several = "several slots: on how many nodes is not stated, so each is a chunk of its own"
    unread = "h_rt or s_rt cannot be read: the request is unknown"
    assert found.ledger.notes == {several: 2, unread: 1}


NAMES = st.text(st.sampled_from('ab "|,;\\é='), max_size=6)


@st.composite
def lsf_jobs(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a job of LSF that ran."""
    number = st.integers
    start = T + 5_000 + draw(number(0, 9_000))
    hosts = draw(st.lists(st.sampled_from(["n1", "n2", "x-3.site"]), min_size=1, max_size=9))
    fewest = draw(number(1, len(hosts)))
    index = draw(number(0, 3))
    job: dict[str, Any] = {
        "version": draw(st.sampled_from(["2.2", "5.1", "7.06", "9.11", "10.1", "10.108"])),
        "submit": T + draw(number(1_000, 5_000)),
        "begin": draw(st.sampled_from([0, T + 4_000, T + 5_500])),
        "start": start,
        "end": start + draw(number(0, 5_000)),
        "asked": (fewest, draw(number(len(hosts), 9))),
        "hosts": hosts,
        "options": draw(st.sampled_from([2, 0x40, 0x2052])),
        "status": draw(st.sampled_from([32, 64])),
        "exit_info": draw(number(0, 33)),
        "limit": draw(st.sampled_from([-1, 0, 60, 86_400])),
        "run_time": draw(st.none() | number(0, 5_000)),
        "memory_kb": draw(number(-1, 9_999)),
        "ineligible": draw(number(-1, 2_000)),
        "requirement": draw(st.sampled_from(["", "span[hosts=1]", "span[ptile=2]"])),
        "effective": draw(st.sampled_from([None, "span[ptile=3]", "select[type == any] "])),
        "pairs": draw(st.lists(st.tuples(number(0, 2_000), NAMES), max_size=3)),
        "host_usage": draw(st.lists(st.sampled_from(["n1", '"n2"']), max_size=4)),
        "user": draw(NAMES),
        "project": draw(NAMES),
        "queue": draw(NAMES),
        "command": draw(NAMES | st.just('two\n"lines" of\n\n it')),
        "index": index,
        "name": draw(NAMES) + "[1-3]" * (index > 0),
    }
    if draw(st.booleans()):
        job["slots"] = job["hosts"] * draw(number(1, 3))
    return job


@given(st.lists(lsf_jobs(), min_size=1, max_size=4), st.booleans(), st.booleans())
def test_drawn_jobs_come_back_from_lsf(
    tmp_path_factory: pytest.TempPathFactory,
    jobs: list[dict[str, Any]],
    short: bool,
    by_manual: bool,
) -> None:
    path = tmp_path_factory.mktemp("lsf") / "lsb.acct"
    jobs = [job | {"id": number} for number, job in enumerate(jobs, start=1)]
    records = [reference.lsf_record(short, by_manual, **job) for job in jobs]
    path.write_text("\n".join(records), encoding="utf-8")
    found = read_accounting(path)
    expected = [reference.lsf_run(**job) for job in jobs]
    keys = expected[0].keys() - {"exclusive"}  # all jobs together tell who had whole nodes
    assert not found.ledger.left_out
    assert in_any_order(said(found, keys)) == in_any_order(expected, keys)


@st.composite
def sge_jobs(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a job of Grid Engine that ran."""
    number = st.integers
    start = T + draw(number(0, 9_000))
    parts = draw(st.permutations(["-U users", "-l {}", "-pe mpi 4", "-q long@n1", "-l x=1:2:3"]))
    limit = draw(
        st.sampled_from(["h_rt=60", "mem=2G,h_rt=36:00:00", "s_rt=10", "a=1,h_rt=INFINITY"])
    )
    name = st.text(st.sampled_from('ab "|,;é='), min_size=1, max_size=6)
    return {
        "submit": start - draw(number(0, 9_000)),
        "start": start,
        "end": start + draw(number(0, 5_000)),
        "failed": draw(st.sampled_from([0, 37, 100])),
        "exit": draw(st.sampled_from([0, 1, 137])),
        "slots": draw(number(1, 64)),
        "task": draw(number(0, 3)),
        "category": " ".join(parts[: draw(number(1, 5))]).format(limit),
        "form": draw(st.sampled_from([43, 45, 46, 52])),
        "qdel": draw(st.sampled_from(["NONE", "ann@n1", "ann@n1,root@n2"])),
        "user": draw(name),
        "queue": draw(name),
        "name": draw(name),
        "project": draw(st.sampled_from(["NONE", "p1"])),
        "account": draw(st.sampled_from(["sge", "a1"])),
    }


@given(st.lists(sge_jobs(), min_size=1, max_size=4))
def test_drawn_jobs_come_back_from_grid_engine(
    tmp_path_factory: pytest.TempPathFactory, jobs: list[dict[str, Any]]
) -> None:
    path = tmp_path_factory.mktemp("sge") / "accounting"
    jobs = [job | {"id": number} for number, job in enumerate(jobs, start=1)]
    path.write_text("\n".join(reference.sge_row(**job) for job in jobs), encoding="utf-8")
    found = read_accounting(path)
    expected = [reference.sge_run(**job) for job in jobs]
    assert not found.ledger.left_out
    assert in_any_order(said(found, expected[0])) == in_any_order(expected)


@pytest.mark.parametrize("name", ["lsb.acct", "accounting"])
def test_accounting_of_lsf_and_grid_engine_is_a_workload(name: str) -> None:
    workload = load_workload(DATA / name)
    assert len(workload) == 5
    assert workload.wait_time.min() >= 0
    assert not set(workload.source.names["user"]) & {"", "NONE"}


@pytest.mark.long
@pytest.mark.parametrize("text", [reference.lsf_record(), reference.sge_row(form=52)])
def test_no_damage_to_a_record_ends_in_another_error(
    text: str, reading: Callable[[str], Accounting]
) -> None:
    draw = random.Random(1)
    pieces = ["", "\0", '"', ":", " ", "\n", "-1", "9" * 30, "1.5", "NONE", "é"]
    for _ in range(300):
        begin = draw.randrange(len(text))
        end = begin + draw.choice([0, 1, 2, 5, 40])
        try:
            reading(text + "\n" + text[:begin] + draw.choice(pieces) + text[end:])
        except TraceError as error:
            assert "log" in str(error)
