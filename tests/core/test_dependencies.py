"""Jobs that wait for the job before them, or are held: against the reference, and through files."""

import pickle
from dataclasses import replace

import gymnasium
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import hpcgym
import reference_dependencies as reference
from dependent_cases import conditional_tables, ending_later, lives_of, tables, workload_of
from engines import simulator_of, starts_again
from hpcgym.base.errors import HpcgymError, PolicyError, TraceError, WorkloadError
from hpcgym.cli import app
from hpcgym.core.columns import COLUMNS
from hpcgym.core.constants import FEATURE_SUBMIT, N_WEIGHTS
from hpcgym.core.dependencies import EXCHANGED, EXCHANGED_ON_NODES
from hpcgym.core.kernels.types import Jobs
from hpcgym.core.policy import KEYS, Policy
from hpcgym.core.predecessors import find_cycle
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.simulator import Simulator
from hpcgym.env.scenario.from_log import episodes_of_log
from hpcgym.env.scenario.spec import SchedulerSpec
from hpcgym.evaluation.store import digest
from hpcgym.schedule.attempts import attempts_of
from hpcgym.trace import clean, read_swf, resample, scale_load, write_swf
from hpcgym.trace.load import read_log
from hpcgym.trace.resample import jitter, join_weeks, resample_week
from hpcgym.trace.swf import log_of
from strategies import one_of

KINDS = ("ignore", "start", "feedback")
ANY_MODE = (
    *("none", "easy", "easy:cap=0.5,long=10", "easy:cap=0.5,long=10,by=request", "depth:k=2"),
    *("conservative", "look-ahead", "relaxed:omega=0.5", "slack:c=1", "multi-queue:delay=7"),
    *("cost-benefit", "slurm:interval=7", "easy+trial:limit=5,young=60,request=10"),
)


def by_formula(features):
    """Order jobs by something that the clock changes."""
    return features.wait * (features.q - 2)


def keys_by_id(workload):
    """Order jobs by their ids, in a way of its own."""
    return 7 * workload.job_id % 11


BY_ID = Policy("BY-ID", KEYS, np.zeros(N_WEIGHTS), keys=keys_by_id)
OWN_ORDERS = (BY_ID, by_formula)
ANY_ORDER = ("FCFS", "SAF", "SPF", "LCFS", "WFP3", "F1", "SMITH", "SAF-HISTORY", "SMITH-REG")


@given(
    rows=tables(),
    policy=st.sampled_from(tuple(reference.SCORES)),
    backfill=one_of(("none", "easy")),
    threshold=one_of((None, 0, 1, 5, 20)),
    kind=one_of(KINDS),
)
def test_every_job_starts_as_the_reference_says(rows, policy, backfill, threshold, kind):
    settings = {"backfill": backfill, "threshold": threshold, "dependencies": kind}
    expected = reference.simulate(rows, 4, policy, **settings)
    assert lives_of(hpcgym.simulate(workload_of(rows), policy, **settings)) == expected


@given(
    rows=tables(),
    policy=st.sampled_from(ANY_ORDER) | st.sampled_from(OWN_ORDERS),
    backfill=one_of(ANY_MODE),
    threshold=one_of((None, 0, 5, 20)),
    kind=one_of(KINDS),
    estimates=one_of((("requested", "none"), ("exact", "none"), ("recent", "reqtime"))),
)
def test_a_job_is_scheduled_as_one_submitted_when_it_is_eligible(
    rows, policy, backfill, threshold, kind, estimates
):
    """The same jobs, submitted when these were eligible, start alike under every mode and order."""
    estimated, correction = estimates
    rows = ending_later(rows)
    settings = {"backfill": backfill, "threshold": threshold, "estimates": estimated}
    settings["correction"] = "none" if "trial" in backfill else correction
    jobs = workload_of(rows)
    got = hpcgym.simulate(jobs, policy, **settings, dependencies=kind)
    eligible = got.jobs.submit_time
    again = workload_of([job._replace(after=-1, eligible=-1) for job in rows]).resubmitted(eligible)
    order = np.argsort(eligible, kind="stable")
    theirs = hpcgym.simulate(again, policy, **settings)
    for key in ("start_time", "backfilled", "thresholded"):
        assert getattr(got, key)[order].tolist() == getattr(theirs, key).tolist(), key
    if got.attempts is not None:
        assert got.attempts.wasted_time[order].tolist() == theirs.attempts.wasted_time.tolist()
        assert got.attempts.kills[order].tolist() == theirs.attempts.kills.tolist()
    # And the instants are those that the rule names.
    after, think = (getattr(jobs, key) for key in ("after", "think_time"))
    least = jobs.submit_time.copy()
    if kind == "feedback":
        least[after >= 0] = 0
    least = np.maximum(least, jobs.eligible)
    waits = (after >= 0) & (kind != "ignore")
    least[waits] = np.maximum(least, got.end_time[after] + think)[waits]
    assert eligible.tolist() == least.tolist()


