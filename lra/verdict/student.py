"""Student's distribution: how many standard errors an interval reaches to each side."""

from __future__ import annotations


def quantile(sure: float, freedom: int) -> float:
    """Return the distance that holds the true value with probability `sure`, on both sides."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + sure) / 2))
