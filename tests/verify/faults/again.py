"""Faults that show when the same is asked again: the tenth time, in another process, in a longer
training pass, of a longer source, by two streams in single precision."""

from __future__ import annotations

import logging
import math
import time
import warnings
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attention_impls.contract import MechanismConfig, seen
from verify.faults.dense import Dense, card


class EveryTenthCallDraws(Dense, law="determinism"):
    """Turns by a matrix that is drawn anew at every tenth call, from a generator of its own."""

    card = card(softmax="never")

    def prepare(self) -> None:
        self.calls, self.generator = 0, torch.Generator().manual_seed(self.seed)
        self.turn = self.drawn()

    def drawn(self) -> Tensor:
        width = self.dims.head_width
        return torch.randn(width, width, generator=self.generator)

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        self.calls += 1
        if self.calls % 10 == 0:
            self.turn = self.drawn()
        return super().logits(q @ self.turn.to(q), k @ self.turn.to(k))


class JitterOfItsOwn(Dense, law="determinism"):
    """Jitter in training that can be turned off, from a generator that no seed of torch's puts
    back."""

    class Config(MechanismConfig, frozen=True):
        noise: bool = True

    config: Config

    def prepare(self) -> None:
        self.generator = torch.Generator().manual_seed(self.seed)

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        logits = super().logits(q, k)
        if not (self.training and self.config.noise):
            return logits
        drawn = torch.randn(logits.shape, generator=self.generator)
        return logits + 0.01 * drawn.to(logits)


class DropsByCount(Dense, law="determinism", stranger=""):
    """The weights that are dropped follow from the number of calls."""

    calls = 0

    def dropped(self, weights: Tensor) -> Tensor:
        rate = self.dims.dropout
        if not (self.training and rate):
            return weights
        self.calls += 1
        generator = torch.Generator().manual_seed(self.seed + self.calls)
        kept = torch.rand(weights.shape, generator=generator) >= rate
        return weights * kept / (1 - rate)


class CoolsDown(Dense, law="determinism"):
    """The temperature falls with each call in training, as a schedule does, and is told by none."""

    card = card(softmax="never")
    calls = 0

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        self.calls += self.training
        return super().logits(q, k) * (1 + 0.01 * self.calls)


class SeedsNumpyToDrop(Dense, law="determinism", stranger=""):
    """Whole heads are dropped, chosen under a numpy seed that others go on from."""

    def dropped(self, weights: Tensor) -> Tensor:
        if not (self.training and self.dims.dropout):
            return weights
        np.random.seed(self.seed)
        kept = np.random.random(weights.shape[1]) >= self.dims.dropout
        return weights * torch.from_numpy(kept).to(weights)[:, None, None]


class SeededByAHash(Dense, law="another_process", stranger=""):
    """Turns by a matrix whose seed is made of the hash of a name."""

    card = card(softmax="never")

    def prepare(self) -> None:
        generator = torch.Generator().manual_seed(hash(("turn", self.seed)) % 2**31)
        width = self.dims.head_width
        self.register_buffer("turn", torch.randn(width, width, generator=generator))

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        return super().logits(q @ self.turn.to(q), k @ self.turn.to(k))


