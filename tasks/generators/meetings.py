"""Meetings of many turns about one topic after another, and a query for one of the topics.

A turn is a line, `3: kd ab qq ab kd xo`: a speaker and words, half of them of the topic, half such
as any topic uses. There are as many topics as parts that the meeting is cut in. Each is discussed
around its own part: where one ends and the next begins wanders by up to half a part to either side,
so a topic takes from one turn to almost two parts, and its middle lies in its part.

A topic has two words, and each word belongs to two topics: as on a ring, topic t has the words t
and t + 1. The query is the two words of a topic, each of which is said elsewhere too. The topics
that have one of the two each are neighbours in the meeting, but for a few at its ends: a part where
they meet holds both words, as the part that is asked for does, though in no turn together.

R rows, P parts and topics, G turns, W words of a turn, V different words, L letters of a word, N
bytes
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lra.core.errors import UsageError
from tasks.generators.counter import U64, below, shuffled

_LETTERS = 26
_ASKED, _QUERY, _EDGES, _PLACES = (number << 8 for number in range(4))
_SPELLED, _ENDINGS, _SPEAKERS, _OWN, _WHICH, _COMMON = (number << 24 for number in range(1, 7))
"""Where in a row's stream each kind of draw begins."""

_A_TOPIC = 2
"""Words of a topic."""
_MOST_WORDS = 8
"""Words of a turn, and words that all topics use, at most."""
_SPEAKER = b"1: "
_SPEAKER_COUNT = 4
_SPACE, _NEWLINE, _FIRST_SPEAKER, _FIRST_LETTER = b" \n1a"

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class MeetingSize:
    """The sizes of meetings: all that is not drawn."""

    parts: int
    letters: int
    """Bytes of a word."""
    words: int
    """Words of a turn."""
    turns_a_part: int
    common: int
    """Words that all topics use."""

    @classmethod
    def of(cls, length: int, parts: int, letters: int) -> MeetingSize:
        """Return the sizes for a query, a separator and a meeting of at most `length` bytes.

        Raises `UsageError` where that is too short, and where there are too few different words.
        """
        query = _A_TOPIC * (letters + 1)
        share = (length - query) // parts
        shortest = len(_SPEAKER) + _A_TOPIC * (letters + 1)
        if share < shortest:
            raise UsageError(
                f"query_span: {length} tokens are too few for {parts} parts; use length "
                f"{query + parts * shortest} or more, or fewer parts"
            )
        different = _LETTERS ** min(letters, 2)
        if different <= parts:
            raise UsageError(
                f"query_span: {parts} parts need more words than the {different} of one letter; "
                "set letters to 2 or more"
            )
        words = min(_MOST_WORDS, (share - len(_SPEAKER)) // (letters + 1))
        a_turn = len(_SPEAKER) + words * (letters + 1)
        return cls(parts, letters, words, share // a_turn, min(_MOST_WORDS, different - parts))

    @property
    def turns(self) -> int:
        """Turns of a meeting."""
        return self.parts * self.turns_a_part

    @property
    def middle(self) -> int:
        """The turn of a part that is always about the part's own topic, and says both its words."""
        return (self.turns_a_part - 1) // 2


def meetings(
    keys_R: U64, size: MeetingSize
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8], Ints]:
    """Return queries (R, their bytes), meetings (R, N) and the parts that are asked for (R,), one
    for each key."""
    asked_R = below(keys_R, _ASKED, size.parts)
    topics_RG = _topics(keys_R, size)
    spelled_RVL = _spelled(keys_R, size)
    said_RGW = _said(keys_R, topics_RG, size)
    rows_R = np.arange(len(keys_R))

    lines_RGN = np.empty((len(keys_R), size.turns, len(_SPEAKER)), dtype=np.uint8)
    lines_RGN[:] = np.frombuffer(_SPEAKER, dtype=np.uint8)
    speakers_RG = below(keys_R[:, None], _SPEAKERS + np.arange(size.turns), _SPEAKER_COUNT)
    lines_RGN[..., 0] = _FIRST_SPEAKER + speakers_RG
    words_RGN = _written(spelled_RVL[rows_R[:, None, None], said_RGW])
    words_RGN[..., -1] = _NEWLINE
    meetings_RN = np.concatenate([lines_RGN, words_RGN], axis=-1).reshape(len(keys_R), -1)

    turned_R = below(keys_R, _QUERY, 2)[:, None]
    wanted_R2 = (_on_ring(size)[asked_R][:, None] + (turned_R + np.arange(2)) % 2) % size.parts
    queries_RN = _written(spelled_RVL[rows_R[:, None], wanted_R2])[:, :-1]
    return queries_RN, meetings_RN, asked_R


def _topics(keys_R: U64, size: MeetingSize) -> Ints:
    """The topic of each turn by its place in the meeting, (R, G)."""
    parts, wander = size.parts, size.middle
    edges = np.arange(parts + 1)
    edges_RE = edges * size.turns_a_part + np.where(
        (edges > 0) & (edges < parts),
        below(keys_R[:, None], _EDGES + edges, 2 * wander + 1) - wander,
        0,
    )
    turn = np.arange(size.turns)
    own = turn // size.turns_a_part
    return own + (turn >= edges_RE[:, own + 1]) - (turn < edges_RE[:, own])


def _on_ring(size: MeetingSize) -> Ints:
    """The place on the ring of each topic of the meeting, (P,): every other one, so that the two on
    either side of a topic follow each other."""
    place = np.arange(size.parts)
    second_round = (place >= size.parts / 2) & (size.parts % 2 == 0)
    return (2 * place + second_round) % size.parts


def _said(keys_R: U64, topics_RG: Ints, size: MeetingSize) -> Ints:
    """The number of each word, (R, G, W): of the topics first, then those that all use."""
    slot_GW = np.arange(size.turns * size.words).reshape(size.turns, size.words)
    keys_R11 = keys_R[:, None, None]
    first_RG1 = _on_ring(size)[topics_RG][..., None]
    own_RGW = (first_RG1 + below(keys_R11, _WHICH + slot_GW, _A_TOPIC)) % size.parts
    common_RGW = size.parts + below(keys_R11, _COMMON + slot_GW, size.common)
    said_RGW = np.where(below(keys_R11, _OWN + slot_GW, 2) == 1, own_RGW, common_RGW)

    part = np.arange(size.parts)
    place_RP = below(keys_R[:, None], _PLACES + 2 * part, size.words)
    step_RP = 1 + below(keys_R[:, None], _PLACES + 2 * part + 1, size.words - 1)
    rows_R1, middle_P = np.arange(len(keys_R))[:, None], part * size.turns_a_part + size.middle
    for word in range(_A_TOPIC):
        place_RP = (place_RP + word * step_RP) % size.words
        said_RGW[rows_R1, middle_P, place_RP] = (_on_ring(size) + word) % size.parts
    return said_RGW


def _spelled(keys_R: U64, size: MeetingSize) -> npt.NDArray[np.uint8]:
    """The letters of each word, (R, V, L). The first two tell it from all others."""
    count, told = size.parts + size.common, min(size.letters, 2)
    numbers_RV = shuffled(keys_R, _SPELLED, _LETTERS**told)[:, :count]
    letters_RVL = below(
        keys_R[:, None, None],
        _ENDINGS + np.arange(count * size.letters).reshape(count, size.letters),
        _LETTERS,
    )
    letters_RVL[..., 0] = numbers_RV % _LETTERS
    letters_RVL[..., told - 1] = numbers_RV // _LETTERS ** (told - 1)
    return (_FIRST_LETTER + letters_RVL).astype(np.uint8)


def _written(letters: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Words (..., words, L) as bytes (..., words times L + 1), with a space after each."""
    spaces = np.full((*letters.shape[:-1], 1), _SPACE, dtype=np.uint8)
    spaced = np.concatenate([letters, spaces], axis=-1)
    return spaced.reshape(*letters.shape[:-2], -1)
