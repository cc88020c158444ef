"""What a user's last jobs tell of one that waits: how long it may run, and how much waiting costs.

An index is a weighted sum of terms, the logarithms of a job's processors and estimate and of what
is expected of its run time. D = max(run time, tau) is bounded below, and E = max(estimate,
tau) is taken for the most it can be; the estimate is that of the submission, whatever is said of
the job once it runs. The share of a job is the expected D/E, its speed the expected
E/D: what a second of waiting costs, over what it would cost if the job ran to its estimate. Both
are expected in three ways: from the user's records alone, by a network that has learnt to read
them, and by a regression that learns; the share also by the user's last two jobs. Each goes by
requests: where something better is the estimate, there is less to say.

What is expected of a job changes when a job of its user ends, and only then, but for what the
regression says, which moves whenever any job ends. The rest is kept with the job's seat, and with
its user for the next job alike, and a score is nine multiplications. Reading a user's records costs
a few looks at each of at most RING_JOBS jobs, a network some 1,500 multiplications more.
"""

import math

from hpcgym.core.history import RING_JOBS
from hpcgym.core.jit import kernel
from hpcgym.core.kernels.queue.entries import entry_of
from hpcgym.core.kernels.scoring.estimates import predict_recent
from hpcgym.core.kernels.scoring.online_regression import expect_by_regression, write_regressors
from hpcgym.core.kernels.types import Jobs, Sim
from hpcgym.core.metrics import BSLD_BOUND_S
from hpcgym.core.state import (
    EXPECT,
    EXPECT_BY_NETWORK,
    EXPECT_BY_REGRESSION,
    N_HIDDEN,
    N_LAST,
    N_NETWORK_INPUTS,
    N_TERMS,
    NETWORK_RUN_TIME_RATIO,
    NETWORK_SPEED,
    PROCESSORS,
    RECENT_RUN_TIME_RATIO,
    REQUEST,
    RUN_TIME_RATIO,
    SPEED,
    E,
    Float,
    Int,
    Q,
)

DECAY = 0.75
"""What a record weighs over the next younger one of its kind."""

SHORT_S = 60
"""Run time below which a job counts as short, s."""

N_KINDS = 4
"""Kinds of records: all; of the same request; of the same request and processors; of the same
processors."""

SIGNS_OF_KIND = 6
FIRST_SIGN_OF_KIND = 3


@kernel(inlined=True)
def is_expected(sim: Sim, by: int) -> bool:
    """Tell whether any policy asks for what is expected of jobs in one way.

    Args:
        row: The simulation.
        by: `EXPECT_BY_RECORDS`, `EXPECT_BY_NETWORK` or `EXPECT_BY_REGRESSION`.

    Returns:
        True if so.

    Source:
        House rule: what nobody has asked for is not kept.
    """
    return (sim.setting[EXPECT] & by) == by


@kernel(inlined=True)
def bounded_estimate(jobs: Jobs, job: int) -> float:
    """Return a job's E, by the estimate that was made at its submission.

    Args:
        jobs: The job table.
        job: Index of a submitted job.

    Returns:
        s.

    Source:
        House rule: what is learnt of a job that has ended is what was to be seen while it waited.
    """
    return max(jobs.feature[job, E], BSLD_BOUND_S)


@kernel
def is_of_kind(jobs: Jobs, sim: Sim, job: int, spot: int, kind: int) -> bool:
    """Tell whether a record resembles a job.

    Args:
        jobs: The job table.
        row: The simulation.
        job: Index of the job.
        spot: Where in its user's ring the record stands.
        kind: 0 all, 1 same request, 2 same request and processors, 3 same processors.

    Returns:
        True if the record is of that kind.

    Source:
        Specification, section 10, "Information": finer keys belong to predictors.
    """
    user = jobs.user[job]
    same_request = sim.history_requested_time[user, spot] == jobs.requested_time[job]
    same_size = sim.history_processors[user, spot] == jobs.processors[job]
    return (same_request or kind == 0 or kind == 3) and (same_size or kind < 2)


