"""Cleaning: what each step drops or changes, and reports."""

import numpy as np
import pytest

import reference_swf
from hpcgym import Machine
from hpcgym.base.errors import TraceError
from hpcgym.machine import NodeType
from hpcgym.trace import clean, load_with_report, load_workload, read_swf
from hpcgym.trace.clean import CANCELLED_AT_ONCE, SENTINEL_REQUEST_S
from hpcgym.trace.swf import NEVER_HELD

USUAL = {"submit": 0, "wait": 0, "run": 10, "given": -1, "asked": 1, "request": 20, "user": 1}
USUAL |= {"memory": -1, "status": 1}
HEADER = "; MaxProcs: 10\n; UnixStartTime: 1000\n"


@pytest.fixture
def log_of_jobs(tmp_path):
    """Return a function that makes a log from jobs, given as dicts of unusual values."""

    def make(*jobs, header=HEADER, on_bad_line="raise"):
        lines = []
        for number, job in enumerate(jobs, start=1):
            if isinstance(job, str):
                lines.append(job)
                continue
            assert set(job) <= {"id", *USUAL}
            field = {"id": number} | USUAL | job
            lines.append(
                "{id} {submit} {wait} {run} {given} -1 -1 {asked} {request} {memory} {status} "
                "{user} -1 -1 -1 -1 -1 -1".format(**field)
            )
        path = tmp_path / "log.swf"
        path.write_text(header + "\n".join(lines) + "\n")
        return read_swf(path, on_bad_line=on_bad_line)

    return make


def test_each_reason_to_drop_a_job_is_counted(log_of_jobs):
    log = log_of_jobs(
        {},
        {"run": -1},
        {"submit": -1},
        {"asked": -1, "given": 0},
        {"asked": 11},
        {"run": 0},
        {"run": -1, "asked": 11},
        "1 2 3",
        on_bad_line="drop",
    )
    workload, report = clean(log)
    assert workload.job_id.tolist() == [1, 6]
    assert report.count("no run time") == 2
    assert report.count("no submit time") == 1
    assert report.count("no processors") == 1
    assert report.count("larger than the machine") == 1
    assert report.widest == 11
    assert report.count("malformed line") == 1
    assert report.count("run time 0") == 1
    assert (report.records, report.jobs) == (8, 2)
    dropped = sum(step.jobs for step in report.steps if step.action == "dropped")
    assert report.records - dropped == report.jobs


def test_rows_of_0_s_that_never_held_a_processor_are_no_jobs(log_of_jobs):
    log = log_of_jobs(
        {"given": 4},
        *({"run": 0, "status": status} for status in (0, 1, 5)),
        *({"run": 0, "given": 0, "status": status} for status in (0, 1, 5)),
        {"run": 0, "given": 4, "status": 0},
        {"run": 0, "given": 4, "status": 1},
        {"run": 0, "given": 4, "status": 5},
        {"run": 1, "given": -1, "status": 5},
    )
    workload, report = clean(log)
    assert workload.job_id.tolist() == [1, 8, 9, 10, 11]
    assert report.count("never held processors") == 6
    assert "6  never held processors: run time 0, and no allocated processors" in str(report)


def test_a_log_that_states_no_allocated_processors_loses_cancelled_rows_of_0_s_only(log_of_jobs):
    jobs = ({"run": 0, "status": status} for status in (-1, 0, 1, 5))
    workload, report = clean(log_of_jobs({}, {"status": 5}, *jobs))
    assert workload.job_id.tolist() == [1, 2, 3, 4, 5]
    assert report.count("never held processors") == 1


@pytest.mark.parametrize(
    ("at_once", "soon", "kept"), [(30, 29, False), (30, 30, True), (29, 0, True), (45, 44, False)]
)
def test_cancelled_rows_of_0_s_name_requests_where_they_outnumber_those_that_ran_a_minute(
    log_of_jobs, at_once, soon, kept
):
    cancelled = {"status": 5, "given": 4}
    log = log_of_jobs(
        *[cancelled | {"run": 0}] * at_once,
        *(cancelled | {"run": 1 + number % 60} for number in range(soon)),
        *[cancelled | {"run": 61}] * 50,
        *[{"run": 0, "given": 4}] * 100,
    )
    workload, report = clean(log)
    assert report.count("cancelled at 0 s") == (0 if kept else at_once)
    assert (workload.run_time == 0).sum() == 100 + at_once * kept
    said = f"{soon} ran up to 60 s, so the processors are those requested"
    assert (said in str(report)) is not kept


