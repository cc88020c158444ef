"""A network learns what users' last jobs tell of a run time, and is kept without pickles."""

from dataclasses import replace

import numpy as np
import pytest

from hpcgym.agent.run_time_network import (
    Fitting,
    Samples,
    fit_network,
    read_run_time_network,
    samples_of,
    write_run_time_network,
)
from hpcgym.base.errors import CardError, HpcgymError, OutputError
from hpcgym.core.constants import (
    N_HIDDEN,
    N_LAST,
    N_NETWORK,
    N_NETWORK_INPUTS,
    TERM_NETWORK_RUN_TIME_RATIO,
    TERM_NETWORK_SPEED,
)
from hpcgym.core.index_policy import index_policy
from hpcgym.core.simulator import Simulator
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.env.scenario.load import load_scenario


def forward(network, inputs):
    """Apply a network to its inputs, in numpy."""
    activations, first = inputs, 0
    for n_in, n_out in ((N_NETWORK_INPUTS, N_HIDDEN), (N_HIDDEN, N_LAST), (N_LAST, 2)):
        weight = network[first : first + n_in * n_out].reshape(n_out, n_in)
        bias = network[first + n_in * n_out : first + (n_in + 1) * n_out]
        activations = activations @ weight.T + bias
        if n_out > 2:
            activations = activations / (1 + abs(activations))
        first += (n_in + 1) * n_out
    return activations


@pytest.fixture(scope="module")
def weeks():
    """Three weeks of the bundled log."""
    return Episodes("synthetic-256-weeks").select("1-3")


@pytest.fixture(scope="module")
def samples(weeks):
    """What is learnt from in them."""
    return samples_of(weeks)


def test_samples_are_what_became_of_jobs_that_waited(weeks, samples):
    assert len(samples) % 2 == 0
    assert 0 < len(samples) <= 2 * sum(len(weeks.workload(week)) for week in range(3))
    assert samples.inputs.shape == (len(samples), N_NETWORK_INPUTS)
    assert np.isfinite(samples.inputs).all()
    assert ((samples.run_time_ratio > 0) & (samples.run_time_ratio <= 1)).all()
    assert ((samples.speed > 0) & (samples.speed <= 1)).all()
    # share D/E times speed 10/D is 10/E
    assert np.allclose(np.log(samples.run_time_ratio * samples.speed), -samples.log_bound)


@pytest.mark.parametrize(("estimates", "correction"), [("doubled", "none"), ("recent", "tsafrir")])
def test_shares_and_speeds_are_those_of_the_estimate_that_the_network_sees(estimates, correction):
    scenario = load_scenario("synthetic-256-weeks")
    scheduler = replace(scenario.scheduler, estimates=estimates, correction=correction)
    found = samples_of(Episodes(replace(scenario, scheduler=scheduler)).select("1"))
    assert found.log_bound + np.log(10.0) == pytest.approx(12.0 * found.inputs[:, 0])  # log E
    assert np.log(found.run_time_ratio * found.speed) == pytest.approx(-found.log_bound)


def test_users_records_are_among_the_signs(weeks):
    first, last = np.split(samples_of(weeks.select("1")).inputs, 2)
    assert (last[:, 2] >= first[:, 2]).all()  # jobs the user has completed
    assert (last[:, 2] > first[:, 2]).any()


def test_network_begins_at_the_request(samples):
    network = fit_network([samples], 0, Fitting(epochs=0))
    assert np.array_equal(forward(network, samples.inputs), np.zeros((len(samples), 2)))


@pytest.mark.slow
def test_network_learns_the_mean_of_what_it_cannot_tell_apart():
    generator = np.random.default_rng(0)
    n = 4_000
    inputs = np.zeros((n, N_NETWORK_INPUTS))
    inputs[:, 1] = generator.integers(2, size=n)  # two kinds of jobs, whose shares have other means
    run_time_ratio = np.where(inputs[:, 1] == 1, 0.8, 0.1) * generator.choice([0.5, 1.5], size=n)
    known = Samples(
        inputs, np.minimum(run_time_ratio, 1.0), np.full(n, 0.01), np.full(n, np.log(100.0))
    )
    found = forward(fit_network([known], 1, Fitting(epochs=30)), inputs)
    for kind in (0, 1):
        chosen = inputs[:, 1] == kind
        assert np.exp(found[chosen, 0]).mean() == pytest.approx(
            known.run_time_ratio[chosen].mean(), rel=0.1
        )
    # speed is E/D = (10/D) (E/10)
    assert np.exp(found[:, 1]).mean() == pytest.approx(0.01 * 100.0, rel=0.1)


@pytest.mark.long
def test_same_seed_gives_the_same_network(samples):
    brief = Fitting(epochs=1)
    assert np.array_equal(fit_network([samples], 3, brief), fit_network([samples], 3, brief))
    assert not np.array_equal(fit_network([samples], 3, brief), fit_network([samples], 4, brief))


@pytest.mark.long
def test_kernel_expects_what_the_network_says(weeks):
    """At every decision of a week, the terms of the index are those computed in numpy."""
    network = np.random.default_rng(0).normal(0.0, 0.5, N_NETWORK)
    by_network = replace(weeks.settings, policy=index_policy([1, 2, 0, 0, 1, -1], network))
    simulator = Simulator(weeks.workload(0), by_network, decide="event")
    found, expected = [], []
    while simulator.run():
        found.append(simulator.terms()[1][:, [TERM_NETWORK_RUN_TIME_RATIO, TERM_NETWORK_SPEED]])
        expected.append(forward(network, simulator.network_inputs()[1]))
    found, expected = np.concatenate(found), np.concatenate(expected)
    assert np.allclose(found, expected, rtol=1e-9, atol=1e-12)
    assert (np.std(found, axis=0) > 0.1).all()


def test_no_samples_are_refused():
    nothing = Samples(np.empty((0, N_NETWORK_INPUTS)), np.empty(0), np.empty(0), np.empty(0))
    with pytest.raises(HpcgymError, match="nothing to fit"):
        fit_network([nothing], 0)


def test_network_is_written_and_read(tmp_path, samples):
    network = fit_network([samples], 0, Fitting(epochs=1))
    write_run_time_network(network, tmp_path / "one.npz")
    assert np.array_equal(read_run_time_network(tmp_path / "one.npz"), network)
    with pytest.raises(OutputError):
        write_run_time_network(network, tmp_path / "one.npz")


@pytest.mark.parametrize(
    "write",
    [
        lambda path: None,
        lambda path: path.write_text("not a file of numpy"),
        lambda path: np.savez(path, other=np.zeros(N_NETWORK)),
        lambda path: np.savez(path, expecting=np.zeros(3)),
        lambda path: np.savez(path, expecting=np.full(N_NETWORK, np.nan)),
        lambda path: np.savez(path, expecting=np.array([None] * N_NETWORK)),
    ],
    ids=["absent", "text", "other", "short", "nan", "pickle"],
)
def test_files_that_hold_no_network_are_refused(tmp_path, write):
    path = tmp_path / "weights.npz"
    write(path)
    with pytest.raises(CardError, match=r"weights\.npz"):
        read_run_time_network(path)
