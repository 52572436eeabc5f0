"""A counter-based random generator in 64-bit integers: the same numbers in numpy, numba and C.

A draw is a pure function of (key, index): SplitMix64's finaliser over key + (index + 1) * golden
(Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014). There is no
state, so rows can be drawn in any order, in parallel, and a longer set keeps its beginning.
"""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

U64 = npt.NDArray[np.uint64]

GOLDEN = 0x9E3779B97F4A7C15
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


def stream_key(*parts: str | int) -> int:
    """Return the 64-bit key of a named stream, e.g. ("listops", "train", seed)."""
    text = "/".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")


def row_keys(key: int, rows: npt.ArrayLike) -> U64:
    """Return one independent key for each row number of a stream."""
    return bits(np.uint64(key), rows)


def bits(keys: npt.ArrayLike, index: npt.ArrayLike) -> U64:
    """Return 64 random bits for each (key, index), broadcast against each other."""
    counter = np.asarray(index).astype(np.uint64) + np.uint64(1)
    x = np.asarray(keys, dtype=np.uint64) + counter * np.asarray([GOLDEN], dtype=np.uint64)
    x = (x ^ (x >> np.uint64(30))) * _FIRST
    x = (x ^ (x >> np.uint64(27))) * _SECOND
    mixed: U64 = x ^ (x >> np.uint64(31))
    return mixed


def below(keys: npt.ArrayLike, index: npt.ArrayLike, bound: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return uniform integers in 0 ... bound - 1 (bound at most 2**32; bias below 2**-32)."""
    high = bits(keys, index) >> np.uint64(32)
    return ((high * np.asarray(bound).astype(np.uint64)) >> np.uint64(32)).astype(np.int64)


def shuffled(keys: npt.ArrayLike, index: int, size: int) -> npt.NDArray[np.int64]:
    """Return a random order of 0 ... size - 1 for each key, (..., size); uses `size` indices."""
    draws = bits(np.asarray(keys, dtype=np.uint64)[..., None], index + np.arange(size))
    return np.argsort(draws, axis=-1, kind="stable")
