"""Blocks that are computed again on the way back train to the same numbers, bit for bit."""

from __future__ import annotations

from types import ModuleType

import msgspec
import pytest
import torch
from code_paths import by_representatives

from lra.core import catalogue, loading
from lra.core.protocol import ModelSpec
from lra.models.build import build_model
from lra.models.layers import Layers


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("mechanism", by_representatives(catalogue.names("mechanism")))
def test_they_draw_the_same_dropout_again(toy: ModuleType, mechanism: str, precision: str) -> None:
    kind = loading.load(catalogue.find("mechanism", mechanism))
    model = ModelSpec(
        layers=2, width=16, qkv_width=16, heads=2, mlp_width=32, dropout=0.1, attention_dropout=0.1
    )
    training = msgspec.structs.replace(
        toy.SPEC, steps=2, warmup=0, batch=8, evaluate_every=2, evaluation_batch=130,
        precision=precision,
    )  # fmt: skip
    data, trained, weights = toy.dataset(rows=40), [], []
    for recompute in (False, True):
        net = build_model(
            model,
            # In so few tokens a block or a window of the paper's would be all there is.
            layers=Layers.of(kind, kind.trials[0] if kind.trials else None),
            position=toy.Learned,
            vocabulary=data.vocabulary,
            classes=data.classes,
            length=data.length,
        )
        found = toy.trained(
            net,
            msgspec.structs.replace(training, recompute=recompute),
            data=data,
            training={"pad_to_length": kind.card.capabilities.padding != "content"},
        )
        (point,) = found.curve
        trained.append((point.train_loss, point.validation_loss, found.test))
        weights.append(net.state_dict())
    assert trained[0] == trained[1]
    for name, value in weights[0].items():
        assert torch.equal(value, weights[1][name]), name
