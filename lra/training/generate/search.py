"""Beam search over any model that says how likely each next token is.

E examples   W width of the beam   R = E W rows, those of an example together   N new tokens
V vocabulary   C = 2 W candidates
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

Advance = Callable[[Tensor, Tensor], Tensor]


class Sequences(NamedTuple):
    """Some sequences of each example."""

    tokens_ECN: Tensor
    lengths_EC: Tensor
    scores_EC: Tensor


def length_penalty(length: int, alpha: float) -> float:
    """Return ((5 + length) / 6)^alpha (Wu et al., 2016): 1 for a single token."""
    return float(((5 + length) / 6) ** alpha)


def best_to_come(live_EW: Tensor, limit: int, alpha: float) -> Tensor:
    """Return a score that no continuation of an example's live sequences can exceed, (E,): log p
    only falls, and the penalty is at most that of the longest."""
    return live_EW[:, 0] / length_penalty(limit, alpha)


def search(
    first_RV: Tensor,
    advance: Advance,
    *,
    width: int,
    alpha: float,
    end: int | None,
    limit: int,
    pad: int,
) -> Sequences:
    """Return the W best finished sequences of each example, best first; their tokens are as wide as
    the longest of them.

    `first_RV` are the log probabilities of the first token, the same for all rows of an example;
    `advance` takes the new tokens of each row (R, N) and the rows that they go on from (R,), and
    gives those of the next. Each step takes the 2 W best continuations of an example, so that W
    live ones remain whichever end; an example is done when no live one can come before the last
    that it finished. `alpha` is 0 or more, `limit` 1 or more.
    """
    device, rows = first_RV.device, len(first_RV)
    examples = rows // width
    # Until the first token an example has one sequence: its other rows are at -inf.
    live_EW = first_RV.new_full((examples, width), -math.inf)
    live_EW[:, 0] = 0.0
    tokens_EWN = torch.full((examples, width, limit), pad, dtype=torch.int64, device=device)
    finished = Sequences(
        tokens_EWN,
        torch.zeros_like(tokens_EWN[..., 0]),
        live_EW.new_full((examples, width), -math.inf),
    )
    done_E = torch.zeros(examples, dtype=torch.bool, device=device)
    offsets_E1 = torch.arange(examples, device=device).unsqueeze(-1) * width
    log_p_RV = first_RV
    for length in range(1, limit + 1):
        sums_EC, parents_EC, chosen_EC = _candidates(live_EW, log_p_RV, 2 * width)
        grown_ECN = _rows(tokens_EWN, parents_EC)
        grown_ECN[:, :, length - 1] = chosen_EC
        is_last = length == limit
        ends_EC = torch.full_like(chosen_EC, is_last, dtype=torch.bool)
        if end is not None:
            ends_EC = ends_EC | (chosen_EC == end)
        scores_EC = sums_EC / length_penalty(length, alpha)
        ended = Sequences(
            grown_ECN,
            torch.full_like(chosen_EC, length),
            # An example that is done finishes nothing more, whatever other examples still do.
            scores_EC.masked_fill(~ends_EC | done_E.unsqueeze(-1), -math.inf),
        )
        finished = _best(finished, ended, width)
        if is_last:
            break
        live_EW, kept_EW = _first_best(sums_EC.masked_fill(ends_EC, -math.inf), width)
        tokens_EWN = _rows(grown_ECN, kept_EW)
        done_E = done_E | (finished.scores_EC[:, -1] >= best_to_come(live_EW, limit, alpha))
        if bool(done_E.all()):
            break
        parents_R = (offsets_E1 + parents_EC.gather(1, kept_EW)).flatten()
        log_p_RV = advance(tokens_EWN[:, :, :length].flatten(0, 1), parents_R)
    longest = max(1, int(finished.lengths_EC.max()))
    return finished._replace(tokens_ECN=finished.tokens_ECN[:, :, :longest])


def _candidates(live_EW: Tensor, log_p_RV: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the best continuations, best first: their sums of log p, the rows that they go on
    from, counted within the example, and their tokens. Among equals lower tokens come first."""
    examples, width = live_EW.shape
    sums_EWV = live_EW.unsqueeze(-1) + log_p_RV.view(examples, width, -1)
    sums, place = _first_best(sums_EWV.transpose(1, 2).flatten(1), count)
    return sums, place % width, place // width


def _first_best(scores_EX: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return the largest scores, largest first, and their places; among equals the first places.

    At most as many as there are. `topk` alone promises nothing about equals, and sorting all is
    slow for a wide vocabulary.
    """
    size = scores_EX.shape[1]
    count = min(count, size)
    least_E1 = scores_EX.topk(count, dim=1).values[:, -1:]
    above_EX = scores_EX > least_E1
    order_X = torch.arange(size, 0, -1, device=scores_EX.device)
    # All that are above, and the first of those that equal the least of the chosen.
    rank_EX = order_X * (scores_EX == least_E1) + (order_X + size) * above_EX
    place = rank_EX.topk(count, dim=1).indices.sort(dim=1).values
    chosen = scores_EX.gather(1, place)
    chosen, order = chosen.sort(dim=1, descending=True, stable=True)
    return chosen, place.gather(1, order)


def _best(one: Sequences, other: Sequences, count: int) -> Sequences:
    """Return the best of two lists, best first; among equals those of the first list."""
    together = Sequences(*(torch.cat(pair, dim=1) for pair in zip(one, other, strict=True)))
    scores_EC, place = _first_best(together.scores_EC, count)
    return Sequences(
        _rows(together.tokens_ECN, place), together.lengths_EC.gather(1, place), scores_EC
    )


def _rows(tokens_EXN: Tensor, place_EC: Tensor) -> Tensor:
    """Return the sequences at these places, a copy."""
    index = place_EC.unsqueeze(-1).expand(-1, -1, tokens_EXN.shape[2])
    return tokens_EXN.gather(1, index)
