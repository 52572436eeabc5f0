"""Speed of ListOps generation at the Long Range Arena setting, one process, numpy alone.

The original generator makes 465 examples/s; the goal is 9,300.
"""

from typing import Any

from tasks.listops import ListOps, ListOpsConfig

ROWS = 10_000


def test_rows_per_second(benchmark: Any) -> None:
    task = ListOps(ListOpsConfig(), length=2000)
    split = benchmark.pedantic(task.generate, ("train", ROWS), rounds=7, warmup_rounds=1)
    assert len(split) == ROWS
    benchmark.extra_info["rows_per_second_median"] = round(ROWS / benchmark.stats["median"])
    benchmark.extra_info["rows_per_second_slowest"] = round(ROWS / benchmark.stats["max"])
