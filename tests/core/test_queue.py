"""The queue against a sorted list: order, bounds, and nodes that come and go."""

import numpy as np
import pytest
from numpy.typing import NDArray

from hpcgym.core import constants as s
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.compiler.struct import Struct
from hpcgym.core.kernels.queue import btree, ordered_queue, summary
from hpcgym.core.kernels.types import open_jobs, open_sim
from hpcgym.core.observation_fields import N_STATIC_FIELDS, JobField
from hpcgym.core.prepare import prepare, state_for
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.state import sim_of
from hpcgym.core.workload import Workload
from hpcgym.schedule.simulate import simulate

N_JOBS = 4_000


@kernel
def clear(row: int, which: int) -> None:
    ordered_queue.clear_queue(open_sim(row), which)


@kernel
def put_in(jobs: int, row: int, which: int, job: int) -> None:
    ordered_queue.put_in(open_jobs(jobs), open_sim(row), which, job)


@kernel
def take_out(jobs: int, row: int, which: int, job: int) -> None:
    ordered_queue.take_out(open_jobs(jobs), open_sim(row), which, job)


@kernel
def list_jobs(row: int, which: int, listed: NDArray[np.int64]) -> int:
    return ordered_queue.list_jobs(open_sim(row), which, listed)


@kernel
def size_class_of(processors: int) -> int:
    return btree.size_class_of(processors)


@kernel
def first_wider(jobs: int, row: int, free: int) -> int:
    return summary.first_wider(open_jobs(jobs), open_sim(row), free)


@kernel
def range_of_areas(jobs: int, row: int, skipped: int, youngest: int) -> tuple[float, float]:
    return summary.range_of_areas(open_jobs(jobs), open_sim(row), skipped, youngest)


class Twin:
    """A queue of ours beside a set of jobs that Python keeps."""

    def __init__(self, which, key):
        """Fill the job table with widths and estimates of all sizes."""
        generator = np.random.default_rng(0)
        width = np.exp2(generator.uniform(0, 12, N_JOBS)).astype(int)
        estimate = np.exp2(generator.uniform(0, 17, N_JOBS)).astype(int)
        self.workload = Workload.from_arrays(
            np.arange(N_JOBS), estimate, estimate, width, machine_processors=4_096
        )
        self.field = np.zeros((N_JOBS, N_STATIC_FIELDS), dtype=np.float32)
        self.field[:, JobField.LOG_AREA] = (np.log(width * estimate) / 30).round(2)
        episode = prepare(self.workload, SchedulerSettings())
        self.state = state_for([episode], fields=True)
        self.state.keeps_summary[:] = 1
        table = episode.table._replace(field=self.field)
        self.row, self.jobs = sim_of(self.state, 0), Struct(table)
        self.which, self.key, self.waiting = which, key, set()
        self.state.start_time[0] = s.FIRST_ENTRY - np.arange(N_JOBS)
        self.state.key[0, which] = key
        clear(self.row.address, which)

    def put_in(self, job):
        put_in(self.jobs.address, self.row.address, self.which, job)
        self.waiting.add(job)

    def take_out(self, job):
        take_out(self.jobs.address, self.row.address, self.which, job)
        self.waiting.remove(job)

    def assert_equal(self):
        listed = np.empty(N_JOBS, dtype=np.int64)
        n = list_jobs(self.row.address, self.which, listed)
        assert listed[:n].tolist() == sorted(self.waiting, key=lambda job: (self.key[job], job))
        self.assert_bounds()

    def move(self, job, key):
        self.take_out(job)
        self.key[job] = self.state.key[0, self.which, job] = key
        self.put_in(job)

    def assert_summaries(self, skipped, youngest, free):
        """Compare what the nodes know of the base queue with all its jobs looked at."""
        listed = np.array(sorted(self.waiting, key=lambda job: (self.key[job], job)), dtype=int)
        wider = listed[self.workload.processors[listed] > free]
        found = first_wider(self.jobs.address, self.row.address, free)
        assert found == (wider[0] if len(wider) else -1)
        counted = listed[skipped:][listed[skipped:] > youngest]
        areas = self.field[counted, JobField.LOG_AREA]
        least, largest = range_of_areas(self.jobs.address, self.row.address, skipped, youngest)
        assert least == areas.min(initial=1.0) and largest == areas.max(initial=0.0)

    def assert_bounds(self):
        state, n_groups = self.state, self.state.n_groups[0, self.which]
        for group in state.group_order[0, self.which, :n_groups]:
            blocks = state.node_child[0, group, : state.node_size[0, group]]
            inside = [
                state.node_child[0, block, : state.node_size[0, block]].copy() for block in blocks
            ]
            for node, held in [(group, np.concatenate(inside)), *zip(blocks, inside, strict=True)]:
                assert 0 < state.node_size[0, node] <= s.NODE_CHILDREN
                assert state.node_processors[0, node] == self.workload.processors[held].min()
                bound = state.node_estimate[0, node]
                assert (np.diff(bound) <= 0).all()
                classes = [size_class_of(width) for width in self.workload.processors[held]]
                assert (bound[classes] <= self.workload.requested_time[held]).all()


