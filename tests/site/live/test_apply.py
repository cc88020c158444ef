"""Cycles and their restoring beside a Slurm that is a file: what is told, refused, and undone."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from fake_slurm import CONFIG, Slurm
from hypothesis import given
from hypothesis import strategies as st
from live_queues import waits

from hpcgym.base.errors import LiveError
from hpcgym.site.live import apply, journal
from hpcgym.site.live.apply import Factors, cycle, plan_of, read_factors, refuse_unfit, restore
from hpcgym.site.live.changes import FLOOR, Bounds
from hpcgym.site.live.journal import opened
from hpcgym.site.live.readings import WaitingJob

FREE = Bounds(10_000, 10**6, 10**6)


def waiting(job_id, array_id=None, partition="batch"):
    """Return a waiting job; only what a cycle reads matters."""
    return waits(job_id, 1, 60, array_id=array_id or str(job_id), partition=partition)


class SlurmInCycles(Slurm):
    """A Slurm that is a file, with a journal beside it."""

    def cycle(self, order, hold_s=600):
        """Make a cycle that wants an order of jobs, which are all there are."""
        with opened(self.journal) as journal:
            jobs = [job if isinstance(job, WaitingJob) else waiting(job) for job in order]
            self.plan = plan_of([jobs], jobs, ["batch"], FREE, journal, read_factors())
            return cycle(self.plan, journal, hold_s)

    def restore(self, **how):
        """Restore."""
        with opened(self.journal) as journal:
            return restore(journal, **how)

    def in_force(self):
        """Return what the journal says may be in force."""
        with opened(self.journal) as journal:
            return journal.sites


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """Return a Slurm with three jobs, the first of the lowest priority."""
    made = SlurmInCycles(tmp_path, monkeypatch)
    made.jobs(j1={"base": 100, "site": 0}, j2={"base": 200, "site": 0}, j3={"base": 300, "site": 0})
    return made


@pytest.mark.long
def test_a_cycle_puts_jobs_in_order_and_restoring_takes_it_back(slurm):
    outcome = slurm.cycle([1, 2, 3])
    assert slurm.order() == [1, 2, 3]
    assert outcome.told == slurm.told() and set(slurm.in_force()) == set(outcome.told)
    assert slurm.restore().told == dict.fromkeys(outcome.told, 0)
    assert slurm.sites() == {1: 0, 2: 0, 3: 0} and not slurm.in_force()
    assert slurm.restore().told == {}


def test_a_queue_in_order_is_told_nothing_and_its_changes_are_renewed(slurm):
    slurm.cycle([1, 2, 3], hold_s=-1)
    slurm.write(told=[])
    assert slurm.cycle([1, 2, 3]).told == {} and slurm.told() == {}
    assert slurm.restore(only_expired=True).told == {}
    assert slurm.order() == [1, 2, 3]


def test_changes_that_nobody_renews_are_taken_back_when_they_expire(slurm):
    slurm.cycle([1, 2, 3], hold_s=600)
    assert slurm.restore(only_expired=True).told == {}
    slurm.cycle([1, 2, 3], hold_s=-1)
    assert slurm.restore(only_expired=True).told
    assert set(slurm.sites().values()) == {0}


def test_a_job_that_runs_is_set_back_so_that_it_has_nothing_when_it_is_requeued(slurm):
    slurm.cycle([1, 2, 3])
    assert slurm.sites()[1]
    state = slurm.read()
    state["jobs"]["1"]["hidden"] = True
    slurm.write(**state)
    slurm.cycle([2, 3])
    assert slurm.sites()[1] == 0 and 1 not in slurm.in_force()


def test_a_job_that_has_ended_is_forgotten(slurm):
    slurm.cycle([1, 2, 3])
    jobs = slurm.read()["jobs"]
    del jobs["1"]
    slurm.write(jobs=jobs)
    assert 1 in slurm.cycle([2, 3]).cleared
    assert 1 not in slurm.in_force()


def test_what_others_have_set_is_never_touched(slurm):
    slurm.jobs(
        j1={"base": 100, "site": 0, "set": 5000},
        j2={"base": 200, "site": 33},
        j3={"base": 300, "site": 0},
        j4={"base": 400, "site": 0},
        j5={"base": 500, "site": 0, "hidden": True},
        j6={"base": 1, "site": 0, "nice": 2000},
        j7={"base": 700, "site": 0, "nice": -50},
        j8={"base": 800, "site": 0, "shown": 900},
    )
    outside = waiting(7, partition="debug")
    slurm.cycle([1, 8, 2, 5, 6, outside, 3, 4])
    assert set(slurm.told()) == {3}
    assert slurm.plan.left == {
        "priority set by hand": ["1", "8"],
        "site factor of somebody else": ["2"],
        "without a priority now": ["5"],
        "priority at its lowest": ["6"],
        "in a partition that is not named": ["7"],
    }


class Remembered:
    """The part of a journal that a plan reads, in memory."""

    def __init__(self):
        self.sites, self.former = {}, {}

    def known(self, job):
        return self.sites.get(job, [])


@given(
    st.lists(st.tuples(st.integers(-30, 4_000), st.integers(0, 300)), min_size=2, max_size=7),
    st.sampled_from([40, 900, 20_000]),
    st.integers(0, 3),
)
def test_cycles_settle_and_a_job_that_they_put_lowest_stays_theirs(jobs, most, n_sinking):
    """Jobs lose points in the first cycles, as users who run do; Slurm shows 1 for all below."""
    bounds, journal = Bounds(most, 10**9, 10**9), Remembered()
    sites = dict.fromkeys(range(1, len(jobs) + 1), 0)
    line = [waiting(job) for job in sites]
    for turn in range(n_sinking + 4):
        base = {
            job: start - loss * min(turn, n_sinking)
            for job, (start, loss) in enumerate(jobs, start=1)
        }
        total = {job: base[job] + site for job, site in sites.items()}
        factors = {
            job: [Factors(max(total[job], 1), site, total[job], False)]
            for job, site in sites.items()
        }
        plan = plan_of([line], line, ["batch"], bounds, journal, factors)
        lowest = {str(job) for job in base if base[job] < FLOOR}
        assert set(plan.left.get("priority at its lowest", ())) == lowest
        for job, site in plan.told.items():
            journal.sites.setdefault(job, []).append(site)
        sites |= plan.told
    assert plan.told == {}


def test_a_job_that_sinks_where_it_was_put_keeps_its_site_factor(slurm):
    slurm.cycle([3, 2, 1])
    slurm.cycle([1, 2, 3])
    state = slurm.read()
    job = min(state["jobs"], key=lambda each: state["jobs"][each]["site"])
    state["jobs"][job]["base"] = 5
    slurm.write(**state)
    slurm.cycle([1, 2, 3])
    assert slurm.plan.left == {} and slurm.order() == [1, 2, 3]
    assert slurm.cycle([1, 2, 3]).told == {}


@pytest.mark.long
def test_changes_expire_by_a_clock_that_nobody_sets(slurm, monkeypatch):
    tomorrow = time.time() + 86_400
    with monkeypatch.context() as ahead:
        ahead.setattr(time, "time", lambda: tomorrow)
        slurm.cycle([1, 2, 3], hold_s=600)
    assert slurm.restore(only_expired=True).told == {}  # ten minutes are not over
    with monkeypatch.context() as later:
        later.setattr(journal, "boot_clock", lambda: ("another boot", 5.0))
        assert slurm.restore(only_expired=True).told  # the clock was set back since
    slurm.cycle([1, 2, 3], hold_s=600)
    boot, up = journal.boot_clock()
    monkeypatch.setattr(journal, "boot_clock", lambda: (boot, up + 601))
    assert slurm.restore(only_expired=True).told
    assert set(slurm.sites().values()) == {0}


def test_a_site_factor_that_somebody_changes_meanwhile_stays(slurm):
    slurm.cycle([1, 2, 3])
    jobs = slurm.read()["jobs"]
    jobs["1"]["site"] = 77
    slurm.write(jobs=jobs, told=[])
    slurm.restore()
    assert slurm.sites() == {1: 77, 2: 0, 3: 0} and not slurm.in_force()


def test_a_controller_that_forgets_its_last_seconds_is_restored_all_the_same(slurm):
    slurm.cycle([1, 2, 3])
    before = slurm.read()["jobs"]
    slurm.restore()
    slurm.write(jobs=before)
    assert slurm.restore(only_expired=True).told
    assert set(slurm.sites().values()) == {0}


def test_tasks_of_an_array_keep_theirs_where_the_array_is_told_another(slurm):
    """Job 9 is a task of array 1 that waits on its own, in order already."""
    slurm.jobs(
        j1={"base": 100, "site": 0},
        j2={"base": 200, "site": 0},
        j9={"base": 90, "site": 0, "array": 1},
    )
    slurm.cycle([waiting(1, "1_[3-5]"), 2, waiting(9, "1_2")])
    assert slurm.sites()[1] > 0 and slurm.sites()[9] == 0
    assert slurm.order() == [1, 2, 9]


def test_an_array_with_a_task_that_others_have_set_is_left_alone(slurm):
    slurm.jobs(
        j1={"base": 100, "site": 0},
        j2={"base": 200, "site": 0},
        j9={"base": 90, "site": 55, "array": 1},
    )
    slurm.cycle([waiting(1, "1_[3-5]"), 2, waiting(9, "1_2")])
    assert slurm.sites() == {1: 0, 2: 0, 9: 55}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"config": CONFIG | {"PriorityType": "priority/basic"}}, "priority/basic"),
        ({"config": CONFIG | {"PriorityFlags": "ACCRUE_ALWAYS,INCR_ONLY"}}, "INCR_ONLY"),
        ({"config": CONFIG | {"PrioritySiteFactorPlugin": "site_factor/x"}}, "site_factor/x"),
        ({"config": {}}, "unknown"),
        ({"level": "None"}, "operator"),
        ({"up": False}, "is DOWN"),
    ],
)
def test_a_slurm_or_a_user_that_is_not_fit_is_refused(slurm, monkeypatch, changed, message):
    monkeypatch.setattr(apply.os, "geteuid", lambda: 1)
    refuse_unfit()
    slurm.write(**changed)
    with pytest.raises(LiveError, match=message):
        refuse_unfit()


def test_root_and_slurms_own_user_need_no_level(slurm, monkeypatch):
    slurm.write(level="")
    monkeypatch.setattr(apply.os, "geteuid", lambda: 0)
    refuse_unfit()


def test_restoring_without_a_controller_is_an_error_and_forgets_nothing(slurm):
    slurm.cycle([1, 2, 3])
    slurm.write(up=False)
    with pytest.raises(LiveError, match="is DOWN"):
        slurm.restore()
    slurm.write(up=True)
    assert slurm.restore().told and set(slurm.sites().values()) == {0}


@pytest.mark.parametrize(
    ("lines", "ended", "refused"),
    [
        (["1_0-1: Job has already finished", "1_2-3: No error"], set(), []),
        (["1_0-3: Job has already finished"], {1}, []),
        (["Invalid job id specified for job 5", "Access denied for job 6"], {5}, [6]),
        (["2_0-1: Job has already finished", "1_0-1: Access denied", "1_2: Held"], {2}, [1, 1]),
    ],
)
def test_answers_are_told_apart_also_those_of_tasks(lines, ended, refused):
    """Lines of tasks as a Slurm 22.05 printed them."""
    assert apply.answers_of(lines) == (ended, refused, lines[1:] if refused else [])


def test_a_change_that_slurm_refuses_is_an_error_and_stays_in_the_journal(slurm):
    jobs = slurm.read()["jobs"]
    jobs["1"]["refuses"] = True
    slurm.write(jobs=jobs)
    with pytest.raises(LiveError, match="denied for job 1"):
        slurm.cycle([1, 2, 3])
    assert 1 in slurm.in_force()


def test_what_cannot_be_taken_back_stays_in_the_journal_and_the_rest_does_not(slurm):
    slurm.cycle([1, 2, 3])
    assert set(slurm.in_force()) == {1, 2}
    jobs = slurm.read()["jobs"]
    jobs["1"]["refuses"] = True
    slurm.write(jobs=jobs)
    with pytest.raises(LiveError, match="denied for job 1"):
        slurm.restore()
    assert set(slurm.in_force()) == {1}


def test_a_controller_that_dies_in_the_middle_leaves_all_in_the_journal(slurm):
    slurm.cycle([1, 2, 3])
    slurm.write(breaks=True)
    with pytest.raises(LiveError, match="connect failure"):
        slurm.restore()
    assert set(slurm.in_force()) == {1, 2}


def test_a_reading_that_is_cut_short_changes_nothing(slurm, tmp_path):
    (tmp_path / "sprio").write_text("#!/bin/sh\necho '1|batch|10'\n")
    with pytest.raises(LiveError, match="sprio:1"):
        slurm.cycle([1, 2, 3])
    assert slurm.told() == {} and not slurm.in_force()


@pytest.mark.long
@pytest.mark.parametrize("n_updates", [1, 2])
def test_a_cycle_that_is_killed_in_the_middle_is_restored(slurm, n_updates):
    """The process that applies dies while `scontrol` is telling; the latter goes on to its end."""
    slurm.write(die=n_updates)
    code = f"""
        import sys
        sys.path[:0] = {sys.path!r}
        from test_apply import FREE, waiting
        from hpcgym.site.live.apply import cycle, plan_of, read_factors
        from hpcgym.site.live.journal import opened
        with opened({str(slurm.journal)!r}) as journal:
            jobs = [waiting(job) for job in (1, 2, 3)]
            cycle(plan_of([jobs], jobs, ["batch"], FREE, journal, read_factors()), journal, 600)
    """
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], env=environment)
    assert done.returncode == -signal.SIGKILL
    slurm.restore()
    time.sleep(1.0)  # longer than the rest takes, had restoring not waited for it
    assert set(slurm.sites().values()) == {0} and not slurm.in_force()
    assert len(slurm.read()["told"]) > n_updates


@pytest.mark.long
def test_at_every_instant_the_journal_names_each_site_factor_in_force(slurm, monkeypatch):
    """Die at each step of a cycle in turn: what Slurm has is in the journal, and restored."""
    steps = ("intend", "_fed_to_scontrol", "clear")

    class Killed(BaseException):
        pass

    def dies(*_, **__):
        raise Killed

    for step in steps:
        with monkeypatch.context() as patched:
            home = apply if step.startswith("_") else apply.Journal
            patched.setattr(home, step, dies)
            with pytest.raises(Killed):
                slurm.cycle([3, 1, 2] if step == "clear" else [1, 2, 3])
        in_force = slurm.in_force()
        assert all(job in in_force for job, site in slurm.sites().items() if site)
        slurm.restore()
        assert set(slurm.sites().values()) == {0}
