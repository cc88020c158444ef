"""What users' records tell of waiting jobs: how long they run, and how much their waiting costs.

D = max(run time, tau) is a job's bounded run time. E = max(estimate, tau) is taken as its upper
bound, by the estimate of the submission, whatever corrections follow. Two expectations matter:

- the run-time ratio D/E, at most 1: times E it is the expected bounded run time;
- the speed E/D, at least 1: what a second of waiting costs, relative to a job that runs to E.

Three methods estimate both: means over the user's records, a network trained to read these records,
and an online regression. The run-time ratio is also estimated from the user's last two jobs. All of
them estimate how much of a request is used, so they help less where the estimate is better than the
request. An index scores a job by a weighted sum of terms: the logarithms of these expectations, of
the processors and of E.

A user's records change only when one of the user's jobs ends. Terms are therefore kept with the
job's entry, and with the user for the next job like it, and a score costs nine multiplications.
Only the regression, which changes at every end, is evaluated anew. Reading records costs a few
looks at each of at most RING_JOBS jobs, the network some 1,400 multiplications more.
"""

import math
from typing import Any

from hpcgym.core import constants as s
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.history import RING_JOBS
from hpcgym.core.kernels.queue.entries import entry_of
from hpcgym.core.kernels.scoring.estimates import predict_recent
from hpcgym.core.kernels.scoring.online_regression import (
    MODEL_RUN_TIME_RATIO,
    MODEL_SPEED,
    expect_by_regression,
    log_of_completed,
    step_down,
    write_moving,
    write_still,
)
from hpcgym.core.kernels.scoring.user_history import past_inverse
from hpcgym.core.kernels.types import Float, Int, Jobs, Sim
from hpcgym.core.metrics import BSLD_BOUND_S

DECAY = 0.75  # weight of a record, relative to the next younger one of its kind
SHORT_S = 60  # run time below which a job counts as short, s

N_KINDS = 4
"""Kinds of records: 0 all, 1 same request, 2 same request and processors, 3 same processors."""

INPUTS_OF_KIND = 6
FIRST_INPUT_OF_KIND = 3


@kernel(inlined=True)
def is_expected(sim: Sim, by: int) -> bool:
    """Tell whether anything needs expectations by the method `by`, one of `EXPECT_BY_*`."""
    # All bits, not any: network and regression read the records, whose bit they share.
    return (sim.expect & by) == by


@kernel(inlined=True)
def bounded_estimate(jobs: Jobs, job: int) -> float:
    """Return a job's E, s, by the estimate of its submission."""
    # Not `jobs.estimate`: corrections change that one, and the regression must learn from an ended
    # job what was known while it waited.
    return max(jobs.feature[job, s.FEATURE_ESTIMATE], BSLD_BOUND_S)


@kernel
def is_of_kind(jobs: Jobs, sim: Sim, job: int, spot: int, kind: int) -> bool:
    """Tell whether the record at `spot` of a job's user is of a kind, 0 to N_KINDS - 1."""
    user = jobs.user[job]
    same_request = sim.history_requested_time[user, spot] == jobs.requested_time[job]
    same_size = sim.history_processors[user, spot] == jobs.processors[job]
    return (same_request or kind == 0 or kind == 3) and (same_size or kind < 2)


