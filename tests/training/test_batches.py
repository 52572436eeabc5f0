from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lra.core.dataset import Split
from lra.training.batches import Collator, Order, evaluation_rows


def ragged(rows: int, low: int, high: int, *, inputs: int = 1, seed: int = 0) -> Split:
    draws = np.random.default_rng(seed)
    lengths = draws.integers(low, high + 1, size=rows * inputs)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    tokens = draws.integers(0, 9, size=starts[-1]).astype(np.uint8)
    return Split(tokens, starts, np.arange(rows), inputs)


def epoch(order: Order, number: int) -> list[np.ndarray]:
    first = number * order.batches
    return [order.rows(first + index) for index in range(order.batches)]


def padded_share(split: Split, batches: list[np.ndarray]) -> float:
    longest = split.lengths.max(axis=1)
    computed = sum(longest[rows].max() * len(rows) for rows in batches)
    return 1 - longest.sum() / computed


@pytest.mark.parametrize("by_length", [True, False])
@pytest.mark.parametrize(("rows", "batch"), [(1, 8), (7, 8), (100, 8), (4801, 32)])
def test_each_row_once_per_epoch_in_even_batches(rows: int, batch: int, by_length: bool) -> None:
    order = Order(ragged(rows, 1, 50), batch, seed=0, by_length=by_length)
    for number in range(3):
        batches = epoch(order, number)
        sizes = {len(b) for b in batches}
        assert sorted(np.concatenate(batches)) == list(range(rows))
        assert max(sizes) <= batch
        assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("by_length", [True, False])
def test_order_depends_on_seed_and_epoch_alone(by_length: bool) -> None:
    split = ragged(300, 1, 50)
    walked = Order(split, 16, seed=5, by_length=by_length)
    batches = [walked.rows(step) for step in range(3 * walked.batches)]
    for step in (0, 1, 18, 19, 56):
        asked = Order(split, 16, seed=5, by_length=by_length).rows(step)
        assert np.array_equal(asked, batches[step])
    other = Order(split, 16, seed=6, by_length=by_length)
    assert not all(np.array_equal(other.rows(step), batches[step]) for step in range(10))


@pytest.mark.parametrize("rows", [64, 3000])
def test_batches_change_from_epoch_to_epoch(rows: int) -> None:
    order = Order(ragged(rows, 1, 500), 8, seed=0, by_length=True)
    first, second = ({frozenset(b) for b in epoch(order, n)} for n in (0, 1))
    assert len(first & second) < 0.2 * len(first)


def test_padding_is_hardly_computed() -> None:
    # Lengths as ListOps has them, and half an epoch's rows.
    split = ragged(48_000, 500, 2000)
    assert padded_share(split, epoch(Order(split, 32, 0, by_length=True), 0)) < 0.02
    assert padded_share(split, epoch(Order(split, 32, 0, by_length=False), 0)) > 0.3


def test_batches_of_one_length_do_not_come_in_order_of_length() -> None:
    split = ragged(4000, 1, 500)
    batches = epoch(Order(split, 20, seed=0, by_length=True), 0)
    longest = [split.lengths[rows].max() for rows in batches]
    assert abs(np.corrcoef(longest, np.arange(len(longest)))[0, 1]) < 0.3


def test_a_pair_counts_as_its_longer_document() -> None:
    split = ragged(2000, 1, 300, inputs=2)
    batches = epoch(Order(split, 10, seed=0, by_length=True), 0)
    longest = split.lengths.max(axis=1)
    assert np.mean([np.ptp(longest[rows]) for rows in batches]) < 20


def test_no_rows() -> None:
    with pytest.raises(ValueError, match="without rows"):
        Order(Split.of([], []), 4, seed=0, by_length=True)


def test_evaluation_covers_a_split_once_longest_first() -> None:
    split = ragged(103, 1, 60, inputs=2)
    batches = evaluation_rows(split, 10)
    assert sorted(np.concatenate(batches)) == list(range(103))
    longest = split.lengths.max(axis=1)[np.concatenate(batches)]
    assert (np.diff(longest) <= 0).all()


