"""Exact softmax attention by PyTorch's fused kernels: the one to beat.

B batch   N queries   M keys   H heads   K width of a query or key head   V width of a value head
"""

from __future__ import annotations

from attention_impls.dense._exact import EXACT
from attention_impls.dense._grouped import GroupedSoftmax
from lra.core.cards import AttentionCard


class Sdpa(GroupedSoftmax):
    """softmax(q k / sqrt(K) + bias) v, computed tile by tile and never written out.

    PyTorch picks the kernel: on a GPU, FlashAttention or its like where no mask is given. So a
    mask is handed over only where something must be masked, and plain causal attention by name.
    A bias is such a mask, and so are a mask of pairs and causal attention with padding: time stays
    quadratic and memory becomes so. On a CPU dropout on the weights also takes PyTorch's unfused
    kernel.
    """

    card = AttentionCard(
        title="Softmax, fused",
        paper="Dao et al., FlashAttention: Fast and Memory-Efficient Exact Attention with "
        "IO-Awareness, NeurIPS 2022, arXiv:2205.14135",
        year=2022,
        time="O(n m d)",
        memory="O(n); O(n m) with a bias, with padding where causal, with dropout on a CPU",
        softmax="always",
        weights="convex",
        capabilities=EXACT,
    )
