"""A time budget: when to start no more cells, when to stop running ones, when it is over."""

from __future__ import annotations

import time
from collections.abc import Callable

from lra.core.errors import UsageError

GRACE_SHARE = 0.1
"""Share of a budget that is kept for running cells to write their checkpoints."""
GRACE_MOST = 10.0
"""Largest grace in seconds; also that of a cell that is stopped by hand."""


class Budget:
    """Time that a run may take, counted from here on, in seconds; `math.inf` for no end."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        if seconds <= 0:
            raise UsageError(f"a budget of {seconds:g} s runs nothing; give more, such as 9m")
        self._clock = clock
        self._end = clock() + seconds
        self.grace = min(GRACE_MOST, GRACE_SHARE * seconds)

    @property
    def left(self) -> float:
        """Seconds until running cells are asked to stop; 0 from then on."""
        return max(0.0, self._end - self.grace - self._clock())
