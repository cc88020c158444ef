"""Plackett-Luce: likelihoods over all orders, by the chain rule, and what is drawn."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

torch = pytest.importorskip("torch")
plackett_luce = pytest.importorskip("hpcgym.agent.learn.ppo.plackett_luce")

LOGITS = (0.3, -1.2, 2.0, 0.9)
EMPTY = -1e9


def actions_of(orders: list[tuple[int, ...]], n_slots: int) -> object:
    """Write orders, given as slots from first to last, as actions."""
    ranks = np.argsort(np.array(orders), axis=1)
    return torch.as_tensor(2 * ranks / (n_slots - 1) - 1, dtype=torch.float32)


def by_chain_rule(logits: tuple[float, ...], order: tuple[int, ...], n_ranked: int) -> float:
    """Draw one after the other from what is left."""
    left, likelihood = list(range(len(logits))), 1.0
    for slot in order[:n_ranked]:
        likelihood *= np.exp(logits[slot]) / sum(np.exp(logits[other]) for other in left)
        left.remove(slot)
    return likelihood


def distribution(logits: tuple[float, ...], n: int, n_ranked: int = 0) -> object:
    """The distribution over n rows of the same scores."""
    found = plackett_luce.PlackettLuce(len(logits), n_ranked)
    return found.proba_distribution(torch.tensor(logits).expand(n, -1))


@pytest.mark.parametrize("n_ranked", [0, 1, 2, 3, 4])
def test_likelihoods_of_all_orders_follow_the_chain_rule_and_sum_to_one(n_ranked: int) -> None:
    orders = list(itertools.permutations(range(4)))
    found = distribution(LOGITS, 24, n_ranked).log_prob(actions_of(orders, 4)).exp()
    expected = [by_chain_rule(LOGITS, order, n_ranked or 4) for order in orders]
    assert np.allclose(found, expected, atol=1e-6)
    beginnings = {order[: n_ranked or 4]: float(p) for order, p in zip(orders, found, strict=True)}
    assert sum(beginnings.values()) == pytest.approx(1.0, abs=1e-5)


def test_slots_without_a_job_count_for_nothing_and_come_last() -> None:
    padded = (*LOGITS, EMPTY, EMPTY)
    orders = [(*order, 4, 5) for order in itertools.permutations(range(4))]
    found = distribution(padded, 24)
    expected = [by_chain_rule(LOGITS, order[:4], 4) for order in orders]
    assert np.allclose(found.log_prob(actions_of(orders, 6)).exp(), expected, atol=1e-6)
    assert (found.sample()[:, 4:] >= 0.6 - 1e-6).all()
    assert (found.mode()[:, 4:] >= 0.6 - 1e-6).all()


@pytest.mark.parametrize("n_ranked", [0, 2])
def test_orders_are_drawn_as_often_as_they_are_likely(n_ranked: int) -> None:
    torch.manual_seed(0)
    n = 40_000
    found = distribution(LOGITS, n, n_ranked)
    first_two = torch.argsort(found.sample(), dim=1)[:, :2]
    counts = np.bincount((first_two @ torch.tensor([4, 1])).numpy(), minlength=16) / n
    for order in itertools.permutations(range(4), 2):
        rest = tuple(slot for slot in range(4) if slot not in order)
        expected = by_chain_rule(LOGITS, order + rest, 2)
        assert counts[4 * order[0] + order[1]] == pytest.approx(expected, abs=0.01)


def test_ranks_behind_those_drawn_follow_by_score() -> None:
    torch.manual_seed(0)
    orders = torch.argsort(distribution(LOGITS, 200, 1).sample(), dim=1)
    for order in orders.tolist():
        assert order[1:] == sorted(order[1:], key=lambda slot: -LOGITS[slot])


def test_the_likeliest_order_is_by_score_and_ties_keep_their_order() -> None:
    found = distribution((0.5, 2.0, 0.5, 2.0), 1).mode()
    assert torch.argsort(found, dim=1).tolist() == [[1, 3, 0, 2]]


def test_the_likelihood_is_recovered_from_actions_of_many_slots() -> None:
    torch.manual_seed(0)
    logits = torch.randn(64, 128)
    found = plackett_luce.PlackettLuce(128).proba_distribution(logits)
    actions = found.sample()
    assert actions.min() == -1 and actions.max() == 1
    order = torch.argsort(actions.double(), dim=1)
    chosen = logits.double().gather(1, order)
    expected = (chosen - chosen.flip(1).logcumsumexp(1).flip(1)).sum(1)
    assert torch.allclose(found.log_prob(actions).double(), expected, rtol=1e-4)


@pytest.mark.parametrize("n_ranked", [0, 2])
@pytest.mark.parametrize("padding", [(), (EMPTY, EMPTY)])
def test_the_entropy_is_exact_on_average(n_ranked: int, padding: tuple[float, ...]) -> None:
    places = tuple(range(4, 4 + len(padding)))
    orders = [(*order, *places) for order in itertools.permutations(range(4))]
    found = distribution(LOGITS + padding, 24, n_ranked)
    along = found.entropy_along(torch.tensor(orders))
    whole = np.array([by_chain_rule(LOGITS, order, 4) for order in orders])
    drawn = np.array([by_chain_rule(LOGITS, order, n_ranked or 4) for order in orders])
    assert float(along.double() @ torch.tensor(whole)) == pytest.approx(
        -(whole * np.log(drawn)).sum(), abs=1e-5
    )


def test_gradients_of_likelihoods_and_entropies_are_finite() -> None:
    logits = torch.tensor([[0.1, 5.0, EMPTY], [EMPTY, EMPTY, EMPTY]], requires_grad=True)
    found = plackett_luce.PlackettLuce(3).proba_distribution(logits)
    (found.log_prob(found.sample()) + found.entropy()).sum().backward()
    assert torch.isfinite(logits.grad).all()


@pytest.mark.parametrize("n_ranked", [0, 1, 3])
def test_likelihoods_and_gradients_of_packed_jobs_are_those_of_slots(n_ranked: int) -> None:
    torch.manual_seed(0)
    scores = 10.0 * torch.randn(40, 12)
    mask = torch.arange(12) < torch.arange(40)[:, None] % 13
    scores[7, :2] = torch.tensor([-300.0, 300.0])
    found = plackett_luce.PlackettLuce(12, n_ranked)
    slots = scores.clone().requires_grad_()
    actions = found.proba_distribution(slots.masked_fill(~mask, EMPTY)).sample()
    found.log_prob(actions).sum().backward()
    rows = scores[mask].requires_grad_()
    rank = torch.as_tensor(plackett_luce.ranks_of(actions.numpy()))[mask]
    owner, n_jobs = mask.nonzero()[:, 0], mask.sum(dim=1, keepdim=True)
    packed = found.log_prob_of_rows(rows, owner, rank, n_jobs)
    packed.sum().backward()
    assert torch.allclose(packed, found.log_prob(actions), rtol=1e-5, atol=1e-5)
    assert torch.allclose(rows.grad, slots.grad[mask], atol=1e-5)
