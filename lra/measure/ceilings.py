"""What a machine can do at best, measured: operations of a large matrix product, bytes of a copy.

What a call takes is compared with its operations at the one rate and its bytes at the other.
"""

from __future__ import annotations

import torch

from lra.core.records import Metric
from lra.measure.latency import HostStopwatch, Stopwatch, cuda_stopwatch, measure_latency

SIZE = {"cpu": (2048, 2**26), "cuda": (8192, 2**30)}
"""Rows and columns of the matrices, and elements of the copy: far beyond any cache."""
SECONDS = 1.0
"""For each of the two."""


def measure_ceilings(dtype: torch.dtype, device: torch.device) -> dict[str, Metric]:
    """Return `product_rate` in operations a second, `copy_rate` in bytes read and written.

    Each is that of the fastest call: whatever disturbs a machine makes it slower than it can be.
    """
    stopwatch: Stopwatch = cuda_stopwatch(device) if device.type == "cuda" else HostStopwatch()
    width, length = SIZE[device.type]
    generator = torch.Generator().manual_seed(0)
    left, right = (
        torch.randn(width, width, generator=generator).to(device, dtype) for _ in range(2)
    )
    product = torch.empty_like(left)
    multiplied = measure_latency(
        lambda: torch.mm(left, right, out=product), stopwatch, seconds=SECONDS
    )
    source = torch.ones(length, dtype=dtype, device=device)
    target = torch.empty_like(source)
    copied = measure_latency(lambda: target.copy_(source), stopwatch, seconds=SECONDS)
    return {
        "product_rate": Metric(
            value=2.0 * width**3 / min(multiplied.seconds), unit="1/s", better="higher"
        ),
        "copy_rate": Metric(
            value=2.0 * source.nbytes / min(copied.seconds), unit="B/s", better="higher"
        ),
    }