@kernel
def read_network_inputs(jobs: Jobs, sim: Sim, job: int, inputs: Float) -> None:
    """Write down what a network sees of a job.

    Args:
        jobs: The job table.
        row: The simulation.
        job: Index of a submitted job.
        sign: Where to, shape (N_NETWORK_INPUTS,).

    Writes:
        `sign`: log E / 12, log processors / 6, log(1 + jobs completed by the user, at most 1,000)
        / 7; then for each of N_KINDS kinds of records: log(1 + their number) / 3, and weighted by
        DECAY^k for the k-th youngest the mean of log(D/E) / 5, the share of those below SHORT_S,
        log(D/E) / 5 of the youngest, its plain mean, and -log of the mean E/D / 5. Where there is
        no record of a kind, its signs are 0.

    Source:
        Specification, section 10, "Information"; the kinds are those of hierarchical means over
        user, request and size.
    """
    user = jobs.user[job]
    completed = sim.history_completed[user]
    bound = bounded_estimate(jobs, job)
    log_bound = math.log(bound)
    inputs[0] = log_bound / 12.0
    inputs[1] = math.log(jobs.feature[job, Q]) / 6.0
    inputs[2] = math.log(1.0 + min(completed, 1000)) / 7.0
    for kind in range(N_KINDS):
        first = FIRST_SIGN_OF_KIND + SIGNS_OF_KIND * kind
        n = 0
        weight, total = 1.0, 0.0
        mean, short, plain, inverse, youngest = 0.0, 0.0, 0.0, 0.0, 0.0
        for back in range(min(completed, RING_JOBS)):
            spot = (completed - 1 - back) % RING_JOBS
            if is_of_kind(jobs, sim, job, spot, kind):
                log_run_time_ratio = sim.history_log_bound[user, spot] - log_bound
                if n == 0:
                    youngest = log_run_time_ratio
                if sim.history_run_time[user, spot] < SHORT_S:
                    short += weight
                mean += weight * log_run_time_ratio
                inverse += weight * bound * sim.history_inverse[user, spot]
                plain += log_run_time_ratio
                total += weight
                weight *= DECAY
                n += 1
        inputs[first] = math.log(1.0 + n) / 3.0
        for column in range(1, SIGNS_OF_KIND):
            inputs[first + column] = 0.0
        if n > 0:
            inputs[first + 1] = mean / total / 5.0
            inputs[first + 2] = short / total
            inputs[first + 3] = youngest / 5.0
            inputs[first + 4] = plain / n / 5.0
            inputs[first + 5] = -math.log(inverse / total) / 5.0


@kernel
def describe_listed(jobs: Jobs, sim: Sim, listed: Int, inputs: Float) -> None:
    """Write down what a network sees of each of some jobs.

    Args:
        jobs: The job table.
        row: The simulation.
        listed: Indices of submitted jobs, shape (n_listed,).
        sign: Where to, shape (n_listed, N_NETWORK_INPUTS).

    Writes:
        `sign`, as `read_network_inputs`.

    Source:
        House rule: what is learnt from is what is decided by.
    """
    for place in range(len(listed)):
        read_network_inputs(jobs, sim, listed[place], inputs[place])


@kernel
def expect_by_records(jobs: Jobs, sim: Sim, job: int, term: Float) -> None:
    """Expect a job's share and speed by hierarchical means over its user's records.

    All records, those of the same request, and those of the same request and processors are taken
    in turn; each mean is drawn towards the one before as if that were one record more, and
    the first towards 1, a job that runs to its estimate.

    Args:
        jobs: The job table.
        row: The simulation.
        job: Index of a submitted job.
        term: Where to, shape (N_TERMS,).

    Writes:
        `term[SHARE]`, the log of the share, at most 0; `term[SPEED]`, that of the speed, >= 0.

    Source:
        Shrinkage of group means: Efron and Morris 1975; specification, section 10, "Information".
    """
    user = jobs.user[job]
    completed = sim.history_completed[user]
    bound = bounded_estimate(jobs, job)
    run_time_ratio, speed = 1.0, 1.0
    for kind in range(N_KINDS - 1):
        weight, total = 1.0, 1.0
        for back in range(min(completed, RING_JOBS)):
            spot = (completed - 1 - back) % RING_JOBS
            if is_of_kind(jobs, sim, job, spot, kind):
                times = max(bound * sim.history_inverse[user, spot], 1.0)
                run_time_ratio += weight / times
                speed += weight * times
                total += weight
                weight *= DECAY
        run_time_ratio /= total
        speed /= total
    term[RUN_TIME_RATIO] = math.log(run_time_ratio)
    term[SPEED] = math.log(speed)


