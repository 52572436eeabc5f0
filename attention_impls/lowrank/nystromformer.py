"""Nyströmformer: softmax attention through a few landmarks of queries and keys.

B batch   N queries   M keys   H heads   K width of a query or key head   V width of a value head
P landmarks   J taps of the convolution
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Annotated, Any

import msgspec
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_impls._once import once_differentiable
from attention_impls._oracle import softmax_oracle
from attention_impls.contract import (
    Attention,
    Context,
    Dims,
    Heads,
    MechanismConfig,
    default_scale,
)
from attention_impls.dense._fused import fused_softmax
from attention_impls.lowrank._banded import convolve
from attention_impls.pattern._parts import needs_autograd
from lra.core.cards import AttentionCard, Capabilities
from lra.core.errors import UsageError


class NystromformerConfig(MechanismConfig, frozen=True):
    """Hyper-parameters of the Nyströmformer."""

    landmarks: Annotated[int, msgspec.Meta(ge=1)] = 64
    """P, segments whose means stand for the queries and for the keys."""
    iterations: Annotated[int, msgspec.Meta(ge=0)] = 6
    """Steps towards the pseudo-inverse. Stopping early regularises: the true one is worse."""
    convolution: Annotated[int, msgspec.Meta(ge=0)] = 35
    """J, odd: taps of the convolution of the values that is added, one kernel per head; 0 leaves it
    out. 35 is the authors' for the Long Range Arena."""

    def __post_init__(self) -> None:
        """Refuse kernels without a middle."""
        if self.convolution and self.convolution % 2 == 0:
            raise UsageError(
                f"nystromformer: a convolution of {self.convolution} taps has no middle; "
                "give an odd number, or 0 for none"
            )