@pytest.mark.long
def test_drawn_rows_are_jobs_as_the_reference_says(log_of_jobs):
    generator = np.random.default_rng(52)
    values = {"run": (0, 0, 1, 30, 60, 61), "given": (-1, 0, 2, 3), "status": (-1, 0, 1, 5, 5)}
    counts = []
    for _ in range(80):
        pools = {key: generator.choice(known, 3) for key, known in values.items()}
        jobs = [
            {key: int(generator.choice(pool)) for key, pool in pools.items()}
            for _ in range(generator.integers(1, 300))
        ]
        log = log_of_jobs({"run": 7}, *jobs)
        held = reference_swf.held(log.records.to_numpy().tolist())
        workload, report = clean(log)
        assert workload.source_row.tolist() == [row for row, job in enumerate(held) if job]
        counts.append([report.count(name) for name in (NEVER_HELD, CANCELLED_AT_ONCE)])
    assert (np.count_nonzero(counts, axis=0) >= 5).all()


def test_report_prints_every_step_that_met_a_job(log_of_jobs):
    report = clean(log_of_jobs({"submit": 7}, {"submit": 9, "run": -1}))[1]
    assert str(report).splitlines() == [
        "log: 1 of 2 jobs kept",
        "  machine    10 processors (MaxProcs in the header)",
        "  time 0     7 s on the log's clock",
        "  dropped    1  no run time: run time below 0: cancelled before the start",
    ]
    with pytest.raises(TraceError, match="did you mean 'no run time'"):
        report.count("no runtime")


def test_requested_processors_come_before_allocated_ones(log_of_jobs):
    log = log_of_jobs({"asked": 3, "given": 5}, {"asked": -1, "given": 5}, {"asked": 0, "given": 2})
    workload, report = clean(log)
    assert workload.processors.tolist() == [3, 5, 2]
    assert report.count("no requested processors") == 2


@pytest.mark.parametrize(
    ("choice", "requests"), [("run", [20, 10, 1]), ("max", [20, 20, 20]), ("drop", [20])]
)
def test_missing_requests_get_what_the_caller_chose(log_of_jobs, choice, requests):
    log = log_of_jobs({}, {"request": -1}, {"request": 0, "run": 0})
    workload, report = clean(log, missing_request=choice)
    assert workload.requested_time.tolist() == requests
    assert report.count("no requested time") == 2


def test_synthetic_requests_are_seeded_and_never_below_the_run_time(log_of_jobs):
    log = log_of_jobs(*({"request": -1, "run": 37 * k} for k in range(1, 200)), {"request": 9999})
    first = clean(log, missing_request="tsafrir", seed=1)[0]
    again = clean(log, missing_request="tsafrir", seed=1)[0]
    other = clean(log, missing_request="tsafrir", seed=2)[0]
    assert np.array_equal(first.requested_time, again.requested_time)
    assert not np.array_equal(first.requested_time, other.requested_time)
    assert (first.requested_time >= first.run_time).all()
    assert first.requested_time[-1] == 9999
    assert first.requested_time.max() == 9999


def test_largest_request_needs_a_request(log_of_jobs):
    with pytest.raises(TraceError, match="needs a job with a requested time"):
        clean(log_of_jobs({"request": -1}), missing_request="max")


def test_unlimited_requests_become_the_longest_limit_known(log_of_jobs):
    jobs = ({"request": 500}, {"request": SENTINEL_REQUEST_S}, {"request": 2**40})
    workload, report = clean(log_of_jobs(*jobs))
    assert workload.requested_time.tolist() == [500, 500, 500]
    assert report.count("unlimited request") == 2
    workload, report = clean(log_of_jobs(*jobs, header=HEADER + "; MaxRuntime: 3600\n"))
    assert workload.requested_time.tolist() == [500, 3600, 3600]
    assert "3600 s, MaxRuntime in the header" in str(report)
    workload, report = clean(log_of_jobs(*jobs, header=HEADER + ";MaxRuntime: N/A\n"))
    assert workload.requested_time.tolist() == [500, 500, 500]


