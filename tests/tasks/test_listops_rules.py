"""Rules of thumb on ListOps: what they read, on expressions written by hand."""

import numpy as np
import pytest

from lra.core.dataset import Split
from tasks.listops import TOKENS
from tasks.solvers.listops_rules import outline, rules


def split(*expressions, labels):
    rows = [[TOKENS.index(word) + 1 for word in text.split()] for text in expressions]
    return Split.of([np.array(row, np.uint8) for row in rows], labels)


def test_an_outline_has_the_outermost_operator_its_digits_and_its_operators():
    found = outline(split("[MAX 3 [MIN 7 [SM 1 2 ] ] 3 [SM 9 9 ] ]", "8", labels=[8, 8]))
    assert found.first_R.tolist() == [TOKENS.index("[MAX") + 1, TOKENS.index("8") + 1]
    assert found.digits_RV[0].tolist() == [0, 0, 0, 2, 0, 0, 0, 0, 0, 0]
    assert found.nested_RO.tolist() == [[1, 0, 0, 1], [0, 0, 0, 0]]
    assert found.digits_RV[1].sum() == 0


def test_an_expression_that_was_cut_does_not_shift_those_after_it():
    found = outline(split("[MAX 3 [MIN 7 [SM", "[MIN 5 6 ]", labels=[3, 5]))
    assert found.digits_RV.sum(axis=1).tolist() == [1, 2]
    assert found.nested_RO.tolist() == [[1, 0, 0, 0], [0, 0, 0, 0]]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[MIN 4 2 6 ]", 2),
        ("[MAX 4 2 6 ]", 6),
        ("[MED 4 2 6 ]", 4),
        ("[MED 4 2 7 9 ]", 5),  # (4 + 7) / 2, rounded down
        ("[SM 4 9 6 ]", 9),
        ("[SM 4 9 6 [MAX 8 8 ] ]", 9),  # the nested one is left out
    ],
)
def test_root_and_digits_works_the_outermost_operator_out(text, value):
    train = split("[MIN 1 1 ]", labels=[1])
    assert rules(train, split(text, labels=[value]))["root_and_digits"] == 1.0
    assert rules(train, split(text, labels=[(value + 1) % 10]))["root_and_digits"] == 0.0


def test_without_digits_of_its_own_it_answers_as_the_first_operator_does():
    train = split("[MED 1 1 ]", "[MED 7 7 ]", "[MED 7 7 ]", "[SM 1 1 ]", labels=[1, 7, 7, 2])
    test = split("[MED [SM 1 1 ] [SM 1 1 ] ]", "[SM [SM 1 1 ] [SM 1 1 ] ]", labels=[7, 2])
    found = rules(train, test)
    assert found["first_operator"] == found["root_and_digits"] == 1.0
    # An operator that training never showed: the commonest of all labels.
    unseen = split("[MAX [SM 1 1 ] [SM 1 1 ] ]", labels=[7])
    assert rules(train, unseen)["first_operator"] == 1.0


def test_constants_are_fitted_to_the_training_rows():
    """A nested MIN counts as 0 and a nested MAX as 9, whatever the labels under them say."""
    train = split(
        "[SM 1 [MIN 5 0 ] ]", "[SM 2 [MIN 6 0 ] ]", "[SM 3 [MAX 9 3 ] ]", "[SM 5 [MAX 9 1 ] ]",
        labels=[1, 2, 2, 4],
    )  # fmt: skip
    test = split("[SM 6 [MIN 2 0 ] [MAX 9 5 ] ]", "[SM 1 1 [MIN 3 4 ] ]", labels=[5, 5])
    found = rules(train, test)
    assert found["nested_as_constants"] == 0.5
    assert found["root_and_digits"] == 0.0
