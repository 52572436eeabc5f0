"""Energy of a call: a pass of its own that repeats it, since the counter is coarse.

The counter is the GPU board's own (NVML, since the driver was loaded): of the device alone, other
processes on it included. It moves every 20 to 100 ms, so a window begins just after a move and ends
at a later one; the idle energy of that last wait is taken off. Where there is no counter, or it
cannot be trusted, the figure is None with the reason, never 0.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal, Protocol

from lra.core.records import Metric

SECONDS = 0.5
"""Shortest window: some five moves of a slow counter."""
IDLE_SECONDS = 1.0
"""Seconds for the measurement of idle power, once in a process."""
BLOCK = 0.05
"""Seconds of calls between two waits for the device."""
MOVES_WITHIN = 0.3
"""Seconds within which any working counter moves."""
POLL = 0.001
"""Seconds between two readings while waiting for a move."""


class CounterError(Exception):
    """A counter cannot be read; the text says why."""


class Counter(Protocol):
    """Energy of a device since some moment. Each query may raise `CounterError`."""

    idle_watts: float | None
    """Power of the idle device; None until it has been measured."""

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
    seconds: float = SECONDS,
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> dict[str, Metric]:
    """Return `energy` and `energy_seconds`, the energy and time of one call in a window of
    `seconds`, `SECONDS` at least, and `idle_power`; all None where `counter` is a reason, cannot be
    read, or other processes share the device.

    `between`, which runs after each call, is in the window: on a device it is next to nothing.
    """
    if isinstance(counter, str):
        return _found(None, None, None, counter)
    others = "other processes hold the device too"
    clock = _Clock(counter, now, sleep)
    try:
        if counter.shared():
            return _found(None, None, None, others)
        synchronize()
        started, before = clock.moved()
        if counter.idle_watts is None:
            sleep(IDLE_SECONDS)
            idled, after = clock.moved()
            counter.idle_watts = (after - before) / (idled - started)
            started, before = idled, after
        calls, block = 0, 1
        while (elapsed := now() - started) < max(seconds, SECONDS):
            # Waiting for each of many short calls would measure a device that idles between them.
            if elapsed and calls:
                block = max(1, int(BLOCK * calls / elapsed))
            for _ in range(block):
                call()
                between()
            synchronize()
            calls += block
        each = elapsed / calls
        read, after = clock.moved()
        spent = after - before - counter.idle_watts * (read - started - elapsed)
        if counter.shared():
            return _found(None, None, None, others)
    except CounterError as error:
        # All other measurements of the cell are done, and stay.
        return _found(None, None, None, str(error))
    if after <= before:
        return _found(None, each, counter.idle_watts, f"the counter did not move in {elapsed:g} s")
    return _found(spent / calls, each, counter.idle_watts, None)


class _Clock:
    """Finder of the moments at which a counter moves."""

    def __init__(
        self, counter: Counter, now: Callable[[], float], sleep: Callable[[float], None]
    ) -> None:
        self._counter, self._now, self._sleep = counter, now, sleep

    def moved(self) -> tuple[float, float]:
        """Wait until the counter moves, `MOVES_WITHIN` at most; return the time and its energy."""
        began, before = self._now(), self._counter.joules()
        while (joules := self._counter.joules()) == before:
            if self._now() - began > MOVES_WITHIN:
                break
            self._sleep(POLL)
        return self._now(), joules


def _found(
    energy: float | None, each: float | None, idle: float | None, why: str | None
) -> dict[str, Metric]:
    """Return the metrics; `why` is the reason of those that are None."""

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
