"""The Lublin-Feitelson model: its distributions against the published constants."""

import math

import numpy as np
import pytest

from hpcgym.base.errors import TraceError
from hpcgym.trace import load_workload, lublin_workload
from hpcgym.trace.lublin import (
    BATCH,
    BUCKET_S,
    COMBINED,
    INTERACTIVE,
    draw_arrivals,
    draw_run_times,
    draw_sizes,
    half_hour_weights,
)

PROCESSES = {"combined": COMBINED, "batch": BATCH, "interactive": INTERACTIVE}
N_JOBS = 200_000


@pytest.fixture(params=PROCESSES)
def process(request):
    """Each of the three sets of constants."""
    return PROCESSES[request.param]


def test_constants_are_those_of_the_published_program():
    assert (COMBINED.serial, COMBINED.power_of_two) == (0.244, 0.576)
    assert (BATCH.serial, BATCH.power_of_two) == (0.2927, 0.6686)
    assert (INTERACTIVE.serial, INTERACTIVE.power_of_two) == (0.1541, 0.625)
    assert COMBINED.size == (0.8, 4.5, 7, 0.86)
    assert BATCH.size == (1.2, 5, 7, 0.875)
    assert INTERACTIVE.size == (1, 3, 5.5, 0.705)
    assert (COMBINED.run_first, COMBINED.run_second) == ((4.2, 0.94), (312, 0.03))
    assert (BATCH.run_first, BATCH.run_second) == ((6.57, 0.823), (639.1, 0.0156))
    assert (INTERACTIVE.run_first, INTERACTIVE.run_second) == ((3.8351, 0.6605), (7.073, 0.6856))
    assert COMBINED.run_choice == (-0.0054, 0.78)
    assert BATCH.run_choice == (-0.003, 0.6986)
    assert INTERACTIVE.run_choice == (-0.0118, 0.9156)
    assert COMBINED.gap == (10.2303, 1.0225, 0.4871)
    assert BATCH.gap == (6.0415, 1.0519, 0.8531)
    assert INTERACTIVE.gap == (6.5510, 0.9797, 0.6621)
    assert COMBINED.day == (8.1737, 3.9631)
    assert BATCH.day == (6.1271, 5.2740)
    assert INTERACTIVE.day == (8.9186, 3.6680)


def test_share_of_serial_jobs_is_the_constant_plus_what_rounding_adds(process):
    """Above P_s, log2 of the size is U[lo, med] or U[med, hi]; it rounds to 0 below 0.5 only."""
    sizes = draw_sizes(N_JOBS, np.random.default_rng(1), process)
    assert process.size[0] > 0.5
    assert abs(np.mean(sizes == 1) - process.serial) < 0.005
    assert sizes.max() <= 2 ** process.size[2]


def test_share_of_powers_of_two_is_at_least_what_is_rounded_to_them(process):
    sizes = draw_sizes(N_JOBS, np.random.default_rng(2), process)
    share = np.mean((sizes & (sizes - 1)) == 0)
    rounded = process.serial + process.power_of_two
    assert rounded - 0.005 < share < rounded + (1 - rounded) * 0.5


def test_two_stage_uniform_has_its_mean(process):
    low, medium, high, first = process.size
    sizes = draw_sizes(N_JOBS, np.random.default_rng(3), process)
    mean = first * (low + medium) / 2 + (1 - first) * (medium + high) / 2
    parallel = np.log2(sizes[sizes > 1])
    assert abs(parallel.mean() - mean) < 0.03


def test_sizes_shift_with_the_logarithm_of_the_machine():
    at_128, at_512 = (
        np.log2(draw_sizes(N_JOBS, np.random.default_rng(4), COMBINED, m)) for m in (128, 512)
    )
    first = COMBINED.size[3]
    lift = first * 2 / 2 + (1 - first) * 2  # lo stays, med and hi rise by 2
    assert abs((at_512.mean() - at_128.mean()) - (1 - COMBINED.serial) * lift) < 0.03
    odd = draw_sizes(N_JOBS, np.random.default_rng(4), COMBINED, 100)
    assert odd.max() == 100


@pytest.mark.parametrize("size", [1, 16, 64])
def test_log_run_time_is_the_hyper_gamma_of_its_size(process, size):
    """Beyond 12 a draw is repeated, so the truncated mean is compared, by numeric integration."""
    run = draw_run_times(np.full(N_JOBS, size), np.random.default_rng(5), process)
    slope, intercept = process.run_choice
    chance = min(max(slope * size + intercept, 0), 1)
    y = np.linspace(1e-6, 12, 200_001)
    density = np.zeros_like(y)
    for share, (shape, scale) in ((chance, process.run_first), (1 - chance, process.run_second)):
        log_density = (shape - 1) * np.log(y) - y / scale
        density += share * np.exp(log_density - math.lgamma(shape) - shape * math.log(scale))
    mean = (y * density).sum() / density.sum()
    assert run.min() >= 1
    assert run.max() <= math.exp(12)
    # floor lowers the logarithm of short run times only
    assert mean - 0.2 < np.log(run + 0.5).mean() < mean + 0.05