def test_unlimited_requests_without_any_limit_are_missing_ones(log_of_jobs):
    workload, report = clean(log_of_jobs({"request": SENTINEL_REQUEST_S}))
    assert workload.requested_time.tolist() == [10]
    assert (report.count("unlimited request"), report.count("no requested time")) == (1, 1)


def test_requests_are_capped_only_when_asked(log_of_jobs):
    log = log_of_jobs({"request": 500}, {"request": 15})
    assert clean(log)[0].requested_time.tolist() == [500, 15]
    workload, report = clean(log, max_request=100)
    assert workload.requested_time.tolist() == [100, 15]
    assert report.count("request capped") == 1


def test_short_jobs_are_dropped_only_when_asked(log_of_jobs):
    log = log_of_jobs({"run": 0}, {"run": 1}, {"run": 5})
    assert clean(log)[0].run_time.tolist() == [0, 1, 5]
    workload, report = clean(log, minimum_run_time=1)
    assert workload.run_time.tolist() == [1, 5]
    assert report.count("short run time") == 1


def test_first_kept_submission_becomes_time_zero_and_the_calendar_holds(log_of_jobs):
    log = log_of_jobs({"submit": 5, "run": -1}, {"submit": 40}, {"submit": 30})
    workload, report = clean(log)
    assert workload.submit_time.tolist() == [0, 10]
    assert (workload.time_offset, report.time_offset, workload.unix_start) == (30, 30, 1030)


def test_calendar_is_unknown_where_the_header_does_not_say(log_of_jobs):
    for header in ("; MaxProcs: 10\n", "; MaxProcs: 10\n; UnixStartTime: 0\n"):
        assert clean(log_of_jobs({}, header=header))[0].unix_start is None


def test_jobs_are_sorted_stably_when_submissions_go_backwards(log_of_jobs):
    log = log_of_jobs({"submit": 9}, {"submit": 5}, {"submit": 9}, {"submit": 5})
    workload, report = clean(log)
    assert workload.job_id.tolist() == [2, 4, 1, 3]
    assert workload.source_row.tolist() == [1, 3, 0, 2]
    assert workload.source is log
    assert report.count("submit goes backwards") == 2


def test_unknown_users_and_waits_are_kept_and_reported(log_of_jobs):
    workload, report = clean(log_of_jobs({"user": -1}, {"wait": -1}, {"user": -5, "wait": 3}))
    assert workload.user.tolist() == [-1, 1, -1]
    assert workload.wait_time.tolist() == [0, -1, 3]
    assert (report.count("no user"), report.count("no wait time")) == (2, 1)
    assert "its submit time is the start" not in str(report)
    assert "its submit time is the start" in str(clean(log_of_jobs({"wait": -1}))[1])


def test_repeated_ids_and_runs_beyond_the_request_are_reported(log_of_jobs):
    workload, report = clean(log_of_jobs({"id": 4, "run": 99}, {"id": 4}))
    assert (report.count("repeated job id"), report.count("run over request")) == (1, 1)
    assert workload.run_time.tolist() == [99, 10]


def test_large_whole_numbers_beside_decimals_are_not_rounded(log_of_jobs):
    workload, report = clean(log_of_jobs({"id": 2.5}, {"id": 2**52 + 1}, {"id": 2**53 - 1}))
    assert workload.job_id.tolist() == [3, 2**52 + 1, 2**53 - 1]
    assert report.count("decimals") == 1


def test_decimals_are_rounded_and_counted(log_of_jobs):
    workload, report = clean(log_of_jobs({"run": 10.5, "wait": 1.4}, {"run": 9.0}))
    assert workload.run_time.tolist() == [11, 9]
    assert workload.wait_time.tolist() == [1, 0]
    assert report.count("decimals") == 1


@pytest.mark.parametrize(
    ("header", "size"),
    [
        ("; MaxProcs: 10\n; MaxNodes: 5\n", 10),
        ("; MaxNodes: 5\n", 5),
        ("; MaxProcs: -1\n; MaxNodes: 5\n", 5),
        ("; MaxNodes: 8 (batch partition; 12 total)\n; MaxProcs: N/A\n", 8),
    ],
)
def test_machine_is_sized_by_processors_then_nodes(log_of_jobs, header, size):
    log = log_of_jobs({}, header=header)
    assert clean(log)[0].machine_processors == size
    assert clean(log, machine_processors=64)[0].machine_processors == 64


