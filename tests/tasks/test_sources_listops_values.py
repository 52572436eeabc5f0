"""What expressions are worth: by a stack, and many at once, which is never sure of a wrong one."""

import random

import numpy as np
import pytest

from tasks.listops import TOKENS, ListOps, ListOpsConfig
from tasks.sources.listops_values import SYMBOLS, evaluate, proved


@pytest.fixture(scope="module")
def made():
    """Generated expressions, their values and the original's form of each."""
    split = ListOps(ListOpsConfig(min_length=0), length=120).generate("train", 200)
    rows = [split.sequence(row) for row in range(len(split))]
    bare = [b" ".join(TOKENS[token - 1].encode() for token in row) for row in rows]
    return bare, split.labels.tolist(), [evaluate(text.split())[1] for text in bare]


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
        (b"[SM 7 [MED 2 3 ] [MAX 1 ] ]", 0),
    ],
)
def test_values(text, value):
    assert evaluate(text.split())[0] == value
    assert proved([text], [value]) is not None
    assert proved([text], [(value + 1) % 10]) is None


def test_the_original_s_form():
    assert evaluate(b"[MAX 2 9 ]".split())[1] == b"( ( ( [MAX 2 ) 9 ) ] )"
    nested = b"( ( ( ( [SM 7 ) 8 ) ( ( ( [MED 2 ) 3 ) ] ) ) ] )"
    assert evaluate(b"[SM 7 8 [MED 2 3 ] ]".split())[1] == nested


@pytest.mark.parametrize("written", [False, True])
def test_what_the_generator_says_is_proved(made, written):
    bare, values, pairs = made
    found = proved(pairs if written else bare, values)
    assert found is not None
    symbols, ends = found
    rows = [b" ".join(SYMBOLS[symbol] for symbol in row) for row in np.split(symbols, ends[:-1])]
    assert rows == bare and ends[-1] == len(symbols)


def test_what_is_deep_is_left_to_the_stack():
    deep = b"[MAX " * 300 + b"5" + b" ]" * 300
    assert proved([deep], [5]) is None and evaluate(deep.split())[0] == 5


def test_no_word_in_another_place_is_proved_right():
    """A parenthesis that is missing here and too many there, among others."""
    text = evaluate(b"[SM [MAX 2 3 ] 4 [MIN 1 [MED 2 2 ] ] ]".split())[1]
    words = text.split()
    assert proved([text], [8]) is not None
    for one in range(len(words)):
        rest = words[:one] + words[one + 1 :]
        for other in range(len(words)):
            moved = [*rest[:other], words[one], *rest[other:]]
            sure = proved([b" ".join(moved)], [8]) is not None
            assert sure == (moved == words), b" ".join(moved)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"( ( ( ( ( [SM ( [MAX 2 ) 3 ) ] ) ) 4 ) ] )", 7),
        (b"I 1234 ] M M M", 1),
        (b"[SMIN [M 2 ] ]", 2),
        (b"3 4", 3),
    ],
)
def test_what_only_adds_up_is_not_proved(text, value):
    assert proved([text], [value]) is None


def is_right(text, value):
    words = text.split()
    bare = [word for word in words if word not in (b"(", b")")]
    try:
        found, written = evaluate(bare)
    except ValueError:
        return False
    return found == value and words in (bare, written.split())


def damaged(draw, text):
    """One to three words or characters of a text changed, doubled, moved or lost."""
    for _ in range(draw.randint(1, 3)):
        parts = text.split(b" ") if draw.random() < 0.7 else [bytes([byte]) for byte in text]
        joint = b" " if b" " not in parts else b""
        one, other = draw.randrange(len(parts)), draw.randrange(len(parts))
        match draw.randrange(4):
            case 0:
                parts[one], parts[other] = parts[other], parts[one]
            case 1:
                parts[one] = draw.choice([*SYMBOLS, *b"( ) M N S I [ [M [SMIN \n \t x".split(b" ")])
            case 2:
                parts.insert(other, parts[one])
            case 3:
                del parts[one]
                if not parts:
                    return b"("
        text = joint.join(parts)
    return text


def test_no_damage_is_proved_right(made):
    """Among rows that are right, one damaged at a time; what the stack refuses is never proved."""
    draw = random.Random(1)
    bare, values, pairs = made
    refused = 0
    for _ in range(4000):
        row = draw.randrange(len(bare))
        source = draw.choice([bare, pairs])
        text = damaged(draw, source[row])
        if set(text.split()) <= {*SYMBOLS, b"(", b")"} and is_right(text, values[row]):
            continue
        refused += 1
        near = slice(max(row - 1, 0), row)
        texts = [*source[near], text, *source[row + 1 : row + 2]]
        labels = [*values[near], values[row], *values[row + 1 : row + 2]]
        assert proved(texts, labels) is None, text
    assert refused > 2500