def test_weights_of_the_half_hours_are_the_cycle_of_the_day(process):
    weights = half_hour_weights(process)
    assert weights.shape == (48,)
    assert abs(weights.mean() - 1) < 1e-12
    shape, scale = process.day
    mode = (shape - 1) * scale  # of the gamma, in half hours
    assert abs(int(weights.argmax()) + 1 - mode) <= 1
    assert weights.argmin() in (9, 10)  # where i = 58 ends the model's day and i = 11 begins it


def test_weight_is_the_probability_of_its_half_hour():
    """Bucket (i - 1) mod 48 holds cdf(i + 0.5) - cdf(i - 0.5), here by fine summation."""
    shape, scale = COMBINED.day
    weights = half_hour_weights(COMBINED)
    masses = {}
    for i in range(11, 59):
        x = np.linspace(i - 0.5, i + 0.5, 10_001)
        masses[(i - 1) % 48] = np.exp((shape - 1) * np.log(x) - x / scale).mean()
    expected = np.array([masses[b] for b in range(48)])
    assert np.allclose(weights, expected / expected.mean(), rtol=1e-6)


def arrivals_step_by_step(log_gaps, weights):
    """Follow the published loop, job by job."""
    points, rest, bucket, now, times = 0.0, 0.0, 0, 0.0, []
    for log_gap in log_gaps:
        points += math.exp(log_gap) / BUCKET_S
        while points > weights[bucket]:
            points -= weights[bucket]
            bucket = (bucket + 1) % 48
            now += BUCKET_S
        new_rest = points / weights[bucket]
        now += BUCKET_S * (new_rest - rest)
        rest = new_rest
        times.append(now)
    return np.array(times)


class FixedGaps:
    """A generator whose gamma draws are given."""

    def __init__(self, log_gaps):
        self.log_gaps = log_gaps

    def gamma(self, shape, scale, size):
        return self.log_gaps[:size].copy()


def test_arrivals_equal_the_published_loop(process):
    log_gaps = np.minimum(np.random.default_rng(6).gamma(6.5, 0.9, 3000), 13)
    times = draw_arrivals(3000, FixedGaps(log_gaps), process)
    expected = arrivals_step_by_step(log_gaps, half_hour_weights(process))
    assert np.abs(times - expected).max() <= 1.0


def test_gaps_are_drawn_anew_beyond_their_bound():
    class OnceWild:
        def __init__(self):
            self.calls = 0

        def gamma(self, shape, scale, size):
            self.calls += 1
            return np.full(size, 14.0 if self.calls == 1 else 2.0)

    generator = OnceWild()
    times = draw_arrivals(5, generator, COMBINED)
    assert generator.calls == 2
    assert times[-1] < 5 * math.exp(5)


def test_mean_gap_follows_its_gamma(process):
    shape, factor, scale = process.gap
    generator = np.random.default_rng(7)
    draws = generator.gamma(shape * factor, scale, N_JOBS)
    expected = np.exp(draws[draws <= 13]).mean()
    times = draw_arrivals(N_JOBS, np.random.default_rng(8), process)
    assert abs(times[-1] / N_JOBS / expected - 1) < 0.05


def test_job_types_merge_two_processes_by_their_next_arrival():
    merged = lublin_workload(5000, np.random.default_rng(9))
    batch = draw_arrivals(5000, np.random.default_rng(9), BATCH)
    assert len(merged) == 5000
    assert (np.diff(merged.submit_time) >= 0).all()
    assert merged.submit_time[-1] < batch[-1]
    assert np.array_equal(merged.requested_time, merged.run_time)
    assert set(merged.user.tolist()) == {-1}


def test_same_seed_draws_the_same_workload():
    frames = [lublin_workload(500, np.random.default_rng(k)).to_frame() for k in (1, 1, 2)]
    assert frames[0].equals(frames[1])
    assert not frames[0].equals(frames[2])


def test_small_machine_and_no_jobs_are_refused():
    with pytest.raises(TraceError, match="needs 32 processors or more, got 16"):
        lublin_workload(10, np.random.default_rng(0), machine_processors=16)
    with pytest.raises(TraceError, match="n_jobs must be at least 1, got 0"):
        lublin_workload(0, np.random.default_rng(0))


def test_combined_process_resembles_the_published_output_for_256(real_log):
    theirs = load_workload(real_log("lublin_256"))
    ours = lublin_workload(
        10_000, np.random.default_rng(10), machine_processors=256, job_types=False
    )
    for figure, tolerance in (
        (lambda w: np.mean(w.processors == 1), 0.02),
        (lambda w: np.log2(w.processors).mean(), 0.08),
        (lambda w: np.mean((w.processors & (w.processors - 1)) == 0), 0.02),
        (lambda w: np.log(w.run_time).mean(), 0.15),
        (lambda w: np.log(w.run_time).std(), 0.1),
        (lambda w: np.corrcoef(np.log(w.run_time), np.log2(w.processors))[0, 1], 0.05),
    ):
        assert abs(figure(ours) - figure(theirs)) < tolerance
