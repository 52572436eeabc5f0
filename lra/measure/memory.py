"""Peak memory of a call: a pass of its own, before timing, in a process that has done little else.

Four figures that are never mixed, each above its level just before the call: bytes resident in
the process (CPU); bytes in live tensors, bytes that torch's allocator took from the driver, and
bytes that the whole device holds, for any process (GPU). A figure that cannot be had is None with
the reason, never 0.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import torch

from lra.core.records import Metric

CALLS = 3
"""Calls of a pass. On a CPU the smallest peak counts: memory that the first call sets up for good
is in all of them, waste of the heap in one."""

RESOLUTION = 256 * 1024
"""Resident bytes below which a peak means nothing: the kernel counts in batches of pages."""

_SMALL = 64 * 1024
_LARGE = 32 * 1024 * 1024
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3

_CLEAR_REFS = Path("/proc/self/clear_refs")
_STATUS = Path("/proc/self/status")


def measure_memory(
    call: Callable[[], object], device: torch.device, *, between: Callable[[], object]
) -> dict[str, Metric]:
    """Return the peaks of `call` by name; `between` runs before and after each call.

    `call` has run before, so that memory that libraries set up once is not counted.
    """
    if device.type == "cuda":
        allocated, reserved, taken = _device_peaks(call, device, between)
        return {
            "peak_resident_bytes": _unknown("measured on CPUs only"),
            "peak_allocated_bytes": _bytes(allocated),
            "peak_reserved_bytes": _bytes(reserved),
            "peak_device_bytes": _allocated(taken, reserved),
        }
    resident = resident_growth(call, between=between)
    return {
        "peak_resident_bytes": _resident(resident),
        "peak_allocated_bytes": _unknown("torch counts allocations on GPUs only"),
        "peak_reserved_bytes": _unknown("torch reserves memory on GPUs only"),
        "peak_device_bytes": _unknown("no GPU"),
    }


def _resident(peak: int | None) -> Metric:
    if peak is None:
        return _unknown("the system lets no process reset its high-water mark")
    if peak < RESOLUTION:
        return _unknown(f"below {RESOLUTION / 1e6:.2f} MB, which the system's counting can tell")
    return _bytes(peak)


def _allocated(device: int, reserved: int) -> Metric:
    if device < reserved:
        # Taken by its other users, or given back by torch's allocator after an allocation failed.
        return _unknown("memory of the device was given back meanwhile")
    return _bytes(device)


def resident_growth(
    call: Callable[[], object], *, between: Callable[[], object] = lambda: None
) -> int | None:
    """Return the largest growth of the process during the call, in bytes; None if unknown.

    Linux lets a process reset its own high-water mark; below `RESOLUTION` it means nothing.
    Elsewhere the mark only ever rises, and earlier calls hide this one.
    """
    with _mapped_one_by_one():
        between()
        _give_back()
        if not _reset_mark():
            return None
        before = _kilobytes("VmRSS")
        peaks = []
        for _ in range(CALLS):
            _reset_mark()
            call()
            peaks.append(_kilobytes("VmHWM"))
            between()
            _give_back()
    return max(0, min(peaks) - before) * 1024


def memory_method(device: torch.device) -> str:
    """Return in words how peaks are measured on a device."""
    if device.type == "cuda":
        return (
            f"peaks of torch's allocator above the level before, {CALLS} calls; "
            "of the device, what all its users took meanwhile"
        )
    return (
        f"peak resident size above the level before, the least of {CALLS} calls, "
        "large blocks mapped singly"
    )


def _reset_mark() -> bool:
    try:
        _CLEAR_REFS.write_text("5")
    except OSError:
        return False
    return True


def _device_peaks(
    call: Callable[[], object], device: torch.device, between: Callable[[], object]
) -> tuple[int, int, int]:
    between()
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.synchronize(device)
    torch.cuda.reset_peak_memory_stats(device)
    allocated = torch.cuda.memory_allocated(device)
    reserved = torch.cuda.memory_reserved(device)
    free, _ = torch.cuda.mem_get_info(device)
    for _ in range(CALLS):
        call()
        between()
    torch.cuda.synchronize(device)
    # Torch's allocator gives back only where an allocation failed, so this is the peak.
    taken = free - torch.cuda.mem_get_info(device)[0]
    return (
        torch.cuda.max_memory_allocated(device) - allocated,
        torch.cuda.max_memory_reserved(device) - reserved,
        taken,
    )


@contextmanager
def _mapped_one_by_one() -> Iterator[None]:
    """Have glibc map each block above `_SMALL` by itself, and unmap it when it is freed.

    Otherwise a peak depends on the holes that earlier allocations happen to have left, by half and
    more. Afterwards blocks up to `_LARGE` are kept for reuse, as by glibc's own adaptation in a
    process that runs long.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", lambda parameter, value: 0)
    mallopt(_M_MMAP_THRESHOLD, _SMALL)
    try:
        yield
    finally:
        mallopt(_M_MMAP_THRESHOLD, _LARGE)
        mallopt(_M_TRIM_THRESHOLD, 2 * _LARGE)


def _give_back() -> None:
    """Return freed memory to the system, or the call would reuse it unseen."""
    gc.collect()
    with suppress(AttributeError, OSError):
        # glibc only.
        ctypes.CDLL(None).malloc_trim(0)


def _kilobytes(field: str) -> int:
    for line in _STATUS.read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0])
    raise LookupError(field)


def _bytes(value: int) -> Metric:
    return Metric(value=float(value), unit="B", better="lower")


def _unknown(why: str) -> Metric:
    return Metric(value=None, unit="B", better="lower", why_null=why)
