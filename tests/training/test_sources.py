"""Examples with a source: two paddings in a batch, the model's call, counts of an evaluation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import msgspec
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from models import sequence_laws

from lra.core.dataset import PAD, UNASKED, Dataset, Split
from lra.core.protocol import TrainSpec
from lra.models.sequence_model import SequenceModel
from lra.training.batches import Batch, Collator, Order
from lra.training.evaluation import evaluate
from lra.training.forward import forward
from lra.training.graphs import Graphs
from lra.training.loop import Run, train
from lra.training.objectives.labels import Labels
from lra.training.setup import Training

CPU = torch.device("cpu")
VOCABULARY, LENGTH = sequence_laws.SIZE.vocabulary, sequence_laws.SIZE.length
SPEC = TrainSpec(steps=4, batch=16, learning_rate=3e-3, evaluate_every=2, evaluation_batch=7)


def made(rows: int, seed: int = 0) -> Split:
    """Sources of 5 to 24 tokens, and others of 2 to 9, most of whose tokens are asked."""
    draws = np.random.default_rng(seed)
    sequences, labels = [], []
    for _ in range(rows):
        source, given = (
            draws.integers(1, VOCABULARY, draws.integers(*n)) for n in ((5, 25), (2, 10))
        )
        asked = draws.random(len(given)) < 0.7
        asked[-1] = True
        sequences += [source.astype(np.uint8), given.astype(np.uint8)]
        labels += [np.full(len(source), UNASKED), np.where(asked, given - 1, UNASKED)]
    return Split.of(sequences, np.concatenate(labels), 2, by_token=True)


def model() -> SequenceModel:
    return sequence_laws.built().float()


@pytest.mark.parametrize("length", [None, LENGTH])
def test_a_source_and_what_is_asked_are_padded_apart(length: int | None) -> None:
    split, rows = made(40), np.array([3, 17, 8, 30])
    batch = Collator(split, length=length, rules="fixed")(rows)
    sides = ((batch.source_EM, batch.source_mask_EM), (batch.tokens_SN, batch.mask_SN))
    for side, (tokens, mask) in enumerate(sides):
        assert tokens is not None and mask is not None
        wanted = [split.sequence(2 * row + side).tolist() for row in rows]
        longest = max(map(len, wanted))
        assert tuple(tokens.shape) == (4, length or longest) == tuple(mask.shape)
        for row, own in enumerate(wanted):
            assert tokens[row, mask[row]].tolist() == own
            assert mask[row].sum() == len(own) and (tokens[row, len(own) :] == PAD).all()
    assert length or batch.source_EM.shape != batch.tokens_SN.shape


def test_a_batch_asks_what_the_rows_ask_and_nothing_of_sources() -> None:
    split, rows = made(40), np.array([3, 17, 8])
    collate = Collator(split, length=None, rules="fixed")
    batch = collate(rows)
    at = [slice(*split.starts[2 * row + 1 : 2 * row + 3]) for row in rows]
    wanted = [[x for x in split.labels[own].tolist() if x != UNASKED] for own in at]
    assert batch.labels_L.tolist() == [x for row in wanted for x in row]
    asked = batch.tokens_SN.flatten()[batch.asked_T].long()
    # Each label of this split is its own token less one.
    assert torch.equal(asked - 1, batch.labels_L)
    assert collate.answers_E[rows].tolist() == [len(own) for own in wanted]


@pytest.mark.parametrize(("low", "has_one"), [((5, 5), True), ((4, 5), False)])
def test_lengths_are_one_where_each_side_has_one(low: tuple[int, int], has_one: bool) -> None:
    rows = [np.ones(n, dtype=np.uint8) for n in (7, low[0], 7, low[1])]
    labels = np.concatenate([np.full(len(row), UNASKED if len(row) == 7 else 0) for row in rows])
    split = Split.of(rows, labels, 2, by_token=True)
    assert Collator(split, length=None, rules="fixed").has_one_length == has_one
    assert Collator(split, length=9, rules="fixed").has_one_length


def test_the_longer_sequence_counts_in_the_order() -> None:
    split = made(40)
    order = Order(split, 8, 0, by_length=True)
    assert np.array_equal(order.longest_E, split.lengths.max(axis=1))
    assert (order.longest_E > split.lengths[:, 1]).any()


def test_a_model_is_called_with_source_and_sequence_and_answers_what_is_asked() -> None:
    net, batch = model().double(), Collator(made(12), length=None, rules="fixed")(np.arange(5))
    found = forward(net, batch, None).logits_LC
    every = net(batch.source_EM, batch.tokens_SN, batch.source_mask_EM, batch.mask_SN).logits_LC
    assert found.shape == (len(batch.labels_L), VOCABULARY)
    torch.testing.assert_close(found, every.flatten(0, 1)[batch.asked_T])
    # Neither side is the other, and neither mask is left out.
    swapped = net(batch.tokens_SN, batch.tokens_SN, batch.mask_SN, batch.mask_SN).logits_LC
    assert not torch.allclose(swapped, every, atol=1e-9)
    unmasked = net(batch.source_EM, batch.tokens_SN, None, batch.mask_SN).logits_LC
    assert not torch.allclose(unmasked, every, atol=1e-9)


def test_evaluation_counts_each_asked_token_once() -> None:
    split, net = made(40), model()
    collate = Collator(split, length=None, rules="fixed")
    found = evaluate(net, split, collate, Labels(), batch=7, device=CPU)
    correct, losses = 0, []
    for row in range(len(split)):
        source, given = (
            torch.from_numpy(split.sequence(2 * row + side).astype(np.int64))[None]
            for side in (0, 1)
        )
        with torch.no_grad():
            logits = net(source, given).logits_LC[0]
        inside = slice(split.starts[2 * row + 1], split.starts[2 * row + 2])
        labels = torch.from_numpy(split.labels[inside].astype(np.int64))
        asked = labels != UNASKED
        correct += int((logits.argmax(-1) == labels)[asked].sum())
        losses.append(F.cross_entropy(logits[asked], labels[asked], reduction="none"))
    assert (found.correct, found.answers) == (correct, int((split.labels != UNASKED).sum()))
    assert found.loss == pytest.approx(float(torch.cat(losses).mean()), rel=1e-5)


@pytest.mark.parametrize("pieces", [1, 3])
def test_the_loss_that_is_trained_on_is_the_mean_over_asked_tokens(pieces: int) -> None:
    parts = (made(60), made(20, 1), made(30, 2))
    data = Dataset(*parts, classes=VOCABULARY, vocabulary=VOCABULARY, length=LENGTH, inputs=2)
    net = model()
    whole = Collator(data.train, length=None, rules="fixed")
    before = evaluate(net, data.train, whole, Labels(), batch=60, device=CPU)
    spec = msgspec.structs.replace(SPEC, steps=1, evaluate_every=1, batch=60, micro_batches=pieces)
    (point,) = train(Run(net, Training(data, spec, seed=0), device=CPU)).curve
    assert point.train_loss == pytest.approx(before.loss, rel=1e-5)


def test_a_replayed_step_reads_the_sources_of_its_own_batch() -> None:
    """As CUDA graphs do, a replay computes again from where the first batch of its shape lay."""

    def record(call: Callable[[], torch.Tensor]) -> tuple[Callable[[], object], torch.Tensor]:
        loss = call().clone()
        return lambda: loss.copy_(call()), loss

    def work(batch: Batch, answers: torch.Tensor) -> torch.Tensor:
        assert batch.source_EM is not None and batch.source_mask_EM is not None
        return (batch.source_EM * batch.source_mask_EM).sum() / answers

    graphs = Graphs(work, [], record)
    collate = Collator(made(12), length=LENGTH, rules="fixed")
    for rows in np.split(np.arange(12), 3):
        batch = collate(rows)
        # Batches that ask as much have one shape.
        batch = replace(batch, labels_L=batch.labels_L[:4], asked_T=batch.asked_T[:4])
        wanted = batch.source_EM.sum().item() / 4
        assert graphs(batch, 4).item() == pytest.approx(wanted)


def test_all_of_a_batch_goes_to_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[torch.Tensor] = []

    def send(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
        sent.append(tensor)
        return tensor.clone()

    monkeypatch.setattr("lra.training.batches._send", send)
    split = made(9)
    split = replace(split, tokens=split.tokens.astype(np.uint16))
    batch = Collator(split, length=None, rules="fixed")(np.arange(4))
    there = batch.to(torch.device("cuda"))
    assert len(sent) == 6
    for name, value in vars(batch).items():
        assert torch.equal(getattr(there, name), value.to(getattr(there, name).dtype)), name
    assert there.tokens_SN.dtype == there.source_EM.dtype == torch.int32
