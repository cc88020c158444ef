"""Online regression: how long jobs run, learnt from every job that ends.

Two linear models predict the logarithms of a job's run-time ratio D/E and of its speed E/D (see
`user_estimates`) from the same eight regressors. Initially both predict half the logarithm that the
user's records give, half-way between the request and the records. Whenever a job ends, each model
takes one AdaGrad step down the gradient of its Poisson loss. The regressors are those just before
the end.

Records follow one user, the models follow the whole machine. A prediction therefore changes at
every end. A waiting job's regressors are kept with its entry, and its score is computed at each
pass.

Source: Gaussier, Glesser, Reis and Trystram 2015; Duchi, Hazan and Singer 2011 (AdaGrad).
"""

import math

from hpcgym.core import constants as s
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.kernels.types import Float, Jobs, Sim
from hpcgym.core.metrics import BSLD_BOUND_S

# Columns of `Sim.regressor`, and rows of `Sim.coefficient`.
(
    REGRESSOR_ONE,
    REGRESSOR_REQUEST,
    REGRESSOR_PROCESSORS,
    REGRESSOR_RUN_TIME_RATIO,
    REGRESSOR_SPEED,
    REGRESSOR_DAY_SIN,
    REGRESSOR_DAY_COS,
    REGRESSOR_COMPLETED,
) = range(s.N_REGRESSORS)
MODEL_RUN_TIME_RATIO, MODEL_SPEED = 0, 1

HOUR_S = 3600.0
DAY_S = 86_400

TRUST = 0.5  # initial weight of the records' logarithms; the request has the rest

STEP = 0.05
"""Change of a coefficient at its first step, if its gradient is well above sqrt(`DAMPING`)."""

DAMPING = 0.01  # added to the summed squares of a coefficient's gradients


@kernel
def write_still(jobs: Jobs, sim: Sim, job: int, term: Float, regressor: Float) -> None:
    """Write those regressors of a job that stay as they are while it waits."""
    moment = (sim.week_start + jobs.submit_time[job]) % DAY_S
    angle = 2.0 * math.pi * moment / DAY_S
    # Divided so that every regressor is of order 1: one step size serves all coefficients.
    regressor[REGRESSOR_ONE] = 1.0
    regressor[REGRESSOR_REQUEST] = (term[s.TERM_REQUEST] - math.log(HOUR_S)) / 5.0
    regressor[REGRESSOR_PROCESSORS] = term[s.TERM_PROCESSORS] / 5.0
    regressor[REGRESSOR_DAY_SIN] = math.sin(angle)
    regressor[REGRESSOR_DAY_COS] = math.cos(angle)


@kernel(inlined=True)
def write_moving(term: Float, log_completed: float, regressor: Float) -> None:
    """Write those that the user's records change; `log_completed` as of `log_of_completed`."""
    regressor[REGRESSOR_RUN_TIME_RATIO] = term[s.TERM_RUN_TIME_RATIO] / 5.0
    regressor[REGRESSOR_SPEED] = term[s.TERM_SPEED] / 5.0
    regressor[REGRESSOR_COMPLETED] = log_completed / 7.0


@kernel(inlined=True)
def log_of_completed(completed: int) -> float:
    """Return the logarithm of the jobs that a user has completed, as the regression reads it."""
    return math.log(1.0 + min(completed, 1000))


@kernel(inlined=True)
def regressed(sim: Sim, which: int, regressor: Float) -> float:
    """Return the logarithm that a model predicts, `MODEL_*`, not bounded yet."""
    total = 0.0
    for column in range(s.N_REGRESSORS):
        total += sim.coefficient[which, column] * regressor[column]
    return total


@kernel(inlined=True)
def expect_by_regression(sim: Sim, regressor: Float, term: Float) -> None:
    """Write the regression's two terms, bounded so that the run time lies between 10 s and E."""
    most = term[s.TERM_REQUEST] - math.log(BSLD_BOUND_S)  # log of the largest speed, E / 10 s
    run_time_ratio = regressed(sim, MODEL_RUN_TIME_RATIO, regressor)
    speed = regressed(sim, MODEL_SPEED, regressor)
    term[s.TERM_REGRESSED_RUN_TIME_RATIO] = min(max(run_time_ratio, -most), 0.0)
    term[s.TERM_REGRESSED_SPEED] = min(max(speed, 0.0), most)


@kernel
def step_down(sim: Sim, which: int, regressor: Float, error: float) -> None:
    """Move a model one AdaGrad step down its gradient, `error` times the regressors.

    `error` is the predicted value less the observed one. Writes rows of `coefficient` and
    `squares`.
    """
    for column in range(s.N_REGRESSORS):
        gradient = error * regressor[column]
        sim.squares[which, column] += gradient * gradient
        step = STEP * gradient / math.sqrt(sim.squares[which, column] + DAMPING)
        sim.coefficient[which, column] -= step


@kernel
def reset_regression(sim: Sim) -> None:
    """Reset both models, `coefficient` and `squares`, to half-way between request and records."""
    for which in range(len(sim.coefficient)):
        for column in range(s.N_REGRESSORS):
            sim.coefficient[which, column] = 0.0
            sim.squares[which, column] = 0.0
        # Each model begins with its own logarithm by the records; the two are neighbours.
        sim.coefficient[which, REGRESSOR_RUN_TIME_RATIO + which] = 5.0 * TRUST


@kernel
def copy_regression(sim: Sim, plan: Sim) -> None:
    """Copy the models into another simulation, which predicts by them but does not learn.

    Writes its `coefficient`; `squares` is read in learning only.
    """
    for which in range(len(sim.coefficient)):
        for column in range(s.N_REGRESSORS):
            plan.coefficient[which, column] = sim.coefficient[which, column]
