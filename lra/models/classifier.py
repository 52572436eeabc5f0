"""The whole model: an encoder and a head, for single sequences, for pairs and for each token.

E examples, S = E * inputs sequences (pairs interleaved), N tokens, T tokens with a label, D model
width, C classes
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor, nn

from lra.models.encoder import Encoder
from lra.models.output import Output

PairFeatures = Literal["four", "two"]
# Standard deviation of a standard normal cut at +-2; flax divides by it.
_CUT_NORMAL_STD = 0.87962566103423978


class Classifier(nn.Module):
    """Encoder and head; for two inputs, a two-tower matcher with all weights shared."""

    def __init__(
        self, encoder: Encoder, head: nn.Module, *, inputs: int, pair_features: PairFeatures
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head
        self.inputs = inputs
        self.pair_features = pair_features

    def forward(
        self,
        tokens_SN: Tensor,
        mask_SN: Tensor | None = None,
        asked_T: Tensor | None = None,
    ) -> Output:
        """Return logits, (E, C); without pooling (T, C), for the tokens `asked_T`, counted row by
        row from 0 to S N - 1, or (S, N, C) for all.

        `tokens_SN` are integer ids; in pairs, the sequences 2 i and 2 i + 1 make example i.
        `mask_SN` is True where a token is real; None where nothing is padded.
        """
        vectors = self.encoder(tokens_SN, mask_SN)
        if self.inputs == 2:
            vectors = pair(vectors[0::2], vectors[1::2], self.pair_features)
        if asked_T is not None:
            vectors = vectors.flatten(0, 1).index_select(0, asked_T)
        return Output(self.head(vectors))


def build_head(width: int, hidden: Sequence[int], classes: int) -> nn.Sequential:
    """Return hidden ReLU layers and one linear layer; weights LeCun normal, as in flax."""
    widths = [width, *hidden]
    parts: list[nn.Module] = []
    for before, after in pairwise(widths):
        parts += [_lecun_linear(before, after), nn.ReLU()]
    return nn.Sequential(*parts, _lecun_linear(widths[-1], classes))


def pair(x1_ED: Tensor, x2_ED: Tensor, features: PairFeatures) -> Tensor:
    """Return the head's input for a pair: (E, 4 D), or (E, 2 D) as the original ran it."""
    if features == "two":
        return torch.cat([x1_ED, x2_ED], dim=-1)
    return torch.cat([x1_ED, x2_ED, x1_ED * x2_ED, x1_ED - x2_ED], dim=-1)


def feature_width(width: int, inputs: int, features: PairFeatures) -> int:
    """Return the width of the head's input."""
    if inputs == 1:
        return width
    return width * (4 if features == "four" else 2)


def _lecun_linear(width: int, out: int) -> nn.Linear:
    linear = nn.Linear(width, out)
    std = width**-0.5 / _CUT_NORMAL_STD
    nn.init.trunc_normal_(linear.weight, std=std, a=-2 * std, b=2 * std)
    nn.init.zeros_(linear.bias)
    return linear
