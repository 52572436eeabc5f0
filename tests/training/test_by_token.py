"""Tasks that ask for each token: labels in batches, the loss over them, decoding by use."""

from __future__ import annotations

import dataclasses

import msgspec
import numpy as np
import pytest
import torch
import torch.nn.functional as F

from lra.core.catalogue import find
from lra.core.dataset import UNASKED, Dataset, Split
from lra.core.errors import UnsupportedError
from lra.core.loading import load
from lra.core.protocol import ModelSpec, TrainSpec
from lra.models.build import build_model
from lra.models.layers import Layers
from lra.models.output import Output
from lra.training.batches import Collator
from lra.training.decoding import decode_agreement
from lra.training.evaluation import evaluate
from lra.training.loop import Run, train
from lra.training.objectives.labels import Labels
from lra.training.setup import Training

CPU = torch.device("cpu")
CLASSES, LENGTH = 5, 12
SPEC = TrainSpec(steps=12, batch=16, learning_rate=3e-3, evaluate_every=6, evaluation_batch=7)


def made(rows: int, seed: int = 0) -> Split:
    """Rows of different lengths; asked of every third token or so, at least once a row."""
    draws = np.random.default_rng(seed)
    lengths = draws.integers(2, LENGTH + 1, rows)
    tokens = [draws.integers(1, 9, length).astype(np.uint8) for length in lengths]
    labels = []
    for row in tokens:
        asked = draws.random(len(row)) < 0.3
        asked[-1] = True
        labels.append(np.where(asked, row.cumsum() % CLASSES, UNASKED))
    return Split.of(tokens, np.concatenate(labels), by_token=True)


def dataset() -> Dataset:
    parts = (made(60), made(20, 1), made(30, 2))
    return Dataset(*parts, classes=CLASSES, vocabulary=9, length=LENGTH)


def model(mechanism: str = "full", dropout: float = 0.0):
    spec = ModelSpec(
        layers=2,
        width=16,
        qkv_width=16,
        heads=2,
        mlp_width=32,
        dropout=dropout,
        attention_dropout=dropout,
        position="learned",
        pooling="none",
        causal=True,
    )
    return build_model(
        spec,
        layers=Layers.of(load(find("mechanism", mechanism))),
        position=load(find("position", "learned")),
        vocabulary=9,
        classes=CLASSES,
        length=LENGTH,
    )


@pytest.mark.parametrize("length", [None, LENGTH])
def test_a_batch_asks_what_the_rows_ask(length: int | None) -> None:
    split = made(40)
    rows = np.array([3, 17, 8])
    collate = Collator(split, length=length, rules="fixed")
    batch = collate(rows)
    wanted = [split.labels[split.starts[row] : split.starts[row + 1]] for row in rows]
    assert batch.labels_L.tolist() == [x for row in wanted for x in row.tolist() if x != UNASKED]
    asked_SN = torch.zeros(batch.tokens_SN.shape, dtype=torch.bool)
    asked_SN.view(-1)[batch.asked_T] = True
    for asked, labels in zip(asked_SN, wanted, strict=True):
        assert asked[: len(labels)].tolist() == (labels != UNASKED).tolist()
        assert not asked[len(labels) :].any()
    assert collate.answers_E[rows].tolist() == [int((row != UNASKED).sum()) for row in wanted]


def test_evaluation_counts_each_asked_token_once() -> None:
    split, net = made(40), model()
    found = evaluate(
        net, split, Collator(split, length=None, rules="fixed"), Labels(), batch=7, device=CPU
    )
    correct, losses = 0, []
    net.eval()
    for row in range(len(split)):
        inside = slice(split.starts[row], split.starts[row + 1])
        with torch.no_grad():
            logits = net(torch.from_numpy(split.tokens[inside])[None]).logits_LC[0]
        labels = torch.from_numpy(split.labels[inside].astype(np.int64))
        asked = labels != UNASKED
        correct += int((logits.argmax(-1) == labels)[asked].sum())
        losses.append(F.cross_entropy(logits[asked], labels[asked], reduction="none"))
    assert (found.correct, found.answers) == (correct, int((split.labels != UNASKED).sum()))
    assert found.loss == pytest.approx(float(torch.cat(losses).mean()), rel=1e-5)


def trained(dropout: float = 0.0, **changes):
    net, spec = model(dropout=dropout), msgspec.structs.replace(SPEC, **changes)
    return train(Run(net, Training(dataset(), spec, seed=0, metric="bits_per_byte"), device=CPU))


@pytest.mark.parametrize("pieces", [1, 3])
def test_the_loss_that_is_trained_on_is_the_mean_over_asked_tokens(pieces: int) -> None:
    data, net = dataset(), model()
    whole = Collator(data.train, length=None, rules="fixed")
    before = evaluate(net, data.train, whole, Labels(), batch=60, device=CPU)
    assert before.answers > len(data.train)
    spec = msgspec.structs.replace(
        SPEC, steps=1, evaluate_every=1, batch=len(data.train), micro_batches=pieces
    )
    (point,) = train(
        Run(net, Training(data, spec, seed=0, metric="bits_per_byte"), device=CPU)
    ).curve
    assert point.train_loss == pytest.approx(before.loss, rel=1e-5)


def test_where_bits_are_counted_the_lowest_loss_is_chosen() -> None:
    found = trained()
    losses = {point.step: point.validation_loss for point in found.curve}
    assert found.best_step == min(losses, key=losses.__getitem__)


@pytest.mark.parametrize("mechanism", ["full", "sdpa", "linear", "sliding_window", "lstm"])
def test_step_by_step_the_answers_are_the_same(mechanism: str) -> None:
    assert decode_agreement(model(mechanism), made(100), CPU) == 1.0


def test_a_state_that_forgets_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    net = model()
    forward = net.forward

    def forgetful(tokens, *given, states=None, first=0):
        if states is not None:
            states = net.init_states(len(tokens), length=LENGTH)
        return forward(tokens, *given, states=states, first=first)

    monkeypatch.setattr(net, "forward", forgetful)
    assert decode_agreement(net, made(100), CPU) < 1.0


def test_only_tokens_that_are_decoded_count(monkeypatch: pytest.MonkeyPatch) -> None:
    net = model()
    forward = net.forward

    def wrong_at_first(tokens, *given, states=None, first=0):
        logits, after = forward(tokens, *given, states=states, first=first)
        return Output(logits if first or states is None else -logits, after)

    monkeypatch.setattr(net, "forward", wrong_at_first)
    assert decode_agreement(net, made(100), CPU) == 1.0


def test_second_halves_that_ask_nothing_are_refused() -> None:
    data = made(10)
    labels = np.full_like(data.labels, UNASKED)
    labels[data.starts[:-1]] = 0
    with pytest.raises(ValueError, match="no token of the second halves is asked"):
        decode_agreement(model(), dataclasses.replace(data, labels=labels), CPU)


@pytest.mark.parametrize("mechanism", ["linformer", "reformer"])
def test_what_is_not_strictly_causal_is_refused(mechanism: str) -> None:
    with pytest.raises(UnsupportedError, match="not strictly causal"):
        model(mechanism)
