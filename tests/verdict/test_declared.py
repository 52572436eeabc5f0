"""Exponents of declared costs."""

import re

import pytest

from lra.core.catalogue import find, names
from lra.verdict.declared_cost import DeclaredCost, parse_cost, parse_greatest_cost


@pytest.mark.parametrize(
    ("text", "exponent"),
    [
        ("O(1)", 0),
        ("O(d^2)", 0),
        ("O(n m d)", 2),
        ("O((n + m) r d)", 1),
        ("O((n + m) d^2)", 1),
        ("O(n b d + n^2 d / b)", 2),
        ("O(n b + n^2 / b^2)", 2),
        ("O(n (l + n c / l) d)", 2),
        ("O(n^2 / n)", 1),
        ("O(n (5 + r) d)", 1),
        ("O(n log n d)", 1),
        ("O(r n (c d + log n))", 1),
        ("O(n sqrt(n) d)", 1.5),
        ("O(n sqrt n)", 1.5),
        ("O(n^1.5)", 1.5),
        ("O(n^(4/3))", 4 / 3),
        ("O((n + m)^2)", 2),
        ("O(d - n)", 1),
        ("O(n); O(n m) with a bias", 1),
        ("O(n d) on a CPU", 1),
    ],
)
def test_the_greatest_degree_counts_with_m_as_n(text, exponent):
    found = parse_cost(text)
    assert found.exponent == pytest.approx(exponent)


def test_what_holds_on_a_gpu_counts_there_alone():
    text = "O(n (d + c)); O(n (l + n c / l)) on a GPU or with a trained bias"
    assert parse_cost(text) == DeclaredCost("O(n (d + c))", 1)
    assert parse_cost(text, gpu=True) == DeclaredCost("O(n (l + n c / l))", 2)
    assert parse_cost("O(n); O(n m) with a bias", gpu=True) == DeclaredCost("O(n)", 1)


def test_the_greatest_of_all_that_is_said_is_of_padding_and_biases_too():
    text = "O(n); O(n m) with a bias; O(n sqrt(n)) else"
    assert parse_greatest_cost(text) == DeclaredCost("O(n m)", 2)
    assert parse_greatest_cost("O(n)") == parse_cost("O(n)")
    assert parse_greatest_cost("O(n); whatever with a bias") is None


@pytest.mark.parametrize(
    "text",
    ["", "nothing", "linear", "O(", "O()", "O(n", "O(n * d)", "O(n^d)", "O(n^(1/0))", "O(n +)"],
)
def test_what_is_no_formula_has_no_exponent(text):
    assert parse_cost(text) is None


def test_every_card_of_ours_can_be_read():
    files = [find("mechanism", name).file for name in names("mechanism")]
    texts = [file.read_text(encoding="utf-8") for file in files]
    costs = [cost for text in texts for cost in re.findall(r'(?:time|memory)="(.*)"', text)]
    assert len(costs) == 2 * len(files)
    assert [cost for cost in costs if parse_cost(cost) is None] == []


@pytest.mark.parametrize(
    ("text", "queries", "keys"),
    [("O(n m d)", 1, 1), ("O((n + m^2) r d)", 1, 2), ("O(n log n d)", 1, 0), ("O(d)", 0, 0)],
)
def test_one_length_may_grow_alone(text, queries, keys):
    for parse in (parse_cost, parse_greatest_cost):
        assert parse(text, growing="n").exponent == queries
        assert parse(text, growing="m").exponent == keys
