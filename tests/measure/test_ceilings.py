"""The machine's ceilings: rates of the fastest call."""

from __future__ import annotations

import pytest
import torch

from lra.measure import ceilings
from lra.measure.latency import Latency


def test_rates_are_work_over_the_fastest_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ceilings.SIZE, "cpu", (16, 1000))
    times = iter([(0.5, 0.25, 1.0), (0.004, 0.002)])

    def clocked(call, stopwatch, *, seconds):  # type: ignore[no-untyped-def]
        call()
        return Latency(next(times), warmup_calls=1, steady=True)

    monkeypatch.setattr(ceilings, "measure_latency", clocked)
    found = ceilings.measure_ceilings(torch.bfloat16, torch.device("cpu")).metrics

    assert found["product_rate"].value == pytest.approx(2 * 16**3 / 0.25)
    assert found["product_rate"].unit == "1/s"
    assert found["copy_rate"].value == pytest.approx(2 * 2 * 1000 / 0.002)
    assert found["copy_rate"].unit == "B/s"


@pytest.mark.parametrize(
    ("free_gib", "dtype", "gib"),
    [
        (80.0, torch.float32, 4.0),
        (80.0, torch.bfloat16, 2.0),
        # Source and target together leave half of what an 8 GB card has free.
        (6.0, torch.float32, 1.5),
        (6.0, torch.bfloat16, 1.5),
        (0.1, torch.float32, 0.5),
    ],
)
def test_a_copy_leaves_room_on_a_small_gpu_and_stays_beyond_caches(
    free_gib: float, dtype: torch.dtype, gib: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = (int(free_gib * 2**30), 2**36)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: told)
    most = ceilings.SIZE["cuda"][1]
    found = ceilings.copied_elements(most, dtype, torch.device("cuda"))
    assert found * dtype.itemsize == gib * 2**30
    assert ceilings.copied_elements(7, dtype, torch.device("cpu")) == 7
