"""The learning rate of each step."""

from __future__ import annotations

import math

from lra.core.protocol import TrainSpec


def learning_rate(spec: TrainSpec, step: int) -> float:
    """Return the rate of the update that follows `step` finished ones; with warm-up, step 0 has 0.

    With base rate b, warm-up w, T steps in all and F = flat * T:

        warm-up    min(1, s / w), a factor of every schedule
        constant   b
        rsqrt      b / sqrt(max(s, w))
        cosine     b * (1 + cos(pi p)) / 2,   p = (s - max(w, F)) / (T - F)
        linear     b * (1 - p),               p = (s - max(w, F)) / (T - max(w, F))

    rsqrt and cosine are the Long Range Arena's: the base rate of rsqrt is not its peak, and with F
    = 0 the cosine's cycle includes the warm-up, so that it ends a little above zero.
    """
    warming = min(1.0, step / spec.warmup) if spec.warmup else 1.0
    return spec.learning_rate * warming * _decay(spec, step)


def _decay(spec: TrainSpec, step: int) -> float:
    if spec.schedule == "constant":
        return 1.0
    if spec.schedule == "rsqrt":
        return 1.0 / math.sqrt(max(step, spec.warmup, 1))
    flat = spec.flat * spec.steps
    start = max(spec.warmup, flat)
    if step <= start:
        return 1.0
    if spec.schedule == "cosine":
        return 0.5 * (1.0 + math.cos(math.pi * min(1.0, (step - start) / (spec.steps - flat))))
    return max(0.0, 1.0 - (step - start) / (spec.steps - start))
