"""Speed of Pathfinder generation at Long Range Arena parameters, one process.

The original generator makes 8.5 images/s at 32 x 32; the goal with numba is 2,500. Compiling is
left out: it happens once and is kept on disk.
"""

from typing import Any

import numpy as np
import pytest

from tasks.generators import pathfinder_images, pathfinder_lanes
from tasks.generators.pathfinder_images import Search
from tasks.generators.pathfinder_settings import resolve


def measure(benchmark: Any, search: Search, side: int, rows: int, rounds: int) -> None:
    settings = resolve(side, {})
    pathfinder_images.make(settings, "train", 0, 2, search)
    images, labels = benchmark.pedantic(
        pathfinder_images.make, (settings, "train", 0, rows, search), rounds=rounds
    )
    assert images.shape == (rows, side, side)
    assert np.isin(labels, (0, 1)).all()
    benchmark.extra_info["images_per_second_median"] = round(rows / benchmark.stats["median"], 1)
    benchmark.extra_info["images_per_second_slowest"] = round(rows / benchmark.stats["max"], 1)


@pytest.mark.parametrize(
    ("side", "rows"), [(8, 50_000), (32, 10_000), (64, 200), (128, 200), (256, 500)]
)
def test_images_per_second_with_numba(benchmark: Any, side: int, rows: int) -> None:
    pytest.importorskip("numba")
    from tasks.generators import pathfinder_kernel

    measure(benchmark, pathfinder_kernel.search, side, rows, rounds=5)


@pytest.mark.parametrize(("side", "rows"), [(8, 50_000), (32, 5_000)])
def test_images_per_second_with_numpy_alone(benchmark: Any, side: int, rows: int) -> None:
    measure(benchmark, pathfinder_lanes.search, side, rows, rounds=3)
