"""Synthesizer: attention whose weights are made without comparing queries and keys.

B batch   N positions   M positions as keys   D model width   H heads   K width of a head
V width of a value head   P longest input   R rank
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

import msgspec
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_impls._oracle import softmax_oracle
from attention_impls.contract import (
    Attention,
    Context,
    Dims,
    Heads,
    MechanismConfig,
    causal_mask,
    default_scale,
    split_heads,
)
from attention_impls.dense._fused import fused_softmax
from attention_impls.dense._pairs import permitted_pairs
from attention_impls.pattern._parts import needs_autograd
from lra.core.cards import AttentionCard, Capabilities

RANGE = 60.0
"""Widest range of a row's logits that float32 holds as one row of exponentials: e^-60 is far from
its smallest number, whatever of the row a mask leaves over."""


FEW = 16
"""Examples up to which a GPU makes shared logits for each anew sooner than it writes and reads them
(by count: 16 bytes of memory a logit against 4 operations a column of factors and values)."""


class SynthesizerConfig(MechanismConfig, frozen=True):
    """Hyper-parameters of the Synthesizer."""

    logits: Literal["factorised", "random", "dense"] = "factorised"
    """factorised: a trained matrix per head, R1 R2^T. random: the same without factors. dense: a
    row per position, made of its input by two linear maps with a ReLU between."""
    rank: Annotated[int, msgspec.Meta(ge=1)] = 32
    """R, columns of the factors; 32 is the Long Range Arena's (the paper: 8)."""
    dot_product: bool = False
    """Adds q . k / sqrt(K) to the logits: the paper's mixture."""


