"""Values of expressions, by hand and against the generator's own labels."""

import pytest

from tasks.listops import ListOps, ListOpsConfig
from tasks.sources.listops_values import evaluate, refuse_misplaced


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"7", 7),
        (b"[MIN 4 1 2 ]", 1),
        (b"[MAX 4 1 2 ]", 4),
        (b"[MED 1 9 3 ]", 3),
        (b"[MED 1 4 ]", 2),
        (b"[MED 9 1 2 8 ]", 5),
        (b"[SM 7 8 ]", 5),
        (b"[SM " + b"9 " * 30 + b"]", 0),
        (b"[SM 7 [MED 2 3 ] [MAX 1 0 ] ]", 0),
    ],
)
def test_values(text, value):
    assert evaluate(text.split()) == value


def test_the_generator_s_labels_are_the_values():
    task = ListOps(ListOpsConfig(min_length=0), length=120)
    split = task.generate("train", 200)
    for row, label in enumerate(split.labels.tolist()):
        assert evaluate(task.shown(split.sequence(row)).encode().split()) == label


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (b"", "no token"),
        (b"[MAX 2 3", "1 operators and 0 ']'"),
        (b"2 3", "over after token 1 of 2"),
        (b"[MAX 2 1 ] [MIN 3 4 ]", "over after token 4 of 8"),
        (b"[MAX ]", "without arguments"),
        (b"[SM 7 [MAX 1 ] ]", "with one argument"),
        (b"] [MAX 2", "begins with ']'"),
    ],
)
def test_tokens_that_are_no_expression_are_refused_with_the_fault(text, fault):
    with pytest.raises(ValueError, match=fault):
        evaluate(text.split())


@pytest.mark.parametrize(
    "text",
    [
        b"7",
        b"( 7 )",
        b"[MAX 2 9 ]",
        b"( ( ( [MAX 2 ) 9 ) ] )",
        b"( ( ( [SM 6 ) ( ( ( [MIN 5 ) 3 ) ] ) ) ] )",
        b"( [MAX 2 ( 9 ) ] )",
    ],
)
def test_parentheses_in_an_order_that_there_may_be(text):
    refuse_misplaced(text)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (b"( [MAX 2 9 ]", "1 '\\(' and 0 '\\)'"),
        (b") [MAX 2 9 ] (", "before its"),
        (b"( [MAX 2 ) ) ( 9 ]", "before its"),
        (b"[MAX 2 ( 9 ] )", "within an operator"),
        (b"( [MAX ( [MIN 1 ( 2 ] ) ) 9 ] )", "within an operator"),
    ],
)
def test_parentheses_in_an_impossible_order_are_refused(text, fault):
    with pytest.raises(ValueError, match=fault):
        refuse_misplaced(text)
