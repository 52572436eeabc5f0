"""The timer against a clock of our own: what is timed, what is not, how often, and what is kept."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from itertools import chain, count, repeat

import numpy as np
import pytest
import torch

from lra.measure.latency import (
    CEILING,
    FLOOR,
    FLOOR_SLOW,
    DeviceStopwatch,
    HostStopwatch,
    Latency,
    measure_latency,
)


class Clock:
    """Nanoseconds that pass only when somebody lets them."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now

    def seconds(self) -> float:
        return self.now / 1e9

    def call(self, durations: Iterator[float]) -> Callable[[], None]:
        def run() -> None:
            self.now += round(next(durations) * 1e9)

        return run


def measure(durations: Iterator[float], seconds: float, between: float = 0.0) -> Latency:
    clock = Clock()
    return measure_latency(
        clock.call(durations),
        HostStopwatch(clock=clock),
        seconds=seconds,
        between=clock.call(repeat(between)),
        now=clock.seconds,
    )


def test_the_warm_up_is_no_sample() -> None:
    cold = [5.0, 0.1, 0.08, 0.05, 0.03, 0.02]
    found = measure(chain(cold, repeat(0.01)), seconds=0.4)
    assert set(found.seconds) == {0.01}
    assert found.warmup_calls > len(cold)


def test_the_warm_up_lasts_while_calls_get_faster() -> None:
    # Ever faster: the time for warming up ends it, and the latency says so.
    found = measure((0.1 * 0.98**i for i in count()), seconds=1.0)
    assert not found.steady
    assert measure(repeat(0.001), seconds=1.0).steady


@pytest.mark.parametrize("between", [0.0, 3.0])
def test_what_runs_between_calls_is_not_timed(between: float) -> None:
    found = measure(repeat(0.001), seconds=0.1, between=between)
    assert set(found.seconds) == {0.001}


def test_between_blocks_of_samples_one_may_look_off_the_clock() -> None:
    clock, calls, seen = Clock(), [0], list[int]()
    spend = clock.call(repeat(0.001))

    def call() -> None:
        calls[0] += 1
        spend()

    def look() -> None:
        seen.append(calls[0])
        clock.now += 10**9

    found = measure_latency(
        call, HostStopwatch(clock=clock), seconds=9.0, after_block=look, now=clock.seconds
    )
    assert set(found.seconds) == {0.001}
    # Never while it warms up; then after each of two blocks, when nothing new would come.
    assert seen == [found.warmup_calls + FLOOR, found.warmup_calls + 2 * FLOOR]


@pytest.mark.parametrize(("duration", "least"), [(0.001, FLOOR), (0.9, FLOOR), (1.1, FLOOR_SLOW)])
def test_the_floor_on_the_count_holds_without_any_time(duration: float, least: int) -> None:
    assert len(measure(repeat(duration), seconds=0.0).seconds) == least


def test_settled_samples_end_it_early_and_noisy_ones_take_the_budget() -> None:
    steady = measure(repeat(0.001), seconds=10.0)
    assert len(steady.seconds) == 2 * FLOOR
    draws = np.random.default_rng(0).uniform(0.5, 1.5, 100_000)
    noisy = measure(iter(0.1 * draws), seconds=10.0)
    assert 10.0 <= sum(noisy.seconds) < 10.0 + FLOOR * 0.15
    brief = measure(iter(1e-6 * draws), seconds=0.01)
    assert len(brief.seconds) == CEILING


def test_every_sample_is_kept_as_taken_outliers_too() -> None:
    warm = [0.01] * 8
    taken = [0.01, 0.02, 0.5, 0.011, 0.013, 0.01, 0.01, 0.3, 0.012, 0.01]
    found = measure(chain(warm, taken, repeat(9.0)), seconds=0.08)
    assert found.warmup_calls == len(warm)
    assert found.seconds == tuple(taken)
    metric = found.metric()
    assert metric.samples == tuple(taken)
    assert metric.minimum == 0.01
    q1, median, q3 = np.percentile(taken, [25, 50, 75])
    assert (metric.q1, metric.value, metric.q3) == pytest.approx((q1, median, q3))
    assert (metric.unit, metric.better) == ("s", "lower")


def test_no_garbage_is_collected_while_timing() -> None:
    seen: list[bool] = []
    watch = HostStopwatch()
    measure_latency(lambda: seen.append(gc.isenabled()), watch, seconds=0.0)
    assert seen and not any(seen)
    assert gc.isenabled()


def test_waiting_for_a_device_is_inside_the_region() -> None:
    clock = Clock()
    queued = [0]

    def call() -> None:
        queued[0] += 1_000

    def synchronize() -> None:
        clock.now += queued[0]
        queued[0] = 0

    watch = HostStopwatch(synchronize=synchronize, clock=clock)
    queued[0] = 77_000
    assert watch.time(call, 3, between=lambda: None) == [1e-6] * 3
    assert "synchronised" in watch.name


class FakeDevice:
    """A stream on which everything takes time, and a list of what was put there."""

    def __init__(self) -> None:
        self.now = 0.0
        self.done: list[str] = []

    def work(self, name: str, milliseconds: float) -> Callable[[], None]:
        def run() -> None:
            self.done.append(name)
            self.now += milliseconds

        return run

    def event(self) -> FakeEvent:
        return FakeEvent(self)

    def stopwatch(self, waits: float) -> DeviceStopwatch:
        """Return one whose flush takes 100 ms, and whose wait for the device so many."""
        flush, synchronize = self.work("flush", 100.0), self.work("synchronize", waits)
        return DeviceStopwatch(flush=flush, event=self.event, synchronize=synchronize)


class FakeEvent:
    def __init__(self, device: FakeDevice) -> None:
        self.device, self.at = device, 0.0

    def record(self) -> None:
        self.device.done.append("event")
        self.at = self.device.now

    def elapsed_time(self, end: FakeEvent) -> float:
        assert self.device.done[-1] == "synchronize", "read before the device was done"
        return end.at - self.at


def test_the_flush_is_outside_the_events_and_a_block_synchronises_once() -> None:
    device = FakeDevice()
    watch = device.stopwatch(waits=0.0)
    found = watch.time(device.work("call", 2.0), 3, between=device.work("between", 50.0))
    assert found == [0.002] * 3
    once = ["between", "flush", "event", "call", "event"]
    assert device.done == [*once * 3, "synchronize"]


def test_the_hosts_clock_finds_the_cache_as_empty_and_times_neither_flush_nor_its_end() -> None:
    device = FakeDevice()
    watch = device.stopwatch(waits=0.5).on_host()
    watch._clock = lambda: round(device.now * 1e6)
    found = watch.time(device.work("call", 2.0), 2, between=device.work("between", 50.0))
    assert found == [0.0025] * 2
    assert device.done == ["between", "flush", "synchronize", "call", "synchronize"] * 2
    assert watch.name == "perf_counter_ns, synchronised, L2 flushed outside"


def test_a_real_call_takes_about_its_time() -> None:
    size = torch.zeros(1)
    found = measure_latency(lambda: size.add_(1.0), HostStopwatch(), seconds=0.0)
    assert len(found.seconds) == FLOOR
    assert 0.0 < min(found.seconds) < 0.1