class Synthesizer(Attention):
    """softmax(A) v, where A is trained or made of each input alone, (H, N, M), and never scaled.

    In O(N M) time and memory. Without `dot_product` there are no projections to queries and keys,
    nor their parameters, as in the paper. The logits belong to places, so the length is limited,
    and there is no second sequence.

    Ours: what does not depend on the input is exponentiated once for the batch, and padding is
    taken out of sum and normaliser; factors and matrices start as Gaussians that give logits of
    variance 1.

    The Long Range Arena's own runs are `logits=random dot_product=true`, with padding masked as
    here, so there is no `parity`: its text configuration names factorised logits of rank 32, which
    never reach the model. Two of its faults are not repeated: in the dense form a reshape scrambled
    heads and positions, and masks were dropped without the dot product.
    """

    card = AttentionCard(
        title="Synthesizer",
        paper="Tay et al., Synthesizer: Rethinking Self-Attention in Transformer Models, "
        "ICML 2021, arXiv:2005.00743",
        year=2020,
        time="O(n m d)",
        memory="O(n m)",
        weights="convex",
        capabilities=Capabilities(
            bidirectional=True,
            causal="strict",
            padding="content",
            fixed_length=True,
        ),
    )
    Config = SynthesizerConfig
    config: SynthesizerConfig
    trials = (
        SynthesizerConfig(logits="random"),
        SynthesizerConfig(logits="dense"),
        SynthesizerConfig(logits="random", dot_product=True),
        SynthesizerConfig(logits="dense", dot_product=True),
    )

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
        if not self.config.dot_product:
            del self.query, self.key
        heads, longest = dims.heads, dims.max_length
        if self.config.logits == "factorised":
            shape, deviation = (heads, longest, self.config.rank), self.config.rank**-0.25
            self.left_HPR = nn.Parameter(torch.empty(shape).normal_(std=deviation))
            self.right_HPR = nn.Parameter(torch.empty(shape).normal_(std=deviation))
        elif self.config.logits == "random":
            self.logits_HPP = nn.Parameter(torch.empty(heads, longest, longest).normal_())
        else:
            self.hidden = nn.Linear(dims.width, dims.qkv_width, bias=dims.projection_biases)
            nn.init.xavier_uniform_(self.hidden.weight)
            if dims.projection_biases:
                nn.init.zeros_(self.hidden.bias)
            deviation = (dims.head_width / 2) ** -0.5
            shape = (heads, dims.head_width, longest)
            self.rows_HKP = nn.Parameter(torch.empty(shape).normal_(std=deviation))

    def mix(
        self, x_BND: Tensor, context: Context, source_BMD: Tensor | None, state: Any
    ) -> tuple[Tensor, Any]:
        """Have the logits made within a fused kernel, on a GPU, where they are products of factors:
        these stand for queries and keys, beside which true ones are further columns.

        Not where many examples without padding share them, of which each would make its own. With
        padding they cannot without asking how far apart they are, which a GPU is waited for.
        """
        shared = self.config.logits == "factorised" and not self.config.dot_product
        if (
            not needs_autograd(x_BND, None)
            or self.config.logits == "random"
            or (shared and x_BND.shape[0] > FEW and context.key_mask_BM is None)
        ):
            return super().mix(x_BND, context, source_BMD, state)
        batch, n, _ = x_BND.shape
        heads, width = self.dims.heads, self.dims.head_width
        v_BHMV = split_heads(self.value(x_BND), heads)
        left, right = self._factors(x_BND)
        lefts = [left.to(v_BHMV.dtype).expand(batch, -1, -1, -1)]
        rights = [right.mT.to(v_BHMV.dtype).expand(batch, -1, -1, -1)]
        if self.config.dot_product:
            lefts.append(split_heads(self.query(x_BND), heads) * default_scale(width))
            rights.append(split_heads(self.key(x_BND), heads))
        q_BHNK, k_BHMK = torch.cat(lefts, dim=-1), torch.cat(rights, dim=-1)
        # As wide as the values, without which the fastest kernels do not serve.
        more = max(0, width - q_BHNK.shape[-1])
        q_BHNK, k_BHMK = F.pad(q_BHNK, (0, more)), F.pad(k_BHMK, (0, more))
        permitted = permitted_pairs(
            n, n, causal=context.causal, key_mask_BM=context.key_mask_BM, device=x_BND.device
        )
        by_name = context.causal and context.key_mask_BM is None
        out_BHNV = fused_softmax(
            q_BHNK / default_scale(q_BHNK.shape[-1]),
            k_BHMK,
            v_BHMV,
            None if by_name else permitted,
            None,
            causal=by_name,
            dropout=self.dims.dropout if self.training else 0.0,
        )
        return out_BHNV, None

    def project(
        self, x_BND: Tensor, context: Context, source_BMD: Tensor | None, state: Any
    ) -> Heads:
        """Return values and logits; queries and keys only where the dot product takes part.

        The logits have no batch, (H, N, M), where they do not depend on the input.
        """
        extra = {"logits": self._logits(x_BND)}
        if self.config.dot_product:
            return super().project(x_BND, context, source_BMD, state)._replace(extra=extra)
        v_BHMV = split_heads(self.value(x_BND), self.dims.heads)
        return Heads(None, None, v_BHMV, extra)

    def attend(
        self,
        q_BHNK: Tensor | None,
        k_BHMK: Tensor | None,
        v_BHMV: Tensor,
        context: Context,
        state: Any = None,
        *,
        logits: Tensor,
    ) -> tuple[Tensor, Any]:
        """Return softmax(logits) v; q . k is among the logits where there are q and k."""
        n, m = logits.shape[-2:]
        permitted = permitted_pairs(
            n, m, causal=context.causal, key_mask_BM=context.key_mask_BM, device=v_BHMV.device
        )
        dropout = self.dims.dropout if self.training else 0.0
        padded = context.key_mask_BM is not None
        if logits.dim() == 3 and padded and needs_autograd(v_BHMV, None) and q_BHNK is None:
            # Weights for each example, by a fused kernel that has nothing to compare.
            q_BHNK = k_BHMK = torch.zeros_like(v_BHMV)
        if q_BHNK is not None and k_BHMK is not None:
            return fused_softmax(q_BHNK, k_BHMK, v_BHMV, permitted, logits, dropout=dropout), None
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        if logits.dim() == 3:
            out_BHNV = _shared_softmax(logits, v_BHMV, context, dropout)
            if out_BHNV is not None:
                return out_BHNV, None
            logits = logits.unsqueeze(0)
        return _own_softmax(logits, permitted, dropout).to(v_BHMV.dtype) @ v_BHMV, None

    def oracle(
        self,
        q_BHNK: Tensor | None,
        k_BHMK: Tensor | None,
        v_BHMV: Tensor,
        context: Context,
        *,
        logits: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Return the same with the (N, M) softmax of every example, in float64."""
        batch, heads, m, _ = v_BHMV.shape
        synthetic_BHNM = logits.double().expand(batch, heads, -1, -1)
        # The oracle's own logits are q . k / sqrt(width): unit vectors pick out a row of A.
        unit = torch.eye(m, dtype=torch.float64, device=v_BHMV.device).expand_as(synthetic_BHNM)
        left = [synthetic_BHNM]
        right = [unit]
        if q_BHNK is not None and k_BHMK is not None:
            left.append(q_BHNK.double() / math.sqrt(q_BHNK.shape[-1]))
            right.append(k_BHMK.double())
        q = torch.cat(left, dim=-1)
        q = q * math.sqrt(q.shape[-1])
        return softmax_oracle(q, torch.cat(right, dim=-1), v_BHMV, context)

    def operations(self, n: int, *, causal: bool = False) -> int:
        """2 N^2 of each channel for the values that weights bring, and for logits 2 N^2 R per head
        (factorised), a projection and 2 N^2 of each channel (dense) or nothing (random), and as
        many as to queries and keys where these take part; else they are not projected."""
        heads, qkv_width = self.dims.heads, self.dims.qkv_width
        projected = self.projection_operations(n)
        if self.config.dot_product:
            total = projected + self.pair_operations(n * n)
        else:
            total = (projected + self.pair_operations(n * n)) // 2
        if self.config.logits == "factorised":
            total += 2 * n * n * self.config.rank * heads
        elif self.config.logits == "dense":
            total += projected // 4 + 2 * n * n * qkv_width
        return total

    def _logits(self, x_BND: Tensor) -> Tensor:
        if self.config.logits == "random":
            n = x_BND.shape[1]
            return self.logits_HPP[:, :n, :n]
        left, right = self._factors(x_BND)
        return left @ right

    def _factors(self, x_BND: Tensor) -> tuple[Tensor, Tensor]:
        """Return A's factors, (H, N, R) and (H, R, M), or (B, H, N, K) and (H, K, M)."""
        n = x_BND.shape[1]
        if self.config.logits == "factorised":
            return self.left_HPR[:, :n], self.right_HPR[:, :n].mT
        hidden_BHNK = split_heads(F.relu(self.hidden(x_BND)), self.dims.heads)
        return hidden_BHNK, self.rows_HKP[:, :, :n]


def _shared_softmax(
    logits_HNM: Tensor, v_BHMV: Tensor, context: Context, dropout: float
) -> Tensor | None:
    """Return (B, H, N, V) by one product for the whole batch; None where, with padding, a row's
    logits are too far apart for that: it asks, so padding is for a CPU alone.

    A row's maximum is over all keys, padding included, whose share is taken out of both sum and
    normaliser. Dropout falls on the same pairs in all examples, as in the Long Range Arena.
    """
    batch, heads, m, width = v_BHMV.shape
    n, precise = logits_HNM.shape[1], logits_HNM.dtype
    if context.causal:
        logits_HNM = logits_HNM.masked_fill(~causal_mask(n, m, logits_HNM.device), -math.inf)
    key_mask_BM = context.key_mask_BM
    if key_mask_BM is None or not m:
        weights_HNM = F.dropout(logits_HNM.softmax(-1), dropout, dropout > 0.0)
        v_HMX = v_BHMV.permute(1, 2, 0, 3).reshape(heads, m, batch * width)
        out = (weights_HNM.to(v_HMX.dtype) @ v_HMX).view(heads, n, batch, width)
        return out.permute(2, 0, 1, 3)

    top_HN1 = logits_HNM.detach().amax(-1, keepdim=True)
    finite = logits_HNM.detach().masked_fill(logits_HNM == -math.inf, math.inf)
    if bool((top_HN1 - finite.amin(-1, keepdim=True)).amax() > RANGE):
        return None
    shares_HNM = (logits_HNM - top_HN1).exp()
    v_BHMV, dtype = v_BHMV.masked_fill(~key_mask_BM[:, None, :, None], 0.0), v_BHMV.dtype
    v_HMX = v_BHMV.to(precise).permute(1, 2, 0, 3).reshape(heads, m, batch * width)
    total_HNB1 = (shares_HNM @ key_mask_BM.to(precise).mT).unsqueeze(-1)
    kept_HNM = F.dropout(shares_HNM, dropout, dropout > 0.0)
    out = (kept_HNM @ v_HMX).view(heads, n, batch, width)
    out = out / total_HNB1.masked_fill(total_HNB1 == 0.0, 1.0)
    return out.permute(2, 0, 1, 3).to(dtype)


def _own_softmax(logits_BHNM: Tensor, permitted: Tensor | None, dropout: float) -> Tensor:
    """Return the weights of every example; a row without a permitted key is zero."""
    if permitted is None:
        return F.dropout(logits_BHNM.softmax(-1), dropout, dropout > 0.0)
    any_key = permitted.any(dim=-1, keepdim=True)
    weights = logits_BHNM.masked_fill(~permitted & any_key, -math.inf).softmax(-1)
    return F.dropout(weights.masked_fill(~any_key, 0.0), dropout, dropout > 0.0)
