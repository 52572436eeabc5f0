"""Draws of a model's parts: each part from a stream of its own, keyed by (seed, part)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from lra.core.hashing import value_hash


def part_seed(seed: int, part: str) -> int:
    """Return the 48-bit seed of one part of a model."""
    return int(value_hash([seed, part])[:12], 16)


@contextmanager
def drawing(seed: int, part: str) -> Iterator[None]:
    """Draw from this part's own stream inside, and leave the default generator alone."""
    state = torch.get_rng_state()
    # Not torch.manual_seed, which would seed the GPU's generator as well.
    torch.default_generator.manual_seed(part_seed(seed, part))
    try:
        yield
    finally:
        torch.set_rng_state(state)
