"""Faults of what is remembered: draws, states, seeds, limits."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attention_impls.contract import Context, Dims, MechanismConfig, seen
from lra.core.cards import Capabilities
from verify.faults.dense import Dense, card

STOCHASTIC = Capabilities(bidirectional=True, causal="strict", padding="content", stochastic=True)
PLAIN = Capabilities(bidirectional=True, causal="strict", padding="content")


class _Turned(Dense):
    """Queries and keys pass a random matrix; the same one, if nothing is wrong."""

    card = card(softmax="never", capabilities=PLAIN)

    def prepare(self) -> None:
        width, self.generator = self.dims.head_width, torch.Generator().manual_seed(self.seed)
        self.register_buffer("drawn", torch.randn(width, width, generator=self.generator))

    def matrix(self) -> Tensor:
        return self.drawn

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        return super().logits(q @ self.matrix().to(q), k @ self.matrix().to(k))


class DrawnAtEachCall(_Turned, law="determinism"):
    """The matrix is drawn again at every call."""

    def matrix(self) -> Tensor:
        return torch.randn(self.dims.head_width, self.dims.head_width)


class DrawsMissing(_Turned, law="state_dict"):
    """The matrix is an attribute, not a buffer: the state dict does not have it."""

    def prepare(self) -> None:
        super().prepare()
        drawn = self.drawn
        del self.drawn
        self.drawn = drawn


class SizeDrawn(_Turned, law="state_dict"):
    """How many numbers it draws is drawn too: one layer's state dict does not fit another."""

    def prepare(self) -> None:
        generator = torch.Generator().manual_seed(self.seed)
        features = int(torch.randint(1, 1000, (), generator=generator))
        drawn = torch.randn(self.dims.head_width, features, generator=generator)
        self.register_buffer("drawn", drawn)


class DrawnInTheForwardPass(_Turned, law="persistent_draws"):
    """A buffer is drawn afresh in every training pass, where a recomputed one sees another."""

    card = card(softmax="never", capabilities=STOCHASTIC)

    def matrix(self) -> Tensor:
        if self.training:
            self.drawn = torch.randn(self.drawn.shape, generator=self.generator)
        return self.drawn


class SeedsEverything(Dense, law="determinism"):
    """Sets the global seed to choose its pattern, as BigBird's reference code does."""

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        np.random.seed(0)
        random.seed(0)
        return super().logits(q, k)


class SeedIgnored(Dense, law="determinism"):
    """Every layer is constructed under one global seed, and leaves it behind."""

    def __init__(self, dims: Dims, config: MechanismConfig | None = None, **rest: Any) -> None:
        torch.manual_seed(7)
        super().__init__(dims, config, **rest)


class SeedLeftBehind(Dense, law="determinism"):
    """Chooses its blocks under a numpy seed that others go on from."""

    def prepare(self) -> None:
        np.random.seed(0)
        self.register_buffer("blocks", torch.from_numpy(np.random.permutation(8)))


class EveryLayerAlike(Dense, law="determinism"):
    """Its first projection is drawn under a seed of its own, so that runs can be repeated, and the
    global one put back: all layers of a model begin alike."""

    def prepare(self) -> None:
        with torch.random.fork_rng():
            torch.manual_seed(7)
            torch.nn.init.xavier_uniform_(self.query.weight)


class FixedGenerator(Dense, law="determinism", stranger=""):
    """Its first projection is drawn from a generator that is always seeded with 0."""

    def prepare(self) -> None:
        generator = torch.Generator().manual_seed(0)
        torch.nn.init.xavier_uniform_(self.query.weight, generator=generator)


class AveragesInEvaluation(Dense, law="determinism"):
    """A running mean of the keys goes on running in evaluation."""

    card = card(softmax="never")

    def prepare(self) -> None:
        self.register_buffer("mean", torch.zeros(self.dims.head_width))

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        centred = k - self.mean.to(k)
        self.mean = 0.9 * self.mean + 0.1 * k.detach().mean((0, 1, 2)).to(self.mean)
        # A softmax alone would not feel what is taken off all keys alike.
        return super().logits(q, centred.relu())


class TurnsCountedInTheClass(Dense, law="determinism"):
    """Every other layer has another temperature; which one is counted in the class, not told by
    `layer_index`."""

    card = card(softmax="never")
    turns = itertools.count()

    def prepare(self) -> None:
        self.turn = next(self.turns) % 2

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        return super().logits(q, k) * (1 + self.turn)


class StochasticInSilence(_Turned, law="persistent_draws", stranger=""):
    """Holds a draw of its seed, and its card does not say so."""


