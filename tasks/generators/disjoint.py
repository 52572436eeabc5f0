"""Splits that cannot share an example: the example's own content says which split it belongs to.

One stream of candidates serves all three splits. A fingerprint of the finished example sends it to
train, validation or test, so equal examples always land in the same split, however many rows are
asked for, and more rows keep the earlier ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lra.core.dataset import Split, SplitName
from tasks.generators.counter import U64, bits, row_keys

_SHARES: dict[SplitName, tuple[int, ...]] = {"train": (0, 1), "validation": (2,), "test": (3,)}
"""Which quarters of the fingerprints belong to which split."""
_CANDIDATES = 2048
"""Rows drawn at a time; the result does not depend on it."""


@dataclass(frozen=True)
class Drawn:
    """A batch of finished candidates as padded matrices."""

    tokens_RIN: npt.NDArray[np.integer]
    """Rows, inputs of each row, slots; uint8, uint16 or int32; slots that are not kept hold 0."""
    kept_RIN: npt.NDArray[np.bool_]
    labels: npt.NDArray[np.integer]
    """(R,); or (R, I, N) where each token has one."""


def disjoint_split(draw: Callable[[U64], Drawn], stream: int, split: SplitName, rows: int) -> Split:
    """Return the first `rows` candidates of `stream` whose content belongs to `split`.

    `draw` turns row keys (R,) into R examples; each may depend on its own key alone.
    """
    parts: list[Drawn] = []
    found = first = 0
    while found < rows:
        drawn = draw(row_keys(stream, np.arange(first, first + _CANDIDATES)))
        mine = np.flatnonzero(np.isin(_quarter(drawn.tokens_RIN), _SHARES[split]))[: rows - found]
        parts.append(Drawn(drawn.tokens_RIN[mine], drawn.kept_RIN[mine], drawn.labels[mine]))
        found += len(mine)
        first += _CANDIDATES
    lengths = np.concatenate([part.kept_RIN.sum(-1).ravel() for part in parts])
    starts = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=starts[1:])
    by_token = parts[0].labels.ndim > 1
    return Split(
        np.concatenate([part.tokens_RIN[part.kept_RIN] for part in parts]),
        starts,
        np.concatenate([p.labels[p.kept_RIN] if by_token else p.labels for p in parts]),
        inputs=parts[0].tokens_RIN.shape[1],
        by_token=by_token,
    )


def _quarter(tokens_RIN: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    """0 ... 3 for each row, from its tokens; a pair and its swap agree."""
    slots = np.arange(tokens_RIN.shape[-1])
    sums = bits(tokens_RIN.astype(np.uint64), slots).sum(axis=-1, dtype=np.uint64)
    pair = bits(sums, 0).sum(axis=-1, dtype=np.uint64)
    quarter: npt.NDArray[np.int64] = (bits(pair, 0) >> np.uint64(62)).astype(np.int64)
    return quarter