@given(
    rows=conditional_tables(),
    policy=st.sampled_from(tuple(reference.SCORES)),
    backfill=one_of(("none", "easy")),
    threshold=one_of((None, 0, 1, 5, 20)),
    kind=one_of(KINDS),
)
def test_under_conditions_every_job_starts_or_is_cancelled_as_the_reference_says(
    rows, policy, backfill, threshold, kind
):
    settings = {"backfill": backfill, "threshold": threshold, "dependencies": kind}
    expected = reference.simulate(rows, 4, policy, **settings)
    schedule = hpcgym.simulate(workload_of(rows), policy, **settings)
    assert lives_of(schedule) == expected
    assert schedule.complete
    if schedule.cancelled is None:
        assert kind == "ignore" or not any(job.condition for job in rows)
        return
    assert schedule.cancelled.tolist() == [life.start_time < 0 for life in expected]
    metrics, ran = schedule.metrics(), ~schedule.cancelled
    assert (metrics["n_jobs"], metrics["n_cancelled"]) == (ran.sum(), len(rows) - ran.sum())
    assert metrics["max_wait_time"] == schedule.wait_time[ran].max()
    assert metrics["makespan"] == schedule.end_time.max() - schedule.jobs.submit_time[ran].min()


@given(
    rows=conditional_tables(),
    policy=st.sampled_from(ANY_ORDER) | st.sampled_from(OWN_ORDERS),
    backfill=one_of(ANY_MODE),
    threshold=one_of((None, 0, 5, 20)),
    kind=one_of(("start", "feedback")),
)
def test_jobs_that_are_not_cancelled_are_scheduled_as_if_the_others_were_not_there(
    rows, policy, backfill, threshold, kind
):
    rows = ending_later(rows)
    settings = {"backfill": backfill, "threshold": threshold}
    jobs = workload_of(rows)
    got = hpcgym.simulate(jobs, policy, **settings, dependencies=kind)
    ran = np.ones(len(rows), dtype=bool) if got.cancelled is None else ~got.cancelled
    alone = [job._replace(after=-1, eligible=-1, condition=0, fails=False) for job in rows]
    eligible = got.jobs.submit_time
    again = workload_of(alone).select(ran).resubmitted(eligible[ran])
    order = np.flatnonzero(ran)[np.argsort(eligible[ran], kind="stable")]
    theirs = hpcgym.simulate(again, policy, **settings)
    for key in ("start_time", "backfilled", "thresholded"):
        assert getattr(got, key)[order].tolist() == getattr(theirs, key).tolist(), key
    if got.attempts is not None:
        assert got.attempts.wasted_time[order].tolist() == theirs.attempts.wasted_time.tolist()
        assert got.attempts.wasted_time[~ran].sum() == 0


def test_a_cancelled_job_wastes_nothing_whatever_another_run_has_left():
    jobs = hpcgym.Workload.from_arrays(
        [0, 0], [9, 9], [9, 9], [1, 1], after=[-1, 0], condition=[0, 2], machine_processors=1
    )
    simulator = simulator_of(jobs, backfill="easy+trial", dependencies="start")
    assert starts_again(simulator) == [0, -1]
    assert attempts_of(simulator).wasted_time.tolist() == [0, 0]


