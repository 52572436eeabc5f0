"""Ledgers: the lines are what the grammar says, and its price is the price of its own draws."""

import math
import re
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from tasks.generators.counter import row_keys
from tasks.generators.ledger import DEEPEST, SYMBOLS, documents
from tasks.solvers.ledger_floor import surprise

TEXTS = documents(row_keys(7, np.arange(60)), 600)
LINES = [bytes(text).decode().split(";")[:-1] for text in TEXTS]
EVERY = [line for lines in LINES for line in lines]
PAIRS = {")": "(", "]": "[", "}": "{"}


def test_every_line_is_one_of_three_kinds():
    kinds = [r"\+[a-z]{2}\d\d", r"\?[a-z]{2}\d\d", r"[()\[\]{}]+"]
    found = [sum(bool(re.fullmatch(kind, line)) for line in EVERY) for kind in kinds]
    assert sum(found) == len(EVERY) and min(found) > 500


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
    for line in (line for line in EVERY if line[0] in "([{"):
        open_ = []
        for bracket in line:
            if bracket in PAIRS:
                assert open_.pop() == PAIRS[bracket]
            else:
                open_.append(bracket)
                deepest = max(deepest, len(open_))
        assert not open_
    assert 4 < deepest <= DEEPEST


def lines_with_prices():
    """Each line that is whole, with the price of each of its symbols, by text."""
    for lines, paid in zip(LINES, surprise(TEXTS), strict=True):
        ends = np.cumsum([len(line) + 1 for line in lines])
        starts = [0, *ends[:-1]]
        yield [
            (line, paid[start : start + len(line)].tolist())
            for line, start in zip(lines, starts, strict=True)
        ]


def drawn():
    """Draws of the same shares wherever they are: where, which symbol, its price."""
    for lines in lines_with_prices():
        given = False
        for line, paid in lines:
            yield ("line" if given else "line before all names"), line[0], paid[0]
            given |= line[0] == "+"
            if line[0] == "+":
                names = ["letter", "letter", "digit", "digit"]
                yield from zip(names, line[1:], paid[1:], strict=True)
            elif line[0] != "?":
                depth = 1
                for bracket, price in zip(line[1:], paid[1:], strict=True):
                    if depth < DEEPEST:
                        yield "brackets", "close" if bracket in PAIRS else bracket, price
                    depth += -1 if bracket in PAIRS else 1


def test_a_price_is_that_of_the_share_with_which_a_symbol_is_drawn():
    prices, found = {}, {}
    for where, symbol, price in drawn():
        prices.setdefault(where, {}).setdefault(symbol, set()).add(round(price, 9))
        found.setdefault(where, Counter())[symbol] += 1
    assert len(found) == 5
    for where, counts in found.items():
        number = counts.total()
        shares = {symbol: 2**-price for symbol, (price,) in prices[where].items()}
        assert sum(shares.values()) == pytest.approx(1)
        for symbol, share in shares.items():
            spread = math.sqrt(number * share * (1 - share))
            assert abs(counts[symbol] - number * share) < 4 * spread, (where, symbol)


def test_a_name_is_asked_for_the_oftener_the_oftener_it_was_given_and_costs_that():
    surplus = variance = 0.0
    for lines in lines_with_prices():
        given = Counter()
        for line, paid in lines:
            name = line[1:3]
            if line[0] == "+":
                given[name] += 1
            elif line[0] == "?":
                assert 2 ** -sum(paid[1:3]) == pytest.approx(given[name] / given.total())
                # How often the name that was given first is asked for, and should be.
                first = next(iter(given))
                share = given[first] / given.total()
                surplus += (name == first) - share
                variance += share * (1 - share)
    assert variance > 50 and abs(surplus) < 4 * math.sqrt(variance)


def test_a_draw_tells_nothing_of_the_next():
    names = [[ord(symbol) for symbol in line[1:]] for line in EVERY if line[0] == "+"]
    brackets = ([bracket in PAIRS for bracket in line[1:]] for line in EVERY if line[0] in "([{")
    closing = [pair for line in brackets for pair in pairwise(line)]
    for found in (names, closing):
        alike = np.corrcoef(np.array(found).T)
        apart = alike[~np.eye(len(alike), dtype=bool)]
        assert np.abs(apart).max() < 4 / math.sqrt(len(found))


def test_determined_symbols_cost_nothing_and_drawn_ones_their_choices():
    text = np.frombuffer(b"+ab37;?ab37;", dtype=np.uint8)[None]
    letters, digits = np.log2(26), np.log2(10)
    expected = [1, letters, letters, digits, digits, 0, np.log2(30 / 12), 0, 0, 0, 0, 0]
    assert surprise(text)[0] == pytest.approx(expected)


@pytest.mark.parametrize("text", [b"?ab12;", b"+ab37;?ab38;", b"(];", b"hello"])
def test_no_price_is_finite_where_the_text_is_no_ledger(text):
    assert np.isinf(surprise(np.frombuffer(text, dtype=np.uint8)[None])).any()


def test_a_text_is_a_function_of_its_key_alone():
    keys = row_keys(7, np.arange(60))
    assert np.array_equal(documents(keys[[5, 3]], 600), TEXTS[[5, 3]])
    assert np.array_equal(documents(keys[:4], 100), TEXTS[:4, :100])
    assert set(np.unique(TEXTS)) == set(SYMBOLS)
