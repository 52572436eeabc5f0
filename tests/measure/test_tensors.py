"""The peak of live tensors, which has to be exact and the same every time."""

from __future__ import annotations

import gc

import pytest
import torch

from lra.measure.live_tensors import highest_sum, tensor_peak

MIB = 2**20


@pytest.fixture(autouse=True)
def _no_garbage_of_other_tests() -> None:
    """Tensors in cycles that earlier tests left are given back now and not during a call."""
    gc.collect()


def test_the_peak_is_what_was_alive_together() -> None:
    def call() -> torch.Tensor:
        one = torch.empty(MIB, dtype=torch.uint8)
        two = torch.empty(2 * MIB, dtype=torch.uint8)
        del one
        return torch.empty(MIB // 2, dtype=torch.uint8), two  # type: ignore[return-value]

    assert tensor_peak(call) == 3 * MIB


def test_what_was_there_before_counts_for_nothing_and_between_is_unseen() -> None:
    kept = [torch.empty(8 * MIB, dtype=torch.uint8)]

    def call() -> None:
        kept.clear()
        kept.append(torch.empty(MIB, dtype=torch.uint8))

    def between() -> None:
        torch.empty(16 * MIB, dtype=torch.uint8)

    # Eight are given back before one is taken, which the profiler cannot know.
    assert tensor_peak(call, between=between) == MIB
    assert tensor_peak(lambda: torch.empty(0)) == 0


def test_it_sees_gradients_and_scratch_inside_operations() -> None:
    x = torch.randn(64, 64, requires_grad=True)

    def call() -> None:
        torch.autograd.backward((x @ x).sum())

    def clear() -> None:
        x.grad = None

    found = {tensor_peak(call, between=clear) for _ in range(5)}
    assert len(found) == 1
    assert found.pop() >= 2 * x.nbytes


def test_highest() -> None:
    assert highest_sum([]) == 0 and highest_sum([-5, 3]) == 0
    assert highest_sum([4, -4, 5, -1, 2]) == 6
