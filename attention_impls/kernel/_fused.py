"""Softmax features in half precision: two fused attentions, and no feature is ever written.

    B batch   H heads   N queries   M keys   R draws   K head width   V value width
    J parts of the keys or queries   X = B J   W columns of both attentions, a multiple of 8

The output is sum_r exp(w_r . x) S_r / sum_r exp(w_r . x) z_r, where S_r is the sum over keys of
exp(w_r . y - |y|^2 / 2) v, and z_r the same of ones. So it is softmax attention of x to the draws
as keys, whose values are S_r / z_r, with log z_r added to the logits. S_r / z_r itself is softmax
attention of the draw to the keys, with -|y|^2 / 2 added, and log z_r is the logarithm of its sum.
Fused attention keeps logits and sums in float32; whatever the norms, no row is lost.

The additions to logits take three columns of queries and keys: three bfloat16 numbers, as many
digits as float32. With few heads keys and queries are cut into parts that run side by side.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_impls._once import once_differentiable
from attention_impls.kernel._features import half_norm
from attention_impls.kernel._halves import centre
from attention_impls.kernel._products import aligned, parts

DIGITS = 3
"""bfloat16 numbers whose sum holds the digits of a float32."""
MASKED = -1e30
"""Added to the logit of a masked key: finite, so that where all are masked nothing is NaN."""
WIDEST = 256
"""Columns that fused attention takes."""


def columns(head_width: int, value_width: int) -> int:
    """Return W."""
    return aligned(max(head_width, value_width) + DIGITS)


def fits(head_width: int, value_width: int) -> bool:
    """Whether fused attention takes heads of these widths."""
    return columns(head_width, value_width) <= WIDEST


def fused(
    q_BHNK: Tensor, k_BHMK: Tensor, v_BHMV: Tensor, mask_BM: Tensor | None, omega_HRK: Tensor
) -> Tensor:
    """Return normalised attention through softmax features, (B, H, N, V)."""
    batch, heads, n, _ = q_BHNK.shape
    values = v_BHMV.shape[3]
    width = columns(q_BHNK.shape[3], values)
    if not k_BHMK.shape[2]:
        return (q_BHNK[..., :1] * 0.0).expand(-1, -1, -1, values)
    centre_BH1V = centre(v_BHMV, mask_BM)
    drawn_BHRV, log_BHR = _draws_read(k_BHMK, v_BHMV - centre_BH1V, mask_BM, omega_HRK)
    cut = parts(n, batch * heads)
    missing = -n % cut
    q_BNHK = _layout(q_BHNK, missing)
    queries_XHNW = _parted(_widened(q_BNHK, _ones(q_BNHK), width), cut)
    scale = q_BHNK.shape[3] ** -0.25
    keys_BHRW = _widened(omega_HRK.expand(batch, -1, -1, -1), _digits(log_BHR / scale), width)
    values_BHRW = _widened(drawn_BHRV.to(q_BHNK.dtype), [], width)
    out_XHNW = F.scaled_dot_product_attention(
        queries_XHNW, _repeated(keys_BHRW, cut), _repeated(values_BHRW, cut), scale=scale
    )
    out_BNHW = out_XHNW.transpose(1, 2).reshape(batch, n + missing, heads, width)
    return out_BNHW[:, :n, :, :values].transpose(1, 2) + centre_BH1V


def _draws_read(
    k_BHMK: Tensor, v_BHMV: Tensor, mask_BM: Tensor | None, omega_HRK: Tensor
) -> tuple[Tensor, Tensor]:
    """Return what each draw reads from all keys, and the logarithm of its sum, in float32."""
    batch, heads, m, _ = k_BHMK.shape
    cut = parts(m, batch * heads)
    missing = -m % cut
    k_BMHK, v_BMHV = _layout(k_BHMK, missing), _layout(v_BHMV, missing)
    if missing:
        given_BM = mask_BM if mask_BM is not None else k_BHMK.new_ones(batch, m, dtype=torch.bool)
        mask_BM = F.pad(given_BM, (0, missing))
    drawn_XHRV, log_XHR = _Drawn.apply(  # type: ignore[no-untyped-call]
        k_BMHK, v_BMHV, mask_BM, omega_HRK, cut
    )
    drawn_BHRV, log_BHR = drawn_XHRV, log_XHR
    if cut > 1:
        log_BJHR = log_XHR.unflatten(0, (batch, cut))
        log_BHR = log_BJHR.logsumexp(1)
        share_BJHR = (log_BJHR - log_BHR.unsqueeze(1)).exp()
        drawn_BHRV = (drawn_XHRV.unflatten(0, (batch, cut)) * share_BJHR.unsqueeze(-1)).sum(1)
    if mask_BM is not None:
        empty_B111 = ~mask_BM.any(1).view(-1, 1, 1, 1)
        drawn_BHRV = drawn_BHRV.masked_fill(empty_B111, 0.0)
        log_BHR = log_BHR.masked_fill(empty_B111.squeeze(-1), 0.0)
    return drawn_BHRV, log_BHR


class _Drawn(torch.autograd.Function):
    """The reading of each draw from the keys of each part, and the logarithm of its sum."""

    @staticmethod
    def forward(
        ctx: Any,
        k_BMHK: Tensor,
        v_BMHV: Tensor,
        mask_BM: Tensor | None,
        omega_HRK: Tensor,
        cut: int,
    ) -> tuple[Tensor, Tensor]:
        """Return (X, H, R, V) and (X, H, R), both in float32."""
        values = v_BMHV.shape[3]
        width = columns(k_BMHK.shape[3], values)
        scale = k_BMHK.shape[3] ** -0.25
        bias_BMH = half_norm(k_BMHK).mul_(-1.0 / scale)
        if mask_BM is not None:
            bias_BMH.masked_fill_(~mask_BM.unsqueeze(-1), MASKED)
        keys_XHMW = _parted(_widened(k_BMHK, _digits(bias_BMH), width), cut)
        values_XHMW = _parted(_widened(v_BMHV, [], width), cut)
        omega_XHRK = omega_HRK.expand(keys_XHMW.shape[0], -1, -1, -1)
        queries_XHRW = _widened(omega_XHRK, _ones(omega_XHRK), width)
        out_XHRW, log_XHR, *rest = _attend(scale, queries_XHRW, keys_XHMW, values_XHMW)
        drawn_XHRV = out_XHRW[..., :values].float()
        out_XHRW[..., values : values + DIGITS].fill_(1.0)  # see `backward`
        ctx.save_for_backward(
            k_BMHK, queries_XHRW, keys_XHMW, values_XHMW, out_XHRW, log_XHR, *rest
        )
        ctx.values = values
        return drawn_XHRV, log_XHR

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, drawn_XHRV: Tensor, log_XHR: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of k and v.

        Fused attention takes the gradient of a logit as p (g . v - g . out), with p the weight and
        g the gradient of the output. That of the logarithm adds p times itself: it stands, negated,
        in columns of g where the output is said to be 1 and the values are 0.
        """
        k_BMHK, queries, keys, values, out, log, *rest = ctx.saved_tensors
        k_width = k_BMHK.shape[3]
        upstream = torch.zeros_like(out)
        upstream[..., : ctx.values] = drawn_XHRV
        for place, digit in enumerate(_digits(-log_XHR), ctx.values):
            upstream[..., place] = digit
        _, dkeys_XHMW, dvalues_XHMW = _attend_gradients(
            k_width**-0.25, upstream, queries, keys, values, out, log, *rest
        )
        dkeys_BMHW, dvalues_BMHW = (
            x.transpose(1, 2).reshape(*k_BMHK.shape[:3], -1) for x in (dkeys_XHMW, dvalues_XHMW)
        )
        # The column for -|y|^2 / 2, y = K ** -1/4 k, adds its own share.
        dk_BMHK = torch.addcmul(
            dkeys_BMHW[..., :k_width],
            dkeys_BMHW[..., k_width : k_width + 1],
            k_BMHK,
            value=-(k_width**-0.25),
        )
        return dk_BMHK, dvalues_BMHW[..., : ctx.values], None, None, None


