"""Answers of the driver, and what becomes of those it does not give."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from lra.measure.energy import CounterError
from lra.measure.nvml import Board, board, describe_throttling

CUDA = torch.device("cuda")


class Driver(SimpleNamespace):
    """Stands in for pynvml; what `silent` names is not supported."""

    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0

    class NVMLError(Exception):
        pass

    def __init__(self, *silent: str, processes: int = 1, reasons: int = 0) -> None:
        super().__init__()
        told: dict[str, Any] = {
            "Init": None,
            "DeviceGetHandleByUUID": "handle",
            "DeviceGetTotalEnergyConsumption": 7_500,
            "DeviceGetComputeRunningProcesses": [object()] * processes,
            "DeviceGetClockInfo": 1410,
            "DeviceGetTemperature": 65,
            "DeviceGetEnforcedPowerLimit": 300_000,
            "DeviceGetCurrentClocksEventReasons": reasons,
        }
        for name, value in told.items():
            setattr(self, f"nvml{name}", self.answer(value, name in silent))

    def answer(self, value: Any, silent: bool) -> Any:
        def ask(*_: object) -> Any:
            if silent:
                raise self.NVMLError("Not Supported")
            return value

        return ask


@pytest.fixture(autouse=True)
def unknown() -> Iterator[None]:
    """No board is known from before, nor from here."""
    board.cache_clear()
    yield
    board.cache_clear()


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Any:
    def install(*silent: str, **told: int) -> Board | str:
        monkeypatch.setitem(sys.modules, "pynvml", Driver(*silent, **told))
        monkeypatch.setattr(
            torch.cuda, "get_device_properties", lambda _: SimpleNamespace(uuid="1-2-3")
        )
        return board(CUDA)

    return install


def test_a_cpu_has_no_board() -> None:
    assert "CPU" in str(board(torch.device("cpu")))


def test_throttling_in_words() -> None:
    assert describe_throttling(0x1) == []
    assert describe_throttling(0x4 | 0x20) == ["power cap", "temperature"]


def test_a_board_tells_energy_neighbours_and_clocks(driver: Any) -> None:
    found = driver(reasons=0x1 | 0x20)
    assert found.joules() == 7.5 and not found.shared()
    assert found.throttled() == ["temperature"]
    assert found.state() == {
        "sm_mhz": 1410,
        "memory_mhz": 1410,
        "celsius": 65,
        "power_limit_watts": 300.0,
        "throttled_by": ["temperature"],
    }
    assert driver(processes=2).shared()


def test_what_the_driver_does_not_tell_is_no_error_of_its_own(driver: Any) -> None:
    """A virtual GPU, a container, WSL: each lacks something, and has the rest."""
    found = driver("DeviceGetTotalEnergyConsumption", "DeviceGetCurrentClocksEventReasons")
    with pytest.raises(CounterError, match="energy: Not Supported"):
        found.joules()
    assert found.throttled() == [] and found.state()["celsius"] == 65
    assert "throttled_by" not in found.state()
    with pytest.raises(CounterError, match="Not Supported"):
        driver("DeviceGetComputeRunningProcesses").shared()


@pytest.mark.parametrize("silent", ["Init", "DeviceGetHandleByUUID"])
def test_without_a_driver_there_is_a_reason_for_no_board(driver: Any, silent: str) -> None:
    assert driver(silent).endswith(": Not Supported")