def test_a_job_is_cancelled_where_its_condition_can_no_longer_hold():
    """Job 0 is killed at its request; 1 wants its success, 2 its failure, 3 the failure of 1."""
    rows = [
        reference.Job(0, 9, 5, 4),
        reference.Job(0, 1, 1, 1, 0, condition=1),
        reference.Job(0, 1, 1, 1, 0, condition=2),
        reference.Job(0, 1, 1, 1, 1, 3, condition=2),
        reference.Job(0, 1, 1, 1, 1, condition=1),
        reference.Job(0, 1, 1, 1, 2, condition=1),
    ]
    schedule = hpcgym.simulate(workload_of(rows), dependencies="start")
    assert schedule.start_time.tolist() == [0, -1, 5, 8, -1, 6]
    assert schedule.cancelled.tolist() == [False, True, False, False, True, False]
    frame = schedule.to_frame()
    assert frame["started"].tolist()[1] == "cancelled"
    assert frame["condition"].tolist() == ["end", "success", "failure", "failure", *["success"] * 2]
    runs_on = hpcgym.simulate(workload_of(rows), dependencies="start", kill_at_limit=False)
    assert runs_on.start_time.tolist() == [0, 9, -1, -1, 10, -1]
    rows[0] = rows[0]._replace(run_time=5)
    assert hpcgym.simulate(workload_of(rows), dependencies="start").start_time[1] == 5
    rows[0] = rows[0]._replace(fails=True)
    assert hpcgym.simulate(workload_of(rows), dependencies="start").start_time[2] == 5


def test_conditions_are_texts_in_frames_and_files(tmp_path):
    rows = [reference.Job(0, 1, 1, 1), reference.Job(0, 1, 1, 1, 0, condition=1, fails=True)]
    jobs = workload_of(rows, name="drawn")
    frame = jobs.to_frame()
    assert frame["condition"].tolist() == ["end", "success"]
    again = hpcgym.Workload.from_frame(frame, machine_processors=4, name="drawn")
    assert digest(again) == digest(jobs)
    with pytest.raises(WorkloadError, match=r"row 1: unknown condition 'sucess'.*success"):
        hpcgym.Workload.from_frame(frame.assign(condition=["end", "sucess"]), machine_processors=4)
    path = tmp_path / "jobs.csv"
    head = "job_id,submit_time,run_time,requested_time,chunks,after,condition,fails"
    path.write_text(f"{head}\n1,0,1,1,1,,,true\n2,0,1,1,1,1,failure,\n3,0,1,1,1,1,end,0\n")
    read, _ = clean(read_log(path), machine_processors=4)
    assert read.condition.tolist() == [0, 2, 0] and read.fails.tolist() == [True, False, False]
    path.write_text(f"{head}\n1,0,1,1,1,,,true\n2,0,1,1,1,1,fails,\n")
    with pytest.raises(TraceError, match=r":3: condition is 'fails'; allowed: end, success, fail"):
        read_log(path)


@given(rows=tables() | conditional_tables(), kind=one_of(KINDS), check=st.booleans())
def test_a_simulation_goes_on_from_a_copy_and_begins_anew(rows, kind, check):
    policy = BY_ID if check else "SMITH"
    settings = SchedulerSettings(policy, threshold=5, dependencies=kind)
    simulator = Simulator(workload_of(rows), settings, check_invariants=check)
    copied, pickled = simulator.copy(), pickle.loads(pickle.dumps(simulator))
    for one in (simulator, copied, pickled):
        one.run()
    expected = simulator.start_time.tolist()
    assert copied.start_time.tolist() == pickled.start_time.tolist() == expected
    after = pickle.loads(pickle.dumps(simulator))
    assert after.start_time.tolist() == expected
    assert after.eligible_time.tolist() == simulator.eligible_time.tolist()
    for made in (simulator, after):
        for name in EXCHANGED[1:]:
            kept, of_rows = getattr(simulator.episode.table, name), getattr(made.table, name)
            if name == "feature":
                kept, of_rows = kept[:, :FEATURE_SUBMIT], of_rows[:, :FEATURE_SUBMIT]
            np.testing.assert_array_equal(of_rows, kept, name)
    simulator.reset()
    assert (simulator.start_time == -1).all()
    simulator.run()
    assert simulator.start_time.tolist() == expected


