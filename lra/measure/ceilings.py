"""Best rates of a machine, measured: operations of a large matrix product, bytes of a copy.

The time of a call is compared with its operations at the first rate and its bytes at the second.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from lra.core.records import Metric
from lra.measure.latency import HostStopwatch, Stopwatch, cuda_stopwatch, measure_latency

SIZE = {"cpu": (2048, 2**26), "cuda": (8192, 2**30)}
"""Rows and columns of the matrices, and largest number of copied elements: far beyond any cache."""
FREE_SHARE = 4
"""Inverse of the largest share of a GPU's free memory for the source of the copy, and for its
target."""
LEAST_BYTES = 2**29
"""Smallest size of source and target, whatever is free: less would be copied within a cache."""
SECONDS = 1.0
"""Seconds for each of the two measurements."""


@dataclass(frozen=True)
class Ceilings:
    """Best rates of a machine, and the calls that reached them."""

    metrics: dict[str, Metric]
    method: dict[str, str]


def measure_ceilings(dtype: torch.dtype, device: torch.device) -> Ceilings:
    """Return `product_rate` in operations a second, `copy_rate` in bytes read and written.

    Each is that of the fastest call: disturbances only make a machine slower.
    """
    stopwatch: Stopwatch = cuda_stopwatch(device) if device.type == "cuda" else HostStopwatch()
    width, most = SIZE[device.type]
    generator = torch.Generator().manual_seed(0)
    left, right = (
        torch.randn(width, width, generator=generator).to(device, dtype) for _ in range(2)
    )
    product = torch.empty_like(left)
    multiplied = measure_latency(
        lambda: torch.mm(left, right, out=product), stopwatch, seconds=SECONDS
    )
    length = copied_elements(most, dtype, device)
    source = torch.ones(length, dtype=dtype, device=device)
    target = torch.empty_like(source)
    copied = measure_latency(lambda: target.copy_(source), stopwatch, seconds=SECONDS)
    return Ceilings(
        metrics={
            "product_rate": Metric(
                value=2.0 * width**3 / min(multiplied.seconds), unit="1/s", better="higher"
            ),
            "copy_rate": Metric(
                value=2.0 * source.nbytes / min(copied.seconds), unit="B/s", better="higher"
            ),
        },
        method={
            "product": f"two {width} x {width} matrices of N(0, 1), the fastest of its calls",
            "copy": f"{length:,} elements, read and written, the fastest of its calls",
        },
    )


def copied_elements(most: int, dtype: torch.dtype, device: torch.device) -> int:
    """Return the number of elements to copy: `most`, or fewer where a GPU has no room."""
    if device.type == "cpu":
        return most
    free, _ = torch.cuda.mem_get_info(device)
    return min(most, max(LEAST_BYTES, free // FREE_SHARE) // dtype.itemsize)
