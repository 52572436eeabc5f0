"""Energy of a call: a pass of its own that repeats it for seconds, for the counter is coarse.

The counter is the GPU board's own (NVML, since the driver was loaded): of the device alone, other
processes on it included. It moves every 20 to 100 ms, so that a window shorter than `SECONDS` would
say nothing. Where there is no counter the figure is None with the reason, never 0.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from lra.core.records import Metric

SECONDS = 2.0
"""Shortest window."""
IDLE_SECONDS = 1.0
"""For which the idle power is measured, just before."""
BLOCK = 0.05
"""Seconds of calls between two waits for the device."""


class Counter(Protocol):
    """A device's energy since some moment."""

    def joules(self) -> float:
        """Return the energy so far."""

    def shared(self) -> bool:
        """Return whether processes other than this one compute on the device."""


def measure_energy(
    call: Callable[[], object],
    counter: Counter | str,
    *,
    synchronize: Callable[[], object],
    between: Callable[[], object] = lambda: None,
    seconds: float = SECONDS,
    idle_seconds: float = IDLE_SECONDS,
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> dict[str, Metric]:
    """Return `energy`, of one call, and `idle_power`, both None where `counter` is a reason.

    `between`, which runs after each call, is in the window: on a device it is next to nothing.
    """
    if isinstance(counter, str):
        return {"energy": _energy(None, counter), "idle_power": _power(None, counter)}
    synchronize()
    started, before = now(), counter.joules()
    sleep(idle_seconds)
    idle = (counter.joules() - before) / (now() - started)
    calls, block = 0, 1
    started, before = now(), counter.joules()
    while (elapsed := now() - started) < seconds:
        # Waiting for each of many short calls would measure a device that idles between them.
        if elapsed:
            block = max(1, int(BLOCK * calls / elapsed))
        for _ in range(block):
            call()
            between()
        synchronize()
        calls += block
    spent = counter.joules() - before
    if counter.shared():
        why = "other processes computed on the device meanwhile"
        return {"energy": _energy(None, why), "idle_power": _power(None, why)}
    if spent <= 0.0:
        why = f"the counter did not move in {seconds:g} s"
        return {"energy": _energy(None, why), "idle_power": _power(idle, None)}
    return {"energy": _energy(spent / calls, None), "idle_power": _power(idle, None)}


def _energy(value: float | None, why: str | None) -> Metric:
    return Metric(value=value, unit="J", better="lower", why_null=why)


def _power(value: float | None, why: str | None) -> Metric:
    return Metric(value=value, unit="W", better="neither", why_null=why)
