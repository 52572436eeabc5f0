"""What the driver of a GPU tells of it: its energy counter, and what its clocks depend on."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import torch


class Board:
    """One GPU board, as NVML knows it."""

    def __init__(self, handle: Any) -> None:
        """Take NVML's handle of the device."""
        self._handle = handle

    def joules(self) -> float:
        """Return the energy since the driver was loaded."""
        import pynvml

        return float(pynvml.nvmlDeviceGetTotalEnergyConsumption(self._handle)) / 1e3

    def shared(self) -> bool:
        """Return whether more than one process computes here.

        Their numbers say nothing: in a container they are those of the host.
        """
        import pynvml

        return len(pynvml.nvmlDeviceGetComputeRunningProcesses(self._handle)) > 1

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
            "throttled_by": lambda: throttle_words(
                pynvml.nvmlDeviceGetCurrentClocksEventReasons(self._handle)
            ),
        }
        found: dict[str, Any] = {}
        for name, ask in asked.items():
            with suppress(pynvml.NVMLError):
                found[name] = ask()
        return found


THROTTLES = {
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x20: "temperature",
    0x40: "temperature (hardware)",
    0x80: "power brake",
}
"""Bits of NVML's reasons that hold a busy device down; others say that it idles, or was told to."""


def throttle_words(bits: int) -> list[str]:
    """Return why clocks are held down, in words; empty where they are not."""
    return [words for bit, words in THROTTLES.items() if bits & bit]


def board(device: torch.device) -> Board | str:
    """Return the board of a device, or why there is none to ask."""
    if device.type != "cuda":
        return "no energy counter that a user may read on a CPU"
    import pynvml

    try:
        pynvml.nvmlInit()
        uuid = f"GPU-{torch.cuda.get_device_properties(device).uuid}"
        found = Board(pynvml.nvmlDeviceGetHandleByUUID(uuid.encode()))
        found.joules()
    except pynvml.NVMLError as error:
        return f"the driver tells no energy: {error}"
    return found
