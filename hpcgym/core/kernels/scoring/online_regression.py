"""A regression that learns while the simulation runs how long jobs will run.

Two linear models of eight regressors say the logarithms of a job's share D/E and speed E/D: what
its user's records say of both, its request, its processors, the hour at which it came, and how much
is known of its user. They begin half-way between the request and the records. Whenever a job ends,
both take one step down the gradient of their Poisson loss, with what was to be seen of the job just
before. So they follow the whole machine, where records follow one user: what is expected of a
waiting job moves at every end, and its score is worked out anew at every pass, from regressors that
are kept with its seat.
"""

import math

from hpcgym.core.jit import kernel
from hpcgym.core.kernels.types import Jobs, Sim
from hpcgym.core.metrics import BSLD_BOUND_S
from hpcgym.core.state import (
    N_REGRESSORS,
    PROCESSORS,
    REGRESSED_RUN_TIME_RATIO,
    REGRESSED_SPEED,
    REQUEST,
    RUN_TIME_RATIO,
    SPEED,
    WEEK_START,
    Float,
)

HOUR_S = 3600.0
DAY_S = 86_400

TRUST = 0.5
"""Weight of the records' logarithms at first."""

STEP = 0.05
"""What a coefficient moves by at its first step, for a gradient that is not small."""

DAMPING = 0.01
"""What is added to the summed squares of a coefficient's gradients."""


@kernel
def write_regressors(jobs: Jobs, sim: Sim, job: int, term: Float, regressor: Float) -> None:
    """Write down what the regression sees of a job.

    Args:
        jobs: The job table.
        row: The simulation.
        job: Index of a submitted job.
        term: Its terms, those that the regression does not say worked out, shape (N_TERMS,).
        regressor: Where to, shape (N_REGRESSORS,).

    Writes:
        `regressor`: 1; the logarithms of E / 1 h, processors, and share and speed by records, over
        5; sine and cosine of the time of day of its submission; log(1 + jobs completed by the user,
        at most 1,000) / 7.

    Source:
        Gaussier, Glesser, Reis and Trystram 2015, table of features.
    """
    moment = (sim.setting[WEEK_START] + jobs.submit_time[job]) % DAY_S
    angle = 2.0 * math.pi * moment / DAY_S
    regressor[0] = 1.0
    regressor[1] = (term[REQUEST] - math.log(HOUR_S)) / 5.0
    regressor[2] = term[PROCESSORS] / 5.0
    regressor[3] = term[RUN_TIME_RATIO] / 5.0
    regressor[4] = term[SPEED] / 5.0
    regressor[5] = math.sin(angle)
    regressor[6] = math.cos(angle)
    regressor[7] = math.log(1.0 + min(sim.history_completed[jobs.user[job]], 1000)) / 7.0


@kernel(inlined=True)
def regressed(sim: Sim, which: int, regressor: Float) -> float:
    """Return what one of the two models says, bounds left out.

    Args:
        row: The simulation.
        which: 0 for the share, 1 for the speed.
        regressor: What is seen of a job, shape (N_REGRESSORS,).

    Returns:
        The sum, in the order of the regressors.

    Source:
        House rule: one formula for what is said and what is learnt.
    """
    total = 0.0
    for column in range(N_REGRESSORS):
        total += sim.coefficient[which, column] * regressor[column]
    return total


@kernel(inlined=True)
def expect_by_regression(sim: Sim, regressor: Float, term: Float) -> None:
    """Expect a job's share and speed by the regression as it is now.

    Args:
        row: The simulation.
        regressor: What is seen of the job, shape (N_REGRESSORS,).
        term: Its terms, shape (N_TERMS,).

    Writes:
        `term[REGRESSED_RUN_TIME_RATIO]`, the log of the share, at most 0, and
        `term[REGRESSED_SPEED]`, that
        of the speed, at least 0; a run time is from 10 s to E.

    Source:
        Gaussier, Glesser, Reis and Trystram 2015.
    """
    most = term[REQUEST] - math.log(BSLD_BOUND_S)
    term[REGRESSED_RUN_TIME_RATIO] = min(max(regressed(sim, 0, regressor), -most), 0.0)
    term[REGRESSED_SPEED] = min(max(regressed(sim, 1, regressor), 0.0), most)


@kernel
def step_down(sim: Sim, which: int, regressor: Float, error: float) -> None:
    """Move one of the two models down the gradient of its loss.

    Args:
        row: The simulation.
        which: 0 for the share, 1 for the speed.
        regressor: What was seen of a job, shape (N_REGRESSORS,).
        error: What was said less what was so, the gradient in the sum.

    Writes:
        The model's row of `coefficient` and of `squares`.

    Source:
        AdaGrad: Duchi, Hazan and Singer 2011.
    """
    for column in range(N_REGRESSORS):
        gradient = error * regressor[column]
        sim.squares[which, column] += gradient * gradient
        step = STEP * gradient / math.sqrt(sim.squares[which, column] + DAMPING)
        sim.coefficient[which, column] -= step


@kernel
def forget_lessons(sim: Sim) -> None:
    """Set the regression to what it says before any job has ended.

    Args:
        row: The simulation.

    Writes:
        `coefficient` and `squares`.

    Source:
        Specification, section 10, "Information": nothing of a job before it ends.
    """
    for which in range(len(sim.coefficient)):
        for column in range(N_REGRESSORS):
            sim.coefficient[which, column] = 0.0
            sim.squares[which, column] = 0.0
        sim.coefficient[which, 3 + which] = 5.0 * TRUST


@kernel
def copy_lessons(sim: Sim, plan: Sim) -> None:
    """Copy the regression into another simulation.

    Args:
        row: The simulation.
        plan: The other one.

    Writes:
        `coefficient` of the plan, in which no more is learnt.

    Source:
        House rule: a copy knows what the simulation knows at this instant.
    """
    for which in range(len(sim.coefficient)):
        for column in range(N_REGRESSORS):
            plan.coefficient[which, column] = sim.coefficient[which, column]