@given(
    rows=tables(max_jobs=8),
    policy=st.sampled_from(("FCFS", "SAF", "WFP3")),
    backfill=one_of(("none", "easy", "depth:k=2", "conservative")),
    kind=one_of(KINDS),
)
def test_on_nodes_a_job_is_scheduled_as_one_submitted_when_it_is_eligible(
    rows, policy, backfill, kind
):
    rows = ending_later(rows)
    machine = hpcgym.Machine((hpcgym.machine.NodeType(2, 2, gpus=1),))
    of_nodes = {
        "machine": machine,
        "gpus": [job.run_time % 2 if job.processors <= 2 else 0 for job in rows],
        "spread": [job.submit_time % 2 == 1 and job.processors <= 2 for job in rows],
    }
    got = hpcgym.simulate(
        workload_of(rows, **of_nodes), policy, backfill=backfill, dependencies=kind
    )
    alone = [job._replace(after=-1, eligible=-1) for job in rows]
    again = workload_of(alone, **of_nodes).resubmitted(got.jobs.submit_time)
    order = np.argsort(got.jobs.submit_time, kind="stable")
    theirs = hpcgym.simulate(again, policy, backfill=backfill)
    assert got.start_time[order].tolist() == theirs.start_time.tolist()
    columns = ["n_nodes", "nodes"]
    ours = got.to_frame()[columns].iloc[order].to_numpy().tolist()
    assert ours == theirs.to_frame()[columns].to_numpy().tolist()
    assert got.metrics()["mean_wait_time"] == theirs.metrics()["mean_wait_time"]
    assert got.fragmentation() == pytest.approx(theirs.fragmentation(), nan_ok=True)


@given(
    rows=st.lists(tables() | conditional_tables(), min_size=1, max_size=2),
    backfill=one_of(ANY_MODE),
    threshold=one_of((None, 5)),
    kind=one_of(KINDS),
    estimates=one_of((("requested", "none"), ("recent", "reqtime"))),
)
def test_many_are_scheduled_as_each_alone(rows, backfill, threshold, kind, estimates):
    many = [workload_of(each) for each in rows]
    correction = "none" if "trial" in backfill else estimates[1]
    settings = {"backfill": backfill, "threshold": threshold, "dependencies": kind}
    settings |= {"estimates": estimates[0], "correction": correction}
    policies = ["SAF", BY_ID, "SMITH-REG", "SAF", "LCFS"]
    got = hpcgym.simulate_many(many, policies, threads=1, **settings)
    for row, jobs in enumerate(many):
        for column, policy in enumerate(policies):
            alone = hpcgym.simulate(jobs, policy, **settings).metrics()
            for key in ("mean_wait_time", "max_bsld", "n_thresholded", "makespan", "utilisation"):
                expected = pytest.approx(alone[key], nan_ok=True)
                assert got[key][row, column] == expected, (key, policy)


@given(rows=conditional_tables(), kind=one_of(("start", "feedback")))
def test_metrics_of_nodes_are_those_of_the_jobs_that_are_not_cancelled(rows, kind):
    rows = ending_later(rows)
    machine = hpcgym.Machine((hpcgym.machine.NodeType(2, 2),))
    got = hpcgym.simulate(workload_of(rows, machine=machine), dependencies=kind)
    ran = np.ones(len(rows), dtype=bool) if got.cancelled is None else ~got.cancelled
    alone = [job._replace(after=-1, eligible=-1, condition=0, fails=False) for job in rows]
    eligible = got.jobs.submit_time[ran]
    again = workload_of(alone, machine=machine).select(ran).resubmitted(eligible)
    theirs = hpcgym.simulate(again)
    order = np.flatnonzero(ran)[np.argsort(eligible, kind="stable")]
    assert got.start_time[order].tolist() == theirs.start_time.tolist()
    assert got.to_frame()["nodes"][order].tolist() == theirs.to_frame()["nodes"].tolist()
    assert (got.to_frame()["nodes"][~ran] == "").all()
    assert got.placement_metrics() == theirs.placement_metrics()
    assert got.fragmentation() == pytest.approx(theirs.fragmentation(), nan_ok=True)
    assert got.usage().equals(theirs.usage())
    for by in ("resource", "partition", "class"):
        ours = got.metrics(by).drop(columns="n_cancelled", errors="ignore")
        pd.testing.assert_frame_equal(ours, theirs.metrics(by))


