"""Poems of four verses that rhyme ABAB or ABBA: documents for the stand-ins of text and retrieval.

Verse 1 holds the words A, verse 2 the words B. Both return: in ABAB A in verse 3 and B in verse 4,
in ABBA the other way round, but for a few words that go astray. Every word stands in the poem
exactly twice, every verse holds equally many, and the verses are as long in one form as in the
other: neither counts of bytes, nor the first half of the poem, nor its layout tells the form. The
middle half does: in ABBA verses 2 and 3 hold the same words. A poem grows with its length by more
words; where one byte a word no longer gives enough of them, words have two, the first and the
second from different halves of the alphabet.
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
_VERSES = 4

_WORDS, _BODY, _ASTRAY, _ORDER, _PLACES = 0, 1, 1 << 12, 1 << 16, 1 << 20
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

    @classmethod
    def of(cls, task: str, length: int, astray_percent: int) -> Poetics:
        """Return the sizes for poems of at most `length` bytes, or refuse too short a one."""
        if length < SHORTEST:
            raise UsageError(
                f"{task}: {length} bytes are too few for four verses; use length {SHORTEST} or more"
            )
        longest = length // _VERSES - 1
        shortest = longest - longest // 4
        word = 1 if 2 * shortest <= _LETTERS else 2
        pool = _LETTERS if word == 1 else (_LETTERS // 2) ** 2
        words = min(shortest // word, pool // 2)
        return cls(longest, shortest, word, pool, words, astray_percent)


def poems(keys_R: U64, forms_R: Ints, size: Poetics) -> tuple[npt.NDArray[np.uint16], Mask]:
    """Return one poem for each key, of the form asked for: its bytes + 1 and which slots are kept.

    Both are (rows, slots); slots that are not kept hold 0.
    """
    words_R = size.words - below(keys_R, _WORDS, size.words // 4 + 1)
    spread = size.longest - size.shortest + 1
    body_RV = size.shortest + below(keys_R[:, None], _BODY + np.arange(_VERSES), spread)
    # A unit is a word or a space.
    units_RV = body_RV - words_R[:, None] * (size.word - 1)
    words_RVW = _words(keys_R, forms_R, words_R, size)
    places_RVW = _places(keys_R, units_RV, size)

    most = size.longest
    text_RVUB = np.zeros((len(keys_R), _VERSES, most + 1, size.word), dtype=np.int64)
    unit = np.arange(most + 1)
    text_RVUB[..., 0] = np.where(unit < units_RV[..., None], _SPACE + 1, 0)
    text_RVUB[..., 0] += np.where(unit == units_RV[..., None], _NEWLINE + 1, 0)
    row, verse, word = np.nonzero(_counted(words_R, size)[:, None, :].repeat(_VERSES, axis=1))
    text_RVUB[row, verse, places_RVW[row, verse, word]] = _spell(words_RVW[row, verse, word], size)
    tokens_RS = text_RVUB.reshape(len(keys_R), -1).astype(np.uint16)
    return tokens_RS, tokens_RS > 0


def _counted(words_R: Ints, size: Poetics) -> Mask:
    """Which of the most words that a verse could hold it does hold, (rows, words)."""
    counted: Mask = np.arange(size.words) < words_R[:, None]
    return counted


def _words(keys_R: U64, forms_R: Ints, words_R: Ints, size: Poetics) -> Ints:
    """The numbers of the words of each verse, (rows, 4, words)."""
    order_RW = shuffled(keys_R, _ORDER, size.pool)
    a_RW, b_RW = order_RW[:, : size.words], order_RW[:, size.words : 2 * size.words]
    index = np.arange(size.words)
    strays_RW = below(keys_R[:, None], _ASTRAY + index, 100) < size.astray_percent
    astray_R = (strays_RW & _counted(words_R, size)).sum(axis=-1)
    astray_R = np.minimum(astray_R, (words_R - 1) // 2)
    # As many words of A go astray as of B, so that verses 3 and 4 hold equally many.
    crossed_RW = (index < astray_R[:, None]) ^ (forms_R[:, None] == ABBA)
    third_RW = np.where(crossed_RW, b_RW, a_RW)
    fourth_RW = np.where(crossed_RW, a_RW, b_RW)
    return np.stack([a_RW, b_RW, third_RW, fourth_RW], axis=1)


def _places(keys_R: U64, units_RV: Ints, size: Poetics) -> Ints:
    """A different unit of the verse for each of its words, (rows, 4, words), below units_RV."""
    unit = np.arange(size.longest)
    index_VU = _PLACES + np.arange(_VERSES)[:, None] * size.longest + unit
    draws_RVU = bits(keys_R[:, None, None], index_VU)
    draws_RVU[unit >= units_RV[..., None]] = np.uint64(2**64 - 1)
    return np.argsort(draws_RVU, axis=-1, kind="stable")[..., : size.words]


def _spell(words: Ints, size: Poetics) -> Ints:
    """The bytes + 1 of words by number, (..., bytes of a word)."""
    if size.word == 1:
        return words[..., None] + _FIRST_LETTER + 1
    half = _LETTERS // 2
    return np.stack([words // half, words % half + half], axis=-1) + _FIRST_LETTER + 1
