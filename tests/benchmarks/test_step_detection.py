"""Speed of step detection: 60 mechanisms of 20 cells over a year, one process.

The goal is 10 s for all 1200 courses, which is 8.3 ms each.
"""

import math
from typing import Any

import numpy as np

from lra.verdict.steps import segment


def test_courses_of_a_year(benchmark: Any) -> None:
    rng = np.random.default_rng(0)
    nights = 0.03 * rng.normal(size=(20, 365))
    nights[:, 100:] += math.log(1.1)
    courses = [list(row) for row in nights]
    found = benchmark.pedantic(lambda: list(map(segment, courses)), rounds=5, warmup_rounds=1)
    assert all(any(abs(step.at - 100) <= 2 for step in one.steps) for one in found)
    benchmark.extra_info["seconds_for_1200"] = round(60 * benchmark.stats["median"], 2)
