"""A layer with queries, keys and values."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from attention_impls.contract.dims import Dims
from attention_impls.contract.layer import Layer
from attention_impls.contract.tensors import (
    causal_mask,
    default_scale,
    merge_heads,
    position_ids,
    split_heads,
    zero_padding,
)
from attention_impls.contract.values import Context, CrossState, Exact, Heads, MechanismConfig, Out
from lra.core.errors import UnsupportedError


class Attention(Layer):
    """A layer with queries, keys and values, projected alike for all, so that counts are fair.

    A subclass writes `attend` and `oracle`; where algebra lets it skip a projection it overrides
    `mix`, and a law holds the two to the same result.
    """

    def __init__(
        self,
        dims: Dims,
        config: MechanismConfig | None = None,
        *,
        layer_index: int = 0,
        shared: nn.Module | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(dims, config, layer_index=layer_index, shared=shared, seed=seed)
        biases, shared_width = dims.projection_biases, self.kv_heads * dims.head_width
        self.query = nn.Linear(dims.width, dims.qkv_width, bias=biases)
        self.key = nn.Linear(dims.width, shared_width, bias=biases)
        self.value = nn.Linear(dims.width, shared_width, bias=biases)
        self.output = nn.Linear(dims.qkv_width, dims.width, bias=biases)
        for projection in (self.query, self.key, self.value, self.output):
            nn.init.xavier_uniform_(projection.weight)
            if biases:
                nn.init.zeros_(projection.bias)

    @property
    def kv_heads(self) -> int:
        """G, heads of keys and values; each serves H / G heads of queries in a row."""
        return self.dims.heads

    @property
    def matched(self) -> list[tuple[nn.Linear, nn.Linear]]:
        """Projections to queries and to the keys that these meet; none where there are not both."""
        query, key = getattr(self, "query", None), getattr(self, "key", None)
        return [] if query is None or key is None else [(query, key)]

    def forward(
        self,
        x_BND: Tensor,
        context: Context,
        *,
        source_BMD: Tensor | None = None,
        state: Any = None,
    ) -> Out:
        """Refuse, zero the padding, mix, merge the heads, zero the padding."""
        self._refuse(x_BND, context, source_BMD, state)
        x_BND, source_BMD, context = _without_padding(x_BND, source_BMD, context)
        if isinstance(state, CrossState):
            q_BHNK = split_heads(self.query(x_BND), self.dims.heads)
            out_BHNV = self.attend_kept(q_BHNK, state.kept, context)
            state = state._replace(seen_B=state.seen_B + x_BND.shape[1])
        else:
            out_BHNV, state = self.mix(x_BND, context, source_BMD, state)
        y_BND = self.output(merge_heads(out_BHNV))
        return Out(zero_padding(y_BND, context.query_mask_BN), state)

    def reference(
        self, x_BND: Tensor, context: Context, *, source_BMD: Tensor | None = None
    ) -> Tensor:
        """Return the projections around the oracle, (B, N, D)."""
        x_BND, source_BMD, context = _without_padding(x_BND, source_BMD, context)
        q, k, v, extra = self.project(x_BND, context, source_BMD, None)
        out_BHNV, _ = self.oracle(q, k, v, context, **extra)
        y_BND = self.output(merge_heads(out_BHNV.to(x_BND.dtype)))
        return zero_padding(y_BND, context.query_mask_BN)

    def projection_operations(self, n: int) -> int:
        """Operations of all four projections of n positions; fewer heads of keys take fewer."""
        shared_width = self.kv_heads * self.dims.head_width
        return 2 * n * self.dims.width * 2 * (self.dims.qkv_width + shared_width)

    def pair_operations(self, pairs: int) -> int:
        """Operations of so many pairs of a query and a key in each head: their logits, and the
        values that these weigh."""
        return 2 * 2 * pairs * self.dims.qkv_width

    def mix(
        self, x_BND: Tensor, context: Context, source_BMD: Tensor | None, state: Any
    ) -> tuple[Tensor, Any]:
        """Return (B, H, N, V) from inputs: project, then attend."""
        q, k, v, extra = self.project(x_BND, context, source_BMD, state)
        return self.attend(q, k, v, context, state, **extra)

    def project(
        self, x_BND: Tensor, context: Context, source_BMD: Tensor | None, state: Any
    ) -> Heads:
        """Return queries, keys and values by head, turned by position where the scheme does so."""
        source = x_BND if source_BMD is None else source_BMD
        q_BHNK = split_heads(self.query(x_BND), self.dims.heads)
        k_BGMK = split_heads(self.key(source), self.kv_heads)
        v_BGMV = split_heads(self.value(source), self.kv_heads)
        position = context.position
        if position is not None and position.card.acts_on == "queries-keys":
            n, m = q_BHNK.shape[2], k_BGMK.shape[2]
            rows, columns = position_ids(n, m, context, state, q_BHNK.device)
            q_BHNK = position.rotate(q_BHNK, rows)
            k_BGMK = position.rotate(k_BGMK, columns)
        return Heads(q_BHNK, k_BGMK, v_BGMV)

    # Arguments after `context` differ: a state, and by keyword the entries of `Heads.extra`.
    @abstractmethod
    def attend(
        self, q_BHNK: Any, k_BGMK: Any, v_BGMV: Tensor, context: Context, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Any]:
        """Return (B, H, N, V) and the advanced state: the mechanism itself, fast."""

    def attend_kept(self, q_BHNK: Tensor, kept: Any, context: Context) -> Tensor:
        """Return (B, H, N, V) of queries to the source of which `keep_source` kept this."""
        raise UnsupportedError(f"{self.name} keeps nothing of another sequence; give it each time")

    def oracle(
        self, q_BHNK: Any, k_BGMK: Any, v_BGMV: Tensor, context: Context, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Return (B, H, N, V) and the weights (B, H, N, M), dense float64.

        The paper's formula, never the implementation: shares parameters and draws, no code path.
        Ours all have one; other people's have none.
        """
        raise UnsupportedError(f"{self.name} has no oracle; compare with nothing")

    def comes_near(
        self, q_BHNK: Tensor, k_BGMK: Tensor, v_BGMV: Tensor, context: Context
    ) -> Exact | None:
        """Return the softmax attention that it approximates where these are its queries, keys and
        values; None where it claims none."""
        if self.card.softmax == "never":
            return None
        return Exact(Heads(q_BHNK, k_BGMK, v_BGMV), default_scale(q_BHNK.shape[-1]))

    def support(self, n: int, m: int, context: Context, *args: Any, **kwargs: Any) -> Tensor:
        """Return which of n queries may depend on which of m keys.

        Boolean, on the CPU: (N, M), or (B, H, N, M) where it depends on `extra`.
        """
        return causal_mask(n, m) if context.causal else torch.ones(n, m, dtype=torch.bool)


def _without_padding(
    x_BND: Tensor, source_BMD: Tensor | None, context: Context
) -> tuple[Tensor, Tensor | None, Context]:
    """Return inputs and source, zero at padding, and the request with mask and places of the
    keys."""
    if source_BMD is not None:
        source_BMD = zero_padding(source_BMD, context.key_mask_BM)
    elif context.key_mask_BM is None:
        context = replace(context, key_mask_BM=context.query_mask_BN)
    if source_BMD is None and context.positions_BN is not None:
        context = replace(context, source_positions_BM=context.positions_BN)
    return zero_padding(x_BND, context.query_mask_BN), source_BMD, context
