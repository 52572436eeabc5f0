"""Linear attention: softmax's exponential replaced by a product of two positive features.

B batch   N queries   M keys   H heads   K width of a query or key head   V width of a value head
"""

from __future__ import annotations

import torch
from torch import Tensor

from attention_impls.contract import Attention, Context, split_heads
from attention_impls.kernel._attend import (
    KernelState,
    SourceSum,
    attend_sum,
    empty_state,
    keep_sum,
    kernel_attention,
    normalised,
)
from attention_impls.kernel._causal import CHUNK
from attention_impls.kernel._features import EluFeatures
from lra.core.cards import AttentionCard, Capabilities


class Linear(Attention):
    """out_i = phi(q_i) sum_j phi(k_j) v_j / phi(q_i) sum_j phi(k_j), phi = elu + 1, in O(N + M).

    Exact to its own kernel, never to softmax. As in the paper there is no 1 / sqrt(K), which
    would change phi. Ours: the causal form runs by chunks, and no epsilon is added to the
    denominator (the paper's code adds 1e-6), so that weights always sum to 1; where it
    falls below 1e-31 (in float32) its digits are lost and the row is zero. The Long Range Arena ran
    the same with that epsilon, but read padding too.
    """

    card = AttentionCard(
        title="Linear attention (elu + 1)",
        paper="Katharopoulos et al., Transformers are RNNs: Fast Autoregressive Transformers "
        "with Linear Attention, ICML 2020, arXiv:2006.16236",
        year=2020,
        time="O((n + m) d^2)",
        memory="O(n + m + d^2); O(n d^2 / 64) in causal training",
        weights="convex",
        without_effect=("special_BN", "positions_BN", "source_positions_BM"),
        capabilities=Capabilities(
            bidirectional=True,
            causal="strict",
            cross=True,
            padding="content",
            decode="exact",
            cross_decode="exact",
            positions_by_index=True,
        ),
    )

    @property
    def borders(self) -> tuple[int, ...]:
        """Length of a chunk of the causal form."""
        return (CHUNK,)

    def attend(
        self,
        q_BHNK: Tensor,
        k_BHMK: Tensor,
        v_BHMV: Tensor,
        context: Context,
        state: KernelState | None = None,
    ) -> tuple[Tensor, KernelState | None]:
        """Return the normalised output and the state."""
        return kernel_attention(q_BHNK, k_BHMK, v_BHMV, context, state, EluFeatures())

    def oracle(
        self, q_BHNK: Tensor, k_BHMK: Tensor, v_BHMV: Tensor, context: Context
    ) -> tuple[Tensor, Tensor]:
        """Return the same from the full matrix of phi(q_i) . phi(k_j)."""
        q, k = q_BHNK.double(), k_BHMK.double()
        phi_q = torch.where(q >= 0, q + 1, q.clamp(max=0).exp())
        phi_k = torch.where(k >= 0, k + 1, k.clamp(max=0).exp())
        return normalised(torch.einsum("bhnk,bhmk->bhnm", phi_q, phi_k).log(), v_BHMV, context)

    def operations(self, n: int, *, causal: bool = False) -> int:
        """Sums over keys and reads by queries, in each head; the features take no product."""
        from attention_impls.kernel._operations import kernel_operations

        width = self.dims.head_width
        head = kernel_operations(n, width, width, causal=causal, like=self.query.weight)
        return self.projection_operations(n) + self.dims.heads * head

    def empty_state(
        self, batch: int, *, length: int, device: torch.device, dtype: torch.dtype
    ) -> KernelState:
        """Return the empty state; its size is the same for any length."""
        width = self.dims.head_width
        return empty_state(batch, self.dims.heads, width, width, device, dtype)

    def keep_source(
        self, source_BMD: Tensor, mask_BM: Tensor | None, dtype: torch.dtype
    ) -> SourceSum:
        """Return the sum over the source; its size is the same for any length."""
        k_BHMK, v_BHMV = (
            split_heads(projection(source_BMD), self.dims.heads)
            for projection in (self.key, self.value)
        )
        dtype = torch.promote_types(dtype, torch.float32)
        return keep_sum(k_BHMK, v_BHMV, mask_BM, EluFeatures(), dtype)

    def attend_kept(self, q_BHNK: Tensor, kept: SourceSum, context: Context) -> Tensor:
        """Return what the sum gives to each query."""
        return attend_sum(q_BHNK, kept, EluFeatures())
