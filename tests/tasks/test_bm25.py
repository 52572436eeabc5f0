"""BM25 over equal parts of a text: which part wins, and why."""

import pytest

from tasks.solvers.bm25 import best_part, equal_parts


def text(*parts):
    """Parts as one text, filled up with blanks to one length."""
    longest = max(map(len, parts))
    return b"".join(part.ljust(longest + 1) for part in parts)


@pytest.mark.parametrize(
    ("query", "parts", "best"),
    [
        # Rare words count more than words of most parts.
        (b"the pilot", [b"the the the", b"the the", b"pilot", b"the"], 2),
        # Two different words count more than one that returns.
        (b"red fox", [b"red red red", b"fox fox", b"red fox x", b"z"], 2),
        # A short part counts more than a long one.
        (b"fox", [b"fox a b c d e f g", b"a b c", b"fox", b"a"], 2),
        # The word twice counts more than once.
        (b"fox", [b"fox a", b"fox fox", b"b c", b"b c"], 1),
        # Neither case nor what parts words counts.
        (b"What did F. say: FOX?", [b"wha", b"<fox>", b"foxes", b"saying"], 1),
        ("Käse".encode(), [b"k se", b"x", "käse".encode(), b"kse"], 2),
        # The first of equals.
        (b"fox", [b"a", b"fox", b"fox", b"b"], 1),
        (b"fox", [b"a", b"b", b"c", b"d"], 0),
        (b"?", [b"a", b"b", b"c", b"d"], 0),
    ],
)
def test_the_part_that_fits_best(query, parts, best):
    assert best_part(query, text(*parts), 4) == best


@pytest.mark.parametrize("length", [0, 3, 7, 8, 65])
def test_a_byte_is_in_the_part_of_its_share(length):
    whole = bytes(range(length))
    parts = equal_parts(whole, 7)
    assert len(parts) == 7 and b"".join(parts) == whole
    assert all(byte * 7 // length == number for number, part in enumerate(parts) for byte in part)
