"""The whole model: embedding, body, pooling, head, for single sequences, for pairs and for each
token.

E examples, S = E * inputs sequences (pairs interleaved), N tokens, T tokens with a label, D model
width, C classes
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from attention_impls.contract import Context
from lra.core.protocol import Rules
from lra.models.body import Body, Stream
from lra.models.embedding import Embedding
from lra.models.head import PairFeatures, pair
from lra.models.output import Output
from lra.models.pooling import Pooling, pool


class Model(nn.Module):
    """A network that answers; for two inputs, a two-tower matcher with all weights shared."""

    def __init__(
        self,
        embedding: Embedding,
        body: Body,
        head: nn.Module,
        *,
        pooling: Pooling,
        rules: Rules,
        causal: bool,
        inputs: int,
        pair_features: PairFeatures,
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.body = body
        self.head = head
        self.pooling = pooling
        self.rules = rules
        self.causal = causal
        self.inputs = inputs
        self.pair_features = pair_features

    def forward(
        self,
        tokens_SN: Tensor,
        mask_SN: Tensor | None = None,
        asked_T: Tensor | None = None,
        *,
        states: Sequence[Any] | None = None,
        first: int = 0,
    ) -> Output:
        """Return logits, (E, C); without pooling (T, C), for the tokens `asked_T`, counted row by
        row from 0 to S N - 1, or (S, N, C) for all.

        `tokens_SN` are integer ids; in pairs, the sequences 2 i and 2 i + 1 make example i.
        `mask_SN` is True where a token is real; None where nothing is padded. Tokens that continue
        earlier ones come with the `states` after these, and `first` is the position of the first of
        them: for causal models without pooling.
        """
        vectors, states = self.encode(tokens_SN, mask_SN, states=states, first=first)
        if self.inputs == 2:
            vectors = pair(vectors[0::2], vectors[1::2], self.pair_features)
        if asked_T is not None:
            vectors = vectors.flatten(0, 1).index_select(0, asked_T)
        return Output(self.head(vectors), states)

    def encode(
        self,
        tokens_SN: Tensor,
        mask_SN: Tensor | None,
        *,
        states: Sequence[Any] | None = None,
        first: int = 0,
    ) -> tuple[Tensor, Sequence[Any] | None]:
        """Return the pooled vectors, (S, D), without pooling those of all positions, (S, N, D); and
        the states after these."""
        x_SND, mask_SN = self.embedding(tokens_SN, mask_SN, first=first)
        stream = Stream(x_SND)
        del x_SND
        y_SND, states = self.body(stream, self._context(mask_SN), states=states)
        return pool(y_SND, mask_SN, self.pooling, self.rules), states

    def init_states(self, batch: int, *, length: int) -> list[Any]:
        """Return empty decode states for up to `length` positions of so many sequences."""
        weight = self.embedding.tokens.weight
        return self.body.init_states(batch, length=length, device=weight.device, dtype=weight.dtype)

    def _context(self, mask_SN: Tensor | None) -> Context:
        return Context(
            causal=self.causal,
            query_mask_BN=mask_SN,
            key_mask_BM=mask_SN,
            position=self.embedding.inside,
        )
