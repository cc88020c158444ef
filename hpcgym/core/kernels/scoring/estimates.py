"""Predictions: made at a job's submission, frozen while it waits, corrected while it runs.

A prediction costs a few steps at the submission. A correction is made before the pass at which it
first matters and costs a shift of the release list, as a start does. It makes no pass by itself: a
scheduler does nothing at that instant, and jobs that the later shadow time lets in start at the
next event. So do simulators of the pyss family, whose handler of a prediction that has run out
extends the job and schedules nothing.
"""

from hpcgym.core.history import RING_JOBS
from hpcgym.core.jit import kernel
from hpcgym.core.kernels.types import Jobs, Sim
from hpcgym.core.state import (
    AREA,
    CORRECT,
    CORRECT_BY_DOUBLING,
    CORRECT_TO_REQUEST,
    N_JOBS,
    N_PREDICTED,
    N_RELEASES,
    NEXT_JOB,
    NOW,
    PREDICT,
    PREDICT_ASKED,
    REPLAN,
    RHO,
    SETTLED_HEAD,
    E,
    Int,
    Q,
)

STEPS_S = (60, 300, 900, 1800, 3600, 7200, 18_000, 36_000, 72_000, 180_000, 360_000)
"""What is added to a prediction at its first, second, third ... correction, s."""


