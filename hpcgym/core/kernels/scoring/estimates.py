"""Predictions: made at a job's submission, kept while it waits, corrected while it runs.

A prediction costs O(1), a correction one shift of the release list, as a start does. Corrections
are made just before the pass at which they first matter. They trigger no pass: jobs that a later
shadow time lets in start at the next event. Simulators of the pyss family do the same: their
handler of a prediction that has run out extends the job and schedules nothing.

Source: Tsafrir, Etsion and Feitelson 2007; specification, section 8, "EASY++".
"""

from hpcgym.core import constants as s
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.engine.calendar import put_in_turn
from hpcgym.core.history import RING_JOBS
from hpcgym.core.kernels.types import Int, Jobs, Sim

STEPS_S = (60, 300, 900, 1800, 3600, 7200, 18_000, 36_000, 72_000, 180_000, 360_000)
"""Seconds added to a prediction at its first, second, third ... correction."""


@kernel
def predict_recent(jobs: Jobs, sim: Sim, job: int) -> int:
    """Predict the mean run time of the user's last two completed jobs, from 1 s to the request."""
    completed = sim.history_completed[jobs.user[job]]
    requested = jobs.requested_time[job]
    if completed < 2:  # one job is not enough: so does predictsim, whose results follow from it
        return requested
    last = sim.history_run_time[jobs.user[job], (completed - 1) % RING_JOBS]
    before = sim.history_run_time[jobs.user[job], (completed - 2) % RING_JOBS]
    return max(min((last + before) // 2, requested), 1)


@kernel
def write_prediction(jobs: Jobs, job: int, seconds: int) -> None:
    """Write a prediction, s, >= 1, as a newcomer's estimate and into its features.

    Corrections change `estimate` only: `feature` keeps the prediction of the submission.
    """
    jobs.estimate[job] = seconds
    jobs.feature[job, s.FEATURE_ESTIMATE] = float(seconds)


@kernel(inlined=True)
def asks_python(jobs: Jobs, sim: Sim) -> bool:
    """Tell whether a job is submitted now whose prediction Python has not given yet."""
    # `run` asks right before it handles submissions, so Python predicts by the same completions
    # as the built-in predictor.
    return (
        sim.predict == s.PREDICT_ASKED
        and sim.next_job < sim.n_jobs
        and sim.next_job >= sim.n_predicted
        and jobs.submit_time[sim.next_job] == sim.now
    )


@kernel
def give_predictions(jobs: Jobs, sim: Sim, predicted: Int) -> None:
    """Write Python's predictions of the jobs submitted now, shape (n_submitted,), s, >= 1.

    Writes what `write_prediction` writes, and `n_predicted`.
    """
    first = sim.next_job
    for position in range(len(predicted)):
        write_prediction(jobs, first + position, predicted[position])
    sim.n_predicted = first + len(predicted)


@kernel
def next_estimate(jobs: Jobs, sim: Sim, job: int) -> int:
    """Return the next estimate of a job that has outlived its estimate, s.

    It is no longer than the current estimate where the correction has nothing longer to offer.
    """
    estimate = jobs.estimate[job]
    requested = jobs.requested_time[job]
    if sim.correct == s.CORRECT_BY_DOUBLING:
        return 2 * estimate  # may exceed the request: needed to match predictsim's results
    if sim.correct == s.CORRECT_TO_REQUEST:
        return requested
    # A step replaces the one before: each is added to the prediction of the submission. This, too,
    # is what predictsim's results show.
    predicted = int(jobs.feature[job, s.FEATURE_ESTIMATE])
    for step in STEPS_S:
        if predicted + step > estimate:
            return min(predicted + step, requested)
    return requested


@kernel(inlined=True)
def has_outlived(jobs: Jobs, job: int) -> bool:
    """Tell whether a running job whose estimated end has come runs longer than estimated."""
    # The true run time may be read here: once the estimated end has come, everybody can see
    # whether the job still runs.
    return jobs.estimate[job] < jobs.run_time[job]


@kernel
def correct_release(jobs: Jobs, sim: Sim, position: int) -> int:
    """Correct a running job's estimate until it ends after `now`, or covers the true run time.

    `position` is the job's in the release list. Returns its new one, or `position` if no longer
    estimate exists. Writes `estimate`, `release_time` and `release_job`.
    """
    job = sim.release_job[position]
    start = sim.start_time[job]
    while start + jobs.estimate[job] <= sim.now and has_outlived(jobs, job):
        estimate = next_estimate(jobs, sim, job)
        if estimate <= jobs.estimate[job]:
            break
        jobs.estimate[job] = estimate
    release = start + jobs.estimate[job]
    # The list is kept with the soonest end last, so a later end moves the job to the front.
    return put_in_turn(sim.release_time, sim.release_job, position, release, job)


@kernel
def correct_releases(jobs: Jobs, sim: Sim) -> None:
    """Correct the estimate of every running job that has outlived it.

    Writes what `correct_release` writes. `settled_head` becomes -1, since the shadow time may have
    moved, and `replan` becomes 1, since kept reservations may have to move.
    """
    now = sim.now
    position = sim.n_releases - 1
    while position >= 0 and sim.release_time[position] <= now:
        job = sim.release_job[position]
        moved_to = position
        if has_outlived(jobs, job):
            sim.settled_head = -1
            sim.replan = 1
            moved_to = correct_release(jobs, sim, position)
        if moved_to == position:  # else another job, not looked at yet, is at this place now
            position -= 1
