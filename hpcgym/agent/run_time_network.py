"""Networks that expect run times: their samples, their fitting, and their files.

A network reads the inputs of
`hpcgym.core.kernels.scoring.user_estimates.read_network_inputs`. It puts out two logarithms: of a
job's run-time ratio D/E and of its speed E/D. Both are expected values, so the loss of each is that
of a Poisson regression, which a mean alone minimises.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpcgym.agent.npz import NpzFile, write_npz
from hpcgym.base.errors import CardError, HpcgymError
from hpcgym.base.packages import needing
from hpcgym.base.progress import steps
from hpcgym.core.constants import N_HIDDEN, N_LAST, N_NETWORK, N_NETWORK_INPUTS
from hpcgym.core.metrics import BSLD_BOUND_S
from hpcgym.core.prepare import executed_run_time
from hpcgym.core.simulator import Simulator
from hpcgym.env.scenario.episodes import Episodes

if TYPE_CHECKING:
    import torch

FloatArray = NDArray[np.float64]

BEHAVIOUR = "SMITH-HISTORY"
"""The policy whose schedules are learnt from: close to what the network will order."""

LARGEST_LOG = 2.0
SMALLEST_LOG = -12.0
"""Bounds of what a network says while it is fitted, so that no sample throws it off."""


@dataclass(frozen=True)
class Samples:
    """What a network learns from."""

    inputs: FloatArray  # what it reads, shape (n_samples, N_NETWORK_INPUTS)
    run_time_ratio: FloatArray  # the job's run-time ratio D/E, shape (n_samples,)
    # 10 s / D, shape (n_samples,): the speed E/D over its largest value, so that jobs with long
    # estimates count no more than others.
    speed: FloatArray
    log_bound: FloatArray  # log(E / 10 s), shape (n_samples,)

    def __len__(self) -> int:
        return len(self.run_time_ratio)


@dataclass(frozen=True)
class Fitting:
    """How a network is fitted."""

    epochs: int = 6  # how often each sample is used
    batch: int = 512  # samples of one step
    learning_rate: float = 6e-3  # largest step size of Adam, which rises to it and then falls to 0


def samples_of(episodes: Episodes) -> Samples:
    """Run every week; return two samples for each job that waits at a pass.

    One sample has the inputs at the job's submission, the other those when it last waited: by then
    more of its user's jobs may have ended.
    """
    settings = replace(episodes.settings, policy=BEHAVIOUR)
    parts = []
    with steps(len(episodes)) as work:
        for week in range(len(episodes)):
            workload = episodes.workload(week)
            simulator = Simulator(workload, settings, decide="event")
            first = np.full((len(workload), N_NETWORK_INPUTS), np.nan)
            last = first.copy()
            while simulator.run():
                waiting, inputs = simulator.network_inputs()
                last[waiting] = inputs
                is_new = np.isnan(first[waiting, 0])
                first[waiting[is_new]] = inputs[is_new]
            executed = executed_run_time(workload, settings.kill_at_limit)
            parts.append(_samples_of_week(simulator.predicted_time, executed, first, last))
            work.advance()
    return _concatenated(parts)


def fit_network(
    samples: Sequence[Samples], seed: int, fitting: Fitting | None = None
) -> FloatArray:
    """Fit a network that expects run-time ratio and speed; return its parameters (N_NETWORK,).

    Before the first step it puts out 0 for both: every job runs to its estimate.

    Args:
        samples: Of one log or of several; each log weighs alike.
        seed: Seed of the first weights and of the order of the samples.

    Raises:
        HpcgymError: torch is not installed, or there are no samples.

    Source: Poisson regression of a positive mean: Gourieroux, Monfort and Trognon 1984.
    """
    with needing("fitting a network", "torch"):
        import torch
    if not any(len(of_log) for of_log in samples):
        raise HpcgymError("no job ever waited in the weeks to learn from: nothing to fit")
    fitting = Fitting() if fitting is None else fitting
    every = _concatenated(samples)
    weight = np.concatenate([np.full(len(of_log), 1 / max(len(of_log), 1)) for of_log in samples])
    weight /= weight.mean()
    columns = (every.inputs, every.run_time_ratio, every.speed, every.log_bound, weight)
    inputs, run_time_ratio, speed, log_bound, scale = (
        torch.from_numpy(column.astype(np.float32)) for column in columns
    )
    generator = torch.Generator().manual_seed(seed)
    layers = _layers(generator)
    parameters = [parameter for layer in layers for parameter in layer]
    optimizer = torch.optim.Adam(parameters, lr=fitting.learning_rate)
    batch = min(fitting.batch, len(every))
    n_steps = fitting.epochs * (len(every) // batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, fitting.learning_rate, total_steps=n_steps + 1
    )
    with steps(n_steps) as work:
        for _ in range(fitting.epochs):
            order = torch.randperm(len(every), generator=generator)
            for first in range(0, len(order) - batch + 1, batch):
                part = order[first : first + batch]
                output = _forward(layers, inputs[part])
                log_run_time_ratio = output[:, 0].clamp(SMALLEST_LOG, LARGEST_LOG)
                log_speed = (output[:, 1] - log_bound[part]).clamp(SMALLEST_LOG, LARGEST_LOG)
                losses = (
                    log_run_time_ratio.exp()
                    - run_time_ratio[part] * log_run_time_ratio
                    + log_speed.exp()
                    - speed[part] * log_speed
                )
                optimizer.zero_grad()
                (losses * scale[part]).mean().backward()  # type: ignore[no-untyped-call]
                optimizer.step()
                schedule.step()
                work.advance()
    network = np.concatenate([parameter.detach().numpy().ravel() for parameter in parameters])
    assert len(network) == N_NETWORK
    return network.astype(np.float64)


def write_run_time_network(network: FloatArray, path: Path, *, force: bool = False) -> None:
    """Write a network's parameters, shape (N_NETWORK,), as a `.npz` file without pickles.

    Raises:
        OutputError: The file cannot be written, or is there and `force` is False.
    """
    write_npz(path, {"expecting": network.astype(np.float32)}, force=force, packed=True)


def read_run_time_network(path: Path) -> FloatArray:
    """Read the parameters that `write_run_time_network` has written.

    Raises:
        CardError: The file cannot be read, or holds something else.
    """
    file = NpzFile(path)
    if "expecting" not in file.names:
        raise CardError(f"{path}: not a network that expects run times: no array 'expecting'")
    network = file.array("expecting", 8 * N_NETWORK)
    is_whole = network.dtype.kind == "f" and network.shape == (N_NETWORK,)
    if not is_whole or not np.isfinite(network).all():
        raise CardError(
            f"{path}: a network that expects run times has {N_NETWORK} finite parameters, got "
            f"{network.dtype} of shape {network.shape}"
        )
    return network.astype(np.float64)


def _layers(generator: torch.Generator) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return weights and biases of the three layers, the last of them 0."""
    import torch

    layers = []
    for n_in, n_out in pairwise((N_NETWORK_INPUTS, N_HIDDEN, N_LAST, 2)):
        reach = n_in**-0.5 if n_out > 2 else 0.0
        weight = (2 * torch.rand(n_out, n_in, generator=generator) - 1) * reach
        layers.append((weight.requires_grad_(), torch.zeros(n_out).requires_grad_()))
    return layers