COLUMNS_OF_WAITS = ("after", "think_time", "eligible")


def rows_of(workload):
    """Return what a workload says of waits, by the ids of jobs, whatever their order."""
    columns = workload.stated_columns()
    named = zip(*(columns[key].tolist() for key in ("job_id", *COLUMNS_OF_WAITS)), strict=True)
    return sorted(named)


def test_every_column_that_tells_jobs_apart_is_exchanged():
    """A column that kernels come to read of each job must move with the job."""
    machine = hpcgym.Machine((hpcgym.machine.NodeType(1, 4),))
    rows = [reference.Job(0, 1, 1, 1), reference.Job(0, 1, 1, 1, 0)]
    for others, exchanged in (
        ({}, EXCHANGED),
        ({"machine": machine}, EXCHANGED + EXCHANGED_ON_NODES),
    ):
        table = Simulator(workload_of(rows, **others)).table
        by_job = {name for name in Jobs._fields if np.shape(getattr(table, name))[:1] == (2,)}
        by_job -= {"capacity", "group", "member", "limit", "shown_partition", "largest_node"}
        assert by_job == set(exchanged)


@given(rows=tables(), flags=st.integers(0, 2**32 - 1))
def test_what_says_that_a_job_may_be_killed_moves_with_the_job(rows, flags):
    jobs = workload_of(rows, name="drawn")
    jobs = replace(jobs, requeue=(flags >> np.arange(len(jobs)) & 1) == 1)
    mode = "easy+trial:limit=5,young=20,request=5"
    schedule = hpcgym.simulate(jobs, backfill=mode, dependencies="start")
    assert jobs.requeue[schedule.attempts.job].all()


@given(rows=tables(), data=st.data())
def test_whatever_moves_jobs_keeps_them_behind_the_same_jobs(rows, data):
    jobs = workload_of(rows, name="drawn")
    n = len(jobs)
    order = np.array(data.draw(st.permutations(range(n))))
    place = np.argsort(order)
    shuffled = {key: getattr(jobs, key)[order] for key in COLUMNS if getattr(jobs, key) is not None}
    shuffled["after"] = np.where(shuffled["after"] >= 0, place[shuffled["after"]], -1)
    again = hpcgym.Workload.from_arrays(**shuffled, machine_processors=4)
    assert rows_of(again) == rows_of(jobs)
    frame = jobs.to_frame().iloc[order]
    assert rows_of(hpcgym.Workload.from_frame(frame, machine_processors=4)) == rows_of(jobs)
    # A cut leaves a job whose predecessor is out to come by itself.
    kept = sorted(data.draw(st.sets(st.integers(0, n - 1), min_size=1)))
    start = int(jobs.submit_time[kept[0]])
    part, ids = jobs.select(kept, start=start), set(jobs.job_id[kept].tolist())
    expected = [
        (job, after if after in ids else -1, think, held - start if held >= 0 else -1)
        for job, after, think, held in rows_of(jobs)
        if job in ids
    ]
    assert rows_of(part) == expected
    # Other submit times keep who is after whom, and how long a hold is.
    moved = jobs.resubmitted(jobs.submit_time[::-1].copy())
    assert [row[:3] for row in rows_of(moved)] == [row[:3] for row in rows_of(jobs)]
    length = [
        held - r if held >= 0 else -1
        for held, r in zip(jobs.eligible, jobs.submit_time, strict=True)
    ]
    later = moved.select(np.arange(n)).to_frame().sort_values("job_id", ignore_index=True)
    got = np.where(later["eligible"] >= 0, later["eligible"] - later["submit_time"], -1)
    assert got.tolist() == length


WEEK_S = 604_800


