"""The beginning of a generation: what a model is given, refused in one line where it cannot go on
from it, and taken in at once.

B rows   M source tokens   N given tokens   V vocabulary
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor

from attention_impls.contract import Position
from lra.core.cards import Decode, meet
from lra.core.errors import UnsupportedError, UsageError
from lra.models.block import Block
from lra.models.model import Model
from lra.models.sequence_model import SequenceModel
from lra.models.stack import Stack
from lra.training.generate.steps import Steps, vocabulary_of


@dataclass(frozen=True)
class Opening:
    """The beginning of a generation."""

    steps: Steps
    """The model, with the given tokens or the source taken in."""
    log_p_BV: Tensor
    """Logarithms of the probabilities of the first new token."""
    given_BN: Tensor
    """Tokens that come before it: those given to a decoder, or the start."""
    decoding: Decode
    """exact, or approximate where a mechanism's steps are not what it computes at once."""


def opened(
    model: Model | SequenceModel,
    given_BN: Tensor,
    mask_BN: Tensor | None,
    *,
    start: int | Tensor | None,
    end: int | None,
    pad: int,
    limit: int,
    first: int = 0,
) -> Opening:
    """Return the opening of `limit` new tokens; the model is in evaluation mode from here on.

    Raises `UsageError` and `UnsupportedError` for what cannot be generated from.
    """
    model.eval()
    vocabulary = vocabulary_of(model)
    if limit < 1:
        raise UsageError(f"a generation of {limit} tokens was asked for; choose 1 or more")
    if given_BN.shape[0] == 0 or given_BN.shape[1] == 0:
        raise UsageError(
            f"nothing to generate from, as the tokens given have shape {tuple(given_BN.shape)}; "
            "give one row or more, of one token or more"
        )
    for name, token in (("given", given_BN), ("start", start), ("end", end), ("pad", pad)):
        if token is None:
            continue
        # torch has no extremes of uint16, which a batch's tokens may be of.
        lowest, highest = (int(end) for end in torch.as_tensor(token).long().aminmax())
        if lowest < 0 or highest >= vocabulary:
            raise UsageError(
                f"the {name} token {lowest if lowest < 0 else highest} is not in the vocabulary of "
                f"{vocabulary}; choose 0 to {vocabulary - 1}"
            )
    if isinstance(model, SequenceModel):
        return _from_source(model, given_BN, mask_BN, start, limit, first)
    if start is not None or mask_BN is not None:
        raise UsageError(
            "a decoder goes on from rows of equal length that hold their own start; leave start "
            "and mask out"
        )
    return _from_prompt(model, given_BN, limit, first)


def _from_prompt(model: Model, given_BN: Tensor, limit: int, first: int) -> Opening:
    if model.pooling != "none" or not model.causal:
        raise UsageError("this model answers for whole sequences; give one that predicts tokens")
    length = given_BN.shape[1] + limit - 1
    _refuse_beyond(model.embedding.position, length, "tokens, given and new,")
    decoding = decoding_of(cast(Stack, model.body))
    states = model.init_states(len(given_BN), length=length)
    steps = Steps(model, states, first=first)
    return Opening(steps, steps.feed(given_BN), given_BN, decoding)


def _from_source(
    model: SequenceModel,
    source_BM: Tensor,
    mask_BM: Tensor | None,
    start: int | Tensor | None,
    limit: int,
    first: int,
) -> Opening:
    if start is None:
        raise UsageError("an encoder-decoder begins with a token of its own; name it as start")
    if mask_BM is not None and not bool(mask_BM.any(dim=1).all()):
        raise UsageError("a source is padding alone; leave its row out")
    _refuse_beyond(model.source.position, source_BM.shape[1], "source tokens")
    _refuse_beyond(model.target.position, limit, "new tokens")
    decoding = decoding_of(model.body.decoder)
    memory_BMD = model.encode(source_BM, mask_BM)
    states = model.init_states(
        len(source_BM), length=limit, memory_BMD=memory_BMD, source_mask_BM=mask_BM
    )
    steps, rows = Steps(model, states, first=first), len(source_BM)
    start_B1 = torch.as_tensor(start, device=source_BM.device).long().expand(rows).unsqueeze(-1)
    return Opening(steps, steps.feed(start_B1), start_B1, decoding)


def decoding_of(stack: Stack) -> Decode:
    """Return how exactly a stack decodes.

    Raises `UnsupportedError` for a mechanism that does not, or that would read a source anew at
    each step.
    """
    blocks = list(cast(Iterable[Block], stack.blocks))
    for block in blocks:
        if block.mechanism.card.capabilities.decode == "none":
            raise UnsupportedError(
                f"{block.mechanism.name} cannot decode step by step; choose another mechanism for "
                "the decoder"
            )
        if block.cross is not None and block.cross.card.capabilities.cross_decode == "none":
            raise UnsupportedError(
                f"{block.cross.name} keeps no state of another sequence; choose another mechanism "
                "for the slot cross"
            )
    if not blocks:
        return "exact"
    return meet([block.mechanism.card.capabilities for block in blocks]).decode


def _refuse_beyond(position: Position, length: int, what: str) -> None:
    """Raise `UnsupportedError` for more tokens than a table of positions has rows."""
    rows = position.dims.max_length
    if position.card.fixed_length and length > rows:
        raise UnsupportedError(
            f"{length} {what} are more than the {rows} positions that the model was built for; "
            "give fewer, or build it with a larger length"
        )
