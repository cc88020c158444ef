"""The animation of two schedulers shows each run once, and no processor twice."""

import numpy as np
import pytest

import hpcgym
from hpcgym.env.scenario.episodes import Episodes
from research.films import places


@pytest.mark.parametrize("backfill", ["easy", "easy+trial"])
def test_no_processor_has_two_runs_and_each_job_has_as_many_as_it_asks_for(backfill: str) -> None:
    jobs = Episodes("synthetic-busy-weeks").workload(0)
    made = hpcgym.simulate(jobs, "SAF", backfill=backfill)
    runs = places(made, jobs.machine_processors)
    vain = 0 if made.attempts is None else len(made.attempts_frame()) - len(jobs)
    assert len(runs) == len(jobs) + vain
    busy_until = np.zeros(jobs.machine_processors, dtype=np.int64)
    for taken, end, row, lowest in runs:
        assert len(lowest) == jobs.processors[row]
        assert (busy_until[lowest] <= taken).all()
        busy_until[lowest] = end
