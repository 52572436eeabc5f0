"""Equal weights: every position returns the mean of the values that it may see.

B batch   N queries   M keys   H heads   K width of a query or key head   V width of a value head
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_impls.contract import Attention, Context, causal_mask, split_heads
from lra.core.cards import AttentionCard, Capabilities
from lra.core.errors import UnsupportedError


class MeanState(NamedTuple):
    """Sum and count of the values so far: its size does not grow with the length."""

    sum_BHV: Tensor
    """float32 or better."""
    count_B: Tensor
    """int64: how many values the sum is of; padding is none."""
    seen_B: Tensor
    """int64, on the CPU: positions consumed, padding included."""


class SourceMean(NamedTuple):
    """Mean of another sequence's values: its size does not grow with the length."""

    mean_BHV: Tensor
    """float32 or better."""


class Mean(Attention):
    """out_i = mean of the values that query i may see: attention that compares nothing.

    Bidirectional and to another sequence, every query gets the mean of the real values; causal, the
    running mean. The control of tasks with two sequences: a model that knows what the other one
    holds, and cannot look anything up in it. Queries and keys are projected and dropped, so that
    what it costs is what all mechanisms pay. A query that may see nothing gets zero.

    Rotary positions are claimed, and change nothing: no query meets a key. Schemes that add to the
    logits are refused: they would give unequal weights.
    """

    card = AttentionCard(
        title="Mean of the values",
        paper="the average layer of Zhang et al., Accelerating Neural Transformer via an Average "
        "Attention Network, ACL 2018, arXiv:1805.00631, without its gate",
        year=2018,
        time="O((n + m) d)",
        memory="O(m d)",
        weights="convex",
        without_effect=("position", "special_BN", "positions_BN", "source_positions_BM"),
        capabilities=Capabilities(
            bidirectional=True,
            causal="strict",
            cross=True,
            padding="content",
            decode="exact",
            cross_decode="exact",
            rotary=True,
            positions_by_index=True,
        ),
    )

    unused = ("query", "key")

    def attend(
        self,
        q_BHNK: Tensor,
        k_BHMK: Tensor,
        v_BHMV: Tensor,
        context: Context,
        state: MeanState | None = None,
    ) -> tuple[Tensor, MeanState | None]:
        """Return sums over counts, in float32 or better, and the advanced state."""
        (batch, _, m, _), n = v_BHMV.shape, q_BHNK.shape[2]
        if state is not None and m < n:
            raise UnsupportedError(
                f"{self.name}: a continued state got {n} queries but {m} keys; give as many keys "
                "as queries"
            )
        real_BM = context.key_mask_BM
        if real_BM is None:
            real_BM = torch.ones(batch, m, dtype=torch.bool, device=v_BHMV.device)
        values_BHMV = v_BHMV.to(torch.promote_types(v_BHMV.dtype, torch.float32))
        values_BHMV = values_BHMV.masked_fill(~real_BM[:, None, :, None], 0.0)
        if not context.causal:
            mean_BH1V = _over(values_BHMV.sum(2, keepdim=True), real_BM.sum(1, keepdim=True))
            return mean_BH1V.expand(-1, -1, n, -1).to(v_BHMV.dtype), None
        sum_BHMV, count_BM = values_BHMV.cumsum(2), real_BM.cumsum(1)
        if state is not None:
            sum_BHMV = sum_BHMV + state.sum_BHV.unsqueeze(2)
            count_BM = count_BM + state.count_B.unsqueeze(1)
            if m:
                state = MeanState(sum_BHMV[:, :, -1], count_BM[:, -1], state.seen_B + m)
        mean_BHMV = _over(sum_BHMV, count_BM).to(v_BHMV.dtype)
        # The last of queries and keys coincide: keys before the first query need no output, and
        # queries before the first key see nothing.
        return mean_BHMV if n == m else F.pad(mean_BHMV, (0, 0, n - m, 0)), state

    def oracle(
        self, q_BHNK: Tensor, k_BHMK: Tensor, v_BHMV: Tensor, context: Context
    ) -> tuple[Tensor, Tensor]:
        """Return 1 / (number of permitted keys) for each of them, times v."""
        (batch, heads, m, _), n = v_BHMV.shape, q_BHNK.shape[2]
        permitted = torch.ones(batch, heads, n, m, dtype=torch.bool, device=v_BHMV.device)
        if context.causal:
            permitted = permitted & causal_mask(n, m, v_BHMV.device)
        if context.key_mask_BM is not None:
            permitted = permitted & context.key_mask_BM[:, None, None, :]
        weights_BHNM = permitted.double()
        weights_BHNM = weights_BHNM / weights_BHNM.sum(-1, keepdim=True).clamp(min=1.0)
        return weights_BHNM @ v_BHMV.double(), weights_BHNM

    def operations(self, n: int, *, causal: bool = False) -> int:
        """The projections, those to queries and keys too; sums take no product."""
        return self.projection_operations(n)

    def empty_state(
        self, batch: int, *, length: int, device: torch.device, dtype: torch.dtype
    ) -> MeanState:
        """Return the sum of nothing; it has no end, whatever `length`."""
        size = (batch, self.dims.heads, self.dims.head_width)
        sum_BHV = torch.zeros(size, device=device, dtype=torch.promote_types(dtype, torch.float32))
        count_B = torch.zeros(batch, device=device, dtype=torch.int64)
        return MeanState(sum_BHV, count_B, torch.zeros(batch, dtype=torch.int64))

    def keep_source(
        self, source_BMD: Tensor, mask_BM: Tensor | None, dtype: torch.dtype
    ) -> SourceMean:
        """Return the mean of the source; its size is the same for any length."""
        v_BHMV = split_heads(self.value(source_BMD), self.dims.heads)
        v_BHMV = v_BHMV.to(torch.promote_types(dtype, torch.float32))
        real_BM = v_BHMV.new_ones(v_BHMV.shape[0], v_BHMV.shape[2], dtype=torch.bool)
        real_BM = real_BM if mask_BM is None else mask_BM
        v_BHMV = v_BHMV.masked_fill(~real_BM[:, None, :, None], 0.0)
        mean_BH1V = _over(v_BHMV.sum(2, keepdim=True), real_BM.sum(1, keepdim=True))
        return SourceMean(mean_BH1V.squeeze(2))

    def attend_kept(self, q_BHNK: Tensor, kept: SourceMean, context: Context) -> Tensor:
        """Return the mean for each query."""
        mean_BHNV = kept.mean_BHV.unsqueeze(2).expand(-1, -1, q_BHNK.shape[2], -1)
        return mean_BHNV.to(q_BHNK.dtype)


def _over(sum_BHMV: Tensor, count_BM: Tensor) -> Tensor:
    """Divide sums by counts; the sum of nothing stays zero."""
    return sum_BHMV / count_BM.clamp(min=1)[:, None, :, None].to(sum_BHMV.dtype)