def log_of_users():
    """Return two users' jobs of two weeks: after one of this week, of another, of another user."""
    return hpcgym.Workload.from_arrays(
        submit_time=[0, 10, 20, WEEK_S, WEEK_S + 5, WEEK_S + 9],
        run_time=[5] * 6,
        requested_time=[5] * 6,
        processors=[1] * 6,
        user=[1, 1, 2, 1, 1, 2],
        after=[-1, 0, 1, 1, 3, 2],
        think_time=[0, 7, 8, 9, 11, 12],
        eligible=[-1, 30, -1, -1, WEEK_S + 8, -1],
        machine_processors=4,
    )


def names(workload):
    """Return who is after whom, by think times, which name jobs here; and lengths of holds."""
    think, after = workload.think_time, workload.after
    held = np.where(workload.eligible >= 0, workload.eligible - workload.submit_time, -1)
    pairs = {(int(think[j]), int(think[k])) for j, k in enumerate(after) if k >= 0}
    return pairs, dict(zip(think.tolist(), held.tolist(), strict=True))


@pytest.mark.parametrize("mode", ["permute", "draw"])
def test_a_sample_keeps_jobs_behind_others_that_moved_with_them(mode):
    jobs, n_copies = log_of_users(), 0
    for seed in range(20):
        sample = resample(jobs, np.random.default_rng(seed), mode)
        pairs, held = names(sample)
        assert pairs <= {(7, 0), (11, 9)}, "others were of another week or user"
        n_copies += len(set(sample.think_time.tolist())) < len(jobs)
        assert held.get(7, 20) == 20 and held.get(11, 3) == 3 and held.get(12, -1) == -1
        weeks = sample.submit_time // WEEK_S
        for job, before in enumerate(sample.after):
            if before >= 0:
                assert weeks[job] == weeks[before] and sample.user[job] == sample.user[before]
        # Each copy has its own predecessor.
        assert len(set(sample.after[sample.after >= 0].tolist())) == (sample.after >= 0).sum()
        assert (sample.after >= 0).sum() == np.isin(sample.think_time, (7, 11)).sum()
    assert (n_copies > 0) == (mode == "draw")


def test_other_makers_of_workloads_keep_who_is_after_whom():
    jobs = log_of_users()
    assert names(scale_load(jobs, 2)) == names(jobs)
    assert names(jitter(jobs, np.random.default_rng(1), 5)) == names(jobs)
    week = jobs.select(np.arange(3))
    joined = join_weeks([week, week])
    assert joined.after.tolist() == [-1, 0, 1, -1, 3, 4]
    assert joined.eligible.tolist() == [-1, 30, -1, -1, WEEK_S + 30, -1]
    for seed in range(20):
        pairs, _ = names(resample_week(jobs, np.random.default_rng(seed)))
        assert pairs <= {(7, 0), (11, 9)}


def test_jobs_without_these_columns_are_what_they_were():
    plain = hpcgym.load_workload("tiny")
    assert not set(COLUMNS_OF_WAITS) & set(plain.columns())
    for key, values in (("after", -1), ("think_time", 0), ("eligible", -1)):
        frame = plain.to_frame().assign(**{key: values})
        other = hpcgym.Workload.from_frame(frame, machine_processors=4)
        assert digest(other) != digest(plain)
    alike = [
        hpcgym.Workload.from_frame(plain.to_frame().assign(**{key: -1}), machine_processors=4)
        for key in ("after", "eligible")
    ]
    assert digest(alike[0]) != digest(alike[1])
    for settings in ({}, {"backfill": "gang"}, {"event_semantics": "pyss"}, {"policy": "DYNP"}):
        got = hpcgym.simulate(alike[1], **settings)
        assert got.start_time.tolist() == hpcgym.simulate(plain, **settings).start_time.tolist()
        assert got.eligible_time is None


TABLE = """job_id,submit_time,run_time,requested_time,chunks,after,think_time,eligible
7,105,10,20,1,9,3,
8,100,10,20,2,,,
9,101,10,20,4,8,,130
5,100,-1,20,1,,,
6,102,5,20,1,5,60,
"""


