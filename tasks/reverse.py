"""Reverse: write the symbols of another sequence again, from the last to the first.

As `copy`, but no answer stands at its own place: the distance between them is another at each.
Grefenstette et al., "Learning to Transduce with Unbounded Memory", NeurIPS 2015 (arXiv 1506.02516);
made here from a seed.
"""

from __future__ import annotations

import msgspec
import numpy as np

from tasks.copy import Copy, Ints


class Reverse(Copy):
    """See `tasks.copy.Copy`; an end stays at the end."""

    card = msgspec.structs.replace(
        Copy.card,
        title="Reverse",
        source="reversal, Grefenstette et al. 2015 (arXiv 1506.02516)",
    )

    def answer(self, source_N: Ints) -> Ints:
        """Return the tokens to write for those of a source, an end included."""
        number = len(source_N) - self.asked.ragged
        return np.concatenate([source_N[:number][::-1], source_N[number:]])

    def _order(self, numbers_R1: Ints) -> Ints:
        """Return the place in the source of what is written at each place, (R, N)."""
        places_N = np.arange(self.length)
        return np.where(places_N < numbers_R1, numbers_R1 - 1 - places_N, places_N)
