"""Orders as actions: the Plackett-Luce distribution, sampled by Gumbel noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.distributions import Distribution
from torch import Tensor, nn

from hpcgym.agent.network import EMPTY


class PlackettLuce(Distribution):
    """The distribution of orders whose jobs are drawn one by one, by the softmax over those left.

    An action holds the rank of each slot, mapped into [-1, 1]: -1 for the first. Slots without a
    job come last and do not count. If only the first `n_ranked` are drawn, those behind them
    follow by their scores, and the likelihood is that of the first ones in their order.

    Args:
        n_slots: Visible jobs.
        n_ranked: Ranks that are drawn; 0 = all.

    Source: Plackett 1975; Yellott 1977 (Gumbel noise); specification, section 10, design D.
    """

    def __init__(self, n_slots: int, n_ranked: int = 0) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.n_slots = n_slots
        self.n_ranked = min(n_ranked or n_slots, n_slots)
        # Scores, shape (n_envs, n_slots), `EMPTY` for empty slots.
        self.logits = torch.zeros(0, n_slots)

    def proba_distribution_net(self, *args: Any, **kwargs: Any) -> nn.Module:
        """Return no layers: the scores of a network are the parameters."""
        return nn.Identity()

    def proba_distribution(self, logits: Tensor) -> PlackettLuce:
        """Set the scores."""
        self.logits = logits
        return self

    def log_prob(self, actions: Tensor) -> Tensor:
        """Return the log likelihood of actions, shape (n_envs,)."""
        chosen, rest, counts = self._stages(self._first_of(-actions))
        return torch.where(counts, chosen - rest, 0.0).sum(dim=1)

    def log_prob_of_rows(
        self, scores: Tensor, owner: Tensor, rank: Tensor, n_jobs: Tensor
    ) -> Tensor:
        """Return the log likelihood of orders, shape (n_envs,), without looking at empty slots.

        Args:
            scores: Of each job, shape (n_rows,).
            owner: The observation of each job, shape (n_rows,).
            rank: Its rank, shape (n_rows,).
            n_jobs: Jobs of each observation, shape (n_envs, 1).
        """
        n, is_drawn = len(n_jobs), rank < self.n_ranked
        drawn = scores.new_full((n, self.n_ranked), float(EMPTY))
        drawn = drawn.index_put((owner[is_drawn], rank[is_drawn]), scores[is_drawn])
        late, of = scores[~is_drawn], owner[~is_drawn]
        most = scores.new_full((n,), float(EMPTY))
        most = most.scatter_reduce(0, of, late.detach(), "amax")
        sums = scores.new_zeros(n).index_add(0, of, torch.exp(late - most[of]))
        behind = most + torch.where(sums > 0, sums, 1.0).log()
        left = _from_the_end(torch.cat([drawn, behind[:, None]], dim=1))[:, :-1]
        counts = torch.arange(self.n_ranked, device=scores.device) < n_jobs
        return torch.where(counts, drawn - left, 0.0).sum(dim=1)

    def entropy(self) -> Tensor:
        """Return an unbiased estimate of the entropy, from one drawn order, shape (n_envs,).

        Given the jobs drawn so far, the entropy of the next choice is exact.
        """
        with torch.no_grad():
            order = self._drawn_order()
        return self.entropy_along(order)

    def entropy_along(self, order: Tensor) -> Tensor:
        """Return the sum of the entropies of the choices along an order, shape (n_envs,)."""
        order = order[:, : self.n_ranked]
        _, rest, counts = self._stages(order)
        # the mean score of what is left, over the least score, as a difference of logarithms
        least = self.logits.masked_fill(~self._holds_job, torch.inf).amin(1, keepdim=True)
        least = torch.where(torch.isfinite(least), least, 0.0).detach()
        above = (self.logits - least).clamp(min=1e-30)
        mean = torch.exp(_left_at(order, self.logits + above.log()) - rest) + least
        return torch.where(counts, rest - mean, 0.0).sum(dim=1)

    def sample(self) -> Tensor:
        """Draw orders."""
        return self._as_action(self._drawn_order())

    def mode(self) -> Tensor:
        """Return the likeliest orders; ties go to the earlier slot."""
        return self._as_action(torch.argsort(-self.logits, dim=1, stable=True))

    def actions_from_params(self, logits: Tensor, deterministic: bool = False) -> Tensor:
        """Draw orders, or take the likeliest, by these scores."""
        return self.proba_distribution(logits).get_actions(deterministic=deterministic)

    def log_prob_from_params(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Draw orders by these scores; return their log likelihoods, too."""
        actions = self.actions_from_params(logits)
        return actions, self.log_prob(actions)

    @property
    def _holds_job(self) -> Tensor:
        """Return which slots hold a job, shape (n_envs, n_slots)."""
        return torch.gt(self.logits, float(EMPTY) / 2)

    def _stages(self, order: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return each rank's score, the log sum over jobs left at it, and whether it counts."""
        n_drawn = self._holds_job.sum(dim=1, keepdim=True)
        rank = torch.arange(self.n_ranked, device=order.device)
        return self.logits.gather(1, order), _left_at(order, self.logits), rank < n_drawn

    def _first_of(self, keys: Tensor) -> Tensor:
        """Return the slots of the ranks that are drawn, by falling keys."""
        if self.n_ranked < self.n_slots:
            return torch.topk(keys, self.n_ranked, dim=1).indices
        return torch.argsort(keys, dim=1, descending=True, stable=True)

    def _drawn_order(self) -> Tensor:
        """Draw orders, as indexes of slots."""
        holds = self._holds_job
        scores = self.logits[holds]
        noise = torch.empty_like(scores).exponential_().clamp_(min=1e-30).log_()
        first = self._first_of(self.logits.masked_scatter(holds, scores - noise))
        if self.n_ranked == self.n_slots:
            return first
        late = (-self.logits).scatter(1, first, -torch.inf)  # the others, by their scores
        rest = torch.argsort(late, dim=1, stable=True)[:, self.n_ranked :]
        return torch.cat([first, rest], dim=1)

    def _as_action(self, order: Tensor) -> Tensor:
        """Write the rank of each slot into [-1, 1]."""
        rank = torch.arange(self.n_slots, dtype=torch.float32, device=order.device)
        spread = (2.0 * rank / (self.n_slots - 1) - 1.0).expand_as(self.logits)
        return torch.empty_like(self.logits).scatter(1, order, spread)


def _left_at(order: Tensor, values: Tensor) -> Tensor:
    """Return at each of the first ranks the log of the sum of exponentials of what is left.

    What is behind these ranks is summed once, since an order is much longer than what is drawn.
    """
    behind = values.scatter(1, order, float(EMPTY)).logsumexp(1, keepdim=True)
    return _from_the_end(torch.cat([values.gather(1, order), behind], dim=1))[:, :-1]


def _from_the_end(values: Tensor) -> Tensor:
    """Return the log of the sum of exponentials of each value and those behind it."""
    return torch.logcumsumexp(values.flip(1), dim=1).flip(1)


def ranks_of(actions: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return the rank that an action gives each slot, from 0, of the same shape (..., n_slots)."""
    ranks = np.rint((actions + 1.0) * (actions.shape[-1] - 1) / 2.0)
    return np.asarray(ranks, dtype=np.int64)
