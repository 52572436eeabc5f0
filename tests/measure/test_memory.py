"""Peak memory: an n x n matrix is seen, nothing is seen where nothing is, unknown is not zero."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from lra.measure import memory

CPU = torch.device("cpu")
SIZE = 3000
MATRIX = SIZE * SIZE * 4
SLACK = 0.05
"""The kernel counts pages in batches."""


def square() -> None:
    torch.ones(SIZE, SIZE)


LINUX = pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="Linux only")


def assert_peak(call: Callable[[], object], matrices: int) -> None:
    assert memory.resident_growth(call) == pytest.approx(matrices * MATRIX, rel=SLACK)


@LINUX
def test_a_matrix_freed_before_the_call_returns_is_seen_after_a_larger_one() -> None:
    torch.ones(2 * SIZE, SIZE)
    assert_peak(square, 1)


@LINUX
def test_what_only_the_first_call_needs_is_not_counted() -> None:
    sizes = iter([3, 1, 1])
    assert_peak(lambda: torch.ones(next(sizes) * SIZE, SIZE), 1)


@LINUX
def test_what_the_first_call_keeps_for_good_is_counted() -> None:
    kept: list[torch.Tensor] = []

    def call() -> None:
        if not kept:
            kept.append(torch.ones(SIZE, SIZE))
        square()

    assert_peak(call, 2)


def test_a_call_that_holds_nothing_has_hardly_a_peak() -> None:
    small = torch.ones(8)
    peak = memory.resident_growth(lambda: small.add_(1.0))
    assert peak is None or peak < SLACK * MATRIX


def test_what_runs_between_calls_comes_before_and_after_each() -> None:
    done: list[str] = []
    memory.resident_growth(lambda: done.append("call"), between=lambda: done.append("between"))
    assert done == ["between", *["call", "between"] * memory.CALLS]


def test_on_a_cpu_the_figures_of_a_gpu_are_unknown_with_a_reason() -> None:
    found = memory.measure_memory(lambda: None, CPU, between=lambda: None)
    assert set(found) == {
        "peak_resident_bytes",
        "peak_allocated_bytes",
        "peak_reserved_bytes",
        "peak_device_bytes",
    }
    for name in found.keys() - {"peak_resident_bytes"}:
        assert found[name].value is None
        assert found[name].why_null
    assert {metric.unit for metric in found.values()} == {"B"}


def test_without_a_mark_that_can_be_reset_the_peak_is_unknown_with_a_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memory, "_CLEAR_REFS", Path("/nowhere/clear_refs"))
    metric = memory.measure_memory(lambda: torch.ones(1 << 20), CPU, between=lambda: None)[
        "peak_resident_bytes"
    ]
    assert metric.value is None and "high-water mark" in str(metric.why_null)


def test_a_peak_that_the_counting_cannot_tell_is_unknown_with_a_reason() -> None:
    found = memory.measure_memory(lambda: None, CPU, between=lambda: None)["peak_resident_bytes"]
    assert found.value is None and "0.26 MB" in (found.why_null or "")
    held = memory.measure_memory(lambda: torch.ones(1 << 20), CPU, between=lambda: None)
    assert (held["peak_resident_bytes"].value or 0) > 3e6


def test_where_others_gave_memory_of_a_gpu_back_its_peak_is_unknown_with_a_reason() -> None:
    assert memory._allocated(2000, 2000).value == 2000
    found = memory._allocated(1999, 2000)
    assert found.value is None and "given back" in (found.why_null or "")


def test_a_gpus_peaks_are_read_in_the_right_order(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    def fake(name: str, *values: object) -> None:
        left = list(values)

        def stand_in(*arguments: object) -> object:
            done.append(name)
            return left.pop(0) if left else None

        monkeypatch.setattr(torch.cuda, name, stand_in)

    fake("empty_cache")
    fake("synchronize")
    fake("reset_peak_memory_stats")
    fake("memory_allocated", 100)
    fake("memory_reserved", 1000)
    fake("max_memory_allocated", 150)
    fake("max_memory_reserved", 3000)
    fake("mem_get_info", (9000, 10000), (5500, 10000))
    found = memory.measure_memory(
        lambda: done.append("call"), torch.device("cuda"), between=lambda: done.append("between")
    )
    assert found["peak_allocated_bytes"].value == 50
    assert found["peak_reserved_bytes"].value == 2000
    assert found["peak_device_bytes"].value == 3500
    assert found["peak_resident_bytes"].value is None
    assert found["peak_resident_bytes"].why_null
    assert done == [
        *("between", "empty_cache", "synchronize", "reset_peak_memory_stats"),
        *("memory_allocated", "memory_reserved", "mem_get_info"),
        *("call", "between") * memory.CALLS,
        *("synchronize", "mem_get_info", "max_memory_allocated", "max_memory_reserved"),
    ]
