"""ListOps: the original grammar and statistics, and a literal vocabulary."""

import re
import statistics
from collections import deque

import msgspec
import numpy as np
import pytest

from lra.core.dataset import PAD
from lra.core.errors import UsageError
from lra.core.protocol import Rows
from tasks.generators import counter
from tasks.generators.listops import Grammar, grow
from tasks.generators.listops_rows import draw, expression_hashes
from tasks.listops import TOKENS, ListOps, ListOpsConfig


def grammar(max_depth, min_args, max_args, shorter_than, longer_than, operators, p_operator=0.25):
    return Grammar(
        max_depth,
        min_args,
        max_args,
        shorter_than=shorter_than,
        longer_than=longer_than,
        operators=operators,
        p_operator=p_operator,
    )


ALL_FOUR = (0, 1, 2, 3)
LRA = grammar(10, 2, 10, 2000, 500, ALL_FOUR)
APPLY = {
    "[MIN": min,
    "[MAX": max,
    "[MED": lambda args: int(statistics.median(args)),
    "[SM": lambda args: sum(args) % 10,
}


def evaluate(words):
    """Recursive evaluator that shares nothing with the generator; consumes an iterator."""
    word = next(words)
    if word == "]":
        return None
    if word not in APPLY:
        return int(word)
    return APPLY[word](list(iter(lambda: evaluate(words), None)))


