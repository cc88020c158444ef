"""A reward in one file: its name, its rate, when it is paid, and its row of documentation."""

import hpcgym
from hpcgym.core.constants import PAY_AT_START


def late_area(job):
    """Return what a second of waiting costs a job, by its processors, from an hour on."""
    return job.processors / 256 / 3600, job.submit_time + 3600


LATE = hpcgym.register_reward(
    "late-area",
    late_area,
    form=PAY_AT_START,
    pays="for each job that has started, its processor-hours of waiting beyond the first hour",
)
