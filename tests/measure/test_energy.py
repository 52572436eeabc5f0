"""Energy from a counter, on a clock that the test turns."""

from __future__ import annotations

import pytest
import torch

from lra.measure.energy import CounterError, measure_energy
from lra.measure.nvml import board

MOVES = 0.1
"""Seconds between two moves of the counter."""


class Device:
    """Idles at 50 W, computes at 300 W; a call takes 10 ms. The counter moves every 100 ms."""

    def __init__(
        self, *, others: tuple[bool, bool] = (False, False), dead: bool = False, fails: int = 0
    ) -> None:
        self.time, self.energy, self.calls, self.waits = 100.0, 7e5, 0, 0
        self.told, self.told_at = self.energy, self.time
        self.idle_watts: float | None = None
        self.others, self.dead = list(others), dead
        self.questions, self.fails = 0, fails

    def pass_time(self, seconds: float, watts: float) -> None:
        end = self.time + seconds
        # In steps, so that the counter moves where it would.
        while self.time < end - 1e-9:
            step = min(MOVES - (self.time - self.told_at), end - self.time)
            self.time += step
            self.energy += watts * step
            if self.time - self.told_at > MOVES - 1e-9:
                self.told, self.told_at = self.energy, self.time

    def call(self) -> None:
        self.calls += 1
        self.pass_time(0.01, 300.0)

    def synchronize(self) -> None:
        self.waits += 1

    def joules(self) -> float:
        self.answer()
        return 0.0 if self.dead else self.told

    def shared(self) -> bool:
        self.answer()
        return self.others.pop(0)

    def answer(self) -> None:
        self.questions += 1
        if self.questions == self.fails:
            raise CounterError("the driver says no")

    def measured(self, seconds: float = 0.5):  # type: ignore[no-untyped-def]
        return measure_energy(
            self.call,
            self,
            synchronize=self.synchronize,
            seconds=seconds,
            now=lambda: self.time,
            sleep=lambda seconds: self.pass_time(seconds, 50.0),
        )


def test_a_call_and_the_idle_device() -> None:
    device = Device()
    found = device.measured(2.0)
    assert found["energy"].value == pytest.approx(3.0)
    assert found["energy"].unit == "J"
    assert found["energy_seconds"].value == pytest.approx(0.01)
    assert found["idle_power"].value == pytest.approx(50.0)
    assert device.calls * 0.01 >= 2.0
    # Waits for the device are few, or it would idle between short calls.
    assert device.waits < device.calls / 2


def test_a_short_window_reads_a_coarse_counter_where_it_moves() -> None:
    # 0.5 s hold five moves of the counter: read at any moment it would be off by up to a fifth.
    for start in (0.0, 0.03, 0.07):
        device = Device()
        device.pass_time(start, 50.0)
        found = device.measured(0.1)
        assert found["energy"].value == pytest.approx(3.0, rel=1e-3)
        assert 0.5 <= device.calls * 0.01 < 0.7


def test_the_idle_power_is_measured_once_in_a_process() -> None:
    device = Device()
    device.others *= 2
    first, began = device.measured(), device.time
    again = device.measured()
    assert device.time - began < 1.0
    assert first["idle_power"].value == again["idle_power"].value == pytest.approx(50.0)


def test_what_cannot_be_trusted_is_none_with_the_reason_never_0() -> None:
    for device, why in (
        (Device(others=(True, False)), "other processes"),
        (Device(others=(False, True)), "other processes"),
        (Device(dead=True), "not move"),
    ):
        energy = device.measured()["energy"]
        assert energy.value is None and why in str(energy.why_null)
    missing = measure_energy(lambda: None, "no counter", synchronize=lambda: None)
    assert missing["energy"].value is None and missing["energy"].why_null == "no counter"
    assert missing["idle_power"].value is None
    assert missing["energy_seconds"].why_null == "no counter"


@pytest.mark.parametrize("question", range(1, 7))
def test_a_counter_that_fails_at_any_time_is_a_reason_and_no_error(question: int) -> None:
    found = Device(fails=question).measured()
    assert {metric.value for metric in found.values()} == {None}
    assert {metric.why_null for metric in found.values()} == {"the driver says no"}


def test_a_device_that_others_hold_is_not_made_to_work_for_nothing() -> None:
    device = Device(others=(True, True))
    device.measured()
    assert device.calls == 0


@pytest.mark.gpu
def test_a_real_board_tells_its_energy_and_clocks() -> None:
    device = torch.device("cuda")
    found = board(device)
    assert not isinstance(found, str), found
    assert found.state()["sm_mhz"] > 0
    try:
        alone = not found.shared()
        found.joules()
    except CounterError as error:
        pytest.skip(str(error))
    x = torch.randn(4096, 4096, device=device)
    measured = measure_energy(
        lambda: x @ x, found, synchronize=lambda: torch.cuda.synchronize(device)
    )
    energy, each = measured["energy"], measured["energy_seconds"].value
    if not alone:
        assert energy.value is None and "other processes" in str(energy.why_null)
        return
    # No board takes less than it does idle, or more than 2 kW.
    assert energy.value is not None and each is not None, energy.why_null
    idle = measured["idle_power"].value
    assert idle is not None and 1.0 < 0.8 * idle < energy.value / each < 2000.0
