"""What notebooks show of workloads and schedules, and the processors that their picture has."""

import re
from dataclasses import replace

import numpy as np

from hpcgym import Workload, simulate
from hpcgym.base.notebook import HEIGHT
from hpcgym.schedule.busy import N_STRETCHES, mean_waiting, share_held

JOBS = Workload.from_arrays(
    [0, 0, 10], [20, 40, 10], [20, 40, 10], [1, 2, 4], machine_processors=4, user=[1, 2, 1]
)
"""Under FCFS jobs 1 and 2 run from 0 to 20 and 40, job 3 on the whole machine from 40 to 50."""


def test_processors_held_and_jobs_that_wait_are_means_of_the_stretches() -> None:
    schedule, edges = simulate(JOBS), np.array([0.0, 20.0, 40.0, 45.0, 50.0])
    assert share_held(schedule, edges).tolist() == [0.75, 0.5, 1.0, 1.0]
    assert mean_waiting(schedule, edges).tolist() == [0.5, 1.0, 0.0, 0.0]


def test_a_notebook_shows_metrics_and_processors_over_time() -> None:
    page = simulate(JOBS, "SAF")._repr_html_()
    assert "<b>workload, SAF under easy</b>" in page
    assert "<th>longest wait</th><td>30s</td>" in page
    assert "<th>utilisation</th><td>70.0%</td>" in page
    heights = [1 - float(y) / HEIGHT for y in re.findall(r"V([\d.]+)H", page)]
    seconds = [*[0.75] * 20, *[0.5] * 20, *[1.0] * 10]
    assert heights == np.repeat(seconds, N_STRETCHES // 50).tolist()


def test_a_notebook_shows_schedules_cut_short_and_jobs_that_never_ran() -> None:
    schedule = simulate(JOBS)
    unfinished = replace(schedule, start_time=np.full(3, -1), settings=None)
    page = unfinished._repr_html_()
    assert "<b>workload</b>" in page and "<td>3, not all started</td>" in page


def test_a_notebook_shows_a_workload_and_escapes_its_name() -> None:
    page = replace(JOBS, name="<i>mine")._repr_html_()
    assert page.startswith("<b>&lt;i&gt;mine</b>")
    for name, said in {"jobs": "3", "users": "2", "processors": "4", "load": "3.50"}.items():
        assert f"<th>{name}</th><td>{said}</td>" in page