@kernel
def read_network_inputs(jobs: Jobs, sim: Sim, job: int, inputs: Float) -> None:
    """Write the network inputs of a job, shape (N_NETWORK_INPUTS,).

    The first three are E, the processors, and how many jobs the user has completed. Six follow for
    each kind of records:

    - the number of records;
    - the weighted mean of log(D/E), with weight DECAY^k for the k-th youngest record;
    - the weighted fraction of run times below SHORT_S;
    - log(D/E) of the youngest record;
    - the plain mean of log(D/E);
    - -log of the weighted mean speed.

    Without records all six are 0.
    """
    user = jobs.user[job]
    completed = sim.history_completed[user]
    bound = bounded_estimate(jobs, job)
    log_bound = math.log(bound)
    # Divided by about their largest values, so that all inputs are of order 1.
    inputs[0] = log_bound / 12.0
    inputs[1] = math.log(jobs.feature[job, s.FEATURE_PROCESSORS]) / 6.0
    inputs[2] = math.log(1.0 + min(completed, 1000)) / 7.0
    for kind in range(N_KINDS):
        first = FIRST_INPUT_OF_KIND + INPUTS_OF_KIND * kind
        n = 0
        weight, total = 1.0, 0.0
        mean, short, plain, inverse, youngest = 0.0, 0.0, 0.0, 0.0, 0.0
        for back in range(min(completed, RING_JOBS)):
            spot = (completed - 1 - back) % RING_JOBS
            if is_of_kind(jobs, sim, job, spot, kind):
                run_time = sim.history_run_time[user, spot]
                log_run_time_ratio = math.log(max(run_time, BSLD_BOUND_S)) - log_bound
                if n == 0:
                    youngest = log_run_time_ratio
                if run_time < SHORT_S:
                    short += weight
                mean += weight * log_run_time_ratio
                inverse += weight * bound * past_inverse(sim, user, spot)
                plain += log_run_time_ratio
                total += weight
                weight *= DECAY
                n += 1
        inputs[first] = math.log(1.0 + n) / 3.0
        for column in range(1, INPUTS_OF_KIND):
            inputs[first + column] = 0.0
        if n > 0:
            inputs[first + 1] = mean / total / 5.0
            inputs[first + 2] = short / total
            inputs[first + 3] = youngest / 5.0
            inputs[first + 4] = plain / n / 5.0
            inputs[first + 5] = -math.log(inverse / total) / 5.0


@kernel
def describe_listed(jobs: Jobs, sim: Sim, listed: Int, inputs: Float) -> None:
    """Write the network inputs of the listed jobs, shape (n_listed, N_NETWORK_INPUTS).

    Training reads them here, so a network learns from exactly what it later predicts by.
    """
    for row in range(len(listed)):
        read_network_inputs(jobs, sim, listed[row], inputs[row])


@kernel(inlined=True)
def list_speeds(jobs: Jobs, sim: Sim, job: int) -> tuple[int, int, int]:
    """List E/D, at least 1, of a user's records by kind, and count those of kinds 0, 1 and 2.

    E is that of the job, D that of a record; the youngest record is first. Writes `record_speed`.
    """
    user, requested_time, processors = (
        jobs.user[job],
        jobs.requested_time[job],
        jobs.processors[job],
    )
    past_requested_time = sim.history_requested_time[user]
    past_processors = sim.history_processors[user]
    completed = sim.history_completed[user]
    bound = bounded_estimate(jobs, job)
    listed = sim.record_speed
    n = min(completed, RING_JOBS)
    n_same_request, n_same_job = 0, 0
    spot = completed % RING_JOBS
    for back in range(n):
        spot = spot - 1 if spot > 0 else RING_JOBS - 1
        same_request = past_requested_time[spot] == requested_time
        same_size = past_processors[spot] == processors
        speed = max(bound * past_inverse(sim, user, spot), 1.0)
        # Written first, counted afterwards: a processor cannot guess which records match.
        listed[0, back] = speed
        listed[1, n_same_request] = speed
        listed[2, n_same_job] = speed
        n_same_request += same_request
        n_same_job += same_request & same_size
    return n, n_same_request, n_same_job


@kernel
def expect_by_records(jobs: Jobs, sim: Sim, job: int, term: Float) -> None:
    """Write `term[TERM_RUN_TIME_RATIO]`, <= 0, and `term[TERM_SPEED]`, >= 0, by shrunken means.

    The means are over all records of the user, then those of the same request, then those of the
    same request and processors. Each counts the mean before it as one more record. The first counts
    a 1, a job that runs to its estimate. Writes `record_speed`.

    Source: Efron and Morris 1975.
    """
    n_listed = list_speeds(jobs, sim, job)
    listed = sim.record_speed
    run_time_ratio, speed = 1.0, 1.0
    for kind in range(N_KINDS - 1):
        weight, total = 1.0, 1.0  # the total begins with the mean before, as one record
        for record in range(n_listed[kind]):
            times = listed[kind, record]
            run_time_ratio += weight / times
            speed += weight * times
            total += weight
            weight *= DECAY
        run_time_ratio /= total
        speed /= total
    term[s.TERM_RUN_TIME_RATIO] = math.log(run_time_ratio)
    term[s.TERM_SPEED] = math.log(speed)


