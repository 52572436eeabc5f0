"""Grouped-query attention: fewer heads of keys and values than of queries.

B batch   N queries   M keys   H heads   G heads of keys and values   K width of a query or key head
V width of a value head
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from torch import nn

from attention_impls.contract import Dims, MechanismConfig
from attention_impls.dense._exact import EXACT
from attention_impls.dense._shared_heads import SharedHeads
from lra.core.cards import AttentionCard
from lra.core.errors import UsageError


class GroupedQueryConfig(MechanismConfig, frozen=True):
    """Hyper-parameters of grouped-query attention."""

    kv_heads: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """G, heads of keys and values; it must divide the heads of queries. None takes half of them,
    or 1 where they are odd. The paper's 8 of 64 are more than the models here have."""


class GroupedQuery(SharedHeads):
    """softmax(q k / sqrt(K)) v, where query head h reads head floor(h G / H) of keys and values.

    As much work as with H heads of keys, in O(N M) time, but less to project and to remember: a
    cache of 2 M G K numbers. With G = H it is plain softmax attention, with G = 1 `multi_query`.
    The paper makes its groups from a trained model by averaging heads; ours are trained as they
    are. By PyTorch's fused kernels, as `sdpa`.
    """

    Config = GroupedQueryConfig
    config: GroupedQueryConfig
    trials = (GroupedQueryConfig(kv_heads=1),)

    card = AttentionCard(
        title="Grouped-query attention",
        paper="Ainslie et al., GQA: Training Generalized Multi-Query Transformer Models from "
        "Multi-Head Checkpoints, EMNLP 2023, arXiv:2305.13245",
        year=2023,
        time="O(n m d)",
        memory="O(n); O(n m) with a bias, with padding where causal, with dropout on a CPU",
        softmax="always",
        weights="convex",
        capabilities=EXACT,
    )

    def __init__(
        self,
        dims: Dims,
        config: GroupedQueryConfig | None = None,
        *,
        layer_index: int = 0,
        shared: nn.Module | None = None,
        seed: int = 0,
    ) -> None:
        """Refuse groups that do not divide the heads."""
        groups = None if config is None else config.kv_heads
        if groups is not None and dims.heads % groups:
            raise UsageError(
                f"grouped_query: {groups} kv_heads do not divide {dims.heads} heads; "
                "choose a divisor"
            )
        super().__init__(dims, config, layer_index=layer_index, shared=shared, seed=seed)

    @property
    def kv_heads(self) -> int:
        """G, as configured, or half of the heads."""
        if self.config.kv_heads is not None:
            return self.config.kv_heads
        return self.dims.heads // 2 if self.dims.heads % 2 == 0 else 1
