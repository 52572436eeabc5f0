"""Tests that run side by side (`-n`) leave each other the cores: one thread each, set before torch
is imported. And their timings wait for nobody else's."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from lra.engine.machine import timing_lock

if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")


def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: many tests wait for processes that they have started."""
    return len(os.sched_getaffinity(0)) + 1


@pytest.fixture(autouse=True, scope="session")
def own_timing_lock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A lock for the timings of this process, whose figures nobody reads; commands that run in
    processes of their own take the machine's."""
    with pytest.MonkeyPatch.context() as patch:
        # A whole path leaves /tmp and TMPDIR out.
        patch.setattr(timing_lock, "_NAME", str(tmp_path_factory.mktemp("timing") / "lock"))
        yield


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """For tensors that are too small for more, and for sums that are to be the same."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
