"""Attention of a trained model, small enough for a record: how far its heads look, which pixels its
answers came from, and which tokens of a source each token of a target reads.

L layers   H heads   Y, X rows and columns of a picture   N, M tokens of a target and a source
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, UnsetType

from lra.core.protocol import Positive

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_LEVELS = 255


class Rollout(msgspec.Struct, frozen=True, kw_only=True):
    """One picture, and the share of the answer that attention takes from each pixel. Unknown fields
    are allowed."""

    side: Positive
    """Side of the picture, in pixels."""
    label: int
    answer: int
    pixels: bytes
    """Grey values of (Y, X), by rows, deflated."""
    top: float
    """The largest share."""
    shares: bytes
    """Shares by (Y, X), as bytes of which 255 is the top, deflated."""

    def __post_init__(self) -> None:
        """Refuse data that is no picture of that size, so that plots need not check."""
        for name in ("pixels", "shares"):
            if len(_inflated(getattr(self, name), self.side**2)) != self.side**2:
                raise ValueError(f"{name} of a rollout should be {self.side**2} bytes")

    def pixels_YX(self) -> npt.NDArray[np.uint8]:  # noqa: N802  shapes, as everywhere
        """Return the grey values."""
        return self._square(self.pixels)

    def shares_YX(self) -> npt.NDArray[np.float64]:  # noqa: N802
        """Return the shares, to the precision of a byte."""
        shares_YX: npt.NDArray[np.float64] = self.top * self._square(self.shares) / _LEVELS
        return shares_YX

    def _square(self, packed: bytes) -> npt.NDArray[np.uint8]:
        import numpy as np

        plain = _inflated(packed, self.side**2)
        return np.frombuffer(plain, np.uint8).reshape(self.side, self.side)


class CrossMap(msgspec.Struct, frozen=True, kw_only=True):
    """Shares in which each token of a target reads the tokens of a source, in one layer: the mean
    over heads and examples. Unknown fields are allowed."""

    targets: Positive
    sources: Positive
    top: float
    """The largest share."""
    shares: bytes
    """Shares by (N, M), as bytes of which 255 is the top, deflated."""

    def __post_init__(self) -> None:
        """Refuse data that is no map of that size, so that plots need not check."""
        size = self.targets * self.sources
        if len(_inflated(self.shares, size)) != size:
            raise ValueError(f"shares of a cross map should be {size} bytes")

    def shares_NM(self) -> npt.NDArray[np.float64]:  # noqa: N802
        """Return the shares, to the precision of a byte."""
        import numpy as np

        plain = _inflated(self.shares, self.targets * self.sources)
        levels_NM = np.frombuffer(plain, np.uint8).reshape(self.targets, self.sources)
        shares_NM: npt.NDArray[np.float64] = self.top * levels_NM / _LEVELS
        return shares_NM


class TrainedAttention(msgspec.Struct, frozen=True, kw_only=True):
    """Attention of one trained model, over some examples of the validation split. Unknown fields
    are allowed."""

    examples: Positive
    distances: tuple[tuple[float, ...], ...]
    """(L, H): mean distance of a query to the keys it reads, weighted by how much, in tokens; ()
    for a model that reads another sequence."""
    rollouts: tuple[Rollout, ...] = ()
    cross_maps: tuple[CrossMap, ...] | UnsetType = UNSET
    """One for each layer that reads another sequence; unset where none does."""

    @property
    def crosses(self) -> tuple[CrossMap, ...]:
        """Cross maps, none where no layer reads another sequence."""
        return () if self.cross_maps is UNSET else self.cross_maps

    @property
    def distance(self) -> float:
        """Mean over layers and heads."""
        heads = [distance for layer in self.distances for distance in layer]
        return sum(heads) / len(heads)


def pack_rollout(pixels_YX: Any, shares_YX: Any, *, label: int, answer: int) -> Rollout:
    """Return the rollout of two square arrays, grey values and shares."""
    import numpy as np

    top, shares = _packed(shares_YX)
    return Rollout(
        side=len(pixels_YX),
        label=label,
        answer=answer,
        pixels=zlib.compress(np.asarray(pixels_YX, np.uint8).tobytes(), 9),
        top=top,
        shares=shares,
    )


def pack_cross(shares_NM: Any) -> CrossMap:
    """Return the cross map of an array of shares."""
    top, shares = _packed(shares_NM)
    targets, sources = shares_NM.shape
    return CrossMap(targets=targets, sources=sources, top=top, shares=shares)


def _packed(shares: Any) -> tuple[float, bytes]:
    """The largest of some shares, and all of them as deflated bytes."""
    import numpy as np

    top = float(shares.max())
    levels = np.rint(_LEVELS * np.asarray(shares) / (top or 1.0)).astype(np.uint8)
    return top, zlib.compress(levels.tobytes(), 9)


def _inflated(data: bytes, size: int) -> bytes:
    """Inflate, up to one byte more than expected."""
    try:
        return zlib.decompressobj().decompress(data, size + 1)
    except zlib.error as error:
        raise ValueError("a rollout or a cross map cannot be unpacked") from error
