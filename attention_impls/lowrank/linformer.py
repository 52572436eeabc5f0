"""Linformer: softmax attention over keys and values compressed to a fixed number of slots.

B batch   N queries   M keys   D model width   H heads   K width of a query or key head
V width of a value head   P compressed keys (the rank)
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_impls.contract import (
    Attention,
    Context,
    Dims,
    MechanismConfig,
    split_heads,
    zero_padding,
)
from lra.core.cards import AttentionCard, Capabilities
from lra.core.errors import UsageError


class LinformerConfig(MechanismConfig, frozen=True):
    """Hyper-parameters of the Linformer."""

    rank: Annotated[int, msgspec.Meta(ge=1)] = 256
    """P, slots that keys and values are compressed to; the paper's for a length of 1024."""
    sharing: Literal["headwise", "key-value", "layerwise"] = "headwise"
    """Which projections are one and the same, from least to most, as the paper names them.
    headwise: E and F per layer, for all heads. key-value: E = F too. layerwise: one E for all."""


class SourceSlots(NamedTuple):
    """Keys and values of another sequence, compressed."""

    k_BHPK: Tensor
    v_BHPV: Tensor


class Linformer(Attention):
    """softmax(q (E^T k)^T / sqrt(K)) (F^T v), with E and F learned, (maximum length, P).

    In O((N + M) P) time; equal to softmax attention only where E = F is a permutation. Weights
    over the M keys may be negative and need not sum to 1, and every slot mixes all positions, so
    there is no causal form. Keys and values of padding are zeroed before E. Ours: `mix` compresses
    the input before projecting it. E and F have no bias and start as Gaussians of variance 1 / P,
    the theorem's. The Long Range Arena's own runs are `rank=16 sharing=key-value`, but that it read
    padding too.
    """

    card = AttentionCard(
        title="Linformer",
        paper="Wang et al., Linformer: Self-Attention with Linear Complexity, 2020, "
        "arXiv:2006.04768",
        year=2020,
        time="O((n + m) r d)",
        memory="O(n + r d); O(n r) with dropout on a CPU",
        softmax="approximates",
        capabilities=Capabilities(
            bidirectional=True,
            cross=True,
            padding="content",
            cross_decode="exact",
            fixed_length=True,
        ),
    )
    Config = LinformerConfig
    config: LinformerConfig
    trials = (LinformerConfig(rank=4), LinformerConfig(rank=4, sharing="layerwise"))

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
        if self.config.sharing != "layerwise":
            shared = Compression(dims, self.config)
        elif shared is None:
            raise UsageError(
                "linformer: sharing 'layerwise' needs one module for all layers; "
                "pass what build_shared returns as shared"
            )
        self.compression = shared

    @classmethod
    def build_shared(cls, dims: Dims, config: MechanismConfig) -> nn.Module | None:
        """Return the one E of all layers where sharing is layerwise."""
        if not isinstance(config, LinformerConfig) or config.sharing != "layerwise":
            return None
        return Compression(dims, config)

    def mix(
        self, x_BND: Tensor, context: Context, source_BMD: Tensor | None, state: Any
    ) -> tuple[Tensor, Any]:
        """Compress the input and then project it, where that is less work.

        E^T (X W + 1 b) = (E^T X) W + (E^T 1) b, where both X and 1 are zero at masked keys. These
        need not be the padded queries, whose inputs the base has zeroed.
        """
        source = x_BND if source_BMD is None else source_BMD
        if not self._input_first(source.shape[1]):
            return super().mix(x_BND, context, source_BMD, state)
        k_BPE, v_BPE = self._compress_inputs(
            zero_padding(source, context.key_mask_BM), context.key_mask_BM
        )
        heads = self.dims.heads
        q_BHNK = split_heads(self.query(x_BND), heads)
        return self._read(q_BHNK, split_heads(k_BPE, heads), split_heads(v_BPE, heads)), None

    def attend(
        self, q_BHNK: Tensor, k_BHMK: Tensor, v_BHMV: Tensor, context: Context, state: Any = None
    ) -> tuple[Tensor, Any]:
        """Zero the padding, compress, and read the slots with exact attention."""
        slots = self._compress(k_BHMK, v_BHMV, context.key_mask_BM)
        return self._read(q_BHNK, *slots), None

    def keep_source(
        self, source_BMD: Tensor, mask_BM: Tensor | None, dtype: torch.dtype
    ) -> SourceSlots:
        """Return the source's slots; their number is the same for any length."""
        heads = self.dims.heads
        if self._input_first(source_BMD.shape[1]):
            k_BPE, v_BPE = self._compress_inputs(source_BMD, mask_BM)
            k_BHPK, v_BHPV = split_heads(k_BPE, heads), split_heads(v_BPE, heads)
        else:
            k_BHMK = split_heads(self.key(source_BMD), heads)
            v_BHMV = split_heads(self.value(source_BMD), heads)
            k_BHPK, v_BHPV = self._compress(k_BHMK, v_BHMV, mask_BM)
        return SourceSlots(k_BHPK.to(dtype), v_BHPV.to(dtype))

    def attend_kept(self, q_BHNK: Tensor, kept: SourceSlots, context: Context) -> Tensor:
        """Read the slots with exact attention."""
        return self._read(q_BHNK, *kept)

    def oracle(
        self, q_BHNK: Tensor, k_BHMK: Tensor, v_BHMV: Tensor, context: Context
    ) -> tuple[Tensor, Tensor]:
        """Return the same with the (N, M) weights softmax(q (E^T k)^T / sqrt(K)) F^T."""
        e_MP, f_MP = (x.double() for x in self.compression(k_BHMK.shape[2]))
        q, k, v = q_BHNK.double(), k_BHMK.double(), v_BHMV.double()
        real_B11M = torch.ones_like(k[:, :1, None, :, 0])
        if context.key_mask_BM is not None:
            real_B11M = real_B11M * context.key_mask_BM[:, None, None, :]
        k_BHPK = torch.einsum("mp,bhmk->bhpk", e_MP, k * real_B11M.mT)
        logits_BHNP = torch.einsum("bhnk,bhpk->bhnp", q, k_BHPK) / math.sqrt(q.shape[-1])
        weights_BHNM = torch.einsum("bhnp,mp->bhnm", logits_BHNP.softmax(-1), f_MP) * real_B11M
        return weights_BHNM @ v, weights_BHNM

    def operations(self, n: int, *, causal: bool = False) -> int:
        """2 N P of each channel that is compressed, of inputs or of keys and values, and N P pairs;
        compressed inputs are projected by the slot, two of the four projections."""
        rank, width, qkv_width = self.config.rank, self.dims.width, self.dims.qkv_width
        total = self.pair_operations(n * rank)
        if not self._input_first(n):
            return total + self.projection_operations(n) + 2 * 2 * n * rank * qkv_width
        compressions = 2 if self.config.sharing == "headwise" else 1
        total += compressions * 2 * n * rank * width
        return total + (self.projection_operations(n) + self.projection_operations(rank)) // 2

    def _compress_inputs(self, source_BMD: Tensor, mask_BM: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return keys and values of the slots, (B, P, E): a source, zero at padding, compressed and
        then projected."""
        e_MP, f_MP = self.compression(source_BMD.shape[1])
        slots_BPD = e_MP.mT @ source_BMD
        k_BPE = self._project_slots(self.key, slots_BPD, e_MP, mask_BM)
        if f_MP is not e_MP:
            slots_BPD = f_MP.mT @ source_BMD
        return k_BPE, self._project_slots(self.value, slots_BPD, f_MP, mask_BM)

    def _compress(
        self, k_BHMK: Tensor, v_BHMV: Tensor, mask_BM: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Return keys (B, H, P, K) and values (B, H, P, V) of the slots, without those of
        padding."""
        e_MP, f_MP = self.compression(k_BHMK.shape[2])
        if mask_BM is not None:
            padding_BHM1 = ~mask_BM[:, None, :, None]
            k_BHMK = k_BHMK.masked_fill(padding_BHM1, 0.0)
            v_BHMV = v_BHMV.masked_fill(padding_BHM1, 0.0)
        return e_MP.mT @ k_BHMK, f_MP.mT @ v_BHMV

    def _read(self, q_BHNK: Tensor, k_BHPK: Tensor, v_BHPV: Tensor) -> Tensor:
        dropout = self.dims.dropout if self.training else 0.0
        return F.scaled_dot_product_attention(q_BHNK, k_BHPK, v_BHPV, dropout_p=dropout)

    def _input_first(self, m: int) -> bool:
        """Whether compressing M inputs, then projecting P slots, takes fewer products."""
        rank, width, qkv_width = self.config.rank, self.dims.width, self.dims.qkv_width
        compressions = 2 if self.config.sharing == "headwise" else 1
        first = compressions * m * rank * width + 2 * rank * width * qkv_width
        return first < 2 * m * width * qkv_width + 2 * m * rank * qkv_width

    @staticmethod
    def _project_slots(
        projection: nn.Linear, slots_BPD: Tensor, e_MP: Tensor, mask_BM: Tensor | None
    ) -> Tensor:
        projected_BPE = F.linear(slots_BPD, projection.weight)
        if projection.bias is None:
            return projected_BPE
        held = e_MP.sum(0) if mask_BM is None else mask_BM.to(e_MP.dtype) @ e_MP
        return projected_BPE + held.unsqueeze(-1) * projection.bias


class Compression(nn.Module):
    """E and F: what each position gives to each slot. One parameter where they are the same."""

    def __init__(self, dims: Dims, config: LinformerConfig) -> None:
        super().__init__()
        shape, deviation = (dims.max_length, config.rank), config.rank**-0.5
        self.key_MP = nn.Parameter(torch.empty(shape).normal_(std=deviation))
        self.value_MP = (
            nn.Parameter(torch.empty(shape).normal_(std=deviation))
            if config.sharing == "headwise"
            else None
        )

    def forward(self, length: int) -> tuple[Tensor, Tensor]:
        """Return E and F for the first `length` positions, (M, P); one object where shared."""
        e_MP = _first_rows(self.key_MP, length)
        return e_MP, e_MP if self.value_MP is None else _first_rows(self.value_MP, length)


def _first_rows(matrix: Tensor, rows: int) -> Tensor:
    """A slice, but not of all rows: its gradient would be copied into a matrix of zeros."""
    return matrix if rows == matrix.shape[0] else matrix[:rows]
