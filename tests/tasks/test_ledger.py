"""Ledgers: the lines are what the grammar says, and its price is the price of its own draws."""

import re

import numpy as np
import pytest

from tasks.generators.counter import row_keys
from tasks.generators.ledger import DEEPEST, SYMBOLS, documents, surprise

TEXTS = documents(row_keys(7, np.arange(60)), 600)
LINES = [bytes(text).decode().split(";")[:-1] for text in TEXTS]
PAIRS = {")": "(", "]": "[", "}": "{"}


def test_every_line_is_one_of_three_kinds():
    kinds = [r"\+[a-z]{2}\d\d", r"\?[a-z]{2}\d\d", r"[()\[\]{}]+"]
    found = [
        sum(bool(re.fullmatch(kind, line)) for lines in LINES for line in lines) for kind in kinds
    ]
    assert sum(found) == sum(map(len, LINES))
    assert min(found) > 500


def test_names_are_asked_with_the_last_value_they_were_given():
    again = 0
    for lines in LINES:
        known = {}
        for line in lines:
            if line[0] == "+":
                again += line[1:3] in known
                known[line[1:3]] = line[3:]
            elif line[0] == "?":
                assert known[line[1:3]] == line[3:]
    assert again > 0


def test_brackets_close_in_the_reverse_order_of_their_opening():
    deepest = 0
    for line in (line for lines in LINES for line in lines if line[0] in "([{"):
        open_ = []
        for bracket in line:
            if bracket in PAIRS:
                assert open_.pop() == PAIRS[bracket]
            else:
                open_.append(bracket)
                deepest = max(deepest, len(open_))
        assert not open_
    assert 4 < deepest <= DEEPEST


def test_the_price_is_that_of_the_shares_seen():
    """Entropy against frequency: over many draws the mean of -log2 p is the entropy, so a price
    that is off shows against a code fitted to the first symbol of lines."""
    paid = surprise(TEXTS)
    first = [(bytes(text[:1]), price) for text, price in zip(TEXTS, paid[:, 0], strict=True)]
    # Nothing can be asked for yet: 9 of 18 a name, 3 each a bracket.
    assert {symbol: round(2**-price, 6) for symbol, price in first} == {
        b"+": 0.5,
        b"(": round(1 / 6, 6),
        b"[": round(1 / 6, 6),
        b"{": round(1 / 6, 6),
    }


def test_what_is_determined_costs_nothing_and_what_is_drawn_its_choices():
    text = np.frombuffer(b"+ab37;?ab37;", dtype=np.uint8)[None]
    paid = surprise(text)[0]
    letters, digits = np.log2(26), np.log2(10)
    expected = [1, letters, letters, digits, digits, 0, np.log2(30 / 12), 0, 0, 0, 0, 0]
    assert paid == pytest.approx(expected)


@pytest.mark.parametrize("text", [b"?ab12;", b"+ab37;?ab38;", b"(];", b"hello"])
def test_what_is_no_ledger_cannot_be_paid(text):
    assert np.isinf(surprise(np.frombuffer(text, dtype=np.uint8)[None])).any()


def test_a_text_is_a_function_of_its_key_alone():
    keys = row_keys(7, np.arange(60))
    assert np.array_equal(documents(keys[[5, 3]], 600), TEXTS[[5, 3]])
    assert np.array_equal(documents(keys[:4], 100), TEXTS[:4, :100])
    assert set(np.unique(TEXTS)) == set(SYMBOLS)
