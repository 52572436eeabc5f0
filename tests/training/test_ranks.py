"""Processes that train together reach what one process does with the same batches."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import lra
from lra.core.errors import LraError
from lra.training.batches import Order
from lra.training.ranks import ALONE, Joined

HERE = Path(__file__).parent
WEIGHTS = 1e-9
"""How far weights may be apart after 20 steps, of models in float64."""
LOSSES = 1e-6
"""How far losses may be apart, relative to their size; they are summed in float32."""
Ends = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> tuple[Ends, Ends, Ends]:
    """Ends of one process, and of each of two."""
    folder = tmp_path_factory.mktemp("ranks")
    environment = {**os.environ, "PYTHONPATH": str(Path(lra.__file__).parents[1])}
    for size in (2, 1):
        children = [
            subprocess.Popen(
                [sys.executable, HERE / "rank_child.py", str(index), str(size), folder],
                env=environment,
            )
            for index in range(size)
        ]
        try:
            assert [child.wait(timeout=300) for child in children] == [0] * size
        finally:
            for child in children:
                child.kill()
    alone, first, second = (torch.load(folder / name) for name in ("0-1", "0-2", "1-2"))
    return alone, first, second


def assert_close(
    one: dict[str, Any], other: dict[str, Any], weights: float, losses: float = LOSSES
) -> None:
    assert one["weights"].keys() == other["weights"].keys()
    for name, weight in one["weights"].items():
        apart = (weight - other["weights"][name]).abs().max().item()
        assert apart <= weights, f"{name} is {apart} off"
    assert one["losses"] == pytest.approx(other["losses"], rel=losses)
    assert one["test_loss"] == pytest.approx(other["test_loss"], rel=losses)
    assert one["counted"] == other["counted"]


def assert_same(one: dict[str, Any], other: dict[str, Any]) -> None:
    for name, weight in one["weights"].items():
        assert torch.equal(weight, other["weights"][name]), name
    for kind in ("losses", "test_loss", "counted"):
        assert one[kind] == other[kind]


@pytest.mark.parametrize(
    "scenario",
    [
        "plain",
        "micro_batches",
        "more_micro_batches_than_rows",
        "batches_of_three",
        "clipped",
        "pairs",
        "unread_weight",
    ],
)
def test_two_processes_reach_what_one_does(ended: tuple[Ends, Ends, Ends], scenario: str) -> None:
    alone, first, second = (ends[scenario] for ends in ended)
    assert_close(alone, first, WEIGHTS)
    # Neither is told what the other weighs, after the first step.
    assert_same(first, second)


def test_scenarios_differ_in_more_than_what_is_tolerated(ended: tuple[Ends, Ends, Ends]) -> None:
    alone, _, _ = ended
    for scenario in ("batches_of_three", "clipped"):
        with pytest.raises(AssertionError):
            assert_close(alone["plain"], alone[scenario], 1e-3)


def test_stopped_between_steps_in_a_validation_and_in_the_test_they_end_the_same(
    ended: tuple[Ends, Ends, Ends],
) -> None:
    _, first, second = ended
    assert first["stopped"]["stopped_at"] == [4, 10, 10, 14, 20, 20, 20]
    assert second["stopped"]["stopped_at"] == first["stopped"]["stopped_at"]
    # Sums of losses go to one process, which may round them otherwise.
    assert_close(first["stopped"], first["plain"], 0.0, 1e-12)
    assert_same(first["stopped"], second["stopped"])


def test_each_process_draws_noise_of_its_own_and_goes_on_with_it(
    ended: tuple[Ends, Ends, Ends],
) -> None:
    _, first, second = ended
    masks = [one["dropping"]["drawn"] for one in (first, second)]
    assert 0.2 < masks[0][0].float().mean() < 0.4
    for one, other in zip(*masks, strict=True):
        # Batches have as many rows or one more, and their own length.
        rows, length = (min(one.shape[n], other.shape[n]) for n in range(2))
        equal = one[:rows, :length] == other[:rows, :length]
        assert equal.float().mean() < 0.9
    assert_same(first["dropping"], second["dropping"])
    assert_close(first["stopped_dropping"], first["dropping"], 0.0, 1e-12)


def test_what_two_processes_began_one_can_end(ended: tuple[Ends, Ends, Ends]) -> None:
    alone, first, _ = ended
    assert first["handed_over"]["stopped_at"] == [10]
    assert_close(alone["handed_over"], alone["plain"], WEIGHTS)


def among(count: int) -> list[Joined]:
    """As many processes, as far as they need not meet."""
    ranks = [Joined.__new__(Joined) for _ in range(count)]
    for index, one in enumerate(ranks):
        one.index, one.count = index, count
    return ranks


@given(st.lists(st.integers(0, 4000), min_size=5, max_size=70), st.integers(1, 5))
def test_shares_hold_each_row_once_and_about_as_much(lengths: list[int], count: int) -> None:
    rows = np.random.default_rng(len(lengths)).permutation(len(lengths)) + 100
    of_rows = np.array(lengths)
    shares = [one.share(rows, of_rows) for one in among(count)]
    assert sorted(np.concatenate(shares)) == sorted(rows)
    length_of = dict(zip(rows.tolist(), lengths, strict=True))
    sizes = [len(share) for share in shares]
    tokens = [sum(length_of[row] for row in share.tolist()) for share in shares]
    assert max(sizes) - min(sizes) <= 1
    assert max(tokens) - min(tokens) <= max(lengths)


def test_an_epoch_of_bucketed_batches_is_shared_whole(toy: Any) -> None:
    split = toy.split(391, 0)
    order = Order(split, 32, 3, by_length=True)
    seen: list[int] = []
    for step in range(order.batches):
        rows = order.rows(step)
        for one in among(3):
            seen += one.share(rows, order.longest_E[rows]).tolist()
    assert sorted(seen) == list(range(391))


def test_a_batch_of_fewer_rows_than_processes_is_refused() -> None:
    rows = np.arange(2)
    for one in among(3):
        with pytest.raises(LraError, match=r"\b2\b.*\b3\b"):
            one.share(rows, rows)


def test_one_process_alone_shares_with_nobody() -> None:
    rows, value = np.array([3, 1, 2]), torch.ones(2)
    assert ALONE.share(rows, rows) is rows
    assert ALONE.agree(True, False) == (True, False)
    assert ALONE.total(value) is value and ALONE.gather(value) == [value]
