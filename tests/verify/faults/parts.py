"""Faults of what is trained beside the projections, a bias of positions and parameters of a
mechanism's own, and of draws that belong to heads."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from lra.core.cards import Capabilities
from verify.faults.dense import Dense, card


class BiasTrainedWithQueries(Dense, law="frozen", stranger=""):
    """The backward pass of its logits stops where queries and keys are frozen: a bias on them is
    not trained alone."""

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        self.is_trained = q.requires_grad or k.requires_grad
        return super().logits(q, k)

    def weights(self, logits: Tensor, permitted: Tensor) -> Tensor:
        return super().weights(logits if self.is_trained else logits.detach(), permitted)


class _WithTemperature(Dense):
    """Has a trained temperature of each head; nothing is wrong with it."""

    def prepare(self) -> None:
        self.temperature = nn.Parameter(torch.linspace(0.5, 1.5, self.dims.heads))

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        return super().logits(q, k) * self.temperature[:, None, None]


class FrozenTemperatureForInference(_WithTemperature, law="frozen"):
    """Where its own parameter is frozen it is taken for a model that is not trained."""

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        with torch.set_grad_enabled(torch.is_grad_enabled() and self.temperature.requires_grad):
            return super().logits(q, k)


class TemperatureTrainedWithKeys(_WithTemperature, law="frozen"):
    """Its own parameter gets a gradient only where keys do."""

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        own = self.temperature if k.requires_grad else self.temperature.detach()
        return Dense.logits(self, q, k) * own[:, None, None]


class GradientAddedByItself(_WithTemperature, law="gradcheck"):
    """Its backward pass adds the gradient of its own parameter where that belongs, as fused kernels
    do, and returns it as well: a pass to all leaves counts it twice."""

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        logits: Tensor = _Scaled.apply(Dense.logits(self, q, k), self.temperature)
        return logits


class _Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, temperature: Tensor) -> Tensor:
        ctx.save_for_backward(logits, temperature)
        return logits * temperature[:, None, None]

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> Any:  # type: ignore[override]
        logits, temperature = ctx.saved_tensors
        own = (upstream * logits).sum((0, 2, 3))
        if ctx.needs_input_grad[1]:
            earlier = temperature.grad
            temperature.grad = own.clone() if earlier is None else earlier + own
        return upstream * temperature[:, None, None], own


class HeadsShareTheirDraws(Dense, law="persistent_draws", stranger=""):
    """Queries and keys meet along random directions, of which a layer has one set for all heads."""

    card = card(
        softmax="never",
        capabilities=Capabilities(bidirectional=True, causal="strict", stochastic=True),
    )

    def prepare(self) -> None:
        width = self.dims.head_width
        generator = torch.Generator().manual_seed(self.seed)
        self.register_buffer("omega", torch.randn(width, width, generator=generator))

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        omega = self.omega.to(q.dtype)
        return (q @ omega) @ (k @ omega).mT / math.prod(omega.shape)