@kernel
def expect_by_recent(jobs: Jobs, sim: Sim, job: int, term: Float) -> None:
    """Write `term[TERM_RECENT_RUN_TIME_RATIO]`, <= 0, by the user's last two jobs.

    Reads `term[TERM_REQUEST]`.

    Source: Tsafrir, Etsion and Feitelson 2007, section 4.
    """
    bounded = max(float(predict_recent(jobs, sim, job)), BSLD_BOUND_S)
    term[s.TERM_RECENT_RUN_TIME_RATIO] = min(math.log(bounded) - term[s.TERM_REQUEST], 0.0)


@kernel
def apply_layer(sim: Sim, first: int, source: int, n_in: int, to: int, n_out: int) -> int:
    """Apply a linear layer within `activations`, and return where the next one's parameters begin.

    The layer's parameters begin at `first` of `network`: n_out rows of n_in weights, then n_out
    biases. Its inputs begin at `source` of `activations`, its outputs at `to`. No activation
    function is applied. Writes the outputs.
    """
    bias = first + n_in * n_out
    for unit in range(n_out):
        total = sim.network[bias + unit]
        weight = first + unit * n_in
        for column in range(n_in):
            total += sim.network[weight + column] * sim.activations[source + column]
        sim.activations[to + unit] = total
    return bias + n_out


@kernel
def softsign(sim: Sim, first: int, n: int) -> None:
    """Apply softsign, x / (1 + |x|), to n activations: like tanh, but without an exponential.

    Source: Turian, Bergstra and Bengio 2009.
    """
    for unit in range(first, first + n):
        sim.activations[unit] /= 1.0 + abs(sim.activations[unit])


@kernel
def expect_by_network(jobs: Jobs, sim: Sim, job: int, term: Float) -> None:
    """Write the outputs of the network, its run-time ratio and speed, into `term`.

    `activations` holds the inputs, the two hidden layers and the outputs, end to end.
    """
    read_network_inputs(jobs, sim, job, sim.activations)
    hidden = s.N_NETWORK_INPUTS
    last = hidden + s.N_HIDDEN
    out = last + s.N_LAST
    layer = apply_layer(sim, 0, 0, s.N_NETWORK_INPUTS, hidden, s.N_HIDDEN)
    softsign(sim, hidden, s.N_HIDDEN)
    layer = apply_layer(sim, layer, hidden, s.N_HIDDEN, last, s.N_LAST)
    softsign(sim, last, s.N_LAST)
    apply_layer(sim, layer, last, s.N_LAST, out, 2)
    term[s.TERM_NETWORK_RUN_TIME_RATIO] = sim.activations[out]
    term[s.TERM_NETWORK_SPEED] = sim.activations[out + 1]


@kernel
def write_known(jobs: Jobs, job: int, term: Float) -> None:
    """Write the terms that need no records, those of the processors and the request."""
    term[s.TERM_PROCESSORS] = math.log(jobs.feature[job, s.FEATURE_PROCESSORS])
    term[s.TERM_REQUEST] = math.log(bounded_estimate(jobs, job))


@kernel(inlined=True)
def known_of(jobs: Jobs, sim: Sim, job: int) -> tuple[int, int, int, int]:
    """Return what gives a job its terms, in the columns `ALIKE_*`."""
    estimate = int(jobs.feature[job, s.FEATURE_ESTIMATE])
    completed = sim.history_completed[jobs.user[job]]
    return completed, estimate, jobs.requested_time[job], jobs.processors[job]


