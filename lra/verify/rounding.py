"""Rounding: how far apart two right results may be that differ in rounding alone."""

from __future__ import annotations

import torch

from lra.core.findings import Case

DTYPES = {
    "float64": torch.float64,
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}

ROUNDOFF = {"float64": 2.0**-53, "float32": 2.0**-24, "bfloat16": 2.0**-8, "float16": 2.0**-11}
"""Largest relative error of one rounded number."""

AMPLIFIED = 16
"""Factor by which an exponential multiplies the error of its logit: that logit's size, which is
hardly more for normal inputs."""

ROUNDED = 8
"""Number of results that a layer in half precision rounds one after another: queries, keys, values,
logits, weights, sums, heads, outputs. Its sums are rounded once each."""


def rounding(case: Case) -> float:
    """Return the difference that rounding makes, relative to the largest output.

    In float32 each result is a sum over the model's width, over all heads or over the keys, and so
    many terms are rounded that often.
    """
    unit = ROUNDOFF[case.dtype]
    if case.dtype in ("bfloat16", "float16"):
        return ROUNDED * unit
    width = case.width or case.head_width * case.heads
    terms = max(case.n, case.m or 0) + width + case.head_width * case.heads
    return terms * AMPLIFIED * unit
