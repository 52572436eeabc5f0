"""Splits by content stay what they are: a change of them changes every real set without a word."""

from collections import Counter

import pytest

from tasks.sources.holdout import assigned, content_key, held_out


def test_the_key_of_a_content_is_fixed():
    assert content_key(b"") == 0xB4B2797457A0A6E4
    assert content_key(b"[MAX 1 2 ]") == 0x5244160BEE5168F5


def test_a_tenth_is_held_out_and_as_much_is_test_where_nothing_says_a_split():
    keys = [content_key(str(number).encode()) for number in range(50_000)]
    assert sum(map(held_out, keys)) == 4943
    assert Counter(map(assigned, keys)) == {"validation": 4943, "test": 4913, "train": 40_144}


FIRST, LAST = int(0.1 * 2**64), int(0.9 * 2**64)


@pytest.mark.parametrize(
    ("split", "keys"),
    [("validation", (0, FIRST - 1)), ("train", (FIRST, LAST - 2048)), ("test", (LAST, 2**64 - 1))],
)
def test_the_borders_of_the_splits(split, keys):
    for key in keys:
        assert assigned(key) == split and held_out(key) == (split == "validation")
