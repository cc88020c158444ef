"""The networks of `hpcgym.agent.network` in torch, and the value network.

Jobs are packed: only slots that hold a job are computed, one row each. So the cost grows with the
queue, not with the number of slots.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from hpcgym.agent.network import EMPTY, STARTS, NetworkAgent, NetworkSpec, Weights


class Packed(NamedTuple):
    """A batch of observations without its empty slots."""

    jobs: Tensor  # fields of every job and of its cluster, shape (n_rows, n_fields + n_cluster)
    owner: Tensor  # the observation of each job, shape (n_rows,)
    cluster: Tensor  # shape (n_envs, n_cluster)
    mask: Tensor  # which slots hold a job, shape (n_envs, n_slots)
    # Rank of each job in an order that was drawn, shape (n_rows,); None = none was.
    rank: Tensor | None = None

    @property
    def n_jobs(self) -> Tensor:
        """Return the number of jobs of each observation, at least 1, shape (n_envs, 1)."""
        return self.mask.sum(dim=1, keepdim=True).clamp(min=1).float()

    def sums(self, rows: Tensor) -> Tensor:
        """Sum the rows of each observation, shape (n_envs, width)."""
        there = rows.new_zeros(len(self.mask), rows.shape[1])
        return there.index_add(0, self.owner, rows)


def pack(shown: dict[str, Tensor] | Packed, spec: NetworkSpec) -> Packed:
    """Leave out the empty slots, and what a network does not read, unless that has been done.

    Where no jobs are shown, each observation counts as one job without fields.
    """
    if isinstance(shown, Packed):
        return shown
    if "action_mask" not in shown:
        cluster = shown["cluster"]
        owner = torch.arange(len(cluster), device=cluster.device)
        return Packed(cluster, owner, cluster, cluster.new_ones(len(cluster), 1) > 0)
    mask = shown["action_mask"] > 0.5
    jobs = shown["jobs"].reshape(*mask.shape, -1)[..., : spec.n_fields[0]]
    owner = mask.nonzero()[:, 0]
    rows = torch.cat([jobs[mask], shown["cluster"].index_select(0, owner)], dim=1)
    return Packed(rows, owner, shown["cluster"], mask)


def first_layers(scorer: Scorer, critic: Critic, packed: Packed) -> list[Tensor]:
    """Return the first hidden values of each job in both networks, by one product."""
    layers = scorer.first_layer(), critic.first_layer()
    weight, bias = (torch.cat(parts, dim=-1) for parts in zip(*layers, strict=True))
    both = torch.addmm(bias, packed.jobs, weight).relu_()
    return list(torch.split(both, [len(biases) for _, biases in layers], dim=1))


class Scorer(nn.Module):
    """A network of a `NetworkSpec`, its arrays under the same names."""

    def __init__(self, spec: NetworkSpec, log_std: float = 0.0) -> None:
        super().__init__()
        self.spec = spec
        self.arrays = nn.ParameterDict()
        for name, shape in spec.shapes.items():
            array = torch.zeros(shape)
            if name.endswith("weight") and not (spec.residual and name == "output.weight"):
                nn.init.orthogonal_(array, gain=float(np.sqrt(2.0)))
            if name == "log_std":
                array.fill_(log_std)
            self.arrays[name.replace(".", "_")] = nn.Parameter(array)

    def first_layer(self) -> tuple[Tensor, Tensor]:
        """Return weight and bias of the first layer, for jobs with their clusters."""
        weight = [self._array("jobs.weight"), self._array("cluster.weight")]
        return torch.cat(weight), self._array("jobs.bias")

    def forward(self, packed: Packed, h: Tensor | None = None) -> Tensor:
        """Compute the network, as `hpcgym.agent.network.NetworkAgent.output` does in numpy.

        Args:
            packed: Observations.
            h: What `first_layers` returned for it; None = not yet computed.
        """
        f = self.of_rows(packed, h)
        if not self.spec.scores_jobs:
            return f
        scores = torch.full(packed.mask.shape, float(EMPTY), device=f.device)
        return scores.masked_scatter(packed.mask, f)

    def of_rows(self, packed: Packed, h: Tensor | None = None) -> Tensor:
        """Return the score of each job, shape (n_rows,), or the outputs, shape (n_envs, n_outputs).

        Arguments are those of `forward`.
        """
        spec = self.spec
        if h is None:
            weight, bias = self.first_layer()
            h = torch.addmm(bias, packed.jobs, weight).relu_()
        h = self._encoded(h)
        if not spec.scores_jobs:
            h = packed.sums(h) / packed.n_jobs
        f = self._layer("output", h)
        if spec.residual:
            f = spec.bound * torch.tanh(f)
        if not spec.scores_jobs:
            if spec.residual:
                f = f + torch.as_tensor(spec.head_start, device=f.device)
            return f
        f = f[:, 0]
        if spec.residual:
            column, scale = STARTS[spec.start]
            f = f - scale * packed.jobs[:, column]
        return f

    def weights(self) -> Weights:
        """Return a copy of the arrays, as `hpcgym.agent.network` names them."""
        return {name: self._array(name).detach().cpu().numpy().copy() for name in self.spec.shapes}

    def agent(self) -> NetworkAgent:
        """Return the network as an agent without torch."""
        return NetworkAgent(self.spec, self.weights())

    def _array(self, name: str) -> Tensor:
        return torch.as_tensor(self.arrays[name.replace(".", "_")])

    def _layer(self, name: str, h: Tensor) -> Tensor:
        return torch.addmm(self._array(f"{name}.bias"), h, self._array(f"{name}.weight"))

    def _encoded(self, h: Tensor) -> Tensor:
        """Return the hidden values of each job, shape (n_rows, hidden)."""
        for layer in range(1, self.spec.layers):
            h = self._layer(f"layer{layer}", h).relu_()
        return h


class Critic(nn.Module):
    """A value network, of the mean and the sum of the jobs' hidden values, and of the cluster.

    Source: Zaheer et al. 2017 (Deep Sets); specification, section 10.
    """

    def __init__(self, spec: NetworkSpec) -> None:
        super().__init__()
        width = spec.hidden
        n_of_job, n_of_cluster = spec.n_fields
        self.jobs = nn.Linear(n_of_job, width) if n_of_job else None
        self.cluster = nn.Linear(n_of_cluster, width)
        self.pooled = nn.Linear(2 * width + n_of_cluster, width)
        self.output = nn.Linear(width, 1)
        self.n_slots = spec.n_slots

    def first_layer(self) -> tuple[Tensor, Tensor]:
        """Return weight and bias of the first layer, for jobs with their clusters."""
        if self.jobs is None:
            return self.cluster.weight.T, self.cluster.bias
        weight = torch.cat([self.jobs.weight, self.cluster.weight], dim=1).T
        return weight, self.jobs.bias + self.cluster.bias

    def forward(self, packed: Packed, h: Tensor | None = None) -> Tensor:
        """Return the value of each observation, shape (n_envs, 1); arguments as of `Scorer`."""
        if h is None:
            weight, bias = self.first_layer()
            h = torch.addmm(bias, packed.jobs, weight).relu_()
        sums = packed.sums(h)
        pooled = [sums / packed.n_jobs, sums / self.n_slots, packed.cluster]
        return torch.as_tensor(self.output(torch.relu(self.pooled(torch.cat(pooled, dim=1)))))
