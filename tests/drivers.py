"""Drivers that try at random for a while: the default suite for seconds, `slow` for longer."""

from __future__ import annotations

import os

_SECONDS = "LRA_DRIVER_SECONDS"


def long_seconds() -> float:
    """Return for how long a driver marked `slow` tries: a minute, unless the variable says more."""
    return float(os.environ.get(_SECONDS, "60"))
