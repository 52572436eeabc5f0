"""Sines, cosines and angles in integers: a machine's mathematical library may round differently.

A fixed-point number is an int64 holding the value times 2**30. Errors stay below 2**-27, and
`floor` and `ceil` take what lies within 2**-18 of an integer for that integer.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]

BITS = 30
ONE = 1 << BITS
PI = 3373259426
"""pi times 2**30, rounded."""
_NEAR = 1 << (BITS - 18)


def cos(angle: npt.ArrayLike) -> I64:
    """Return the cosine of an angle in radians, both fixed-point."""
    turned = np.abs(np.asarray(angle, dtype=np.int64)) % (2 * PI)
    turned = np.minimum(turned, 2 * PI - turned)
    obtuse = turned > PI // 2
    acute = np.where(obtuse, PI - turned, turned)
    square = (acute * acute) >> BITS
    # Taylor: 1 - x2/(1*2) * (1 - x2/(3*4) * (1 - ...)); the first term left out is below 2**-33.
    series: I64 = np.full_like(square, ONE)
    for last in range(16, 0, -2):
        series = ONE - ((square * series) >> BITS) // (last * (last - 1))
    return series * np.where(obtuse, -1, 1)


def sin(angle: npt.ArrayLike) -> I64:
    """Return the sine of an angle in radians, both fixed-point."""
    return cos(np.asarray(angle, dtype=np.int64) - PI // 2)


def direction(y: npt.ArrayLike, x: npt.ArrayLike) -> I64:
    """Return the angle of integer vectors (y, x) in radians, fixed-point, within -pi ... pi."""
    y, x = np.broadcast_arrays(np.asarray(y, dtype=np.int64), np.asarray(x, dtype=np.int64))
    low, high = np.zeros(y.shape, dtype=np.int64), np.full(y.shape, PI, dtype=np.int64)
    for _ in range(BITS + 2):
        middle = (low + high) // 2
        ahead = cos(middle) * np.abs(y) > sin(middle) * x
        low, high = np.where(ahead, middle, low), np.where(ahead, high, middle)
    return np.where(y < 0, -high, high)


def floor(value: I64) -> I64:
    """Round fixed-point down to integers."""
    return (value + _NEAR) >> BITS


def ceil(value: I64) -> I64:
    """Round fixed-point up to integers."""
    return -floor(-value)


def nearest(value: I64) -> I64:
    """Round fixed-point to the nearest integers, halves up."""
    return floor(value + ONE // 2)