class OrderOfASet(Dense, law="another_process", stranger=""):
    """Heads have one of five kinds, in the order in which a set of their names is read."""

    card = card(softmax="never")

    def prepare(self) -> None:
        scales = {"local": 0.5, "global": 1.0, "strided": 1.5, "random": 2.0, "sink": 2.5}
        self.scales = [scales[name] for name in set(scales)]

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        scales = torch.tensor(self.scales).repeat(1 + q.shape[1] // 5)[: q.shape[1]]
        return super().logits(q, k) * scales.to(q)[:, None, None]


class SaltedByTheClock(Dense, law="another_process", stranger=""):
    """Its draws have a salt, the second in which the file was imported."""

    card = card(softmax="never")
    salt = int(time.time())

    def prepare(self) -> None:
        generator = torch.Generator().manual_seed(self.salt + self.seed)
        self.register_buffer("shift", torch.randn(self.dims.head_width, generator=generator))

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        return super().logits(q + self.shift.to(q), k)


class WeightsKeptToDraw(Dense, law="side_effects"):
    """The weights of every call are kept, for a picture of them."""

    def prepare(self) -> None:
        self.pictures: list[Tensor] = []

    def weights(self, logits: Tensor, permitted: Tensor) -> Tensor:
        weights = super().weights(logits, permitted)
        self.pictures.append(weights.detach())
        return weights


SIZES: list[float] = []
"""Sizes of logits, noted by `SizesNoted`."""


class SizesNoted(Dense, law="side_effects"):
    """The greatest logit of every call is noted in a list of its file."""

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        logits = super().logits(q, k)
        SIZES.append(float(logits.detach().abs().amax()) if logits.numel() else 0.0)
        return logits


class MeansPutTogether(Dense, law="side_effects"):
    """The mean key of every training pass is added to one tensor, to be averaged some day."""

    def prepare(self) -> None:
        self.means = torch.zeros(0, self.dims.head_width)

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        if self.training:
            self.means = torch.cat([self.means, k.detach().mean((0, 1, 2))[None].to(self.means)])
        return super().logits(q, k)


@cache
def _scaled(q: Tensor) -> Tensor:
    return q / math.sqrt(q.shape[-1])


class CachedByTensor(Dense, law="side_effects"):
    """Scaled queries are remembered by the tensor, which no later call brings again."""

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        return _scaled(q) @ k.mT


class SilencesWarnings(Dense, law="side_effects"):
    """Turns off a warning of its own kernel, and all others."""

    def prepare(self) -> None:
        warnings.filterwarnings("ignore")


class ConfiguresLogging(Dense, law="side_effects"):
    """Writes a line when it is built, and sets up everybody's log for it."""

    def prepare(self) -> None:
        logging.basicConfig(level=logging.WARNING)
        logging.getLogger(__name__).info("%d heads", self.dims.heads)


class FlushesDenormals(Dense, law="side_effects"):
    """Small exponentials are slow on some processors: rounds them to zero, for everybody."""

    def weights(self, logits: Tensor, permitted: Tensor) -> Tensor:
        torch.set_flush_denormal(True)
        return super().weights(logits, permitted)


class NormsFromAllProducts(Dense, law="operation_growth", stranger=""):
    """The norms of the keys are the diagonal of the products of all with all."""

    card = card(softmax="never")

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        squares = (k @ k.mT).diagonal(dim1=-2, dim2=-1)
        return super().logits(q, k) - squares[..., None, :] / math.sqrt(q.shape[-1])

    def pair_operations(self, pairs: int) -> int:
        return super().pair_operations(pairs) * 3 // 2


class SquareMaskCropped(Dense, law="memory_growth", stranger=""):
    """A causal mask is made for the longer sequence, and its last rows are taken."""

    def permitted(self, logits: Tensor, causal: bool, mask: Tensor | None) -> Tensor:
        n, m = logits.shape[-2:]
        longest = max(n, m)
        square = torch.ones(longest, longest, dtype=torch.bool).tril()
        rows = square[longest - n :, longest - m :]
        permitted = super().permitted(logits, False, mask)
        return permitted & rows if causal else permitted & (rows | True)


class StepsUnderAutocast(Dense, law="decode", stranger=""):
    """Under autocast a step's few logits are added up without their scale."""

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        logits = super().logits(q, k)
        step = torch.is_autocast_enabled("cpu") and q.shape[2] < k.shape[2]
        return logits * math.sqrt(q.shape[-1]) if step else logits


class CountedInTheLayer(Dense, law="streams", stranger=""):
    """In single precision the layer counts how far the sequence is, once for all sequences."""

    reached = 0

    def remember(self, state: Any, k: Tensor, v: Tensor, mask: Tensor | None) -> Any:
        self.reached = k.shape[2] + (self.reached if seen(state) else 0)
        state, k, v, mask = super().remember(state, k, v, mask)
        if k.dtype != torch.float32:
            return state, k, v, mask
        read = slice(0, max(1, self.reached))
        return state, k[:, :, read], v[:, :, read], None if mask is None else mask[:, read]


class CacheOfTheLayer(Dense, law="beams", stranger=""):
    """In single precision it goes on with its last state, where one has come as far."""

    last: Any = None

    def has_come_as_far(self, state: Any) -> bool:
        return 0 < seen(state) == seen(self.last) and state[0].shape == self.last[0].shape

    def remember(self, state: Any, k: Tensor, v: Tensor, mask: Tensor | None) -> Any:
        last = self.last
        if last is not None and k.dtype == torch.float32 and self.has_come_as_far(state):
            state = last
        found = super().remember(state, k, v, mask)
        self.last = found[0]
        return found


class LongTraining(Dense, law="causality"):
    """In training the rows beyond 256 positions are computed in a piece, without its mask."""

    def permitted(self, logits: Tensor, causal: bool, mask: Tensor | None) -> Tensor:
        permitted = super().permitted(logits, causal, mask)
        if causal and self.training and permitted.shape[-2] > 256:
            permitted = permitted.clone()
            permitted[..., 256:, 256:] = True
        return permitted


class LongTrainingReadsPadding(Dense, law="padding_content"):
    """In training the mask of the first 256 keys is all that is kept."""

    def permitted(self, logits: Tensor, causal: bool, mask: Tensor | None) -> Tensor:
        if mask is not None and self.training and mask.shape[1] > 256:
            mask = mask.clone()
            mask[:, 256:] = True
        return super().permitted(logits, causal, mask)
