"""Site factors: the wanted order, the fewest changes, every bound, against a search of all ways."""

from itertools import combinations, pairwise

from hypothesis import given
from hypothesis import strategies as st

from hpcgym.site.live.changes import FLOOR, GAP, Bounds, MovableJob, planned

FREE = Bounds(job=10_000, user=10**9, cycle=10**9)


def jobs_of(*numbers):
    """Make jobs of (priority, site factor), numbered from 1 in the wanted order."""
    return [
        MovableJob(at, f"u{at % 3}", priority, site)
        for at, (priority, site) in enumerate(numbers, start=1)
    ]


def priorities_after(jobs, changes):
    """Return the priorities that Slurm makes of changes, by its own rule."""
    return [max(job.base + changes.get(job.job_id, job.site), 1) for job in jobs]


def can_be_ordered(jobs, bounds, kept):
    """Try whether values within bounds exist that are in order, where some jobs keep theirs."""
    before = None
    for at, job in enumerate(jobs):
        low = max(job.base - bounds.job, min(job.base, FLOOR))
        high = job.base + bounds.job
        if at in kept:
            if not low <= job.priority <= high:
                return False
            low = high = job.priority
        value = high if before is None else min(high, before - GAP)
        if value < low:
            return False
        before = value
    return True


def fewest_changes(jobs, bounds):
    """Return the fewest jobs that must change, by trying all sets; None where no way is there."""
    for n_changes in range(len(jobs) + 1):
        for kept in combinations(range(len(jobs)), len(jobs) - n_changes):
            if can_be_ordered(jobs, bounds, set(kept)):
                return n_changes
    return None


drawn_jobs = st.lists(
    st.tuples(st.integers(FLOOR, 60), st.sampled_from([0, 0, 0, 7, -9])), max_size=8
).map(lambda numbers: jobs_of(*numbers))


@given(drawn_jobs, st.integers(0, 40))
def test_the_wanted_order_is_reached_by_the_fewest_changes_or_is_out_of_bounds(jobs, most):
    bounds = Bounds(most, 10**9, 10**9)
    changes = planned([jobs], bounds)
    fewest = fewest_changes(jobs, bounds)
    after = priorities_after(jobs, changes)
    if fewest is not None:
        assert all(above - below >= GAP for above, below in pairwise(after))
        assert len(changes) == fewest
    for job in jobs:
        if job.job_id in changes:
            assert abs(changes[job.job_id]) <= most and changes[job.job_id] != job.site


@given(drawn_jobs, st.integers(0, 40), st.integers(0, 60), st.integers(0, 60))
def test_no_bound_is_ever_exceeded(jobs, of_job, of_user, of_cycle):
    changes = planned([jobs], Bounds(of_job, of_user, of_cycle))
    for sign in (1, -1):
        after = {job: max(sign * changes.get(job.job_id, job.site), 0) for job in jobs}
        assert max(after.values(), default=0) <= of_job
        for user in {job.user for job in jobs}:
            assert sum(points for job, points in after.items() if job.user == user) <= of_user
        added = sum(max(points - max(sign * job.site, 0), 0) for job, points in after.items())
        assert added <= of_cycle


@given(drawn_jobs)
def test_no_priority_is_put_below_what_is_a_sum(jobs):
    changes = planned([jobs], FREE)
    for job in jobs:
        if job.job_id in changes:
            assert job.base + changes[job.job_id] >= min(job.base, FLOOR)


def test_a_queue_in_order_is_left_alone():
    assert planned([jobs_of((300, 0), (200, 50), (100, -20))], FREE) == {}
    assert planned([[]], FREE) == {}


def test_a_new_job_changes_no_other():
    """Jobs 1, 3 and 4 were put in line before; job 2 belongs behind the first."""
    jobs = jobs_of((500, 200), (100, 0), (400, 0), (200, -100))
    changes = planned([jobs], FREE)
    assert [*changes] == [2]
    assert priorities_after(jobs, changes) == [500, 402, 400, 200]


def test_a_reversed_queue_exchanges_its_priorities():
    jobs = jobs_of((100, 0), (200, 0), (300, 0), (400, 0))
    assert planned([jobs], FREE) == {1: 306, 2: 204, 3: 102}


def test_a_job_that_may_not_rise_far_enough_does_not_press_the_others_down():
    """Job 1 may go to 150 at the most; jobs 2 and 3 exchange their places all the same."""
    jobs = jobs_of((100, 0), (1000, 0), (1010, 0))
    changes = planned([jobs], Bounds(50, 10**9, 10**9))
    assert priorities_after(jobs, changes)[0] == 150
    assert min(priorities_after(jobs, changes)[1:]) >= 960


def test_points_of_a_user_go_to_the_first_in_line():
    jobs = [MovableJob(at, "ana", 100, 0) for at in (1, 2, 3)]
    jobs.append(MovableJob(4, "ben", 200, 0))
    changes = planned([jobs], Bounds(1000, 110, 10**9))
    assert 0 < changes[1] <= 110 and sum(max(site, 0) for site in changes.values()) <= 110


def test_what_one_cycle_may_not_do_the_next_ones_do():
    jobs = jobs_of((100, 0), (200, 0), (300, 0), (400, 0))
    bounds, cycles = Bounds(1000, 1000, 100), 0
    while changes := planned([jobs], bounds):
        after = priorities_after(jobs, changes)
        jobs = [
            MovableJob(job.job_id, job.user, value, changes.get(job.job_id, job.site))
            for job, value in zip(jobs, after, strict=True)
        ]
        cycles += 1
        assert cycles < 20
    values = [job.priority for job in jobs]
    assert cycles > 1 and values == sorted(values, reverse=True)


def test_lines_are_put_in_order_apart_and_share_the_points_of_a_cycle():
    lines = [[MovableJob(1, "ana", 10, 0), MovableJob(2, "ben", 50, 0)]]
    lines.append([MovableJob(3, "chi", 20, 0), MovableJob(4, "dan", 70, 0)])
    assert planned(lines, FREE) == {1: 42, 3: 52}
    assert planned(lines, Bounds(1000, 1000, 50)) == {1: 42, 3: 8}
