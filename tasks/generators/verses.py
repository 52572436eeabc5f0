"""Poems that rhyme ABAB or ABBA: documents for the stand-ins of text and retrieval.

Verse 1 holds the words A, verse 2 the words B. Both return: in ABAB A in verse 3 and B in verse 4,
in ABBA the other way round, but for a few words that go astray. Every word stands in the poem
exactly twice, every verse holds equally many, and the verses are as long in one form as in the
other: neither counts of bytes, nor the first or the last half, nor the layout tells the form, only
which words return where. A poem grows with its length by more words; where one byte a word no
longer gives enough of them, words have two, the first and the second from different halves of
the alphabet.

The middle half of a poem of four verses does tell it: verses 2 and 3 share their words or do not.
In a poem of eight the rhyme stands at both ends, in the first two verses and the last two. The four
in between, half the poem or more, hold each word of A and of B twice more, in verses drawn without
regard to the form. So no contiguous half has words of both ends, and a part that has holds every
word in either form: how many different words stand in which part does not tell it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lra.core.errors import UsageError
from tasks.generators.counter import U64, below, bits, shuffled

ABBA, ABAB = 0, 1
"""The two forms."""
SHORTEST = 32
"""Bytes of the shortest poem: four verses of at least five words."""

_FIRST_LETTER = ord("!")
_LETTERS = 94
"""Printable ASCII but the space."""
_SPACE, _NEWLINE = ord(" "), ord("\n")

_WORDS, _BODY, _ASTRAY, _ORDER, _PLACES, _MIXED = 0, 1, 1 << 12, 1 << 16, 1 << 20, 1 << 24
"""Where in a poem's stream each kind of draw begins."""

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Poetics:
    """The sizes of poems of at most a certain length; all in bytes but `words`."""

    longest: int
    """Longest verse, its newline left out."""
    shortest: int
    word: int
    """Length of a word."""
    pool: int
    """Different words there are."""
    words: int
    """Most words of a verse; a poem has down to three quarters of them."""
    astray_percent: int
    verses: int
    """4 or 8."""

    @property
    def widest(self) -> int:
        """Most bytes of a verse: of two that share their bytes, one may hold nothing but words."""
        spare = self.shortest - self.words * self.word
        return self.longest + (spare if self.verses == 8 else 0)

    @classmethod
    def of(cls, task: str, length: int, astray_percent: int, *, both_ends: bool = False) -> Poetics:
        """Return the sizes for poems of at most `length` bytes, of eight verses where they rhyme at
        both ends and else of four; `UsageError` for too short a length."""
        verses = 8 if both_ends else 4
        if length < SHORTEST * verses // 4:
            raise UsageError(
                f"{task}: {length} bytes are too few for {verses} verses; "
                f"use length {SHORTEST * verses // 4} or more"
            )
        longest = length // verses - 1
        shortest = longest - longest // 4
        word = 1 if 2 * shortest <= _LETTERS else 2
        pool = _LETTERS if word == 1 else (_LETTERS // 2) ** 2
        words = min(shortest // word, pool // 2)
        return cls(longest, shortest, word, pool, words, astray_percent, verses)


def poems(keys_R: U64, forms_R: Ints, size: Poetics) -> tuple[npt.NDArray[np.uint16], Mask]:
    """Return one poem for each key, of the form asked for: its bytes + 1 and which slots are kept.

    Both are (rows, slots); slots that are not kept hold 0.
    """
    words_R = size.words - below(keys_R, _WORDS, size.words // 4 + 1)
    body_RV = _bodies(keys_R, size)
    # A unit is a word or a space.
    units_RV = body_RV - words_R[:, None] * (size.word - 1)
    words_RVW = _words(keys_R, forms_R, words_R, size)
    places_RVW = _places(keys_R, units_RV, size)

    most = size.widest
    text_RVUB = np.zeros((len(keys_R), size.verses, most + 1, size.word), dtype=np.int64)
    unit = np.arange(most + 1)
    text_RVUB[..., 0] = np.where(unit < units_RV[..., None], _SPACE + 1, 0)
    text_RVUB[..., 0] += np.where(unit == units_RV[..., None], _NEWLINE + 1, 0)
    row, verse, word = np.nonzero(_counted(words_R, size)[:, None, :].repeat(size.verses, axis=1))
    text_RVUB[row, verse, places_RVW[row, verse, word]] = _spell(words_RVW[row, verse, word], size)
    tokens_RS = text_RVUB.reshape(len(keys_R), -1).astype(np.uint16)
    return tokens_RS, tokens_RS > 0


def _bodies(keys_R: U64, size: Poetics) -> Ints:
    """The bytes of each verse, its newline left out, (rows, verses)."""
    spread = size.longest - size.shortest + 1
    body_RV = size.shortest + below(keys_R[:, None], _BODY + np.arange(size.verses), spread)
    if size.verses == 8:
        # The middle at its longest is half the poem or more. Two verses of an end share their bytes
        # unevenly, so that no fixed part of a poem is one verse.
        body_RV[:, 2:6] = size.longest
        both, least = size.shortest + size.longest, size.words * size.word
        for verse in (0, 6):
            body_RV[:, verse] = least + below(keys_R, _BODY + verse, both - 2 * least + 1)
            body_RV[:, verse + 1] = both - body_RV[:, verse]
    return body_RV


def _counted(words_R: Ints, size: Poetics) -> Mask:
    """Which of the most words that a verse could hold it does hold, (rows, words)."""
    counted: Mask = np.arange(size.words) < words_R[:, None]
    return counted


def _words(keys_R: U64, forms_R: Ints, words_R: Ints, size: Poetics) -> Ints:
    """The numbers of the words of each verse, (rows, verses, words)."""
    order_RW = shuffled(keys_R, _ORDER, size.pool)
    first_RW, second_RW = order_RW[:, : size.words], order_RW[:, size.words : 2 * size.words]
    index = np.arange(size.words)
    strays_RW = below(keys_R[:, None], _ASTRAY + index, 100) < size.astray_percent
    astray_R = (strays_RW & _counted(words_R, size)).sum(axis=-1)
    astray_R = np.minimum(astray_R, (words_R - 1) // 2)
    # As many words of A go astray as of B, so that the verses they return in hold equally many.
    strays_RW = index < astray_R[:, None]
    crossed_RW = strays_RW ^ (forms_R[:, None] == ABBA)
    third_RW = np.where(crossed_RW, second_RW, first_RW)
    fourth_RW = np.where(crossed_RW, first_RW, second_RW)
    middle: list[Ints] = []
    if size.verses == 8:
        for turn in range(2):
            middle += _mixed(keys_R, turn, words_R, first_RW, second_RW)
    return np.stack([first_RW, second_RW, *middle, third_RW, fourth_RW], axis=1)


def _mixed(
    keys_R: U64, turn: int, words_R: Ints, one_RW: Ints, other_RW: Ints
) -> tuple[Ints, Ints]:
    """Two verses that share out the words of two others at random, as many to each."""
    words = one_RW.shape[1]
    slot = np.arange(2 * words)
    draws_RW = bits(keys_R[:, None], _MIXED + turn * 2 * words + slot)
    # Words past the poem's number come last, and are not read.
    draws_RW[slot % words >= words_R[:, None]] = np.uint64(2**64 - 1)
    order_RW = np.argsort(draws_RW, axis=1, kind="stable")
    mixed_RW = np.take_along_axis(np.concatenate([one_RW, other_RW], axis=1), order_RW, axis=1)
    second_RW = np.minimum(words_R[:, None] + np.arange(words), 2 * words - 1)
    return mixed_RW[:, :words], np.take_along_axis(mixed_RW, second_RW, axis=1)


def _places(keys_R: U64, units_RV: Ints, size: Poetics) -> Ints:
    """A different unit of its verse for each word, (rows, verses, words), below units_RV."""
    unit = np.arange(size.widest)
    index_VU = _PLACES + np.arange(size.verses)[:, None] * size.widest + unit
    draws_RVU = bits(keys_R[:, None, None], index_VU)
    draws_RVU[unit >= units_RV[..., None]] = np.uint64(2**64 - 1)
    return np.argsort(draws_RVU, axis=-1, kind="stable")[..., : size.words]


def _spell(words: Ints, size: Poetics) -> Ints:
    """The bytes + 1 of words by number, (..., bytes of a word)."""
    if size.word == 1:
        return words[..., None] + _FIRST_LETTER + 1
    half = _LETTERS // 2
    return np.stack([words // half, words % half + half], axis=-1) + _FIRST_LETTER + 1
