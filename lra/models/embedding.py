"""Token embedding, class token and positions: the input of the first block.

B sequences, N tokens, D model width
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attention_impls.contract import Position
from lra.core.protocol import Rules
from lra.models.dropout import Dropout


class Embedding(nn.Module):
    """Token ids to vectors: N(0, 1) rows, unscaled, as in the Long Range Arena (Tay et al., 2021).

    With `class_token` a learned vector, zero at the start, stands before the input at position 0.
    Under `fixed` rules it is always real; under `lra2021` it inherits the mask of the first token.
    Vectors of tokens are multiplied by `scale`; with `norm`, their sum with positions is normed.
    A token of several `parts`, see `Dataset.parts`, has the sum of one row for each.
    """

    def __init__(
        self,
        vocabulary: int,
        width: int,
        *,
        position: Position,
        class_token: bool,
        dropout: float,
        rules: Rules,
        scale: float = 1.0,
        norm: nn.Module | None = None,
        parts: tuple[int, ...] = (),
    ) -> None:
        super().__init__()
        self.parts = parts
        self.tokens = nn.Embedding(sum(parts) if parts else vocabulary, width)
        """One row for each token; or for each value of the first part, then of the next."""
        self.class_token = nn.Parameter(torch.zeros(width)) if class_token else None
        self.position = position
        self.scale = scale
        self.norm = norm
        self.dropout = Dropout(dropout)
        self.rules = rules

    @property
    def inside(self) -> Position | None:
        """The position scheme where it acts inside of mechanisms; None where it does not."""
        acts = self.position.card.acts_on in ("queries-keys", "logits")
        return self.position if acts else None

    def forward(
        self, tokens_BN: Tensor, mask_BN: Tensor | None, *, first: int = 0
    ) -> tuple[Tensor, Tensor | None]:
        """Return (B, N, D) and the mask, both one longer where there is a class token.

        Token ids may be of any integer dtype; they widen only here. `first` is the position of the
        first of them, where they continue earlier ones.
        """
        x_BND = self._rows(tokens_BN.long())
        if self.scale != 1.0:
            x_BND = x_BND * self.scale
        if self.class_token is not None:
            class_B1D = self.class_token.expand(len(x_BND), 1, -1)
            x_BND = torch.cat([class_B1D, x_BND], dim=1)
            if mask_BN is not None:
                inherited = self.rules == "lra2021"
                first_B1 = mask_BN[:, :1] if inherited else torch.ones_like(mask_BN[:, :1])
                mask_BN = torch.cat([first_B1, mask_BN], dim=1)
        places_N = torch.arange(first, first + x_BND.shape[1], device=x_BND.device)
        offset_ND = self.position.embed(places_N)
        if offset_ND is not None:
            x_BND = x_BND + offset_ND
        if self.norm is not None:
            x_BND = self.norm(x_BND)
        return self.dropout(x_BND), mask_BN

    def _rows(self, tokens_BN: Tensor) -> Tensor:
        """Return each token's row, or the sum of its parts' rows, (B, N, D)."""
        if not self.parts:
            row_BND: Tensor = self.tokens(tokens_BN)
            return row_BND
        places, first = [], 0
        for size in self.parts:
            places.append(first + tokens_BN % size)
            tokens_BN = tokens_BN // size
            first += size
        sum_BND: Tensor = self.tokens(torch.stack(places)).sum(dim=0)
        return sum_BND
