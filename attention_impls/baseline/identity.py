"""No mixing: every position returns its own value."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from attention_impls.contract import Attention, Context
from lra.core.cards import AttentionCard, Capabilities


class IdentityState(NamedTuple):
    """Nothing is remembered but how far decoding has come."""

    seen_B: Tensor


class Identity(Attention):
    """Returns V: the four projections and nothing between them.

    The floor of every speed plot, which the Performer paper (Choromanski et al., 2021, Figure 3)
    draws as "X (OPT)", and the baseline of every accuracy: a model that no position can tell
    anything to another. Queries and keys are projected and dropped, so that what it costs is what
    all mechanisms pay.

    It claims biases, rotary positions and places because it runs under any scheme of the model
    around it; without logits they change nothing. A mask that hides a position from itself leaves
    zero. Between two sequences there is no "own value", so cross
    attention is refused.
    """

    card = AttentionCard(
        title="No mixing",
        paper="the X (OPT) line of Choromanski et al., Rethinking Attention with Performers, "
        "ICLR 2021, arXiv:2009.14794",
        year=2021,
        time="O(1)",
        memory="O(1)",
        weights="convex",
        without_effect=("causal", "position", "positions_BN", "special_BN"),
        capabilities=Capabilities(
            bidirectional=True,
            causal="strict",
            padding="content",
            decode="exact",
            bias=True,
            rotary=True,
            arbitrary_mask=True,
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
        state: IdentityState | None = None,
    ) -> tuple[Tensor, IdentityState | None]:
        """Return v, zero where the key is padding or hidden, and the counter advanced."""
        out_BHNV = v_BHMV
        if context.key_mask_BM is not None:
            out_BHNV = out_BHNV.masked_fill(~context.key_mask_BM[:, None, :, None], 0.0)
        if context.mask_BNM is not None:
            own_BN = context.mask_BNM.diagonal(dim1=1, dim2=2)
            out_BHNV = out_BHNV.masked_fill(~own_BN[:, None, :, None], 0.0)
        if state is not None:
            state = IdentityState(state.seen_B + v_BHMV.shape[2])
        return out_BHNV, state

    def oracle(
        self, q_BHNK: Tensor, k_BHMK: Tensor, v_BHMV: Tensor, context: Context
    ) -> tuple[Tensor, Tensor]:
        """Return the unit matrix, zero where pairs may not meet, times v."""
        batch, heads, m, _ = v_BHMV.shape
        weights_BHNM = torch.eye(m, dtype=torch.float64, device=v_BHMV.device)
        weights_BHNM = weights_BHNM.expand(batch, heads, m, m)
        if context.key_mask_BM is not None:
            weights_BHNM = weights_BHNM * context.key_mask_BM[:, None, None, :]
        if context.mask_BNM is not None:
            weights_BHNM = weights_BHNM * context.mask_BNM[:, None]
        return weights_BHNM @ v_BHMV.double(), weights_BHNM

    def support(self, n: int, m: int, context: Context) -> Tensor:
        """Return the unit matrix."""
        return torch.eye(n, m, dtype=torch.bool)

    def operations(self, n: int, *, causal: bool = False) -> int:
        """The projections, those to queries and keys too."""
        return self.projection_operations(n)

    def empty_state(
        self, batch: int, *, length: int, device: torch.device, dtype: torch.dtype
    ) -> IdentityState:
        """Return a counter; it has no end, whatever `length`."""
        return IdentityState(torch.zeros(batch, dtype=torch.int64))
