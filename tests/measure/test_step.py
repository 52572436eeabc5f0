"""A whole model's call: what it is made of, and that timing it changes nothing."""

from __future__ import annotations

from typing import Any, Literal

import pytest
import torch
import torch.nn.functional as F
from cells import toy_cell
from msgspec.structs import replace

from attention_impls.baseline.identity import Identity
from attention_impls.contract import Layer
from attention_impls.dense.sdpa import Sdpa
from attention_impls.positions.sinusoidal import Sinusoidal
from lra.core.cards import TaskCard
from lra.core.cells import EfficiencyCell
from lra.core.errors import UnsupportedError
from lra.core.forms import load_preset
from lra.core.protocol import ModelSpec
from lra.measure.efficiency import ModelContext, measure_efficiency
from lra.measure.step import build, prepare_step
from lra.models.head import TableHead
from lra.models.language import Slots
from lra.models.layers import Layers
from lra.models.model import Model
from lra.training.setup import Network
from tasks.bytes import Bytes
from tasks.contract import Task
from tasks.recall import Recall
from tasks.retrieval import Retrieval
from tasks.text import Text

CPU = torch.device("cpu")
MODEL = ModelSpec(layers=2, width=8, qkv_width=8, heads=2, mlp_width=16)


def cell(**changes: Any) -> EfficiencyCell:
    return toy_cell(
        **{"mode": "train", "level": "model", "task": "text", "model": MODEL, "batch": 3, **changes}
    )


def network(kind: type[Layer]) -> Network:
    return Network(Slots(*[Layers.of(kind)] * 3), (Sinusoidal, Sinusoidal))


def test_a_training_step_moves_every_parameter_and_hardly() -> None:
    model = build(cell(), network(Sdpa), Text.card)
    before = {name: value.clone() for name, value in model.named_parameters()}
    step, between = prepare_step(cell(), model, Text.card, CPU)
    step()
    for name, value in model.named_parameters():
        assert value.grad is not None, name
        torch.testing.assert_close(value.detach(), before[name], rtol=0.0, atol=1e-7)
    assert model.training
    between()
    assert all(value.grad is None for value in model.parameters())


def test_a_forward_pass_has_no_gradients_and_pairs_have_two_sequences() -> None:
    wanted = cell(mode="forward")
    model = build(wanted, network(Sdpa), Retrieval.card)
    logits = prepare_step(wanted, model, Retrieval.card, CPU)[0]().logits_LC
    assert isinstance(logits, torch.Tensor)
    assert tuple(logits.shape) == (3, 2) and not logits.requires_grad
    assert not model.training


@pytest.mark.parametrize("task", [Text, Retrieval, Recall])
def test_an_example_has_one_label_and_where_tokens_are_asked_each_has_its_own(
    monkeypatch: pytest.MonkeyPatch, task: type[Task]
) -> None:
    asked: list[tuple[torch.Tensor, torch.Tensor]] = []

    def loss(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        asked.append((logits, labels))
        return cross_entropy(logits, labels)

    cross_entropy = F.cross_entropy
    monkeypatch.setattr(F, "cross_entropy", loss)
    by_token = task is Recall
    wanted = cell(model=MODEL.by_token() if by_token else MODEL)
    model = build(wanted, network(Sdpa), task.card)
    prepare_step(wanted, model, task.card, CPU)[0]()
    ((logits, labels),) = asked
    answers = wanted.batch * (wanted.length if by_token else 1)
    assert tuple(logits.shape) == (answers, task.card.classes)
    assert tuple(labels.shape) == (answers,)
    assert labels.min() >= 0 and labels.max() < task.card.classes
    # Among so many answers most classes are found.
    assert not by_token or len(labels.unique()) > task.card.classes / 2


def test_the_cell_counts_the_whole_model() -> None:
    around = ModelContext(network(Identity), Text.card)
    found = measure_efficiency(cell(), Identity, Identity.Config(), around)
    assert found.parameters > 257 * 8
    assert "AdamW" in found.method["timed_region"]
    alone = measure_efficiency(cell(level="layer", model=None), Identity, Identity.Config())
    more, less = found.metrics["operations"].value, alone.metrics["operations"].value
    assert more is not None and less is not None and more > 2 * less


def test_a_model_that_answers_for_examples_does_not_decode() -> None:
    with pytest.raises(UnsupportedError, match="level layer"):
        build(cell(mode="decode"), network(Sdpa), Text.card)


def test_a_model_is_timed_in_its_published_form() -> None:
    form = load_preset("gpt2").form
    model = build(
        cell(task="bytes", model=replace(MODEL.by_token(), form=form)), network(Sdpa), Bytes.card
    )
    assert isinstance(model, Model) and isinstance(model.head, TableHead)
    assert model.head.table is model.embedding.tokens


@pytest.mark.parametrize("asks", ["sequence", "query"])
def test_tasks_with_a_source_are_not_timed_as_other_models(
    asks: Literal["sequence", "query"],
) -> None:
    card = TaskCard(title="", source="", classes=3, vocabulary=9, inputs=2, asks=asks)
    with pytest.raises(UnsupportedError, match="without a source"):
        build(cell(), network(Sdpa), card)
