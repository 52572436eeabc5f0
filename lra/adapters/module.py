"""Modules from (B, N, D) to (B, N, D), such as `nn.MultiheadAttention`.

B batch   N queries   M keys   D model width
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from attention_impls.contract import (
    Context,
    Dims,
    Layer,
    MechanismConfig,
    Out,
    causal_mask,
    zero_padding,
)
from lra.adapters.calling import call
from lra.adapters.directions import Directions
from lra.adapters.external import External, is_causal_by_pair_mask
from lra.adapters.masks import MaskedConfig, full_key_mask, refuse_padding
from lra.adapters.outputs import output_of
from lra.core.cards import Capabilities
from lra.core.errors import UsageError
from lra.core.protocol import Positive


class ModuleConfig(MaskedConfig, frozen=True):
    """Configuration of the call."""

    pad_to: Positive = 1
    """Inputs are padded at the end to a multiple of this, as the model around it would."""


class AdaptedModule(Layer):
    """Somebody's module, called with the parts of a request that its signature has names for."""

    stranger: ClassVar[External]
    config: ModuleConfig

    def __init__(self, dims: Dims, config: MechanismConfig | None = None, **own: Any) -> None:
        super().__init__(dims, config, **own)
        if self.square and dims.width != dims.qkv_width:
            raise UsageError(
                f"{self.name} has heads as wide as the model's width over their number; "
                f"width {dims.width} and qkv width {dims.qkv_width} must be equal"
            )
        self.inner = Directions(self._build, two=self.stranger.built_causal)

    @property
    def _wants_mask(self) -> bool:
        """Whether it gets a mask even where nothing is padded."""
        return self.config.always_mask or self.stranger.needs_mask

    def _build(self, causal: bool) -> torch.nn.Module:
        longest = self.dims.max_length + -self.dims.max_length % self.config.pad_to
        dims = replace(self.dims, max_length=longest)
        return self.stranger.build(dims, self.config, layer_index=self.layer_index, causal=causal)

    def _refuse(
        self, x_BND: Tensor, context: Context, source_BMD: Tensor | None, state: Any
    ) -> None:
        refuse_padding(self, context)
        super()._refuse(x_BND, context, source_BMD, state)

    def forward(
        self,
        x_BND: Tensor,
        context: Context,
        *,
        source_BMD: Tensor | None = None,
        state: Any = None,
    ) -> Out:
        """Refuse what it cannot do, call it, and check the shape of what it returns."""
        self._refuse(x_BND, context, source_BMD, state)
        query_mask_BN, key_mask_BM = context.query_mask_BN, context.key_mask_BM
        n = x_BND.shape[1]
        if source_BMD is None:
            mask_BN = query_mask_BN if key_mask_BM is None else key_mask_BM
            x_BND, query_mask_BN = self._padded(x_BND, mask_BN)
            key_mask_BM = query_mask_BN
        elif self._wants_mask:
            query_mask_BN = full_key_mask(x_BND) if query_mask_BN is None else query_mask_BN
            key_mask_BM = full_key_mask(source_BMD) if key_mask_BM is None else key_mask_BM
        positional, named = self._arguments(
            x_BND, source_BMD, query_mask_BN, key_mask_BM, context.causal
        )
        given = call(self.stranger, self.config, self.inner, context.causal, positional, named)
        y_BND = output_of(given, x_BND.shape, self.name)
        return Out(zero_padding(y_BND[:, :n], context.query_mask_BN))

    def _padded(self, x_BND: Tensor, mask_BN: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Append zeros up to the multiple asked for, masked where it takes a mask."""
        batch, n, width = x_BND.shape
        missing = -n % self.config.pad_to
        if mask_BN is None and (self._wants_mask or (missing and "key_mask" in self.stranger.asks)):
            mask_BN = full_key_mask(x_BND)
        if not missing:
            return x_BND, mask_BN
        x_BND = torch.cat([x_BND, x_BND.new_zeros(batch, missing, width)], dim=1)
        if mask_BN is None:
            return x_BND, None
        return x_BND, torch.cat([mask_BN, mask_BN.new_zeros(batch, missing)], dim=1)

    def _arguments(
        self,
        x_BND: Tensor,
        source_BMD: Tensor | None,
        query_mask_BN: Tensor | None,
        key_mask_BM: Tensor | None,
        causal: bool,
    ) -> tuple[list[Tensor], dict[str, Any]]:
        """Return the arguments of its call, by its own names."""
        asks = self.stranger.asks
        keys = x_BND if source_BMD is None else source_BMD
        positional: list[Tensor] = [x_BND]
        named: dict[str, Any] = {}
        masks = {"key_mask": key_mask_BM}
        if "key" in asks:
            positional, by_name = self.stranger.attends(x_BND, keys, keys)
            named |= by_name
        elif source_BMD is not None:
            named[asks["source"]] = source_BMD
            masks = {"key_mask": query_mask_BN, "source_mask": key_mask_BM}
        if causal and is_causal_by_pair_mask(self.stranger):
            masks["pairs_mask"] = causal_mask(x_BND.shape[1], keys.shape[1], x_BND.device)
        elif causal and not self.stranger.built_causal:
            named[asks["causal"]] = True
        named |= self.stranger.masks(masks, self.config, x_BND.dtype)
        named |= self.stranger.tables(x_BND, self.dims.head_width)
        if "need_weights" in self.stranger.call:
            named["need_weights"] = False
        return positional, named


def capabilities(stranger: External) -> Capabilities:
    """Return the capabilities that its signatures offer."""
    sizes, asks = stranger.sizes, stranger.asks
    causal = stranger.built_causal or "causal" in asks or is_causal_by_pair_mask(stranger)
    # One mask for two sequences cannot give the padding of both.
    both_masked = ("key_mask" in asks) == ("source_mask" in asks)
    return Capabilities(
        bidirectional=True,
        causal="strict" if causal else "no",
        cross="key" in asks or ("source" in asks and both_masked),
        padding="length" if "key_mask" in asks else "none",
        fixed_length="max_length" in sizes,
    )