@kernel
def predict_recent(jobs: Jobs, sim: Sim, job: int) -> int:
    """Predict a newcomer's run time by its user's last two completed jobs.

    Args:
        jobs: The job table.
        row: The simulation, at the job's submission.
        job: Index of the newcomer.

    Returns:
        Their mean run time in whole seconds, within 1 and the request; the request where fewer
        than two are known, s.

    Source:
        Tsafrir, Etsion and Feitelson 2007, section 4; specification, section 8. The request for a
        user with one completed job: jad-darrous/predictsim, whose figures follow from it.
    """
    completed = sim.history_completed[jobs.user[job]]
    requested = jobs.requested_time[job]
    if completed < 2:
        return requested
    rings = sim.history_run_time
    last = rings[jobs.user[job], (completed - 1) % RING_JOBS]
    before = rings[jobs.user[job], (completed - 2) % RING_JOBS]
    return max(min((last + before) // 2, requested), 1)


@kernel
def write_prediction(jobs: Jobs, job: int, seconds: int) -> None:
    """Let the scheduler plan with a prediction.

    Args:
        jobs: The job table, its estimates the simulation's own.
        job: Index of a job that is being submitted.
        seconds: The prediction, s, >= 1.

    Writes:
        The job's estimate, and the features made of it, which keep the prediction whatever is
        corrected.

    Source:
        Specification, section 10, "Information": read at the submission and frozen with it.
    """
    jobs.estimate[job] = seconds
    jobs.feature[job, E] = float(seconds)
    jobs.feature[job, RHO] = seconds / jobs.feature[job, Q]
    jobs.feature[job, AREA] = seconds * jobs.feature[job, Q]


@kernel(inlined=True)
def asks_python(jobs: Jobs, sim: Sim) -> bool:
    """Tell whether Python has to predict before this instant's submissions are taken in.

    Args:
        jobs: The job table.
        row: The simulation, the completions that come before the submissions handled.

    Returns:
        True if a job is submitted now whose prediction has not been given.

    Source:
        House rule: a user's predictor knows what ours does, and no more.
    """
    return (
        sim.setting[PREDICT] == PREDICT_ASKED
        and sim.counter[NEXT_JOB] < sim.setting[N_JOBS]
        and sim.counter[NEXT_JOB] >= sim.counter[N_PREDICTED]
        and jobs.submit_time[sim.counter[NEXT_JOB]] == sim.counter[NOW]
    )


@kernel
def give_predictions(jobs: Jobs, sim: Sim, predicted: Int) -> None:
    """Take in what Python has predicted of the jobs submitted now.

    Args:
        jobs: The job table, its estimates the simulation's own.
        row: The simulation, which has stopped for predictions.
        predicted: Predictions of the next jobs in turn, shape (n_submitted,), s, >= 1.

    Writes:
        What `write_prediction` writes; N_PREDICTED.

    Source:
        House rule: a user's predictor runs through the same dynamics as ours.
    """
    first = sim.counter[NEXT_JOB]
    for place in range(len(predicted)):
        write_prediction(jobs, first + place, predicted[place])
    sim.counter[N_PREDICTED] = first + len(predicted)


@kernel
def next_estimate(jobs: Jobs, sim: Sim, job: int) -> int:
    """Return the next estimate of a job that has outlived the one it has.

    Args:
        jobs: The job table.
        row: The simulation.
        job: Index of a running job.

    Returns:
        s: the request ("reqtime"); the prediction plus the next of STEPS_S, and after the last the
        request, never more than that ("tsafrir"); twice the estimate ("doubling"). Not longer than
        the estimate it has where nothing longer can be said.

    Source:
        Tsafrir, Etsion and Feitelson 2007; specification, section 8. Each step is added to the
        prediction as it was made, in place of the one before, and a doubled estimate may exceed
        the request: so the figures come out that jad-darrous/predictsim archives.
    """
    estimate = jobs.estimate[job]
    requested = jobs.requested_time[job]
    if sim.setting[CORRECT] == CORRECT_BY_DOUBLING:
        return 2 * estimate
    if sim.setting[CORRECT] == CORRECT_TO_REQUEST:
        return requested
    predicted = int(jobs.feature[job, E])
    for step in STEPS_S:
        if predicted + step > estimate:
            return min(predicted + step, requested)
    return requested


@kernel(inlined=True)
def has_outlived(jobs: Jobs, job: int) -> bool:
    """Tell whether a job whose estimated end has come runs, or ran, for longer.

    Args:
        jobs: The job table.
        job: Index of a running job whose estimated end is not to come.

    Returns:
        False if it ends as estimated, at this instant.

    Source:
        House rule: a correction made late is the one that was due.
    """
    return jobs.estimate[job] < jobs.run_time[job]


@kernel
def correct_release(jobs: Jobs, sim: Sim, place: int) -> int:
    """Correct the estimate of a running job until it is to end later, or when it does end.

    Args:
        jobs: The job table, its estimates the simulation's own.
        row: The simulation.
        place: Where in the release list the job stands.

    Returns:
        Where it stands now; `place` if nothing longer can be said.

    Writes:
        The job's estimate; `release_*`, in which it moves away from the end.

    Source:
        Specification, section 8, "Correction".
    """
    job = sim.release_job[place]
    start = sim.start_time[job]
    while start + jobs.estimate[job] <= sim.counter[NOW] and has_outlived(jobs, job):
        estimate = next_estimate(jobs, sim, job)
        if estimate <= jobs.estimate[job]:
            break
        jobs.estimate[job] = estimate
    release = start + jobs.estimate[job]
    while place > 0 and sim.release_time[place - 1] < release:
        sim.release_time[place] = sim.release_time[place - 1]
        sim.release_job[place] = sim.release_job[place - 1]
        place -= 1
    sim.release_time[place] = release
    sim.release_job[place] = job
    return place


@kernel
def correct_releases(jobs: Jobs, sim: Sim) -> None:
    """Correct the estimate of every running job that has outlived it.

    Args:
        jobs: The job table, its estimates the simulation's own.
        row: The simulation.

    Writes:
        What `correct_release` writes; SETTLED_HEAD = -1, since the shadow time may have moved, and
        REPLAN = 1, since reservations that are kept have to.

    Source:
        Specification, section 8, "Correction"; pyss handles a prediction that has run out before
        the other events of its instant.
    """
    now = sim.counter[NOW]
    place = sim.counter[N_RELEASES] - 1
    while place >= 0 and sim.release_time[place] <= now:
        job = sim.release_job[place]
        moved_to = place
        if has_outlived(jobs, job):
            sim.counter[SETTLED_HEAD] = -1
            sim.counter[REPLAN] = 1
            moved_to = correct_release(jobs, sim, place)
        if moved_to == place:  # else another job, not looked at yet, stands here now
            place -= 1
