"""Attention pattern of a mechanism on one input, small enough for a record.

N positions   S matrices of support   H matrices of values
"""

from __future__ import annotations

import math
import zlib
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from lra.core.errors import UsageError
from lra.core.protocol import Positive

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Truths = npt.NDArray[np.bool_]
    Numbers = npt.NDArray[np.float64]

MOST_SQUARES = 65_536
"""Largest number of values, heads times N squared: four heads at 128 positions, one at 256. So a
record stays below 100 kB, and each square of a picture large enough to be seen."""

DECADES = 6
"""Decades of a logarithmic scale: smaller values read as zero."""

_EVEN, _SIGNED, _LOGARITHMIC = 255, 127, 254
"""Levels of one byte above zero. The logarithmic scale spends one more on zero itself."""


class Pattern(msgspec.Struct, frozen=True, kw_only=True):
    """Which positions each of N queries reads, and how strongly. Unknown fields are allowed."""

    length: Positive
    """N, the number of queries and of keys."""
    supports: Positive
    """S: 1 where the heads share their support."""
    support: bytes
    """Bits of (S, N, N), by rows, deflated."""
    measured: bool = False
    """Whether the support is where the dependence is not zero, for want of a declared one."""
    kind: Literal["weights", "dependence"]
    """weights: of the values, by the mechanism's oracle, head by head. dependence: |d y_i / d x_j|
    of the layer, summed over the features of both; H is 1."""
    heads: Positive
    """H."""
    scale: Literal["even", "signed", "logarithmic"]
    """How a byte of `levels` stands for a value: from 0 to the top; from minus the top to the top;
    or in equal ratios over the decades below the top."""
    top: float
    """Largest size of a value."""
    levels: bytes
    """Bytes of (H, N, N), by rows, deflated."""

    def __post_init__(self) -> None:
        """Refuse matrices of other sizes than declared, so that plots need not check."""
        if max(self.heads, self.supports) * self.length**2 > MOST_SQUARES:
            raise ValueError(f"a pattern of more than {MOST_SQUARES} values")
        _inflated(self.support, -(-self.supports * self.length**2 // 8), "support")
        _inflated(self.levels, self.heads * self.length**2, "levels")

    @property
    def share(self) -> float:
        """Share of all pairs that are in the support, over all heads where these differ."""
        return float(self.support_SNN().mean())

    def support_SNN(self) -> Truths:  # noqa: N802  shapes, as everywhere
        """Return which query (row) may depend on which key (column)."""
        import numpy as np

        shape = (self.supports, self.length, self.length)
        count = self.supports * self.length**2
        packed = np.frombuffer(_inflated(self.support, -(-count // 8), "support"), np.uint8)
        return np.unpackbits(packed, count=count).astype(bool).reshape(shape)

    def values_HNN(self) -> Numbers:  # noqa: N802
        """Return the values, to the precision of a byte."""
        import numpy as np

        shape = (self.heads, self.length, self.length)
        plain = _inflated(self.levels, self.heads * self.length**2, "levels")
        kind = np.int8 if self.scale == "signed" else np.uint8
        levels = np.frombuffer(plain, kind).astype(np.float64).reshape(shape)
        if self.scale == "logarithmic":
            values = self.top * 10.0 ** (DECADES * (levels - 1 - _LOGARITHMIC) / _LOGARITHMIC)
            return np.where(levels == 0, 0.0, values)
        return self.top * levels / (_SIGNED if self.scale == "signed" else _EVEN)


def pack(
    support_SNN: Any, values_HNN: Any, kind: Literal["weights", "dependence"], *, measured: bool
) -> Pattern:
    """Return the pattern of two arrays, (S, N, N) boolean and (H, N, N) finite."""
    import numpy as np

    if bool((support_SNN == support_SNN[:1]).all()):
        support_SNN = support_SNN[:1]
    top = float(np.abs(values_HNN).max(initial=0.0))
    shares = np.asarray(values_HNN, np.float64) / (top or 1.0)
    scale: Literal["even", "signed", "logarithmic"]
    if kind == "dependence":
        with np.errstate(divide="ignore"):
            places = np.rint(_LOGARITHMIC * (1.0 + np.log10(shares) / DECADES)) + 1
        scale, levels = "logarithmic", np.where(places >= 1, places, 0).astype(np.uint8)
    elif shares.min() < 0:
        scale, levels = "signed", np.rint(shares * _SIGNED).astype(np.int8)
    else:
        scale, levels = "even", np.rint(shares * _EVEN).astype(np.uint8)
    return Pattern(
        length=values_HNN.shape[-1],
        supports=len(support_SNN),
        support=zlib.compress(np.packbits(support_SNN).tobytes(), 9),
        measured=measured,
        kind=kind,
        heads=len(values_HNN),
        scale=scale,
        top=top,
        levels=zlib.compress(levels.tobytes(), 9),
    )


def check_size(length: int, heads: int) -> None:
    """Raise `UsageError` for a picture of nothing, or with too many squares to tell apart."""
    if length < 1:
        raise UsageError(f"--length {length} has no position to draw; give 1 or more")
    if heads * length**2 > MOST_SQUARES:
        most = math.isqrt(MOST_SQUARES // heads)
        raise UsageError(
            f"{heads} heads of {length} positions are {heads * length**2:,} squares, of which a "
            f"picture holds {MOST_SQUARES:,}; draw "
            + (f"{most} positions at most, or fewer --heads" if most else "fewer --heads")
        )


def _inflated(data: bytes, size: int, what: str) -> bytes:
    """Inflate; raises `ValueError` unless exactly `size` bytes come of it."""
    try:
        plain = zlib.decompressobj().decompress(data, size + 1)
    except zlib.error as error:
        raise ValueError(f"{what} of a pattern cannot be unpacked") from error
    if len(plain) != size:
        raise ValueError(f"{what} of a pattern should be {size} bytes, got {len(plain)}")
    return plain
