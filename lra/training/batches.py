"""Batches: their rows, and the tokens, mask and labels of these as tensors.

The order decides which rows share a batch, from their lengths and the seed alone. The collator
decides only how far the rows are padded. So a bucketed training and an unbucketed one see the same
rows in the same batches, and compute the same for a mechanism whose padding is `content`; all
mechanisms under one seed see the same batches, too.

    E examples, S = E * inputs sequences (pairs interleaved), N tokens, T tokens with a label,
    L labels; where examples have a source, S = E sequences beside it, and M tokens of a source
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from lra.core.dataset import PAD, UNASKED, Split
from lra.core.protocol import Rules

Indices = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_ALL, _SOURCE, _ASKED = slice(None), slice(1), slice(1, 2)
"""Sequences of an example."""

POOL = 50
"""Number of batches sorted by length together: with fifty, padding is a few per cent of the
computed positions."""


class Order:
    """Rows of each training step: every row once per epoch, shuffled anew in each.

    An epoch is a permutation that depends on the seed and the epoch alone, cut into the fewest
    batches of at most `batch` rows, of equal size or one apart. With `by_length`, pools of `POOL`
    batches (at most a quarter of an epoch, so that batches change from epoch to epoch) are sorted
    by length before they are cut, and the batches are shuffled afterwards. For two sequences the
    longer one counts.
    """

    def __init__(self, split: Split, batch: int, seed: int, *, by_length: bool) -> None:
        if not len(split):
            raise ValueError("cannot train on a split without rows")
        self.longest_E = split.lengths.max(axis=1)
        self.batches = -(-len(split) // batch)
        """Number of batches in one epoch."""
        self.seed = seed
        self.by_length = by_length
        self._epoch = -1
        self._rows: list[Indices] = []

    def rows(self, step: int) -> Indices:
        """Return the row numbers of a step; steps count from 0 over all epochs."""
        epoch, index = divmod(step, self.batches)
        if epoch != self._epoch:
            self._rows, self._epoch = self._shuffled(epoch), epoch
        return self._rows[index]

    def _shuffled(self, epoch: int) -> list[Indices]:
        draws = np.random.default_rng([self.seed, epoch])
        rows = draws.permutation(len(self.longest_E))
        cuts = np.arange(self.batches + 1) * len(rows) // self.batches
        if not self.by_length:
            return np.split(rows, cuts[1:-1])
        pool = min(POOL, -(-self.batches // 4))
        for first in range(0, self.batches, pool):
            inside = slice(cuts[first], cuts[min(first + pool, self.batches)])
            # Stable, so that rows of one length stay shuffled.
            rows[inside] = rows[inside][np.argsort(self.longest_E[rows[inside]], kind="stable")]
        batches = np.split(rows, cuts[1:-1])
        return [batches[index] for index in draws.permutation(self.batches)]


def evaluation_rows(split: Split, batch: int) -> list[Indices]:
    """Return batches that cover a split once, longest rows first, so that memory peaks early."""
    rows = np.argsort(-split.lengths.max(axis=1), kind="stable")
    return [rows[first : first + batch] for first in range(0, len(rows), batch)]


@dataclass(frozen=True)
class Batch:
    """One batch as tensors."""

    tokens_SN: Tensor
    """Token ids in the split's own small integer dtype, but for a GPU's; `PAD` beyond a sequence's
    end."""
    mask_SN: Tensor | None
    """True where a token is real; None where nothing is padded."""
    labels_L: Tensor
    """Labels, (E,); where tokens have labels, those of the tokens that have one, (T,), row by
    row."""
    asked_T: Tensor | None = None
    """Places of the tokens with a label, counted row by row; None where examples have labels. A
    mask would say the same, but its count is in its values: a GPU would be waited for."""
    source_EM: Tensor | None = None
    """Token ids of the sources, where examples have one; all else is then of the other
    sequences."""
    source_mask_EM: Tensor | None = None

    def to(self, device: torch.device) -> Batch:
        """Return the batch on a device; the copy to a GPU does not wait."""
        if device.type != "cuda":
            return self
        return Batch(
            _widened(_send(self.tokens_SN, device)),
            _send_any(self.mask_SN, device),
            _send(self.labels_L, device),
            _send_any(self.asked_T, device),
            None if self.source_EM is None else _widened(_send(self.source_EM, device)),
            _send_any(self.source_mask_EM, device),
        )


class Collator:
    """Rows of a split to a padded batch: one gather from the flat buffer.

    Every sequence is padded to `length`; None cuts each batch to its longest, rounded up to a
    `multiple`, but to no more than the split's longest. Sources are cut apart from what is asked of
    them. Under `lra2021` rules the mask is `id > 0`, whatever that hides, as in the original.
    """

    def __init__(
        self, split: Split, *, length: int | None, rules: Rules, multiple: int = 1
    ) -> None:
        lengths = np.diff(split.starts)
        if length is not None and len(lengths) and lengths.max() > length:
            raise ValueError(f"a sequence of {lengths.max()} tokens does not fit in {length}")
        self.tokens = split.tokens
        self.starts_SI = split.starts[:-1].reshape(len(split), split.inputs)
        self.lengths_SI = lengths.reshape(len(split), split.inputs)
        self.labels = split.labels
        self.length, self.multiple = length, multiple
        self.columns = np.arange(max(int(lengths.max(initial=1)), length or 1))
        self.rules = rules
        self.by_token, self.has_source = split.by_token, split.has_source
        self.answers_E = _answers(split)
        """Number of labels of each example."""

    def over(self, split: Split) -> Collator:
        """Return a collator that pads another split's rows by the same rule."""
        return Collator(split, length=self.length, rules=self.rules, multiple=self.multiple)

    @property
    def has_one_length(self) -> bool:
        """Whether all batches have the same length, of sources and of others."""
        apart = self.lengths_SI.T if self.has_source else [self.lengths_SI]
        padded = [{self.padded(int(longest)) for longest in np.unique(own)} for own in apart]
        return all(len(lengths) == 1 for lengths in padded)

    def padded(self, longest: int) -> int:
        """Return the length of a batch whose longest sequence is so long."""
        if self.length is not None:
            return self.length
        # A batch of empty sequences still has one, masked, column.
        return min(-(-max(longest, 1) // self.multiple) * self.multiple, len(self.columns))

    def lengths(self, rows: Indices) -> tuple[int, ...]:
        """Return the padded lengths of a batch of these rows: that of sources and that of others,
        or the one of all."""
        lengths_EI = self.lengths_SI.take(rows, axis=0)
        apart = lengths_EI.T if self.has_source else [lengths_EI]
        return tuple(self.padded(int(own.max())) for own in apart)

    def __call__(self, rows: Indices) -> Batch:
        """Return the batch of these rows, in this order."""
        places_SN, tokens_SN, mask_SN = self._gathered(rows, _ASKED if self.has_source else _ALL)
        if self.by_token:
            labels_SN = self.labels.take(places_SN, mode="clip")
            if mask_SN is not None:
                labels_SN[~mask_SN] = UNASKED
            asked_SN = labels_SN != UNASKED
            labels = labels_SN[asked_SN].astype(np.int64)
            asked = torch.from_numpy(np.flatnonzero(asked_SN))
        else:
            labels, asked = self.labels.take(rows), None
        source = source_mask = None
        if self.has_source:
            _, source_EM, source_mask_EM = self._gathered(rows, _SOURCE)
            source = torch.from_numpy(source_EM)
            source_mask = self._mask(source_EM, source_mask_EM)
        return Batch(
            torch.from_numpy(tokens_SN),
            self._mask(tokens_SN, mask_SN),
            torch.from_numpy(labels),
            asked,
            source,
            source_mask,
        )

    def _gathered(self, rows: Indices, which: slice) -> _Gathered:
        """Return places in the buffer, tokens and mask of some sequences of each row, padded."""
        starts_S = self.starts_SI.take(rows, axis=0)[:, which].ravel()
        lengths_S = self.lengths_SI.take(rows, axis=0)[:, which].ravel()
        length = self.padded(int(lengths_S.max()))
        columns_N = self.columns[:length]
        places_SN = starts_S[:, None] + columns_N
        # Beyond the end of a row stand the next row's tokens, and beyond the buffer nothing: `clip`
        # reads some token there, and padding is overwritten.
        tokens_SN = self.tokens.take(places_SN, mode="clip")
        mask_SN = None
        if lengths_S.min() < length:
            mask_SN = columns_N < lengths_S[:, None]
            tokens_SN[~mask_SN] = PAD
        return _Gathered(places_SN, tokens_SN, mask_SN)

    def _mask(self, tokens_SN: npt.NDArray[np.integer], mask_SN: Mask | None) -> Tensor | None:
        """Return the mask that the rules have."""
        if self.rules == "lra2021":
            mask_SN = tokens_SN != PAD
        return None if mask_SN is None else torch.from_numpy(mask_SN)


class _Gathered(NamedTuple):
    places_SN: Indices
    tokens_SN: npt.NDArray[np.integer]
    mask_SN: Mask | None
    """None where nothing is padded."""


def _answers(split: Split) -> Indices:
    """Number of labels of each example of a split, (E,)."""
    if not split.by_token:
        return np.ones(len(split), dtype=np.int64)
    asked = np.append(0, np.cumsum(split.labels != UNASKED))
    return np.diff(asked[split.starts[:: split.inputs]])


def _send(tensor: Tensor, device: torch.device) -> Tensor:
    return tensor.pin_memory().to(device, non_blocking=True)


def _send_any(tensor: Tensor | None, device: torch.device) -> Tensor | None:
    return None if tensor is None else _send(tensor, device)


def _widened(tokens: Tensor) -> Tensor:
    # torch copies no inputs of a CUDA graph in the smaller dtypes.
    return tokens.to(torch.int32) if tokens.dtype == torch.uint16 else tokens