def drawn_one_by_one(grammar, key):
    """The symbols of one tree, drawn node by node in breadth-first order as the module says."""
    root = []
    queue = deque([(root, 1)])
    index = 0
    while queue:
        place, depth = queue.popleft()
        draw = counter.bits(np.uint64(key), index).item()
        index += 1
        upper, lower = draw >> 32, draw & 0xFFFFFFFF
        if depth == grammar.max_depth or upper >= grammar.p_operator * 2**32:
            place.append(lower * 10 >> 32)
            continue
        kinds = len(grammar.operators)
        chosen = lower * (grammar.max_args - grammar.min_args + 1) * kinds >> 32
        args = [[] for _ in range(grammar.min_args + chosen // kinds)]
        place += [10 + grammar.operators[chosen % kinds], *args]
        queue.extend((arg, depth + 1) for arg in args)

    def flat(place):
        symbol, *args = place
        inner = [other for arg in args for other in flat(arg)]
        return [symbol] if symbol < 10 else [symbol, *inner, 14]

    return flat(root)


@pytest.fixture(scope="module")
def lra_rows():
    return ListOps(ListOpsConfig(), length=2000).generate("train", 10_000)


def test_tokens_have_fixed_ids():
    listed = [*"0123456789", "[MIN", "[MAX", "[MED", "[SM", "]"]
    assert list(TOKENS) == listed and PAD == 0
    assert ListOps.card.vocabulary == 1 + len(listed) + 1 == 17
    assert ListOps.card.classes == 10


@pytest.mark.parametrize(
    "grammar",
    [
        grammar(4, 2, 5, 33, 0, ALL_FOUR),
        grammar(6, 3, 4, 90, 20, (3, 1), p_operator=0.4),
        grammar(1, 2, 2, 9, 0, (2,), p_operator=1.0),
    ],
)
def test_bulk_growth_equals_growth_one_by_one(grammar):
    keys = counter.row_keys(counter.stream_key("test"), np.arange(600))
    made = grow(grammar, keys)
    expected = enumerate(drawn_one_by_one(grammar, int(key)) for key in keys)
    least, most = grammar.longer_than, grammar.shorter_than
    kept = {tree: symbols for tree, symbols in expected if least < len(symbols) < most}
    assert len(kept) > 50
    assert made.trees.tolist() == list(kept)
    found = np.split(made.symbols, made.starts[1:-1])
    assert [part.tolist() for part in found] == list(kept.values())


def test_every_label_is_the_value_of_its_expression(lra_rows):
    config = ListOpsConfig(max_depth=4, max_args=5, min_length=7, max_length=33)
    short = ListOps(config, length=32).generate("train", 2000)
    for split, rows in ((lra_rows, 300), (short, 2000)):
        for row in range(rows):
            words = iter([TOKENS[token - 1] for token in split.sequence(row)])
            assert evaluate(words) == split.labels[row]
            assert next(words, "the end") == "the end"


def test_label_histogram_length_and_tries_are_the_original_s(lra_rows):
    """lra.md 1.1, an independent simulation of the original: each share within one point."""
    shares = np.bincount(lra_rows.labels, minlength=10) / len(lra_rows)
    assert abs(shares[0] - 0.175) < 0.01 and abs(shares[9] - 0.164) < 0.01
    assert np.all((shares[1:9] > 0.068 - 0.01) & (shares[1:9] < 0.090 + 0.01))
    lengths = lra_rows.lengths
    assert abs(lengths.mean() - 1037) < 10 and abs(np.median(lengths) - 959) < 25
    assert lengths.min() == 501 and lengths.max() == 1999
    tries = draw(LRA, "train", 10_000, seed=0).trees[-1] / 10_000
    assert abs(tries - 12.2) < 0.5


def test_operators_arguments_and_digits_are_uniform_and_independent():
    made = grow(grammar(2, 2, 10, 99, 0, ALL_FOUR), counter.row_keys(1, np.arange(80_000)))
    roots = made.symbols[made.starts[:-1]]
    assert len(roots) == 80_000
    assert abs(np.mean(roots >= 10) - 0.25) < 0.006
    digits = np.bincount(roots[roots < 10], minlength=10)
    assert np.all(np.abs(digits / 6000 - 1) < 0.06)
    pairs = [(o, n) for o in ALL_FOUR for n in range(2, 11)]
    args = np.diff(made.starts) - 2
    table = np.array([np.sum((roots == 10 + o) & (args == n)) for o, n in pairs])
    assert table.sum() == np.sum(roots >= 10)
    expected = 20_000 / 36
    # Chi-squared with 35 degrees of freedom: 99.9 % quantile.
    assert np.sum((table - expected) ** 2 / expected) < 66.6


def test_no_expression_twice_and_none_in_two_splits():
    config = ListOpsConfig(max_depth=3, max_args=3, min_length=3, max_length=13)
    task = ListOps(config, length=32)
    data = task.generated(Rows(train=3000, validation=1000, test=1000))
    rows = [split.sequence(i).tobytes() for _, split in data for i in range(len(split))]
    assert len(rows) == len(set(rows)) == 5000
    unchecked = grow(task.grammar, counter.row_keys(2, np.arange(20_000)))
    distinct = len(np.unique(expression_hashes(unchecked)))
    assert distinct < 0.8 * len(unchecked.values), "the rule had nothing to do"


def test_expression_hashes_tell_expressions_apart():
    made, few = (grow(LRA, counter.row_keys(5, np.arange(number))) for number in (3000, 100))
    pieces = np.split(made.symbols, made.starts[1:-1])
    hashes = expression_hashes(made).tolist()
    assert len(set(hashes)) == len({piece.tobytes() for piece in pieces}) > 200
    assert hashes[:3] == expression_hashes(few)[:3].tolist()


def test_more_rows_keep_the_earlier_ones_where_none_need_checking():
    task = ListOps(ListOpsConfig(), length=600)
    few, many = task.generate("validation", 30), task.generate("validation", 2500)
    assert np.array_equal(few.tokens, many.tokens[: len(few.tokens)])
    assert np.array_equal(few.labels, many.labels[:30])


def test_splits_and_data_seeds_differ_where_none_need_checking():
    asked = [(split, seed) for split in ("train", "validation", "test") for seed in (0, 1)]
    tasks = {seed: ListOps(ListOpsConfig(data_seed=seed), length=600) for seed in (0, 1)}
    assert len({tasks[seed].generate(split, 5).tokens.tobytes() for split, seed in asked}) == 6


@pytest.mark.parametrize("length", [24, 100, 512])
def test_lengths_follow_the_task_s_length(length):
    split = ListOps(ListOpsConfig(), length=length).generate("train", 300)
    assert split.lengths.min() > length // 4 and split.lengths.max() < length


def test_only_the_operators_asked_for():
    config = ListOpsConfig(operators=("SM", "MAX"))
    tokens = ListOps(config, length=64).generate("train", 200).tokens
    used = {TOKENS[token - 1] for token in np.unique(tokens)}
    assert used == {*"0123456789", "[SM", "[MAX", "]"}


@pytest.mark.parametrize(
    ("changes", "length", "says"),
    [
        ({"min_args": 6, "max_args": 5}, 64, "min_args 6 is over max_args 5"),
        ({"operators": ()}, 64, "no operators"),
        ({"max_length": 66}, 64, "past the length 64"),
        ({"max_depth": 3, "max_args": 4}, 2000, "the longest has 26 tokens"),
        ({"min_length": 40, "max_length": 30}, 64, "longer than min_length 40"),
    ],
)
def test_impossible_settings_are_refused_in_one_line(changes, length, says):
    with pytest.raises(UsageError, match=says) as caught:
        ListOps(ListOpsConfig(**changes), length=length)
    assert "\n" not in str(caught.value)


# The second has thousands of expressions, and soon no new one.
FEW = ListOpsConfig(max_depth=2, max_args=2, min_length=3)
MORE = ListOpsConfig(max_depth=3, max_args=2, min_length=3, max_length=9, operators=("MIN",))


@pytest.mark.parametrize(("config", "rows"), [(FEW, 1000), (MORE, 60_000)])
def test_more_rows_than_there_are_expressions_is_refused_soon(config, rows):
    with pytest.raises(UsageError, match="ask for fewer rows") as caught:
        ListOps(config, length=32).generate("train", rows)
    found, tries, asked = map(int, re.findall(r"\b\d+\b", str(caught.value)))
    assert 0 < found < asked == rows and tries < 2_000_000


@pytest.mark.parametrize("bad", [{"min_args": 1}, {"operators": ["FIRST"]}, {"depth": 3}])
def test_a_config_of_unknown_settings_is_refused(bad):
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(bad, ListOpsConfig)