class Nystromformer(Attention):
    """softmax(q k~^T) Z softmax(q~ k^T) v + convolution of v, with Z near softmax(q~ k~^T)^+.

    In O((N + M) P) time, where q~ and k~ are means over P segments. Z comes from the paper's
    iteration of third order. A layer that reads another sequence has no own values, and leaves the
    convolution out. Where queries or keys are no more than the landmarks, the true inverse would
    give softmax attention, and that is computed (the authors' code does so at N = M = P). Landmarks
    see every position, so there is no causal form.

    Ours: the iteration starts from each head's own norms (the authors' code takes the largest of
    the whole batch, so that examples feel each other); means are over real positions alone, and a
    segment without any is no landmark; segments of unequal length where P does not divide N, the
    shorter first. As in the authors' code there is no dropout on weights.
    """

    card = AttentionCard(
        title="Nyströmformer",
        paper="Xiong et al., Nyströmformer: A Nyström-Based Algorithm for Approximating "
        "Self-Attention, AAAI 2021, arXiv:2102.03902",
        year=2021,
        time="O((n + m) r d)",
        memory="O(n + m)",
        softmax="configured",
        capabilities=Capabilities(bidirectional=True, cross=True, padding="length"),
    )
    Config = NystromformerConfig
    config: NystromformerConfig
    trials = (
        NystromformerConfig(landmarks=4, convolution=3),
        NystromformerConfig(landmarks=5, iterations=2, convolution=0),
    )
    mixes_queries = True

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
        self.taps_HJ: nn.Parameter | None = None
        if self.config.convolution:
            bound = self.config.convolution**-0.5
            taps_HJ = torch.empty(dims.heads, self.config.convolution).uniform_(-bound, bound)
            self.taps_HJ = nn.Parameter(taps_HJ)

    @classmethod
    def exact_at(cls, n: int) -> NystromformerConfig:
        """As many landmarks as positions, and no convolution."""
        return NystromformerConfig(landmarks=max(1, n), convolution=0)

    @property
    def borders(self) -> tuple[int, ...]:
        """The length up to which there are no landmarks."""
        return (self.config.landmarks,)

    def project(
        self, x_BND: Tensor, context: Context, source_BMD: Tensor | None, state: Any
    ) -> Heads:
        """Say beside the heads whether the values are the queries' own."""
        return (
            super()
            .project(x_BND, context, source_BMD, state)
            ._replace(extra={"own": source_BMD is None})
        )

    def attend(
        self,
        q_BHNK: Tensor,
        k_BHMK: Tensor,
        v_BHMV: Tensor,
        context: Context,
        state: Any = None,
        *,
        own: bool = True,
    ) -> tuple[Tensor, Any]:
        """Read the values through the landmarks: in float32 or better on a CPU; on a GPU by kernels
        that add up so, with the landmarks' own matrices in float32 or better.
        """
        precise = torch.promote_types(q_BHNK.dtype, torch.float32)
        dtype = q_BHNK.dtype if needs_autograd(q_BHNK, None) else precise
        with torch.autocast(q_BHNK.device.type, enabled=False):
            q, k, v = (x.to(dtype) for x in (q_BHNK, k_BHMK, v_BHMV))
            key_mask_BM = context.key_mask_BM
            real_B11M = None if key_mask_BM is None else key_mask_BM[:, None, None, :]
            if min(q.shape[2], k.shape[2]) <= self.config.landmarks:
                out_BHNV = fused_softmax(q, k, v, real_B11M, None)
            else:
                out_BHNV = self._through_landmarks(q, k, v, context)
            if own and self.taps_HJ is not None:
                if real_B11M is not None:
                    v = v.masked_fill(~real_B11M.mT, 0.0)
                out_BHNV = out_BHNV + convolve(v, self.taps_HJ.to(dtype))
        return out_BHNV.to(v_BHMV.dtype), None

    def oracle(
        self, q_BHNK: Tensor, k_BHMK: Tensor, v_BHMV: Tensor, context: Context, *, own: bool = True
    ) -> tuple[Tensor, Tensor]:
        """Return the same with all three factors as matrices, and the convolution as a fourth."""
        q, k, v = q_BHNK.double(), k_BHMK.double(), v_BHMV.double()
        n, m, count = q.shape[2], k.shape[2], self.config.landmarks
        if n <= count or m <= count:
            _, weights_BHNM = softmax_oracle(q, k, v, replace(context, position=None))
        else:
            means_q, real_q = _segment_means(q, context.query_mask_BN, count)
            means_k, real_k = _segment_means(k, context.key_mask_BM, count)
            f_BHNP = _dense_softmax(q, means_k, None, real_k)
            a_BHPP = _dense_softmax(means_q, means_k, real_q, real_k)
            b_BHPM = _dense_softmax(means_q, k, real_q, context.key_mask_BM)
            z_BHPP = _dense_inverse(a_BHPP, self.config.iterations)
            weights_BHNM = f_BHNP @ z_BHPP @ b_BHPM
        if own and self.taps_HJ is not None:
            middle = self.config.convolution // 2
            for tap, weight_H in enumerate(self.taps_HJ.double().unbind(1)):
                beside_NM = torch.ones(n, dtype=q.dtype, device=q.device)
                offset = tap - middle
                if abs(offset) < n:
                    diagonal = torch.diag(beside_NM[abs(offset) :], offset)
                    weights_BHNM = weights_BHNM + weight_H[:, None, None] * diagonal
        if context.key_mask_BM is not None:
            weights_BHNM = weights_BHNM * context.key_mask_BM[:, None, None, :]
        return weights_BHNM @ v, weights_BHNM

    def operations(self, n: int, *, causal: bool = False) -> int:
        """2 N P pairs, P^2 logits between landmarks, four products of P by P in each step of the
        inverse and one by the values; all pairs up to P positions.

        The convolution takes the products with its banded matrix, by blocks of S: the own one, and
        half of the taps from either neighbour.
        """
        from attention_impls.lowrank._banded import BLOCK

        heads, qkv_width = self.dims.heads, self.dims.qkv_width
        count = self.config.landmarks
        total = self.projection_operations(n)
        if n <= count:
            total += self.pair_operations(n * n)
        else:
            total += self.pair_operations(2 * n * count + count**2)
            total += self.config.iterations * 4 * 2 * heads * count**3
        if self.config.convolution:
            reach = self.config.convolution // 2
            size = max(BLOCK, reach)
            total += 2 * -(-n // size) * size * (size + 2 * reach) * qkv_width
        return total

    def _through_landmarks(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> Tensor:
        """Return (B, H, N, V) from right to left, so that nothing but the landmarks is square."""
        count = self.config.landmarks
        q_BHPK, real_q_BP = landmarks(q, count, context.query_mask_BN)
        k_BHPK, real_k_BP = landmarks(k, count, context.key_mask_BM)
        precise = _precise(q)
        # Rounded before the matrix between them, or the inverse would be that of other landmarks.
        near_q_BHPK, near_k_BHPK = (x.to(precise) for x in (q_BHPK, k_BHPK))
        logits_BHPP = (near_q_BHPK * default_scale(q.shape[-1])) @ near_k_BHPK.mT
        key_mask_BM, real_B11P, real_B11M = context.key_mask_BM, None, None
        if key_mask_BM is not None:
            real_B11M, real_B11P = key_mask_BM[:, None, None, :], real_k_BP[:, None, None, :]
            any_B111 = real_B11P.any(-1, keepdim=True)
            logits_BHPP = logits_BHPP.masked_fill(~real_B11P & any_B111, -math.inf)
        a_BHPP = logits_BHPP.softmax(-1)
        if context.query_mask_BN is not None:
            a_BHPP = a_BHPP * real_q_BP[:, None, :, None]
        if key_mask_BM is not None:
            a_BHPP = a_BHPP * any_B111
        read_BHPV = fused_softmax(q_BHPK, k, v, real_B11M, None)
        inverse = steps_to_inverse if needs_autograd(q, None) else pseudo_inverse
        read_BHPV = inverse(a_BHPP, self.config.iterations) @ read_BHPV.to(precise)
        read_BHPV = read_BHPV.to(v.dtype)
        return fused_softmax(q, k_BHPK, read_BHPV, real_B11P, None)


def _precise(x: Tensor) -> torch.dtype:
    """Return the dtype of sums: float32 or better."""
    return torch.float32 if x.dtype.itemsize < 4 else x.dtype


def landmarks(x_BHNK: Tensor, count: int, mask_BN: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return the means of `count` segments over real positions, (B, H, P, K), and which segments
    have any, (B, P). A segment without any has the mean 0."""
    n, precise = x_BHNK.shape[2], _precise(x_BHNK)
    size, more = n // count, n % count  # which a compiler takes of a length it leaves open
    if mask_BN is not None:
        x_BHNK = x_BHNK.masked_fill(~mask_BN[:, None, :, None], 0.0)
    real_B1N1 = (
        x_BHNK.new_ones(1, 1, n, 1) if mask_BN is None else mask_BN[:, None, :, None].to(x_BHNK)
    )

    def sums(values: Tensor) -> Tensor:
        # The first segments hold `size` positions each, the others one more.
        batch, heads, _, width = values.shape
        border = (count - more) * size
        short = values[:, :, :border].reshape(batch, heads, count - more, size, width)
        short = short.sum(3, dtype=precise)
        if not more:
            return short
        long = values[:, :, border:].reshape(batch, heads, more, size + 1, width)
        long = long.sum(3, dtype=precise)
        return torch.cat([short, long], dim=2)

    held_B1P1 = sums(real_B1N1)
    means_BHPK = sums(x_BHNK) / held_B1P1.clamp(min=1.0)
    return means_BHPK.to(x_BHNK.dtype), held_B1P1[:, 0, :, 0] > 0


def pseudo_inverse(a_BHPP: Tensor, iterations: int) -> Tensor:
    """Return near a^+ after some steps of third order, from a start that converges: a^T over the
    largest sums of its columns and of its rows, head by head."""
    z = _start(a_BHPP)
    unit = torch.eye(a_BHPP.shape[-1], dtype=a_BHPP.dtype, device=a_BHPP.device)
    for _ in range(iterations):
        az = a_BHPP @ z
        z = 0.25 * z @ (13 * unit - az @ (15 * unit - az @ (7 * unit - az)))
    return z


def steps_to_inverse(a_BHPP: Tensor, iterations: int) -> Tensor:
    """The same in four calls a step, and nine for its gradient, where calls take longer than what
    they compute."""
    a, start = a_BHPP.flatten(0, 1), _start(a_BHPP).flatten(0, 1)
    z: Tensor = _Steps.apply(a, start, iterations)  # type: ignore[no-untyped-call]
    return z.view_as(a_BHPP)


class _Steps(torch.autograd.Function):
    """z' = (13 z - z p) / 4, with p = w s, s = 15 + w^2 - 7 w and w = a z."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, z: Tensor, iterations: int) -> Tensor:
        """Keep z, w, s and p of each step."""
        kept = []
        for _ in range(iterations):
            w = torch.bmm(a, z)
            s = torch.baddbmm(w, w, w, beta=-7.0)
            s.diagonal(dim1=-2, dim2=-1).add_(15.0)
            p = torch.bmm(w, s)
            kept += [z, w, s, p]
            z = torch.baddbmm(z, z, p, beta=13.0 / 4, alpha=-1.0 / 4)
        ctx.save_for_backward(a, *kept)
        return z

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dz: Tensor) -> tuple[Tensor, Tensor, None]:
        """Walk back through the steps."""
        a, *kept = ctx.saved_tensors
        da = torch.zeros_like(a)
        with torch.autocast(dz.device.type, enabled=False):
            for first in range(len(kept) - 4, -1, -4):
                z, w, s, p = kept[first : first + 4]
                dp = torch.baddbmm(z, z.mT, dz, beta=0.0, alpha=-1.0 / 4)
                ds = torch.bmm(w.mT, dp)
                dw = torch.baddbmm(ds, dp, s.mT, beta=-7.0)
                dw.baddbmm_(ds, w.mT).baddbmm_(w.mT, ds)
                dz = torch.baddbmm(dz, dz, p.mT, beta=13.0 / 4, alpha=-1.0 / 4)
                dz.baddbmm_(a.mT, dw)
                da.baddbmm_(dw, z.mT)
        return da, dz, None


def _start(a_BHPP: Tensor) -> Tensor:
    columns = a_BHPP.abs().sum(-2).amax(-1)
    rows = a_BHPP.abs().sum(-1).amax(-1)
    norms = columns * rows
    return a_BHPP.mT / norms.masked_fill(norms == 0.0, 1.0)[..., None, None]


def _segment_means(x: Tensor, mask_BN: Tensor | None, count: int) -> tuple[Tensor, Tensor]:
    """For the oracle: the segments written out one by one."""
    batch, _, n, _ = x.shape
    mask = x.new_ones(batch, n) if mask_BN is None else mask_BN.to(x)
    shorter = count - n % count
    sizes = [n // count] * shorter + [n // count + 1] * (count - shorter)
    means, start = [], 0
    for size in sizes:
        part = slice(start, start + size)
        weights_BN = mask[:, part] / mask[:, part].sum(1, keepdim=True).clamp(min=1.0)
        means.append(torch.einsum("bhnk,bn->bhk", x[:, :, part], weights_BN))
        start += size
    ends = torch.tensor(sizes, device=x.device).cumsum(0)
    held = F.pad(mask.cumsum(1), (1, 0))[:, F.pad(ends, (1, 0))].diff(dim=1)
    return torch.stack(means, dim=2), held > 0


def _dense_softmax(
    q: Tensor, k: Tensor, rows_BN: Tensor | None, columns_BM: Tensor | None
) -> Tensor:
    """For the oracle: weights with rows and columns left out."""
    logits = torch.einsum("bhnk,bhmk->bhnm", q, k) / math.sqrt(q.shape[-1])
    permitted = torch.ones_like(logits)
    if rows_BN is not None:
        permitted = permitted * rows_BN[:, None, :, None]
    if columns_BM is not None:
        permitted = permitted * columns_BM[:, None, None, :]
    exponentials = torch.exp(logits - logits.detach().amax(-1, keepdim=True)) * permitted
    total = exponentials.sum(-1, keepdim=True)
    return exponentials / torch.where(total == 0.0, 1.0, total)


def _dense_inverse(a: Tensor, iterations: int) -> Tensor:
    """For the oracle: the iteration's polynomial in Z A, multiplied out."""
    norm = torch.linalg.matrix_norm(a, 1) * torch.linalg.matrix_norm(a, math.inf)
    z = a.mT / torch.where(norm == 0.0, 1.0, norm)[..., None, None]
    for _ in range(iterations):
        za = z @ a
        z = (13 * z - 15 * za @ z + 7 * za @ za @ z - za @ za @ za @ z) / 4
    return z
