"""What the driver of a GPU tells of it: its energy counter, and what its clocks depend on."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

import torch

from lra.measure.energy import CounterError


class Board:
    """One GPU board, as NVML knows it."""

    def __init__(self, handle: Any) -> None:
        """Take NVML's handle of the device."""
        self._handle = handle
        self.idle_watts: float | None = None
        """Its power when nothing runs on it, once that has been measured."""

    def joules(self) -> float:
        """Return the energy since the driver was loaded; raises `CounterError` if not told."""
        import pynvml

        try:
            return float(pynvml.nvmlDeviceGetTotalEnergyConsumption(self._handle)) / 1e3
        except pynvml.NVMLError as error:
            raise CounterError(f"the driver tells no energy: {error}") from error

    def shared(self) -> bool:
        """Return whether more than one process has a context here, if only an idle notebook.

        Their numbers say nothing: in a container they are those of the host. Raises `CounterError`
        where the driver does not tell.
        """
        import pynvml

        try:
            return len(pynvml.nvmlDeviceGetComputeRunningProcesses(self._handle)) > 1
        except pynvml.NVMLError as error:
            raise CounterError(f"the driver does not tell who holds the device: {error}") from error

    def throttled(self) -> list[str]:
        """Return why the clocks are held down now, in words; empty where the driver tells none."""
        import pynvml

        with suppress(pynvml.NVMLError):
            return self._throttles()
        return []

    def state(self) -> dict[str, Any]:
        """Return clocks in MHz, temperature in degrees Celsius, power limit in W and why the clocks
        are held down, each where the driver tells."""
        import pynvml

        asked: dict[str, Callable[[], Any]] = {
            "sm_mhz": lambda: pynvml.nvmlDeviceGetClockInfo(self._handle, pynvml.NVML_CLOCK_SM),
            "memory_mhz": lambda: pynvml.nvmlDeviceGetClockInfo(
                self._handle, pynvml.NVML_CLOCK_MEM
            ),
            "celsius": lambda: pynvml.nvmlDeviceGetTemperature(
                self._handle, pynvml.NVML_TEMPERATURE_GPU
            ),
            "power_limit_watts": lambda: pynvml.nvmlDeviceGetEnforcedPowerLimit(self._handle) / 1e3,
            "throttled_by": self._throttles,
        }
        found: dict[str, Any] = {}
        for name, ask in asked.items():
            with suppress(pynvml.NVMLError):
                found[name] = ask()
        return found

    def _throttles(self) -> list[str]:
        import pynvml

        return describe_throttling(pynvml.nvmlDeviceGetCurrentClocksEventReasons(self._handle))


THROTTLES = {
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x20: "temperature",
    0x40: "temperature (hardware)",
    0x80: "power brake",
}
"""Bits of NVML's reasons that hold a busy device down; others say that it idles, or was told to."""


def describe_throttling(bits: int) -> list[str]:
    """Return why clocks are held down, in words; empty where they are not."""
    return [words for bit, words in THROTTLES.items() if bits & bit]


@cache
def board(device: torch.device) -> Board | str:
    """Return the board of a device, the same each time, or why there is none to ask."""
    if device.type != "cuda":
        return "no energy counter that a user may read on a CPU"
    import pynvml

    try:
        pynvml.nvmlInit()
        uuid = f"GPU-{torch.cuda.get_device_properties(device).uuid}"
        return Board(pynvml.nvmlDeviceGetHandleByUUID(uuid.encode()))
    except pynvml.NVMLError as error:
        return f"the driver tells nothing of the board: {error}"
