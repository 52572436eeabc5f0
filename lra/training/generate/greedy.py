"""Greedy generation: the likeliest token, again and again.

B rows   N new tokens   M given tokens   V vocabulary
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from lra.core.cards import Decode
from lra.models.model import Model
from lra.models.sequence_model import SequenceModel
from lra.training.generate.opening import opened
from lra.training.generate.trigrams import without_repeats

LOOK_EVERY = 16
"""Tokens between looks at whether all rows have ended: each look waits for a GPU."""


class Generated(NamedTuple):
    """New tokens of each row."""

    tokens_BN: Tensor
    """Int64; the end token included, padding behind it. As wide as the longest row."""
    lengths_B: Tensor
    """Number of new tokens, the end token included."""
    scores_B: Tensor
    """Sum of the logarithms of their probabilities."""
    decoding: Decode
    """exact, or approximate: other tokens than the model computes at once are possible."""


@torch.no_grad()
def greedy(
    model: Model | SequenceModel,
    given_BM: Tensor,
    mask_BM: Tensor | None = None,
    *,
    start: int | Tensor | None = None,
    end: int | None,
    limit: int,
    pad: int = 0,
    first: int = 0,
    ban_trigrams: bool = False,
) -> Generated:
    """Return the likeliest next token after another, the lowest id among equals, until each row has
    its `end` (None: no row ends) or `limit` new tokens.

    A decoder goes on from the tokens `given_BM`; an encoder-decoder reads them as its source, real
    where the mask is True, and begins with `start`, one for all or (B,). `first` is the token of
    the model's first answer, where it answers with fewer tokens than it reads. Rows that ended give
    `pad`, and score 0 for it. With `ban_trigrams` no row has the same three tokens in a row twice,
    those given to a decoder included; where every token is banned it has token 0, and scores -inf.

    The model is left in evaluation mode. Raises `UsageError` for tokens outside of the vocabulary
    and for nothing to generate from, `UnsupportedError` for a mechanism that does not decode and
    for too many positions.
    """
    opening = opened(
        model, given_BM, mask_BM, start=start, end=end, pad=pad, limit=limit, first=first
    )
    steps, log_p_BV, given = opening.steps, opening.log_p_BV, opening.given_BN
    rows, before = given.shape
    all_BN = torch.full((rows, before + limit), pad, dtype=torch.int64, device=given.device)
    all_BN[:, :before] = given
    scores_B = log_p_BV.new_zeros(rows)
    lengths_B = torch.zeros(rows, dtype=torch.int64, device=given.device)
    ended_B = torch.zeros(rows, dtype=torch.bool, device=given.device)
    for place in range(before, before + limit):
        if place > before:
            log_p_BV = steps.feed(all_BN[:, place - 1 : place])
        if ban_trigrams:
            log_p_BV = without_repeats(log_p_BV, all_BN[:, :place])
        best_B, token_B = log_p_BV.max(dim=-1)
        if end is None:
            all_BN[:, place], scores_B = token_B, scores_B + best_B
            continue
        all_BN[:, place] = token_B.masked_fill(ended_B, pad)
        scores_B = scores_B + best_B.masked_fill(ended_B, 0.0)
        lengths_B += ~ended_B
        ended_B = ended_B | (token_B == end)
        if (place - before) % LOOK_EVERY == LOOK_EVERY - 1 and bool(ended_B.all()):
            break
    if end is None:
        lengths_B.fill_(limit)
    longest = int(lengths_B.max())
    new_BN = all_BN[:, before : before + longest]
    return Generated(new_BN, lengths_B, scores_B, opening.decoding)
