"""A workload fits its machine, however it was made."""

from dataclasses import replace

import pytest

from hpcgym.base.errors import WorkloadError
from hpcgym.core.workload import Workload


def test_a_machine_smaller_than_a_job_is_refused_however_it_comes():
    jobs = Workload.from_arrays([0, 5], [10, 10], [20, 20], [1, 4], machine_processors=4)
    with pytest.raises(WorkloadError, match="job 2 needs 4 processors, the machine has 3"):
        replace(jobs, machine_processors=3)
    assert replace(jobs, machine_processors=5).machine_processors == 5