@pytest.mark.long
@pytest.mark.parametrize("which", [s.BASE_ORDER, s.BACKFILL_ORDER])
@pytest.mark.parametrize("order", ["in order", "backwards", "by chance", "with ties"])
def test_queue_keeps_its_order_and_its_bounds_as_it_grows_and_shrinks(which, order):
    generator = np.random.default_rng(1)
    key = {
        "in order": np.arange(N_JOBS),
        "backwards": -np.arange(N_JOBS),
        "by chance": generator.random(N_JOBS),
        "with ties": generator.integers(0, 5, N_JOBS),
    }[order].astype(float)
    twin = Twin(which, key)
    inside, outside = [], list(range(N_JOBS))

    def any_of(jobs):
        place = int(generator.integers(len(jobs)))
        jobs[place], jobs[-1] = jobs[-1], jobs[place]
        return jobs.pop()

    for target in (40, 3_000, 900, 2_500, 30, 0, 1_500, 0):
        while len(inside) != target:
            if len(inside) < target and generator.random() < 0.9:
                inside.append(any_of(outside))
                twin.put_in(inside[-1])
            elif inside:
                outside.append(any_of(inside))
                twin.take_out(outside[-1])
        twin.assert_equal()


def test_the_last_free_processor_is_offered_to_the_very_last_job():
    """Two processors are free; the second job that fits waits behind thousands that do not."""
    sizes = [2, 4, 1, *[4] * 3_000, 1]
    zeros, ones = np.zeros(len(sizes), dtype=np.int64), np.ones(len(sizes), dtype=np.int64)
    workload = Workload.from_arrays(zeros, 10 * ones, 10 * ones, sizes, machine_processors=4)
    started = np.flatnonzero(simulate(workload).start_time == 0)
    assert started.tolist() == [0, 2, len(sizes) - 1]


@pytest.mark.parametrize("forwards", [True, False])
def test_queue_that_is_emptied_from_one_end_keeps_its_bounds(forwards):
    twin = Twin(s.BASE_ORDER, np.arange(N_JOBS, dtype=float))
    for job in range(N_JOBS):
        twin.put_in(job)
    for n, job in enumerate(range(N_JOBS) if forwards else reversed(range(N_JOBS))):
        twin.take_out(job)
        if n % 97 == 0:
            twin.assert_equal()
    twin.assert_equal()


@pytest.mark.long
@pytest.mark.parametrize("order", ["by area", "by width", "by submission", "by chance"])
def test_summaries_of_nodes_are_those_of_their_jobs(order):
    generator = np.random.default_rng(2)
    twin = Twin(s.BASE_ORDER, np.zeros(N_JOBS))
    key = {
        "by area": twin.field[:, JobField.LOG_AREA],
        "by width": twin.workload.processors,
        "by submission": np.arange(N_JOBS),
        "by chance": generator.random(N_JOBS),
    }[order]
    twin.key[:] = twin.state.key[0, s.BASE_ORDER] = key
    spare = generator.permutation(N_JOBS).tolist()
    inside = []
    for target in (100, 1_600, 40, 900, 0):
        while len(inside) != target:
            change = generator.random()
            if change < 0.1 and inside:
                twin.move(int(generator.choice(inside)), -np.inf if change < 0.05 else change)
            elif (len(inside) < target) == (change < 0.9):
                inside.append(spare.pop())
                twin.put_in(inside[-1])
            elif inside:
                # Extremes leave, as well as jobs by chance.
                place = int(generator.integers(len(inside)))
                if change > 0.5:
                    place = int(np.argmax(twin.workload.processors[inside]))
                spare.insert(0, inside.pop(place))
                twin.take_out(spare[0])
            if generator.random() < 0.1:
                skipped = int(generator.integers(min(len(inside), 100) + 1))
                youngest = int(sorted(inside)[min(len(inside) - 1, 20)]) if inside else -1
                twin.assert_summaries(skipped, youngest, int(2 ** generator.uniform(0, 12)))
                twin.assert_summaries(0, -1, 4_095)


def test_size_class_in_a_job_table_is_that_of_the_kernels():
    width = np.array([*range(1, 130), 1_023, 1_024, 99_999, 2**20, 2**40])
    ten = np.full(len(width), 10)
    workload = Workload.from_arrays(ten, ten, ten, width, machine_processors=2**40)
    table = prepare(workload, SchedulerSettings()).table
    assert table.size_class.tolist() == [size_class_of(int(one)) for one in width]
    assert (np.diff(table.size_class) >= 0).all() and table.size_class[-1] == s.SIZE_CLASSES - 1
