"""A simulation that begins from a snapshot: starts and orders against plain Python."""

import pytest
from live_queues import NOW, drawn, nodes, past_of, reading, runs, waits

from hpcgym.base.errors import LiveError, PolicyError
from hpcgym.core.settings import SchedulerSettings
from hpcgym.site.live.run_times import no_past
from hpcgym.site.live.snapshot import snapshots_of
from hpcgym.site.live.stage import Stage
from reference_queue import Runs, Waits, starts_of


def wanted_jobs(stage, settings):
    """Return the waiting jobs as a policy orders them now, best first."""
    return [stage.snapshot.waiting[at] for at in stage.wanted_order(settings)]


def stage_of(read, past=None):
    """Return the stage of the only machine of a reading."""
    (snapshot,) = snapshots_of(read)
    return Stage(snapshot, past or no_past())


def expected_run(past, user, limit):
    """Say how long a job runs: the mean of the user's last two, at most its limit."""
    last = [int(run) for name, run in zip(past.user, past.run_time, strict=True) if name == user]
    return max(1, min(sum(last[-2:]) // 2, limit)) if last else limit


def expected_left(past, job):
    """Say how long a running job goes on: what is expected, twice that if it is over, and so on."""
    total = expected_run(past, job.user, job.limit_s)
    while total <= job.elapsed_s and total < job.limit_s:
        total = min(2 * total, job.limit_s)
    return max(total - job.elapsed_s, 1)


@pytest.mark.parametrize("mode", ["easy", "conservative"])
def test_expected_starts_are_those_of_plain_python(mode):
    for seed in range(60):
        read, past = drawn(seed)
        stage = stage_of(read, past)
        order = stage.slurm_order()
        ranked = [stage.snapshot.waiting[at] for at in order]
        assert [job.job_id for job in ranked] == [
            job.job_id for job in sorted(read.waiting, key=lambda job: (-job.priority, job.job_id))
        ]
        wanted = starts_of(
            stage.snapshot.cpus,
            [
                Runs(job.cpus, expected_left(past, job), job.limit_s - job.elapsed_s)
                for job in read.running
            ],
            [
                Waits(
                    job.cpus,
                    expected_run(past, job.user, job.limit_s),
                    job.limit_s,
                    max(job.eligible_time - NOW, 0),
                )
                for job in ranked
            ],
            mode,
        )
        starts = stage.starts(order, mode)
        of_job = {int(at): int(start) for at, start in zip(stage.tasks, starts, strict=True)}
        assert [of_job[at] - NOW for at in order] == wanted, seed


SCORES = {
    "SAF": lambda job: job.cpus * job.limit_s,
    "LQF": lambda job: -job.cpus,
    "WFP3": lambda job: -((max(NOW - job.eligible_time, 0) / job.limit_s) ** 3) * job.cpus,
}


@pytest.mark.parametrize("policy", SCORES)
def test_order_is_that_of_the_policy_at_this_instant(policy):
    score = SCORES[policy]
    for seed in range(30):
        read, _ = drawn(seed)
        listed = wanted_jobs(stage_of(read), SchedulerSettings(policy))
        assert sorted(job.job_id for job in listed) == sorted(job.job_id for job in read.waiting)
        values = [score(job) for job in listed]
        assert values == pytest.approx(sorted(values), rel=1e-12), seed


def test_formula_of_ones_own_orders_by_what_is_known_now():
    read, _ = drawn(3)
    shown = {}

    def shortest(features):
        shown["wait"] = features.wait
        return features.e

    listed = wanted_jobs(stage_of(read), SchedulerSettings(shortest))
    assert [job.limit_s for job in listed] == sorted(job.limit_s for job in read.waiting)
    waited = sorted(max(NOW - job.eligible_time, 0) for job in read.waiting)
    assert sorted(shown["wait"]) == waited


def test_order_by_predictions_goes_by_users_last_jobs():
    """Ana asks for less, but her jobs run longer than Chi's."""
    read = reading([waits(1, 1, 600), waits(2, 1, 1200, user="chi")], [runs(3, 16, 900, 10)])
    stage = stage_of(read, past_of(ana=500, chi=30))
    by_limit = wanted_jobs(stage, SchedulerSettings("SPF"))
    predicted = SchedulerSettings("SPF", estimates="recent")
    assert [job.job_id for job in by_limit] == [1, 2]
    assert [job.job_id for job in wanted_jobs(stage, predicted)] == [2, 1]


def test_jobs_of_a_higher_tier_go_first_in_every_order():
    several = nodes(16) + nodes(16, partition="debug", tier=2)
    read = reading(
        [waits(1, 1, 60, priority=9), waits(2, 8, 600, partition="debug", priority=1)],
        [runs(3, 16, 900, 10)],
        several,
    )
    stage = stage_of(read)
    for listed in (
        [stage.snapshot.waiting[at] for at in stage.slurm_order()],
        wanted_jobs(stage, SchedulerSettings("SAF")),
    ):
        assert [job.job_id for job in listed] == [2, 1]


def test_array_runs_so_many_tasks_at_once():
    """Two of five tasks may run: one does, for 60 s more, and 15 cpus are idle."""
    array = waits(7, 1, 100, array_id="7_[1-4%2]", tasks=4, at_once=2)
    read = reading([array], [runs(8, 1, 70, 10, array_id="7_0")])
    stage = stage_of(read)
    assert (stage.starts([0]) - NOW).tolist() == [0, 60, 100, 160]
    free = reading([waits(7, 1, 100, array_id="7_[1-4]", tasks=4)], [runs(8, 1, 70, 10)])
    assert (stage_of(free).starts([0]) - NOW).tolist() == [0, 0, 0, 0]


def test_job_that_is_completing_frees_its_cpus_at_once():
    read = reading([waits(1, 16, 60)], [runs(2, 16, 900, 10, state="COMPLETING")])
    assert (stage_of(read).starts([0]) - NOW).tolist() == [1]


def test_modes_that_would_not_run_the_running_jobs_are_refused():
    running = [runs(job, 8, 90_000, 10) for job in (2, 3)]
    read = reading([waits(1, 16, 60)], running)
    with pytest.raises(LiveError, match="would not run the jobs that are running"):
        stage_of(read).starts([0], "easy:cap=0.5")


def test_policy_that_chooses_between_orders_is_refused():
    read = reading([waits(1, 16, 60)], [runs(2, 16, 900, 10)])
    with pytest.raises(PolicyError, match="chooses between orders"):
        wanted_jobs(stage_of(read), SchedulerSettings("DYNP"))
