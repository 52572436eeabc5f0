"""Faults that show in the sizes of real training alone, and by some numbers of threads."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from attention_impls.contract import Context, MechanismConfig, seen
from verify.faults.dense import Dense, card


class HeadsInEights(Dense, law="oracle", stranger=""):
    """Heads are worked off eight at a time; those beyond the first eight are not scaled."""

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        scaled = super().logits(q[:, :8], k[:, :8])
        return torch.cat([scaled, q[:, 8:] @ k[:, 8:].mT], 1)


class PairsOfFeatures(Dense, law="oracle", stranger=""):
    """Features are multiplied in pairs, and the last of an odd number falls off."""

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        width = q.shape[-1]
        even = width - width % 2 if width > 1 else width
        return q[..., :even] @ k[..., :even].mT / math.sqrt(width)


class WideHeads(Dense, law="oracle", stranger=""):
    """Heads of 64 go to a fused kernel that is expected to scale, and does not."""

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        return super().logits(q, k) if q.shape[-1] < 64 else q @ k.mT


class ExamplesInFours(Dense, law="batch"):
    """Examples are worked off four at a time; the rest of the last four is what stood there."""

    def read(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> Tensor:
        out = super().read(q, k, v, context)
        return torch.cat([out[:4], out[: len(out) - 4]]) if len(out) > 4 else out


class ShiftsInOddLayers(Dense, law="causality", stranger=""):
    """Every other layer shifts its keys by one, so that information crosses borders: also that of
    what is to come."""

    card = card(softmax="never")

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        return super().logits(q, k.roll(-1, 2) if self.layer_index % 2 else k)


class GroupsInterleaved(Dense, law="oracle", stranger=""):
    """Heads of keys are repeated as a whole, 0 1 0 1; each has its queries in a row."""

    class Config(MechanismConfig, frozen=True):
        kv_heads: int | None = None

    config: Config

    @property
    def kv_heads(self) -> int:
        return self.config.kv_heads or self.dims.heads

    def read(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> Tensor:
        k, v = (x.repeat(1, q.shape[1] // x.shape[1], 1, 1) for x in (k, v))
        return super().read(q, k, v, context)


class MaskOfAThousand(Dense, law="causality"):
    """The causal mask is a table of 1,024 positions; later keys are in no row of it."""

    def permitted(self, logits: Tensor, causal: bool, mask: Tensor | None) -> Tensor:
        permitted = super().permitted(logits, causal, mask)
        unseen = super().permitted(logits, False, mask)
        return torch.cat([permitted[..., :1024], unseen[..., 1024:]], -1)


class PaddingOfAThousand(Dense, law="padding_count", stranger="padding_content"):
    """The mask of padding has room for 1,024 keys; later ones all count as real."""

    def permitted(self, logits: Tensor, causal: bool, mask: Tensor | None) -> Tensor:
        permitted = super().permitted(logits, causal, mask)
        real = super().permitted(logits, causal, None)
        return torch.cat([permitted[..., :1024], real[..., 1024:]], -1)


class RestOfTheBlocks(Dense, law="oracle", stranger="causality"):
    """Long inputs go in blocks of 512, and what is left over reads itself alone."""

    @property
    def borders(self) -> tuple[int, ...]:
        return (512,)

    def permitted(self, logits: Tensor, causal: bool, mask: Tensor | None) -> Tensor:
        permitted = super().permitted(logits, causal, mask)
        start = logits.shape[-2] // 512 * 512
        if start < logits.shape[-2]:
            permitted[..., start:, :start] = False
        return permitted


class SourceInPages(Dense, law="cross"):
    """Another sequence is read in pages of 256 keys, each with a softmax of its own."""

    def weights(self, logits: Tensor, permitted: Tensor) -> Tensor:
        if logits.shape[-2] == logits.shape[-1]:
            return super().weights(logits, permitted)
        pages = zip(logits.split(256, -1), permitted.split(256, -1), strict=True)
        weights = torch.cat([super(SourceInPages, self).weights(*page) for page in pages], -1)
        return weights / weights.sum(-1, keepdim=True).clamp(min=1e-9)


class CacheInPages(Dense, law="decode", stranger=""):
    """The cache has pages of 512 positions; of a piece that crosses their border the rest is
    lost."""

    def remember(self, state: Any, k: Tensor, v: Tensor, mask: Tensor | None) -> Any:
        room = 512 - seen(state)
        if 0 < room < k.shape[2]:
            k = torch.cat([k[:, :, :room], torch.zeros_like(k[:, :, room:])], 2)
        return super().remember(state, k, v, mask)


class RestOfTheThreads(Dense, law="threads"):
    """Keys are dealt out to the threads, and what is left over is dealt to none."""

    card = card(softmax="never")

    def permitted(self, logits: Tensor, causal: bool, mask: Tensor | None) -> Tensor:
        permitted = super().permitted(logits, causal, mask)
        keys, threads = logits.shape[-1], torch.get_num_threads()
        return permitted & (torch.arange(keys) < max(1, keys - keys % threads))


class TopOfEachThread(Dense, law="threads"):
    """Each thread takes the largest logit of its own keys off, and their sums are added up."""

    def weights(self, logits: Tensor, permitted: Tensor) -> Tensor:
        parts = logits.masked_fill(~permitted, -1e9).chunk(torch.get_num_threads(), -1)
        exponentials = torch.cat([(x - x.amax(-1, keepdim=True)).exp() for x in parts], -1)
        exponentials = exponentials * permitted
        return exponentials / exponentials.sum(-1, keepdim=True).clamp(min=1e-30)


class ScratchOfTheLayer(Dense, law="threads", stranger=""):
    """Without gradients logits are written to an array that is kept for the next call of that
    shape: two calls at once write to the same."""

    def prepare(self) -> None:
        self.scratch: dict[tuple[torch.dtype, torch.Size], Tensor] = {}

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        logits = super().logits(q, k)
        if torch.is_grad_enabled() or torch.is_inference_mode_enabled():
            return logits
        kept = self.scratch.setdefault((logits.dtype, logits.shape), torch.empty_like(logits))
        return kept.copy_(logits)
