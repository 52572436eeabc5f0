"""A GPU by its driver's own library: energy counter, clocks and the reasons that hold them down."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

import torch

from lra.measure.energy import CounterError


class Board:
    """One GPU board, by NVML."""

    def __init__(self, handle: Any) -> None:
        """Take NVML's handle of the device."""
        self._handle = handle
        self.idle_watts: float | None = None
        """Power of the idle board; None until it has been measured."""

    def joules(self) -> float:
        """Return the energy since the driver was loaded; raises `CounterError` if there is none."""
        import pynvml

        try:
            return float(pynvml.nvmlDeviceGetTotalEnergyConsumption(self._handle)) / 1e3
        except pynvml.NVMLError as error:
            raise CounterError(f"the driver tells no energy: {error}") from error

    def shared(self) -> bool:
        """Return whether more than one process has a context here, if only an idle notebook.

        Process ids say nothing: in a container they are those of the host. Raises `CounterError`
        where the driver does not tell.
        """
        import pynvml

        try:
            return len(pynvml.nvmlDeviceGetComputeRunningProcesses(self._handle)) > 1
        except pynvml.NVMLError as error:
            raise CounterError(f"the driver does not tell who holds the device: {error}") from error

    def throttled(self) -> list[str]:
        """Return the reasons that hold the clocks down now, in words; none where the driver does
        not tell."""
        import pynvml

        with suppress(pynvml.NVMLError):
            return self._throttles()
        return []

    def state(self) -> dict[str, Any]:
        """Return clocks in MHz, temperature in degrees Celsius, power limit in W and the reasons
        that hold the clocks down, each where the driver tells."""
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
"""Bits of NVML's reasons that hold a busy device down; the others mean that it idles, or was told
to."""


def describe_throttling(bits: int) -> list[str]:
    """Return the reasons that hold clocks down, in words; none for no bits."""
    return [words for bit, words in THROTTLES.items() if bits & bit]


@cache
def board(device: torch.device) -> Board | str:
    """Return the board of a device, the same each time, or why there is none."""
    if device.type != "cuda":
        return "no energy counter that a user may read on a CPU"
    import pynvml

    try:
        pynvml.nvmlInit()
        uuid = f"GPU-{torch.cuda.get_device_properties(device).uuid}"
        return Board(pynvml.nvmlDeviceGetHandleByUUID(uuid.encode()))
    except pynvml.NVMLError as error:
        return f"the driver tells nothing of the board: {error}"