@kernel
def is_alike(jobs: Jobs, sim: Sim, job: int) -> bool:
    """Tell whether a job's terms are those last computed for its user, who often has such jobs."""
    known = known_of(jobs, sim, job)
    for column in range(s.N_ALIKE):
        if sim.history_alike[jobs.user[job], column] != known[column]:
            return False
    return True


@kernel
def learn_from(jobs: Jobs, sim: Sim, job: int) -> None:
    """Let the regression learn from a job that ends now, not yet in its user's ring.

    The gradient of a Poisson loss is the predicted mean less the observed value, times the
    regressors. Writes `coefficient`, `squares` and `activations`.

    Source: Gourieroux, Monfort and Trognon 1984 (Poisson regression of a positive mean).
    """
    term, regressor = sim.activations, sim.activations[s.N_KEPT_TERMS :]  # no network runs now
    if is_alike(jobs, sim, job):
        for column in range(s.N_KEPT_TERMS):
            term[column] = sim.history_alike_term[jobs.user[job], column]
    else:
        write_known(jobs, job, term)
        expect_by_records(jobs, sim, job, term)
        term[s.LOG_COMPLETED] = log_of_completed(sim.history_completed[jobs.user[job]])
    write_still(jobs, sim, job, term, regressor)
    write_moving(term, term[s.LOG_COMPLETED], regressor)
    expect_by_regression(sim, regressor, term)
    bound = bounded_estimate(jobs, job)
    times = max(bound / max(float(jobs.run_time[job]), BSLD_BOUND_S), 1.0)
    most = term[s.TERM_REQUEST] - math.log(BSLD_BOUND_S)
    error = math.exp(term[s.TERM_REGRESSED_RUN_TIME_RATIO]) - 1.0 / times
    step_down(sim, MODEL_RUN_TIME_RATIO, regressor, error)
    # Over the largest speed, E / 10 s: jobs with long requests count no more than others.
    error = math.exp(term[s.TERM_REGRESSED_SPEED] - most) - times * BSLD_BOUND_S / bound
    step_down(sim, MODEL_SPEED, regressor, error)


@kernel
def expect_by_user(jobs: Jobs, sim: Sim, job: int, entry: int, completed: int) -> None:
    """Compute a waiting job's terms, as of so many completed jobs of its user.

    Terms that no policy needs are 0, and so are those of the regression. Writes the entry's rows of
    `expected`, `expected_at` and `regressor`, the user's of `history_alike` and
    `history_alike_term`, and `activations`.
    """
    before = sim.expected_at[entry]
    sim.expected_at[entry] = completed
    term = sim.history_alike_term[jobs.user[job]]
    if not is_alike(jobs, sim, job):
        known = known_of(jobs, sim, job)
        for column in range(s.N_ALIKE):
            sim.history_alike[jobs.user[job], column] = known[column]
        write_known(jobs, job, term)
        expect_by_records(jobs, sim, job, term)
        for column in range(s.TERM_NETWORK_RUN_TIME_RATIO, s.N_TERMS):
            term[column] = 0.0
        expect_by_recent(jobs, sim, job, term)
        term[s.LOG_COMPLETED] = log_of_completed(completed)
        if is_expected(sim, s.EXPECT_BY_NETWORK):
            expect_by_network(jobs, sim, job, term)
    for column in range(s.N_TERMS):
        sim.expected[entry, column] = term[column]
    if is_expected(sim, s.EXPECT_BY_REGRESSION):
        if before < 0:
            write_still(jobs, sim, job, term, sim.regressor[entry])
        write_moving(term, term[s.LOG_COMPLETED], sim.regressor[entry])


@kernel(inlined=True)
def expect(jobs: Jobs, sim: Sim, job: int) -> None:
    """Compute a waiting job's terms, unless those kept are still valid.

    Writes what `expect_by_user` writes.
    """
    entry = entry_of(sim, job)
    completed = sim.history_completed[jobs.user[job]]
    if sim.expected_at[entry] != completed:
        expect_by_user(jobs, sim, job, entry, completed)


