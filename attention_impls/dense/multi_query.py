"""Multi-query attention: all heads of queries read one head of keys and values.

B batch   N queries   M keys   H heads   K width of a query or key head   V width of a value head
1 stands where other mechanisms have heads of keys
"""

from __future__ import annotations

from attention_impls.dense._exact import EXACT
from attention_impls.dense._shared_heads import SharedHeads
from lra.core.cards import AttentionCard


class MultiQuery(SharedHeads):
    """softmax(q k / sqrt(K)) v with H heads of queries and one of keys and values.

    As much work as with H heads of keys, in O(N M) time, but 1 / H of them to project and to
    remember, which is what decoding waits for. By PyTorch's fused kernels, as `sdpa`. Where the
    paper widens the MLP to keep the parameters equal, ours stays as it is.
    """

    card = AttentionCard(
        title="Multi-query attention",
        paper="Shazeer, Fast Transformer Decoding: One Write-Head is All You Need, 2019, "
        "arXiv:1911.02150",
        year=2019,
        time="O(n m d)",
        memory="O(n); O(n m) with a bias, with padding where causal, with dropout on a CPU",
        softmax="always",
        weights="convex",
        capabilities=EXACT,
    )

    @property
    def kv_heads(self) -> int:
        """One."""
        return 1
