"""Performer: softmax attention through positive random features (FAVOR+).

B batch   N queries   M keys   H heads   K width of a query or key head   V width of a value head
R features
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
import torch
from torch import Tensor, nn

from attention_impls._draws import seeded
from attention_impls.contract import (
    Attention,
    Context,
    Convergence,
    Dims,
    MechanismConfig,
    split_heads,
)
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
from attention_impls.kernel._draws import Norms, orthogonal_draws
from attention_impls.kernel._features import FeatureMap, ReluFeatures, SoftmaxFeatures
from attention_impls.kernel._products import working_dtype
from lra.core.cards import AttentionCard, Capabilities


class PerformerConfig(MechanismConfig, frozen=True):
    """Hyper-parameters of the Performer."""

    features: Annotated[int, msgspec.Meta(ge=1)] = 256
    """R, random features per head. The error against softmax falls as 1 / R."""
    kernel: Literal["softmax", "relu"] = "softmax"
    """softmax: positive features of the exponential kernel. relu: the paper's generalised
    attention with features max(omega . x, 0) + 0.001, which does not approximate softmax."""
    norms: Norms = "chi"
    """Lengths of the draws: chi-distributed like those of Gaussian rows (unbiased), or all sqrt(K)
    (the paper's regularised kernel: less variance, some bias)."""
    redraw_every: Annotated[int, msgspec.Meta(ge=0)] = 1000
    """Optimiser steps between fresh draws; 0 keeps the first. The paper redraws now and then
    without naming a period; 1000 is that of the usual PyTorch port."""
    parity: Literal["none", "lra2021"] = "none"
    """lra2021: the arena's default, features max(x, 0) + 0.001 of queries and keys as they are, one
    per channel. Nothing is drawn or scaled, so the other fields have no effect. (Its ListOps had
    the paper's with features=2.) Unlike there, padding is masked."""


class Performer(Attention):
    """phi(q) . phi(k) for exp(q . k / sqrt(K)), with phi(x) = exp(omega . x - |x|^2 / 2).

    In O((N + M) R) time; x is q or k divided by K^(1/4). Approximates softmax, numerator and
    denominator each without bias. The rows omega are Gaussian, orthogonal in blocks of K, drawn per
    head from the seed and the layer's number. Ours: exact log scales per key, where the paper's
    code adds 1e-4 or 1e-6 to each feature (attention turns uniform where features are small) and
    subtracts a maximum over all keys (which leaks the future under a causal mask); and the causal
    form runs by chunks. Weights always sum to 1; where the denominator falls below
    1e-31 (in float32) its digits are lost and the row is zero.
    """

    card = AttentionCard(
        title="Performer (FAVOR+)",
        paper="Choromanski et al., Rethinking Attention with Performers, ICLR 2021, "
        "arXiv:2009.14794",
        year=2020,
        time="O((n + m) r d)",
        memory="O(n + m + r d); O(n r d / 64) in causal training",
        softmax="in the limit",
        weights="convex",
        capabilities=Capabilities(
            bidirectional=True,
            causal="strict",
            cross=True,
            padding="content",
            decode="exact",
            cross_decode="exact",
            rotary=True,
            positions_by_index=True,
            stochastic=True,
        ),
    )
    Config = PerformerConfig
    config: PerformerConfig
    trials = (
        PerformerConfig(kernel="relu", features=24),
        PerformerConfig(norms="sqrt"),
        PerformerConfig(parity="lra2021"),
    )
    omega_HRK: Tensor

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
        self.register_buffer("omega_HRK", self._draw(0))

    @classmethod
    def convergence(cls) -> Convergence:
        """Return the law of positive random features, whose error falls as 1 / R."""
        budgets = (128, 256, 512)
        return Convergence(tuple((r, PerformerConfig(features=r)) for r in budgets))

    @classmethod
    def predicted_error(
        cls, config: MechanismConfig, *, head_width: int, input_scale: float, causal: bool = False
    ) -> float | None:
        """Return the error of positive features to first order in 1 / sqrt(R); None where it has no
        mean square, as queries and keys are too large.

        A weight exp(x.y_j) is estimated as that times 1 + e_j, where
        E e_j e_l = (exp((x + y_j).(x + y_l)) - 1) / R for independent draws: with j = l it is lemma
        2 of the paper. Ours, what that does to the normalised output: with p the softmax weights it
        is off by the sum of p_j (e_j - sum of p_l e_l) v_j. Under p, keys N(0, t) are N(t x, t),
        under its square N(2 t x, t), so that all means are of Gaussian vectors. Draws orthogonal in
        blocks err a little less.
        """
        assert isinstance(config, PerformerConfig)
        if causal or config.kernel != "softmax" or config.norms != "chi" or config.parity != "none":
            return None
        t = input_scale**2 / head_width**0.5
        one, two = 1 + t, 1 + 2 * t
        # Variance of a coordinate of x, each x weighted by its share of the exact output's square.
        spread = t / (1 - 2 * t**2) if 2 * t**2 < 1 else float("inf")
        moments = []
        for a, b, same in ((two, two, True), (two, one, False), (one, one, False)):
            # Variances and covariance of a x + noise and b x + noise, of variance t each.
            first, second = a**2 * spread + t, b**2 * spread + t
            shared = a * b * spread + (t if same else 0.0)
            finite = (1 - shared) ** 2 - first * second
            if shared >= 1.0 or finite <= 0.0:
                return None
            moments.append(finite ** (-head_width / 2))
        own, crossed, rest = moments
        return float(((own - 2 * crossed + rest) / config.features) ** 0.5)

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
        features = self._features(working_dtype(q_BHNK, k_BHMK, v_BHMV))
        return kernel_attention(q_BHNK, k_BHMK, v_BHMV, context, state, features)

    def oracle(
        self, q_BHNK: Tensor, k_BHMK: Tensor, v_BHMV: Tensor, context: Context
    ) -> tuple[Tensor, Tensor]:
        """Return the same from the full matrix of phi(q_i) . phi(k_j), kept in logarithms."""
        if self.config.parity == "lra2021":
            phi_q, phi_k = q_BHNK.double().relu() + 0.001, k_BHMK.double().relu() + 0.001
            return normalised((phi_q @ phi_k.mT).log(), v_BHMV, context)
        omega, shrink = self.omega_HRK.double(), q_BHNK.shape[-1] ** -0.25
        x, y = q_BHNK.double() * shrink, k_BHMK.double() * shrink
        along_x = torch.einsum("bhnk,hrk->bhnr", x, omega)
        along_y = torch.einsum("bhmk,hrk->bhmr", y, omega)
        if self.config.kernel == "relu":
            phi_q, phi_k = along_x.relu() + 0.001, along_y.relu() + 0.001
            return normalised((phi_q @ phi_k.mT).log(), v_BHMV, context)
        log_phi_q = along_x - x.square().sum(-1, keepdim=True) / 2
        log_phi_k = along_y - y.square().sum(-1, keepdim=True) / 2
        top_q = log_phi_q.detach().amax(-1, keepdim=True)
        top_k = log_phi_k.detach().amax(-1, keepdim=True)
        weights_BHNM = (log_phi_q - top_q).exp() @ (log_phi_k - top_k).exp().mT
        return normalised(weights_BHNM.log() + top_k.mT, v_BHMV, context)

    def operations(self, n: int, *, causal: bool = False) -> int:
        """In each head 2 N K R for the features of queries, as many for those of keys (in parity
        too, where the draws are the unit matrix), then sums over keys and reads by queries."""
        from attention_impls.kernel._operations import kernel_operations

        heads, features, width = self.omega_HRK.shape
        head = kernel_operations(n, features, width, causal=causal, like=self.omega_HRK)
        return self.projection_operations(n) + heads * (2 * 2 * n * width * features + head)

    def empty_state(
        self, batch: int, *, length: int, device: torch.device, dtype: torch.dtype
    ) -> KernelState:
        """Return the empty state; its size is the same for any length."""
        heads, features, width = self.omega_HRK.shape
        return empty_state(batch, heads, features, width, device, dtype)

    def keep_source(
        self, source_BMD: Tensor, mask_BM: Tensor | None, dtype: torch.dtype
    ) -> SourceSum:
        """Return the sum over the source; its size is the same for any length."""
        k_BHMK, v_BHMV = (
            split_heads(projection(source_BMD), self.dims.heads)
            for projection in (self.key, self.value)
        )
        dtype = torch.promote_types(dtype, torch.float32)
        return keep_sum(k_BHMK, v_BHMV, mask_BM, self._features(dtype), dtype)

    def attend_kept(self, q_BHNK: Tensor, kept: SourceSum, context: Context) -> Tensor:
        """Return what the sum gives to each query."""
        return attend_sum(q_BHNK, kept, self._features(kept.sum_BHUR.dtype))

    @torch.no_grad()
    def after_step(self, step: int) -> None:
        """Draw afresh where the period ends; a resumed run makes the same draws."""
        period = self.config.redraw_every
        if period and step % period == 0 and self.config.parity == "none":
            self.omega_HRK.copy_(self._draw(step // period))

    def _features(self, dtype: torch.dtype) -> FeatureMap:
        if self.config.parity == "lra2021":
            return ReluFeatures(self.omega_HRK.to(dtype))
        kind = SoftmaxFeatures if self.config.kernel == "softmax" else ReluFeatures
        return kind.of(self.omega_HRK, dtype)

    def _draw(self, number: int) -> Tensor:
        generator = seeded(self.seed, self.layer_index, number)
        dims, config = self.dims, self.config
        if config.parity == "lra2021":
            return torch.eye(dims.head_width).repeat(dims.heads, 1, 1)
        return orthogonal_draws(
            dims.heads, config.features, dims.head_width, config.norms, generator
        )
