"""Bag and trees of tasks with a source: what they see of it, and of the token that is asked."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from lra.core.dataset import UNASKED, Dataset, Split
from lra.measure import baselines_by_source as module
from lra.measure.baselines_by_source import _apart, _each_alone, baselines_by_source
from lra.measure.baselines_by_token import baselines_by_token

Answer = Callable[[np.ndarray, np.ndarray], np.ndarray]


def data(answer: Answer, *, parts: tuple[int, ...] = (), rows: int = 250) -> Dataset:
    """Sources of eight tokens 1 or 2, and four asked ones of 3 to 5; labels are of both."""

    def split(seed: int) -> Split:
        draws = np.random.default_rng(seed)
        sequences, labels = [], []
        for _ in range(rows):
            source, given = draws.integers(1, 3, 8), draws.integers(3, 6, 4)
            sequences += [source.astype(np.uint8), given.astype(np.uint8)]
            labels += [np.full(8, UNASKED), answer(source, given)]
        return Split.of(sequences, np.concatenate(labels), 2, by_token=True)

    return Dataset(split(0), split(1), split(2), 3, 12, 8, inputs=2, parts=parts)


def most(source: np.ndarray, given: np.ndarray) -> np.ndarray:
    """The token that the source has more of."""
    return np.full(len(given), int((source == 1).sum() > 4))


def last(source: np.ndarray, given: np.ndarray) -> np.ndarray:
    """The token that is asked."""
    return given - 3


def before(source: np.ndarray, given: np.ndarray) -> np.ndarray:
    """The token before the one that is asked."""
    return np.roll(given, 1) - 3


@pytest.mark.parametrize(("answer", "least"), [(most, 0.9), (last, 0.97)])
def test_bag_and_trees_see_the_source_and_the_asked_token(answer: Answer, least: float) -> None:
    found = baselines_by_source(data(answer))
    assert set(found) == {"bag_of_tokens", "trees"} and min(found.values()) > least


def test_neither_sees_what_was_given_before() -> None:
    assert max(baselines_by_source(data(before)).values()) < 0.5


def test_they_stand_beside_the_others_where_accuracy_is_quoted() -> None:
    made = data(most)
    found = baselines_by_token(made, "accuracy")
    assert set(found) == {"majority", "current_token", "bag_of_tokens", "trees"}
    asked = made.test.labels[made.test.labels != UNASKED]
    assert found["majority"] == max(np.mean(asked == label) for label in (0, 1))
    assert set(baselines_by_token(made, "nat")) == {"majority", "current_token"}


def test_of_tokens_with_parts_each_is_seen() -> None:
    # Ids 1 ... 5 of parts (3, 4): a token's second part tells 1, 2 from 3, 4, 5.
    found = baselines_by_source(data(lambda _, given: given // 3 + given % 3 - 1, parts=(3, 4)))
    assert found["trees"] > 0.97


def test_parts_get_ids_of_their_own_and_those_missing_are_left_out() -> None:
    tokens = np.array([0, 2, 3, 3 * 3 + 1])
    assert _apart(tokens, (3, 4)).tolist() == [2, 3 + 1, 1, 3 + 3]
    assert _apart(tokens, (12,)).tolist() == tokens.tolist()


def test_each_asked_token_is_an_example() -> None:
    split = Split.of(
        [np.array(row, dtype=np.uint8) for row in ([1, 2], [3, 4, 5], [2], [4, 3])],
        [UNASKED, UNASKED, 7, UNASKED, 9, UNASKED, UNASKED, 8],
        2,
        by_token=True,
    )
    found = _each_alone(split, 9, (12,))
    rows = [found.sequence(s).tolist() for s in range(6)]
    assert rows == [[1, 2], [3], [1, 2], [5], [2], [3]]
    assert (found.labels.tolist(), found.inputs, found.by_token) == ([7, 9, 8], 2, False)
    assert _each_alone(split, 2, (12,)).labels.tolist() == [7, 9]


def test_no_more_is_fitted_and_scored_than_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(module, "baselines", lambda alone: seen.append(alone) or {"trees": 0.0})
    monkeypatch.setattr(module, "FITTED_ROWS", 30)
    monkeypatch.setattr(module, "SCORED", 20)
    assert baselines_by_source(data(most)) == {"trees": 0.0}
    assert (len(seen[0].train), len(seen[0].test)) == (30, 20)
