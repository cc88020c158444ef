"""RLScheduler's table: its windows, its queue beside the package, and the figures on real logs."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray

import hpcgym
from hpcgym.core.workload import Workload
from hpcgym.trace import as_found, clean, find_trace, read_swf
from papers.rlscheduler import claims, page, run
from papers.rlscheduler import simulator as theirs
from strategies import workloads

training = pytest.importorskip("papers.rlscheduler.training")

BUNDLED = dict.fromkeys(run.LOGS, "synthetic-256")


@pytest.fixture(scope="module")
def rerun(tmp_path_factory: pytest.TempPathFactory) -> Iterator[run.Rerun]:
    """Two short windows of the bundled log in place of each real one."""
    store = tmp_path_factory.mktemp("rerun") / "unfinished.sqlite"
    yield run.rerun(store, logs=BUNDLED, starts=(300, 700), length=64)


def test_windows_are_those_that_the_authors_drew() -> None:
    paper = [1981, 2756, 4299, 8850, 3316, 2714, 5228, 7762, 4022, 7085]
    short = [9405, 8400, 1988, 8082, 1946, 6317, 9678, 9036, 1356, 6645]  # of 256 jobs
    assert theirs.starts_of_windows() == paper
    assert theirs.starts_of_windows(length=256) == short


def test_jobs_are_read_without_cleaning(tmp_path: Path) -> None:
    """Of the five, one has run time 0, one never ran, and one of these asks for nothing."""
    lines = ["; MaxProcs: 8", "1 5 0 0 2 -1 -1 2 9 -1 1 1 1 1 1 1 -1 -1"]
    lines += ["2 6 0 7 2 -1 -1 4 -1 -1 1 1 1 1 1 1 -1 -1", "3 7 0 -1 -1 -1 -1 4 50" + " -1" * 9]
    lines += ["4 8 0 -1 0 -1 -1 1 -1" + " -1" * 9, "5 9 0 9 3 -1 -1 1 3" + " -1" * 9]
    path = tmp_path / "log.swf"
    path.write_text("\n".join(lines) + "\n")
    log = read_swf(path)
    jobs = [(2, 6, 7, 4, 7), (3, 7, 10, 4, 50), (4, 8, 10, 1, -1), (5, 9, 9, 3, 3)]
    assert theirs.jobs_of(log) == jobs
    workload, _ = clean(as_found(log))
    columns = workload.job_id, workload.run_time, workload.processors, workload.requested_time
    ours = [(1, 0, 2, 9), (2, 7, 4, 7), (3, 10, 4, 50), (4, 10, 1, 10), (5, 9, 3, 3)]
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == ours


@pytest.mark.parametrize("backfill", [False, True])
@given(workload=workloads(max_jobs=40))
def test_plain_queue_starts_every_drawn_job_as_the_package_does(
    backfill: bool, workload: Workload
) -> None:
    if backfill:  # jobs of one submit time are tried by score there, and by position here
        apart = np.arange(len(workload))
        workload = replace(workload, submit_time=workload.submit_time + apart)
    columns = "job_id", "submit_time", "run_time", "processors", "requested_time"
    table = zip(*(getattr(workload, key).tolist() for key in columns), strict=True)
    jobs = [theirs.Job(*row) for row in table]
    rules = run.SCORED[backfill]
    for policy in theirs.SCORES:
        made = hpcgym.simulate(
            workload,
            run._by_scores(policy, jobs),
            backfill=rules.backfill,
            event_semantics=rules.event_semantics,
            kill_at_limit=False,
        )
        expected = theirs.simulate(jobs, workload.machine_processors, policy, backfill=backfill)
        assert made.start_time.tolist() == expected


def test_both_engines_agree_on_the_windows(rerun: run.Rerun) -> None:
    assert not sum(rerun.differing(log, rules) for log in BUNDLED for rules in run.SCORED.values())
    for backfill, name in run.QUEUE.items():
        for policy in theirs.SCORES:
            ours = rerun.mean("HPC2N", run.THERE[backfill], policy)
            assert ours == pytest.approx(rerun.mean("HPC2N", name, policy), rel=1e-12)


def test_claims_count_what_comes_out(rerun: run.Rerun) -> None:
    without, filled = claims.claims(rerun).values()
    assert [one.text for one in without] == [one.text for one in filled] and len(filled) == 6
    assert without[0].finding.startswith("0 of 15; FCFS on Lublin-1 is ")
    assert without[3].finding == "3 of 3; Lublin-1 254.67, SDSC-SP2 466.44, HPC2N 117.01"


def test_page_shows_every_table(rerun: run.Rerun) -> None:
    text = page.page(rerun, "the command", 1.0)
    for heading in ("## The table", "## Findings", "## Trained under its rules", "## Claims"):
        assert heading in text
    assert "the command" in text and "nan" not in text
    for name, table in page.beside(rerun).items():
        assert f"({name}.csv)" in text and not table.isna().to_numpy().any()


@pytest.mark.long
def test_picture_is_drawn(rerun: run.Rerun, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from papers.rlscheduler.figures import draw

    assert all(path.stat().st_size > 10_000 for path in draw(rerun, tmp_path))


def test_the_longest_stretch_apart_touches_no_window() -> None:
    assert training.stretch_apart([10, 12, 30], 5, 40) == range(17, 30)
    assert training.stretch_apart([10, 30], 5, 90) == range(35, 90)
    starts = theirs.starts_of_windows()
    for n_jobs, apart in ((10_000, range(1981)), (59_000, range(9874, 59_000))):
        assert training.stretch_apart(starts, theirs.LENGTH, n_jobs) == apart


@pytest.mark.parametrize("backfill", [False, True])
def test_windows_to_train_on_are_the_paper_s_or_hold_none_of_their_jobs(backfill: bool) -> None:
    """SAF in the environment starts jobs as SAF under RLScheduler's rules does."""
    log = read_swf(find_trace("synthetic-256"))
    windows = training.Windows.of(log, backfill, (300, 700), 64)
    judging = [each.workload(0) for each in windows.judging]
    mine = set(np.concatenate([jobs.job_id for jobs in judging]))
    apart = [windows.apart.workload(place) for place in range(len(windows.apart))]
    assert all(len(jobs) == 64 and not mine & set(jobs.job_id) for jobs in apart)
    assert len({int(jobs.job_id[0]) for jobs in apart}) > 50

    def saf(shown: NDArray[np.float32]) -> NDArray[np.int64]:
        return np.zeros(len(shown), dtype=np.int64)

    rules = run.WAITS_FILLED if backfill else run.WAITS
    keywords = {"event_semantics": rules.event_semantics, "kill_at_limit": False}
    for on_theirs, jobs in ((True, judging), (False, apart[:2])):
        made = [hpcgym.simulate(w, "SAF", backfill=rules.backfill, **keywords) for w in jobs]
        expected = [float(schedule.bsld().mean()) for schedule in made]
        assert windows.bsld(saf, on_theirs) == pytest.approx(expected)
        assert windows.envs_of(on_theirs).num_envs == training.ENVS


@pytest.mark.long
@pytest.mark.parametrize("backfill", [False, True])
@pytest.mark.parametrize("log", run.LOGS)
def test_published_figures_come_out_to_the_last_digit(
    real_log: Callable[[str], Path], log: str, backfill: bool
) -> None:
    read = read_swf(real_log(run.LOGS[log]))
    raw, _ = clean(as_found(read))
    jobs, rules = theirs.jobs_of(read), run.THERE[backfill]
    windows = [jobs[at : at + theirs.LENGTH] for at in theirs.starts_of_windows()]
    figures = {}
    for policy, order in rules.orders:
        bslds = [
            hpcgym.simulate(
                run._window(raw, window, rules),
                order,
                backfill=rules.backfill,
                event_semantics=rules.event_semantics,
                kill_at_limit=False,
            )
            .bsld()
            .mean()
            for window in windows
        ]
        figures[policy] = round(float(np.mean(bslds)), 2)
    expected = dict(zip(run.COLUMNS, run.PUBLISHED[backfill, log][:-1], strict=False))
    if log == "SDSC-SP2" and not backfill:  # one job that asks for -1 s there
        expected |= {"WFP3": 3004.36, "UNICEP": 1852.09}
    assert figures == expected