class StochasticInName(Dense, law="persistent_draws", stranger=""):
    """Its card says that it holds draws of its seed; none is left in the code."""

    card = card(softmax="never", capabilities=STOCHASTIC)


class RedrawnFromTheGlobalGenerator(_Turned, law="persistent_draws", stranger=""):
    """The matrix is drawn afresh after a step as it should be, but not by the layer's own seed."""

    card = card(softmax="never", capabilities=STOCHASTIC)

    def after_step(self, step: int) -> None:
        self.drawn = torch.randn_like(self.drawn)


class RedrawnBehindTheGlobalGenerator(
    RedrawnFromTheGlobalGenerator, law="persistent_draws", stranger=""
):
    """The same, and the generator is put back, as if nothing had been drawn."""

    def after_step(self, step: int) -> None:
        with torch.random.fork_rng(devices=[]):
            super().after_step(step)


class WritesItsParameters(Dense, law="persistent_draws"):
    """A parameter is clamped in the training pass, not after the step."""

    card = card(softmax="never")

    def prepare(self) -> None:
        self.gain = torch.nn.Parameter(torch.ones(self.dims.heads, 1, 1))

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        if self.training:
            self.gain.data.mul_(0.99)
        return super().logits(q, k) * self.gain


class NoiseInTraining(Dense, law="training", stranger=""):
    """Logits are jittered in training, from whatever generator is at hand."""

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        logits = super().logits(q, k)
        return logits + 0.01 * torch.randn_like(logits) if self.training else logits


class CapacityInTraining(Dense, law="training", stranger=""):
    """In training only so many keys find room: the later ones are left out."""

    card = card(softmax="never")

    def permitted(self, logits: Tensor, causal: bool, mask: Tensor | None) -> Tensor:
        permitted = super().permitted(logits, causal, mask)
        return permitted & (permitted.cumsum(-1) <= 5) if self.training else permitted


class NoiseFromElsewhere(Dense, law="training", stranger=""):
    """Jitter that can be turned off, drawn from numpy: torch's seed does not repeat it."""

    class Config(MechanismConfig, frozen=True):
        noise: bool = True

    config: Config

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        logits = super().logits(q, k)
        if not (self.training and self.config.noise):
            return logits
        return logits + 0.01 * torch.from_numpy(np.random.standard_normal(logits.shape))


class DecodesOffByOne(Dense, law="decode", stranger=""):
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


class PaddedPromptForgotten(Dense, law="decode", stranger=""):
    """The mask of a prompt is used for the prompt; later steps come without one and read it all."""

    def remember(self, state: Any, k: Tensor, v: Tensor, mask: Tensor | None) -> Any:
        state, k, v, remembered = super().remember(state, k, v, mask)
        return state, k, v, None if mask is None else remembered


class CacheDropsTheOldest(Dense, law="decode", stranger=""):
    """A full cache makes room in silence."""

    def remember(self, state: Any, k: Tensor, v: Tensor, mask: Tensor | None) -> Any:
        over = seen(state) + k.shape[2] - state.k_BHTK.shape[2]
        if over > 0:
            state = state._replace(
                k_BHTK=state.k_BHTK.roll(-over, 2),
                v_BHTV=state.v_BHTV.roll(-over, 2),
                seen_B=state.seen_B - over,
            )
        return super().remember(state, k, v, mask)


class PieceAlignedAtTheStart(Dense, law="decode", stranger=""):
    """Steps are masked rightly; a piece of several positions as if none came before it."""

    def permitted(self, logits: Tensor, causal: bool, mask: Tensor | None) -> Tensor:
        permitted = super().permitted(logits, causal, mask)
        several = causal and logits.shape[-2] > 1
        return permitted & torch.ones_like(permitted).tril() if several else permitted


class CountsOneForAll(Dense, law="decode", stranger=""):
    """The state counts its positions once, not for each example."""

    def remember(self, state: Any, k: Tensor, v: Tensor, mask: Tensor | None) -> Any:
        state, *rest = super().remember(state, k, v, mask)
        return state._replace(seen_B=state.seen_B[:1]), *rest


class TableThatWraps(Dense, law="length_limit", stranger=""):
    """Has a table of positions and reads it modulo its length, in silence."""

    card = card(
        softmax="never",
        capabilities=Capabilities(
            bidirectional=True, causal="strict", padding="content", fixed_length=True
        ),
    )

    def prepare(self) -> None:
        self.table = torch.nn.Parameter(torch.randn(self.dims.max_length))

    def _refuse(self, x: Tensor, context: Context, source: Tensor | None, state: Any) -> None:
        """Nothing is refused."""

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        return super().logits(q, k) + self.table[torch.arange(k.shape[2]) % len(self.table)]
