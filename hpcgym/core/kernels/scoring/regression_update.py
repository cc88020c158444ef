"""The step that the online regression takes when a job ends."""

import math

from hpcgym.core import constants as s
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.kernels.scoring.online_regression import (
    MODEL_RUN_TIME_RATIO,
    MODEL_SPEED,
    expect_by_regression,
    step_down,
    write_regressors,
)
from hpcgym.core.kernels.scoring.user_estimates import (
    bounded_estimate,
    expect_by_records,
    write_known,
)
from hpcgym.core.kernels.types import Jobs, Sim
from hpcgym.core.metrics import BSLD_BOUND_S


@kernel
def learn_from(jobs: Jobs, sim: Sim, job: int) -> None:
    """Let the regression learn from a job that ends now, not yet in its user's ring.

    The gradient of a Poisson loss is the predicted mean less the observed value, times the
    regressors. Writes `coefficient`, `squares` and `activations`.

    Source: Gourieroux, Monfort and Trognon 1984 (Poisson regression of a positive mean).
    """
    term, regressor = sim.activations, sim.activations[s.N_TERMS :]  # borrowed: no network runs now
    write_known(jobs, job, term)
    expect_by_records(jobs, sim, job, term)
    write_regressors(jobs, sim, job, term, regressor)
    expect_by_regression(sim, regressor, term)
    bound = bounded_estimate(jobs, job)
    times = max(bound / max(float(jobs.run_time[job]), BSLD_BOUND_S), 1.0)
    most = term[s.TERM_REQUEST] - math.log(BSLD_BOUND_S)
    error = math.exp(term[s.TERM_REGRESSED_RUN_TIME_RATIO]) - 1.0 / times
    step_down(sim, MODEL_RUN_TIME_RATIO, regressor, error)
    # Over the largest speed, E / 10 s: jobs with long requests count no more than others.
    error = math.exp(term[s.TERM_REGRESSED_SPEED] - most) - times * BSLD_BOUND_S / bound
    step_down(sim, MODEL_SPEED, regressor, error)
