"""Reads the poems of text and retrieval as a person would; shares nothing with the generator."""


def verses(tokens):
    """The four verses of a poem as lists of words; a word is one byte here."""
    text = bytes(int(token) - 1 for token in tokens)
    assert text.endswith(b"\n")
    lines = text.decode("ascii").split("\n")[:-1]
    return [line.replace(" ", "") for line in lines]


def form(tokens):
    """1 if most words of verse 1 return in verse 3, 0 if in verse 4; found by reading."""
    first, second, third, fourth = map(set, verses(tokens))
    straight = len(first & third) + len(second & fourth)
    crossed = len(first & fourth) + len(second & third)
    assert straight != crossed
    return int(straight > crossed)
