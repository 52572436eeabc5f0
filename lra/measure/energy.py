"""Energy of a call: a pass of its own that repeats it for seconds, for the counter is coarse.

The counter is the GPU board's own (NVML, since the driver was loaded): of the device alone, other
processes on it included. It moves every 20 to 100 ms, so that a window shorter than `SECONDS` would
say nothing. Where there is no counter, or it cannot be trusted, the figure is None with the reason,
never 0.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal, Protocol

from lra.core.records import Metric

SECONDS = 2.0
"""Shortest window."""
IDLE_SECONDS = 1.0
"""For which the idle power is measured, just before."""
BLOCK = 0.05
"""Seconds of calls between two waits for the device."""


class CounterError(Exception):
    """A counter cannot be read; says why."""


class Counter(Protocol):
    """A device's energy since some moment. Each question may raise `CounterError`."""

    def joules(self) -> float:
        """Return the energy so far."""

    def shared(self) -> bool:
        """Return whether processes other than this one hold the device, computing or not."""


def measure_energy(
    call: Callable[[], object],
    counter: Counter | str,
    *,
    synchronize: Callable[[], object],
    between: Callable[[], object] = lambda: None,
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> dict[str, Metric]:
    """Return `energy` and `energy_seconds`, energy and time of one call in the window, and
    `idle_power`; all None where `counter` is a reason, cannot be read, or is others' too.

    `between`, which runs after each call, is in the window: on a device it is next to nothing.
    """
    if isinstance(counter, str):
        return _found(None, None, None, counter)
    others = "other processes hold the device too"
    try:
        if counter.shared():
            return _found(None, None, None, others)
        synchronize()
        started, before = now(), counter.joules()
        sleep(IDLE_SECONDS)
        idle = (counter.joules() - before) / (now() - started)
        calls, block = 0, 1
        started, before = now(), counter.joules()
        while (elapsed := now() - started) < SECONDS:
            # Waiting for each of many short calls would measure a device that idles between them.
            if elapsed:
                block = max(1, int(BLOCK * calls / elapsed))
            for _ in range(block):
                call()
                between()
            synchronize()
            calls += block
        spent, each = counter.joules() - before, elapsed / calls
        if counter.shared():
            return _found(None, None, None, others)
    except CounterError as error:
        # All else of the cell has been measured by now, and stays.
        return _found(None, None, None, str(error))
    if spent <= 0.0:
        return _found(None, each, idle, f"the counter did not move in {SECONDS:g} s")
    return _found(spent / calls, each, idle, None)


def _found(
    energy: float | None, each: float | None, idle: float | None, why: str | None
) -> dict[str, Metric]:
    """The metrics; `why` is of those that are None."""

    def metric(
        value: float | None, unit: Literal["J", "s", "W"], better: Literal["lower", "neither"]
    ) -> Metric:
        null = why if value is None else None
        return Metric(value=value, unit=unit, better=better, why_null=null)

    return {
        "energy": metric(energy, "J", "lower"),
        # Not the latency: calls here do not wait for each other, nor for a cache to be flushed.
        "energy_seconds": metric(each, "s", "lower"),
        "idle_power": metric(idle, "W", "neither"),
    }
