"""A run that a real Slurm recorded is read as it was, and simulated by the files beside it."""

from pathlib import Path

import numpy as np

from research.fair_share_runs import (
    MOST_TASKS,
    N_CPUS,
    N_TASKS,
    USERS,
    drawn_jobs,
    jobs_of,
    simulated,
)

RUN = Path(__file__).parents[2] / "data" / "slurm" / "fair_share" / "run-5.txt"
N_SUBMITTED, N_ARRAYS = 80, 4


def test_tasks_of_arrays_are_jobs_of_their_own_that_wait_from_the_submission() -> None:
    jobs = jobs_of(RUN)
    assert len(jobs) == N_SUBMITTED + N_ARRAYS * (N_TASKS - 1)
    assert jobs.array is not None and jobs.array_limit is not None
    of_arrays = jobs.array_limit == MOST_TASKS
    arrays, n_tasks = np.unique(jobs.array[of_arrays], return_counts=True)
    assert len(arrays) == N_ARRAYS and set(n_tasks) == {N_TASKS}
    for array in arrays:
        assert len(set(jobs.submit_time[jobs.array == array])) == 1
    assert (jobs_of(RUN, late=2).run_time - jobs.run_time == 2).all()


def test_the_recorded_run_kept_its_limits() -> None:
    jobs = jobs_of(RUN)
    assert jobs.array is not None and jobs.array_limit is not None
    start = jobs.submit_time + jobs.wait_time
    for now in start:
        runs = (start <= now) & (now < start + jobs.run_time)
        assert jobs.processors[runs].sum() <= N_CPUS
        running, n_running = np.unique(
            jobs.array[runs & (jobs.array_limit > 0)], return_counts=True
        )
        assert len(running) == 0 or n_running.max() <= MOST_TASKS


def test_slurms_rules_bring_users_nearer_to_what_was_recorded() -> None:
    waits = simulated(RUN)
    assert list(waits) == list(USERS)

    def off(setting: str) -> float:
        """Return by how many s mean waits of users are off, on average."""
        return float(
            np.mean([abs(of[setting].mean() - of["recorded"].mean()) for of in waits.values()])
        )

    assert off("all three") < 0.5 * off("FCFS, EASY")


def test_jobs_are_drawn_again_alike_and_name_their_account() -> None:
    assert drawn_jobs(3) == drawn_jobs(3) != drawn_jobs(4)
    for job in drawn_jobs(3):
        user = job.options[0].removeprefix("--uid=")
        assert job.options[1] == f"--account={USERS[user]}"
        assert 1 <= job.cpus <= N_CPUS and 5 <= job.seconds <= 60 * job.limit
