"""Reads the poems of text and retrieval as a person would; shares nothing with the generator."""

LOW, HIGH = set(map(chr, range(33, 80))), set(map(chr, range(80, 127)))
"""First and second letters of words of two; words of one are any of both."""


def text(tokens):
    """The poem as it stands."""
    return bytes(int(token) - 1 for token in tokens).decode("ascii")


def verses(tokens, letters=1):
    """The verses of a poem as lists of words, of so many letters each."""
    poem = text(tokens)
    assert poem.endswith("\n")
    lines = [line.replace(" ", "") for line in poem.split("\n")[:-1]]
    words = [[line[i : i + letters] for i in range(0, len(line), letters)] for line in lines]
    for word in (word for verse in words for word in verse):
        assert len(word) == letters and set(word) <= LOW | HIGH
        assert letters == 1 or (word[0] in LOW and word[1] in HIGH)
    return words


def form(tokens, letters=1):
    """1 if most words of verse 1 return in verse 3, 0 if in verse 4; found by reading."""
    lines = verses(tokens, letters)
    return form_of(lines[:2], lines[2:])


def form_of(before, after):
    """1 if most words of two verses return in two others in their order, 0 if crossed."""
    first, second, third, fourth = map(set, (*before, *after))
    straight = len(first & third) + len(second & fourth)
    crossed = len(first & fourth) + len(second & third)
    assert straight != crossed
    return int(straight > crossed)
