"""The control: a plain matrix product, timed in the same process as the cell's call.

The ratio of a latency to its control can be compared between machines; the controls before and
after show whether the machine changed its speed in between.
"""

from __future__ import annotations

import torch

from lra.measure.latency import Latency, Stopwatch, measure_latency

SIZE = {"cpu": 512, "cuda": 4096}
"""Rows and columns: a few milliseconds, or less, on today's machines."""
SECONDS = 0.05


def measure_control(device: torch.device, stopwatch: Stopwatch) -> Latency:
    """Time the product of two square float32 matrices of N(0, 1)."""
    size = SIZE[device.type]
    generator = torch.Generator(device).manual_seed(0)
    left, right = (torch.randn(size, size, generator=generator, device=device) for _ in range(2))
    out = torch.empty_like(left)

    def product() -> None:
        torch.mm(left, right, out=out)

    return measure_latency(product, stopwatch, seconds=SECONDS)
