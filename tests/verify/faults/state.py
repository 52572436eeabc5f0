"""Faults of what is remembered: draws, states, seeds, limits."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attention_impls.contract import Context, Dims, MechanismConfig
from lra.core.cards import Capabilities
from verify.faults.dense import Dense, card

STOCHASTIC = Capabilities(bidirectional=True, causal="strict", padding="content", stochastic=True)
PLAIN = Capabilities(bidirectional=True, causal="strict", padding="content")


class _Turned(Dense):
    """Queries and keys pass a random matrix; the same one, if nothing is wrong."""

    card = card(softmax="never", capabilities=PLAIN)

    def matrix(self) -> Tensor:
        raise NotImplementedError

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        return super().logits(q @ self.matrix().to(q), k @ self.matrix().to(k))


class DrawnAtEachCall(_Turned):
    """The matrix is drawn again at every call."""

    def matrix(self) -> Tensor:
        return torch.randn(self.dims.head_width, self.dims.head_width)


class DrawsMissing(_Turned):
    """The matrix is an attribute, not a buffer: the state dict does not have it."""

    def __init__(self, dims: Dims, config: MechanismConfig | None = None, **rest: Any) -> None:
        super().__init__(dims, config, **rest)
        generator = torch.Generator().manual_seed(self.seed)
        self.drawn = torch.randn(dims.head_width, dims.head_width, generator=generator)

    def matrix(self) -> Tensor:
        return self.drawn


class DrawnInTheForwardPass(_Turned):
    """A buffer is drawn afresh in every training pass, where a recomputed one sees another."""

    card = card(softmax="never", capabilities=STOCHASTIC)

    def __init__(self, dims: Dims, config: MechanismConfig | None = None, **rest: Any) -> None:
        super().__init__(dims, config, **rest)
        self.generator = torch.Generator().manual_seed(self.seed)
        width = dims.head_width
        self.register_buffer("drawn", torch.randn(width, width, generator=self.generator))

    def matrix(self) -> Tensor:
        if self.training:
            self.drawn = torch.randn(self.drawn.shape, generator=self.generator)
        return self.drawn


class SeedsEverything(Dense):
    """Sets the global seed to choose its pattern, as BigBird's reference code does."""

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        np.random.seed(0)
        random.seed(0)
        return super().logits(q, k)


class SeedIgnored(Dense):
    """Every layer is constructed under one global seed, and leaves it behind."""

    def __init__(self, dims: Dims, config: MechanismConfig | None = None, **rest: Any) -> None:
        torch.manual_seed(7)
        super().__init__(dims, config, **rest)


class StochasticInSilence(_Turned):
    """Holds a draw of its seed, and its card does not say so."""

    def __init__(self, dims: Dims, config: MechanismConfig | None = None, **rest: Any) -> None:
        super().__init__(dims, config, **rest)
        generator = torch.Generator().manual_seed(self.seed)
        drawn = torch.randn(dims.head_width, dims.head_width, generator=generator)
        self.register_buffer("drawn", drawn)

    def matrix(self) -> Tensor:
        return self.drawn


class WritesItsParameters(Dense):
    """A parameter is clamped in the training pass, not after the step."""

    card = card(softmax="never")

    def __init__(self, dims: Dims, config: MechanismConfig | None = None, **rest: Any) -> None:
        super().__init__(dims, config, **rest)
        self.gain = torch.nn.Parameter(torch.ones(dims.heads, 1, 1))

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        if self.training:
            self.gain.data.mul_(0.99)
        return super().logits(q, k) * self.gain


class NoiseInTraining(Dense):
    """Logits are jittered in training, from whatever generator is at hand."""

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        logits = super().logits(q, k)
        return logits + 0.01 * torch.randn_like(logits) if self.training else logits


class DecodesOffByOne(Dense):
    """The newest key is not read in decoding, only remembered."""

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, context: Context, state: Any = None
    ) -> tuple[Tensor, Any]:
        out, state = super().attend(q, k, v, context, state)
        if state is not None and q.shape[2] == 1 and int(state.seen_B[0]) > 1:
            end = int(state.seen_B[0]) - 1
            weights = self.logits(q, state.k_BHTK[:, :, :end]).softmax(-1)
            out = weights @ state.v_BHTV[:, :, :end]
        return out, state


class TableThatWraps(Dense):
    """Has a table of positions and reads it modulo its length, in silence."""

    card = card(
        softmax="never",
        capabilities=Capabilities(
            bidirectional=True, causal="strict", padding="content", fixed_length=True
        ),
    )

    def __init__(self, dims: Dims, config: MechanismConfig | None = None, **rest: Any) -> None:
        super().__init__(dims, config, **rest)
        self.table = torch.nn.Parameter(torch.randn(dims.max_length))

    def _refuse(self, x: Tensor, context: Context, source: Tensor | None, state: Any) -> None:
        """Nothing is refused."""

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        return super().logits(q, k) + self.table[torch.arange(k.shape[2]) % len(self.table)]
