"""Faults of numbers: precision, strides, gradients, memory."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_impls.contract import Context, Heads
from verify.faults.dense import Dense, card


class HalfAccumulator(Dense, law="precision", stranger=""):
    """A running sum is kept in the inputs' own precision."""

    card = card(softmax="never")

    def read(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> Tensor:
        weights = super().weights(
            self.logits(q, k), self.permitted(q @ k.mT, context.causal, context.key_mask_BM)
        )
        out = torch.zeros_like(q @ k.mT @ v)
        for j in range(k.shape[2]):
            out = out + weights[..., j : j + 1] * v[:, :, j : j + 1]
        return out


class AnglesRounded(Dense, law="precision", stranger=""):
    """Angles of positions are a matrix product in float32, which autocast takes back."""

    card = card(softmax="never")

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        rows, columns = (self.waves(x.shape[2]) for x in (q, k))
        return super().logits(q, k) + 2 * (rows @ columns.mT).to(q.dtype)

    def waves(self, length: int) -> Tensor:
        places = torch.arange(length, dtype=torch.float32).unsqueeze(-1)
        angles = (places @ torch.tensor([[0.9, 0.8, 0.7, 0.6]])).float()
        return torch.cat([angles.cos(), angles.sin()], dim=-1)


class NoMaximum(Dense, law="extremes"):
    """Exponentials are taken without subtracting the largest logit."""

    def weights(self, logits: Tensor, permitted: Tensor) -> Tensor:
        exponentials = logits.exp() * permitted
        return exponentials / exponentials.sum(-1, keepdim=True).clamp(min=1e-30)


class SoftplusByHand(Dense, law="extremes"):
    """Overflow is left out by a `where`, whose other side still has a gradient: zero times
    infinity."""

    card = card(softmax="never")

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        logits = super().logits(q, k)
        return torch.where(logits > 20, logits, logits.exp().log1p())


class BoundedOnAverage(NoMaximum, law="extremes"):
    """Keys are divided by their mean length and then taken to be bounded: one that is longer than
    all others overflows."""

    card = card(softmax="never")

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        mean = k.norm(dim=-1).mean(-1)[:, :, None, None]
        return 10 * F.normalize(q, dim=-1) @ (k / mean).mT


class GateByHand(Dense, law="extremes", stranger=""):
    """A gate on what each position reads, from a tensor of its own (which a core has not), is
    exp(x) / (1 + exp(x))."""

    card = card(softmax="never")

    def project(self, x: Tensor, context: Context, source: Tensor | None, state: Any) -> Heads:
        heads = super().project(x, context, source, state)
        return heads._replace(extra={"gates": x.mean(-1)[:, None, :, None]})

    def attend(  # type: ignore[override]
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        context: Context,
        state: Any = None,
        *,
        gates: Tensor | None = None,
    ) -> tuple[Tensor, Any]:
        out, state = super().attend(q, k, v, context, state)
        return out if gates is None else out * gates.exp() / (1 + gates.exp()), state


class LogarithmOfTheLength(Dense, law="output"):
    """Logits are divided by the logarithm of the length, which is zero at one position."""

    card = card(softmax="never")

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        return super().logits(q, k) / torch.tensor(float(k.shape[2])).log()


class ContiguousTakenForGranted(Dense, law="strides"):
    """Reads the values through strides that a contiguous tensor would have."""

    def read(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> Tensor:
        _, h, m, w = v.shape
        v = v.as_strided(v.shape, (h * m * w, m * w, w, 1)) if v.numel() else v
        return super().read(q, k, v, context)


class ContiguousInputTakenForGranted(Dense, law="strides", stranger=""):
    """Reads the layer's input through strides that a contiguous tensor would have."""

    def project(self, x: Tensor, context: Context, source: Tensor | None, state: Any) -> Heads:
        _, n, d = x.shape
        x = x.as_strided(x.shape, (n * d, d, 1)) if x.numel() else x
        return super().project(x, context, source, state)


class GradientStopped(Dense, law="gradcheck"):
    """Keys are detached, as around a random projection or a hash that needs it."""

    def read(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> Tensor:
        return super().read(q, k.detach(), v, context)


class NormaliserDetached(Dense, law="oracle", stranger="gradcheck"):
    """The sum that weights are divided by is taken for a constant: right outputs, wrong
    gradients."""

    def weights(self, logits: Tensor, permitted: Tensor) -> Tensor:
        largest = logits.detach().masked_fill(~permitted, -torch.inf).amax(-1, keepdim=True)
        exponentials = (logits - largest.clamp(min=-1e30)).exp().masked_fill(~permitted, 0.0)
        return exponentials / exponentials.sum(-1, keepdim=True).clamp(min=1e-30).detach()


class UnusedParameter(Dense, law="gradient_flow"):
    """Has a projection that nothing passes through."""

    def prepare(self) -> None:
        self.gate = nn.Linear(self.dims.width, self.dims.width)


class QuadraticBehindLinear(Dense, law="memory_growth", stranger=""):
    """Claims linear memory and writes all pairs."""

    card = card(memory="O(n d)")


class QuadraticWhenPadded(Dense, law="memory_growth", stranger=""):
    """Fused and linear in memory where nothing is padded; all pairs are written out otherwise."""

    card = card(memory="O(n d)")

    def read(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> Tensor:
        if context == Context(context.causal) and q.shape[2] == k.shape[2]:
            return F.scaled_dot_product_attention(q, k, v, is_causal=context.causal)
        return super().read(q, k, v, context)


class WeightsOfMoreThanOne(Dense, law="constant_values", stranger=""):
    """Weights sum to 1.01."""

    card = card(softmax="never")

    def weights(self, logits: Tensor, permitted: Tensor) -> Tensor:
        return 1.01 * super().weights(logits, permitted)


class RisesAboveItsValues(WeightsOfMoreThanOne, law="convexity", stranger=""):
    """It is not linear in the values, so that nothing else shows what its weights sum to."""

    card = card(softmax="never", linear=False)


class SinkSubtracted(Dense, law="convexity", stranger=""):
    """A little more than its share is taken off the first key (an attention sink): a weight below
    zero, which outputs over several keys do not show."""

    card = card(softmax="never")

    def weights(self, logits: Tensor, permitted: Tensor) -> Tensor:
        weights = super().weights(logits / 8, permitted)
        several = permitted.sum(-1, keepdim=True) > 4
        first, others = -0.01 * permitted[..., :1], weights[..., 1:]
        others = (1 - first) * others / others.sum(-1, keepdim=True).clamp(min=1e-30)
        return torch.where(several, torch.cat([first, others], dim=-1), weights)


class ValuesSquashed(Dense, law="linearity", stranger=""):
    """Values pass a tanh that the card does not know of."""

    card = card(softmax="never", weights="free")

    def read(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> Tensor:
        return super().read(q, k, v.tanh(), context)