def _attend(scale: float, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, ...]:
    """Fused attention as it is, the logarithm of each row's sum, and what its gradient asks for."""
    if q.is_cuda:
        flash = torch.ops.aten._scaled_dot_product_flash_attention
        out, log, from_q, from_k, _, _, seed, offset, _ = flash(q, k, v, scale=scale)
        return out, log, from_q, from_k, seed, offset
    flash = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    out, log = flash(q, k, v, scale=scale)
    return out, log


def _attend_gradients(
    scale: float,
    upstream: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    log: Tensor,
    *rest: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of q, k and v."""
    gradients: tuple[Tensor, Tensor, Tensor]
    if q.is_cuda:
        from_q, from_k, seed, offset = rest
        flash = torch.ops.aten._scaled_dot_product_flash_attention_backward
        how = (q.shape[2], k.shape[2], 0.0, False, seed, offset)
        gradients = flash(upstream, q, k, v, out, log, from_q, from_k, *how, scale=scale)
    else:
        flash = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward
        gradients = flash(upstream, q, k, v, out, log, 0.0, False, scale=scale)
    return gradients


def _digits(x: Tensor) -> list[Tensor]:
    """Return three bfloat16 tensors whose sum is x in float32; the first alone has its gradient."""
    high = x.to(torch.bfloat16)
    rest = x.detach() - high.detach()
    middle = rest.to(torch.bfloat16)
    return [high, middle, (rest - middle).to(torch.bfloat16)]


def _ones(x: Tensor) -> list[Tensor]:
    """Return what is multiplied by the digits."""
    return [x.new_ones(1).expand(x.shape[:3])] * DIGITS


def _widened(x: Tensor, further: list[Tensor], width: int) -> Tensor:
    """Return x with further columns, then zeros, up to a width."""
    zeros = x.new_zeros(1).expand(*x.shape[:3], width - x.shape[3] - len(further))
    return torch.cat([x, *(column.unsqueeze(-1) for column in further), zeros], -1)


def _layout(x_BHNK: Tensor, missing: int) -> Tensor:
    """(B, H, N, K) to (B, N, H, K), as projections have it, with so many rows of zeros more."""
    x_BNHK = x_BHNK.transpose(1, 2)
    return F.pad(x_BNHK, (0, 0, 0, 0, 0, missing)) if missing else x_BNHK


def _parted(x_BNHW: Tensor, cut: int) -> Tensor:
    """(B, N, H, W) to (X, H, N / J, W)."""
    batch, length, heads, width = x_BNHW.shape
    return x_BNHW.reshape(batch * cut, length // cut, heads, width).transpose(1, 2)


def _repeated(x_BHRW: Tensor, cut: int) -> Tensor:
    """(B, H, R, W) to (X, H, R, W): the same for all parts of an example."""
    return x_BHRW if cut == 1 else x_BHRW.repeat_interleave(cut, 0)
