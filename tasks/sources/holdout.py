"""Which split an example belongs to where the source does not say: decided by its content.

Identical content lands in one split, and neither the order of rows nor their number matters.
"""

from __future__ import annotations

import hashlib

from lra.core.dataset import SplitName

SHARE = 0.1
"""Held out of train for validation; of a file without any split, as much again for test."""

_RANGE = 2**64


def content_key(content: bytes) -> int:
    """Return a 64-bit hash of the content, uniform over 0 ... 2**64 - 1."""
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little")


def held_out(key: int) -> bool:
    """Return whether a training example belongs to validation."""
    return key < SHARE * _RANGE


def assigned(key: int) -> SplitName:
    """Return the split of an example of a file that has none."""
    if held_out(key):
        return "validation"
    return "test" if key >= (1.0 - SHARE) * _RANGE else "train"
