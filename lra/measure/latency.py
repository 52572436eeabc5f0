"""Latency of a call: warm up to a steady state, then samples until they settle or time is spent.

On a CPU the host's clock is read around each call. On a GPU events are recorded around each call,
after the L2 cache has been flushed outside them, and one synchronisation ends a block of calls. The
time is that of the call alone: inputs are ready, and gradients are cleared between calls, off the
clock.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import torch

from lra.core.records import Metric

Call = Callable[[], object]

FLOOR = 10
"""Smallest number of samples, whatever the budget."""
FLOOR_SLOW = 5
"""Smallest number of samples of a call longer than a second."""
CEILING = 500
"""Largest number of samples: enough for any quantile that is quoted."""
SETTLED = 0.02
"""Interquartile range over median below which more samples would say nothing new."""
WARM_SHARE = 0.25
"""Share of the budget for warming up; four times that where no steady state comes."""
WINDOW = 4
"""Number of calls whose median is compared with that of as many calls before them."""
TREND = 0.05
"""Largest decrease between those medians, as a share, in a steady state."""


class Stopwatch(Protocol):
    """Timer of calls, one by one, in seconds."""

    name: str

    def time(self, call: Call, calls: int, between: Call) -> list[float]:
        """Return one duration for each call; `between` runs before each, off the clock."""


class HostStopwatch:
    """The host's clock around each call; `synchronize` waits for a device before the clock stops,
    and `flush` empties its cache before each call."""

    def __init__(
        self,
        synchronize: Call | None = None,
        flush: Call | None = None,
        clock: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        self.name = "perf_counter_ns"
        self.name += "" if synchronize is None else ", synchronised"
        self.name += "" if flush is None else ", L2 flushed outside"
        self._synchronize, self._flush = synchronize, flush
        self._clock = clock

    def time(self, call: Call, calls: int, between: Call) -> list[float]:
        """Return one duration for each call, in seconds."""
        clock, synchronize, flush = self._clock, self._synchronize, self._flush
        seconds = []
        for _ in range(calls):
            between()
            if flush is not None:
                flush()
            if synchronize is not None:
                synchronize()
            start = clock()
            call()
            if synchronize is not None:
                synchronize()
            seconds.append((clock() - start) / 1e9)
        return seconds


class DeviceStopwatch:
    """Events around each call on a device's stream, with its cache flushed before the first of
    them."""

    name = "CUDA events, L2 flushed outside"

    def __init__(self, flush: Call, event: Callable[[], Any], synchronize: Call) -> None:
        """Take the device's primitives; `event` makes objects like `torch.cuda.Event`."""
        self._flush = flush
        self._event = event
        self._synchronize = synchronize

    def time(self, call: Call, calls: int, between: Call) -> list[float]:
        """Return one duration for each call, in seconds."""
        pairs = [(self._event(), self._event()) for _ in range(calls)]
        for start, end in pairs:
            between()
            self._flush()
            start.record()
            call()
            end.record()
        self._synchronize()
        # Events resolve half a microsecond: more digits would be those of float32.
        return [round(start.elapsed_time(end) / 1e3, 10) for start, end in pairs]

    def on_host(self) -> HostStopwatch:
        """Return the host's clock for the same calls, with the cache as empty."""
        return HostStopwatch(self._synchronize, self._flush)


def cuda_stopwatch(device: torch.device) -> DeviceStopwatch:
    """Return the stopwatch of a GPU; holds a buffer as large as its L2 cache."""
    size = torch.cuda.get_device_properties(device).L2_cache_size
    # 32-bit words: the fill of bytes is three times slower.
    buffer = torch.empty(max(1, size // 4), dtype=torch.int32, device=device)
    return DeviceStopwatch(
        flush=buffer.zero_,
        event=partial(torch.cuda.Event, enable_timing=True),
        synchronize=lambda: torch.cuda.synchronize(device),
    )


@dataclass(frozen=True)
class Latency:
    """All samples of one call, and how the warm-up ended."""

    seconds: tuple[float, ...]
    """Samples in the order taken."""
    warmup_calls: int
    steady: bool
    """Whether the warm-up ended in a steady state, and not because time was up."""

    def metric(self) -> Metric:
        """Return the metric: the median, with quartiles, minimum and every sample."""
        q1, median, q3 = quartiles(self.seconds)
        return Metric(
            value=median,
            unit="s",
            better="lower",
            samples=self.seconds,
            q1=q1,
            q3=q3,
            minimum=min(self.seconds),
        )


def measure_latency(
    call: Call,
    stopwatch: Stopwatch,
    *,
    seconds: float,
    between: Call = lambda: None,
    after_block: Call = lambda: None,
    now: Callable[[], float] = time.perf_counter,
) -> Latency:
    """Time `call` for about `seconds`, at least `FLOOR` times (`FLOOR_SLOW` if it is slow).

    Sampling ends when the budget is spent, or earlier when twice the floor has been taken and the
    interquartile range is below `SETTLED` of the median. `after_block` runs off the clock, after
    as many samples as the floor at most.
    """
    with _no_collection():
        warm, steady = _warm_up(call, stopwatch, seconds * WARM_SHARE, between, now)
        floor = FLOOR_SLOW if warm[-1] > 1.0 else FLOOR
        samples: list[float] = []
        deadline = now() + seconds
        while len(samples) < floor or (
            len(samples) < CEILING and now() < deadline and not _settled(samples, 2 * floor)
        ):
            samples += stopwatch.time(call, floor - len(samples) % floor, between)
            after_block()
    return Latency(tuple(samples), len(warm), steady)


def quartiles(samples: Sequence[float]) -> tuple[float, float, float]:
    """Return first quartile, median and third quartile, interpolated between samples."""
    if len(samples) == 1:
        return samples[0], samples[0], samples[0]
    q1, median, q3 = statistics.quantiles(samples, n=4, method="inclusive")
    return q1, median, q3


def _warm_up(
    call: Call, stopwatch: Stopwatch, seconds: float, between: Call, now: Callable[[], float]
) -> tuple[list[float], bool]:
    """Call until `seconds` are over and the calls no longer get faster."""
    warm = stopwatch.time(call, 1, between)
    # After the first call, which may have compiled for longer than all others take.
    start = now()
    while True:
        spent = now() - start
        if len(warm) >= 2 * WINDOW and spent >= seconds and _flat(warm):
            return warm, True
        if spent >= 4 * seconds and len(warm) > 1:
            return warm, False
        warm += stopwatch.time(call, 1, between)


def _flat(warm: list[float]) -> bool:
    last, before = warm[-WINDOW:], warm[-2 * WINDOW : -WINDOW]
    return statistics.median(last) >= (1.0 - TREND) * statistics.median(before)


def _settled(samples: list[float], enough: int) -> bool:
    if len(samples) < enough:
        return False
    q1, median, q3 = quartiles(samples)
    return q3 - q1 < SETTLED * median


@contextmanager
def _no_collection() -> Iterator[None]:
    """Collect garbage before, and none inside."""
    gc.collect()
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