def _forward(layers: list[tuple[torch.Tensor, torch.Tensor]], inputs: torch.Tensor) -> torch.Tensor:
    """Return the network's outputs, shape (n_samples, 2)."""
    activations = inputs
    for depth, (weight, bias) in enumerate(layers):
        activations = activations @ weight.T + bias
        if depth < len(layers) - 1:
            activations = activations / (1 + activations.abs())
    return activations


def _samples_of_week(
    estimate: NDArray[np.int64], executed: NDArray[np.int64], first: FloatArray, last: FloatArray
) -> Samples:
    waited = np.flatnonzero(~np.isnan(first[:, 0]))
    bounded = np.maximum(executed[waited], BSLD_BOUND_S).astype(np.float64)
    bound = np.maximum(estimate[waited], BSLD_BOUND_S).astype(np.float64)
    return Samples(
        np.concatenate([first[waited], last[waited]]),
        np.tile(bounded / bound, 2),
        np.tile(BSLD_BOUND_S / bounded, 2),
        np.tile(np.log(bound / BSLD_BOUND_S), 2),
    )


def _concatenated(parts: Sequence[Samples]) -> Samples:
    keys = ("inputs", "run_time_ratio", "speed", "log_bound")
    return Samples(*(np.concatenate([getattr(part, key) for part in parts]) for key in keys))
