"""Rules of thumb on ListOps: the outermost operator, alone and with the digits that are its own.

An expression is read in one pass that counts brackets: nothing nested is worked out. The answer
of a rule that has to guess is counted on the training rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lra.core.dataset import Split

MOST = 20_000
"""Rows of a split that are read; the rules' answers hardly depend on more."""

MIN, MAX, MED, SM = range(4)
"""Operators in the order of their tokens."""
_OPERATORS = 4
_DIGITS = 10
_FIRST_DIGIT, _FIRST_OPERATOR, _CLOSE = 1, 11, 15
_TOKENS = 17
_ROWS_AT_ONCE = 2_000

Ints = npt.NDArray[np.int64]


class Outline(NamedTuple):
    """Expressions of a split, read without their nested parts."""

    first_R: Ints
    """First token: the outermost operator, or a digit that stands alone."""
    digits_RV: Ints
    """How often each digit is an argument of the outermost operator, (rows, 10)."""
    nested_RO: Ints
    """How many of its arguments are expressions of each operator, (rows, 4)."""
    labels_R: Ints


def rules(train: Split, test: Split) -> dict[str, float]:
    """Return the test accuracy of each rule, a share of 1.

    `first_operator` answers the commonest training label under the same outermost operator;
    `root_and_digits` works that operator out on its own digits, nested expressions left out;
    `nested_as_constants` takes for these one value for each operator, fitted to the training rows.
    """
    known, asked = outline(train.first(MOST)), outline(test.first(MOST))
    usual_T = _usual_labels(known)
    constants_O = _fit_constants(known, usual_T)
    answers = {
        "first_operator": usual_T[asked.first_R],
        "root_and_digits": _work_out(asked, asked.digits_RV, usual_T),
        "nested_as_constants": _with_constants(asked, constants_O, usual_T),
    }
    return {name: float((own_R == asked.labels_R).mean()) for name, own_R in answers.items()}


def outline(split: Split) -> Outline:
    """Return what one pass over the tokens tells; an expression that was cut is read to its end."""
    digits_RV = np.zeros((len(split), _DIGITS), np.int64)
    nested_RO = np.zeros((len(split), _OPERATORS), np.int64)
    for start in range(0, len(split), _ROWS_AT_ONCE):
        stop = min(start + _ROWS_AT_ONCE, len(split))
        starts = split.starts[start : stop + 1]
        tokens = split.tokens[starts[0] : starts[-1]]
        row = np.repeat(np.arange(start, stop), np.diff(starts))
        opens = (tokens >= _FIRST_OPERATOR) & (tokens < _CLOSE)
        depth = np.cumsum(opens.astype(np.int64) - (tokens == _CLOSE))
        # A row that was cut leaves brackets open.
        before = np.append(0, depth)[starts[:-1] - starts[0]]
        depth -= before[row - start]
        own = (tokens < _FIRST_OPERATOR) & (depth == 1)
        np.add.at(digits_RV, (row[own], tokens[own] - _FIRST_DIGIT), 1)
        nested = opens & (depth == 2)
        np.add.at(nested_RO, (row[nested], tokens[nested] - _FIRST_OPERATOR), 1)
    first_R = split.tokens[split.starts[:-1]].astype(np.int64)
    return Outline(first_R, digits_RV, nested_RO, split.labels.astype(np.int64))


def _usual_labels(known: Outline) -> Ints:
    """The commonest label after each first token, (tokens,); of all rows after one never seen."""
    votes_TV = np.zeros((_TOKENS, _DIGITS), np.int64)
    np.add.at(votes_TV, (known.first_R, known.labels_R), 1)
    votes_TV[votes_TV.sum(axis=1) == 0] = votes_TV.sum(axis=0)
    usual_T: Ints = votes_TV.argmax(axis=1)
    return usual_T


def _fit_constants(known: Outline, usual_T: Ints) -> Ints:
    """The value to take for a nested expression of each operator, (4,).

    Begins with the commonest label under each operator and, one operator after another, takes the
    value with which most training rows are right.
    """
    constants_O = usual_T[_FIRST_OPERATOR:_CLOSE].copy()
    for operator in range(_OPERATORS):
        right = []
        for value in range(_DIGITS):
            constants_O[operator] = value
            answers_R = _with_constants(known, constants_O, usual_T)
            right.append(int((answers_R == known.labels_R).sum()))
        constants_O[operator] = int(np.argmax(right))
    return constants_O


def _with_constants(outline: Outline, constants_O: Ints, usual_T: Ints) -> Ints:
    taken_OV = np.eye(_DIGITS, dtype=np.int64)[constants_O]
    return _work_out(outline, outline.digits_RV + outline.nested_RO @ taken_OV, usual_T)


def _work_out(outline: Outline, counts_RV: Ints, usual_T: Ints) -> Ints:
    """The value of each outermost operator on arguments counted by value; the usual label where it
    has none, and where no operator stands first."""
    values_V = np.arange(_DIGITS)
    up_to_RV, number_R = counts_RV.cumsum(axis=1), counts_RV.sum(axis=1)

    def ranked(place_R: Ints) -> Ints:
        """The argument at a place in order of size."""
        value_R: Ints = (up_to_RV <= place_R[:, None]).sum(axis=1)
        return value_R

    found = {
        MIN: (counts_RV > 0).argmax(axis=1),
        MAX: values_V[-1] - (counts_RV[:, ::-1] > 0).argmax(axis=1),
        MED: (ranked((number_R - 1) // 2) + ranked(number_R // 2)) // 2,
        SM: counts_RV @ values_V % _DIGITS,
    }
    answers_R = usual_T[outline.first_R]
    for operator, values_R in found.items():
        own_R = (outline.first_R == _FIRST_OPERATOR + operator) & (number_R > 0)
        answers_R[own_R] = values_R[own_R]
    return answers_R
