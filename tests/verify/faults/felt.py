"""Faults of inputs that are no ordinary numbers, of what is taken and not read, and of cost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_impls.contract import Context, Heads, MechanismConfig, Out
from verify.faults.dense import Dense, card


class DirectionsOfNothing(Dense, law="degenerate"):
    """Cosine attention without a floor: a query of zeros has no direction."""

    card = card(softmax="never")

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        q, k = (x * x.square().sum(-1, keepdim=True).rsqrt() for x in (q, k))
        return 10.0 * q @ k.mT


class DistanceOfEquals(Dense, law="degenerate"):
    """Logits are distances: a root, whose gradient is infinite where a query is its key."""

    card = card(softmax="never")

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        return -(q.unsqueeze(3) - k.unsqueeze(2)).square().sum(-1).sqrt()


class SpreadOfEqualKeys(Dense, law="degenerate"):
    """Logits of a row are divided by their spread, which equal keys do not have."""

    card = card(softmax="never")

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        logits = super().logits(q, k)
        if k.shape[2] < 2:
            return logits
        lengths = k.norm(dim=-1)
        return logits / (lengths - lengths[..., :1]).norm(dim=-1)[..., None, None]


class EqualKeysPruned(Dense, law="degenerate", stranger=""):
    """Keys of the lowest logit in a row are pruned, and so are all where all are equal."""

    def permitted(self, logits: Tensor, causal: bool, mask: Tensor | None) -> Tensor:
        permitted = super().permitted(logits, causal, mask)
        if logits.shape[-1] < 2:
            return permitted
        flat = logits.amax(-1, keepdim=True) - logits.amin(-1, keepdim=True) < 1e-9
        return permitted & ~flat


class ValuesInHalf(Dense, law="large_integers"):
    """Values of float32 go through bfloat16, as they once did on the machine it was written for."""

    def read(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> Tensor:
        if v.dtype == torch.float32:
            v = v.bfloat16().float()
        return super().read(q, k, v, context)


class ProductInHalf(Dense, law="large_integers"):
    """The values lie in float16 for the second product alone, to save memory."""

    def read(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> Tensor:
        if v.dtype == torch.float32 and not torch.is_grad_enabled():
            v = v.half().float()
        return super().read(q, k, v, context)


class _PositionForgotten(Dense):
    """Positions are honoured but in one mode, in the oracle too."""

    def forgets(self, source: Tensor | None) -> bool:
        raise NotImplementedError

    def forward(self, x_BND: Tensor, context: Context, **more: Any) -> Out:
        if self.forgets(more.get("source_BMD")):
            context = replace(context, position=None)
        return super().forward(x_BND, context, **more)

    def reference(self, x_BND: Tensor, context: Context, **more: Any) -> Tensor:
        if self.forgets(more.get("source_BMD")):
            context = replace(context, position=None)
        return super().reference(x_BND, context, **more)


class PositionForgottenAcross(_PositionForgotten, law="request_felt", stranger=""):
    """Another sequence is read without positions, which nobody is told."""

    def forgets(self, source: Tensor | None) -> bool:
        return source is not None


class PositionForgottenInTraining(_PositionForgotten, law="request_felt", stranger=""):
    """Training takes a fused path that has no place for positions."""

    def forgets(self, source: Tensor | None) -> bool:
        return self.training


class SpecialInSilence(Dense, law="request_felt", stranger=""):
    """Positions that the request calls global are left out of its keys; its card says nothing."""

    def project(self, x: Tensor, context: Context, source: Tensor | None, state: Any) -> Heads:
        heads, special = super().project(x, context, source, state), context.special_BN
        if special is None:
            return heads
        return heads._replace(v_BGMV=heads.v_BGMV * ~special[:, None, :, None])


class Tempered(MechanismConfig, frozen=True):
    temperature: float = 1.0
    keys: int = 4


class SettingOfTheDefault(Dense, law="setting_felt", stranger=""):
    """Reads a setting from its class's defaults, not from those given."""

    Config = Tempered

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        settings = Tempered()
        logits = super().logits(q, k) / settings.temperature
        return logits + 0.0 * self.config.keys  # type: ignore[attr-defined]


class SettingOverwritten(Dense, law="setting_felt", stranger=""):
    """A number of sinks is limited to one, whatever is asked for."""

    Config = Tempered

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        logits = super().logits(q, k) / self.config.temperature  # type: ignore[attr-defined]
        sinks = min(1, self.config.keys)  # type: ignore[attr-defined]
        return torch.cat([logits[..., :sinks] + 1.0, logits[..., sinks:]], dim=-1)


class Windowed(MechanismConfig, frozen=True):
    window: int = 16


class WindowCutDown(Dense, law="setting_felt", stranger=""):
    """A window of more than 128 keys is cut down to as many, for which its kernel was written."""

    card = card(softmax="never")
    Config = Windowed

    def permitted(self, logits: Tensor, causal: bool, mask: Tensor | None) -> Tensor:
        window = min(128, self.config.window)  # type: ignore[attr-defined]
        near = torch.ones(logits.shape[-2:], dtype=torch.bool).triu(1 - window).tril(window - 1)
        return super().permitted(logits, causal, mask) & near


class AllPairsInEvaluation(Dense, law="memory_growth", stranger=""):
    """Fused and linear in memory in training; evaluation keeps the weights, for pictures of
    them."""

    card = card(memory="O(n)")

    def read(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> Tensor:
        if not self.training or context.position or context.key_mask_BM is not None:
            return super().read(q, k, v, context)
        return F.scaled_dot_product_attention(q, k, v, is_causal=context.causal)


class _Linear(Dense):
    """A running mean of the values; nothing is wrong with it."""

    card = card(softmax="never", time="O(n d)")

    def operations(self, n: int, *, causal: bool = False) -> int:
        return self.projection_operations(n)


class CopiedForEachBlock(_Linear, law="operation_growth", stranger=""):
    """Each block is joined to a copy of all before it: little memory, and more work each time."""

    def read(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> Tensor:
        past, means = v[:, :, :0], []
        for block in v.split(16, dim=2):
            past = torch.cat([past, block], dim=2)
            means.append(past.mean(2, keepdim=True).expand_as(block))
        return torch.cat(means, dim=2)


class AllPairsBlockByBlock(_Linear, law="operation_growth", stranger=""):
    """All pairs, a block of queries at a time: linear in memory, and quadratic in time."""

    def read(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> Tensor:
        plain = replace(context, causal=False, position=None)
        blocks = q.split(16, dim=2)
        return torch.cat([Dense.read(self, block, k, v, plain) for block in blocks], dim=2)