@kernel
def expect_anew(jobs: Jobs, sim: Sim, job: int, entry: int, n_completed: int) -> None:
    """Compute a waiting job's terms, those of the regression too if they are needed."""
    expect(jobs, sim, job)
    if is_expected(sim, s.EXPECT_BY_REGRESSION):
        expect_by_regression(sim, sim.regressor[entry], sim.expected[entry])
        sim.regressed_at[entry] = n_completed


@kernel(inlined=True)
def expect_now(jobs: Jobs, sim: Sim, job: int) -> int:
    """Compute a waiting job's terms as of `now`, and return its entry, their row in `expected`."""
    entry = entry_of(sim, job)
    # Terms change at ends only. Between two of them passes ask for the same ones again and again.
    n_completed = sim.n_ended
    if sim.regressed_at[entry] != n_completed:
        expect_anew(jobs, sim, job, entry, n_completed)
    return entry


@kernel
def expected_run_time(jobs: Jobs, sim: Sim, job: int) -> float:
    """Return a waiting job's E[D], s; writes what `expect_now` writes."""
    term = sim.expected[expect_now(jobs, sim, job)]
    return math.exp(term[s.TERM_REQUEST] + term[s.TERM_REGRESSED_RUN_TIME_RATIO])


@kernel
def expected_rate(jobs: Jobs, sim: Sim, job: int) -> float:
    """Return a waiting job's E[1/D], 1/s; writes what `expect_now` writes."""
    term = sim.expected[expect_now(jobs, sim, job)]
    return math.exp(term[s.TERM_REGRESSED_SPEED] - term[s.TERM_REQUEST])


@kernel
def weigh_terms(weight: tuple[float, ...], term: Float) -> float:
    """Return the score of an index: the weighted sum of a job's terms, added in their order.

    With weights (1, 2, 1, -1, 0 ...) it is the logarithm of Smith's ratio: the expected work over
    the expected rate at which waiting costs.

    Source: Smith 1956.
    """
    total = 0.0
    for column in range(s.N_TERMS):
        total += weight[column] * term[column]
    return total


@kernel(inlined=True)
def weight_of_width(sim: Sim, weight: Any) -> float:
    """Return what the logarithm of the processors counts under urgency: less, the more waits."""
    crowd = math.log(1.0 + sim.waiting_processors / float(sim.machine_processors))
    return 1.0 - weight[s.CROWDING] * min(crowd, weight[s.MOST_CROWDING])


@kernel
def urgent_score(jobs: Jobs, sim: Sim, weight: Any, job: int, wait: float, width: float) -> float:
    """Return a waiting job's score by Smith's ratio with urgency; writes what `expect_now` writes.

    `weight` has the parameters of the rule, an array or a tuple, and `width` is their
    `weight_of_width`, which is one for all jobs.

    Source: Specification, section 10, "Urgency".
    """
    term = sim.expected[expect_now(jobs, sim, job)]
    machine = float(sim.machine_processors)
    total = width * term[s.TERM_PROCESSORS] + 2.0 * term[s.TERM_REQUEST]
    total += term[s.TERM_REGRESSED_RUN_TIME_RATIO]
    total -= term[s.TERM_REGRESSED_SPEED]
    beyond = wait - weight[s.URGENT_AFTER]
    q = jobs.feature[job, s.FEATURE_PROCESSORS]
    if beyond > 0.0 and weight[s.NARROWEST] * machine <= q <= weight[s.WIDEST] * machine:
        total -= weight[s.URGENCY] * beyond / weight[s.URGENT_WITHIN]
    return total


@kernel
def copy_terms(jobs: Jobs, sim: Sim, listed: Int, term: Float) -> None:
    """Write the terms of the listed jobs as of `now`, shape (n_listed, N_TERMS)."""
    for row in range(len(listed)):
        entry = expect_now(jobs, sim, listed[row])
        for column in range(s.N_TERMS):
            term[row, column] = sim.expected[entry, column]
