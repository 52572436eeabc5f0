"""ListOps whose label is even given the operators and the digits of the root."""

import numpy as np
import pytest
from scipy.stats import chisquare

from lra.core.errors import UsageError
from tasks.generators import counter
from tasks.generators.listops import grow
from tasks.listops import TOKENS, ListOps, ListOpsConfig

SHORT = {"max_depth": 10, "min_length": 7, "max_length": 25}


def short(**changes):
    return ListOps(ListOpsConfig(balanced=True, **SHORT, **changes), length=24)


def arguments(words):
    """The root's operator and arguments: digits, and operators of nested expressions."""
    found, depth = [], 0
    for word in words[1:-1]:
        if depth == 0:
            found.append(word)
        depth += word.startswith("[") - (word == "]")
    return words[0], [word for word in found if word != "]"]


def read(split):
    """Operator, arguments and label of each row."""
    for row in range(len(split)):
        yield *arguments([TOKENS[t - 1] for t in split.sequence(row)]), int(split.labels[row])


@pytest.fixture(scope="module")
def rows():
    return short().generate("train", 20_000)


def test_the_label_is_even_given_the_root_its_digits_and_its_nested_operators(rows):
    by_root, by_arguments = {}, {}
    for operator, found, label in read(rows):
        by_root.setdefault(operator, np.zeros(10))[label] += 1
        by_arguments.setdefault((operator, *sorted(found)), np.zeros(10))[label] += 1
    often = [counts for counts in by_arguments.values() if counts.sum() >= 150]
    assert len(by_root) == 4 and len(often) > 20
    for counts in (*by_root.values(), *often):
        assert chisquare(counts).pvalue > 1e-4
    # Without `balanced` those of a sum alone are.
    plain = ListOps(ListOpsConfig(**SHORT), length=24).generate("train", 20_000)
    by_root = {}
    for operator, _, label in read(plain):
        by_root.setdefault(operator, np.zeros(10))[label] += 1
    assert all(chisquare(by_root[o]).pvalue < 1e-4 for o in ("[MIN", "[MAX", "[MED"))


def test_digits_of_the_root_decide_nothing(rows):
    for operator, found, _ in read(rows):
        digits = [word for word in found if word.isdigit()]
        assert len(digits) < len(found), "an argument is nested"
        match operator:
            case "[MIN":
                assert set(digits) <= {"9"}
            case "[MAX":
                assert set(digits) <= {"0"}
            case "[MED":
                assert digits.count("0") == digits.count("9") == len(digits) / 2


@pytest.mark.parametrize("length", [24, 600, 2000])
def test_labels_are_the_values_and_even(length):
    task = short() if length == 24 else ListOps(ListOpsConfig(balanced=True), length=length)
    split = task.generate("test", 2000)
    assert np.array_equal(task.solve(split), split.labels)
    assert chisquare(np.bincount(split.labels, minlength=10)).pvalue > 1e-4


def test_shapes_and_operators_are_the_original_s():
    """Digits apart, a balanced tree is the tree of the same key."""
    keys = counter.row_keys(counter.stream_key("shapes"), np.arange(20_000))
    balanced = grow(short().grammar, keys)
    plain = grow(ListOps(ListOpsConfig(**SHORT), length=24).grammar, keys)

    def shape(made, row):
        symbols = made.symbols[made.starts[row] : made.starts[row + 1]]
        return np.where(symbols < 10, 0, symbols).tolist()

    of_plain = {tree: shape(plain, row) for row, tree in enumerate(plain.trees.tolist())}
    assert 300 < len(balanced.trees) < len(plain.trees)
    for row, tree in enumerate(balanced.trees.tolist()):
        assert shape(balanced, row) == of_plain[tree]


def test_a_median_of_two_is_any_pair_with_that_mean():
    task = ListOps(ListOpsConfig(balanced=True, max_depth=3, max_args=3, min_length=5), length=33)
    split = task.generate("train", 8000)
    rows = [[TOKENS[t - 1] for t in split.sequence(row)] for row in range(len(split))]
    pairs = {
        (words[place + 1], words[place + 2])
        for words in rows
        for place in range(1, len(words) - 3)
        if words[place] == "[MED" and words[place + 3] == "]"
    }
    assert len(pairs) == 100


def test_false_is_the_default_and_left_out_of_records():
    plain, off = ListOpsConfig(), ListOpsConfig(balanced=False)
    assert plain == off and plain.balanced is off.balanced
    kept = [ListOps(config, length=64).generate("test", 20).tokens for config in (plain, off)]
    assert np.array_equal(*kept)


def test_balanced_needs_room_under_the_root():
    with pytest.raises(UsageError, match="raise it to 3 or more"):
        ListOps(ListOpsConfig(balanced=True, max_depth=2, min_length=2), length=64)
