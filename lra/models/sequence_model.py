"""The whole model from sequence to sequence: two embeddings, an encoder-decoder, a head.

B examples, M source tokens, N target tokens, T of them with a label, D model width, V vocabulary
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from attention_impls.contract import Context
from lra.models.block import BlockState, Memory
from lra.models.bodies.encoder_decoder import EncoderDecoder
from lra.models.body import Stream
from lra.models.embedding import Embedding
from lra.models.output import Output


class SequenceModel(nn.Module):
    """From a source and the tokens so far of a target to logits of the target's next ones."""

    def __init__(
        self, source: Embedding, target: Embedding, body: EncoderDecoder, head: nn.Module
    ) -> None:
        super().__init__()
        self.source = source
        self.target = target
        self.body = body
        self.head = head

    def forward(
        self,
        source_BM: Tensor,
        given_BN: Tensor,
        source_mask_BM: Tensor | None = None,
        mask_BN: Tensor | None = None,
        asked_T: Tensor | None = None,
    ) -> Output:
        """Return logits, (B, N, V): those at n are of the target's token n; or (T, V), for the
        places `asked_T` alone, counted row by row from 0 to B N - 1.

        `given_BN` is the target shifted by `shifted`. Masks are True where a token is real; None
        where nothing is padded.
        """
        memory_BMD = self.encode(source_BM, source_mask_BM)
        return self.decode(given_BN, memory_BMD, source_mask_BM, mask_BN, asked_T=asked_T)

    def encode(self, source_BM: Tensor, mask_BM: Tensor | None = None) -> Tensor:
        """Return what the decoder reads, (B, M, D)."""
        x_BMD, mask_BM = self.source(source_BM, mask_BM)
        context = Context(query_mask_BN=mask_BM, key_mask_BM=mask_BM, position=self.source.inside)
        stream = Stream(x_BMD)
        del x_BMD
        memory_BMD: Tensor = self.body.encoder(stream, context).x_BND
        return memory_BMD

    def decode(
        self,
        given_BN: Tensor,
        memory_BMD: Tensor | None,
        source_mask_BM: Tensor | None = None,
        mask_BN: Tensor | None = None,
        *,
        asked_T: Tensor | None = None,
        states: Sequence[Any] | None = None,
        first: int = 0,
    ) -> Output:
        """Return logits, (B, N, V) or (T, V), from what `encode` returned.

        Tokens that continue earlier ones come with the `states` after these, and `first` is the
        position of the first of them. States that hold the memory come without it, and without its
        mask.
        """
        x_BND, mask_BN = self.target(given_BN, mask_BN, first=first)
        context = Context(
            causal=True, query_mask_BN=mask_BN, key_mask_BM=mask_BN, position=self.target.inside
        )
        memory = Memory(memory_BMD, self.cross_context(mask_BN, source_mask_BM))
        stream = Stream(x_BND)
        del x_BND
        vectors, after = self.body(stream, context, states=states, memory=memory)
        if asked_T is not None:
            vectors = vectors.flatten(0, 1).index_select(0, asked_T)
        return Output(self.head(vectors), after)

    def cross_context(self, mask_BN: Tensor | None, source_mask_BM: Tensor | None) -> Context:
        """Return the request of the cross layers: all of the source's real tokens, and no
        positions, as a distance across two sequences has no meaning."""
        return Context(query_mask_BN=mask_BN, key_mask_BM=source_mask_BM)

    def init_states(
        self,
        batch: int,
        *,
        length: int,
        memory_BMD: Tensor | None = None,
        source_mask_BM: Tensor | None = None,
    ) -> list[BlockState]:
        """Return decode states for targets of up to `length` tokens. With what `encode` returned
        they hold all that is needed of it."""
        weight, memory = self.target.tokens.weight, None
        if memory_BMD is not None:
            memory = Memory(memory_BMD, self.cross_context(None, source_mask_BM))
        return self.body.init_states(
            batch, length=length, device=weight.device, dtype=weight.dtype, memory=memory
        )


def shifted(target_BN: Tensor, start: int) -> Tensor:
    """Return a decoder's input for a target: the id `start`, then all tokens but the last."""
    start_B1 = target_BN.new_full((len(target_BN), 1), start)
    return torch.cat([start_B1, target_BN[:, :-1]], dim=1)
