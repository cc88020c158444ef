"""The networks of `hpcgym.agent.network` in torch, and the value network.

Jobs are packed: only slots that hold a job are computed, one row each. So the cost grows with the
queue, not with the number of slots.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from hpcgym.agent.network import EMPTY, HEAD_START, STARTS, NetworkAgent, NetworkSpec, Weights
from hpcgym.env.observation import CLUSTER_FIELDS, FIELDS


class Packed(NamedTuple):
    """A batch of observations without its empty slots.

    Attributes:
        jobs: Fields of every job, shape (n_rows, n_fields).
        owner: The observation of each job, shape (n_rows,).
        cluster: Shape (n_envs, n_cluster).
        mask: Which slots hold a job, shape (n_envs, n_slots).
    """

    jobs: Tensor
    owner: Tensor
    cluster: Tensor
    mask: Tensor

    @property
    def n_jobs(self) -> Tensor:
        """Return the number of jobs of each observation, at least 1, shape (n_envs, 1)."""
        return self.mask.sum(dim=1, keepdim=True).clamp(min=1).float()

    def sums(self, rows: Tensor) -> Tensor:
        """Sum the rows of each observation, shape (n_envs, width)."""
        there = rows.new_zeros(len(self.mask), rows.shape[1])
        return there.index_add(0, self.owner, rows)


def pack(shown: dict[str, Tensor]) -> Packed:
    """Leave out the empty slots of a batch of observations."""
    mask = shown["action_mask"] > 0.5
    jobs = shown["jobs"].reshape(*mask.shape, -1)[..., : len(FIELDS)]
    return Packed(jobs[mask], mask.nonzero()[:, 0], shown["cluster"], mask)


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

    def forward(self, packed: Packed) -> Tensor:
        """Compute the network, as `hpcgym.agent.network.NetworkAgent.output` does in numpy."""
        spec = self.spec
        h = self._encoded(packed)
        if not spec.scores_jobs:
            h = packed.sums(h) / packed.n_jobs
        f = self._layer("output", h)
        if spec.residual:
            f = spec.bound * torch.tanh(f)
        if not spec.scores_jobs:
            if spec.residual:
                f = f + HEAD_START * torch.eye(spec.n_outputs, device=f.device)[spec.start_output]
            return f
        f = f[:, 0]
        if spec.residual:
            place, scale = STARTS[spec.start]
            f = f - scale * packed.jobs[:, place]
        scores = torch.full(packed.mask.shape, float(EMPTY), device=f.device)
        return scores.masked_scatter(packed.mask, f)

    def weights(self) -> Weights:
        """Return a copy of the arrays, as `hpcgym.agent.network` names them."""
        return {name: self._array(name).detach().cpu().numpy().copy() for name in self.spec.shapes}

    def agent(self) -> NetworkAgent:
        """Return the network as an agent without torch."""
        return NetworkAgent(self.spec, self.weights())

    def _array(self, name: str) -> Tensor:
        """Return the parameter of a name."""
        return torch.as_tensor(self.arrays[name.replace(".", "_")])

    def _layer(self, name: str, h: Tensor) -> Tensor:
        """Apply one affine layer."""
        return torch.addmm(self._array(f"{name}.bias"), h, self._array(f"{name}.weight"))

    def _encoded(self, packed: Packed) -> Tensor:
        """Return the hidden values of each job, shape (n_rows, hidden)."""
        of_cluster = packed.cluster @ self._array("cluster.weight")
        h = torch.relu(self._layer("jobs", packed.jobs) + of_cluster.index_select(0, packed.owner))
        for place in range(1, self.spec.layers):
            h = torch.relu(self._layer(f"layer{place}", h))
        if self.spec.network == "attention":
            h = h + self._layer("mixed", self._attended(h, packed))
            h = h + self._layer("narrow", torch.relu(self._layer("wide", h)))
        return h

    def _attended(self, h: Tensor, packed: Packed) -> Tensor:
        """Return what each job gathers from all of its observation by attention."""
        n = max(int(packed.mask.sum(dim=1).max()), 1)  # jobs are in the first slots
        mask = packed.mask[:, :n]
        parts = []
        for name in ("query", "key", "value"):
            padded = h.new_zeros(*mask.shape, h.shape[1])
            padded = padded.masked_scatter(mask[:, :, None], self._layer(name, h))
            parts.append(padded.reshape(*mask.shape, self.spec.heads, -1).transpose(1, 2))
        query, key, value = parts
        fit = query @ key.transpose(2, 3) / float(np.sqrt(query.shape[-1]))
        attention = torch.softmax(fit.masked_fill(~mask[:, None, None], float(EMPTY)), dim=-1)
        return torch.as_tensor((attention @ value).transpose(1, 2).reshape(*mask.shape, -1)[mask])


class Critic(nn.Module):
    """A value network, of the mean and the sum of the jobs' hidden values, and of the cluster.

    Source: Zaheer et al. 2017 (Deep Sets); specification, section 10.
    """

    def __init__(self, spec: NetworkSpec) -> None:
        super().__init__()
        width = spec.hidden
        self.jobs = nn.Linear(len(FIELDS), width)
        self.cluster = nn.Linear(len(CLUSTER_FIELDS), width)
        self.pooled = nn.Linear(2 * width + len(CLUSTER_FIELDS), width)
        self.output = nn.Linear(width, 1)
        self.n_slots = spec.n_slots

    def forward(self, packed: Packed) -> Tensor:
        """Return the value of each observation, shape (n_envs, 1)."""
        of_cluster = self.cluster(packed.cluster).index_select(0, packed.owner)
        sums = packed.sums(torch.relu(self.jobs(packed.jobs) + of_cluster))
        pooled = [sums / packed.n_jobs, sums / self.n_slots, packed.cluster]
        return torch.as_tensor(self.output(torch.relu(self.pooled(torch.cat(pooled, dim=1)))))