@kernel
def expect_by_recent(jobs: Jobs, sim: Sim, job: int, term: Float) -> None:
    """Expect a job's share by the mean run time of its user's last two jobs.

    Args:
        jobs: The job table.
        row: The simulation.
        job: Index of a submitted job.
        term: Its terms, the request among them, shape (N_TERMS,).

    Writes:
        `term[RECENT_RUN_TIME_RATIO]`, the log of the share, at most 0.

    Source:
        Tsafrir, Etsion and Feitelson 2007, section 4.
    """
    bounded = max(float(predict_recent(jobs, sim, job)), BSLD_BOUND_S)
    term[RECENT_RUN_TIME_RATIO] = min(math.log(bounded) - term[REQUEST], 0.0)


@kernel
def apply_layer(sim: Sim, first: int, source: int, n_in: int, to: int, n_out: int) -> int:
    """Apply one layer of the network, without what bends it.

    Args:
        row: The simulation.
        first: Where in `network` the layer's parameters begin: n_out rows of n_in weights, then
            n_out biases.
        source: Where in `thought` its input stands.
        n_in: Numbers that come in.
        to: Where in `thought` its output goes.
        n_out: Numbers that come out.

    Returns:
        Where in `network` the next layer begins.

    Writes:
        `thought`.

    Source:
        House rule: no library inside a kernel.
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
    """Bend the outputs of a layer: x / (1 + |x|).

    Args:
        row: The simulation.
        first: Where in `thought` they stand.
        n: How many.

    Writes:
        `thought`.

    Source:
        Softsign: Turian, Bergstra and Bengio 2009; like tanh, without an exponential.
    """
    for unit in range(first, first + n):
        sim.activations[unit] /= 1.0 + abs(sim.activations[unit])


@kernel
def expect_by_network(jobs: Jobs, sim: Sim, job: int, term: Float) -> None:
    """Expect a job's share and speed by a network.

    Args:
        jobs: The job table.
        row: The simulation, its network in place.
        job: Index of a submitted job.
        term: Where to, shape (N_TERMS,).

    Writes:
        `term[NETWORK_RUN_TIME_RATIO]` and `term[NETWORK_SPEED]`, the logs of both; `thought`.

    Source:
        House rule: what is learnt is a few numbers, and runs where everything else runs.
    """
    read_network_inputs(jobs, sim, job, sim.activations)
    hidden = N_NETWORK_INPUTS
    last = hidden + N_HIDDEN
    out = last + N_LAST
    layer = apply_layer(sim, 0, 0, N_NETWORK_INPUTS, hidden, N_HIDDEN)
    softsign(sim, hidden, N_HIDDEN)
    layer = apply_layer(sim, layer, hidden, N_HIDDEN, last, N_LAST)
    softsign(sim, last, N_LAST)
    apply_layer(sim, layer, last, N_LAST, out, 2)
    term[NETWORK_RUN_TIME_RATIO] = sim.activations[out]
    term[NETWORK_SPEED] = sim.activations[out + 1]


@kernel
def write_known(jobs: Jobs, job: int, term: Float) -> None:
    """Write the terms of an index that need no user's records.

    Args:
        jobs: The job table.
        job: Index of a submitted job.
        term: Where to, shape (N_TERMS,).

    Writes:
        `term[PROCESSORS]` and `term[REQUEST]`, the logs of processors and of E.

    Source:
        Specification, section 10, "Information".
    """
    term[PROCESSORS] = math.log(jobs.feature[job, Q])
    term[REQUEST] = math.log(bounded_estimate(jobs, job))


@kernel
def remember_alike(jobs: Jobs, sim: Sim, job: int) -> bool:
    """Tell whether a job's terms are those worked out last for its user; note it if they are not.

    All that they are made of is the same for jobs of one user, estimate, request and size until a
    job of the user ends. Users submit such jobs by the hundred.

    Args:
        jobs: The job table.
        row: The simulation.
        job: Index of a waiting job.

    Returns:
        True if they are.

    Writes:
        The user's row of `history_alike`.

    Source:
        House rule: no work where nothing has changed.
    """
    alike = sim.history_alike[jobs.user[job]]
    completed = sim.history_completed[jobs.user[job]]
    estimate = int(jobs.feature[job, E])
    same = alike[0] == completed and alike[1] == estimate
    if same and alike[2] == jobs.requested_time[job] and alike[3] == jobs.processors[job]:
        return True
    alike[0] = completed
    alike[1] = estimate
    alike[2] = jobs.requested_time[job]
    alike[3] = jobs.processors[job]
    return False


@kernel
def expect(jobs: Jobs, sim: Sim, job: int) -> None:
    """Work out the terms of a waiting job's index, unless no job of its user has ended since.

    Args:
        jobs: The job table.
        row: The simulation.
        job: Index of a waiting job.

    Writes:
        `expected_at` and `expected` of its seat, terms that nobody asks for and those of the
        regression as 0; `regressor` where the regression is asked for; `history_alike` and
        `history_alike_term`.

    Source:
        House rule: no work where nothing has changed.
    """
    entry = entry_of(sim, job)
    completed = sim.history_completed[jobs.user[job]]
    if sim.expected_at[entry] == completed:
        return
    sim.expected_at[entry] = completed
    term = sim.history_alike_term[jobs.user[job]]
    if not remember_alike(jobs, sim, job):
        write_known(jobs, job, term)
        expect_by_records(jobs, sim, job, term)
        for column in range(NETWORK_RUN_TIME_RATIO, N_TERMS):
            term[column] = 0.0
        expect_by_recent(jobs, sim, job, term)
        if is_expected(sim, EXPECT_BY_NETWORK):
            expect_by_network(jobs, sim, job, term)
    for column in range(N_TERMS):
        sim.expected[entry, column] = term[column]
    if is_expected(sim, EXPECT_BY_REGRESSION):
        write_regressors(jobs, sim, job, sim.expected[entry], sim.regressor[entry])


@kernel
def expect_now(jobs: Jobs, sim: Sim, job: int) -> int:
    """Work out the terms of a waiting job's index as they are at this instant.

    Args:
        jobs: The job table.
        row: The simulation.
        job: Index of a waiting job.

    Returns:
        Its seat, whose row of `expected` has them.

    Writes:
        What `expect` and `expect_by_regression` write.

    Source:
        House rule: what moves at every end is not kept.
    """
    expect(jobs, sim, job)
    entry = entry_of(sim, job)
    if is_expected(sim, EXPECT_BY_REGRESSION):
        expect_by_regression(sim, sim.regressor[entry], sim.expected[entry])
    return entry


@kernel
def weigh_terms(weight: tuple[float, ...], term: Float) -> float:
    """Score a job by an index of what is known and expected of it.

    Args:
        weight: Weights of the terms, N_WEIGHTS numbers.
        term: The terms, shape (N_TERMS,).

    Returns:
        The score, summed in the order of the terms; with weights (1, 2, 1, -1, 0 ...) the logarithm
        of work over the rate at which waiting costs, as expected.

    Source:
        Smith 1956; specification, section 10, "Information".
    """
    total = 0.0
    for column in range(N_TERMS):
        total += weight[column] * term[column]
    return total


@kernel
def index_score(jobs: Jobs, sim: Sim, weight: tuple[float, ...], job: int) -> float:
    """Score a waiting job by an index.

    Args:
        jobs: The job table.
        row: The simulation.
        weight: As `weigh_terms` takes them.
        job: Index of a waiting job.

    Returns:
        The score.

    Writes:
        What `expect_now` writes.

    Source:
        House rule: no work where nothing has changed.
    """
    return weigh_terms(weight, sim.expected[expect_now(jobs, sim, job)])


@kernel
def copy_terms(jobs: Jobs, sim: Sim, listed: Int, term: Float) -> None:
    """Copy the terms of each of some jobs.

    Args:
        jobs: The job table.
        row: The simulation.
        listed: Indices of waiting jobs, shape (n_listed,).
        term: Where to, shape (n_listed, N_TERMS).

    Writes:
        `term`; what `expect_now` writes.

    Source:
        House rule: what is shown of a decision is what it was made by.
    """
    for place in range(len(listed)):
        entry = expect_now(jobs, sim, listed[place])
        for column in range(N_TERMS):
            term[place, column] = sim.expected[entry, column]
