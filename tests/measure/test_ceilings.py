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
    found = ceilings.measure_ceilings(torch.bfloat16, torch.device("cpu"))
    assert found["product_rate"].value == pytest.approx(2 * 16**3 / 0.25)
    assert found["product_rate"].unit == "1/s"
    assert found["copy_rate"].value == pytest.approx(2 * 2 * 1000 / 0.002)
    assert found["copy_rate"].unit == "B/s"