def test_a_size_that_is_no_number_is_shown(log_of_jobs):
    log = log_of_jobs({}, header="; MaxProcs: ten\n")
    with pytest.raises(TraceError, match=r"a number above 0 \(MaxProcs is 'ten'\); say how many"):
        clean(log)
    log = log_of_jobs({}, header="; MaxProcs: ten\n; MaxNodes: 5\n")
    assert clean(log)[1].machine_source == "MaxNodes in the header, whose MaxProcs is 'ten'"


def test_machine_stated_nowhere_must_be_stated_by_the_caller(log_of_jobs):
    log = log_of_jobs({}, header="")
    with pytest.raises(TraceError, match=r"log\.swf: the header states neither MaxProcs nor Max"):
        clean(log)
    with pytest.raises(TraceError, match=r"processors must be a whole number from 1 to .*, got 0"):
        clean(log, machine_processors=0)
    assert clean(log, machine_processors=3)[1].machine_source == "stated by the caller"


def test_log_of_which_no_job_remains_is_refused_with_the_reasons(log_of_jobs):
    with pytest.raises(TraceError, match=r"no job remains .* no run time 1.* no processors 1"):
        clean(log_of_jobs({"run": -1}, {"asked": -1}))


def test_wrong_options_are_refused(log_of_jobs):
    log = log_of_jobs({})
    with pytest.raises(TraceError, match="unknown missing_request 'maximum'"):
        clean(log, missing_request="maximum")
    with pytest.raises(TraceError, match="max_request must be a whole number from 1"):
        clean(log, max_request=0)
    with pytest.raises(TraceError, match="a seed must be a whole number from 0, got -1"):
        clean(log, missing_request="tsafrir", seed=-1)


def test_load_finds_reads_and_cleans(tmp_path, log_of_jobs):
    log_of_jobs({}, "1 2 3", {"submit": 5}, on_bad_line="drop")
    with pytest.raises(TraceError, match=r"log\.swf:4: 3 fields"):
        load_workload(tmp_path / "log.swf")
    workload, report = load_with_report(
        tmp_path / "log.swf", on_bad_line="drop", machine_processors=7
    )
    assert (len(workload), workload.machine_processors) == (2, 7)
    assert report.count("malformed line") == 1
    assert len(load_workload("tiny")) == 8


@pytest.mark.parametrize("run, share", [(101, None), (102, "takes 1.0%")])
def test_work_lost_by_killing_is_told_from_above_a_hundredth_on(log_of_jobs, run, share):
    """Of 10,000 s of work 100 s are lost, or of one more second one more."""
    log = log_of_jobs({"run": 9_899, "request": 9_899}, {"run": run, "request": 1})
    _, report = clean(log)
    said = report.cut_warning
    assert said is None if share is None else share in said


@pytest.mark.parametrize("has_nodes", [False, True])
def test_what_nodes_would_take_is_advised_without_nodes_only(log_of_jobs, has_nodes):
    log = log_of_jobs({"memory": 5}, {})
    machine = Machine((NodeType(1, cpus=10),)) if has_nodes else None
    _, report = clean(log, machine=machine)
    (step,) = (one for one in report.steps if one.name == "stated in the log")
    assert (step.jobs, "requested memory (1)" in step.detail) == (1, True)
    assert ("a machine of nodes" in step.detail) != has_nodes


@pytest.mark.parametrize("submit, backwards", [((5, 5, 9), 0), ((5, 4, 9), 1)])
def test_submissions_that_go_backwards_are_counted(log_of_jobs, submit, backwards):
    _, report = clean(log_of_jobs(*({"submit": each} for each in submit)))
    assert report.count("submit goes backwards") == backwards


def test_synthetic_requests_need_no_request_in_the_log(log_of_jobs):
    log = log_of_jobs({"request": 0}, {"request": 0, "run": 5_000})
    workload, _ = clean(log, missing_request="tsafrir")
    assert (workload.requested_time >= workload.run_time).all()
