"""Cores that take queries, keys and values by head, (B, H, N, D), and return as much.

B batch   N queries   M keys   H heads   K width of a query or key head   V width of a value head
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from attention_impls.contract import Attention, Context, Dims, MechanismConfig, causal_mask
from lra.adapters.calling import call
from lra.adapters.directions import Directions
from lra.adapters.external import External, is_causal_by_pair_mask
from lra.adapters.masks import MaskedConfig, full_key_mask, pair_mask, refuse_padding
from lra.adapters.outputs import output_of
from lra.core.cards import Capabilities


class AdaptedCore(Attention):
    """Somebody's core between our projections."""

    stranger: ClassVar[External]
    config: MaskedConfig

    def __init__(self, dims: Dims, config: MechanismConfig | None = None, **own: Any) -> None:
        super().__init__(dims, config, **own)
        self.inner = Directions(self._build, two=self.stranger.built_causal)

    def _build(self, causal: bool) -> torch.nn.Module:
        # The width that a core is built with is that of one head.
        dims = replace(self.dims, width=self.dims.head_width)
        return self.stranger.build(dims, self.config, layer_index=self.layer_index, causal=causal)

    def _refuse(
        self, x_BND: Tensor, context: Context, source_BMD: Tensor | None, state: Any
    ) -> None:
        refuse_padding(self, context)
        super()._refuse(x_BND, context, source_BMD, state)

    def attend(
        self,
        q_BHNK: Tensor,
        k_BHMK: Tensor,
        v_BHMV: Tensor,
        context: Context,
        state: None = None,
    ) -> tuple[Tensor, None]:
        """Return (B, H, N, V), and no state."""
        asks = self.stranger.asks
        n, m = q_BHNK.shape[2], k_BHMK.shape[2]
        keep_BM, causal_NM = context.key_mask_BM, None
        if keep_BM is None and (self.config.always_mask or self.stranger.needs_mask):
            keep_BM = full_key_mask(k_BHMK[:, 0])
        if context.causal and is_causal_by_pair_mask(self.stranger):
            causal_NM = causal_mask(n, m, q_BHNK.device)
        in_pairs = pair_mask(None if "key_mask" in asks else keep_BM, causal_NM)
        masks = {"key_mask": keep_BM, "pairs_mask": in_pairs}
        named: dict[str, Any] = {**self.stranger.masks(masks, self.config, q_BHNK.dtype)}
        if context.causal and not is_causal_by_pair_mask(self.stranger) and "causal" in asks:
            named[asks["causal"]] = True
        named |= self.stranger.tables(k_BHMK, self.dims.head_width)
        shape = torch.Size((*q_BHNK.shape[:3], v_BHMV.shape[3]))
        given = self._called(context.causal, q_BHNK, k_BHMK, v_BHMV, named)
        return output_of(given, shape, self.name), None

    def _called(
        self,
        causal: bool,
        q_BHNK: Tensor,
        k_BHMK: Tensor,
        v_BHMV: Tensor,
        named: dict[str, Any],
    ) -> Any:
        positional, by_name = self.stranger.attends(q_BHNK, k_BHMK, v_BHMV)
        named = {**by_name, **named}
        return call(self.stranger, self.config, self.inner, causal, positional, named)


def capabilities(stranger: External) -> Capabilities:
    """Return the capabilities that its signatures offer."""
    sizes, asks = stranger.sizes, stranger.asks
    causal = stranger.built_causal or {"causal", "pairs_mask"} & asks.keys()
    return Capabilities(
        bidirectional=True,
        causal="strict" if causal else "no",
        cross=True,
        padding="length" if {"key_mask", "pairs_mask"} & asks.keys() else "none",
        fixed_length="max_length" in sizes,
        rotary=True,
    )
