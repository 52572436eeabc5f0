"""Faults of tables that are kept from request to request: by length, by type, and in a number that
has a limit."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from verify.faults.dense import Dense, card


class DirectionKeptInSingle(Dense, law="sequel"):
    """In single precision the mask of permitted pairs is kept by length and type, direction
    included."""

    def prepare(self) -> None:
        self.kept: dict[tuple[int, torch.dtype], Tensor] = {}

    def permitted(self, logits: Tensor, causal: bool, mask: Tensor | None) -> Tensor:
        n, m = logits.shape[-2:]
        if logits.dtype != torch.float32 or n != m:
            return super().permitted(logits, causal, mask)
        both = super().permitted(logits[:1, :1], causal, None)
        both = self.kept.setdefault((n, logits.dtype), both)
        return super().permitted(logits, False, mask) & both


class MaskKeptOfLongInputs(Dense, law="sequel"):
    """From 256 positions on the mask of real keys is kept by the shape of the input."""

    def prepare(self) -> None:
        self.kept: dict[torch.Size, Tensor] = {}

    def permitted(self, logits: Tensor, causal: bool, mask: Tensor | None) -> Tensor:
        if logits.shape[-1] >= 256:
            real = logits.new_ones(len(logits), logits.shape[-1], dtype=torch.bool)
            mask = self.kept.setdefault(logits.shape, real if mask is None else mask)
        return super().permitted(logits, causal, mask)


class RoomForSixteen(Dense, law="sequel"):
    """Scales are kept for sixteen lengths; where there is no room for another one, the name of the
    oldest is taken off and the newest scale."""

    card = card(softmax="never")

    def prepare(self) -> None:
        self.lengths: list[int] = []
        self.scales: list[float] = []

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        length = k.shape[2]
        if length not in self.lengths:
            self.lengths.append(length)
            self.scales.append(1.0 + math.log(length) if length else 1.0)
        if len(self.lengths) > 16:
            self.lengths.pop(0)
            self.scales.pop()
        return super().logits(q, k) * self.scales[self.lengths.index(length)]


class TableOfTheFirstType(Dense, law="sequel", stranger=""):
    """A table of shifts is kept by length, in the type of the first request of that length."""

    card = card(softmax="never")

    def prepare(self) -> None:
        self.kept: dict[int, Tensor] = {}

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        length = k.shape[2]
        fresh = torch.arange(length, dtype=q.dtype).cos().exp()
        return super().logits(q, k) - self.kept.setdefault(length, fresh).to(q)
