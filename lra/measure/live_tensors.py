"""Peak of live tensors on a CPU: the running sum of torch's allocations and releases.

Unlike resident size it depends on the sequence of allocations alone, so that it is the same in
every run of a program; but it misses memory that libraries allocate by themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from torch.profiler import ProfilerActivity, profile

_MEMORY = "[memory]"
"""Name of the profiler's events for allocations and releases; a release has a negative size."""


def tensor_peak(call: Callable[[], object], *, between: Callable[[], object] = lambda: None) -> int:
    """Return the largest growth of live tensors during one call, in bytes.

    The call's result is alive until it ends. The profiler does not see the release of tensors from
    before the call, so it lowers nothing. `between` runs before it, unseen.
    """
    between()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        call()
    assert seen.profiler is not None
    events = [event for event in seen.profiler.kineto_results.events() if event.name() == _MEMORY]
    on_cpu = [event for event in events if event.device_type().name == "CPU"]
    return highest_sum(
        event.nbytes() for event in sorted(on_cpu, key=lambda event: event.start_ns())
    )


def highest_sum(changes: Iterable[int]) -> int:
    """Return the largest sum of a sequence of changes from its start; 0 for none above it."""
    level = peak = 0
    for change in changes:
        level += change
        peak = max(peak, level)
    return peak