def test_a_table_of_jobs_says_who_is_after_whom(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text(TABLE)
    jobs, report = clean(read_log(path), machine_processors=4)
    assert jobs.job_id.tolist() == [8, 9, 6, 7]
    assert jobs.after.tolist() == [-1, 0, -1, 1]
    assert jobs.think_time.tolist() == [0, 0, 60, 3]
    assert jobs.eligible.tolist() == [-1, 30, -1, -1]
    assert report.count("job before it") == 2
    assert report.count("job before it dropped") == 1
    schedule = hpcgym.simulate(jobs, dependencies="start")
    assert schedule.start_time.tolist() == [0, 30, 2, 43]
    assert schedule.wait_time.tolist() == [0, 0, 0, 0]
    schedule.write(tmp_path / "out.csv")
    assert pd.read_csv(tmp_path / "out.csv")["eligible_time"].tolist() == [100, 130, 102, 143]
    schedule.write(tmp_path / "all.csv", columns="all")
    assert pd.read_csv(tmp_path / "all.csv")["after"].tolist() == [-1, 8, -1, 9]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "7,105,10,20,1,9,3,",
            "7,105,10,20,1,4,3,",
            ":2: job 7 is after job 4, which is not there",
        ),
        ("7,105,10,20,1,9,3,", "7,105,10,20,1,7,3,", ":2: job 7 is after itself"),
        (
            "8,100,10,20,2,,,",
            "8,100,10,20,2,9,,",
            ":3: jobs 8, 9 are each after the next, the last",
        ),
        ("5,100", "8,100", ":4: job 9 is after job 8, an id that 2 jobs have"),
        (",130", ",99", ":4: eligible is before the submission; allowed: later, or -1"),
        (",60,", ",-2,", ":6: think_time is '-2'; allowed: whole numbers from 0"),
        ("9,3,", "9.5,3,", ":2: after is '9.5'; allowed: whole numbers from"),
    ],
)
def test_what_cannot_be_in_a_table_is_an_error_with_its_line(tmp_path, old, new, said):
    path = tmp_path / "jobs.csv"
    path.write_text(TABLE.replace(old, new))
    with pytest.raises(TraceError) as error:
        clean(read_log(path), machine_processors=4)
    assert f"{path}{said}" in str(error.value)


SWF = """; MaxProcs: 4
1 0 0 10 4 -1 -1 4 20 -1 1 -1 -1 -1 -1 -1 -1 -1
2 1 0 10 2 -1 -1 2 20 -1 1 -1 -1 -1 -1 -1 1 5
3 2 0 10 2 -1 -1 2 20 -1 1 -1 -1 -1 -1 -1 1 -1
"""


def test_fields_17_and_18_are_read_where_they_are_asked_for(tmp_path):
    path = tmp_path / "log.swf"
    path.write_text(SWF)
    assert hpcgym.load_workload(path).after is None
    ignored = clean(read_swf(path))[1].steps[-1]
    assert "dependencies (2)" in ignored.detail and "--dependencies" in ignored.detail
    jobs = hpcgym.load_workload(path, dependencies=True)
    assert jobs.after.tolist() == [-1, 0, 0] and jobs.think_time.tolist() == [0, 5, 0]
    start = hpcgym.simulate(jobs, dependencies="start")
    assert start.start_time.tolist() == [0, 15, 10] and start.wait_time.tolist() == [0, 0, 0]
    write_swf(tmp_path / "again.swf", log_of(jobs))
    again = hpcgym.load_workload(tmp_path / "again.swf", dependencies=True)
    assert digest(again) == digest(jobs)
    start.write(tmp_path / "schedule.swf")
    written = read_swf(tmp_path / "schedule.swf").records
    assert written["submit_time"].tolist() == [0, 15, 10]
    assert written["preceding_job"].tolist() == [-1, 1, 1]
    path.write_text(SWF.replace(" 1 5\n", " 4 5\n"))
    with pytest.raises(TraceError, match=r"log.swf:3: job 2 is after job 4, which is not there"):
        hpcgym.load_workload(path, dependencies=True)
    hpcgym.load_workload(path)  # as ever where nobody asks
    with pytest.raises(TraceError, match="field 17 names no job before another"):
        hpcgym.load_workload("tiny", dependencies=True)


