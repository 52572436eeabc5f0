"""Energy from a counter, on a clock that the test turns."""

from __future__ import annotations

import pytest
import torch

from lra.measure.energy import measure_energy
from lra.measure.nvml import board, throttle_words


class Device:
    """Idles at 50 W, computes at 300 W; a call takes 10 ms. The counter moves every 100 ms."""

    def __init__(self, *, others: bool = False, dead: bool = False) -> None:
        self.time, self.energy, self.calls, self.waits = 100.0, 7e5, 0, 0
        self.others, self.dead = others, dead

    def pass_time(self, seconds: float, watts: float) -> None:
        self.time += seconds
        self.energy += watts * seconds

    def call(self) -> None:
        self.calls += 1
        self.pass_time(0.01, 300.0)

    def synchronize(self) -> None:
        self.waits += 1

    def joules(self) -> float:
        return 0.0 if self.dead else self.energy

    def shared(self) -> bool:
        return self.others

    def measured(self):  # type: ignore[no-untyped-def]
        return measure_energy(
            self.call,
            self,
            synchronize=self.synchronize,
            now=lambda: self.time,
            sleep=lambda seconds: self.pass_time(seconds, 50.0),
        )


def test_a_call_and_the_idle_device() -> None:
    device = Device()
    found = device.measured()
    assert found["energy"].value == pytest.approx(3.0)
    assert found["energy"].unit == "J"
    assert found["energy_seconds"].value == pytest.approx(0.01)
    assert found["idle_power"].value == pytest.approx(50.0)
    assert device.calls * 0.01 >= 2.0
    # Waits for the device are few, or it would idle between short calls.
    assert device.waits < device.calls / 2


def test_what_cannot_be_trusted_is_none_with_the_reason_never_0() -> None:
    for device, why in ((Device(others=True), "other processes"), (Device(dead=True), "not move")):
        energy = device.measured()["energy"]
        assert energy.value is None and why in str(energy.why_null)
    missing = measure_energy(lambda: None, "no counter", synchronize=lambda: None)
    assert missing["energy"].value is None and missing["energy"].why_null == "no counter"
    assert missing["idle_power"].value is None
    assert missing["energy_seconds"].why_null == "no counter"


def test_a_cpu_has_no_board() -> None:
    assert "CPU" in str(board(torch.device("cpu")))


def test_throttling_in_words() -> None:
    assert throttle_words(0x1) == []
    assert throttle_words(0x4 | 0x20) == ["power cap", "temperature"]


@pytest.mark.gpu
def test_a_real_board_tells_its_energy_and_clocks() -> None:
    device = torch.device("cuda")
    found = board(device)
    if isinstance(found, str):
        pytest.skip(found)
    x = torch.randn(4096, 4096, device=device)
    measured = measure_energy(
        lambda: x @ x, found, synchronize=lambda: torch.cuda.synchronize(device)
    )
    energy = measured["energy"]
    assert energy.why_null is not None or (energy.value is not None and energy.value > 0.0)
    assert found.state()["sm_mhz"] > 0
