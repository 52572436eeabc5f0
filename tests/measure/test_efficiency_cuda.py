"""Efficiency cells on a GPU: what is asked of fakes, and figures of a real one."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from cells import toy_cell

from attention_impls.baseline.identity import Identity
from attention_impls.dense.sdpa import Sdpa
from lra.core.cells import EfficiencyCell
from lra.core.records import Metric
from lra.measure import efficiency, memory
from lra.measure.ceilings import measure_ceilings
from lra.measure.control import measure_control
from lra.measure.efficiency import measure_efficiency
from lra.measure.energy import CounterError
from lra.measure.latency import FLOOR, DeviceStopwatch
from lra.measure.nvml import board

pytestmark = pytest.mark.usefixtures("small_control")

CUDA = torch.device("cuda")


class Hot:
    """A board held down by power at first and by heat in the middle, which tells no energy."""

    def __init__(self, *, tells: bool = True) -> None:
        self.tells = tells
        self.moments = iter([["temperature"]])

    def state(self) -> dict[str, Any]:
        return {"celsius": 80, **({"throttled_by": ["power cap"]} if self.tells else {})}

    def throttled(self) -> list[str]:
        return next(self.moments, [])

    def shared(self) -> bool:
        raise CounterError("it does not tell")


def cell(**changes: Any) -> EfficiencyCell:
    return toy_cell(**{"device": "cuda", "length": 128, "head_width": 16, **changes})


def measured_on_fakes(monkeypatch: pytest.MonkeyPatch, found: Any) -> efficiency.Efficiency:
    """A cell for a GPU whose call is a CPU's, with the device's own functions put in place."""
    layer, cpu = torch.nn.Linear(2, 2), torch.device("cpu")
    clock = iter(range(10**6))
    event = lambda: SimpleNamespace(  # noqa: E731
        record=lambda: next(clock), elapsed_time=lambda end: 2.0
    )
    watch = DeviceStopwatch(flush=lambda: None, event=event, synchronize=lambda: None)
    subject = efficiency._Subject(lambda: layer(torch.ones(1, 2)), layer)
    control = measure_control(cpu, watch)
    monkeypatch.setattr(efficiency, "_build", lambda *_: subject)
    monkeypatch.setattr(efficiency, "cuda_stopwatch", lambda _: watch)
    monkeypatch.setattr(efficiency, "board", lambda _: found)
    monkeypatch.setattr(efficiency, "measure_control", lambda *_: control)
    monkeypatch.setattr(memory, "measure_memory", lambda *_, **__: {})
    monkeypatch.setattr(torch.cuda, "synchronize", lambda _: None)
    return measure_efficiency(cell(), Identity, Identity.Config())


def test_each_time_has_its_clock_and_all_that_throttled_it(monkeypatch: pytest.MonkeyPatch) -> None:
    found = measured_on_fakes(monkeypatch, Hot())
    assert found.metrics["latency"].samples == (0.002,) * FLOOR
    assert 0.0 < (found.metrics["latency_wall"].value or 0.0) < 0.002
    assert found.method["timer"] == "CUDA events, L2 flushed outside"
    assert found.method["timer_wall"] == "perf_counter_ns, synchronised, L2 flushed outside"
    # A limit seen only after a block of samples is there too.
    assert found.method["throttled_by"] == ["power cap", "temperature"]
    assert found.method["board_before"]["celsius"] == 80
    assert found.metrics["energy"].why_null == "it does not tell"
    assert "peak_tensor_bytes" not in found.metrics


def test_a_driver_that_does_not_tell_of_throttling_has_not_said_that_there_is_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = measured_on_fakes(monkeypatch, Hot(tells=False))
    assert "throttled_by" not in found.method and "board_after" in found.method
    assert "board_before" not in measured_on_fakes(monkeypatch, "no board").method


def finite(metrics: dict[str, Metric], *names: str) -> None:
    for name in names:
        value = metrics[name].value
        assert value is not None and math.isfinite(value) and value > 0.0, name


@pytest.mark.gpu
@pytest.mark.parametrize("mode", ["forward", "train", "decode"])
def test_a_real_cell_of_each_mode(mode: Any) -> None:
    changes = {"direction": "causal"} if mode == "decode" else {}
    found = measure_efficiency(cell(mode=mode, seconds=0.2, **changes), Sdpa, Sdpa.Config())
    metrics = found.metrics
    finite(metrics, "latency", "latency_wall", "control_before", "control_after", "operations")
    finite(metrics, "peak_allocated_bytes", "minimum_bytes")
    finite(metrics, *(("prefill", "state_bytes") if mode == "decode" else ("first_call",)))
    # Launches and the wait for the device come on top of what its own clock sees.
    wall, events = metrics["latency_wall"].minimum, metrics["latency"].minimum
    assert wall is not None and events is not None and wall > 0.9 * events
    assert metrics["peak_resident_bytes"].why_null == "measured on CPUs only"
    if not isinstance(board(CUDA), str):
        assert found.method["board_before"]["sm_mhz"] > 0


@pytest.mark.gpu
def test_the_peak_of_a_tensor_is_its_size() -> None:
    size = 64 * 2**20
    found = memory.measure_memory(
        lambda: torch.zeros(size, dtype=torch.uint8, device=CUDA), CUDA, between=lambda: None
    )
    assert found["peak_allocated_bytes"].value == size
    reserved = found["peak_reserved_bytes"].value
    assert reserved is not None and size <= reserved < 2 * size


@pytest.mark.gpu
def test_ceilings_of_a_real_gpu() -> None:
    found = measure_ceilings(torch.float32, CUDA)
    # Between a board of ten years ago and one of ten years on.
    assert 1e12 < (found.metrics["product_rate"].value or 0.0) < 1e16
    assert 5e10 < (found.metrics["copy_rate"].value or 0.0) < 1e14