@pytest.mark.parametrize("after", [[-1, -1], [1, -1], [-1, 0, 1], [2, 0, -1, 2]])
def test_chains_are_no_circles(after):
    assert not len(find_cycle(np.array(after)))


@pytest.mark.parametrize(
    ("after", "circle"),
    [
        ([0], [0]),
        ([-1, 1], [1]),
        ([1, 0], [0, 1]),
        ([2, 0, 1], [0, 2, 1]),
        ([1, 2, 3, 1, -1], [1, 2, 3]),
    ],
)
def test_a_circle_is_found_wherever_it_is(after, circle):
    assert find_cycle(np.array(after)).tolist() == circle


HELD = """job_id,submit_time,run_time,requested_time,chunks,eligible
1,0,9,9,1,5
2,1,9,9,1,
"""


def test_an_environment_shows_a_held_job_when_its_hold_ends(tmp_path):
    path = tmp_path / "held.csv"
    path.write_text(HELD)
    episodes, _ = episodes_of_log(path, processors=2)
    expected = hpcgym.simulate(episodes.workload(0)).start_time.tolist()
    assert expected == [5, 1]
    env = gymnasium.make("HPCBatch-v0", scenario=episodes, decide="event").unwrapped
    shown, _ = env.reset(seed=1)
    assert (env.now, shown["action_mask"].sum()) == (1, 1)
    shown, *_ = env.step(env.action_space.sample())
    assert (env.now, shown["action_mask"].sum()) == (5, 1)
    env.step(env.action_space.sample())
    assert env.schedule().start_time.tolist() == expected
    assert env.metrics()["max_wait_time"] == 0


@pytest.mark.long
def test_the_command_reads_and_simulates_dependencies(tmp_path):
    path = tmp_path / "log.swf"
    path.write_text(SWF)

    def printed(*words):
        result = CliRunner().invoke(app, [*map(str, words)])
        return result.output

    said = printed("simulate", path, "--dependencies", "start", "-o", tmp_path / "made.csv")
    assert "kept       2  job before it: stated" in said and "dependencies start" in said
    assert pd.read_csv(tmp_path / "made.csv")["eligible_time"].tolist() == [0, 15, 10]
    said = printed("traces", "check", path)
    assert "2 jobs are after another job, 1 of them by a think time; 2 remain" in said
    path.write_text(SWF.replace(" 1 5\n", " 4 5\n"))
    said = printed("traces", "check", path)
    assert "dependencies cannot be simulated" in said and "log.swf:3: job 2 is after job 4" in said
    path.write_text(SWF)
    said = printed("evaluate", "--log", path, "-a", "SAF", "-a", "DYNP", "--dependencies", "start")
    assert "1.00" in said and "'DYNP', which chooses as it goes" in " ".join(said.split())


def test_what_cannot_be_beside_waiting_jobs_is_refused_with_the_reason():
    jobs = workload_of([reference.Job(0, 5, 5, 1), reference.Job(0, 5, 5, 1, 0, 0, 3)])
    waits = {"dependencies": "start"}
    for settings in (waits, {}):
        for others, named in (
            ({"policy": "DYNP"}, "DYNP"),
            ({"event_semantics": "pyss"}, "pyss"),
            ({"backfill": "gang"}, "gang"),
            ({"estimates": lambda job: 1}, "predictor"),
        ):
            with pytest.raises(PolicyError, match=named):
                hpcgym.simulate(jobs, **settings, **others)
        with pytest.raises(PolicyError, match="decide"):
            Simulator(jobs, SchedulerSettings(**settings), decide="contested")
    with pytest.raises(PolicyError, match="does not say which jobs are after others"):
        hpcgym.simulate(hpcgym.load_workload("tiny"), **waits)
    with pytest.raises(WorkloadError, match="after itself"):
        workload_of([reference.Job(0, 1, 1, 1, 0)])
    with pytest.raises(HpcgymError, match=r"\[scheduler\] dependencies 'feedback' has jobs wait"):
        SchedulerSpec(dependencies="feedback", policy="DYNP")
