"""The first of a list, and the next, and the next, against a sorted list."""

import numpy as np
import pytest

from hpcgym.core import constants as s
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.kernels.queue import selection
from hpcgym.core.kernels.types import open_sim
from hpcgym.core.prepare import prepare, state_for
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.state import sim_of
from hpcgym.core.workload import Workload


@kernel
def take_first(row: int, which: int, n: int, taken: int) -> int:
    return selection.take_first(open_sim(row), which, n, taken)


@pytest.mark.parametrize("n_keys", [1, 7, 10_000])
@pytest.mark.parametrize("n", [1, 2, selection.SHORT_LIST, selection.SHORT_LIST + 1, 700])
def test_jobs_are_taken_in_the_order_of_key_and_index(n, n_keys):
    ones = np.ones(n, dtype=int)
    workload = Workload.from_arrays(ones, ones, ones, ones, machine_processors=1)
    state = state_for([prepare(workload, SchedulerSettings())])
    row = sim_of(state, 0)
    generator = np.random.default_rng(n)
    key = generator.integers(0, n_keys, n).astype(float)
    key[generator.random(n) < 0.05] = -np.inf
    state.start_time[0] = s.FIRST_ENTRY - np.arange(n)  # job i waits in entry i
    state.key[0, s.PASS_ORDER] = key
    state.scratch[0] = generator.permutation(n)
    taken = [take_first(row.address, s.PASS_ORDER, n - place, place) for place in range(n)]
    assert taken == np.lexsort([np.arange(n), key]).tolist()
