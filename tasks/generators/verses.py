"""Poems that rhyme ABAB or ABBA: documents for the stand-ins of text and retrieval.

Verse 1 holds the words A, verse 2 the words B. Both return: in ABAB A in verse 3 and B in verse 4,
in ABBA the other way round, but for a few words that go astray. Every word stands in the poem
exactly twice, every verse holds equally many, and the verses are as long in one form as in the
other: neither counts of bytes, nor the first or the last half, nor the layout tells the form, only
which words return where. A poem grows with its length by more words; where one byte a word no
longer gives enough of them, words have two, the first and the second from different halves of
the alphabet.

The middle half of a poem of four verses does tell it: verses 2 and 3 share their words or do not.
In a poem of eight the rhyme stands in the first two verses and the last two. The four in between,
half the poem, hold words C and D, which rhyme by themselves, CDCD or CDDC, whatever the form is, so
no contiguous half has words of both ends.
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

_WORDS, _BODY, _TURNED, _ASTRAY, _ORDER, _PLACES = 0, 1, 1 << 8, 1 << 12, 1 << 16, 1 << 20
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

    @classmethod
    def of(cls, task: str, length: int, astray_percent: int, *, eight: bool = False) -> Poetics:
        """Return the sizes for poems of at most `length` bytes, of four verses or eight, or refuse
        too short a length."""
        verses = 8 if eight else 4
        if length < SHORTEST * verses // 4:
            raise UsageError(
                f"{task}: {length} bytes are too few for {verses} verses; "
                f"use length {SHORTEST * verses // 4} or more"
            )
        longest = length // verses - 1
        shortest = longest - longest // 4
        word = 1 if verses // 2 * shortest <= _LETTERS else 2
        pool = _LETTERS if word == 1 else (_LETTERS // 2) ** 2
        words = min(shortest // word, pool // (verses // 2))
        return cls(longest, shortest, word, pool, words, astray_percent, verses)


def poems(keys_R: U64, forms_R: Ints, size: Poetics) -> tuple[npt.NDArray[np.uint16], Mask]:
    """Return one poem for each key, of the form asked for: its bytes + 1 and which slots are kept.

    Both are (rows, slots); slots that are not kept hold 0.
    """
    words_R = size.words - below(keys_R, _WORDS, size.words // 4 + 1)
    spread = size.longest - size.shortest + 1
    body_RV = size.shortest + below(keys_R[:, None], _BODY + np.arange(size.verses), spread)
    if size.verses == 8:
        # At their longest: half the poem or more.
        body_RV[:, 2:6] = size.longest
    # A unit is a word or a space.
    units_RV = body_RV - words_R[:, None] * (size.word - 1)
    words_RVW = _words(keys_R, forms_R, words_R, size)
    places_RVW = _places(keys_R, units_RV, size)

    most = size.longest
    text_RVUB = np.zeros((len(keys_R), size.verses, most + 1, size.word), dtype=np.int64)
    unit = np.arange(most + 1)
    text_RVUB[..., 0] = np.where(unit < units_RV[..., None], _SPACE + 1, 0)
    text_RVUB[..., 0] += np.where(unit == units_RV[..., None], _NEWLINE + 1, 0)
    row, verse, word = np.nonzero(_counted(words_R, size)[:, None, :].repeat(size.verses, axis=1))
    text_RVUB[row, verse, places_RVW[row, verse, word]] = _spell(words_RVW[row, verse, word], size)
    tokens_RS = text_RVUB.reshape(len(keys_R), -1).astype(np.uint16)
    return tokens_RS, tokens_RS > 0


def _counted(words_R: Ints, size: Poetics) -> Mask:
    """Which of the most words that a verse could hold it does hold, (rows, words)."""
    counted: Mask = np.arange(size.words) < words_R[:, None]
    return counted


def _words(keys_R: U64, forms_R: Ints, words_R: Ints, size: Poetics) -> Ints:
    """The numbers of the words of each verse, (rows, verses, words)."""
    order_RW = shuffled(keys_R, _ORDER, size.pool)
    of_verse = [order_RW[:, n * size.words : (n + 1) * size.words] for n in range(size.verses // 2)]
    index = np.arange(size.words)
    strays_RW = below(keys_R[:, None], _ASTRAY + index, 100) < size.astray_percent
    astray_R = (strays_RW & _counted(words_R, size)).sum(axis=-1)
    astray_R = np.minimum(astray_R, (words_R - 1) // 2)
    # As many words of A go astray as of B, so that the verses they return in hold equally many.
    strays_RW = index < astray_R[:, None]
    ends = _returned(of_verse[0], of_verse[1], strays_RW ^ (forms_R[:, None] == ABBA))
    if size.verses == 4:
        return np.stack([*of_verse, *ends], axis=1)
    turned_R = below(keys_R, _TURNED, 2)
    middle = _returned(of_verse[2], of_verse[3], strays_RW ^ (turned_R[:, None] == ABBA))
    return np.stack([*of_verse, *middle, *ends], axis=1)


def _returned(one_RW: Ints, other_RW: Ints, crossed_RW: Mask) -> tuple[Ints, Ints]:
    """The two verses in which the words of two others return, in their order but where crossed."""
    return np.where(crossed_RW, other_RW, one_RW), np.where(crossed_RW, one_RW, other_RW)


def _places(keys_R: U64, units_RV: Ints, size: Poetics) -> Ints:
    """A different unit of its verse for each word, (rows, verses, words), below units_RV."""
    unit = np.arange(size.longest)
    index_VU = _PLACES + np.arange(size.verses)[:, None] * size.longest + unit
    draws_RVU = bits(keys_R[:, None, None], index_VU)
    draws_RVU[unit >= units_RV[..., None]] = np.uint64(2**64 - 1)
    return np.argsort(draws_RVU, axis=-1, kind="stable")[..., : size.words]


def _spell(words: Ints, size: Poetics) -> Ints:
    """The bytes + 1 of words by number, (..., bytes of a word)."""
    if size.word == 1:
        return words[..., None] + _FIRST_LETTER + 1
    half = _LETTERS // 2
    return np.stack([words // half, words % half + half], axis=-1) + _FIRST_LETTER + 1
