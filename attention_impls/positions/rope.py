"""Rotary positions: queries and keys turned by angles that grow with their position.

B batch   H heads   N positions   K width of a query or key head   F = K / 2 pairs
"""

from __future__ import annotations

import torch
from torch import Tensor

from attention_impls.contract import Dims, Position
from lra.core.cards import PositionCard
from lra.core.errors import UnsupportedError

BASE = 10_000.0


class Rope(Position):
    """Pair i turns by p * 10000^(-2i / K), so a logit depends on the distance of its positions.

    Half-split: feature i is paired with i + K / 2, as in GPT-NeoX and LLaMA; the paper pairs
    neighbours (2i, 2i + 1). Trained weights do not carry over between the two.
    """

    card = PositionCard(
        title="Rotary",
        paper="Su et al., RoFormer: Enhanced Transformer with Rotary Position Embedding, 2021, "
        "arXiv:2104.09864",
        year=2021,
        acts_on="queries-keys",
    )

    def __init__(self, dims: Dims) -> None:
        super().__init__(dims)
        if dims.head_width % 2:
            raise UnsupportedError(
                f"rope turns pairs of features and cannot use heads of odd width "
                f"{dims.head_width}; choose a width and a number of heads that give an even one"
            )

    def rotate(self, x_BHNK: Tensor, positions_N: Tensor) -> Tensor:
        """Return x turned, in x's dtype, by places (N) or (B, N); lengths are kept.

        Angles stay in float32 or better also under autocast: rounded to bfloat16, positions
        beyond a few hundred collapse onto each other.
        """
        precise = torch.promote_types(x_BHNK.dtype, torch.float32)
        if positions_N.dim() == 2:
            positions_N = positions_N.unsqueeze(1)  # an example's heads turn alike
        with torch.autocast(x_BHNK.device.type, enabled=False):
            cosine_NF, sine_NF = self._turns(positions_N, x_BHNK.shape[-1], precise)
            first_BHNF, second_BHNF = x_BHNK.to(precise).chunk(2, dim=-1)
            turned_BHNK = torch.cat(
                [
                    first_BHNF * cosine_NF - second_BHNF * sine_NF,
                    second_BHNF * cosine_NF + first_BHNF * sine_NF,
                ],
                dim=-1,
            )
        return turned_BHNK.to(x_BHNK.dtype)

    @staticmethod
    def _turns(positions_N: Tensor, width: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        even_F = torch.arange(0, width, 2, device=positions_N.device, dtype=dtype)
        angles_NF = positions_N.to(dtype).unsqueeze(-1) * BASE ** (-even_F / width)
        return angles_NF.cos(), angles_NF.sin()
