"""Generation by beam search.

E examples   W width of the beam   N new tokens   M given tokens   V vocabulary
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from lra.core.cards import Decode
from lra.core.errors import UsageError
from lra.models.model import Model
from lra.models.sequence_model import SequenceModel
from lra.training.generate.greedy import Generated
from lra.training.generate.opening import opened
from lra.training.generate.search import search
from lra.training.generate.steps import vocabulary_of
from lra.training.generate.trigrams import without_repeats


class Beams(NamedTuple):
    """The best sequences of each example, the best first."""

    tokens_EWN: Tensor
    """Int64; the end token included, padding behind it. As wide as the longest of them."""
    lengths_EW: Tensor
    """Number of new tokens, the end token included."""
    scores_EW: Tensor
    """Sum of the logarithms of their probabilities over the length penalty; -inf where an example
    has fewer sequences."""
    decoding: Decode
    """exact, or approximate: other tokens than the model computes at once are possible."""

    @property
    def best(self) -> Generated:
        """The best sequence of each example."""
        longest = int(self.lengths_EW[:, 0].max())
        return Generated(
            self.tokens_EWN[:, 0, :longest],
            self.lengths_EW[:, 0],
            self.scores_EW[:, 0],
            self.decoding,
        )


@torch.no_grad()
def beam(
    model: Model | SequenceModel,
    given_EM: Tensor,
    mask_EM: Tensor | None = None,
    *,
    start: int | Tensor | None = None,
    end: int | None,
    limit: int,
    width: int,
    alpha: float = 0.6,
    pad: int = 0,
    first: int = 0,
    ban_trigrams: bool = False,
) -> Beams:
    """Return the `width` best sequences that a beam search finds for each example, by log p / lp
    with lp = ((5 + length) / 6)^alpha (Wu et al., 2016).

    A sequence ends with its `end`, or where it has `limit` new tokens. The rest is as for `greedy`,
    and so are the errors; `UsageError` also for a width that the vocabulary cannot fill.
    """
    if width < 1:
        raise UsageError(f"a beam of {width} was asked for; choose 1 or more")
    if not alpha >= 0.0:
        raise UsageError(f"alpha is {alpha:g}; choose 0 or more, as longer sequences never gain")
    vocabulary = vocabulary_of(model)
    if width > vocabulary:
        raise UsageError(
            f"a beam of {width} is wider than the vocabulary of {vocabulary}; "
            f"choose {vocabulary} or less"
        )
    opening = opened(
        model, given_EM, mask_EM, start=start, end=end, pad=pad, limit=limit, first=first
    )
    steps, log_p_EV, given = opening.steps, opening.log_p_BV, opening.given_BN
    expanded = torch.arange(len(given), device=given.device).repeat_interleave(width)
    steps.select(expanded)
    given_RN = given[expanded].long()

    def banned(log_p_RV: Tensor, new_RN: Tensor) -> Tensor:
        if not ban_trigrams:
            return log_p_RV
        return without_repeats(log_p_RV, torch.cat([given_RN, new_RN], dim=1))

    def advance(new_RN: Tensor, parents_R: Tensor) -> Tensor:
        steps.select(parents_R)
        return banned(steps.feed(new_RN[:, -1:]), new_RN)

    found = search(
        banned(log_p_EV[expanded], given_RN[:, :0]),
        advance,
        width=width,
        alpha=alpha,
        end=end,
        limit=limit,
        pad=pad,
    )
    return Beams(*found, opening.decoding)
