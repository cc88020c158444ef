"""Blocks of weeks in time order, and what may be trained on meanwhile."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcgym.base.errors import EvaluationError
from hpcgym.evaluation.folds import Fold, time_blocks


@given(st.integers(2, 7), st.sets(st.integers(1, 60), min_size=25))
def test_each_week_is_held_out_once_and_its_neighbours_are_never_trained_on(
    n_folds: int, numbers: set[int]
) -> None:
    weeks = tuple(sorted(numbers))
    folds = time_blocks(weeks, n_folds)
    assert [fold.number for fold in folds] == list(range(1, n_folds + 1))
    assert tuple(week for fold in folds for week in fold.test) == weeks
    sizes = [len(fold.test) for fold in folds]
    assert max(sizes) - min(sizes) <= 1
    for fold in folds:
        assert sorted((*fold.test, *fold.training, *fold.left_out)) == list(weeks)
        assert all(abs(week - held) > 1 for week in fold.training for held in fold.test)
        ends = {fold.test[0] - 1, fold.test[-1] + 1}
        inside = {held + step for held in fold.test for step in (-1, 1)}
        assert set(fold.left_out) <= ends | inside


def test_a_missing_week_parts_as_a_neighbour_does() -> None:
    assert time_blocks((1, 2, 4, 5), 2) == (
        Fold(1, (1, 2), (4, 5), ()),
        Fold(2, (4, 5), (1, 2), ()),
    )


@pytest.mark.parametrize("n_folds", [0, 1])
def test_one_block_would_leave_nothing_to_train_on(n_folds: int) -> None:
    with pytest.raises(EvaluationError, match=f"at least 2 blocks, got {n_folds}"):
        time_blocks(range(1, 11), n_folds)


@pytest.mark.parametrize(("weeks", "n_folds"), [(3, 2), (4, 5), (3, 3)])
def test_too_few_weeks_are_refused(weeks: int, n_folds: int) -> None:
    with pytest.raises(EvaluationError, match=rf"weeks 1-{weeks} are too few for {n_folds} blocks"):
        time_blocks(range(1, weeks + 1), n_folds)