@given(
    lengths=st.lists(st.integers(0, 9), min_size=2, max_size=12).filter(any),
    inputs=st.sampled_from([1, 2]),
    length=st.sampled_from([None, 9, 13]),
    kind=st.sampled_from([np.uint8, np.uint16, np.int32]),
    seed=st.integers(0, 9),
)
def test_collating_equals_padding_row_by_row(
    lengths: list[int], inputs: int, length: int | None, kind: type, seed: int
) -> None:
    lengths = lengths[: len(lengths) // inputs * inputs]
    if not any(lengths):
        lengths[0] = 1
    draws = np.random.default_rng(seed)
    sequences = [draws.integers(1, 200, size=n).astype(kind) for n in lengths]
    labels = draws.integers(0, 9, size=len(lengths) // inputs)
    split = Split.of(sequences, labels, inputs)
    rows = draws.permutation(len(labels))[: draws.integers(1, len(labels) + 1)]

    batch = Collator(split, length=length, rules="fixed")(rows)

    chosen = [sequences[inputs * row + i] for row in rows for i in range(inputs)]
    width = length if length is not None else max(1, *map(len, chosen), 1)
    tokens = [[*sequence, *[0] * (width - len(sequence))] for sequence in chosen]
    mask = [[i < len(sequence) for i in range(width)] for sequence in chosen]
    assert batch.tokens_SN.tolist() == tokens
    assert batch.tokens_SN.long().tolist() == tokens
    assert batch.labels_L.tolist() == labels[rows].tolist()
    if batch.mask_SN is None:
        assert all(map(all, mask))
    else:
        assert batch.mask_SN.tolist() == mask
        assert not all(map(all, mask))


def test_tokens_stay_small_and_the_file_stays_untouched() -> None:
    split = ragged(50, 3, 20)
    tokens = np.frombuffer(split.tokens.tobytes(), dtype=np.uint8)  # read-only, as from a file
    batch = Collator(Split(tokens, split.starts, split.labels), length=20, rules="fixed")(
        np.arange(50)
    )
    assert batch.tokens_SN.dtype == torch.uint8
    assert np.array_equal(tokens, split.tokens)


def test_the_originals_mask_hides_real_zeros() -> None:
    tokens = np.array([5, 0, 7, 0, 0], dtype=np.uint8)
    split = Split(tokens, np.array([0, 3, 5]), np.array([0, 1]))
    rows = np.arange(2)
    fixed = Collator(split, length=4, rules="fixed")(rows)
    original = Collator(split, length=4, rules="lra2021")(rows)
    assert fixed.mask_SN.tolist() == [[True] * 3 + [False], [True] * 2 + [False] * 2]
    assert original.mask_SN.tolist() == [[True, False, True, False], [False] * 4]


def test_a_sequence_longer_than_the_length_is_a_bug() -> None:
    with pytest.raises(ValueError, match=r"\b9\b.*\b8\b"):
        Collator(ragged(30, 9, 9), length=8, rules="fixed")


def test_lengths_are_rounded_up_to_a_multiple_but_not_beyond_the_longest() -> None:
    lengths = np.array([3, 8, 9, 13])
    starts = np.concatenate([[0], np.cumsum(lengths)])
    split = Split(np.arange(1, 34, dtype=np.uint8), starts, np.arange(4))
    collate = Collator(split, length=None, rules="fixed", multiple=8)
    plain = Collator(split, length=None, rules="fixed")
    assert [collate.padded(n) for n in (0, 1, 3, 8, 9, 13)] == [8, 8, 8, 8, 13, 13]
    assert not collate.has_one_length
    assert Collator(split, length=None, rules="fixed", multiple=16).has_one_length
    rows = np.array([0])
    assert collate(rows).tokens_SN.tolist() == [[1, 2, 3, *[0] * 5]]
    assert collate(rows).mask_SN.tolist() == [[True] * 3 + [False] * 5]
    assert torch.equal(collate(rows).tokens_SN[:, :3], plain(rows).tokens_SN)
    assert collate(np.array([1])).mask_SN is None
    # Under a length for all there is nothing to round.
    whole = Collator(split, length=20, rules="fixed", multiple=8)
    assert whole.has_one_length
    assert whole.padded(3) == 20


def test_another_splits_rows_are_padded_by_the_same_rule() -> None:
    collate = Collator(ragged(9, 5, 9), length=None, rules="lra2021", multiple=4)
    other = collate.over(ragged(9, 13, 13))
    assert (other.padded(5), other.multiple, other.rules) == (8, 4, "lra2021")
    assert other(np.arange(2)).tokens_SN.shape == (2, 13)
    assert collate.over(ragged(9, 1, 1)).has_one_length


def test_what_a_cuda_graph_cannot_copy_is_widened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lra.training.batches._send", lambda tensor, device: tensor)
    tokens = np.array([5, 60_000], dtype=np.uint16)
    batch = Collator(Split(tokens, np.array([0, 2]), np.array([0])), length=None, rules="fixed")(
        np.arange(1)
    )
    assert batch.to(torch.device("cpu")).tokens_SN.dtype == torch.uint16
    sent = batch.to(torch.device("cuda")).tokens_SN
    assert sent.dtype == torch.int32 and sent.tolist() == [[5, 60_000]]
